"""Triton kernels of token reduction: selection of tokens by attention weights (sum over heads,
ranking and moving in one launch), and farthest-first selection, whose loop runs inside the kernel.

Import it only where Triton is installed. In the first equal scores are ordered by index, and NaN
scores come before all others; the second selects the same tokens as `hquota_ops.farthest_first`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

TOKENS_PER_PROGRAM = 16
"""Tokens ranked and moved by one program."""


@triton.jit  # type: ignore[untyped-decorator]
def _score(weight, per_head, per_token, place, valid, HEADS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """The sum of the weights over heads at the indices `place`, in float32."""
    total = tl.zeros(place.shape, tl.float32)
    for head in range(HEADS):
        total += tl.load(weight + head * per_head + place * per_token, mask=valid, other=0.0).to(
            tl.float32
        )
    return tl.where(total == total, total, float("inf"))  # noqa: PLR0124 - false for NaN


@triton.jit  # type: ignore[untyped-decorator]
def _keep(  # type: ignore[no-untyped-def] # noqa: PLR0917
    x,
    weight,
    out,
    tokens,
    prefix,
    left,
    channels,
    x_per_image,
    x_per_token,
    weight_per_image,
    weight_per_head,
    weight_per_token,
    HEADS: tl.constexpr,
    ROWS: tl.constexpr,
    SEEN: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Some tokens of one image: the number of tokens ranked before each is its index in the output,
    if it is kept.
    """
    image = tl.program_id(0).to(tl.int64)
    x, weight, out = (
        x + image * x_per_image,
        weight + image * weight_per_image,
        out + image * left * channels,
    )
    own = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    score = _score(weight, weight_per_head, weight_per_token, own, own < tokens, HEADS)
    before = tl.zeros((ROWS,), tl.int32)
    for start in range(prefix, tokens, SEEN):
        other = start + tl.arange(0, SEEN)
        theirs = _score(weight, weight_per_head, weight_per_token, other, other < tokens, HEADS)
        equal = (theirs[None, :] == score[:, None]) & (other[None, :] < own[:, None])
        better = (theirs[None, :] > score[:, None]) | equal
        before += tl.sum((better & (other < tokens)[None, :]).to(tl.int32), axis=1)
    place = tl.where(own < prefix, own, prefix + before)
    stays = (own < tokens) & (place < left)
    for start in range(0, channels, CHANNELS):
        channel = start + tl.arange(0, CHANNELS)
        mask = stays[:, None] & (channel < channels)[None, :]
        row = tl.load(x + own[:, None] * x_per_token + channel[None, :], mask=mask)
        tl.store(out + place[:, None] * channels + channel[None, :], row, mask=mask)


def keep_best_triton(x_BND: Tensor, weight_BHN: Tensor, prefix: int, kept: int) -> Tensor:
    """The `prefix` tokens and then the `kept` others with the largest weights (summed over heads),
    best first: [B, P + K, D].

    `weight_BHN` may be strided (a row of the attention matrix).
    """
    (B, N, D), H = x_BND.shape, weight_BHN.shape[1]
    x_BND = x_BND if x_BND.stride(2) == 1 else x_BND.contiguous()
    out_BKD = torch.empty((B, prefix + kept, D), dtype=x_BND.dtype, device=x_BND.device)
    seen, channels = min(triton.next_power_of_2(N), 256), min(triton.next_power_of_2(D), 256)
    _keep[(B, triton.cdiv(N, TOKENS_PER_PROGRAM))](
        x_BND,
        weight_BHN,
        out_BKD,
        N,
        prefix,
        prefix + kept,
        D,
        x_BND.stride(0),
        x_BND.stride(1),
        *weight_BHN.stride(),
        HEADS=H,
        ROWS=TOKENS_PER_PROGRAM,
        SEEN=seen,
        CHANNELS=channels,
    )
    return out_BKD


@triton.jit  # type: ignore[untyped-decorator]
def _farthest(similarity, first, order, tokens, hubs, kept, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """One image: each token's similarity to those selected stays in registers; each step reads one
    row of the similarities.
    """
    image = tl.program_id(0).to(tl.int64)
    rows, first, order = (
        similarity + image * tokens * tokens,
        first + image * hubs,
        order + image * tokens,
    )
    place = tl.arange(0, BLOCK)
    valid = place < tokens
    nearest = tl.where(valid, -float("inf"), float("inf"))
    for step in range(kept):
        given = tl.load(first + step, mask=step < hubs, other=0).to(tl.int32)
        selected = tl.where(step < hubs, given, tl.argmin(nearest, axis=0))
        tl.store(order + step, selected.to(tl.int64))
        row = tl.load(rows + selected * tokens + place, mask=valid, other=float("inf")).to(
            tl.float32
        )
        nearest = tl.maximum(nearest, row)
    rest = valid & (nearest < float("inf"))  # selected tokens are infinitely similar to themselves
    slot = kept + tl.cumsum(rest.to(tl.int32), axis=0) - 1
    tl.store(order + slot, place.to(tl.int64), mask=rest & (slot < tokens))


def farthest_first_triton(similarity_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """As `workers.token_reduction.hquota_ops.farthest_first`, in one launch with one program for
    each image.
    """
    B, N, _ = similarity_BNN.shape
    order_BN = torch.empty((B, N), dtype=torch.int64, device=similarity_BNN.device)
    block = triton.next_power_of_2(N)
    warps = min(max(block // 128, 1), 16)
    _farthest[(B,)](
        similarity_BNN.contiguous(),
        first_BQ.contiguous(),
        order_BN,
        N,
        first_BQ.shape[1],
        kept,
        BLOCK=block,
        num_warps=warps,
    )
    return order_BN
