"""Keeps the patch tokens that the class token attends to most, in a few blocks, between attention
and MLP.

Per reducing block `ceil(keep_rate x patch tokens left)` stay, in the order of their scores, behind
the prefix tokens. The score is the mean over heads of the class token's row of the attention
matrix; only that row is computed, so that attention stays fused.

Rounding up what is left is how EViT's code counts. Haurum et al. (`PAPER`) count shares of the
image's tokens, rounded down: `int(keep_rate^i x patch tokens of the image)` at the i-th of the
layers, which is `counts: image` (their code assumes 196 tokens).
"""

from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network
from workers.token_reduction import CompiledParams, CountedKeepParams

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduced, Reduction, Stage

PAPER = (
    "Haurum et al., Which Tokens to Use? Investigating Token Reduction in Vision Transformers,"
    " ICCVW 2023, arXiv 2308.04657"
)
VERSION = 1
SOLVES = "keep_rate"


class Params(CompiledParams, CountedKeepParams):
    """The share that is kept, and by which code: torch's operators where `auto` is not requested,
    since those are what stored answers were measured with.
    """

    compiled = ("triton",)
    implementation: Literal["auto", "torch", "triton"] = Field(
        default="torch",
        description="triton: fused kernels, on CUDA only; auto: those where they can run",
    )


tokens, refuses = Params.tokens, Params.score_refusal
NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.5, layers=(1,)),
    Params(keep_rate=0.7, layers=(0, 2, 3)),
    Params(keep_rate=0.1, layers=(1, 2)),
    Params(keep_rate=0.5, layers=(0, 2), align=8),
    Params(keep_rate=0.7, layers=(0, 2, 3), counts="image"),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """One row of QK^T in each block that drops tokens (where attention is not fused, its matrix has
    the row already).
    """
    return sum(params.entering(network, image_size)) * network.heads * network.head_dim


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that keeps the patch tokens with the highest scores.

    Raises `Unsupported` as `fit` does, and for `implementation: triton` where that cannot run.
    """
    from workers.token_reduction.patch_vit import fit_stages

    if params.implementation == "triton":
        from workers.token_reduction import fused

        return fused.fit_fused(model, params, partial(fused.keeping, fuse=False))
    like = model.patch_embed.proj.weight
    return fit_stages(model, params, lambda stage: keep_best(stage, like))


def keep_best(stage: "Stage", like: "Tensor") -> "Reduction":
    """Keeps the prefix tokens and the best patch tokens; constants get the device and type of
    `like`.
    """
    from workers.token_reduction.token_ops import best_tokens, select

    best = best_tokens(stage.prefix, stage.patches, stage.left, like=like)

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "Reduced":
        index_BK, place_BNP = best(attended)[1], attended.place_BNP
        place_BKP = None if place_BNP is None else select(place_BNP, index_BK)
        return select(x_BND, index_BK), size_BN1, place_BKP

    return reduction
