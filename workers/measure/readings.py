"""Readings of one stretch of work: peak memory, energy and mean power."""

import contextlib
import ctypes
import gc
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pynvml
import torch

from sweeps.model.condition import Device
from sweeps.model.metrics import METRICS
from sweeps.model.outcome import MetricValue
from workers.measure.counters import POWERCAP, PackageEnergy
from workers.measure.environment import gpu
from workers.measure.monitors import repeated
from workers.measure.optional import optional_manager, optional_value
from workers.measure.samples import metric_value
from workers.measure.timer import synchronise


def counter_value(name: str, count: float) -> MetricValue:
    """What a method counted. Most counters are the method's own; one named like another metric
    raises `ValueError`.
    """
    if name in METRICS and METRICS[name].read != "counter":
        raise ValueError(
            f"the counter {name!r} of a method has the name of a metric; rename it in the method's"
            " file"
        )
    return MetricValue(name=name, value=float(count), unit="1")


MIB = 2**20
RESET_PEAK = "5"
"""Written to /proc/self/clear_refs, it lowers VmHWM to the memory resident now (man 5 proc); psutil
has neither."""


@optional_manager("peak memory", list)
@contextlib.contextmanager
def peak_memory(device: Device, captured_bytes: int = 0) -> Iterator[list[MetricValue]]:
    """Measure the block's peak memory in MiB; `captured_bytes` are those of a CUDA graph
    (`Captured.unseen_bytes`). The list is filled when the block ends; what cannot be measured here
    is absent.

    `rss_before` and `peak_rss` are the whole process' (Linux with a writable clear_refs only), so
    their difference is what the block added; `cuda_peak_allocated` and `cuda_peak_reserved` are
    those of torch's allocator, `cuda_allocated_before` likewise.
    """
    metrics: list[MetricValue] = []
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    values: dict[str, int] = {}
    before = _reset_process_peak()
    if device == "cuda":
        values["cuda_allocated_before"] = torch.cuda.memory_allocated()
    yield metrics
    if before is not None:
        values |= {"rss_before": before, "peak_rss": _status("VmHWM")}
    if device == "cuda":
        torch.cuda.synchronize()
        values["cuda_peak_allocated"] = torch.cuda.max_memory_allocated() + captured_bytes
        values["cuda_peak_reserved"] = torch.cuda.max_memory_reserved()
    metrics += [metric_value(name, size / MIB, n=1) for name, size in values.items()]


def trim_heap() -> None:
    """Give the freed memory that glibc keeps back to the system."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _reset_process_peak() -> int | None:
    """Resident bytes once the process' peak has been reset to them; `None` where it cannot be
    reset.
    """
    trim_heap()  # else the block would reuse freed memory unnoticed
    try:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
        return _status("VmRSS")
    except OSError:
        return None


def _status(field: str) -> int:
    match = re.search(
        rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE
    )
    if match is None:
        raise OSError(f"/proc/self/status has no field {field}")
    return int(match[1]) * 1024


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
    return device == "cuda" or optional_value(
        "energy", lambda: PackageEnergy(powercap).joules() is not None, False
    )


@optional_manager("energy", Energy)
@contextlib.contextmanager
def measured_energy(device: Device, powercap: Path = POWERCAP) -> Iterator[Energy]:
    """Measure the energy that the device takes in the block; it should last 2 s or more.

    Of a GPU by its total energy counter (Volta and later), which moves in steps of some 20 to 100
    ms, else by sampled power. Of a CPU by the counters of its packages and memory in `powercap`, in
    which idle cores and other processes count too.
    """
    spent = Energy()
    with gpu() if device == "cuda" else contextlib.nullcontext() as handle:
        meter = _meter(device, handle, powercap)
        synchronise(device)
        start = time.perf_counter()
        with meter as joules:
            try:
                yield spent
            finally:
                synchronise(device)
                spent.seconds = time.perf_counter() - start
        spent.joules = joules()


def _meter(
    device: Device, handle: Any, powercap: Path
) -> contextlib.AbstractContextManager[Callable[[], float | None]]:
    """The first way of metering that this device offers; after its block what it returns gives the
    joules.
    """
    if device == "cpu":
        return contextlib.nullcontext(PackageEnergy(powercap).joules)
    for read, meter in (
        (pynvml.nvmlDeviceGetTotalEnergyConsumption, _counted),
        (pynvml.nvmlDeviceGetPowerUsage, _integrated),
    ):
        with contextlib.suppress(pynvml.NVMLError):
            read(handle)
            return meter(handle)
    return contextlib.nullcontext(lambda: None)


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
