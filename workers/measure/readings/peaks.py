"""Peaks: what this machine reaches at best, by a large matrix product and by sequential reads;
seconds, and once per process.
"""

import time
from collections.abc import Iterable

import torch

from sweeps.model.condition import Device, Dtype
from sweeps.model.profile import Peaks
from workers.measure.readings.timer import bandwidth, synchronise

SMALLEST, LARGEST = 256, {"cpu": 4096, "cuda": 16384}
"""Rows of the square matrices: doubled until one product takes `ENOUGH_S`, so that a slow dtype
does not take minutes."""
ENOUGH_S = 0.05
PRODUCTS = 5
"""At each size, after one that is not timed; the fastest of all counts."""
_TYPES: dict[Dtype, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "autocast-float16": torch.float16,
}
_KNOWN: dict[tuple[Device, Dtype, int | None], float] = {}


def measure_peaks(device: Device, dtypes: Iterable[Dtype]) -> tuple[Peaks, ...]:
    """The peaks of the device for each dtype, on a CPU with the threads that are set now."""
    threads = torch.get_num_threads() if device == "cpu" else None
    read, found = bandwidth(device), []
    for dtype in dict.fromkeys(dtypes):
        key = (device, dtype, threads)
        if key not in _KNOWN:
            _KNOWN[key] = _gflops(device, dtype)
        found.append(Peaks(gflops=_KNOWN[key], gb_per_s=read, dtype=dtype, threads=threads))
    return tuple(found)


def _gflops(device: Device, dtype: Dtype) -> float:
    """1e9 floating-point operations per second of the fastest product."""
    best, size = 0.0, SMALLEST
    while True:
        left, right = (torch.randn(size, size, device=device).to(_TYPES[dtype]) for _ in range(2))
        torch.mm(left, right)
        fastest = float("inf")
        for _ in range(PRODUCTS):
            synchronise(device)
            started = time.perf_counter()
            torch.mm(left, right)
            synchronise(device)
            fastest = min(fastest, time.perf_counter() - started)
        best = max(best, 2 * size**3 / fastest / 1e9)
        if fastest >= ENOUGH_S or size >= LARGEST[device]:
            return best
        size *= 2
