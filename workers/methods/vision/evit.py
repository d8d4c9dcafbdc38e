"""Keeps the patch tokens that the class token attends to most, and fuses the others into one token (EViT).

Per reducing block the `ceil(keep_rate x patch tokens left)` best stay, in the order of their scores (as in topk), behind the prefix
tokens. The sum of the others, each weighted by its score, is appended as one token more; from then on it is an ordinary patch
token, which counts among those left and can itself be dropped. As in the authors' code the sum is not divided by the weights' sum.
A fused token that would stand for a single dropped one saves nothing: that one then stays as it is.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sweeps.method import BlockTokens, Network
from workers.token_reduction.schedules import ROUNDING, UNSOLVED, KeepParams, aligned

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduction

PAPER = "Liang et al., Not All Patches are What You Need: Expediting ViTs via Token Reorganizations, ICLR 2022, arXiv 2202.07800"
VERSION = 1
SOLVES = "keep_rate"


class Params(KeepParams):
    """As for topk; the fused token comes on top of the share that is kept."""

    def kept(self, patches: int, prefix: int = 0) -> Mapping[int, int]:
        """Patch tokens that leave each reducing block, the fused one among them; otherwise as in `KeepParams`."""
        if self.keep_rate is None:
            raise ValueError(UNSOLVED)
        counts, left = [], patches
        for _ in self.layers:
            left = min(left, math.ceil(round(self.keep_rate * left, ROUNDING)) + 1)
            counts.append(left)
        return dict(zip(self.layers, aligned(counts, patches, prefix, self.align), strict=True))


NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.5, layers=(1,)),
    Params(keep_rate=0.7, layers=(0, 2, 3)),
    Params(keep_rate=0.1, layers=(1, 2)),
    Params(keep_rate=0.5, layers=(0, 2), align=8),
)


def tokens(params: Params, network: Network, image_size: int) -> tuple[BlockTokens, ...]:
    return params.tokens(network, image_size)


def macs(params: Params, network: Network, image_size: int) -> int:
    """One row of QK^T and one weighted sum of the tokens in each block that drops some (eager attention has the row already)."""
    dropping = [block.attention for block in tokens(params, network, image_size) if block.mlp < block.attention]
    return sum(dropping) * (network.heads * network.head_dim + network.width)


def refuses(params: Params, network: Network) -> str | None:
    if not network.class_token:
        return f"{network.name} has no class token, whose attention is the score"
    return params.too_deep(network)


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A twin of `model` that keeps the best patch tokens and fuses the rest. Raises `Unsupported` as `fit` does."""
    from workers.token_reduction.patch_vit import fit

    prefix, patches = model.num_prefix_tokens, model.patch_embed.num_patches
    reductions = {}
    for layer, left in params.kept(patches, prefix).items():
        if left < patches:
            reductions[layer] = keep_best_and_fuse(prefix, patches, left - 1, like=model.patch_embed.proj.weight)
        patches = left
    return fit(model, reductions)


def keep_best_and_fuse(prefix: int, patches: int, kept: int, *, like: "Tensor") -> "Reduction":
    """Keeps the `prefix` tokens and the `kept` best of `patches`, and appends the rest as one; constants are made like `like`."""
    import torch

    from workers.token_reduction.token_ops import class_token_scores, prefix_bonus, select

    bonus_1N = prefix_bonus(prefix, patches, like=like)

    def reduction(x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState") -> "tuple[Tensor, Tensor | None]":
        score_BN = class_token_scores(attended.q_BHNd, attended.k_BHNd, attended.scale, attended.attention_BHNN)
        index_BK = (score_BN + bonus_1N).topk(prefix + kept).indices
        # With the weights of the kept tokens set to zero, one product fuses the others without gathering them.
        fused_B1D = score_BN.scatter(1, index_BK, 0.0)[:, None] @ x_BND
        return torch.cat((select(x_BND, index_BK), fused_B1D.to(x_BND.dtype)), 1), size_BN1

    return reduction
