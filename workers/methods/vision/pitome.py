"""Merges patch tokens that have many alike, and protects those that have few, in every block,
between attention and MLP (PiToMe).

The energy of a token is the mean over all patch tokens of f(cosine of their keys), where f(c) = c
from the block's margin on and alpha (exp(c - margin) - 1) below it: high in large groups of similar
tokens. Of the 2r tokens with the highest energy those at even ranks are each merged into the most
similar one at an odd rank, as a mean weighted by size; the others are protected. The margin falls
linearly with depth: margin x (1 - block / blocks). At most half of the patch tokens are merged in a
block, prefix tokens never are.

The energy is equation 4 of the paper. The authors' code (for DeiT) differs from the paper, and
`energy: code` does what it does:

- f(c) = c - margin from the margin on;
- in the first half of the blocks, rounded up, all tokens are ordered by energy and none is
  protected: those at even ranks are set A, those at odd ranks set B, and the r tokens of A most
  similar to one of B are merged into it, as in tome (in their code for MAE the second half does
  so);
- `margin` is 0.75 and `prop_attn` false, unless the sweep sets them.

Left open by the paper and taken here: keys are their mean over heads and the place is that of ToMe
(as the paper compares the two); a token is its own neighbour, which adds the same to all; protected
tokens stand before the merged ones, in the order of energy, on which nothing depends. The paper's
ratio (of tokens kept in every block) is 1 - `r_ratio`; `r` and the budget are as for tome.
Attention in proportion to size and average pooling weighted by size are as in tome too.

In models with rotary embeddings (RoPE) keys are compared as attention compares them, turned, and a
merged token is where the token was that the others are merged into; `rope: mean_position` puts it
at the patch nearest to the mean place of its parts, weighted by size. No paper settles it.
"""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network
from workers.token_reduction import MergeParams

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduced, Reduction, Stage

PAPER = (
    "Tran et al., Accelerating Transformers with Spectrum-Preserving Token Merging, NeurIPS 2024,"
    " arXiv 2405.16148"
)
VERSION = 1
SOLVES = "r"


CODE = {"margin": 0.75, "prop_attn": False}
"""Defaults of the authors' code."""


class Params(MergeParams):
    """How many tokens are merged, as for tome, and what counts as alike."""

    margin: float = Field(
        default=0.9,
        ge=-1,
        le=1,
        description="cosine from which on tokens count as alike, in the first block",
    )
    alpha: float = Field(
        default=1.0, gt=0, le=10, description="weight of the tokens that are less alike"
    )
    energy: Annotated[
        Literal["paper", "code"] | None,
        AfterValidator(lambda given: None if given == "paper" else given),
    ] = Field(
        default=None,
        description=(
            "code: energy, matching in the first half of the blocks, margin 0.75 and no prop_attn"
            " as in the authors' code; paper (the default): as in the paper"
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _as_in_the_code(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        # pydantic takes what a validator returns for Python's, where a list is no tuple
        read = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
        }
        return {**CODE, **read} if given.get("energy") == "code" else read

    def bipartite(self, depth: int) -> int:
        """So many first blocks of `depth` match all tokens, and protect none."""
        return math.ceil(depth / 2) if self.energy == "code" else 0


tokens, refuses = Params.tokens, Params.unfit
NEUTRAL = Params(r=0)
EXAMPLES = (
    Params(r_ratio=0.2),
    Params(r=(0, 5, 0, 2), margin=0.5),
    Params(r=100),
    Params(r=2, prop_attn=False),
    Params(r=3, align=8),
    Params(r=(4, 0, 5, 2), energy="code"),
    Params(r=100, energy="code", prop_attn=True),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """The similarities of all patch tokens, and again those of the tokens to be matched, in each
    block that merges.
    """
    total, bipartite = 0, params.bipartite(network.depth)
    for index, block in enumerate(tokens(params, network, image_size)):
        if (r := block.attention - block.mlp) > 0:
            patches = block.attention - network.prefix_tokens
            total += patches**2 + (
                (patches // 2) * (patches - patches // 2) if index < bipartite else r**2
            )
    return total * network.head_dim


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that merges tokens of high energy. Raises `Unsupported` as `fit` does."""
    from workers.token_reduction.patch_vit import fit_stages

    depth = len(model.blocks)

    def make(stage: "Stage") -> "Reduction":
        margin = params.margin * (1 - stage.block / depth)
        energy = Energy(margin, params.alpha, shifted=params.energy == "code")
        merge = match_ordered if stage.block < params.bipartite(depth) else merge_alike
        return merge(stage.prefix, stage.patches - stage.left, energy)

    return fit_stages(model, params, make, proportional=params.prop_attn, by_size=True)


class Energy(NamedTuple):
    """How much there is of a token, as a function of its cosines with all tokens."""

    margin: float
    alpha: float
    shifted: bool = False
    """Whether the margin is subtracted from cosines above it."""

    def order(self, unit_BPd: "Tensor") -> "Tensor":
        """The indices of the tokens by falling energy, from the directions of their keys: [B,
        P].
        """
        return self.of(unit_BPd @ unit_BPd.mT).argsort(-1, descending=True)

    def of(self, cosine_BPP: "Tensor") -> "Tensor":
        """The energies from the cosines of all pairs: [B, P]. Section 3.2 of the paper."""
        above_BPP = cosine_BPP - self.margin
        below_BPP = above_BPP.expm1() * self.alpha
        return (above_BPP if self.shifted else cosine_BPP).where(above_BPP >= 0, below_BPP).mean(-1)


def merge_alike(prefix: int, r: int, energy: Energy) -> "Reduction":
    """Merges `r` tokens of high energy behind the `prefix` tokens, and protects the others."""
    import torch

    from workers.token_reduction.token_ops import (
        add_to_groups,
        behind_prefix,
        group_means,
        merged_places,
        select,
        unit_length,
        weighted_sums,
    )

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "Reduced":
        unit_BPd = unit_length(attended.k_BHNd[:, :, prefix:].sum(1))  # the direction of the mean
        order_BP = energy.order(unit_BPd)
        merging_BQd = select(unit_BPd, order_BP[:, : 2 * r])
        target_BR = (merging_BQd[:, ::2] @ merging_BQd[:, 1::2].mT).argmax(-1)

        def left(sorted_BPE: "Tensor") -> "tuple[Tensor, Tensor]":
            return sorted_BPE[:, 2 * r :], sorted_BPE[:, 1 : 2 * r : 2]

        def means(y_BND: "Tensor") -> "tuple[Tensor, Tensor]":
            sum_BNE = weighted_sums(y_BND, size_BN1)
            sorted_BPE = select(sum_BNE[:, prefix:], order_BP)
            out_BME = torch.cat((sum_BNE[:, :prefix], *left(sorted_BPE)), 1)
            add_to_groups(out_BME[:, -r:], target_BR, sorted_BPE[:, : 2 * r : 2])
            return group_means(out_BME)

        place_BMP = merged_places(
            attended.place_BNP,
            lambda: behind_prefix(torch.cat(left(order_BP), 1), prefix),
            lambda place: means(place)[0],
        )
        return *means(x_BND), place_BMP

    return reduction


def match_ordered(prefix: int, r: int, energy: Energy) -> "Reduction":
    """Merges `r` tokens behind the `prefix` tokens by bipartite matching of all, whose alternate
    sets follow their energy.
    """
    import torch

    from workers.token_reduction.token_ops import (
        behind_prefix,
        bipartite_match,
        bipartite_sets,
        merge_matched,
        merged_places,
        select,
        unit_length,
    )

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "Reduced":
        unit_BPd = unit_length(attended.k_BHNd[:, :, prefix:].sum(1))
        order_BP = energy.order(unit_BPd)
        sets = bipartite_sets(0, order_BP.shape[1], order_BP.device)
        sorted_size = None if size_BN1 is None else select(size_BN1[:, prefix:], order_BP)
        matching = bipartite_match(select(unit_BPd, order_BP), sets, r)

        def means(y_BND: "Tensor") -> "tuple[Tensor, Tensor]":
            merged_BMD, size_BM1 = merge_matched(
                select(y_BND[:, prefix:], order_BP), sorted_size, matching
            )
            return torch.cat((y_BND[:, :prefix], merged_BMD), 1), size_BM1

        def destination() -> "Tensor":
            left_BM = order_BP.gather(1, matching.order_BN[:, : order_BP.shape[1] - r])
            return behind_prefix(left_BM, prefix)

        merged_BMD, merged_BM1 = means(x_BND)
        size_BP1 = (
            merged_BM1.new_ones(len(x_BND), prefix, 1) if size_BN1 is None else size_BN1[:, :prefix]
        )
        place_BMP = merged_places(attended.place_BNP, destination, lambda place: means(place)[0])
        return merged_BMD, torch.cat((size_BP1, merged_BM1), 1), place_BMP

    return reduction
