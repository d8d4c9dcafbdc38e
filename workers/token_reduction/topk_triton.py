"""Selection of tokens by attention weights as one fused Triton kernel: sum over heads, ranking and
moving in one launch.

Import it only where Triton is installed. Equal scores are ordered by index, and NaN scores come
before all others.
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
