"""Attention in proportion to token sizes as one Triton kernel.

Shapes: B images, H heads, N tokens, d channels of a head.

Softmax over logits with log(size) added equals shares times size, divided by their sum: so sizes
multiply the shares after the exponential, and no mask is read (proportional attention, Bolya et
al., ICLR 2023, arXiv 2210.09461, section 3). The running maximum and sum are those of Dao et al.,
FlashAttention, NeurIPS 2022, arXiv 2205.14135, algorithm 1. Whole blocks of keys are not masked;
the last one has a size of its own.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

from workers.kernels import HEAD_DIMS

LOG2_E = 1 / math.log(2)


@triton.jit
def _load(at, row_valid, channel_valid, MASKED: tl.constexpr):
    """A tile [rows, channels]; 0 where a row or a channel is not valid."""
    if MASKED:
        tile = tl.load(at, mask=row_valid[:, None] & channel_valid[None, :], other=0.0)
    else:
        tile = tl.load(at)
    return tile


@triton.jit
def _add_block(
    total,
    greatest,
    weight,
    query,
    key_at,
    value_at,
    size_at,
    row_valid,
    channel_valid,
    scale,
    SIZED: tl.constexpr,
    LAST: tl.constexpr,
    PADDED: tl.constexpr,
):
    """The running sums of one block of queries, with one block of keys more; `greatest` is of the
    products before they are scaled.
    """
    key = _load(key_at, row_valid, channel_valid, LAST or PADDED)
    product = tl.dot(query, tl.trans(key), input_precision="tf32x3")
    if LAST:
        product = tl.where(row_valid[None, :], product, -float("inf"))
    now = tl.maximum(greatest, tl.max(product, axis=1))
    share = tl.exp2(product * scale - (now * scale)[:, None])
    if SIZED:
        share *= tl.load(size_at, mask=row_valid, other=0.0)[None, :]
    old = tl.exp2((greatest - now) * scale)
    value = _load(value_at, row_valid, channel_valid, LAST or PADDED)
    total = total * old[:, None] + tl.dot(share.to(value.dtype), value, input_precision="tf32x3")
    return total, now, weight * old + tl.sum(share, axis=1)


@triton.jit(do_not_specialize=["tokens"])
def attend_kernel(
    q,
    k,
    v,
    size,
    out,
    log_sums,
    tokens,
    scale,
    per_image,
    per_head,
    per_token,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHANNELS_PADDED: tl.constexpr,
    SIZED: tl.constexpr,
    SUMMED: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    LAST: tl.constexpr,
):
    """A block of queries of one head of one image; `scale` is that of the logits, times log2(e).

    LAST: keys in the block behind the whole ones, 0 for none. SUMMED: the logarithm of each query's
    sum of exponentials, in base 2, is stored too.
    """
    PADDED: tl.constexpr = CHANNELS != CHANNELS_PADDED
    scale = tl.cast(scale, tl.float32)  # Inductor passes Python's floats in float64
    # In one dimension: the second of a grid ends at 65 535.
    count = tl.cdiv(tokens, QUERIES)
    image_head = tl.program_id(0) // count
    image, head = (image_head // HEADS).to(tl.int64), image_head % HEADS
    channel = tl.arange(0, CHANNELS_PADDED)
    channel_valid = channel < CHANNELS
    row = tl.program_id(0) % count * QUERIES + tl.arange(0, QUERIES)
    row_valid = row < tokens
    begin = image * per_image + head * per_head
    q += begin
    k += begin
    v += begin
    size += image * tokens
    query = _load(q + row[:, None] * per_token + channel[None, :], row_valid, channel_valid, True)
    total = tl.zeros([QUERIES, CHANNELS_PADDED], tl.float32)
    greatest = tl.full([QUERIES], -float("inf"), tl.float32)
    weight = tl.zeros([QUERIES], tl.float32)
    whole = tokens // KEYS * KEYS
    for start in range(0, whole, KEYS):
        other = start + tl.arange(0, KEYS)
        total, greatest, weight = _add_block(
            total,
            greatest,
            weight,
            query,
            k + other[:, None] * per_token + channel[None, :],
            v + other[:, None] * per_token + channel[None, :],
            size + other,
            other < tokens,
            channel_valid,
            scale,
            SIZED,
            False,
            PADDED,
        )
    if LAST > 0:
        other = whole + tl.arange(0, LAST)
        total, greatest, weight = _add_block(
            total,
            greatest,
            weight,
            query,
            k + other[:, None] * per_token + channel[None, :],
            v + other[:, None] * per_token + channel[None, :],
            size + other,
            other < tokens,
            channel_valid,
            scale,
            SIZED,
            True,
            PADDED,
        )
    out += ((image * tokens + row[:, None]) * HEADS + head) * CHANNELS + channel[None, :]
    mean = (total / weight[:, None]).to(out.dtype.element_ty)
    tl.store(out, mean, mask=row_valid[:, None] & channel_valid[None, :])
    if SUMMED:
        sums = greatest * scale + tl.log2(weight)
        tl.store(log_sums + image_head.to(tl.int64) * tokens + row, sums, mask=row_valid)


@triton.jit(do_not_specialize=["tokens"])
def inflow_kernel(
    q,
    k,
    size,
    log_sums,
    inflow,
    tokens,
    scale,
    per_image,
    per_head,
    per_token,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    CHANNELS_PADDED: tl.constexpr,
    SIZED: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """The sums of some columns of one head's attention matrix."""
    count = tl.cdiv(tokens, KEYS)
    image_head = (tl.program_id(0) // count).to(tl.int64)
    image, head = image_head // HEADS, image_head % HEADS
    channel = tl.arange(0, CHANNELS_PADDED)
    channel_valid = channel < CHANNELS
    column = tl.program_id(0) % count * KEYS + tl.arange(0, KEYS)
    valid = column < tokens
    q += image * per_image + head * per_head
    k += image * per_image + head * per_head
    log_sums += image_head * tokens
    key = _load(k + column[:, None] * per_token + channel[None, :], valid, channel_valid, True)
    total = tl.zeros([KEYS], tl.float32)
    for start in range(0, tokens, QUERIES):
        row = start + tl.arange(0, QUERIES)
        at = q + row[:, None] * per_token + channel[None, :]
        query = _load(at, row < tokens, channel_valid, True)
        product = tl.dot(query, tl.trans(key), input_precision="tf32x3")
        sums = tl.load(log_sums + row, mask=row < tokens, other=float("inf"))
        share = tl.exp2(product * tl.cast(scale, tl.float32) - sums[:, None])
        total += tl.sum(share, axis=0)
    if SIZED:
        total *= tl.load(size + image * tokens + column, mask=valid, other=0.0)
    tl.store(inflow + image_head * tokens + column, total, mask=valid)


def blocks(dtype: torch.dtype, channels: int, tokens: int) -> dict[str, int]:
    """Queries and keys of a block, keys of the last one, warps and stages: those that were the
    quickest at most sizes on an H200 in float16 with heads of 64; the others are the largest tiles
    that spill no registers (`tests/workers/kernel_resources.py`).
    """
    wide = channels > 64
    if dtype.itemsize > 2:
        queries, keys, stages = 16, 16 if wide else 32, 2
    elif wide:
        queries, keys, stages = 32, 32, 2
    else:
        queries, keys, stages = 64, 64 if tokens > 64 else 32, 3
    rest = tokens % keys
    return {
        "QUERIES": queries,
        "KEYS": keys,
        "LAST": rest and max(16, triton.next_power_of_2(rest)),
        "num_warps": 4,
        "num_stages": stages,
    }


@triton_op("breakeven::sized_attention", mutates_args=())
def sized_attention(
    q_BHNd: Tensor, k_BHNd: Tensor, v_BHNd: Tensor, scale: float, size_BN: Tensor | None = None
) -> Tensor:
    """Attention of each token to all, [B, N, H, d].

    `scale` multiplies the products of queries and keys; `size_BN`, in float32, is how many tokens
    each key stands for (`None`: one). Tensors of equal strides whose channels lie next to each
    other are not copied. Raises `ValueError` for shapes that do not fit and for heads outside
    `HEAD_DIMS`.
    """
    return _attend(q_BHNd, k_BHNd, v_BHNd, scale, size_BN, inflow=False)[0]


@triton_op("breakeven::sized_attention_inflow", mutates_args=())
def sized_attention_inflow(
    q_BHNd: Tensor, k_BHNd: Tensor, v_BHNd: Tensor, scale: float, size_BN: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """`sized_attention`, and the attention that each token receives, summed over all queries, [B,
    H, N] in float32. Two launches; raises as `sized_attention`.
    """
    return _attend(q_BHNd, k_BHNd, v_BHNd, scale, size_BN, inflow=True)


def _attend(
    q_BHNd: Tensor,
    k_BHNd: Tensor,
    v_BHNd: Tensor,
    scale: float,
    size_BN: Tensor | None,
    *,
    inflow: bool,
) -> tuple[Tensor, Tensor]:
    """The output, and the inflow if it is requested."""
    B, H, N, d = q_BHNd.shape
    if d not in HEAD_DIMS or k_BHNd.shape != q_BHNd.shape or v_BHNd.shape != q_BHNd.shape:
        shapes = [tuple(x.shape) for x in (q_BHNd, k_BHNd, v_BHNd)]
        raise ValueError(
            f"sized_attention takes three tensors of one shape with heads of {HEAD_DIMS.start} to"
            f" {HEAD_DIMS.stop - 1} channels, not {shapes}"
        )
    if size_BN is not None and (size_BN.shape != (B, N) or size_BN.dtype != torch.float32):
        raise ValueError(
            f"sizes are float32 of shape {(B, N)}, not {size_BN.dtype} of {tuple(size_BN.shape)}"
        )
    if q_BHNd.stride(3) != 1 or not q_BHNd.stride() == k_BHNd.stride() == v_BHNd.stride():
        q_BHNd, k_BHNd, v_BHNd = (x.contiguous() for x in (q_BHNd, k_BHNd, v_BHNd))
    out_BNHd = q_BHNd.new_empty(B, N, H, d)
    sums_BHN, inflow_BHN = (
        torch.empty((B, H, N) if inflow else (), dtype=torch.float32, device=q_BHNd.device)
        for _ in range(2)
    )
    size = sums_BHN if size_BN is None else size_BN.contiguous()
    constants = blocks(q_BHNd.dtype, d, N)
    channels = {"CHANNELS": d, "CHANNELS_PADDED": triton.next_power_of_2(d)}
    wrap_triton(attend_kernel)[(triton.cdiv(N, constants["QUERIES"]) * B * H,)](
        q_BHNd,
        k_BHNd,
        v_BHNd,
        size,
        out_BNHd,
        sums_BHN,
        N,
        scale * LOG2_E,
        *q_BHNd.stride()[:3],
        HEADS=H,
        SIZED=size_BN is not None,
        SUMMED=inflow,
        **channels,
        **constants,
    )
    if inflow:
        constants.pop("LAST")
        wrap_triton(inflow_kernel)[(triton.cdiv(N, constants["KEYS"]) * B * H,)](
            q_BHNd,
            k_BHNd,
            size,
            sums_BHN,
            inflow_BHN,
            N,
            scale * LOG2_E,
            *q_BHNd.stride()[:3],
            HEADS=H,
            SIZED=size_BN is not None,
            **channels,
            **constants,
        )
    return out_BNHd, inflow_BHN
