"""Token operations that reduction methods share: class-token scores, selection, bipartite matching
and merging; and matching, selection and merging on a CPU in compiled calls.

Shapes: B images, N tokens, K tokens selected, D channels (E with the size), H heads, d channels of
a head, X images times heads; P prefix tokens, A and C tokens in the sets A and B of a matching, R
of them merged, M tokens left, Q of them hubs. All shapes follow from the arguments' shapes and
plain numbers, and nothing waits for the device.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from workers.errors import Unsupported
from workers.models.cpp_build import functions, missing_reason
from workers.token_reduction import TOME_CPP
from workers.token_reduction.patch_vit import AttentionState

MAX_HEAD_DIM = 1024
_SIGNATURES = {
    "merge_similar": "TTqqqTTTTqqqqqqqi",
    "farthest_first": "TTTqqqqi",
    "merge_groups": "TTTTTTqqqqqi",
}


def class_token_attention(attended: AttentionState) -> Tensor:
    """Attention that the class token (token 0) pays to every token in each head: [B, H, N].

    Where attention is fused and leaves no matrix (`None`), only this row of it is computed, so that
    it can stay fused.
    """
    q_BHNd, k_BHNd, attention_BHNN, scale = attended[:4]
    if attention_BHNN is not None:
        return attention_BHNN[:, :, 0]
    B, H, N, d = k_BHNd.shape
    q_X1d, k_XdN = q_BHNd[:, :, :1].reshape(B * H, 1, d), k_BHNd.reshape(B * H, N, d).mT
    # With beta 0 the first argument is ignored; the product is scaled without an operator more.
    bias, beta = q_X1d[:1, :, :1], 0
    if attended.bias_B11N is not None:
        bias, beta = attended.bias_B11N.expand(B, H, 1, N).reshape(B * H, 1, N), 1
    logits_X1N = torch.baddbmm(bias, q_X1d, k_XdN, beta=beta, alpha=scale)
    return logits_X1N.view(B, H, N).softmax(-1)


def best_tokens(
    prefix: int, patches: int, kept: int, *, like: Tensor
) -> Callable[[AttentionState], tuple[Tensor, Tensor]]:
    """A function that gives the scores of all tokens [B, N], which are the attention of the class
    token, mean over heads, and the indices of the prefix tokens and the `kept` best others, [B, K].
    """
    # A bonus ranks the prefix tokens before all others, in their order: scores are at most 1.
    # Scores and bonuses are in one sort, without an operator to keep them apart.
    bonus_1N = like.new_tensor([[*range(prefix + 1, 1, -1), *([0] * patches)]])

    def best(attended: AttentionState) -> tuple[Tensor, Tensor]:
        score_BN = class_token_attention(attended).mean(1)
        return score_BN, (score_BN + bonus_1N).topk(prefix + kept).indices

    return best


def select(x_BND: Tensor, index_BK: Tensor) -> Tensor:
    """The tokens of each image at the indices `index_BK`, in that order: [B, K, D]."""
    B, N, D = x_BND.shape
    if x_BND.is_cuda:  # one launch; on a CPU it is several times slower than the forms below
        return x_BND.gather(1, index_BK[:, :, None].expand(-1, -1, D))
    if B == 1:
        return x_BND.index_select(1, index_BK[0])
    # whole rows of one table: 1.6 times as fast on a CPU as the form for strided tokens
    if x_BND.is_contiguous():
        first_B1 = torch.arange(0, B * N, N, device=x_BND.device)[:, None]
        return x_BND.view(B * N, D).index_select(0, (index_BK + first_B1).view(-1)).view(B, -1, D)
    return x_BND[torch.arange(B, device=x_BND.device)[:, None], index_BK]


def behind_prefix(index_BK: Tensor, prefix: int) -> Tensor:
    """Indices of the prefix tokens, then of the patch tokens that `index_BK` counts from the first
    one: [B, P + K].
    """
    first_BP = torch.arange(prefix, device=index_BK.device).expand(len(index_BK), -1)
    return torch.cat((first_BP, index_BK + prefix), 1)


def merged_places(
    place_BNP: Tensor | None,
    destination: Callable[[], Tensor],
    mean: Callable[[Tensor], Tensor],
) -> Tensor | None:
    """The places of the tokens left, as `AttentionState` has them, if there are any.

    `destination`: indices of the tokens whose places they take, [B, M]; `mean`: from mean rows and
    columns to those after merging. The one is for places of one number, the other for two.
    """
    if place_BNP is None:
        return None
    return mean(place_BNP) if place_BNP.shape[-1] > 1 else select(place_BNP, destination())


class BipartiteSets(NamedTuple):
    """Token indices of a matching, as constants [1, count] on the device; see `bipartite_sets`."""

    prefix_1P: Tensor
    a_1A: Tensor
    b_1C: Tensor


def bipartite_sets(prefix: int, tokens: int, device: torch.device) -> BipartiteSets:
    """The indices of the `prefix` tokens and, of the others among `tokens` tokens, of the sets A
    (even) and B (odd).
    """
    index_1N = torch.arange(tokens, device=device)[None]
    return BipartiteSets(
        index_1N[:, :prefix],
        index_1N[:, prefix + prefix % 2 :: 2],
        index_1N[:, prefix + 1 - prefix % 2 :: 2],
    )


class Matching(NamedTuple):
    """Which patch tokens are merged into which; see `bipartite_match`."""

    order_BN: Tensor
    """The indices of all tokens: those that stay (prefix, unmerged A in ascending order, all of B),
    then the R merged away."""
    target_BR: Tensor
    """For each token merged away the index, among the tokens of B, of the one that it is merged
    into."""
    targets: int
    """Tokens of B."""


def unit_length(metric_BNd: Tensor) -> Tensor:
    """The vectors scaled to length 1, so that a product of two is their cosine."""
    length_BN1: Tensor = torch.linalg.vector_norm(metric_BNd, dim=-1, keepdim=True)
    return metric_BNd / length_BN1


def bipartite_match(metric_BNd: Tensor, sets: BipartiteSets, r: int) -> Matching:
    """Bipartite soft matching: the `r` tokens of A most similar (by cosine) to a token of B, each
    with that token.

    `r` is at most half of the patch tokens. Bolya et al., ICLR 2023, arXiv 2210.09461, section 3
    and appendix D.
    """
    B, prefix, targets = len(metric_BNd), sets.prefix_1P.shape[1], sets.b_1C.shape[1]
    unit_BNd = unit_length(metric_BNd)
    similarity_BAC = (unit_BNd[:, ::2] @ unit_BNd[:, 1::2].mT)[
        :, (prefix + 1) // 2 :, prefix // 2 :
    ]
    best_BA, nearest_BA = similarity_BAC.max(-1)
    rank_BA = best_BA.argsort(-1, descending=True)
    index_BA = sets.a_1A.take(rank_BA)
    unmerged_BK = index_BA[:, r:].sort(-1).values
    order_BN = torch.cat(
        (sets.prefix_1P.expand(B, -1), unmerged_BK, sets.b_1C.expand(B, -1), index_BA[:, :r]), 1
    )
    return Matching(order_BN, nearest_BA.gather(1, rank_BA[:, :r]), targets)


def merge_matched(
    x_BND: Tensor, size_BN1: Tensor | None, matching: Matching
) -> tuple[Tensor, Tensor]:
    """The tokens after merging and their sizes: [B, M, D] and [B, M, 1], in the order prefix,
    unmerged A, B.

    A merged token is the mean of its parts weighted by their sizes (the number of input tokens each
    stands for; `None`: all are 1).
    """
    order_BN, target_BR, targets = matching
    left = order_BN.shape[1] - target_BR.shape[1]
    # All rows are moved once; the rest happens in place, on the rows that merging changes.
    x_BND = select(x_BND, order_BN)
    into_BCD, from_BRD = x_BND[:, left - targets : left], x_BND[:, left:]
    if size_BN1 is None:
        size_BN1 = x_BND.new_ones((*order_BN.shape, 1))
    else:
        size_BN1 = size_BN1[..., 0].gather(1, order_BN)[..., None]
        x_BND[:, left - targets :].mul_(size_BN1[:, left - targets :])
    size_BC1 = size_BN1[:, left - targets : left]
    size_BC1[..., 0].scatter_add_(1, target_BR, size_BN1[:, left:, 0])
    add_to_groups(into_BCD, target_BR, from_BRD)
    into_BCD.div_(size_BC1)
    return x_BND[:, :left], size_BN1[:, :left]


def weighted_sums(x_BND: Tensor, size_BN1: Tensor | None) -> Tensor:
    """The tokens times their sizes, with the size as one more channel, so that both are moved by
    the same operators: [B, N, E].
    """
    if size_BN1 is None:
        return torch.nn.functional.pad(x_BND, (0, 1), value=1.0)
    return torch.cat((x_BND * size_BN1, size_BN1), -1)


def add_to_groups(into_BCE: Tensor, target_BR: Tensor, sum_BRE: Tensor) -> None:
    """Add each sum to the one at its target, in place."""
    into_BCE.scatter_add_(1, target_BR[:, :, None].expand(-1, -1, sum_BRE.shape[-1]), sum_BRE)


def sum_groups(sum_BNE: Tensor, group_BN: Tensor, groups: int) -> Tensor:
    """The total of the sums of each group, numbered from 0: [B, K, E]."""
    total_BKE = sum_BNE.new_zeros(len(sum_BNE), groups, sum_BNE.shape[-1])
    add_to_groups(total_BKE, group_BN, sum_BNE)
    return total_BKE


def group_means(sum_BME: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens that the sums stand for and their sizes: [B, M, D] and [B, M, 1]."""
    size_BM1 = sum_BME[..., -1:]
    return sum_BME[..., :-1] / size_BM1, size_BM1


def merge_similar_cpp(
    x_BND: Tensor,
    k_BHNd: Tensor,
    size_BN1: Tensor | None,
    prefix: int,
    r: int,
    *,
    index_BM: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The tokens after merging and their sizes, [B, M, D] and [B, M, 1]: `merge_matched` on the sum
    of the keys.

    `r` is at most half of the tokens after the `prefix` ones. `index_BM`, of int64, gets the index
    that each token left had. Raises as `check_native` does.
    """
    (B, N, D), (_, H, _, d) = x_BND.shape, k_BHNd.shape
    check_native(k_BHNd)
    if d > MAX_HEAD_DIM:
        raise Unsupported(
            f"the compiled kernel takes heads of up to {MAX_HEAD_DIM} channels, not {d}"
        )
    if k_BHNd.stride(-1) != 1:
        k_BHNd = k_BHNd.contiguous()
    out_BMD, size_BM1 = torch.empty(B, N - r, D), torch.empty(B, N - r, 1)
    sizes = None if size_BN1 is None else size_BN1.contiguous()
    tensors = (sizes, out_BMD, size_BM1, index_BM)
    strides = k_BHNd.stride()[:3]
    _call("merge_similar", x_BND, k_BHNd, *strides, *tensors, B, N, D, H, d, prefix, r)
    return out_BMD, size_BM1


def farthest_first_cpp(similarity_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """Indices of all tokens, [B, N]: what `hquota_ops.farthest_first` returns. Raises as
    `check_native` does.
    """
    (B, N, _), Q = similarity_BNN.shape, first_BQ.shape[1]
    order_BN = torch.empty(B, N, dtype=torch.int64)
    _call("farthest_first", similarity_BNN, first_BQ.contiguous(), order_BN, B, N, Q, kept)
    return order_BN


def merge_groups_cpp(
    x_BND: Tensor, size_BN1: Tensor | None, order_BN: Tensor, target_BR: Tensor, prefix: int
) -> tuple[Tensor, Tensor]:
    """What `hquota_ops.merge_groups_torch` returns: [B, M, D] and [B, M, 1]. Raises as
    `check_native` does.
    """
    (B, N, D), R = x_BND.shape, target_BR.shape[1]
    out_BMD, size_BM1 = torch.empty(B, N - R, D), torch.empty(B, N - R, 1)
    sizes = None if size_BN1 is None else size_BN1.contiguous()
    groups = (order_BN.contiguous(), target_BR.contiguous())
    _call("merge_groups", x_BND, sizes, *groups, out_BMD, size_BM1, B, N, D, prefix, R)
    return out_BMD, size_BM1


def _call(name: str, first: Tensor, *arguments: Tensor | int | None) -> None:
    """Run a function of `tome.cpp` on all threads, once `first` is a tensor that it takes."""
    check_native(first)
    function = functions(TOME_CPP, _SIGNATURES)[name]
    function(first.contiguous(), *arguments, torch.get_num_threads())


def check_native(like: Tensor) -> None:
    """Raise `Unsupported` unless there is compiled code on this machine, for tensors of this dtype
    and device.
    """
    reason = missing_reason(TOME_CPP)
    if reason is None and (like.dtype, like.device.type) != (torch.float32, "cpu"):
        reason = (
            f"the compiled kernel takes float32 on a CPU, not {like.dtype} on {like.device.type}"
        )
    if reason is not None:
        raise Unsupported(f"implementation: native cannot run here: {reason}")
