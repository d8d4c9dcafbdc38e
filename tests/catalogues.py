"""Writes what planning must know of timm's models: `python -m tests.catalogues`, a quarter of an
hour.

`sweeps/geometry/vit_catalogue.json`: the geometry of each plain ViT, and of every other model with
attention that runs its MACs and the reason why no token can be removed. `variants.json`: the
outputs of each and of its tagged weights, and how a tag's geometry differs. `unsupported.json`: all
other models by reason. `docs/models.md`: the same by module of timm.
"""

import json
import re
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
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

import sweeps
from sweeps.geometry.vit_catalogue import VARIANTS, networks
from sweeps.model.method import Network
from workers.training.train_vit import default_cfgs

DOCUMENT = Path(__file__).parents[1] / "docs" / "models.md"
BEGIN, END = "<!-- vision: python -m tests.catalogues -->", "<!-- end of vision -->"
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
RELATIVE = "attention has a bias for each pair of places in the image"
ENCODER = "encoder of a vision-language model, with rotary blocks of its own"
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
    RELATIVE: "beit vision_transformer_relpos",
    ENCODER: "deepseek_vit gemma4_vit qwen3_vit",
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


WRITING = (
    "(uniform|normal|erfinv|mul|add|clamp|fill|zero|constant|trunc_normal|kaiming_uniform"
    "|xavier_uniform)_"
)
"""Functions that only write values into tensors, and functions of `nn.init`: half of the time in
which a model is created on the meta device, where there are no values."""
KEEPING = "(layer|group|batch)_norm|gelu|silu|relu6?|hardswish|hardsigmoid|sigmoid|clamp|dropout"
"""Functions without products whose output has the shape of their first input: torch finds that
slowly on the meta device."""


class Omitted(TorchFunctionMode):
    """Leaves out the functions that have these names, and what linear layers add."""

    def __init__(self, names: str) -> None:
        super().__init__()
        self.names = re.compile(names)

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given, name = kwargs or {}, getattr(func, "__name__", "")
        if self.names.fullmatch(name):
            return args[0] if args else given["tensor"]
        return func(*(args[:2] if name == "linear" else args), **given)


def meta(name: str) -> Any:
    with Omitted(WRITING):
        return timm.create_model(name, device=torch.device("meta"))


def candidates() -> list[str]:
    """The models that may be in the catalogue: all of timm's but convolutional networks, and our
    own.
    """
    return sorted(
        name
        for name in {*timm.list_models(), *default_cfgs}
        if REASONS.get(module_of(name)) != CONVOLUTIONAL
    )


def known_geometry(name: str) -> Network | None:
    """What the catalogue holds of a model, read from the model itself on the meta device; `None`
    where it does not run on a square image.
    """
    model, bare = meta(name), name.partition(".")[0]
    if is_plain(model):
        return geometry_of(bare, model)
    channels, height, width = model.pretrained_cfg["input_size"]
    macs = counted_macs(model, (channels, height, width))
    if macs is None or height != width:
        return None
    return Network(
        name=bare,
        patch=model.feature_info[0]["reduction"],
        image_size=height,
        refusal=reason(bare),
        class_token=False,
        prefix_tokens=0,
        channels=channels,
        fixed_macs=macs,
    )


def counted_macs(model: Any, shape: tuple[int, int, int]) -> int | None:
    """MACs of one image in matrix products and convolutions, by torch's counter, with attention in
    its parts; `None` where the model does not give logits.
    """
    model.eval().requires_grad_(requires_grad=False)
    for part in model.modules():
        if hasattr(part, "fused_attn"):
            part.fused_attn = False
    try:
        with FlopCounterMode(display=False) as counter, Omitted(KEEPING), torch.no_grad():
            logits = model(torch.empty(1, *shape, device="meta"))
    except Exception:  # whatever a model raises, it does not run
        return None
    two_dimensional = isinstance(logits, torch.Tensor) and logits.ndim == 2
    return counter.get_total_flops() // 2 if two_dimensional else None


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


def module_of(name: str) -> str:
    """The module of timm that defines a model, or of ours."""
    return str(timm.models.model_entrypoint(name).__module__).rpartition(".")[2]


def reason(name: str) -> str:
    """Why a model of timm that is not in the catalogue is not. Raises `KeyError` for a module
    without a reason.
    """
    module = module_of(name)
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
    made: dict[tuple[Any, ...], Network | None] = {}
    for name in sorted({*known, *tagged}):
        bare, config = known[name.partition(".")[0]], timm.models.get_pretrained_cfg(name)
        outputs = meta(name).num_classes if config is None else config.num_classes
        # of models that run dense alone nothing else of a tag changes sizes
        key = (bare.name, outputs, config and config.input_size, bare.refusal is None and name)
        if key not in made:
            made[key] = known_geometry(name)
        if (found := made[key]) is None or (found.refusal is None) != (bare.refusal is None):
            continue
        own, usual = found.model_dump(), bare.model_dump()
        changed = {key: value for key, value in own.items() if value != usual[key]}
        yield name, {"classes": outputs, **changed}


def unsupported() -> dict[str, list[str]]:
    """The names of timm's other models by reason."""
    found: dict[str, list[str]] = {}
    for name in timm.list_models():
        if name not in networks():
            found.setdefault(reason(name), []).append(name)
    return dict(sorted(found.items()))


def catalogue() -> str:
    """The geometry of every model as JSON, one per line; takes about seven minutes."""
    return lines({name: known for name in candidates() if (known := known_geometry(name))})


def lines(found: Mapping[str, Network]) -> str:
    """JSON of models with what differs from a network's defaults."""
    return written(
        {
            name: known.model_dump(exclude={"name"}, exclude_defaults=True)
            for name, known in found.items()
        }
    )


def document() -> str:
    """The part of `docs/models.md` on timm's models: counts, and a line for each of its modules."""
    known, families = networks(), dict[str, list[str]]()
    for name in sorted(set(known) - set(default_cfgs)):
        families.setdefault(module_of(name), []).append(name)
    tags = [name for name in timm.list_pretrained() if name.partition(".")[0] in known]
    tags = [name for name in tags if name in json.loads(VARIANTS.read_text(encoding="utf-8"))]
    removing = [name for name in tags if known[name].refusal is None]
    candidate = [
        name
        for name in timm.list_pretrained()
        if REASONS.get(module_of(name.partition(".")[0])) != CONVOLUTIONAL
    ]
    distinct = [
        len({known[name].model_copy(update={"name": ""}) for name in names})
        for names in (tags, removing)
    ]
    scored = sum(known[name].class_token for name in removing)
    text = (
        f"Of {len(candidate)} pretrained names of timm beyond convolutional networks, {len(tags)}"
        " run"
        f" dense ({distinct[0]} different geometries), {len(removing)} of them with token reduction"
        f" ({distinct[1]}). `topk` and `evit` score by the class token, which {scored} of these"
        " have. A model that runs dense alone does so at the image size that it was made for.\n\n"
        "| module of timm | models | pretrained names | token reduction |\n|---|---|---|---|\n"
    )
    for module, names in sorted(families.items()):
        by_reason: dict[str | None, list[str]] = {}
        for name in names:
            by_reason.setdefault(known[name].refusal, []).append(name)
        for why, same in by_reason.items():
            weights = sum(name.partition(".")[0] in same for name in tags)
            row = (module, str(len(same)), str(weights), why or "every method")
            text += f"| {' | '.join(row)} |\n"
    return text


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
    VARIANTS.write_text(written(dict(variants())), encoding="utf-8")
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{document()}{END}{after}", encoding="utf-8")
