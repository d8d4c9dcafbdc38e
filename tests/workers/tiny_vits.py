"""Small vision transformers of every make that the catalogue knows, with weights large enough for a
mistake to show.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import torch
from timm.layers.mlp import SwiGLU
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from sweeps.model.condition import ImageSize, image_shape
from sweeps.model.method import Network
from tests.catalogues import geometry_of

SIZE = 40
"""Image size in pixels: 25 patches of 8 x 8, an odd number."""

MAKES: dict[str, Any] = {
    "plain": VisionTransformer,
    "distilled": VisionTransformerDistilled,
    "registers": partial(VisionTransformer, reg_tokens=4, no_embed_class=True, init_values=0.1),
    "average": partial(VisionTransformer, class_token=False, global_pool="avg"),
    "average_with_registers": partial(VisionTransformer, reg_tokens=2, global_pool="avg"),
    "map": partial(VisionTransformer, global_pool="map", qkv_bias=False),
    "normed": partial(
        VisionTransformer, qk_norm=True, scale_attn_norm=True, scale_mlp_norm=True, pre_norm=True
    ),
    "gated": partial(VisionTransformer, mlp_layer=SwiGLU),
    "normed_average": partial(VisionTransformer, global_pool="avg", fc_norm=False),
    "eva": partial(Eva, global_pool="token", init_values=0.1),
    "eva02": partial(
        Eva,
        use_rot_pos_emb=True,
        swiglu_mlp=True,
        scale_mlp=True,
        qkv_fused=False,
        ref_feat_shape=3,
    ),
    "dinov3": partial(
        Eva,
        use_rot_pos_emb=True,
        rope_type="dinov3",
        rope_rotate_half=True,
        use_abs_pos_emb=False,
        num_reg_tokens=4,
        init_values=0.1,
        use_fc_norm=False,
    ),
    "rope_mixed": partial(
        Eva, use_rot_pos_emb=True, rope_type="mixed", attn_type="rope", global_pool="token"
    ),
    "perception": partial(
        Eva,
        use_rot_pos_emb=True,
        attn_type="rope",
        global_pool="map",
        qk_norm=True,
        scale_attn_inner=True,
        use_pre_transformer_norm=True,
    ),
}
ROTARY = ("eva02", "dinov3", "rope_mixed", "perception")
"""Those with rotary embeddings."""


@cache
def small(make: str, image_size: ImageSize = SIZE, depth: int = 4) -> Any:
    """A transformer of `depth` blocks, 48 channels and 3 heads on `image_size` pixels, in evaluation
    mode; never change it.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: Any = MAKES[make](
            img_size=image_shape(image_size),
            patch_size=8,
            embed_dim=48,
            depth=depth,
            num_heads=3,
            num_classes=7,
        )
        if make == "gated":
            for block in model.blocks:
                block.attn.gate = nn.Linear(48, 48)
    model.eval().requires_grad_(requires_grad=False)
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.15)
    return model


def small_network(make: str, depth: int = 4) -> Network:
    """Its geometry, as the catalogue would have it."""
    return geometry_of(make, small(make, depth=depth))


def images(batch: int = 2, image_size: ImageSize = SIZE) -> Tensor:
    """Random images, always the same."""
    return torch.randn(
        batch, 3, *image_shape(image_size), generator=torch.Generator().manual_seed(2)
    )


def calm() -> Iterator[None]:
    """Runs a test in inference mode on one thread: tensors this small gain nothing from more, and
    lose much on a busy machine.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield
    torch.set_num_threads(threads)
