"""Products of a vector and a matrix that skip inactive inputs, for one token that is decoded, as
Triton kernels.

The grid does not depend on values and thresholds lie in device memory, so that a CUDA graph can
capture them. After the split-K kernel of TEAL (arXiv 2408.14690, section 5.1), but the last program
of a block of outputs adds the sums of all splits in their order, so that equal inputs have equal
results.

Shapes: I inputs, O outputs, S splits.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

from workers.kernels.grouping import INFINITE

ROWS, COLUMNS, SPLITS = 32, 128, 8
"""Inputs read at once, outputs of a program, and parts of the inputs: one of the three quickest
sets of prototypes on an H200."""


@triton.jit(do_not_specialize=["inputs", "kept"])
def largest_kernel(x, out, inputs, kept, BLOCK: tl.constexpr):
    """All inputs but the `kept` of largest magnitude set to zero: the bound is found bit by bit, in
    integers, whose order is that of magnitudes.
    """
    index = tl.arange(0, BLOCK)
    valid = index < inputs
    value = tl.load(x + index, mask=valid, other=0.0)
    bits = tl.abs(value.to(tl.float32)).to(tl.int32, bitcast=True)
    bits = tl.where(valid, tl.minimum(bits, INFINITE), -1)  # what is not a number is infinite
    bound = tl.full([], 0, tl.int32)
    for bit in range(31):
        higher = bound + (tl.full([], 1, tl.int32) << (30 - bit))
        bound = tl.where(tl.sum((bits >= higher).to(tl.int32)) >= kept, higher, bound)
    above, equal = bits > bound, bits == bound
    missing = kept - tl.sum(above.to(tl.int32))
    chosen = above | (equal & (tl.cumsum(equal.to(tl.int32), 0) <= missing))
    tl.store(out + index, tl.where(chosen, value, 0.0).to(out.dtype.element_ty), mask=valid)


@triton.jit(do_not_specialize=["inputs"])
def multiply_kernel(
    x,
    weight,
    threshold,
    bias,
    partial,
    arrived,
    totals,
    out,
    inputs,
    outputs,
    BIASED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """Some outputs, summed over one part of the inputs; a row whose input is not above the
    threshold is not read. The program that arrives last adds the parts.
    """
    block, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
    column = block * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < outputs
    least = tl.load(threshold)
    share = tl.cdiv(inputs, SPLITS * ROWS) * ROWS
    end = tl.minimum((split + 1) * share, inputs)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    read = tl.full([], 0, tl.int32)
    for start in range(split * share, end, ROWS):
        row = start + tl.arange(0, ROWS)
        value = tl.load(x + row, mask=row < end, other=0.0).to(tl.float32)
        active = (row < end) & ((tl.abs(value) <= least) == 0)  # also what is not a number
        at = weight + row[:, None].to(tl.int64) * outputs + column[None, :]
        rows = tl.load(
            at, mask=active[:, None] & inside[None, :], other=0.0, eviction_policy="evict_first"
        )
        total += rows.to(tl.float32) * tl.where(active, value, 0.0)[:, None]
        read += tl.sum(active.to(tl.int32))
    tl.store(partial + split * outputs + column, tl.sum(total, axis=0), mask=inside)
    if block == 0:
        tl.atomic_add(totals, read.to(tl.int64) * outputs)
        if split == 0:
            tl.atomic_add(totals + 1, tl.cast(inputs, tl.int64) * outputs)
            tl.atomic_add(totals + 2, tl.full([], 1, tl.int64))
    tl.debug_barrier()
    if tl.atomic_add(arrived + block, 1, sem="acq_rel") == SPLITS - 1:
        part = tl.arange(0, SPLITS)
        at = partial + part[:, None] * outputs + column[None, :]
        parts = tl.load(at, mask=inside[None, :], other=0.0, cache_modifier=".cg")
        sums = tl.sum(parts, axis=0)
        if BIASED:
            sums += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + column, sums.to(out.dtype.element_ty), mask=inside)
        tl.store(arrived + block, 0)  # for the next product


@triton_op("breakeven::keep_largest", mutates_args=())
def keep_largest(x_I: Tensor, kept: int) -> Tensor:
    """`x_I` with all but the `kept` inputs of largest magnitude set to zero; of equal ones those
    with the lowest indices stay, and what is not a number counts as infinity. One launch.
    """
    x_I, out_I = x_I.contiguous(), torch.empty_like(x_I, memory_format=torch.contiguous_format)
    block = triton.next_power_of_2(len(x_I))
    wrap_triton(largest_kernel)[(1,)](
        x_I, out_I, len(x_I), kept, BLOCK=block, num_warps=min(16, max(1, block // 256))
    )
    return out_I


@triton_op("breakeven::multiply_active", mutates_args={"arrived_C", "totals_3"})
def multiply_active(
    x_I: Tensor,
    weight_IO: Tensor,
    threshold_1: Tensor,
    bias_O: Tensor | None,
    arrived_C: Tensor,
    totals_3: Tensor,
) -> Tensor:
    """The sum of the rows whose inputs have magnitudes above the threshold (float32), times those
    inputs, and the bias: [O], of the weight's dtype, summed in float32. One launch.

    `arrived_C`, int32, has a zero for each block of `COLUMNS` outputs, and has them again behind
    the launch. To `totals_3`, int64, are added the MACs of the rows read, those of all, and 1.
    Raises `ValueError` for shapes that do not fit.
    """
    inputs, outputs = weight_IO.shape
    blocks = triton.cdiv(outputs, COLUMNS)
    if x_I.shape != (inputs,) or not weight_IO.is_contiguous() or len(arrived_C) < blocks:
        raise ValueError(
            f"a contiguous matrix {(inputs, outputs)} takes {inputs} inputs and {blocks} counters,"
            f" not {tuple(x_I.shape)} and {len(arrived_C)}"
        )
    partial_SO = torch.empty(SPLITS, outputs, dtype=torch.float32, device=x_I.device)
    out_O = weight_IO.new_empty(outputs)
    wrap_triton(multiply_kernel)[(blocks * SPLITS,)](
        x_I.contiguous(),
        weight_IO,
        threshold_1,
        weight_IO if bias_O is None else bias_O,
        partial_SO,
        arrived_C,
        totals_3,
        out_O,
        inputs,
        outputs,
        BIASED=bias_O is not None,
        ROWS=ROWS,
        COLUMNS=COLUMNS,
        SPLITS=SPLITS,
        num_warps=4,
        num_stages=3,
    )
    return out_O
