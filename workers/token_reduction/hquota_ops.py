"""Grouping of tokens around hubs and the tokens farthest from them, and merging of the groups.

Shapes: B images, N tokens, of which the first P are prefix tokens and n are patch tokens; K patch
tokens kept, Q of them hubs, R removed, M = P + K left; D channels, H heads, d channels of a
matching feature, G neighbours. Shapes follow from shapes and plain numbers only, and nothing waits
for the device.
"""

import math
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from workers.token_reduction.patch_vit import (
    AttentionState,
    MergeAroundAttention,
    Merged,
    Reduced,
    Reduction,
    attention_before,
)
from workers.token_reduction.token_ops import (
    add_to_groups,
    farthest_first_cpp,
    group_means,
    merge_groups_cpp,
    merged_places,
    select,
    weighted_sums,
)

MIN_LENGTH = 1e-6
ABOVE_COSINES = 4.0
"""Lower bound of a length that is divided by: a token alone in its group is at the group's
centre."""


class Groups(NamedTuple):
    """Which tokens stay, and which of them each of the others is merged into."""

    order_BN: Tensor
    """Indices of the prefix tokens, of the kept and of the removed patch tokens, in this order."""
    target_BR: Tensor
    """For each removed token the index, among the K, of the kept token that it is merged into."""
    similarity_BRK: Tensor
    """Cosine of the features of removed and kept tokens."""


class MergeAdjustment(NamedTuple):
    """What is done to merged tokens beyond the mean; the defaults do nothing. See the method file
    for the meaning of each.
    """

    alpha: float = 0
    beta: float = 1
    delta: float = 0
    top_r: int = 1
    eta: float = 0
    tau: float | None = None
    temperature: float = 0
    recentre: bool = False
    clip: str | None = None


class Grouping(NamedTuple):
    """How a block groups and merges its tokens."""

    prefix: int
    kept: int
    """Patch tokens that are left."""
    quota: float
    by_key: bool = True
    """Features are the keys' mean over heads, else the normalised tokens."""
    adjustment: MergeAdjustment = MergeAdjustment()
    native: bool = False
    """Selected and merged by compiled code, which runs for float32 on a CPU only."""

    @property
    def hubs(self) -> int:
        """Tokens kept for their inflow; farthest-first needs a first one."""
        return max(1, math.ceil(round(self.quota * self.kept, 9)))

    def order(self, inflow_BHN: Tensor, size_BN1: Tensor | None) -> Tensor:
        """Indices of the kept patch tokens in the order of their selection, then of the others,
        counted from the first patch token: [B, n].
        """
        if inflow_BHN.is_cuda:
            from workers.kernels.grouping import select_farthest

            sizes = None if size_BN1 is None else size_BN1[..., 0].float()
            own = (self.prefix, self.kept, self.hubs)
            return cast(Tensor, select_farthest(inflow_BHN, sizes, *own))
        signature_BnH = inflow_BHN[:, :, self.prefix :].mT
        strength_Bn = signature_BnH.sum(-1)
        if size_BN1 is not None:
            strength_Bn = strength_Bn * size_BN1[:, self.prefix :, 0]
        first_BQ = strength_Bn.topk(self.hubs).indices
        unit_BnH = normalize(signature_BnH, dim=-1)
        similarity_Bnn = unit_BnH @ unit_BnH.mT
        if torch.compiler.is_exporting():
            return farthest_first_unrolled(similarity_Bnn, first_BQ, self.kept)
        similarity_Bnn.diagonal(dim1=1, dim2=2).fill_(math.inf)
        by_steps = farthest_first_cpp if self.native else farthest_first
        return by_steps(similarity_Bnn, first_BQ, self.kept)

    def groups(
        self, inflow_BHN: Tensor, size_BN1: Tensor | None, k_BHNd: Tensor, read_BND: Tensor
    ) -> Groups:
        """Groups around the kept patch tokens: `ceil(quota x kept)` hubs (at least one), then
        farthest first; the rest by similarity.

        Hubs are the tokens with the largest inflow times size (`None`: all sizes are 1). Distance
        is that between signatures of unit length, whose order is that of the cosine. Features are
        compared by cosine too.
        """
        prefix, kept = self.prefix, self.kept
        order_BN = self.order(inflow_BHN, size_BN1)
        if prefix:
            order_BN = pad(order_BN + prefix, (prefix, 0))
            order_BN[:, :prefix] = torch.arange(prefix, device=order_BN.device)
        feature_BNd = k_BHNd.mean(1) if self.by_key else read_BND
        unit_BKRd = normalize(select(feature_BNd, order_BN[:, prefix:]), dim=-1)
        similarity_BRK = unit_BKRd[:, kept:] @ unit_BKRd[:, :kept].mT
        return Groups(order_BN, similarity_BRK.argmax(-1), similarity_BRK)

    def merged(
        self, x_BND: Tensor, size_BN1: Tensor | None, groups: Groups
    ) -> tuple[Tensor, Tensor]:
        """The tokens after merging and their sizes: [B, M, D] and [B, M, 1], prefix tokens first.

        A merged token is the mean of its group weighted by size (`None`: all are 1), and is then
        adjusted.
        """
        prefix, order_BN = self.prefix, groups.order_BN
        mean = merge_groups_cpp if self.native else merge_groups_torch
        out_BMD, size_BM1 = mean(x_BND, size_BN1, order_BN, groups.target_BR, prefix)
        if self.adjustment != MergeAdjustment():
            alone_BND = select(x_BND, order_BN[:, prefix:])
            merged, similarity_BRK = (out_BMD[:, prefix:], size_BM1[:, prefix:]), groups[2]
            kept_BKD = adjust(*merged, alone_BND, similarity_BRK, self.adjustment)
            out_BMD = torch.cat((out_BMD[:, :prefix], kept_BKD), 1)
        return out_BMD, size_BM1

    def alone(self, x_BND: Tensor, groups: Groups) -> Tensor:
        """The tokens left as they were before the merge: [B, M, D]."""
        return select(x_BND, groups.order_BN[:, : self.prefix + self.kept])

    def places(
        self, place_BNP: Tensor | None, size_BN1: Tensor | None, groups: Groups
    ) -> Tensor | None:
        """The places of the tokens left: [B, M, P]."""
        order_BN, target_BR = groups[:2]
        return merged_places(
            place_BNP,
            lambda: order_BN[:, : self.prefix + self.kept],
            lambda place: merge_groups_torch(place, size_BN1, order_BN, target_BR, self.prefix)[0],
        )


def merge_after(grouping: Grouping, *, whole: bool) -> Reduction:
    """A reduction to the prefix tokens and the kept patch tokens; it merges whole tokens, or only
    what the attention adds.
    """

    def reduction(x_BND: Tensor, size_BN1: Tensor | None, attended: AttentionState) -> Reduced:
        assert attended.inflow_BHN is not None  # requested with `fit(inflow=True)`
        groups = grouping.groups(attended.inflow_BHN, size_BN1, attended.k_BHNd, attended.read_BND)
        place_BMP = grouping.places(attended.place_BNP, size_BN1, groups)
        if whole:
            return *grouping.merged(x_BND, size_BN1, groups), place_BMP
        added_BMD, size_BM1 = grouping.merged(attended.added_BND, size_BN1, groups)
        return grouping.alone(x_BND - attended.added_BND, groups) + added_BMD, size_BM1, place_BMP

    return reduction


def merge_around(
    grouping: Grouping, *, whole: bool, by_size: bool, groups: bool
) -> MergeAroundAttention:
    """Merges for the attention only: whole tokens or values, in attention `by_size` or not.

    `groups`: the block forms new groups; otherwise it uses those of the block before.
    """

    def grouped(attn: Any, read_BND: Tensor, rope: Tensor | None) -> Groups:
        attention_BHNN, k_BHNd = attention_before(attn, read_BND, rope)
        return grouping.groups(attention_BHNN.sum(2, dtype=torch.float32), None, k_BHNd, read_BND)

    def merged(read_BND: Tensor, groups: Groups, place_BNP: Tensor | None) -> Merged:
        place_BMP = grouping.places(place_BNP, None, groups)
        merged_BMD, size_BM1 = grouping.merged(read_BND, None, groups)
        size = size_BM1 if by_size else None
        if whole:
            return Merged(merged_BMD, None, size, place_BMP)
        return Merged(grouping.alone(read_BND, groups), merged_BMD, size, place_BMP)

    return MergeAroundAttention(
        grouped if groups else None,
        merged,
        lambda y_BMD, groups: unmerge(y_BMD, groups, grouping.prefix),
    )


@torch.library.custom_op("breakeven::farthest_first", mutates_args=())
def farthest_first(similarity_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """Indices of all tokens, [B, N]: the tokens `first_BQ`, then those farthest first up to `kept`,
    then the others.

    Each next token is the one whose greatest similarity to the selected tokens is the least (of
    equals the first). The diagonal is infinite, and nothing else is, so that no token is selected
    twice. Gonzalez, Clustering to minimize the maximum intercluster distance, TCS 1985. It is an
    operator of its own, so that a compiler does not unroll the loop.
    """
    return farthest_first_numpy(similarity_BNN, first_BQ, kept)


@farthest_first.register_fake
def _(similarity_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:  # noqa: ARG001 - the shape does not depend on `kept`
    return similarity_BNN.new_empty(similarity_BNN.shape[:2], dtype=torch.int64)


def farthest_first_numpy(similarity_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """`farthest_first` on a CPU: three NumPy calls for each token and all images, without starting
    threads.
    """
    similarity, first = similarity_BNN.detach().float().numpy(), first_BQ.numpy()
    (images, tokens), hubs = similarity_BNN.shape[:2], first_BQ.shape[1]
    image, order = np.arange(images), np.empty((images, tokens), np.int64)
    order[:, :hubs] = first
    nearest = similarity[image[:, None], first].max(1)
    for step in range(hubs, kept):
        selected = nearest.argmin(1)
        order[:, step] = selected
        np.maximum(nearest, similarity[image, selected], out=nearest)
    order[:, kept:] = np.isinf(nearest).argsort(1, kind="stable")[:, : tokens - kept]
    return torch.from_numpy(order)


def farthest_first_unrolled(similarity_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """`farthest_first` in operators that other engines have, for an exported graph: the diagonal
    becomes a finite number above every cosine, and the other tokens keep their order.
    """
    N = similarity_BNN.shape[1]
    same = torch.eye(N, dtype=torch.bool, device=similarity_BNN.device)
    similarity_BNN = similarity_BNN.masked_fill(same, ABOVE_COSINES)
    nearest_BN = select(similarity_BNN, first_BQ).amax(1)
    order = [first_BQ]
    for _ in range(first_BQ.shape[1], kept):
        order.append(nearest_BN.argmin(1, keepdim=True))
        nearest_BN = torch.maximum(nearest_BN, select(similarity_BNN, order[-1])[:, 0])
    places = torch.arange(N, device=similarity_BNN.device)
    rank_BN = places + N * (nearest_BN == ABOVE_COSINES).to(places.dtype)
    order.append(rank_BN.to(torch.float32).topk(N - kept, largest=False).indices)
    return torch.cat(order, 1)


def merge_groups_torch(
    x_BND: Tensor, size_BN1: Tensor | None, order_BN: Tensor, target_BR: Tensor, prefix: int
) -> tuple[Tensor, Tensor]:
    """Tokens and sizes of the groups, means weighted by size: [B, M, D] and [B, M, 1]."""
    left = order_BN.shape[1] - target_BR.shape[1]
    moved_BNE = select(weighted_sums(x_BND, size_BN1), order_BN)
    out_BME = moved_BNE[:, :left]
    add_to_groups(out_BME[:, prefix:], target_BR, moved_BNE[:, left:])
    return group_means(out_BME)


def adjust(
    x_BKD: Tensor,
    size_BK1: Tensor,
    alone_BND: Tensor,
    similarity_BRK: Tensor,
    adjustment: MergeAdjustment,
) -> Tensor:
    """Merged patch tokens after stabiliser, push and normalisation: [B, K, D].

    `alone_BND` are the patch tokens before the merge, the kept ones first.
    """
    alpha, beta, delta, top_r, eta, tau, temperature, recentre, clip = adjustment
    B, K, D = x_BKD.shape
    share_BK1 = size_BK1 / size_BK1.mean(1, keepdim=True)
    if eta:
        x_BKD = x_BKD.lerp(alone_BND[:, :K], eta)
    if alpha:
        similarity_BGK, near_BGK = similarity_BRK.topk(min(top_r, similarity_BRK.shape[1]), dim=1)
        near_BKGD = select(alone_BND[:, K:], near_BGK.mT.reshape(B, -1)).view(B, K, -1, D)
        step_BK1 = (similarity_BGK.mean(1).clamp(min=0) * alpha)[..., None].to(x_BKD.dtype)
        x_BKD = x_BKD.lerp(near_BKGD.mean(2), torch.minimum(step_BK1, beta * share_BK1**delta))
    if recentre:
        mean_B1D = (x_BKD * share_BK1).mean(1, keepdim=True)
        x_BKD = x_BKD - x_BKD.mean(1, keepdim=True)
    if tau is not None:
        length_BK1 = x_BKD.norm(dim=-1, keepdim=True).clamp(min=MIN_LENGTH)
        limit = tau if clip == "absolute" else tau * length_BK1.mean(1, keepdim=True)
        x_BKD = x_BKD * (limit / length_BK1).clamp(max=1)
    if temperature:
        x_BKD = x_BKD * share_BK1**temperature
    return x_BKD + mean_B1D if recentre else x_BKD


def unmerge(x_BMD: Tensor, groups: Groups, prefix: int) -> Tensor:
    """All tokens [B, N, D] in their original order, each with the value of the token that it was
    merged into.
    """
    group_BN = pad(groups.target_BR + prefix, (x_BMD.shape[1], 0))
    group_BN[:, : x_BMD.shape[1]] = torch.arange(x_BMD.shape[1], device=x_BMD.device)
    return select(x_BMD, torch.zeros_like(group_BN).scatter_(1, groups.order_BN, group_BN))
