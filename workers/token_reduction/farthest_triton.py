"""Farthest-first selection as one fused Triton kernel: the loop over the tokens runs inside it, not
a launch for each of them.

Import it only where Triton is installed. It selects the same tokens as
`workers.token_reduction.hquota_ops.farthest_first`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


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
