"""The peaks of this machine, by sequential reads and a large matrix product."""

import functools
import math
import time
from collections.abc import Iterable, Iterator

import torch
from torch.nn.functional import linear

from sweeps.model.condition import Device, Dtype
from sweeps.model.profile import Peaks
from workers.measure.optional import optional, optional_value
from workers.measure.timer import TimedStep, synchronise

READ_BYTES = {"cpu": 2**28, "cuda": 2**30}
"""Far more than any cache holds."""
READS = 3
"""Of each size, in each way, at each call."""
ROW_LENGTH = 4096
_FASTEST: dict[tuple[Device, int], float] = {}
"""By device and CPU threads."""


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
    threads that are set now; what cannot be measured is absent.
    """
    return optional_value("peaks", lambda: tuple(_peaks(device, dtypes)), ())


def _peaks(device: Device, dtypes: Iterable[Dtype]) -> Iterator[Peaks]:
    threads = torch.get_num_threads() if device == "cpu" else None
    read = bandwidth(device)
    for dtype in dict.fromkeys(dtypes):
        gflops, kernel = _fastest_product(device, dtype, threads) if dtype in _TYPES else (0.0, "")
        if gflops:
            yield Peaks(gflops=gflops, kernel=kernel, gb_per_s=read, dtype=dtype, threads=threads)


@functools.cache
def _fastest_product(device: Device, dtype: Dtype, threads: int | None) -> tuple[float, str]:  # noqa: ARG001 - a key
    """1e9 floating-point operations per second of the fastest product, and its kernel; 0 where none
    runs here. That of oneDNN for bfloat16 needs AVX-512.
    """
    best, size = (0.0, ""), SMALLEST
    while True:
        left, right = (torch.randn(size, size, device=device).to(_TYPES[dtype]) for _ in range(2))
        products = {"torch.mm": functools.partial(torch.mm, left, right)}
        if device == "cpu" and dtype in ONEDNN and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            with optional(f"{dtype} products by oneDNN"):
                blocked = left.to_mkldnn(), right.to_mkldnn()
                products["oneDNN"] = functools.partial(linear, *blocked)
        fastest = math.inf
        for kernel, product in products.items():
            with optional(f"{dtype} products by {kernel}"):
                product()
                seconds = min(_seconds(device, product) for _ in range(PRODUCTS))
                best = max(best, (2 * size**3 / seconds / 1e9, kernel))
                fastest = min(fastest, seconds)
        if fastest >= ENOUGH_S or size >= LARGEST[device]:
            return best
        size *= 2
