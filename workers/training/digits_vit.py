"""Two vision transformers for scikit-learn's handwritten digits, known to timm like its own: 12
blocks on 64 and 256 patches.
"""

from typing import Any, cast

import torch
from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.vision_transformer import VisionTransformer
from torch import nn

SIZE, WIDTH, HEADS, MLP_RATIO = 32, 64, 4, 2.0
"""Pixels, channels, heads, and channels of an MLP over those of a token."""
_GREY = {
    "input_size": (1, SIZE, SIZE),
    "num_classes": 10,
    "mean": (0.3,),
    "std": (0.35,),
    "crop_pct": 1.0,
    "interpolation": "bicubic",
}
default_cfgs = generate_default_cfgs({"digits_vit_64": _GREY, "digits_vit_256": _GREY})


@register_model
def digits_vit_64(pretrained: bool = False, **options: Any) -> VisionTransformer:
    """32 pixels in patches of 4; weights are trained on demand, see `workers.training.weights`."""
    return _digits_vit("digits_vit_64", 4, pretrained, options)


@register_model
def digits_vit_256(pretrained: bool = False, **options: Any) -> VisionTransformer:
    """32 pixels in patches of 2."""
    return _digits_vit("digits_vit_256", 2, pretrained, options)


def _digits_vit(
    name: str, patch: int, pretrained: bool, options: dict[str, Any]
) -> VisionTransformer:
    geometry = {
        "img_size": SIZE,
        "patch_size": patch,
        "embed_dim": WIDTH,
        "depth": 12,
        "num_heads": HEADS,
        "mlp_ratio": MLP_RATIO,
    }
    model: Any = build_model_with_cfg(
        VisionTransformer, name, pretrained, **{**geometry, **options}
    )
    # Training in two minutes needs well-scaled signals and gradients through 12 blocks from the
    # first step on: Glorot weights in
    # place of timm's small ones, and positions initialised as sines and cosines.
    for part in model.blocks.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
    positions = build_sincos2d_pos_embed(list(model.patch_embed.grid_size), WIDTH)
    with torch.no_grad():
        model.pos_embed[:, : model.num_prefix_tokens].zero_()
        model.pos_embed[:, model.num_prefix_tokens :].copy_(positions)
    return cast(VisionTransformer, model)
