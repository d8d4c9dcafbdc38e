"""Drops patch tokens at random where topk drops by score: the control that shows what scores cost and are worth.

Which tokens stay is drawn once, when the method is applied, for all images and forwards alike, so that choosing costs nothing.
"""

from typing import TYPE_CHECKING

from pydantic import Field

from sweeps.method import BlockTokens, Network
from workers.token_reduction.schedules import KeepParams

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduction

PAPER = "none: a control. Its schedule is that of topk"
VERSION = 1
SOLVES = "keep_rate"


class Params(KeepParams):
    """As for topk, and the seed of the draw."""

    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of the draw")


NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.5, layers=(1,)),
    Params(keep_rate=0.7, layers=(0, 2, 3), seed=5),
    Params(keep_rate=0.5, layers=(0, 2), align=8),
)


def tokens(params: Params, network: Network, image_size: int) -> tuple[BlockTokens, ...]:
    return params.tokens(network, image_size)


def macs(params: Params, network: Network, image_size: int) -> int:  # noqa: ARG001 - choosing costs nothing
    return 0


def refuses(params: Params, network: Network) -> str | None:
    return params.too_deep(network)


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A twin of `model` that keeps tokens drawn at random. Raises `Unsupported` as `fit` does."""
    import torch

    from workers.token_reduction.patch_vit import fit

    prefix, patches = model.num_prefix_tokens, model.patch_embed.num_patches
    generator = torch.Generator().manual_seed(params.seed)
    reductions = {}
    for layer, kept in params.kept(patches, prefix).items():
        if kept < patches:
            drawn = torch.randperm(patches, generator=generator)[:kept].sort().values + prefix
            reductions[layer] = keep(torch.cat((torch.arange(prefix), drawn)).to(model.patch_embed.proj.weight.device))
        patches = kept
    return fit(model, reductions)


def keep(index_K: "Tensor") -> "Reduction":
    """Keeps the tokens at the places `index_K`."""

    def reduction(x_BND: "Tensor", size_BN1: "Tensor | None", _: "AttentionState") -> "tuple[Tensor, Tensor | None]":
        return x_BND.index_select(1, index_K), size_BN1

    return reduction
