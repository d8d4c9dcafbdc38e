"""Counters and sensors of this machine: CPU time, frequency, throttling and energy of the host, and
samples of a GPU by NVML.
"""

import contextlib
import functools
import operator
import os
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, TypeVar

import psutil
import pynvml

from sweeps.model.metrics import REASON
from workers.measure.environment import ROOT, cgroup_folders, cores_of_threads, read_text
from workers.measure.optional import optional, optional_value
from workers.measure.threads import parse_core_list

FREQUENCY_CORES = 8
"""The frequency is the mean of as many cores.

Reading one takes a hundredth of a millisecond to some milliseconds, and psutil reads all cores of
the machine, with their limits: it is called only where no governor sets frequencies.
"""
ONLINE = "sys/devices/system/cpu/online"
"""Below the root: the cores that are online, such as `0-7`."""
BUSY = ("user", "nice", "system", "irq", "softirq")
"""Fields of psutil's CPU times that are work; those of a guest are part of `user`."""

_QUOTA_FIELDS = (
    ("throttled_usec", "throttled", 1e6),
    ("throttled_time", "throttled", 1e9),
    ("nr_throttled", "throttles", 1.0),
)
"""Of `cpu.stat`: the counters that they are part of, and how many are one."""

_C = TypeVar("_C")


class HostCounters:
    """Counters over the cores that so many threads of this process may use; those that the kernel
    does not offer are absent.

    In seconds: `wall`, `own` (CPU time of this process, or what `own_s` counts), `busy` and
    `stolen` (of the cores; man 5 proc_stat), `throttled` (CPU time that cgroup quotas withheld, at
    all levels) and `thermal_s` (of the cores, throttled by heat). Counts: `throttles` (periods),
    `thermal` and `involuntary`. Now: `load`, `mhz`. Joules: `joules`.
    """

    def __init__(
        self,
        threads: int,
        root: Path = ROOT,
        own_s: Callable[[], float] = time.process_time,
    ) -> None:
        """`root` is the folder that holds `proc` and `sys`; psutil has its own,
        `psutil.PROCFS_PATH`. `own_s` reads `own`.
        """
        self._cores, self._root, self._own_s = cores_of_threads(threads), root, own_s
        online = parse_core_list(read_text(root / ONLINE) or f"0-{max(self._cores)}")
        self._places = [online.index(core) for core in self._cores if core in online]
        self._cgroups = cgroup_folders(root)
        self._energy = PackageEnergy(root / "sys/class/powercap")
        self.clocks: list[float] = []
        """Every reading of `mhz`."""

    def look(self) -> dict[str, float]:
        """The counters that are cheap to read, in some tenths of a millisecond."""
        readers = (self._load, self._cpu_seconds, self._quota, self._joules, self._clock)
        return {"wall": time.perf_counter(), "own": self._own_s()} | _read_all(*readers)

    def read(self) -> dict[str, float]:
        """All of them."""
        return self.look() | _read_all(self._involuntary, self._thermal)

    def _load(self) -> dict[str, float]:
        return {"load": os.getloadavg()[0]}

    def _joules(self) -> dict[str, float]:
        joules = self._energy.joules()
        return {} if joules is None else {"joules": joules}

    def _clock(self) -> dict[str, float]:
        if (mhz := self._mhz()) is None:
            return {}
        self.clocks.append(mhz)
        return {"mhz": mhz}

    def _cpu_seconds(self) -> dict[str, float]:
        with contextlib.suppress(OSError):
            if own := self._of_cores(psutil.cpu_times(percpu=True)):
                busy = sum(getattr(times, name, 0.0) for times in own for name in BUSY)
                return {"busy": busy, "stolen": sum(getattr(times, "steal", 0.0) for times in own)}
        return {}

    def _of_cores(self, rows: Sequence[_C]) -> list[_C]:
        """The rows of our cores in a list of psutil's, which has the online ones without their
        numbers.
        """
        return [rows[place] for place in self._places if place < len(rows)]

    def _quota(self) -> dict[str, float]:
        """Of every cgroup that has such counters, version 2 (`throttled_usec`) or 1
        (`throttled_time`), together.
        """
        found: dict[str, float] = {}
        for folder in self._cgroups:
            with contextlib.suppress(ValueError):
                counts = dict(line.split() for line in read_text(folder / "cpu.stat").splitlines())
                for field, name, unit in _QUOTA_FIELDS:
                    if field in counts:
                        found[name] = found.get(name, 0.0) + int(counts[field]) / unit
        return found

    def _involuntary(self) -> dict[str, float]:
        """Of all threads: psutil counts those of the main one. Threads of torch's pools persist, so
        that none is lost.
        """
        with contextlib.suppress(ValueError):
            files = (self._root / "proc/self/task").glob("*/status")
            statuses = filter(None, map(read_text, files))
            total = sum(
                int(status.rpartition("nonvoluntary_ctxt_switches:")[2]) for status in statuses
            )
            return {"involuntary": float(total)} if total else {}
        return {}

    def _mhz(self) -> float | None:
        """Of the first cores: what their governor set, or what psutil finds; `None` where neither
        is known.
        """
        cores = self._cores[:FREQUENCY_CORES]
        set_khz = _numbers(self._cpu_file(core, "cpufreq/scaling_cur_freq") for core in cores)
        if set_khz:
            return sum(set_khz) / len(set_khz) / 1e3
        with contextlib.suppress(OSError, NotImplementedError):
            if listed := self._of_cores(psutil.cpu_freq(percpu=True))[:FREQUENCY_CORES]:
                return sum(each.current for each in listed) / len(listed)
        return None

    def _thermal(self) -> dict[str, float]:
        """Events of the cores added up, with those of the package, which each of its cores counts
        alike, once.
        """
        found: dict[str, float] = {}
        for name, counter, unit in (
            ("thermal", "throttle_count", 1.0),
            ("thermal_s", "throttle_total_time_ms", 1e-3),
        ):
            of_cores, of_package = (
                _numbers(
                    self._cpu_file(core, f"thermal_throttle/{part}_{counter}")
                    for core in self._cores
                )
                for part in ("core", "package")
            )
            if of_cores or of_package:
                found[name] = unit * (sum(of_cores) + max(of_package, default=0))
        return found

    def _cpu_file(self, core: int, name: str) -> Path:
        return self._root / f"sys/devices/system/cpu/cpu{core}/{name}"


def _read_all(*readers: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What those give that do not raise."""
    found: dict[str, float] = {}
    for read in readers:
        found |= optional_value(f"counters of the host ({read.__name__})", read, {})
    return found


def _numbers(files: Iterable[Path]) -> list[int]:
    """The whole numbers in the files that can be read."""
    texts = (read_text(file).strip() for file in files)
    return [int(text) for text in texts if text.isdigit()]


POWERCAP = Path("/sys/class/powercap")
"""Folder of the kernel's powercap framework (Documentation/power/powercap in Linux); AMD's
processors are in it as well."""


class PackageEnergy:
    """What the packages of this machine and their memory took since this was made, whoever used
    them.
    """

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self._domains = energy_domains(powercap)
        self._ranges = [_number(domain / "max_energy_range_uj") or 0 for domain in self._domains]
        self._last, self._spent_uj = self._read(), 0

    def _read(self) -> list[int] | None:
        """Microjoules of every domain; `None` where there is none, or one cannot be read."""
        counts = [_number(domain / "energy_uj") for domain in self._domains]
        known = [count for count in counts if count is not None]
        return known if known and len(known) == len(counts) else None

    def joules(self) -> float | None:
        """Joules since the start; `None` where a counter cannot be read, or wraps at a range that
        cannot, from then on.

        A counter that wrapped is only right if it was read since its last wrap, which takes minutes
        or more.
        """
        now, before = self._read(), self._last
        if now is None or before is None:
            self._last = None
            return None
        steps = [
            new - old if new >= old else new - old + largest
            for new, old, largest in zip(now, before, self._ranges, strict=True)
        ]
        self._last = now if min(steps) >= 0 else None
        self._spent_uj += sum(steps)
        return None if self._last is None else self._spent_uj / 1e6


def energy_domains(powercap: Path = POWERCAP) -> list[Path]:
    """Folders of the packages and of the memory beside them.

    Not of parts of a package (cores, uncore), of the platform, which holds the packages, nor of a
    second way to the same counters (`intel-rapl-mmio`).
    """
    folders = sorted(powercap.glob("intel-rapl:*"))
    return [
        folder
        for folder in folders
        if read_text(folder / "name").strip().partition("-")[0] in ("package", "dram")
    ]


def energy_problem(powercap: Path = POWERCAP) -> str:
    """Why no energy of the CPU can be read here; empty where it can."""
    domains = energy_domains(powercap)
    if not domains:
        return (
            f"the kernel offers no counters of the packages ({powercap}/intel-rapl:*), as in most"
            " virtual machines"
        )
    unreadable = [folder for folder in domains if _number(folder / "energy_uj") is None]
    if unreadable:
        return (
            f"{unreadable[0] / 'energy_uj'} cannot be read by this user; by default only root may"
        )
    return ""


def _number(path: Path) -> int | None:
    return next(iter(_numbers([path])), None)


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
_SLOWDOWNS = {
    "thermal_slowdown": EVENT_REASONS["sw_thermal_slowdown"] | EVENT_REASONS["hw_thermal_slowdown"],
    "power_brake": EVENT_REASONS["hw_power_brake_slowdown"],
}
"""Flags by the reasons that raise them."""
_MIB = 2**20


def slowdowns(bits: int) -> set[str]:
    """The flags that follow from the reasons held at one moment.

    A software power cap is normal on large GPUs under load and affects both arms: it is only
    recorded. `hw_slowdown` comes with heat and power brakes; alone it stands for another cause.
    """
    flags = {flag for flag, reasons in _SLOWDOWNS.items() if bits & reasons}
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


def competing(processes: Iterable[Any], waiting: Container[int]) -> int:
    """How many NVML processes may compute: this one, and all but those `waiting` for its end."""
    return sum(each.pid not in waiting for each in processes)


def ancestors() -> frozenset[int]:
    """Processes that wait for this one, which may hold a CUDA context of earlier jobs."""
    return frozenset(each.pid for each in psutil.Process().parents())


GPU_QUERIES: Mapping[str, Callable[[Any], float | None]] = {
    "sm_clock": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "memory_clock": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "temperature": lambda handle: pynvml.nvmlDeviceGetTemperature(
        handle, pynvml.NVML_TEMPERATURE_GPU
    ),
    "power": lambda handle: pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
    "reasons": pynvml.nvmlDeviceGetCurrentClocksEventReasons,
    "processes": lambda handle: competing(
        pynvml.nvmlDeviceGetComputeRunningProcesses(handle), ancestors()
    ),
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
            with optional(f"{name} of the GPU"), contextlib.suppress(pynvml.NVMLError):
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
            shares = {
                name: mean(bool(bits & bit) for bits in reasons)
                for name, bit in EVENT_REASONS.items()
            }
            readings["gpu_power_capped"] = shares["sw_power_cap"]
            readings |= {f"{REASON}{name}": share for name, share in shares.items() if share}
            flags |= set[str]().union(*map(slowdowns, reasons))
        if readings.get("gpu_processes", 0) > 1:
            # one is ours; process numbers cannot be compared from inside a container
            flags.add("contended")
        return readings, flags
