"""A process that prints the times of waiting threads (`WaitTimes`, JSON): a turn of libgomp, a
wake-up, and the gap between operators of torch; a second, and the import of torch.
"""

import json
import os
import sys
import time
from statistics import median, quantiles

import torch
from torch import nn

from workers.measure.counters import HostCounters
from workers.measure.monitors import cpu_findings
from workers.waiting import PROBE_SPINS, WaitTimes

SLEEP_S = 0.02
"""Longer than `PROBE_SPINS` turns take."""
MIN_TURN_S = 3e-10
"""A turn takes a few cycles."""
REGIONS, ROUND_TRIPS, FORWARDS = 12, 200, 60
WIDTH, PRODUCTS = 192, 16


def measure_times() -> WaitTimes:
    """All of them, where threads spin for `PROBE_SPINS` turns. Raises `RuntimeError` where
    they do not.
    """
    threads = torch.get_num_threads()
    counters = HostCounters(threads)
    before = counters.look()
    wake_s = wake_seconds()  # before threads are started, which would be pinned too
    turn_s = turn_seconds(threads)
    gap_s = gap_seconds()
    _, flags = cpu_findings(before, counters.look(), threads)
    return WaitTimes(turn_s, wake_s, gap_s, "contended" in flags)


def wake_seconds() -> float:
    """Half of the median round trip of a byte between two processes, on two cores, that sleep until
    it comes.
    """
    cores = os.sched_getaffinity(0)
    (question, ask), (reply, answer) = os.pipe(), os.pipe()
    other = os.fork()
    if not other:
        for _ in range(ROUND_TRIPS):
            os.write(answer, os.read(question, 1))
        os._exit(0)
    os.sched_setaffinity(other, {max(cores)})
    os.sched_setaffinity(0, {min(cores)})
    seconds = []
    for _ in range(ROUND_TRIPS):
        start = time.perf_counter()
        os.write(ask, b"?")
        os.read(reply, 1)
        seconds.append(time.perf_counter() - start)
    os.sched_setaffinity(0, cores)
    return median(seconds) / 2


def turn_seconds(threads: int) -> float:
    """CPU time, per turn, of threads that wait while the main one sleeps; the longest, since a
    thread that loses its core spins less. Raises `RuntimeError` where none spins.
    """

    def sleep() -> float:
        start = time.process_time()
        time.sleep(SLEEP_S)
        return time.process_time() - start

    x, seconds = torch.zeros(threads * 2**15), []
    for _ in range(REGIONS):
        x.add_(1)
        seconds.append(sleep() - sleep())
    turn_s = max(seconds) / int(PROBE_SPINS) / max(1, threads - 1)
    if turn_s < MIN_TURN_S:
        raise RuntimeError(f"{threads} threads of torch do not spin as libgomp's do")
    return turn_s


def gap_seconds() -> float:
    """From the end of a product until the next, by one thread: for each place in a small model the
    shortest of all forwards, and of these nine tenths are shorter.
    """
    stamps: list[float] = []

    class Product(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            stamps.append(time.perf_counter())
            product = super().forward(x)
            stamps.append(time.perf_counter())
            return product

    parts = (Product(WIDTH, WIDTH), nn.Dropout(), nn.LayerNorm(WIDTH), nn.GELU())
    model = nn.Sequential(*parts * PRODUCTS).eval()
    torch.set_num_threads(1)
    gaps: list[list[float]] = []
    with torch.inference_mode():
        for _ in range(FORWARDS):
            stamps.clear()
            model(torch.zeros(1, 5, WIDTH))
            gaps.append([b - a for a, b in zip(stamps[1:-1:2], stamps[2::2], strict=True)])
    shortest = [min(place) for place in zip(*gaps, strict=True)]
    return float(quantiles(shortest, n=10)[-1])


if __name__ == "__main__":
    try:
        times = measure_times()
    except Exception as error:
        times = WaitTimes(problem=f"{type(error).__name__}: {error}")
    sys.stdout.write(json.dumps(times))
