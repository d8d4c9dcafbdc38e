"""Monitors: system metrics while arms are timed, and flags where they, or what runs in this process
itself, cast doubt on the times.
"""

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from sweeps.model.condition import Device
from workers.measure.counters import GpuSamples, HostCounters
from workers.measure.environment import ROOT, cores_of_threads, gpu
from workers.measure.optional import optional, optional_manager, optional_value

CONTENTION = "use of the cores by others"
FOREIGN_CORES = 0.10
"""`contended` from here on: others used 10 % of a core beyond what idle cores could give them."""
FOREIGN_S = 0.05
"""... and at least 50 ms in all, because the kernel counts CPU time in ticks of about 10 ms."""
SLOWED_SHARE = 0.01
"""Time that a quota or heat took, over all CPUs, as a share of the time: less moves no median."""
LOOK_S = 0.3
"""Without contention for so long the cores count as free again."""
GPU_PERIOD_S = 0.1
SERIES_PERIOD_S = 0.2
"""Readings between rounds are at least so far apart,"""
READING_SHARE = 0.005
"""... and so far that they take no more than this share of the time."""
MAX_READINGS = 120
"""When a series is longer than this, every second reading is dropped, and from then on half as many
are taken."""


class Watch:
    """What is seen while arms are timed: between rounds, and of the whole when the block of `watch`
    ends; readings that this machine does not offer are absent.
    """

    def __init__(
        self,
        read: Callable[[], Mapping[str, float]],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.readings: dict[str, float] = {}
        self.flags: tuple[str, ...] = ()
        self._read, self._clock = read, clock
        self._began = self._due = clock()
        self._period_s = SERIES_PERIOD_S
        self._rows: list[dict[str, float]] = []

    def look(self, rounds: int) -> None:
        """Take a reading if one is due; called after each round, it costs a look at the clock
        otherwise.
        """
        now = self._clock()
        if now < self._due:
            return
        read = optional_value("readings between rounds", self._read, {})
        self._rows.append({"seconds": now - self._began, "rounds": float(rounds), **read})
        if len(self._rows) > MAX_READINGS:
            self._rows, self._period_s = self._rows[::2], 2 * self._period_s
        after = self._clock()
        self._due = after + max(self._period_s, (after - now) / READING_SHARE)

    @property
    def series(self) -> dict[str, tuple[float | None, ...]] | None:
        """The readings between rounds (`sweeps.model.metrics.SYSTEM_SERIES`) by name, each with the
        seconds since this was made and the rounds done by then; `None` where one has not this
        reading, and without any.
        """
        names = dict.fromkeys(name for row in self._rows for name in row)
        return {name: tuple(row.get(name) for row in self._rows) for name in names} or None


@optional_manager("use of the machine", lambda: Watch(dict))
@contextlib.contextmanager
def watch(
    device: Device,
    threads: int,
    root: Path = ROOT,
    own_s: Callable[[], float] = time.process_time,
    threads_s: Callable[[], Mapping[Any, float]] | None = None,
) -> Iterator[Watch]:
    """Watch the machine while the block times work on `device` with so many CPU threads, whose CPU
    time `own_s` reads, and `threads_s` that of other threads of Python there (see
    `own_disturbances`).

    On a CPU only counters are read, before, after, and between rounds (`Watch.look`): a sampling
    thread would disturb what is timed. On CUDA a thread reads NVML ten times a second.
    `sweeps.model.metrics` lists the readings; `root` has `proc` and `sys`.
    """
    counters, samples = HostCounters(threads, root, own_s), GpuSamples()
    with contextlib.ExitStack() as stack:
        # before and after the thread that samples a GPU
        disturbed = stack.enter_context(own_disturbances(threads_s or thread_seconds))
        if device == "cuda":
            handle = stack.enter_context(gpu())
            stack.enter_context(repeated(functools.partial(samples.add, handle), GPU_PERIOD_S))
        before = counters.read()
        seen = Watch(lambda: since(before, counters.look()) | samples.last())
        try:
            yield seen
        finally:
            after = counters.read()
    if counters.clocks:
        seen.readings |= {"cpu_mhz_min": min(counters.clocks), "cpu_mhz_max": max(counters.clocks)}
    flags = set(disturbed)
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
            with optional("samples of the GPU"):
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


class ContentionWait:
    """Waits while other processes use the cores of `threads` threads, for at most `limit_s` seconds
    in all.
    """

    def __init__(
        self,
        threads: int,
        limit_s: float,
        read: Callable[[], Mapping[str, float]] | None = None,
        own_s: Callable[[], float] = time.process_time,
    ) -> None:
        """`read` gives the counters so far, by default those of this process' cores, of whose CPU
        time `own_s` reads what is not others'.
        """
        self.threads, self.limit_s = threads, limit_s
        self.waited_s = 0.0
        self._read = read or optional_value(
            CONTENTION, lambda: HostCounters(threads, own_s=own_s).look, dict
        )
        self._before = optional_value(CONTENTION, self._read, {})

    def wait(self) -> None:
        """Look at what others used since the last look, and if it was contention, wait until a
        while without it.
        """
        while optional_value(CONTENTION, self._contended, False) and self.waited_s < self.limit_s:
            pause_s = min(LOOK_S, self.limit_s - self.waited_s)
            time.sleep(pause_s)
            self.waited_s += pause_s

    def _contended(self) -> bool:
        before, self._before = self._before, self._read()
        return "contended" in cpu_findings(before, self._before, self.threads)[1]


_COUNTED = {
    "involuntary": "involuntary_switches",
    "throttled": "quota_throttled_s",
    "throttles": "quota_throttles",
    "thermal": "thermal_throttles",
    "thermal_s": "thermal_throttled_s",
    "joules": "cpu_energy_j",
}
"""Counters whose increase is a reading, and the names of the readings."""


def cpu_findings(
    before: Mapping[str, float], after: Mapping[str, float], threads: int
) -> tuple[dict[str, float], set[str]]:
    """Readings and flags that follow from two readings of `HostCounters`."""
    spent = {name: after[name] - before[name] for name in before.keys() & after.keys()}
    wall, own = spent["wall"], spent["own"]
    readings = {"seconds": wall, "process_cores": own / wall}
    for name, counters in (("load_before", before), ("load_after", after)):
        if "load" in counters:
            readings[name] = counters["load"]
    readings |= {name: spent[counter] for counter, name in _COUNTED.items() if counter in spent}
    flags = set()
    if "busy" in spent:
        stolen, foreign = spent["stolen"], max(0.0, spent["busy"] - own)
        readings |= {"foreign_cores": foreign / wall, "stolen_cores": stolen / wall}
        spare = max(0, len(cores_of_threads(threads)) - threads)
        if foreign + stolen - spare * wall > max(FOREIGN_CORES * wall, FOREIGN_S):
            flags.add("contended")
    if spent.get("throttled", 0.0) > SLOWED_SHARE * wall:
        flags.add("quota_throttled")
    # before Linux 5.5 events have no duration: each counts
    if spent.get("thermal", 0.0) > 0 and spent.get("thermal_s", wall) > SLOWED_SHARE * wall:
        flags.add("thermal_slowdown")
    if "joules" in spent:
        readings["cpu_power_mean"] = spent["joules"] / wall
    return readings, flags


def since(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """A reading of a series: what the counters counted since `before`, and what holds now."""
    spent = {name: now[name] - before[name] for name in before.keys() & now.keys()}
    names = {"load": "load", "mhz": "cpu_mhz"}
    found = {names[name]: now[name] for name in names.keys() & now.keys()}
    if "busy" in spent:
        found |= {"foreign_s": max(0.0, spent["busy"] - spent["own"]), "stolen_s": spent["stolen"]}
    found |= {_COUNTED[name]: spent[name] for name in ("throttled", "joules") if name in spent}
    return found


RUNNING_SHARE = 0.02
"""A thread runs if it takes more of a core than this; the kernel counts in ticks of 10 ms."""


@optional_manager("threads of this process", set)
@contextlib.contextmanager
def own_disturbances(
    threads_s: Callable[[], Mapping[Any, float]],
) -> Iterator[set[str]]:
    """The flags of what disturbs the block, known at its end: `other_threads` of Python that run
    then and took CPU time meanwhile, which `threads_s` reads, and `traced` by a debugger, a
    profiler or a measurement of coverage.
    """
    flags = {"traced"} if is_traced() else set()
    before, start = threads_s(), time.perf_counter()
    yield flags
    least_s = max(0.02, RUNNING_SHARE * (time.perf_counter() - start))
    after = threads_s()
    if any(spent - before.get(thread, 0.0) > least_s for thread, spent in after.items()):
        flags.add("other_threads")


def is_traced() -> bool:
    """Whether Python code of this thread runs with a trace or profile function or an events tool
    (`sys.monitoring`, Python 3.12).
    """
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(
        monitoring.get_tool(tool) is not None and monitoring.get_events(tool) for tool in range(6)
    )


def thread_seconds() -> dict[int, float]:
    """CPU time of the other threads that Python started, by their number in the kernel; without
    threads of torch and BLAS, which work for the arms.
    """
    others = {
        thread.native_id
        for thread in threading.enumerate()
        if thread is not threading.current_thread()
    }
    if not others:
        return {}
    return {
        each.id: each.user_time + each.system_time
        for each in psutil.Process().threads()
        if each.id in others
    }
