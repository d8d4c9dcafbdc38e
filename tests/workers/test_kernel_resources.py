"""Triton's kernels compiled for three architectures without a device: at most a few bytes are
spilled, and shared memory suffices.
"""

import pytest
import torch

from tests.workers.kernel_resources import SHARED_KIB, table

MAX_SPILLED = 32
"""Bytes that the assembler stores with registers to spare."""


@pytest.mark.slow
def test_kernels_fit() -> None:
    """In float16 at the sizes of DeiT-S and ViT-L; `kernel_resources` prints other types too."""
    rows = list(table((torch.float16,)))
    assert {row.capability for _, row in rows} == set(SHARED_KIB)
    for name, row in rows:
        assert row.spilled <= MAX_SPILLED, (name, row)
        assert row.shared <= SHARED_KIB[row.capability] * 1024, (name, row)
