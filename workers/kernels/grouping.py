"""Farthest-first selection of tokens and merging of groups around them as Triton kernels.

Shapes: B images, N tokens, of which the first P are prefix tokens and n are patch tokens; K patch
tokens kept, R removed, M = P + K left; D channels, H heads, d channels of a head.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

from workers.kernels.reduction import check_heads, check_tokens, match_and_merge

INFINITE = tl.constexpr(0x7F800000)
"""Bits of infinity in float32."""


@triton.jit(do_not_specialize=["tokens", "prefix", "kept", "hubs"])
def select_kernel(
    inflow,
    size,
    unit,
    order,
    tokens,
    prefix,
    kept,
    hubs,
    SIZED: tl.constexpr,
    HEADS: tl.constexpr,
    HEADS_PADDED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One image: the hubs by inflow times size, then farthest first, then the other tokens.

    Signatures stay in registers; the row of a selected token's similarities is computed from them.
    No number is negative, so that their bits have their order.
    """
    image = tl.program_id(0).to(tl.int64)
    count = tokens - prefix
    index, head = tl.arange(0, BLOCK), tl.arange(0, HEADS_PADDED)
    valid, real = index < count, head < HEADS
    at = inflow + image * HEADS * tokens + prefix + head[:, None] * tokens + index[None, :]
    signature = tl.load(at, mask=real[:, None] & valid[None, :], other=0.0)
    strength = tl.sum(signature, axis=0)
    if SIZED:
        strength *= tl.load(size + image * tokens + prefix + index, mask=valid, other=0.0)
    length = tl.sqrt(tl.sum(signature * signature, axis=0))
    signature = signature / tl.maximum(length, 1e-12)[None, :]
    unit += image * count * HEADS_PADDED
    tl.store(unit + index[None, :] * HEADS_PADDED + head[:, None], signature, mask=valid[None, :])
    tl.debug_barrier()
    order += image * count
    power = tl.where(valid, strength.to(tl.int32, bitcast=True), -1)
    nearest = tl.where(valid, 0, INFINITE)
    for step in range(kept):
        least = tl.min(nearest, axis=0)
        chosen = tl.min(tl.where(nearest == least, index, BLOCK - 1), axis=0)
        if step < hubs:
            most = tl.max(power, axis=0)
            chosen = tl.min(tl.where(power == most, index, BLOCK - 1), axis=0)
            power = tl.where(index == chosen, -1, power)
        tl.store(order + step, chosen.to(tl.int64))
        row = tl.load(unit + chosen * HEADS_PADDED + head)
        similarity = tl.sum(signature * row[:, None], axis=0)
        nearest = tl.maximum(nearest, similarity.to(tl.int32, bitcast=True))
        nearest = tl.where(index == chosen, INFINITE, nearest)
    rest = valid & (nearest < INFINITE)
    slot = kept + tl.cumsum(rest.to(tl.int32), 0) - 1
    tl.store(order + slot, index.to(tl.int64), mask=rest & (slot < count))


@triton_op("breakeven::select_farthest", mutates_args=())
def select_farthest(
    inflow_BHN: Tensor, size_BN: Tensor | None, prefix: int, kept: int, hubs: int
) -> Tensor:
    """Indices of the patch tokens, counted from the first one, [B, n]: the `hubs` with the largest
    inflow times size, then those farthest first up to `kept`, then the others.

    Distance is that of inflows by head, scaled to length 1. Of equals the first. Gonzalez,
    Clustering to minimize the maximum intercluster distance, TCS 1985. One launch.
    """
    B, H, N = inflow_BHN.shape
    heads, block = triton.next_power_of_2(H), triton.next_power_of_2(N - prefix)
    unit_BnH = torch.empty(B, N - prefix, heads, dtype=torch.float32, device=inflow_BHN.device)
    order_Bn = torch.empty(B, N - prefix, dtype=torch.int64, device=inflow_BHN.device)
    wrap_triton(select_kernel)[(B,)](
        inflow_BHN.contiguous(),
        unit_BnH if size_BN is None else size_BN.contiguous(),
        unit_BnH,
        order_Bn,
        N,
        prefix,
        kept,
        hubs,
        SIZED=size_BN is not None,
        HEADS=H,
        HEADS_PADDED=heads,
        BLOCK=block,
        num_warps=min(16, max(1, block * heads // 2048)),
    )
    return order_Bn


@triton_op("breakeven::merge_farthest", mutates_args=())
def merge_farthest(
    x_BND: Tensor,
    added_BND: Tensor,
    k_BHNd: Tensor,
    inflow_BHN: Tensor,
    size_BN: Tensor | None,
    weight_D: Tensor,
    bias_D: Tensor,
    eps: float,
    prefix: int,
    kept: int,
    hubs: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The `kept` tokens of `select_farthest`, each with those of the others whose keys are most
    similar to its own, as means weighted by size: tokens, their LayerNorm, [B, M, D] each, and
    sizes, [B, M] in float32.

    Tokens are `x_BND` + `added_BND`. Three launches. Raises `ValueError` for shapes that do not
    fit.
    """
    (B, N, _), H = x_BND.shape, k_BHNd.shape[1]
    left, removed = prefix + kept, N - prefix - kept
    check_tokens(x_BND, added_BND, left)
    check_heads(k_BHNd, x_BND)
    if not 1 <= hubs <= kept or removed < 1 or inflow_BHN.shape != (B, H, N):
        raise ValueError(
            f"of {N - prefix} patch tokens {kept} are to be kept, {hubs} of them hubs, by an inflow"
            f" of shape {tuple(inflow_BHN.shape)}; it takes {(B, H, N)}, a hub and one to remove"
        )
    order_Bn = select_farthest(inflow_BHN, size_BN, prefix, kept, hubs)
    norm = (weight_D, bias_D, eps)
    return match_and_merge(x_BND, added_BND, k_BHNd, size_BN, norm, prefix, prefix + kept, order_Bn)
