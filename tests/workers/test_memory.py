"""Peak memory of a block, on the real process."""

import pytest
import torch

from workers.measure.readings import MIB, peak_memory


def growth(mebibytes: int) -> float:
    """MiB by which a block's peak exceeds what was resident before it, when the block fills so much
    memory.
    """
    with peak_memory("cpu") as peak:
        torch.ones(mebibytes * MIB // 4)
    values = {metric.name: metric.value for metric in peak}
    assert set(values) == {"rss_before", "peak_rss"}
    assert all(metric.unit == "MiB" for metric in peak)
    return values["peak_rss"] - values["rss_before"]


def test_the_peak_is_that_of_the_block() -> None:
    """A small block after a large one shows its own peak."""
    growth(1)
    large, small = growth(200), growth(50)
    assert large == pytest.approx(200, abs=15)
    assert small == pytest.approx(50, abs=15)
