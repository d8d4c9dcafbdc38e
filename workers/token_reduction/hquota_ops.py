"""Hubs and the farthest from them: which tokens hquota keeps, where the others go, and what becomes of the merged ones.

Shapes: B images, N tokens, of which the first P are prefix tokens and n are patch tokens; K patch tokens kept, Q of them hubs, R
removed, M = P + K left; D channels (E with the size), H heads, d channels of a matching feature, G neighbours. Shapes follow from
shapes and plain numbers only, and nothing waits for the device.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from workers.token_reduction import tome_cpp
from workers.token_reduction.patch_vit import AttentionState, MergeAroundAttention, Merged, Reduction, attention_before
from workers.token_reduction.token_ops import select

SMALL = 1e-6
"""No length is taken for less: a token alone is at its own centre."""


class Groups(NamedTuple):
    """Which tokens stay, and which of them takes in each of the others."""

    order_BN: Tensor
    """The places of the prefix tokens, of the kept and of the removed patch tokens, in this order."""
    target_BR: Tensor
    """For each removed token the kept one that takes it in, counted among the K."""
    likeness_BRK: Tensor
    """How alike removed and kept tokens are: the cosine of their features."""


class Settling(NamedTuple):
    """What is done to merged tokens beyond the mean; the defaults do nothing. See the method file for what each is."""

    alpha: float = 0
    beta: float = 1
    delta: float = 0
    top_r: int = 1
    eta: float = 0
    tau: float | None = None
    temperature: float = 0
    recentre: bool = False
    clip: str | None = None


class Choice(NamedTuple):
    """Which tokens a block groups, and by what."""

    prefix: int
    kept: int
    """Patch tokens that are left."""
    quota: float
    by_key: bool
    """Similar by the keys' mean over heads, else by the normalised tokens."""
    native: bool
    """Selected and merged by compiled code, which runs for float32 on a CPU only."""

    def groups(self, inflow_BHN: Tensor, size_BN1: Tensor | None, k_BHNd: Tensor, read_BND: Tensor) -> "Groups":
        feature_BNd = k_BHNd.mean(1) if self.by_key else read_BND
        size_Bn1 = None if size_BN1 is None else size_BN1[:, self.prefix :]
        signature_BnH = inflow_BHN[:, :, self.prefix :].mT
        by = {"prefix": self.prefix, "kept": self.kept}
        return group(signature_BnH, size_Bn1, feature_BNd, quota=self.quota, native=self.native, **by)


def merge_after(choice: Choice, settling: Settling, *, whole: bool) -> Reduction:
    """Leaves the prefix tokens and the kept patch tokens, the others merged into them: whole tokens or what attention brought."""
    left = choice.prefix + choice.kept

    def reduction(x_BND: Tensor, size_BN1: Tensor | None, attended: AttentionState) -> tuple[Tensor, Tensor | None]:
        assert attended.inflow_BHN is not None  # `fit` was asked for it
        groups = choice.groups(attended.inflow_BHN, size_BN1, attended.k_BHNd, attended.read_BND)
        if whole:
            return merge(x_BND, size_BN1, groups, choice.prefix, settling, native=choice.native)
        brought_BMD, size_BM1 = merge(attended.brought_BND, size_BN1, groups, choice.prefix, settling, native=choice.native)
        return select(x_BND - attended.brought_BND, groups.order_BN[:, :left]) + brought_BMD, size_BM1

    return reduction


def merge_around(choice: Choice, settling: Settling, *, whole: bool, by_size: bool, groups: bool) -> MergeAroundAttention:
    """Merges for the attention only: whole tokens or values, in attention `by_size` or not.

    `groups`: the block groups tokens, and does not hold older groups.
    """
    left = choice.prefix + choice.kept

    def grouped(attn: Any, read_BND: Tensor) -> Groups:
        attention_BHNN, k_BHNd = attention_before(attn, read_BND)
        return choice.groups(attention_BHNN.sum(2, dtype=torch.float32), None, k_BHNd, read_BND)

    def merged(read_BND: Tensor, groups: Groups) -> Merged:
        merged_BMD, size_BM1 = merge(read_BND, None, groups, choice.prefix, settling, native=choice.native)
        size = size_BM1 if by_size else None
        if whole:
            return Merged(merged_BMD, None, size)
        return Merged(select(read_BND, groups.order_BN[:, :left]), merged_BMD, size)

    def unmerged(y_BMD: Tensor, groups: Groups) -> Tensor:
        return unmerge(y_BMD, groups, choice.prefix)

    return MergeAroundAttention(grouped if groups else None, merged, unmerged)


def group(
    signature_BnH: Tensor,
    size_Bn1: Tensor | None,
    feature_BNd: Tensor,
    *,
    prefix: int,
    kept: int,
    quota: float,
    native: bool = False,
) -> Groups:
    """Groups around `kept` patch tokens: `ceil(quota x kept)` hubs (at least one), then farthest first, the rest to the most alike.

    Hubs are the tokens with the largest inflow times size (`None`: all sizes are 1). Distance is that between signatures of unit
    length, whose order is that of the cosine. Features are compared by cosine too.
    """
    strength_Bn = signature_BnH.sum(-1)
    if size_Bn1 is not None:
        strength_Bn = strength_Bn * size_Bn1[..., 0]
    first_BQ = strength_Bn.topk(hubs(kept, quota)).indices
    unit_BnH = normalize(signature_BnH, dim=-1)
    likeness_Bnn = unit_BnH @ unit_BnH.mT
    likeness_Bnn.diagonal(dim1=1, dim2=2).fill_(math.inf)
    order_BN = (tome_cpp.farthest_first if native else farthest_first)(likeness_Bnn, first_BQ, kept)
    if prefix:
        order_BN = pad(order_BN + prefix, (prefix, 0))
        order_BN[:, :prefix] = torch.arange(prefix, device=order_BN.device)
    unit_BKRd = normalize(select(feature_BNd, order_BN[:, prefix:]), dim=-1)
    likeness_BRK = unit_BKRd[:, kept:] @ unit_BKRd[:, :kept].mT
    return Groups(order_BN, likeness_BRK.argmax(-1), likeness_BRK)


def hubs(kept: int, quota: float) -> int:
    """Of `kept` tokens those that are hubs; one even at quota 0, for farthest-first needs a beginning."""
    return max(1, math.ceil(round(quota * kept, 9)))


@torch.library.custom_op("breakeven::farthest_first", mutates_args=())
def farthest_first(likeness_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """Places of all tokens, [B, N]: the tokens `first_BQ`, then those farthest first up to `kept`, then the others.

    Each next token is the one whose greatest likeness to those already chosen is the least (of equals the first). The diagonal is
    infinite, and nothing else: so a chosen token is not chosen again. Gonzalez, Clustering to minimize the maximum intercluster
    distance, TCS 1985. An operator of its own, so that a compiler does not unroll the loop; on CUDA it is one kernel.
    """
    if likeness_BNN.is_cuda:
        from workers.token_reduction import farthest_triton

        return farthest_triton.farthest_first(likeness_BNN, first_BQ, kept)
    return step_by_step(likeness_BNN, first_BQ, kept)


@farthest_first.register_fake
def _(likeness_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:  # noqa: ARG001 - a shape does not depend on how many
    return likeness_BNN.new_empty(likeness_BNN.shape[:2], dtype=torch.int64)


def step_by_step(likeness_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """The same on a CPU, in three steps for each token: all images at once, in NumPy, which starts no threads for so little."""
    likeness, first = likeness_BNN.detach().float().numpy(), first_BQ.numpy()
    (images, tokens), hubs = likeness_BNN.shape[:2], first_BQ.shape[1]
    image, order = np.arange(images), np.empty((images, tokens), np.int64)
    order[:, :hubs] = first
    nearest = likeness[image[:, None], first].max(1)
    for step in range(hubs, kept):
        chosen = nearest.argmin(1)
        order[:, step] = chosen
        np.maximum(nearest, likeness[image, chosen], out=nearest)
    order[:, kept:] = np.isinf(nearest).argsort(1, kind="stable")[:, : tokens - kept]
    return torch.from_numpy(order)


def merge(
    x_BND: Tensor, size_BN1: Tensor | None, groups: Groups, prefix: int, settling: Settling, *, native: bool = False
) -> tuple[Tensor, Tensor]:
    """The tokens after merging and their sizes: [B, M, D] and [B, M, 1], prefix tokens first.

    A merged token is the mean of its group weighted by size (`None`: all are 1), and is then settled.
    """
    mean = tome_cpp.merge_groups if native else means
    out_BMD, size_BM1 = mean(x_BND, size_BN1, groups.order_BN, groups.target_BR, prefix)
    if settling != Settling():
        alone_BND = select(x_BND, groups.order_BN[:, prefix:])
        kept_BKD = settle(out_BMD[:, prefix:], size_BM1[:, prefix:], alone_BND, groups.likeness_BRK, settling)
        out_BMD = torch.cat((out_BMD[:, :prefix], kept_BKD), 1)
    return out_BMD, size_BM1


def means(x_BND: Tensor, size_BN1: Tensor | None, order_BN: Tensor, target_BR: Tensor, prefix: int) -> tuple[Tensor, Tensor]:
    """Tokens and sizes of the groups, means weighted by size: [B, M, D] and [B, M, 1]."""
    D, left = x_BND.shape[-1], order_BN.shape[1] - target_BR.shape[1]
    # The sizes ride along as one more channel, so that tokens and sizes move in the same operators.
    sum_BNE = pad(x_BND, (0, 1), value=1.0) if size_BN1 is None else torch.cat((x_BND * size_BN1, size_BN1), -1)
    moved_BNE = select(sum_BNE, order_BN)
    out_BME = moved_BNE[:, :left]
    target_BRE = target_BR[:, :, None].expand(-1, -1, D + 1)
    out_BME[:, prefix:].scatter_add_(1, target_BRE, moved_BNE[:, left:])
    size_BM1 = out_BME[..., D:]
    out_BMD = out_BME[..., :D] / size_BM1
    return out_BMD, size_BM1


def settle(x_BKD: Tensor, size_BK1: Tensor, alone_BND: Tensor, likeness_BRK: Tensor, settling: Settling) -> Tensor:
    """Merged patch tokens after stabiliser, push and normalisation: [B, K, D].

    `alone_BND` are the patch tokens before the merge, the kept ones first.
    """
    alpha, beta, delta, top_r, eta, tau, temperature, recentre, clip = settling
    B, K, D = x_BKD.shape
    share_BK1 = size_BK1 / size_BK1.mean(1, keepdim=True)
    if eta:
        x_BKD = x_BKD.lerp(alone_BND[:, :K], eta)
    if alpha:
        likeness_BGK, near_BGK = likeness_BRK.topk(min(top_r, likeness_BRK.shape[1]), dim=1)
        near_BKGD = select(alone_BND[:, K:], near_BGK.mT.reshape(B, -1)).view(B, K, -1, D)
        step_BK1 = (likeness_BGK.mean(1).clamp(min=0) * alpha)[..., None].to(x_BKD.dtype)
        x_BKD = x_BKD.lerp(near_BKGD.mean(2), torch.minimum(step_BK1, beta * share_BK1**delta))
    if recentre:
        mean_B1D = (x_BKD * share_BK1).mean(1, keepdim=True)
        x_BKD = x_BKD - x_BKD.mean(1, keepdim=True)
    if tau is not None:
        length_BK1 = x_BKD.norm(dim=-1, keepdim=True).clamp(min=SMALL)
        most = tau if clip == "absolute" else tau * length_BK1.mean(1, keepdim=True)
        x_BKD = x_BKD * (most / length_BK1).clamp(max=1)
    if temperature:
        x_BKD = x_BKD * share_BK1**temperature
    return x_BKD + mean_B1D if recentre else x_BKD


def unmerge(x_BMD: Tensor, groups: Groups, prefix: int) -> Tensor:
    """The tokens [B, N, D] at their old places again, each as what its group became."""
    group_BN = pad(groups.target_BR + prefix, (x_BMD.shape[1], 0))
    group_BN[:, : x_BMD.shape[1]] = torch.arange(x_BMD.shape[1], device=x_BMD.device)
    return select(x_BMD, torch.empty_like(group_BN).scatter_(1, groups.order_BN, group_BN))
