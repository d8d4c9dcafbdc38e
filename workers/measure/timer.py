"""The stopwatch: resolution of the timer, forwards in one sample, the time of a sample; and the
peaks of this machine, by sequential reads and a large matrix product.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch.nn.functional import linear

from sweeps.model.condition import Device, Dtype
from sweeps.model.profile import Peaks

MIN_SAMPLE_S = 1e-3
MIN_RESOLUTIONS = 10_000
"""A sample is at least this many times as long as the timer's resolution: the reading error stays
below 0.01 %."""

READ_BYTES = {"cpu": 2**28, "cuda": 2**30}
"""Far more than any cache holds."""
READS = 3
"""Of each size, in each way, at each call."""
ROW_LENGTH = 4096
_FASTEST: dict[tuple[Device, int], float] = {}
"""By device and CPU threads."""

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


def bandwidth(device: Device, reached: float = 0.0) -> float:
    """Gigabytes (1e9) per second of the fastest reads of memory in this process so far, with the
    threads set now.

    Every call reads large tensors again, in two ways, so that a moment under load is not the peak
    of all that follows; `reached` is what other work was seen to read, below which the peak cannot
    lie. The upper bound of decoding one token at a time.
    """
    key = (device, torch.get_num_threads())
    _FASTEST[key] = max(_FASTEST.get(key, 0.0), reached, *_reads(device))
    return _FASTEST[key]


def _reads(device: Device) -> Iterator[float]:
    """The rate of each of some reads: of a sum, and of a product with a vector, as decoding makes
    it.
    """
    for size in (READ_BYTES[device] // 2, READ_BYTES[device]):
        values = torch.ones(size // 4 // ROW_LENGTH, ROW_LENGTH, device=device)
        for step in (values.sum, functools.partial(torch.mv, values, values[0].clone())):
            for _ in range(READS):
                yield size / _seconds(device, step) / 1e9


def _seconds(device: Device, step: TimedStep) -> float:
    synchronise(device)
    started = time.perf_counter()
    step()
    synchronise(device)
    return time.perf_counter() - started


SMALLEST, LARGEST = 256, {"cpu": 4096, "cuda": 16384}
"""Rows of the square matrices: doubled until one product takes `ENOUGH_S`, so that a slow dtype
does not take minutes."""
ENOUGH_S = 0.05
ONEDNN: frozenset[Dtype] = frozenset({"float32", "bfloat16"})
"""Dtypes of oneDNN's own products, which are up to twice as fast as the library behind torch.mm."""
PRODUCTS = 5
"""At each size, after one that is not timed; the fastest of all counts."""
_TYPES: dict[Dtype, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "autocast-float16": torch.float16,
}


def measure_peaks(device: Device, dtypes: Iterable[Dtype]) -> tuple[Peaks, ...]:
    """The peaks of the device for each dtype of torch's products, on a CPU with the
    threads that are set now.
    """
    threads = torch.get_num_threads() if device == "cpu" else None
    read = bandwidth(device)
    return tuple(
        Peaks(gflops=gflops, kernel=kernel, gb_per_s=read, dtype=dtype, threads=threads)
        for dtype in dict.fromkeys(dtypes)
        if dtype in _TYPES
        for gflops, kernel in [_fastest_product(device, dtype, threads)]
    )


@functools.cache
def _fastest_product(device: Device, dtype: Dtype, threads: int | None) -> tuple[float, str]:  # noqa: ARG001 - a key
    """1e9 floating-point operations per second of the fastest product, and its kernel."""
    best, size = (0.0, ""), SMALLEST
    while True:
        left, right = (torch.randn(size, size, device=device).to(_TYPES[dtype]) for _ in range(2))
        products = {"torch.mm": functools.partial(torch.mm, left, right)}
        if device == "cpu" and dtype in ONEDNN and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            blocked = left.to_mkldnn(), right.to_mkldnn()
            products["oneDNN"] = functools.partial(linear, *blocked)
        fastest = math.inf
        for kernel, product in products.items():
            product()
            seconds = min(_seconds(device, product) for _ in range(PRODUCTS))
            best = max(best, (2 * size**3 / seconds / 1e9, kernel))
            fastest = min(fastest, seconds)
        if fastest >= ENOUGH_S or size >= LARGEST[device]:
            return best
        size *= 2
