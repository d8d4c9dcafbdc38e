"""Counters of this machine and process from files of the kernel: CPU time, frequency, throttling by quota and heat, energy."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from workers.measure.environment import ROOT, cgroup_folders, cores_of_threads, read_text
from workers.measure.rapl import PackageEnergy

FREQUENCY_CORES = 8
"""The frequency is the mean of as many cores; reading one may take a hundredth of a millisecond to some milliseconds."""


class HostCounters:
    """Counters over the cores that so many threads of this process may use; those that the kernel does not offer are absent.

    In seconds: `wall`, `own` (CPU time of this process), `busy` and `stolen` (of the cores; man 5 proc_stat), `throttled` (CPU time
    that cgroup quotas withheld, at all levels) and `thermal_s` (of the cores, throttled by heat). Counts: `throttles` (periods),
    `thermal` and `involuntary`. Now: `load`, `mhz`. Joules: `joules`.
    """

    def __init__(self, threads: int, root: Path = ROOT) -> None:
        """`root` is the folder that holds `proc` and `sys`."""
        self._cores, self._root = cores_of_threads(threads), root
        self._cgroups = cgroup_folders(root)
        self._energy = PackageEnergy(root / "sys/class/powercap")
        self.clocks: list[float] = []
        """Every reading of `mhz`."""

    def look(self) -> dict[str, float]:
        """The counters that are cheap to read, in some tenths of a millisecond."""
        found = {"wall": time.perf_counter(), "own": time.process_time(), "load": os.getloadavg()[0]}
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
        rows = [line.split() for line in read_text(self._root / "proc/stat").splitlines()]
        wanted = {f"cpu{core}" for core in self._cores}
        busy = stolen = 0
        found = False
        for name, *counts in rows:
            if name in wanted:
                user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, counts[:8])
                busy += user + nice + system + irq + softirq
                stolen += steal
                found = True
        ticks = os.sysconf("SC_CLK_TCK")
        return {"busy": busy / ticks, "stolen": stolen / ticks} if found else {}

    def _quota(self) -> dict[str, float]:
        """Of every cgroup that has such counters, version 2 (`throttled_usec`) or 1 (`throttled_time`), together."""
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
        """The threads of torch's pools persist, so that none of their switches is lost."""
        with contextlib.suppress(ValueError):
            statuses = map(read_text, (self._root / "proc/self/task").glob("*/status"))
            switches = [int(status.rpartition("nonvoluntary_ctxt_switches:")[2]) for status in statuses if status]
            return {"involuntary": float(sum(switches))} if sum(switches) else {}
        return {}

    def _mhz(self) -> float | None:
        """Of the first cores: what their governor set, or what /proc/cpuinfo has; `None` where neither is known."""
        cores = self._cores[:FREQUENCY_CORES]
        set_khz = _numbers(self._cpu_file(core, "cpufreq/scaling_cur_freq") for core in cores)
        if set_khz:
            return sum(set_khz) / len(set_khz) / 1e3
        listed = cpuinfo_mhz(read_text(self._root / "proc/cpuinfo"))
        known = [listed[core] for core in cores if core in listed]
        return sum(known) / len(known) if known else None

    def _thermal(self) -> dict[str, float]:
        """Events of the cores added up, with those of the package, which each of its cores counts alike, once."""
        found: dict[str, float] = {}
        for name, cores, package, unit in (
            ("thermal", "core_throttle_count", "package_throttle_count", 1.0),
            ("thermal_s", "core_throttle_total_time_ms", "package_throttle_total_time_ms", 1e-3),
        ):
            files = [[self._cpu_file(core, f"thermal_throttle/{each}") for core in self._cores] for each in (cores, package)]
            of_cores, of_package = map(_numbers, files)
            if of_cores or of_package:
                found[name] = unit * (sum(of_cores) + max(of_package, default=0))
        return found

    def _cpu_file(self, core: int, name: str) -> Path:
        return self._root / f"sys/devices/system/cpu/cpu{core}/{name}"


def cpuinfo_mhz(text: str) -> dict[int, float]:
    """Frequency of each core in the text of /proc/cpuinfo, in MHz; empty where it states none, as on ARM."""
    found: dict[int, float] = {}
    core = -1
    for line in text.splitlines():
        name, _, value = line.partition(":")
        with contextlib.suppress(ValueError):
            if name.strip() == "processor":
                core = int(value)
            elif name.strip() == "cpu MHz":
                found[core] = float(value)
    return found


def _numbers(files: Iterable[Path]) -> list[int]:
    """The whole numbers in the files that can be read."""
    texts = (read_text(file).strip() for file in files)
    return [int(text) for text in texts if text.isdigit()]
