"""Counters of this machine and process: CPU time, frequency, throttling by quota and heat,
energy.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import psutil

from workers.measure.machine.environment import ROOT, cgroup_folders, cores_of_threads, read_text
from workers.measure.machine.pinning import parse_core_list
from workers.measure.machine.rapl import PackageEnergy

FREQUENCY_CORES = 8
"""The frequency is the mean of as many cores.

Reading one takes a hundredth of a millisecond to some milliseconds, and psutil reads all cores of
the machine, with their limits: it is called only where no governor sets frequencies.
"""
ONLINE = "sys/devices/system/cpu/online"
"""Below the root: the cores that are online, such as `0-7`."""
BUSY = ("user", "nice", "system", "irq", "softirq")
"""Fields of psutil's CPU times that are work; those of a guest are part of `user`."""

_C = TypeVar("_C")


class HostCounters:
    """Counters over the cores that so many threads of this process may use; those that the kernel
    does not offer are absent.

    In seconds: `wall`, `own` (CPU time of this process), `busy` and `stolen` (of the cores; man 5
    proc_stat), `throttled` (CPU time that cgroup quotas withheld, at all levels) and `thermal_s`
    (of the cores, throttled by heat). Counts: `throttles` (periods), `thermal` and `involuntary`.
    Now: `load`, `mhz`. Joules: `joules`.
    """

    def __init__(self, threads: int, root: Path = ROOT) -> None:
        """`root` is the folder that holds `proc` and `sys`; psutil has its own,
        `psutil.PROCFS_PATH`.
        """
        self._cores, self._root = cores_of_threads(threads), root
        online = parse_core_list(read_text(root / ONLINE) or f"0-{max(self._cores)}")
        self._places = [online.index(core) for core in self._cores if core in online]
        self._cgroups = cgroup_folders(root)
        self._energy = PackageEnergy(root / "sys/class/powercap")
        self.clocks: list[float] = []
        """Every reading of `mhz`."""

    def look(self) -> dict[str, float]:
        """The counters that are cheap to read, in some tenths of a millisecond."""
        found = {
            "wall": time.perf_counter(),
            "own": time.process_time(),
            "load": os.getloadavg()[0],
        }
        found |= self._cpu_seconds() | self._quota()
        if (joules := self._energy.joules()) is not None:
            found["joules"] = joules
        if (mhz := self._mhz()) is not None:
            found["mhz"] = mhz
            self.clocks.append(mhz)
        return found

    def read(self) -> dict[str, float]:
        """All of them."""
        return self.look() | self._involuntary() | self._thermal()

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
        spent: list[float] = []
        times: list[int] = []
        for folder in self._cgroups:
            with contextlib.suppress(ValueError):
                counts = dict(line.split() for line in read_text(folder / "cpu.stat").splitlines())
                for name, per_second in (("throttled_usec", 1e6), ("throttled_time", 1e9)):
                    spent += [int(counts[name]) / per_second] if name in counts else []
                times += [int(counts["nr_throttled"])] if "nr_throttled" in counts else []
        found: dict[str, float] = {}
        if spent:
            found["throttled"] = sum(spent)
        if times:
            found["throttles"] = sum(times)
        return found

    def _involuntary(self) -> dict[str, float]:
        """Of all threads: psutil counts those of the main one. Threads of torch's pools persist, so
        that none is lost.
        """
        with contextlib.suppress(ValueError):
            statuses = map(read_text, (self._root / "proc/self/task").glob("*/status"))
            switches = [
                int(status.rpartition("nonvoluntary_ctxt_switches:")[2])
                for status in statuses
                if status
            ]
            return {"involuntary": float(sum(switches))} if sum(switches) else {}
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
        for name, cores, package, unit in (
            ("thermal", "core_throttle_count", "package_throttle_count", 1.0),
            ("thermal_s", "core_throttle_total_time_ms", "package_throttle_total_time_ms", 1e-3),
        ):
            files = [
                [self._cpu_file(core, f"thermal_throttle/{each}") for core in self._cores]
                for each in (cores, package)
            ]
            of_cores, of_package = map(_numbers, files)
            if of_cores or of_package:
                found[name] = unit * (sum(of_cores) + max(of_package, default=0))
        return found

    def _cpu_file(self, core: int, name: str) -> Path:
        return self._root / f"sys/devices/system/cpu/cpu{core}/{name}"


def _numbers(files: Iterable[Path]) -> list[int]:
    """The whole numbers in the files that can be read."""
    texts = (read_text(file).strip() for file in files)
    return [int(text) for text in texts if text.isdigit()]
