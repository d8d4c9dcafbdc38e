"""Energy and mean power of a stretch of work: on a GPU through NVML, on a CPU through RAPL where it
can be read.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pynvml

from sweeps.model.condition import Device
from sweeps.model.outcome import MetricValue
from workers.measure.machine.environment import gpu
from workers.measure.machine.monitors import repeated
from workers.measure.machine.rapl import POWERCAP, PackageEnergy
from workers.measure.readings.metric_values import metric_value
from workers.measure.readings.timer import synchronise

POWER_PERIOD_S = 0.02


@dataclass
class Energy:
    """Filled in when the block of `measured_energy` ends: joules and seconds, or `None` where
    nothing can be read.
    """

    joules: float | None = None
    seconds: float = 0.0

    def metrics(self, work: Mapping[str, int], n: int) -> list[MetricValue]:
        """Joules per each thing that was made, by its name in the singular, and mean power; nothing
        where there is none to read.
        """
        if self.joules is None:
            return []
        per = [
            metric_value(f"energy_per_{name}", self.joules / made, n=n)
            for name, made in work.items()
            if made
        ]
        return [*per, metric_value("mean_power", self.joules / self.seconds, n=1)]


def measures_energy(device: Device, powercap: Path = POWERCAP) -> bool:
    """Whether a pass for the energy of an arm is worth its time: on a CPU only where its counters
    can be read.
    """
    return device == "cuda" or PackageEnergy(powercap).joules() is not None


@contextlib.contextmanager
def measured_energy(device: Device, powercap: Path = POWERCAP) -> Iterator[Energy]:
    """Measure the energy that the device takes in the block; it should last 2 s or more.

    Of a GPU by its total energy counter (Volta and later), which moves in steps of some 20 to 100
    ms, else by sampled power. Of a CPU by the counters of its packages and memory in `powercap`, in
    which idle cores and other processes count too.
    """
    spent = Energy()
    if device == "cpu":
        packages, start = PackageEnergy(powercap), time.perf_counter()
        try:
            yield spent
        finally:
            spent.seconds = time.perf_counter() - start
            spent.joules = packages.joules()
        return
    with gpu() as handle:
        meter = _meter(handle)
        synchronise(device)
        start = time.perf_counter()
        with meter as joules:
            try:
                yield spent
            finally:
                synchronise(device)
                spent.seconds = time.perf_counter() - start
        spent.joules = joules() if joules is not None else None


def _meter(handle: Any) -> "contextlib.AbstractContextManager[Callable[[], float] | None]":
    """The first way of metering that this GPU offers; after its block what it returns gives the
    joules.
    """
    for read, meter in (
        (pynvml.nvmlDeviceGetTotalEnergyConsumption, _counted),
        (pynvml.nvmlDeviceGetPowerUsage, _integrated),
    ):
        with contextlib.suppress(pynvml.NVMLError):
            read(handle)
            return meter(handle)
    return contextlib.nullcontext()


@contextlib.contextmanager
def _counted(handle: Any) -> Iterator[Callable[[], float]]:
    """By NVML's total energy counter, in millijoules since the driver was loaded."""
    counts = [pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)]
    yield lambda: (counts[1] - counts[0]) / 1e3
    counts.append(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))


@contextlib.contextmanager
def _integrated(handle: Any) -> Iterator[Callable[[], float]]:
    """By power, read every 20 ms and integrated by the trapezoid rule."""
    samples: list[tuple[float, float]] = []

    def sample() -> None:
        samples.append((time.perf_counter(), pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3))

    with repeated(sample, POWER_PERIOD_S):
        yield lambda: float(
            np.trapezoid([watts for _, watts in samples], [at for at, _ in samples])
        )
