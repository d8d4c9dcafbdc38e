"""Sequential memory bandwidth of this machine: the upper bound of decoding one token at a time."""

import functools
import time

import torch

from sweeps.job import Device
from workers.measure.timer import synchronise

READ_BYTES = {"cpu": 2**28, "cuda": 2**30}
"""Far more than any cache holds."""
READS = 7


def bandwidth(device: Device) -> float:
    """Gigabytes (1e9) per second of the best of 7 reads of one large tensor with the threads set now; measured once per process."""
    return _bandwidth(device, torch.get_num_threads())


@functools.cache
def _bandwidth(device: Device, threads: int) -> float:  # noqa: ARG001 - threads are set already; another number reads at another speed
    values = torch.ones(READ_BYTES[device] // 4, device=device)
    best = float("inf")
    for _ in range(READS):
        synchronise(device)
        started = time.perf_counter()
        values.sum()
        synchronise(device)
        best = min(best, time.perf_counter() - started)
    return READ_BYTES[device] / best / 1e9
