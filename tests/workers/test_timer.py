"""The stopwatch and the inner loop."""

import time

import pytest
import torch

from workers.measure import peaks
from workers.measure.peaks import bandwidth
from workers.measure.timer import MIN_RESOLUTIONS, MIN_SAMPLE_S, inner_loop, resolution, stopwatch

pytestmark = pytest.mark.alone


@pytest.mark.parametrize("forward_s", [1e-7, 3e-5, 4e-4, 1e-3, 0.2])
def test_a_sample_is_as_long_as_promised_and_no_longer_than_needed(forward_s: float) -> None:
    """Both minimum lengths are reached, and one forward less would not do."""
    inner = inner_loop(forward_s)
    needed = max(MIN_SAMPLE_S, MIN_RESOLUTIONS * resolution())
    assert inner * forward_s >= needed * (1 - 1e-9)
    assert inner == 1 or (inner - 1) * forward_s < needed


def test_cpu_time_is_per_forward() -> None:
    """Of ten sleeps of 2 ms each takes a tenth of all, and 2 ms at least."""
    calls = []

    def step() -> None:
        calls.append(None)
        time.sleep(0.002)

    began = time.perf_counter()
    timing = stopwatch("cpu")(step, 10)
    took = time.perf_counter() - began
    assert len(calls) == 10
    assert 0.002 <= timing.wall <= took / 10
    assert timing.device is None


def test_the_peak_of_reading_is_the_best_of_all_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never lowered, and nothing that ran lies above it."""
    slow = 0.001
    monkeypatch.setattr(peaks, "_FASTEST", {("cpu", torch.get_num_threads()): slow})
    first = bandwidth("cpu")
    assert first > 100 * slow
    assert bandwidth("cpu") >= first
    assert bandwidth("cpu", reached=1e6) == 1e6
    assert bandwidth("cpu") == 1e6
