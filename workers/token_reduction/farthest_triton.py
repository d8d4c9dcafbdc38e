"""Farthest-first selection as one fused Triton kernel: the loop over the tokens runs inside it, not a launch for each of them.

Import it only where Triton is at hand. What is selected is what `workers.token_reduction.hquota_ops.farthest_first` says.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit  # type: ignore[untyped-decorator]
def _farthest(likeness, first, order, tokens, hubs, kept, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """One image: how near each token is to those chosen stays in registers; each step reads one row of the likenesses."""
    image = tl.program_id(0).to(tl.int64)
    rows, first, order = likeness + image * tokens * tokens, first + image * hubs, order + image * tokens
    place = tl.arange(0, BLOCK)
    inside = place < tokens
    nearest = tl.where(inside, -float("inf"), float("inf"))
    for step in range(kept):
        given = tl.load(first + step, mask=step < hubs, other=0).to(tl.int32)
        chosen = tl.where(step < hubs, given, tl.argmin(nearest, axis=0))
        tl.store(order + step, chosen.to(tl.int64))
        row = tl.load(rows + chosen * tokens + place, mask=inside, other=float("inf")).to(tl.float32)
        nearest = tl.maximum(nearest, row)
    left = inside & (nearest < float("inf"))  # the chosen are infinitely near to themselves
    behind = kept + tl.cumsum(left.to(tl.int32), axis=0) - 1
    tl.store(order + behind, place.to(tl.int64), mask=left & (behind < tokens))


def farthest_first(likeness_BNN: Tensor, first_BQ: Tensor, kept: int) -> Tensor:
    """As `workers.token_reduction.hquota_ops.farthest_first`, in one launch with one program for each image."""
    B, N, _ = likeness_BNN.shape
    order_BN = torch.empty((B, N), dtype=torch.int64, device=likeness_BNN.device)
    block = triton.next_power_of_2(N)
    warps = min(max(block // 128, 1), 16)
    _farthest[(B,)](
        likeness_BNN.contiguous(), first_BQ.contiguous(), order_BN, N, first_BQ.shape[1], kept, BLOCK=block, num_warps=warps
    )
    return order_BN
