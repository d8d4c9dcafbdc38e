"""Products of a few vectors and a matrix that skip inactive inputs, for the tokens that sequences
decode next, as Triton kernels.

The grid does not depend on values and thresholds lie in device memory, so that a CUDA graph can
capture them. After the split-K kernel of TEAL (arXiv 2408.14690, section 5.1), but the last program
of a block of outputs adds the sums of all splits in their order, so that equal inputs have equal
results.

Shapes: B sequences, I inputs, O outputs, S splits.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

from workers.kernels import MAX_SEQUENCES
from workers.kernels.grouping import INFINITE

ROWS, COLUMNS, SPLITS = 32, 128, 8
"""Inputs read at once, outputs of a program, and parts of the inputs: one of the three quickest
sets of prototypes on an H200."""


@triton.jit(do_not_specialize=["inputs", "kept"])
def largest_kernel(x, out, inputs, kept, BLOCK: tl.constexpr):
    """All inputs of one sequence but the `kept` of largest magnitude set to zero: the bound is
    found bit by bit, in integers, whose order is that of magnitudes.
    """
    x += tl.program_id(0) * inputs
    out += tl.program_id(0) * inputs
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
    BATCH: tl.constexpr,
    PADDED: tl.constexpr,
    BIASED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """Some outputs, summed over one part of the inputs; a row whose input is above the threshold in
    no sequence is not read. The program that arrives last adds the parts.
    """
    block, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
    column = block * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < outputs
    least = tl.load(threshold)
    share = tl.cdiv(inputs, SPLITS * ROWS) * ROWS
    end = tl.minimum((split + 1) * share, inputs)
    sequence = tl.arange(0, PADDED)
    real = sequence < BATCH
    # of one sequence a sum for each input, of several a product of small matrices
    total = tl.zeros([ROWS if BATCH == 1 else PADDED, COLUMNS], tl.float32)
    read = tl.full([], 0, tl.int32)
    for start in range(split * share, end, ROWS):
        row = start + tl.arange(0, ROWS)
        at = x + sequence[:, None] * inputs + row[None, :]
        value = tl.load(at, mask=real[:, None] & (row < end)[None, :], other=0.0)
        magnitude = tl.abs(value.to(tl.float32))
        above = ((magnitude <= least) == 0) & (row < end)[None, :]  # also what is not a number
        value = tl.where(above, value, 0.0).to(weight.dtype.element_ty)
        active = tl.max(above.to(tl.int32), axis=0) > 0
        at = weight + row[:, None].to(tl.int64) * outputs + column[None, :]
        rows = tl.load(
            at, mask=active[:, None] & inside[None, :], other=0.0, eviction_policy="evict_first"
        )
        if BATCH == 1:
            own = tl.sum(value.to(tl.float32), axis=0)
            total += rows.to(tl.float32) * own[:, None]
        else:
            total += tl.dot(value, rows, input_precision="tf32x3")
        read += tl.sum(active.to(tl.int32))
    sums = tl.sum(total, axis=0)[None, :] if BATCH == 1 else total
    mask = real[:, None] & inside[None, :]
    at = sequence[:, None] * outputs + column[None, :]
    tl.store(partial + split * BATCH * outputs + at, sums, mask=mask)
    if block == 0:
        tl.atomic_add(totals, read.to(tl.int64) * outputs * BATCH)
        if split == 0:
            tl.atomic_add(totals + 1, tl.cast(inputs, tl.int64) * outputs * BATCH)
            tl.atomic_add(totals + 2, tl.full([], 1, tl.int64))
    tl.debug_barrier()
    if tl.atomic_add(arrived + block, 1, sem="acq_rel") == SPLITS - 1:
        sums = tl.zeros([PADDED, COLUMNS], tl.float32)
        for part in range(SPLITS):
            own = partial + part * BATCH * outputs + at
            sums += tl.load(own, mask=mask, other=0.0, cache_modifier=".cg")
        if BIASED:
            sums += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)[None, :]
        tl.store(out + at, sums.to(out.dtype.element_ty), mask=mask)
        tl.store(arrived + block, 0)  # for the next product


@triton_op("breakeven::keep_largest", mutates_args=())
def keep_largest(x_BI: Tensor, kept: int) -> Tensor:
    """`x_BI` with all but the `kept` inputs of largest magnitude of each sequence set to zero; of
    equal ones those with the lowest indices stay, and what is not a number counts as infinity. One
    launch.
    """
    (sequences, inputs), x_BI = x_BI.shape, x_BI.contiguous()
    out_BI, block = torch.empty_like(x_BI), triton.next_power_of_2(inputs)
    wrap_triton(largest_kernel)[(sequences,)](
        x_BI, out_BI, inputs, kept, BLOCK=block, num_warps=min(16, max(1, block // 256))
    )
    return out_BI


@triton_op("breakeven::multiply_active", mutates_args={"arrived_C", "totals_3"})
def multiply_active(
    x_BI: Tensor,
    weight_IO: Tensor,
    threshold_1: Tensor,
    bias_O: Tensor | None,
    arrived_C: Tensor,
    totals_3: Tensor,
) -> Tensor:
    """The sum of the rows whose inputs have magnitudes above the threshold (float32), times those
    inputs, and the bias: [B, O], of the weight's dtype, summed in float32. One launch, for up to
    `MAX_SEQUENCES`; a row is read where the input of any of them is above.

    `arrived_C`, int32, has a zero for each block of `COLUMNS` outputs, and has them again behind
    the launch. To `totals_3`, int64, are added the MACs of the rows read, those of all, each for
    all sequences, and 1. Raises `ValueError` for shapes that do not fit.
    """
    inputs, outputs = weight_IO.shape
    blocks = triton.cdiv(outputs, COLUMNS)
    sequences = len(x_BI)
    fits = x_BI.shape[1:] == (inputs,) and sequences <= MAX_SEQUENCES
    if not fits or not weight_IO.is_contiguous() or len(arrived_C) < blocks:
        raise ValueError(
            f"a contiguous matrix {(inputs, outputs)} takes {inputs} inputs of up to"
            f" {MAX_SEQUENCES} sequences and {blocks} counters, not {tuple(x_BI.shape)} and"
            f" {len(arrived_C)}"
        )
    partial_SBO = torch.empty(SPLITS, sequences, outputs, dtype=torch.float32, device=x_BI.device)
    out_BO = weight_IO.new_empty(sequences, outputs)
    wrap_triton(multiply_kernel)[(blocks * SPLITS,)](
        x_BI.contiguous(),
        weight_IO,
        threshold_1,
        weight_IO if bias_O is None else bias_O,
        partial_SBO,
        arrived_C,
        totals_3,
        out_BO,
        inputs,
        outputs,
        BATCH=sequences,
        PADDED=1 if sequences == 1 else MAX_SEQUENCES,
        BIASED=bias_O is not None,
        ROWS=ROWS,
        COLUMNS=COLUMNS,
        SPLITS=SPLITS,
        num_warps=4,
        num_stages=3,
    )
    return out_BO
