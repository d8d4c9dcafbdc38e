"""Keeps the patch tokens that the class token attends to most, in a few blocks, between attention
and MLP.

Per reducing block `ceil(keep_rate x patch tokens left)` stay, in the order of their scores, behind
the prefix tokens. The score is the mean over heads of the class token's row of the attention
matrix; only that row is computed, so that attention stays fused.

Rounding up what is left is how EViT's code counts. Haurum et al. (`PAPER`) count shares of the
image's tokens, rounded down: `int(keep_rate^i x patch tokens of the image)` at the i-th of the
layers, which is `counts: image` (their code assumes 196 tokens).
"""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network
from workers.token_reduction import CountedKeepParams

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


class Params(CountedKeepParams):
    """The share that is kept, and by which code."""

    implementation: Literal["torch", "triton"] = Field(
        default="torch", description="triton: one fused kernel selects and gathers, on CUDA only"
    )

    def score_refusal(self, network: Network) -> str | None:
        if network.rotary and self.implementation == "triton":
            return "the kernel of implementation: triton does not pass on rotary embeddings"
        return super().score_refusal(network)


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

    like = model.patch_embed.proj.weight
    if params.implementation == "triton":
        check_triton(like)
        return fit_stages(model, params, keep_best_fused)
    return fit_stages(model, params, lambda stage: keep_best(stage, like))


def check_triton(like: "Tensor") -> None:
    """Raise `Unsupported` unless Triton is installed and the model is on a CUDA device."""
    from importlib.util import find_spec

    from workers.errors import Unsupported

    if not like.is_cuda:
        raise Unsupported(
            "implementation: triton runs on CUDA devices only, and the model is on"
            f" {like.device.type}"
        )
    if find_spec("triton") is None:
        raise Unsupported("implementation: triton needs the package triton, which is not installed")


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


def keep_best_fused(stage: "Stage") -> "Reduction":
    """As `keep_best`, by one fused kernel."""
    from workers.token_reduction.token_ops import class_token_attention
    from workers.token_reduction.triton_kernels import keep_best_triton

    return lambda x_BND, size_BN1, attended: (
        keep_best_triton(x_BND, class_token_attention(attended), stage.prefix, stage.left),
        size_BN1,
        None,
    )
