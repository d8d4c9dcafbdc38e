"""The stopwatch: resolution of the timer, forwards in one sample, the time of a sample. Torch is
imported for a GPU alone.
"""

import functools
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from sweeps.model.condition import Device

MIN_SAMPLE_S = 1e-3
MIN_RESOLUTIONS = 10_000
"""A sample is at least this many times as long as the timer's resolution: the reading error stays
below 0.01 %."""

TimedStep = Callable[[], object]
"""One forward pass; its result is discarded."""


class SampleTime(NamedTuple):
    """Seconds per forward: wall time, and device time between CUDA events (`None` on a CPU)."""

    wall: float
    device: float | None


Stopwatch = Callable[[TimedStep, int], SampleTime]
"""Times a step run that many times in a row."""


@functools.cache
def resolution() -> float:
    """The smallest step, in seconds, by which two readings of the timer differ here (the cost of
    reading it included).
    """
    smallest = math.inf
    for _ in range(2000):
        start = time.perf_counter()
        while (now := time.perf_counter()) == start:
            pass
        smallest = min(smallest, now - start)
    return smallest


def inner_loop(forward_s: float) -> int:
    """Forwards that make a sample of at least 1 ms and 10 000 x the timer's resolution, when one
    takes `forward_s` seconds.
    """
    return max(1, math.ceil(max(MIN_SAMPLE_S, MIN_RESOLUTIONS * resolution()) / forward_s))


def stopwatch(device: Device, *, warm: bool = False) -> Stopwatch:
    """With `warm` a step runs once before each sample, outside its time (see `Job.warm`)."""
    timing = _cuda_stopwatch() if device == "cuda" else _cpu_timing

    def warmed(step: TimedStep, inner: int) -> SampleTime:
        step()
        return timing(step, inner)

    return warmed if warm else timing


def synchronise(device: Device) -> None:
    """Wait until `device` has finished all work; nothing to do on a CPU."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def repeat(device: Device, step: TimedStep, seconds: float, fewest: int = 1) -> int:
    """Run a step for so many seconds, and so often at least; returns how often. A GPU is waited for
    after every `fewest`.
    """
    start, runs = time.perf_counter(), 0
    while runs < fewest or time.perf_counter() - start < seconds:
        step()
        runs += 1
        if runs % fewest == 0:
            synchronise(device)
    return runs


def _cpu_timing(step: TimedStep, inner: int) -> SampleTime:
    start = time.perf_counter()
    for _ in range(inner):
        step()
    return SampleTime((time.perf_counter() - start) / inner, None)


def _cuda_stopwatch() -> Stopwatch:
    import torch

    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    for event in (began, ended):
        event.record()  # an event is created when first recorded, which must not be timed

    def timing(step: TimedStep, inner: int) -> SampleTime:
        torch.cuda.synchronize()
        start = time.perf_counter()
        began.record()
        for _ in range(inner):
            step()
        ended.record()
        torch.cuda.synchronize()
        wall = time.perf_counter() - start
        return SampleTime(wall / inner, began.elapsed_time(ended) / 1e3 / inner)

    return timing
