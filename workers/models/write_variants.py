"""Writes what planning must know of timm's other models: `python -m workers.models.write_variants`, ten minutes.

`sweeps/geometry/variants.json`: the outputs of each model and of its tagged weights, and how a tag's geometry differs.
`sweeps/geometry/unsupported.json`: every other model of timm, by the reason why tokens cannot be removed from it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import timm
import torch

import sweeps
from sweeps.geometry.vit_catalogue import networks
from workers.models.write_vit_catalogue import network, plain

CONVOLUTIONAL, HYBRID = "convolutional network", "hybrid of convolutions and attention"
WINDOWED, HIERARCHICAL = "windowed attention", "hierarchical: tokens are pooled between stages"
POSITIONS = "attention with relative or rotary positions (BEiT, EVA, DINOv3 style)"
MODULES: Mapping[str, str] = {
    CONVOLUTIONAL: (
        "byobnet convmixer convnext cspnet cspnext densenet dla dpn efficientnet fasternet focalnet ghostnet hardcorenas "
        "hgnet hrnet inception_next inception_resnet_v2 inception_v3 inception_v4 lcnetv2 mambaout mobilenetv3 nasnet nfnet "
        "pnasnet rdnet regnet repghost repvit res2net resnest resnet resnetv2 rexnet selecsls senet sknet starnet tresnet vgg "
        "vovnet xception xception_aligned"
    ),
    HYBRID: (
        "byoanet cpubone csatv2 edgenext efficientformer efficientformer_v2 efficientvim efficientvit_mit efficientvit_msra "
        "fastvit iformer levit lowformer metaformer mobilenetv5 mobilevit nextvit shvit swiftformer vision_transformer_hybrid "
        "visformer vitamin"
    ),
    WINDOWED: (
        "davit gcvit hieradet_sam2 maxxvit nest swin_transformer swin_transformer_v2 swin_transformer_v2_cr tiny_vit twins "
        "vision_transformer_sam"
    ),
    HIERARCHICAL: "coat hiera mvitv2 pit pvt_v2",
    POSITIONS: "beit deepseek_vit eva gemma4_vit qwen3_vit vision_transformer_relpos",
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
REASONS: Mapping[str, str] = {module: why for why, modules in MODULES.items() for module in modules.split()}
"""By module of timm; those of `vision_transformer` itself that are left out have other blocks, which are named."""


def meta(name: str) -> Any:
    return timm.create_model(name, device=torch.device("meta"))


def reason(name: str) -> str:
    """Why a model of timm that is not in the catalogue is not. Raises `KeyError` for a module without a reason."""
    module = timm.models.model_entrypoint(name).__module__.rpartition(".")[2]
    if module not in ("vision_transformer", "deit"):
        return REASONS[module]
    return f"blocks of another kind ({type(meta(name).blocks[0]).__name__})"


def variants() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each model of the catalogue and each of its weights' tags: `classes`, and the facts that are not those of the bare name."""
    known = networks()
    tagged = [name for name in timm.list_pretrained() if "." in name and name.partition(".")[0] in known]
    for name in sorted({*known, *tagged}):
        model = meta(name)
        if not plain(model):
            continue
        bare = known[name.partition(".")[0]].model_dump()
        own = network(bare["name"], model).model_dump()
        yield name, {"classes": model.num_classes, **{key: value for key, value in own.items() if value != bare[key]}}


def unsupported() -> dict[str, list[str]]:
    """The names of timm's other models by reason."""
    found: dict[str, list[str]] = {}
    for name in timm.list_models():
        if name not in networks():
            found.setdefault(reason(name), []).append(name)
    return dict(sorted(found.items()))


def written(rows: Mapping[str, Any]) -> str:
    """JSON with one entry per line."""
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items()) + "\n}\n"


if __name__ == "__main__":
    folder = Path(sweeps.__path__[0]) / "geometry"
    (folder / "unsupported.json").write_text(
        written({key: " ".join(names) for key, names in unsupported().items()}), encoding="utf-8"
    )
    (folder / "variants.json").write_text(written(dict(variants())), encoding="utf-8")
