"""Keeps the patch tokens that the class token attends to most, and fuses the others into one token
(EViT).

Per reducing block the `ceil(keep_rate x patch tokens left)` best stay, in the order of their scores
(as in topk), behind the prefix tokens. The sum of the others, each weighted by its score, is
appended as one token more; from then on it is an ordinary patch token, which counts among those
left and can itself be dropped. As in the authors' code the sum is not divided by the weights' sum.
A fused token that would stand for a single dropped one saves nothing: that one then stays as it is.
"""

from typing import TYPE_CHECKING

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network
from workers.token_reduction.schedules import KeepParams

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduction

PAPER = (
    "Liang et al., Not All Patches are What You Need: Expediting ViTs via Token Reorganizations,"
    " ICLR 2022, arXiv 2202.07800"
)
VERSION = 1
SOLVES = "keep_rate"


class Params(KeepParams):
    """As for topk; the fused token comes on top of the share that is kept."""

    def stage(self, keep_rate: float, present: int) -> int:
        """Patch tokens that leave a reducing block, the fused one included."""
        return min(present, super().stage(keep_rate, present) + 1)


tokens = Params.tokens
NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.5, layers=(1,)),
    Params(keep_rate=0.7, layers=(0, 2, 3)),
    Params(keep_rate=0.1, layers=(1, 2)),
    Params(keep_rate=0.5, layers=(0, 2), align=8),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """One row of QK^T and one weighted sum of the tokens in each block that drops some (eager
    attention has the row already).
    """
    dropping = [
        block.attention
        for block in tokens(params, network, image_size)
        if block.mlp < block.attention
    ]
    return sum(dropping) * (network.heads * network.head_dim + network.width)


def refuses(params: Params, network: Network) -> str | None:
    if not network.class_token:
        return f"{network.name} has no class token, whose attention is the score"
    return params.too_deep(network)


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that keeps the best patch tokens and fuses the rest. Raises `Unsupported`
    as `fit` does.
    """
    from workers.token_reduction.patch_vit import fit_stages

    def reduction(patches: int, left: int) -> "Reduction":
        return keep_best_and_fuse(
            model.num_prefix_tokens, patches, left - 1, like=model.patch_embed.proj.weight
        )

    return fit_stages(model, params, reduction)


def keep_best_and_fuse(prefix: int, patches: int, kept: int, *, like: "Tensor") -> "Reduction":
    """Keeps the `prefix` tokens and the `kept` best of `patches`, and appends the rest as one;
    constants are made like `like`.
    """
    import torch

    from workers.token_reduction.token_ops import class_token_scores, prefix_bonus, select

    bonus_1N = prefix_bonus(prefix, patches, like=like)

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "tuple[Tensor, Tensor | None]":
        score_BN = class_token_scores(
            attended.q_BHNd, attended.k_BHNd, attended.scale, attended.attention_BHNN
        )
        index_BK = (score_BN + bonus_1N).topk(prefix + kept).indices
        # With the weights of the kept tokens set to zero, one product fuses the others without
        # gathering them.
        fused_B1D = score_BN.scatter(1, index_BK, 0.0)[:, None] @ x_BND
        return torch.cat((select(x_BND, index_BK), fused_B1D.to(x_BND.dtype)), 1), size_BN1

    return reduction
