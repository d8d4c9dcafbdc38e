"""Clusters the patch tokens by density peaks and merges each cluster into one token, in a few
blocks (DPC-KNN).

Per reducing block `ceil(keep_rate x patch tokens left)` clusters are made. The density of a token
is exp(-mean squared distance to its `neighbours` nearest tokens); its peak distance is that to the
nearest token of higher density (for the densest: to the farthest token). The tokens with the
largest product of the two are the centres, every other token joins its nearest centre, and a
cluster becomes the mean of its tokens weighted by size. Later attention adds log(size) to each
key's logits, as in ToMe.

As in TCFormer distances are between the tokens themselves, divided by the square root of the
channels. Left open there and taken here: a token is not its own neighbour, there is no noise to
break ties (tokens of equal density are not above each other), products are compared as logarithms,
since densities underflow where tokens lie far apart, and weights are sizes (TCFormer learns them).

Differs from the authors' code (TCFormer, and Haurum's TokenReduction for plain ViTs):

- place: there before a block, so that its attention sees the clusters; here between attention and
  MLP, as in all methods of this folder, so that arms of equal layers are comparable. Compare at
  equal MACs, not at equal layers.
- count: there `int(keep_rate^i x patch tokens of the image)` at the i-th of the layers; here `ceil`
  of what is left, as for TopK. `counts: image` is the authors' way.
- means: there unweighted (`equal_weight`) or weighted by a learned score, and no size is carried
  on; here weighted by size, since without training nothing else makes a cluster of clusters the
  mean of its tokens. `means: plain` with `prop_attn: false` is the authors' way without the score.
- density: there a token is its own nearest neighbour (of 5 neighbours 4 others count), and the
  densest token's peak distance is the largest of the image; here, as Du et al. and TCFormer's paper
  define them, it is not, and the distance is the token's own largest. `density: code` is the
  authors' way.
- ties: there random noise of 1e-6 breaks them, and decides between tokens whose density underflows;
  here runs repeat exactly.

In models with rotary embeddings (RoPE) a cluster is where its centre was; `rope: mean_position`
puts it at the patch nearest to the mean place of its tokens, weighted as they are. No paper settles
it.
"""

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from sweeps.model.condition import ImageSize
from sweeps.model.method import Network
from workers.token_reduction import CountedKeepParams, RopeField

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import Tensor

    from workers.token_reduction.patch_vit import AttentionState, Reduced, Reduction, Stage

PAPER = (
    "Du, Ding, Jia, Study on Density Peaks Clustering Based on k-Nearest Neighbors and Principal"
    " Component Analysis, Knowledge-Based Systems 2016; for tokens: Zeng et al., Not All Tokens Are"
    " Equal: Human-centric Visual Analysis via Token Clustering Transformer, CVPR 2022, arXiv"
    " 2204.08680"
)
VERSION = 1
SOLVES = "keep_rate"


class Params(CountedKeepParams):
    """The share of clusters, and how density is measured."""

    neighbours: int = Field(
        default=5,
        ge=1,
        le=1024,
        description="nearest tokens whose distances make a token's density",
    )
    prop_attn: bool = Field(default=True, description="attention in proportion to token sizes")
    means: Literal["plain"] | None = Field(
        default=None,
        description=(
            "plain: every token of a cluster weighs the same, whatever it stands for, as in the"
            " authors' code"
        ),
    )
    density: Literal["code"] | None = Field(
        default=None,
        description=(
            "code: a token is its own nearest neighbour, and other details of the authors' code"
        ),
    )
    rope: RopeField = None

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.density is not None and self.neighbours == 1:
            raise ValueError(
                "density: code makes a token its own nearest neighbour, so that it needs"
                " neighbours: 2 or more"
            )
        if self.means == "plain" and self.prop_attn:
            raise ValueError(
                "means: plain carries no sizes on, so that attention cannot be in proportion to"
                " them: prop_attn: false"
            )
        return self


tokens, refuses = Params.tokens, Params.unfit
NEUTRAL = Params(keep_rate=1)
EXAMPLES = (
    Params(keep_rate=0.5, layers=(1,)),
    Params(keep_rate=0.7, layers=(0, 2, 3), neighbours=100),
    Params(keep_rate=0.1, layers=(1, 2), prop_attn=False),
    Params(keep_rate=0.5, layers=(0, 2), align=8),
    Params(
        keep_rate=0.7,
        layers=(0, 2, 3),
        counts="image",
        means="plain",
        prop_attn=False,
        density="code",
    ),
)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:
    """All pairwise products of the patch tokens in each block that clusters."""
    patches = (count - network.prefix_tokens for count in params.entering(network, image_size))
    return sum(count**2 for count in patches) * network.width


def apply(model: "VisionTransformer", params: Params) -> "VisionTransformer":
    """A copy of `model` that merges clusters of tokens. Raises `Unsupported` as `fit` does."""
    from workers.token_reduction.patch_vit import fit_stages

    like, sized = model.patch_embed.proj.weight, params.means is None

    def reduction(stage: "Stage") -> "Reduction":
        own = params.density == "code"
        return merge_clusters(
            stage.prefix, stage.left, params.neighbours, like=like, sized=sized, own=own
        )

    return fit_stages(model, params, reduction, proportional=params.prop_attn, by_size=sized)


def merge_clusters(
    prefix: int,
    clusters: int,
    neighbours: int,
    *,
    like: "Tensor",
    sized: bool = True,
    own: bool = False,
) -> "Reduction":
    """Leaves `clusters` tokens behind the `prefix` tokens; constants get the device of `like`.

    Without `sized` means are plain; `own`: see `assign`.
    """
    import torch

    from workers.token_reduction.token_ops import (
        behind_prefix,
        group_means,
        merged_places,
        sum_groups,
        weighted_sums,
    )

    number_1K = torch.arange(clusters, device=like.device)[None]

    def reduction(
        x_BND: "Tensor", size_BN1: "Tensor | None", attended: "AttentionState"
    ) -> "Reduced":
        cluster_BN, centre_BK = assign(
            squared_distances(x_BND[:, prefix:]), number_1K, neighbours, own=own
        )

        def means(y_BND: "Tensor") -> "tuple[Tensor, Tensor]":
            sum_BNE = weighted_sums(y_BND, size_BN1)
            pooled_BKE = sum_groups(sum_BNE[:, prefix:], cluster_BN, clusters)
            return group_means(torch.cat((sum_BNE[:, :prefix], pooled_BKE), 1))

        mean_BMD, size_BM1 = means(x_BND)
        place_BMP = merged_places(
            attended.place_BNP,
            lambda: behind_prefix(centre_BK, prefix),
            lambda place: means(place)[0],
        )
        return mean_BMD, size_BM1 if sized else None, place_BMP

    return reduction


def squared_distances(x_BND: "Tensor") -> "Tensor":
    """Mean over channels of the squared difference of any two tokens, in float32: [B, N, N],
    exactly zero nowhere but by chance.
    """
    import torch

    x_BND = x_BND.float() * x_BND.shape[-1] ** -0.5
    length_BN = x_BND.square().sum(-1)
    return torch.baddbmm(
        length_BN[:, :, None] + length_BN[:, None], x_BND, x_BND.mT, alpha=-2
    ).clamp_min(0)


def assign(
    distance_BNN: "Tensor", number_1K: "Tensor", neighbours: int, *, own: bool = False
) -> "tuple[Tensor, Tensor]":
    """The cluster, numbered as in `number_1K`, that each token joins, given squared distances: [B,
    N], and the tokens that are the centres: [B, K]. No cluster is empty.

    `own`: a token is one of its neighbours, and the densest has the largest distance of the image,
    as in the authors' code.
    """
    from workers.token_reduction.token_ops import select

    N, clusters = distance_BNN.shape[-1], number_1K.shape[-1]
    nearest = min(neighbours, N if own else N - 1)
    # The token itself is among its nearest at distance 0 and adds nothing to the sum.
    spread_BN = distance_BNN.topk(nearest + (not own), largest=False).values.sum(-1) / nearest
    not_above_BNN = spread_BN[:, None] >= spread_BN[:, :, None]
    farthest = distance_BNN.amax((1, 2))[:, None] if own else distance_BNN.amax(-1)
    peak_BN = distance_BNN.masked_fill(not_above_BNN, float("inf")).amin(-1).minimum(farthest)
    # log(density x distance), where the distance is the square root of what is at hand.
    centre_BK = (peak_BN.log() / 2 - spread_BN).topk(clusters).indices
    cluster_BN = select(distance_BNN, centre_BK).argmin(1)
    # A centre stays in its own cluster even where another centre is as near, so that no cluster is
    # empty.
    return cluster_BN.scatter_(1, centre_BK, number_1K.expand_as(centre_BK)), centre_BK
