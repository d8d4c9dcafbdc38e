"""The row-skipping product as a Triton kernel: active inputs are split over programs, whose sums
are added afterwards.

After the split-K kernel of TEAL (arXiv 2408.14690, section 5.1), but without atomic additions, so
that equal inputs have equal results. Import it only where Triton is installed.

Shapes: I inputs, O outputs, K active inputs, S splits.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS_PER_PROGRAM = 64
COLUMNS_PER_PROGRAM = 128


@triton.jit  # type: ignore[untyped-decorator]
def _add_rows(  # type: ignore[no-untyped-def] # noqa: PLR0917
    index,
    value,
    weight,
    partial,
    count,
    outputs,
    INDEXED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Some columns of the sum over some rows; a row whose input is zero is not read."""
    split = tl.program_id(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    place = split * ROWS + tl.arange(0, ROWS)
    own = tl.load(value + place, mask=place < count, other=0.0).to(tl.float32)
    row = (
        tl.load(index + place, mask=place < count, other=0).to(tl.int64)
        if INDEXED
        else place.to(tl.int64)
    )
    mask = (own != 0.0)[:, None] & (column < outputs)[None, :]
    read = tl.load(weight + row[:, None] * outputs + column[None, :], mask=mask, other=0.0).to(
        tl.float32
    )
    tl.store(
        partial + split * outputs + column,
        tl.sum(read * own[:, None], axis=0),
        mask=column < outputs,
    )


def multiply(index_K: Tensor | None, value_K: Tensor, weight_IO: Tensor) -> Tensor:
    """The sum of the rows at `index_K` (`None`: the first K rows) times their values: [O], summed
    in float32.
    """
    count, outputs = len(value_K), weight_IO.shape[1]
    splits = triton.cdiv(count, ROWS_PER_PROGRAM)
    partial_SO = torch.empty((splits, outputs), dtype=torch.float32, device=weight_IO.device)
    _add_rows[(triton.cdiv(outputs, COLUMNS_PER_PROGRAM), splits)](
        value_K if index_K is None else index_K,
        value_K,
        weight_IO,
        partial_SO,
        count,
        outputs,
        INDEXED=index_K is not None,
        ROWS=ROWS_PER_PROGRAM,
        COLUMNS=COLUMNS_PER_PROGRAM,
    )
    return partial_SO.sum(0).to(weight_IO.dtype)
