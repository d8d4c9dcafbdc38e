"""Merging of tokens between a block's attention and its MLP as Triton kernels: one matches, and one
adds the attention's output to the tokens left, merges and normalises.

Shapes: B images, N tokens, M of them left, n of them patch tokens, D channels, H heads, d channels
of a head, A tokens that may join others, P prefix tokens.

Equal similarities are ordered by index; what is not a number comes before all numbers, as in
torch's sorting.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

from workers.kernels import HEAD_DIMS, MAX_TOKENS


@triton.jit
def load_sum(x, added, token, valid, channel, WIDTH: tl.constexpr):
    """Rows of both tensors [N, D], added in float32."""
    mask = valid[:, None] & (channel < WIDTH)[None, :]
    offset = token[:, None] * WIDTH + channel[None, :]
    total = tl.load(x + offset, mask=mask, other=0.0).to(tl.float32)
    return total + tl.load(added + offset, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def store_normed(total, out, normed, row, valid, channel, weight, bias, eps, WIDTH: tl.constexpr):
    """Store rows, and their LayerNorm."""
    inside = channel < WIDTH
    mask = valid[:, None] & inside[None, :]
    offset = row[:, None] * WIDTH + channel[None, :]
    tl.store(out + offset, total.to(out.dtype.element_ty), mask=mask)
    mean = tl.sum(tl.where(inside[None, :], total, 0.0), axis=1) / WIDTH
    centred = tl.where(inside[None, :], total - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1) / WIDTH + tl.cast(eps, tl.float32))
    gain = tl.load(weight + channel, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + channel, mask=inside, other=0.0).to(tl.float32)
    value = centred * scale[:, None] * gain[None, :] + shift[None, :]
    tl.store(normed + offset, value.to(normed.dtype.element_ty), mask=mask)


@triton.jit
def unit_keys(
    k,
    per_head,
    per_token,
    token,
    valid,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHANNELS_PADDED: tl.constexpr,
):
    """The keys of some tokens, summed over heads and scaled to length 1, in float32."""
    channel = tl.arange(0, CHANNELS_PADDED)
    mask = valid[:, None] & (channel < CHANNELS)[None, :]
    at = k + token[:, None] * per_token + channel[None, :]
    total = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    for head in tl.static_range(1, HEADS):
        total += tl.load(at + head * per_head, mask=mask, other=0.0).to(tl.float32)
    return total * tl.rsqrt(tl.sum(total * total, axis=1))[:, None]


@triton.jit
def _counts(tokens, prefix, left, LISTED: tl.constexpr):
    """Tokens that may join others, and those that they may join: all removed and all kept patch
    tokens of a list, else the sets A and B of a bipartite matching.
    """
    if LISTED:
        joining, joined = tokens - left, left - prefix
    else:
        joining, joined = (
            (tokens - prefix - prefix % 2 + 1) // 2,
            (tokens - prefix + prefix % 2) // 2,
        )
    return joining, joined


@triton.jit
def _joining_token(number, valid, order, prefix, joined, LISTED: tl.constexpr):
    """Indices of some of the tokens that may join others."""
    if LISTED:
        token = prefix + tl.load(order + joined + number, mask=valid, other=0).to(tl.int32)
    else:
        token = prefix + prefix % 2 + 2 * number
    return token


@triton.jit
def _joined_token(number, valid, order, prefix, LISTED: tl.constexpr):
    """Indices of some of the tokens that they may join."""
    if LISTED:
        token = prefix + tl.load(order + number, mask=valid, other=0).to(tl.int32)
    else:
        token = prefix + 1 - prefix % 2 + 2 * number
    return token


@triton.jit(do_not_specialize=["tokens", "prefix", "left"])
def match_kernel(
    k,
    order,
    best,
    target,
    tokens,
    prefix,
    left,
    per_image,
    per_head,
    per_token,
    LISTED: tl.constexpr,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHANNELS_PADDED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """For some tokens of one image that may join others: the largest cosine with one of those, and
    which one.
    """
    count, others = _counts(tokens, prefix, left, LISTED)
    blocks = tl.cdiv(count, ROWS)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    k += image * per_image
    order += image * (tokens - prefix)
    a = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    token = _joining_token(a, a < count, order, prefix, others, LISTED)
    own = unit_keys(k, per_head, per_token, token, a < count, HEADS, CHANNELS, CHANNELS_PADDED)
    most = tl.full([ROWS], -float("inf"), tl.float32)
    nearest = tl.zeros([ROWS], tl.int32)
    for start in range(0, others, COLUMNS):
        b = start + tl.arange(0, COLUMNS)
        partner = _joined_token(b, b < others, order, prefix, LISTED)
        other = unit_keys(
            k, per_head, per_token, partner, b < others, HEADS, CHANNELS, CHANNELS_PADDED
        )
        cosine = tl.dot(own, tl.trans(other), input_precision="tf32x3")
        cosine = tl.where(cosine == cosine, cosine, float("inf"))  # not a number
        cosine = tl.where((b < others)[None, :], cosine, -float("inf"))
        highest, index = tl.max(cosine, axis=1, return_indices=True)
        nearest = tl.where(highest > most, start + index.to(tl.int32), nearest)
        most = tl.maximum(highest, most)
    tl.store(best + image * count + a, most, mask=a < count)
    tl.store(target + image * count + a, nearest, mask=a < count)


@triton.jit
def _greatest(value, valid, index, count, r, PADDED: tl.constexpr, SEEN: tl.constexpr, at):
    """Whether each of the values [PADDED], which also lie at `at`, is among the `r` greatest."""
    if PADDED <= 512:  # each is compared with all
        rank = tl.zeros([PADDED], tl.int32)
        for start in range(0, count, SEEN):
            o = start + tl.arange(0, SEEN)
            other = tl.load(at + o, mask=o < count, other=-float("inf"))
            equal = (other[None, :] == value[:, None]) & (o[None, :] < index[:, None])
            before = ((other[None, :] > value[:, None]) | equal) & (o < count)[None, :]
            rank += tl.sum(before.to(tl.int32), axis=1)
        chosen = valid & (rank < r)
    else:  # the r-th greatest is found bit by bit, in integers of the values' order
        bits = value.to(tl.int32, bitcast=True)
        key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
        key = tl.where(valid, key, -(2**40))
        bound = tl.full([], -(2**31), tl.int64)
        for bit in range(32):
            higher = bound + (tl.full([], 1, tl.int64) << (31 - bit))
            bound = tl.where(tl.sum((key >= higher).to(tl.int32)) >= r, higher, bound)
        above, equal = key > bound, key == bound
        missing = r - tl.sum(above.to(tl.int32))
        chosen = valid & (above | (equal & (tl.cumsum(equal.to(tl.int32), 0) <= missing)))
    return chosen


@triton.jit(do_not_specialize=["tokens", "prefix", "left"])
def merge_kernel(
    x,
    added,
    size,
    order,
    best,
    target,
    weight,
    bias,
    out,
    normed,
    size_out,
    tokens,
    prefix,
    left,
    eps,
    LISTED: tl.constexpr,
    SIZED: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    PADDED: tl.constexpr,
    SEEN: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Some of the tokens left of one image: prefix tokens, then those of a list that are kept, in
    its order, else those of A that are not merged, and B.
    """
    count, others = _counts(tokens, prefix, left, LISTED)
    blocks = tl.cdiv(left, ROWS)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    x += image * tokens * WIDTH
    added += image * tokens * WIDTH
    size += image * tokens
    order += image * (tokens - prefix)
    best += image * count
    a = tl.arange(0, PADDED)
    merged = a < count
    target = tl.load(target + image * count + a, mask=merged, other=-1)
    row = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    valid, b = row < left, row - left + others
    token = tl.where(b < 0, row, _joined_token(b, valid & (b >= 0), order, prefix, LISTED))
    if not LISTED:
        similarity = tl.load(best + a, mask=merged, other=-float("inf"))
        stays = merged
        merged = _greatest(similarity, merged, a, count, tokens - left, PADDED, SEEN, best)
        stays = stays & (merged == 0)
        rank = tl.cumsum(stays.to(tl.int32), 0) - 1
        starts = stays[None, :] & (rank[None, :] == (row - prefix)[:, None])
        index = tl.sum(tl.where(starts, a[None, :], 0), axis=1)
        of_a = _joining_token(index, valid, order, prefix, others, LISTED)
        token = tl.where((row >= prefix) & (b < 0), of_a, token)
    joins = merged[None, :] & (target[None, :] == b[:, None]) & valid[:, None]

    channel = tl.arange(0, WIDTH_PADDED)
    total = load_sum(x, added, token, valid, channel, WIDTH)
    parts = tl.full([ROWS], 1.0, tl.float32)
    if SIZED:
        parts = tl.load(size + token, mask=valid, other=1.0)
        total *= parts[:, None]
    last = tl.full([ROWS], -1, tl.int32)
    for _ in range(tl.max(tl.sum(joins.to(tl.int32), axis=1), axis=0)):
        later = joins & (a[None, :] > last[:, None])
        last = tl.min(tl.where(later, a[None, :], PADDED), axis=1)
        has = last < PADDED
        source = _joining_token(last, has, order, prefix, others, LISTED)
        value = load_sum(x, added, source, has, channel, WIDTH)
        part = has.to(tl.float32)
        if SIZED:
            part = tl.load(size + source, mask=has, other=0.0)
        total += value * part[:, None]
        parts += part
    total /= parts[:, None]
    out += image * left * WIDTH
    normed += image * left * WIDTH
    store_normed(total, out, normed, row, valid, channel, weight, bias, eps, WIDTH)
    tl.store(size_out + image * left + row, parts, mask=valid)


def row_blocks(images: int) -> dict[str, int]:
    """Rows of a program that writes whole tokens, and its warps: few where one image leaves most
    of the device without a program.
    """
    return {"ROWS": 2, "num_warps": 4} if images == 1 else {"ROWS": 8, "num_warps": 8}


def widths(channels: int) -> dict[str, int]:
    """Channels of a token, and padded."""
    return {"WIDTH": channels, "WIDTH_PADDED": triton.next_power_of_2(channels)}


def check_tokens(x_BND: Tensor, added_BND: Tensor, left: int) -> None:
    """Raise `ValueError` for tokens that the kernels do not take."""
    B, N, _ = x_BND.shape
    if x_BND.shape != added_BND.shape or x_BND.dtype != added_BND.dtype:
        raise ValueError(
            f"tokens {tuple(x_BND.shape)} of {x_BND.dtype} and what is added to them,"
            f" {tuple(added_BND.shape)} of {added_BND.dtype}, must be alike"
        )
    if not 0 < left <= N <= MAX_TOKENS or B < 1:
        raise ValueError(
            f"{left} of {N} tokens are to be left; a kernel leaves 1 to {N} of at most {MAX_TOKENS}"
        )


def check_heads(k_BHNd: Tensor, x_BND: Tensor) -> None:
    """Raise `ValueError` for queries or keys that the kernels do not take."""
    (B, N, _), d = x_BND.shape, k_BHNd.shape[3]
    if (k_BHNd.shape[0], k_BHNd.shape[2]) != (B, N) or d not in HEAD_DIMS or k_BHNd.stride(3) != 1:
        raise ValueError(
            f"keys must be [{B}, heads, {N}, {HEAD_DIMS.start} to {HEAD_DIMS.stop - 1}] with"
            f" channels next to each other, not {tuple(k_BHNd.shape)}"
        )


def match_and_merge(
    x_BND: Tensor,
    added_BND: Tensor,
    k_BHNd: Tensor,
    size_BN: Tensor | None,
    norm: tuple[Tensor, Tensor, float],
    prefix: int,
    left: int,
    order_Bn: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`merge_similar` without `order_Bn`, the second and third launch of `merge_farthest` with
    it.
    """
    (B, N, D), H, d = x_BND.shape, k_BHNd.shape[1], k_BHNd.shape[3]
    listed = order_Bn is not None
    count = N - left if listed else (N - prefix - prefix % 2 + 1) // 2
    best_BA = torch.empty(B, count, dtype=torch.float32, device=x_BND.device)
    target_BA = torch.empty(B, count, dtype=torch.int32, device=x_BND.device)
    order = target_BA if order_Bn is None else order_Bn
    rows = 16 if B <= 8 or listed else 64
    wrap_triton(match_kernel)[(triton.cdiv(count, rows) * B,)](
        k_BHNd,
        order,
        best_BA,
        target_BA,
        N,
        prefix,
        left,
        *k_BHNd.stride()[:3],
        LISTED=listed,
        HEADS=H,
        CHANNELS=d,
        CHANNELS_PADDED=triton.next_power_of_2(d),
        ROWS=rows,
        COLUMNS=32,
        num_warps=4,
        num_stages=1,  # more would keep the keys of all heads in shared memory
    )
    x_BND, added_BND = x_BND.contiguous(), added_BND.contiguous()
    out_BMD, normed_BMD = x_BND.new_empty(B, left, D), x_BND.new_empty(B, left, D)
    size_BM = torch.empty(B, left, dtype=torch.float32, device=x_BND.device)
    padded, constants = max(32, triton.next_power_of_2(count)), row_blocks(B)
    wrap_triton(merge_kernel)[(triton.cdiv(left, constants["ROWS"]) * B,)](
        x_BND,
        added_BND,
        best_BA if size_BN is None else size_BN.contiguous(),
        order,
        best_BA,
        target_BA,
        norm[0],
        norm[1],
        out_BMD,
        normed_BMD,
        size_BM,
        N,
        prefix,
        left,
        norm[2],
        LISTED=listed,
        SIZED=size_BN is not None,
        **widths(D),
        PADDED=padded,
        SEEN=max(1, 4096 // padded // (1 if padded > 32 else 4)),
        **constants,
    )
    return out_BMD, normed_BMD, size_BM


@triton_op("breakeven::merge_similar", mutates_args=())
def merge_similar(
    x_BND: Tensor,
    added_BND: Tensor,
    k_BHNd: Tensor,
    size_BN: Tensor | None,
    weight_D: Tensor,
    bias_D: Tensor,
    eps: float,
    prefix: int,
    r: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The `r` tokens of A most similar to one of B, by the cosine of their keys' sums over heads,
    merged into those, as means weighted by size: the tokens, their LayerNorm, [B, M, D] each, and
    how many input tokens each stands for, [B, M] in float32, in the order prefix, unmerged A, B.

    Tokens are `x_BND` + `added_BND`; `size_BN` is in float32. Two launches. Raises `ValueError` for
    shapes that do not fit and for `r` above half of the patch tokens. Bolya et al., ICLR 2023,
    arXiv 2210.09461, section 3 and appendix D.
    """
    N = x_BND.shape[1]
    check_tokens(x_BND, added_BND, N - r)
    check_heads(k_BHNd, x_BND)
    if not 0 <= r <= (N - prefix) // 2:
        raise ValueError(f"of {N - prefix} patch tokens at most half can be merged, not {r}")
    norm = (weight_D, bias_D, eps)
    return match_and_merge(x_BND, added_BND, k_BHNd, size_BN, norm, prefix, N - r, None)
