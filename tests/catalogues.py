"""Writes what planning must know of timm's models: `python -m tests.catalogues`, ten
minutes.

`sweeps/geometry/vit_catalogue.json`: the geometry of each plain ViT. `variants.json`: the outputs
of each and of its tagged weights, and how a tag's geometry differs. `unsupported.json`: all other
models, by the reason why no token can be removed.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import timm
import torch
from timm.layers.attention import Attention, AttentionRope
from timm.layers.patch_embed import PatchEmbed
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva, EvaAttention, EvaBlock
from timm.models.vision_transformer import Block, VisionTransformer
from torch import nn

import sweeps
from sweeps.geometry.vit_catalogue import networks
from sweeps.model.method import Network
from workers.training.train_vit import default_cfgs

POOLINGS = ("token", "avg", "map")
KINDS: Mapping[type, set[type]] = {
    VisionTransformer: {Block, Attention},
    VisionTransformerDistilled: {Block, Attention},
    Eva: {EvaBlock, EvaAttention, AttentionRope},
}
"""Plain models, with their blocks and attention."""
PLAIN = ("vision_transformer", "deit", "eva")
"""Modules of timm that define plain vision transformers."""
CONVOLUTIONAL, HYBRID = "convolutional network", "hybrid of convolutions and attention"
WINDOWED, HIERARCHICAL = "windowed attention", "hierarchical: tokens are pooled between stages"
POSITIONS = "attention with relative or rotary positions (BEiT, EVA, DINOv3 style)"
MODULES: Mapping[str, str] = {
    CONVOLUTIONAL: (
        "byobnet convmixer convnext cspnet cspnext densenet dla dpn efficientnet fasternet focalnet"
        " ghostnet hardcorenas hgnet hrnet inception_next inception_resnet_v2 inception_v3"
        " inception_v4 lcnetv2 mambaout mobilenetv3 nasnet nfnet pnasnet rdnet regnet repghost"
        " repvit res2net resnest resnet resnetv2 rexnet selecsls senet sknet starnet tresnet vgg"
        " vovnet xception xception_aligned"
    ),
    HYBRID: (
        "byoanet cpubone csatv2 edgenext efficientformer efficientformer_v2 efficientvim"
        " efficientvit_mit efficientvit_msra fastvit iformer levit lowformer metaformer mobilenetv5"
        " mobilevit nextvit shvit swiftformer vision_transformer_hybrid visformer vitamin"
    ),
    WINDOWED: (
        "davit gcvit hieradet_sam2 maxxvit nest swin_transformer swin_transformer_v2"
        " swin_transformer_v2_cr tiny_vit twins vision_transformer_sam"
    ),
    HIERARCHICAL: "coat hiera mvitv2 pit pvt_v2",
    POSITIONS: "beit deepseek_vit gemma4_vit qwen3_vit vision_transformer_relpos",
    "class attention: the class token joins in the last blocks only": "cait",
    "gated positional attention": "convit",
    "two branches with patches of different sizes": "crossvit",
    "no attention: layers are made for one number of tokens": "mlp_mixer",
    "inputs of variable size (NaFlex)": "naflexvit",
    "no attention: recurrent layers over rows and columns": "sequencer",
    "transformer in transformer: each patch has tokens of its own": "tnt",
    "outlook attention": "volo",
    "attention between channels, not tokens": "xcit",
}
"""The modules of timm, by the reason."""
REASONS: Mapping[str, str] = {
    module: why for why, modules in MODULES.items() for module in modules.split()
}
"""By module of timm; those of `vision_transformer` itself that are left out have other blocks,
which are named."""


def meta(name: str) -> Any:
    return timm.create_model(name, device=torch.device("meta"))


def candidates() -> list[str]:
    """The models that may be in the catalogue: all of timm's three modules that define plain vision
    transformers, and our own.
    """
    return sorted(
        {
            *(name for module in PLAIN for name in timm.list_models(module=module)),
            *default_cfgs,
        }
    )


def plain_geometry(name: str) -> Network | None:
    """The geometry of one timm model, read from the model itself on the meta device; `None` if it
    is not plain.
    """
    model = meta(name)
    return geometry_of(name, model) if is_plain(model) else None


def is_plain(model: Any) -> bool:
    """Whether the model is a ViT of timm's own `Block` and `Attention`, or `EvaBlock` and its, on
    square patches and a square image.
    """
    kinds = KINDS.get(type(model))
    if kinds is None:
        return False
    parts = [part for block in model.blocks for part in (block, getattr(block, "attn", None))]
    return (
        {type(part) for part in parts} <= kinds
        and all(getattr(part, "num_kv_groups", 1) == 1 for part in parts)
        and type(model.patch_embed) is PatchEmbed
        and model.patch_embed.patch_size[0] == model.patch_embed.patch_size[1]
        and model.patch_embed.img_size[0] == model.patch_embed.img_size[1]
        and model.global_pool in POOLINGS
    )


def geometry_of(name: str, model: Any) -> Network:
    """The facts that planning needs; MACs are the weights of the linear layers, counted where they
    stand.
    """
    block = model.blocks[0]
    width, pool = model.embed_dim, model.attn_pool
    head = linear_weights(model.head) + (
        linear_weights(model.head_dist) if isinstance(model, VisionTransformerDistilled) else 0
    )
    per_token = once = 0
    # a latent query attends to the tokens: keys, values, QK^T and AV for each token, the rest once
    if pool is not None:
        per_token = linear_weights(pool.kv) + 2 * width
        once = linear_weights(pool.q) + linear_weights(pool.proj) + linear_weights(pool.mlp)
        once -= 0 if includes_prefix(model) else model.num_prefix_tokens * per_token
    return Network(
        name=name,
        patch=model.patch_embed.patch_size[0],
        image_size=model.patch_embed.img_size[0],
        depth=len(model.blocks),
        width=width,
        heads=block.attn.num_heads,
        head_dim=block.attn.head_dim,
        class_token=model.cls_token is not None,
        rotary=getattr(model, "rope", None) is not None,
        prefix_tokens=model.num_prefix_tokens,
        channels=model.patch_embed.proj.in_channels,
        attention_macs_per_token=linear_weights(block.attn),
        mlp_macs_per_token=linear_weights(block.mlp),
        pool_macs_per_token=per_token,
        fixed_macs=head + once,
    )


def includes_prefix(model: Any) -> bool:
    """Whether attention pooling reads the prefix tokens: of timm's `Eva` it always does."""
    return bool(getattr(model, "pool_include_prefix", True))


def linear_weights(module: nn.Module) -> int:
    """Weights of all linear layers inside, biases left out: one MAC each for every token."""
    return sum(layer.weight.numel() for layer in module.modules() if isinstance(layer, nn.Linear))


def reason(name: str) -> str:
    """Why a model of timm that is not in the catalogue is not. Raises `KeyError` for a module
    without a reason.
    """
    module = timm.models.model_entrypoint(name).__module__.rpartition(".")[2]
    if module not in PLAIN:
        return REASONS[module]
    blocks = meta(name).blocks
    attention = [getattr(block, "attn", block) for block in blocks]
    if any(getattr(each, "num_kv_groups", 1) > 1 for each in attention):
        return "grouped-query attention: several heads share keys and values"
    grid = meta(name).patch_embed.img_size
    if grid[0] != grid[1]:
        return "made for images that are not square"
    other = attention[0] if type(blocks[0]) is Block else blocks[0]
    return f"blocks of another kind ({type(other).__name__})"


def variants() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each model of the catalogue and each of its weights' tags: `classes`, and the facts that are
    not those of the bare name.
    """
    known = networks()
    tagged = [
        name for name in timm.list_pretrained() if "." in name and name.partition(".")[0] in known
    ]
    for name in sorted({*known, *tagged}):
        model = meta(name)
        if not is_plain(model):
            continue
        bare = known[name.partition(".")[0]].model_dump()
        own = geometry_of(bare["name"], model).model_dump()
        yield (
            name,
            {
                "classes": model.num_classes,
                **{key: value for key, value in own.items() if value != bare[key]},
            },
        )


def unsupported() -> dict[str, list[str]]:
    """The names of timm's other models by reason."""
    found: dict[str, list[str]] = {}
    for name in timm.list_models():
        if name not in networks():
            found.setdefault(reason(name), []).append(name)
    return dict(sorted(found.items()))


def catalogue() -> str:
    """The geometry of every plain ViT as JSON, one model per line; takes about half a minute."""
    found = {name: known for name in candidates() if (known := plain_geometry(name)) is not None}
    return written({name: known.model_dump(exclude={"name"}) for name, known in found.items()})


def written(rows: Mapping[str, Any]) -> str:
    """JSON with one entry per line."""
    return (
        "{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items())
        + "\n}\n"
    )


if __name__ == "__main__":
    folder = Path(sweeps.__path__[0]) / "geometry"
    (folder / "vit_catalogue.json").write_text(catalogue(), encoding="utf-8")
    (folder / "unsupported.json").write_text(
        written({key: " ".join(names) for key, names in unsupported().items()}), encoding="utf-8"
    )
    (folder / "variants.json").write_text(written(dict(variants())), encoding="utf-8")
