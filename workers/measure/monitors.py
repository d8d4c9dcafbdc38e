"""Monitors: system metrics while arms are timed, and flags where they cast doubt on the times."""

import contextlib
import functools
import operator
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import pynvml

from sweeps.job import Device
from workers.measure.environment import cgroup_folders, gpu

FOREIGN_CORES = 0.10
"""`contended` from here on: others used 10 % of a core beyond what idle cores could give them."""
FOREIGN_S = 0.05
"""... and at least 50 ms in all, because the kernel counts CPU time in ticks of about 10 ms."""
GPU_PERIOD_S = 0.1
THROTTLE_REASONS = (
    pynvml.nvmlClocksEventReasonHwSlowdown
    | pynvml.nvmlClocksEventReasonSwThermalSlowdown
    | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    | pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown
)
"""Heat and hardware. A software power cap is normal on large GPUs under load and affects both arms: it is only recorded."""


@dataclass
class Watch:
    """Filled in when the block of `watch` ends; readings that this machine does not offer are absent."""

    readings: dict[str, float] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@contextlib.contextmanager
def watch(device: Device, threads: int) -> Iterator[Watch]:
    """Watch the machine while the block times work on `device` with so many CPU threads.

    On a CPU only counters are read, before and after: a sampling thread would disturb what is timed. On CUDA a thread reads
    NVML ten times a second. Readings: seconds, load_before, load_after, process_cores (CPU time over wall),
    involuntary_switches, foreign_cores and stolen_cores (other processes' and other machines' share of the cores this
    process may use), quota_throttled_s, and those of `_Gpu`.
    """
    seen = Watch()
    with _gpu_sampling(device) as graphics:
        before = _Counters.read()
        try:
            yield seen
        finally:
            after = _Counters.read()
    flags: set[str] = set()
    for readings, reasons in (_cpu_findings(before, after, threads), graphics.findings()):
        seen.readings |= readings
        flags |= reasons
    seen.flags = tuple(sorted(flags))


class _Counters(NamedTuple):
    """Counters of the kernel, in seconds unless the name indicates otherwise; `None` where they are missing."""

    wall: float
    own: float
    load: float
    involuntary: int | None
    busy: float | None
    stolen: float | None
    throttled: float | None

    @classmethod
    def read(cls) -> "_Counters":
        busy, stolen = _cpu_seconds()
        return cls(time.perf_counter(), time.process_time(), os.getloadavg()[0], _involuntary(), busy, stolen, _throttled())


def _cpu_findings(before: _Counters, after: _Counters, threads: int) -> tuple[dict[str, float], set[str]]:
    wall = after.wall - before.wall
    own = after.own - before.own
    readings = {"seconds": wall, "load_before": before.load, "load_after": after.load, "process_cores": own / wall}
    flags = set()
    if before.involuntary is not None and after.involuntary is not None:
        readings["involuntary_switches"] = float(after.involuntary - before.involuntary)
    if before.busy is not None and after.busy is not None and before.stolen is not None and after.stolen is not None:
        stolen = after.stolen - before.stolen
        foreign = max(0.0, after.busy - before.busy - own)
        readings |= {"foreign_cores": foreign / wall, "stolen_cores": stolen / wall}
        spare = max(0, len(os.sched_getaffinity(0)) - threads)
        excess = foreign + stolen - spare * wall
        if excess > max(FOREIGN_CORES * wall, FOREIGN_S):
            flags.add("contended")
    if before.throttled is not None and after.throttled is not None:
        readings["quota_throttled_s"] = after.throttled - before.throttled
        if after.throttled > before.throttled:
            flags.add("throttled")
    return readings, flags


def _cpu_seconds() -> tuple[float, float] | tuple[None, None]:
    """Busy and stolen seconds so far, over the cores that this process may use (man 5 proc_stat)."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None, None
    wanted = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    ticks = os.sysconf("SC_CLK_TCK")
    busy = stolen = 0
    for line in lines:
        name, *counts = line.split()
        if name in wanted:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, counts[:8])
            busy += user + nice + system + irq + softirq
            stolen += steal
    return busy / ticks, stolen / ticks


def _involuntary() -> int | None:
    """Involuntary context switches of all threads of this process; the threads of torch's pools persist, so none is lost."""
    total = 0
    try:
        for status in Path("/proc/self/task").glob("*/status"):
            with contextlib.suppress(OSError):  # a thread that ended since
                total += int(status.read_text().rpartition("nonvoluntary_ctxt_switches:")[2])
    except ValueError:
        return None
    return total or None


def _throttled() -> float | None:
    """Seconds so far in which a cgroup quota kept this process from running."""
    for folder in cgroup_folders():
        with contextlib.suppress(OSError, ValueError):
            counts = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
            if "throttled_usec" in counts:
                return int(counts["throttled_usec"]) / 1e6
            if "throttled_time" in counts:
                return int(counts["throttled_time"]) / 1e9
    return None


@contextlib.contextmanager
def _gpu_sampling(device: Device) -> Iterator["_Gpu"]:
    if device == "cpu":
        yield _Gpu(None)
        return
    with gpu() as handle:
        graphics = _Gpu(handle)
        done = threading.Event()
        thread = threading.Thread(target=graphics.sample, args=(done,), daemon=True)
        thread.start()
        try:
            yield graphics
        finally:
            done.set()
            thread.join()


class _Gpu:
    """Samples of one GPU.

    Readings: gpu_sm_clock_min, gpu_sm_clock_max and gpu_memory_clock_min (MHz), gpu_temperature_max (C), gpu_power_mean (W),
    gpu_event_reasons (NVML's bits, all that were seen), gpu_power_capped (share of samples), gpu_processes.
    """

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.values: dict[str, list[float]] = {}

    def sample(self, done: threading.Event) -> None:
        while True:
            for name, query in _GPU_QUERIES.items():
                with contextlib.suppress(pynvml.NVMLError):
                    self.values.setdefault(name, []).append(float(query(self.handle)))
            if done.wait(GPU_PERIOD_S):
                return

    def findings(self) -> tuple[dict[str, float], set[str]]:
        readings: dict[str, float] = {}
        flags = set()
        for name, key, summary in _GPU_SUMMARIES:
            if self.values.get(key):
                readings[name] = summary(self.values[key])
        reasons = [int(bits) for bits in self.values.get("reasons", [])]
        if reasons:
            seen = functools.reduce(operator.or_, reasons)
            readings["gpu_event_reasons"] = float(seen)
            readings["gpu_power_capped"] = mean(bool(bits & pynvml.nvmlClocksEventReasonSwPowerCap) for bits in reasons)
            if seen & THROTTLE_REASONS:
                flags.add("throttled")
        if readings.get("gpu_processes", 0) > 1:
            flags.add("contended")  # one is ours; process numbers cannot be compared from inside a container
        return readings, flags


_GPU_QUERIES = {
    "sm_clock": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "memory_clock": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "temperature": lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
    "power": lambda handle: pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
    "reasons": pynvml.nvmlDeviceGetCurrentClocksEventReasons,
    "processes": lambda handle: len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)),
}
_GPU_SUMMARIES: tuple[tuple[str, str, Callable[[list[float]], float]], ...] = (
    ("gpu_sm_clock_min", "sm_clock", min),
    ("gpu_sm_clock_max", "sm_clock", max),
    ("gpu_memory_clock_min", "memory_clock", min),
    ("gpu_temperature_max", "temperature", max),
    ("gpu_power_mean", "power", mean),
    ("gpu_processes", "processes", max),
)
