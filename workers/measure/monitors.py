"""Monitors: system metrics while arms are timed, and flags where they cast doubt on the times."""

import contextlib
import functools
import operator
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import pynvml

from sweeps.job import Device
from workers.measure.environment import cgroup_folders, cores_of_threads, gpu, read_text

FOREIGN_CORES = 0.10
"""`contended` from here on: others used 10 % of a core beyond what idle cores could give them."""
FOREIGN_S = 0.05
"""... and at least 50 ms in all, because the kernel counts CPU time in ticks of about 10 ms."""
LOOK_S = 0.3
"""Without contention for so long the cores count as free again."""
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
    process may use), quota_throttled_s, and those of `GpuSamples`.
    """
    seen, samples = Watch(), GpuSamples()
    with contextlib.ExitStack() as stack:
        if device == "cuda":
            handle = stack.enter_context(gpu())
            stack.enter_context(repeated(functools.partial(samples.add, handle), GPU_PERIOD_S))
        before = _counters(threads)
        try:
            yield seen
        finally:
            after = _counters(threads)
    flags: set[str] = set()
    for readings, reasons in (cpu_findings(before, after, threads), samples.findings()):
        seen.readings |= readings
        flags |= reasons
    seen.flags = tuple(sorted(flags))


@contextlib.contextmanager
def repeated(read: Callable[[], object], period_s: float) -> Iterator[None]:
    """Call `read` before the block, in a thread every `period_s` seconds, and after it."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(period_s):
            read()

    read()
    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        read()


class Patience:
    """Waits while other processes use the cores of `threads` threads, for at most `limit_s` seconds in all."""

    def __init__(self, threads: int, limit_s: float, read: Callable[[], Mapping[str, float]] | None = None) -> None:
        """`read` gives the counters so far, by default those of this process' cores."""
        self.threads, self.limit_s = threads, limit_s
        self.waited_s = 0.0
        self._read = read or functools.partial(_counters, threads)
        self._before = self._read()

    def wait(self) -> None:
        """Look at what others used since the last look, and if it was contention, wait until a while without it."""
        while True:
            before, self._before = self._before, self._read()
            contended = "contended" in cpu_findings(before, self._before, self.threads)[1]
            if not contended or self.waited_s >= self.limit_s:
                return
            pause_s = min(LOOK_S, self.limit_s - self.waited_s)
            time.sleep(pause_s)
            self.waited_s += pause_s


def cpu_findings(before: Mapping[str, float], after: Mapping[str, float], threads: int) -> tuple[dict[str, float], set[str]]:
    """Readings and flags that follow from two readings of `_counters`."""
    spent = {name: after[name] - before[name] for name in before.keys() & after.keys()}
    wall, own = spent["wall"], spent["own"]
    readings = {"seconds": wall, "load_before": before["load"], "load_after": after["load"], "process_cores": own / wall}
    flags = set()
    if "involuntary" in spent:
        readings["involuntary_switches"] = spent["involuntary"]
    if "busy" in spent:
        stolen, foreign = spent["stolen"], max(0.0, spent["busy"] - own)
        readings |= {"foreign_cores": foreign / wall, "stolen_cores": stolen / wall}
        spare = max(0, len(cores_of_threads(threads)) - threads)
        if foreign + stolen - spare * wall > max(FOREIGN_CORES * wall, FOREIGN_S):
            flags.add("contended")
    if "throttled" in spent:
        readings["quota_throttled_s"] = spent["throttled"]
        if spent["throttled"] > 0:
            flags.add("throttled")
    return readings, flags


def _counters(threads: int) -> dict[str, float]:
    """Counters so far, in seconds but for `load` and `involuntary`; those that this kernel does not offer are absent."""
    found = {"wall": time.perf_counter(), "own": time.process_time(), "load": os.getloadavg()[0], **_cpu_seconds(threads)}
    found |= _throttled()
    # The threads of torch's pools persist, so that none of their switches is lost.
    with contextlib.suppress(ValueError):
        statuses = map(read_text, Path("/proc/self/task").glob("*/status"))
        switches = [int(status.rpartition("nonvoluntary_ctxt_switches:")[2]) for status in statuses if status]
        found |= {"involuntary": float(sum(switches))} if sum(switches) else {}
    return found


def _cpu_seconds(threads: int) -> dict[str, float]:
    """Busy and stolen seconds over the cores that so many threads may use (man 5 proc_stat)."""
    rows = [line.split() for line in read_text("/proc/stat").splitlines()]
    if not rows:
        return {}
    wanted = {f"cpu{core}" for core in cores_of_threads(threads)}
    busy = stolen = 0
    for name, *counts in rows:
        if name in wanted:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, counts[:8])
            busy += user + nice + system + irq + softirq
            stolen += steal
    ticks = os.sysconf("SC_CLK_TCK")
    return {"busy": busy / ticks, "stolen": stolen / ticks}


def _throttled() -> dict[str, float]:
    """Seconds in which a cgroup quota kept this process from running."""
    for folder in cgroup_folders():
        with contextlib.suppress(ValueError):
            counts = dict(line.split() for line in read_text(folder / "cpu.stat").splitlines())
            for name, per_second in (("throttled_usec", 1e6), ("throttled_time", 1e9)):
                if name in counts:
                    return {"throttled": int(counts[name]) / per_second}
    return {}


class GpuSamples:
    """Samples of one GPU.

    Readings: gpu_sm_clock_min, gpu_sm_clock_max and gpu_memory_clock_min (MHz), gpu_temperature_max (C), gpu_power_mean (W),
    gpu_event_reasons (NVML's bits, all that were seen), gpu_power_capped (share of samples), gpu_processes.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}

    def add(self, handle: Any) -> None:
        for name, query in _GPU_QUERIES.items():
            with contextlib.suppress(pynvml.NVMLError):
                self.values.setdefault(name, []).append(float(query(handle)))

    def findings(self) -> tuple[dict[str, float], set[str]]:
        readings = {name: summary(self.values[key]) for name, key, summary in _GPU_SUMMARIES if self.values.get(key)}
        flags = set()
        if reasons := [int(bits) for bits in self.values.get("reasons", [])]:
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
