"""Selection of tokens between a block's attention and its MLP as Triton kernels: by the attention
of the class token, or by indices; with the addition before and the LayerNorm behind it.

Shapes: B images, N tokens, M of them left, D channels, H heads, d channels of a head.

Equal scores are ordered by index; what is not a number comes before all numbers, as in torch's
sorting.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

from workers.kernels.attention import LOG2_E
from workers.kernels.reduction import (
    check_heads,
    check_tokens,
    load_sum,
    row_blocks,
    store_normed,
    widths,
)


@triton.jit(do_not_specialize=["tokens"])
def class_logits_kernel(
    q,
    k,
    logits,
    norms,
    tokens,
    scale,
    q_per_image,
    q_per_head,
    k_per_image,
    k_per_head,
    k_per_token,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHANNELS_PADDED: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """The logits of the class token (token 0) of one head for all tokens, in base 2, with their
    maximum and the sum of their shares.
    """
    image, head = (tl.program_id(0) // HEADS).to(tl.int64), tl.program_id(0) % HEADS
    channel = tl.arange(0, CHANNELS_PADDED)
    inside = channel < CHANNELS
    at = q + image * q_per_image + head * q_per_head + channel
    query = tl.load(at, mask=inside, other=0.0).to(tl.float32) * tl.cast(scale, tl.float32)
    k += image * k_per_image + head * k_per_head
    logits += tl.program_id(0).to(tl.int64) * tokens
    greatest, total = -float("inf"), 0.0
    for start in range(0, tokens, COLUMNS):
        token = start + tl.arange(0, COLUMNS)
        mask = (token < tokens)[:, None] & inside[None, :]
        key = tl.load(k + token[:, None] * k_per_token + channel[None, :], mask=mask, other=0.0)
        logit = tl.sum(key.to(tl.float32) * query[None, :], axis=1)
        logit = tl.where(token < tokens, logit, -float("inf"))
        tl.store(logits + token, logit, mask=token < tokens)
        now = tl.maximum(greatest, tl.max(logit, axis=0))
        total = total * tl.exp2(greatest - now) + tl.sum(tl.exp2(logit - now), axis=0)
        greatest = now
    tl.store(norms + 2 * tl.program_id(0), greatest)
    tl.store(norms + 2 * tl.program_id(0) + 1, total)


@triton.jit
def _class_score(logits, norms, token, tokens, HEADS: tl.constexpr):
    """The class token's attention to some tokens, mean over heads; infinite where it is not a
    number.
    """
    total = tl.zeros(token.shape, tl.float32)
    for head in range(HEADS):
        logit = tl.load(logits + head * tokens + token, mask=token < tokens, other=-float("inf"))
        share = tl.exp2(logit - tl.load(norms + 2 * head)) / tl.load(norms + 2 * head + 1)
        total += share
    return tl.where(total == total, total / HEADS, float("inf"))


@triton.jit
def _rank(score, own, logits, norms, tokens, prefix, HEADS: tl.constexpr, SEEN: tl.constexpr):
    """How many patch tokens come before each of `own`."""
    before = tl.zeros(own.shape, tl.int32)
    for start in range(prefix, tokens, SEEN):
        other = start + tl.arange(0, SEEN)
        theirs = _class_score(logits, norms, other, tokens, HEADS)
        equal = (theirs[None, :] == score[:, None]) & (other[None, :] < own[:, None])
        better = (theirs[None, :] > score[:, None]) | equal
        before += tl.sum((better & (other < tokens)[None, :]).to(tl.int32), axis=1)
    return before


@triton.jit(do_not_specialize=["tokens", "prefix", "kept"])
def keep_kernel(
    x,
    added,
    logits,
    norms,
    weight,
    bias,
    out,
    normed,
    tokens,
    prefix,
    kept,
    eps,
    FUSED: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    SEEN: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Some tokens of one image: each goes to the row of its rank, if it is kept. FUSED: a program
    more for each image appends the sum of the others, weighted by their scores.
    """
    blocks = tl.cdiv(tokens, ROWS)
    programs = blocks + FUSED
    image, block = (tl.program_id(0) // programs).to(tl.int64), tl.program_id(0) % programs
    left = prefix + kept + FUSED
    x += image * tokens * WIDTH
    added += image * tokens * WIDTH
    logits += image * HEADS * tokens
    norms += image * HEADS * 2
    out += image * left * WIDTH
    normed += image * left * WIDTH
    channel = tl.arange(0, WIDTH_PADDED)
    if block < blocks:
        own = block * ROWS + tl.arange(0, ROWS)
        score = _class_score(logits, norms, own, tokens, HEADS)
        rank = _rank(score, own, logits, norms, tokens, prefix, HEADS, SEEN)
        row = tl.where(own < prefix, own, prefix + rank)
        stays = (own < tokens) & (row < prefix + kept)
        total = load_sum(x, added, own, stays, channel, WIDTH)
        store_normed(total, out, normed, row, stays, channel, weight, bias, eps, WIDTH)
    elif FUSED:
        fused = tl.zeros([WIDTH_PADDED], tl.float32)
        for start in range(0, tokens, ROWS):
            own = start + tl.arange(0, ROWS)
            score = _class_score(logits, norms, own, tokens, HEADS)
            rank = _rank(score, own, logits, norms, tokens, prefix, HEADS, SEEN)
            drops = (own >= prefix) & (own < tokens) & (rank >= kept)
            rows = load_sum(x, added, own, drops, channel, WIDTH)
            fused += tl.sum(rows * tl.where(drops, score, 0.0)[:, None], axis=0)
        end = prefix + kept + tl.arange(0, 1)
        store_normed(
            fused[None, :], out, normed, end, end < left, channel, weight, bias, eps, WIDTH
        )


@triton.jit(do_not_specialize=["tokens", "left"])
def gather_kernel(
    x,
    added,
    index,
    weight,
    bias,
    out,
    normed,
    tokens,
    left,
    eps,
    INDEXED: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Some of the tokens of one image at the indices, or of the first ones."""
    blocks = tl.cdiv(left, ROWS)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    row = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    valid, token = row < left, row
    if INDEXED:
        token = tl.load(index + row, mask=valid, other=0).to(tl.int32)
    x += image * tokens * WIDTH
    added += image * tokens * WIDTH
    channel = tl.arange(0, WIDTH_PADDED)
    total = load_sum(x, added, token, valid, channel, WIDTH)
    out += image * left * WIDTH
    normed += image * left * WIDTH
    store_normed(total, out, normed, row, valid, channel, weight, bias, eps, WIDTH)


@triton_op("breakeven::keep_best", mutates_args=())
def keep_best(
    x_BND: Tensor,
    added_BND: Tensor,
    q_BHNd: Tensor,
    k_BHNd: Tensor,
    scale: float,
    weight_D: Tensor,
    bias_D: Tensor,
    eps: float,
    prefix: int,
    kept: int,
    fused: bool,
) -> tuple[Tensor, Tensor]:
    """The `prefix` tokens and the `kept` others that the class token (token 0) attends to most,
    best first: the tokens and their LayerNorm, [B, M, D] each.

    `fused` appends the sum of the other tokens, weighted by their scores, the attention's mean
    over heads: Liang et al., EViT, ICLR 2022, arXiv 2202.07800, section 3. Two launches. Raises
    `ValueError` for shapes that do not fit.
    """
    (B, N, D), H, d = x_BND.shape, k_BHNd.shape[1], k_BHNd.shape[3]
    left = prefix + kept + int(fused)
    check_tokens(x_BND, added_BND, left)
    check_heads(k_BHNd, x_BND)
    check_heads(q_BHNd, x_BND)
    logits_BHN = torch.empty(B, H, N, dtype=torch.float32, device=x_BND.device)
    norms_BH2 = torch.empty(B, H, 2, dtype=torch.float32, device=x_BND.device)
    wrap_triton(class_logits_kernel)[(B * H,)](
        q_BHNd,
        k_BHNd,
        logits_BHN,
        norms_BH2,
        N,
        scale * LOG2_E,
        *q_BHNd.stride()[:2],
        *k_BHNd.stride()[:3],
        HEADS=H,
        CHANNELS=d,
        CHANNELS_PADDED=triton.next_power_of_2(d),
        COLUMNS=64,
        num_warps=4,
    )
    x_BND, added_BND = x_BND.contiguous(), added_BND.contiguous()
    out_BMD, normed_BMD = x_BND.new_empty(B, left, D), x_BND.new_empty(B, left, D)
    constants = row_blocks(B)
    wrap_triton(keep_kernel)[((triton.cdiv(N, constants["ROWS"]) + int(fused)) * B,)](
        x_BND,
        added_BND,
        logits_BHN,
        norms_BH2,
        weight_D,
        bias_D,
        out_BMD,
        normed_BMD,
        N,
        prefix,
        kept,
        eps,
        FUSED=int(fused),
        HEADS=H,
        **widths(D),
        SEEN=min(triton.next_power_of_2(N), 256),
        **constants,
    )
    return out_BMD, normed_BMD


@triton_op("breakeven::gather", mutates_args=())
def gather(
    x_BND: Tensor,
    added_BND: Tensor,
    index_M: Tensor | None,
    left: int,
    weight_D: Tensor,
    bias_D: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """The `left` tokens at the indices, the same for all images, or the first ones: the tokens and
    their LayerNorm, [B, M, D] each, in one launch. Raises `ValueError` for shapes that do not fit.
    """
    B, N, D = x_BND.shape
    check_tokens(x_BND, added_BND, left)
    x_BND, added_BND = x_BND.contiguous(), added_BND.contiguous()
    out_BMD, normed_BMD = x_BND.new_empty(B, left, D), x_BND.new_empty(B, left, D)
    constants = row_blocks(B)
    wrap_triton(gather_kernel)[(triton.cdiv(left, constants["ROWS"]) * B,)](
        x_BND,
        added_BND,
        x_BND if index_M is None else index_M,
        weight_D,
        bias_D,
        out_BMD,
        normed_BMD,
        N,
        left,
        eps,
        INDEXED=index_M is not None,
        **widths(D),
        **constants,
    )
    return out_BMD, normed_BMD
