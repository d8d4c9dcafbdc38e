"""Samples of one GPU by NVML while arms are timed: clocks, temperature, power, clocks event
reasons, and who else uses it.
"""

import contextlib
import functools
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from statistics import mean
from typing import Any

import pynvml

from sweeps.model.metrics import REASON

EVENT_REASONS: Mapping[str, int] = {
    "gpu_idle": pynvml.nvmlClocksEventReasonGpuIdle,
    "applications_clocks_setting": pynvml.nvmlClocksEventReasonApplicationsClocksSetting,
    "sw_power_cap": pynvml.nvmlClocksEventReasonSwPowerCap,
    "hw_slowdown": pynvml.nvmlClocksEventReasonHwSlowdown,
    "sync_boost": pynvml.nvmlClocksEventReasonSyncBoost,
    "sw_thermal_slowdown": pynvml.nvmlClocksEventReasonSwThermalSlowdown,
    "hw_thermal_slowdown": pynvml.nvmlClocksEventReasonHwThermalSlowdown,
    "hw_power_brake_slowdown": pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
    "display_clock_setting": pynvml.nvmlClocksEventReasonDisplayClockSetting,
}
"""NVML's clocks event reasons by name; each is a bit."""
_HEAT = EVENT_REASONS["sw_thermal_slowdown"] | EVENT_REASONS["hw_thermal_slowdown"]
_BRAKE = EVENT_REASONS["hw_power_brake_slowdown"]
_MIB = 2**20


def slowdowns(bits: int) -> set[str]:
    """The flags that follow from the reasons held at one moment.

    A software power cap is normal on large GPUs under load and affects both arms: it is only
    recorded. `hw_slowdown` comes with heat and power brakes; alone it stands for another cause.
    """
    flags: set[str] = {"thermal_slowdown"} if bits & _HEAT else set()
    flags |= {"power_brake"} if bits & _BRAKE else set()
    return flags or ({"hardware_slowdown"} if bits & EVENT_REASONS["hw_slowdown"] else set())


def foreign_mib(processes: Iterable[Any], own: int) -> float | None:
    """MiB of the GPU that the other of some NVML processes hold; `None` where that cannot be known.

    Inside a container NVML numbers processes otherwise than this one: a single one is then this
    process.
    """
    listed = list(processes)
    others = [each for each in listed if each.pid != own]
    if len(others) == len(listed):
        return 0.0 if len(listed) == 1 else None
    held = [each.usedGpuMemory for each in others]
    return None if None in held else sum(held) / _MIB


GPU_QUERIES: Mapping[str, Callable[[Any], float | None]] = {
    "sm_clock": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "memory_clock": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "temperature": lambda handle: pynvml.nvmlDeviceGetTemperature(
        handle, pynvml.NVML_TEMPERATURE_GPU
    ),
    "power": lambda handle: pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
    "reasons": pynvml.nvmlDeviceGetCurrentClocksEventReasons,
    "processes": lambda handle: len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)),
    "memory_used": lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).used / _MIB,
    "memory_foreign": lambda handle: foreign_mib(
        pynvml.nvmlDeviceGetComputeRunningProcesses(handle), os.getpid()
    ),
}
"""What is read of a device by its handle; `None` or an `NVMLError` where it is not offered."""
_SUMMARIES: tuple[tuple[str, str, Callable[[list[float]], float]], ...] = (
    ("gpu_sm_clock_min", "sm_clock", min),
    ("gpu_sm_clock_max", "sm_clock", max),
    ("gpu_memory_clock_min", "memory_clock", min),
    ("gpu_temperature_max", "temperature", max),
    ("gpu_power_mean", "power", mean),
    ("gpu_processes", "processes", max),
    ("gpu_memory_used_max", "memory_used", max),
    ("gpu_memory_foreign_max", "memory_foreign", max),
)
_IN_SERIES = ("sm_clock", "memory_clock", "temperature", "power", "reasons")


class GpuSamples:
    """Samples so far, by the names of the queries; what the device does not offer is absent."""

    def __init__(self, queries: Mapping[str, Callable[[Any], float | None]] = GPU_QUERIES) -> None:
        self.values: dict[str, list[float]] = {}
        self._queries = queries

    def add(self, handle: Any) -> None:
        """Take one sample."""
        for name, query in self._queries.items():
            with contextlib.suppress(pynvml.NVMLError):
                if (value := query(handle)) is not None:
                    self.values.setdefault(name, []).append(float(value))

    def last(self) -> dict[str, float]:
        """The newest sample, with the names of `sweeps.model.metrics.SYSTEM_SERIES`."""
        return {
            f"gpu_{name}": self.values[name][-1] for name in _IN_SERIES if self.values.get(name)
        }

    def findings(self) -> tuple[dict[str, float], set[str]]:
        """Readings (`sweeps.model.metrics`) and flags."""
        readings = {
            name: summary(self.values[key])
            for name, key, summary in _SUMMARIES
            if self.values.get(key)
        }
        flags: set[str] = set()
        if reasons := [int(bits) for bits in self.values.get("reasons", [])]:
            readings["gpu_event_reasons"] = float(functools.reduce(operator.or_, reasons))
            readings["gpu_power_capped"] = mean(
                bool(bits & EVENT_REASONS["sw_power_cap"]) for bits in reasons
            )
            shares = {
                name: mean(bool(bits & bit) for bits in reasons)
                for name, bit in EVENT_REASONS.items()
            }
            readings |= {f"{REASON}{name}": share for name, share in shares.items() if share}
            flags |= set[str]().union(*map(slowdowns, reasons))
        if readings.get("gpu_processes", 0) > 1:
            # one is ours; process numbers cannot be compared from inside a container
            flags.add("contended")
        return readings, flags
