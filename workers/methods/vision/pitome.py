"""Merges patch tokens that have many alike, and protects those that have few, in every block, between attention and MLP (PiToMe).

The energy of a token is the mean over all patch tokens of f(cosine of their keys), where f(c) = c from the block's margin on and
alpha (exp(c - margin) - 1) below it: high in large groups of similar tokens. Of the 2r tokens with the highest energy those at even
ranks are each merged into the most similar one at an odd rank, as a mean weighted by size; the others are protected. The margin
falls linearly with depth: margin x (1 - block / blocks). At most half of the patch tokens are merged in a block, prefix tokens
never are.

The energy is equation 4 of the paper; the authors' code takes c - margin in place of c from the margin on.
Left open by the paper and taken here: keys are their mean over heads and the place is that of ToMe (as the paper compares the two);
a token is its own neighbour, which adds the same to all; protected tokens stand before the merged ones, in the order of energy, on
which nothing depends. The paper's ratio (of tokens kept in every block) is 1 - `r_ratio`; `r` and the budget are as for tome.
Attention in proportion to size and average pooling weighted by size are as in tome too.
"""

from typing import TYPE_CHECKING

from pydantic import Field

from sweeps.method import Network
from workers.token_reduction.schedules import MergeParams

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduction

PAPER = "Tran et al., Accelerating Transformers with Spectrum-Preserving Token Merging, NeurIPS 2024, arXiv 2405.16148"
VERSION = 1
SOLVES = "r"


class Params(MergeParams):
    """How many tokens are merged, as for tome, and what counts as alike."""

    margin: float = Field(default=0.9, ge=-1, le=1, description="cosine from which on tokens count as alike, in the first block")
    alpha: float = Field(default=1.0, gt=0, le=10, description="weight of the tokens that are less alike")


tokens, refuses = Params.tokens, Params.too_long
NEUTRAL = Params(r=0)
EXAMPLES = (
    Params(r_ratio=0.2),
    Params(r=(0, 5, 0, 2), margin=0.5),
    Params(r=100),
    Params(r=2, prop_attn=False),
    Params(r=3, align=8),
)


def macs(params: Params, network: Network, image_size: int) -> int:
    """The similarities of all patch tokens, and again those of the tokens to be merged, in each block that merges."""
    total = 0
    for block in tokens(params, network, image_size):
        if (r := block.attention - block.mlp) > 0:
            total += (block.attention - network.prefix_tokens) ** 2 + r**2
    return total * network.head_dim


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that merges tokens of high energy. Raises `Unsupported` as `fit` does."""
    from workers.token_reduction.patch_vit import fit

    depth, prefix = len(model.blocks), model.num_prefix_tokens
    merged = params.merged(depth, model.patch_embed.num_patches, prefix)
    reductions = {
        block: merge_alike(prefix, r, params.margin * (1 - block / depth), params.alpha) for block, r in enumerate(merged) if r > 0
    }
    return fit(model, reductions, proportional=params.prop_attn, by_size=True)


def merge_alike(prefix: int, r: int, margin: float, alpha: float) -> "Reduction":
    """Merges `r` tokens behind the `prefix` tokens."""
    import torch

    from workers.token_reduction.token_ops import add_to_groups, group_means, select, unit_length, weighted_sums

    def reduction(x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState") -> "tuple[Tensor, Tensor | None]":
        unit_BPd = unit_length(attended.k_BHNd[:, :, prefix:].sum(1))  # the direction of the mean
        order_BP = token_energy(unit_BPd @ unit_BPd.mT, margin, alpha).argsort(-1, descending=True)
        merging_BQd = select(unit_BPd, order_BP[:, : 2 * r])
        target_BR = (merging_BQd[:, ::2] @ merging_BQd[:, 1::2].mT).argmax(-1)
        sum_BNE = weighted_sums(x_BND, size_BN1)
        sorted_BPE = select(sum_BNE[:, prefix:], order_BP)
        out_BME = torch.cat((sum_BNE[:, :prefix], sorted_BPE[:, 2 * r :], sorted_BPE[:, 1 : 2 * r : 2]), 1)
        add_to_groups(out_BME[:, -r:], target_BR, sorted_BPE[:, : 2 * r : 2])
        return group_means(out_BME)

    return reduction


def token_energy(cosine_BPP: "Tensor", margin: float, alpha: float) -> "Tensor":
    """How much there is of each token, from the cosines of all pairs: [B, P]. Section 3.2 of the paper."""
    below_BPP = (cosine_BPP - margin).expm1() * alpha
    return cosine_BPP.where(cosine_BPP >= margin, below_BPP).mean(-1)
