"""Token arithmetic that reduction methods share: class-token scores, selection, bipartite matching and merging; it knows no model.

Shapes: B images, N tokens, K tokens selected, D channels (E with the size), H heads, d channels of a head, X images times heads;
A and C tokens in the sets A and B of a matching, R of them merged, M tokens left. All shapes follow from the arguments' shapes and
plain numbers, and nothing waits for the device.
"""

from typing import NamedTuple

import torch
from torch import Tensor


def class_token_scores(q_BHNd: Tensor, k_BHNd: Tensor, scale: float) -> Tensor:
    """Attention that the class token (token 0) pays to every token, the mean over heads: [B, N].

    Only this row of the attention matrix is computed, so that the attention itself can stay fused.
    """
    B, H, N, d = k_BHNd.shape
    q_X1d, k_XdN = q_BHNd[:, :, :1].reshape(B * H, 1, d), k_BHNd.reshape(B * H, N, d).mT
    # With beta 0 the first argument is ignored; the product is scaled without an operator more.
    logits_X1N = torch.baddbmm(q_X1d[:1, :, :1], q_X1d, k_XdN, beta=0, alpha=scale)
    return logits_X1N.view(B, H, N).softmax(-1).mean(1)


def select(x_BND: Tensor, index_BK: Tensor) -> Tensor:
    """The tokens of each image that `index_BK` names, in its order: [B, K, D]."""
    if x_BND.is_cuda:  # one launch; on a CPU it is several times slower than the two forms below
        return x_BND.gather(1, index_BK[:, :, None].expand(-1, -1, x_BND.shape[-1]))
    if len(x_BND) == 1:
        return x_BND.index_select(1, index_BK[0])
    return x_BND[torch.arange(len(x_BND), device=x_BND.device)[:, None], index_BK]


class Matching(NamedTuple):
    """Which patch tokens are merged into which; see `match`. Places are counted among the patch tokens of a set."""

    source_BR: Tensor
    """Tokens merged away, as places in the set A."""
    target_BR: Tensor
    """For each of them the token that takes it in, as a place in the set B."""
    unmerged_BK: Tensor
    """The rest of A, in ascending order."""


def alternate(x_BND: Tensor, prefix: int) -> tuple[Tensor, Tensor]:
    """The patch tokens of the sets A (tokens at even places) and B (at odd places), as views."""
    return x_BND[:, ::2][:, (prefix + 1) // 2 :], x_BND[:, 1::2][:, prefix // 2 :]


def match(metric_BNd: Tensor, prefix: int, r: int) -> Matching:
    """Bipartite soft matching: the `r` tokens of A most similar (by cosine) to a token of B, each with that token.

    `r` is at most half of the patch tokens. Bolya et al., ICLR 2023, arXiv 2210.09461, section 3 and appendix D.
    """
    unit_BNd = metric_BNd / metric_BNd.norm(dim=-1, keepdim=True)
    similarity_BAC = (unit_BNd[:, ::2] @ unit_BNd[:, 1::2].mT)[:, (prefix + 1) // 2 :, prefix // 2 :]
    best_BA, place_BA = similarity_BAC.max(-1)
    order_BA = best_BA.argsort(-1, descending=True)
    source_BR = order_BA[:, :r]
    return Matching(source_BR, place_BA.gather(1, source_BR), order_BA[:, r:].sort(-1).values)


def merge(x_BND: Tensor, size_BN1: Tensor | None, matching: Matching, prefix: int) -> tuple[Tensor, Tensor]:
    """The tokens after merging and their sizes: [B, M, D] and [B, M, 1], in the order prefix, unmerged A, B.

    A merged token is the mean of its parts weighted by their sizes (the number of input tokens each stands for; `None`: all are 1).
    """
    D = x_BND.shape[-1]
    # The sizes ride along as one more channel, so that tokens and sizes move in the same operators.
    sum_BNE = torch.nn.functional.pad(x_BND, (0, 1), value=1.0) if size_BN1 is None else torch.cat((x_BND * size_BN1, size_BN1), -1)
    a_BAE, b_BCE = alternate(sum_BNE, prefix)
    out_BME = torch.cat((sum_BNE[:, :prefix], select(a_BAE, matching.unmerged_BK), b_BCE), 1)
    first_b = out_BME.shape[1] - b_BCE.shape[1]
    out_BME[:, first_b:].scatter_add_(1, matching.target_BR[:, :, None].expand(-1, -1, D + 1), select(a_BAE, matching.source_BR))
    size_BM1 = out_BME[..., D:]
    return out_BME[..., :D] / size_BM1, size_BM1
