"""Energy and mean power of a stretch of work on a GPU, through NVML; on a CPU there is none to read."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml

from sweeps.job import Device
from sweeps.outcome import MetricValue
from workers.measure.environment import gpu
from workers.measure.metric_values import metric_value
from workers.measure.timer import synchronise

POWER_PERIOD_S = 0.02


@dataclass
class Energy:
    """Filled in when the block of `energy` ends: joules and seconds, or `None` where nothing can be read."""

    joules: float | None = None
    seconds: float = 0.0

    def metrics(self, work: Mapping[str, int], n: int) -> list[MetricValue]:
        """Joules per each thing that was made, by its name in the singular, and mean power; nothing where there is none to read."""
        if self.joules is None:
            return []
        per = [metric_value(f"energy_per_{name}", self.joules / made, n=n) for name, made in work.items() if made]
        return [*per, metric_value("mean_power", self.joules / self.seconds, n=1)]


@contextlib.contextmanager
def energy(device: Device) -> Iterator[Energy]:
    """Measure the energy that the GPU takes in the block, by its total energy counter (Volta and later), else by sampled power.

    The counter moves in steps of some 20 to 100 ms: a block should last 2 s or more.
    """
    spent = Energy()
    if device == "cpu":
        yield spent
        return
    with gpu() as handle:
        meter = _meter(handle)
        synchronise(device)
        start = time.perf_counter()
        if meter is not None:
            meter.start()
        try:
            yield spent
        finally:
            synchronise(device)
            spent.seconds = time.perf_counter() - start
            spent.joules = meter.stop() if meter is not None else None


class _Counter:
    """NVML's total energy counter, in millijoules since the driver was loaded."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.before = self.read()

    def read(self) -> int:
        return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle))

    def start(self) -> None:
        self.before = self.read()

    def stop(self) -> float:
        return (self.read() - self.before) / 1e3


class _Sampler:
    """Power, read every 20 ms by a thread and integrated by the trapezoid rule."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.samples: list[tuple[float, float]] = [self.read()]
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def read(self) -> tuple[float, float]:
        return time.perf_counter(), pynvml.nvmlDeviceGetPowerUsage(self.handle) / 1e3

    def sample(self) -> None:
        while not self.done.wait(POWER_PERIOD_S):
            self.samples.append(self.read())

    def start(self) -> None:
        self.samples = [self.read()]
        self.thread.start()

    def stop(self) -> float:
        self.done.set()
        self.thread.join()
        self.samples.append(self.read())
        spans = zip(self.samples, self.samples[1:], strict=False)
        return sum((later - earlier) * (power + next_power) / 2 for (earlier, power), (later, next_power) in spans)


def _meter(handle: Any) -> _Counter | _Sampler | None:
    for kind in (_Counter, _Sampler):
        with contextlib.suppress(pynvml.NVMLError):
            return kind(handle)
    return None
