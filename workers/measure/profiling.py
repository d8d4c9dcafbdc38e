"""Forwards under torch's profiler: recordings of them, rounds of every arm in random order, and the
profile of each arm: classes of time of its unprofiled wall, and what ran, by phase.

A profiler slows the host, so that a profiled wall is not that of the arm. On a GPU the time of the
device is by its own clock and stays; what is left of the unprofiled wall is shared by the gaps in
the proportion of the profiled forwards (`fit_to_wall`). On a CPU the operators are the device, by
the clock of the host: less the profiler's own time (`less_profiler`), all classes keep their shares
(`share_of_wall`), and so do single operators, which add up to their class. Shapes and allocations
come from forwards of their own, whose times are not used.
"""

import functools
import gc
import re
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from sweeps.model.condition import Device
from sweeps.model.profile import Activities, Activity, ArmProfile, Phase, TimeClass
from sweeps.stats.profiles import (
    ArmWall,
    DeviceRun,
    OperatorRun,
    PhaseRounds,
    Span,
    Timeline,
    place_of_time,
    split_operators,
    split_time,
)
from sweeps.stats.roofline import DISPATCH, Work, operator_work
from workers.errors import TimedOut
from workers.measure.interleaved import ArmError, spread_order

MARK = "breakeven:"
"""Before the phase in the name of a mark, and before the name of compiled code that is no operator
of torch."""
CALL = "breakeven::"
_RUNTIME = re.compile(r"cu(da)?[A-Z]\w*")
"""Names of CUDA's runtime and driver calls."""
_WAIT = re.compile(r"Synchronize|^cudaMemcpy$")
_MEMORY = "[memory]"
_TRANSFERS: Mapping[str, Activity] = {"Memcpy": "memcpy", "Memset": "memset"}
"""By the beginning of their names; all else that runs on the device is a kernel."""
_US, _NS = 1e-6, 1e-9
LOOP, LOOPS = 500, 5
"""Calls of a tiny operator in a loop, and loops, by which the profiler's own time is measured."""


class MarkedForward(NamedTuple):
    """A marked forward: from before its first call until the device is done."""

    phase: Phase
    start: float
    end: float


@dataclass
class TorchRecording:
    """What a recording holds; times in seconds by one clock."""

    windows: list[MarkedForward] = field(default_factory=list)
    operators: list[OperatorRun] = field(default_factory=list)
    """Operators of the thread that ran the forwards, and compiled code called like one."""
    runs: list[DeviceRun] = field(default_factory=list)
    """Kernels, copies and memsets of a GPU."""
    work: list[tuple[str, float, Work]] = field(default_factory=list)
    """Of each operator its start and its work; of one whose work is known also each kernel that it
    launched, with its share of the work by its time."""
    syncs: list[Span] = field(default_factory=list)
    allocations: list[tuple[float, int]] = field(default_factory=list)
    """When, and how many bytes."""


class Recording:
    """A profiler that records until it is stopped; marks are set by `open` and `close`.

    `details` records shapes and allocations too, which slows the host further: times are taken from
    recordings without.
    """

    def __init__(self, device: Device, *, details: bool = False) -> None:
        self._bare = device == "cpu" and not details
        self.opened = 0
        """Marks set so far."""
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
        self._profile: Any = profile(
            activities=activities,
            record_shapes=details,
            profile_memory=details,
            # else torch makes events of its own at once, which takes longer than the forwards; with
            # none kept, torch 2.11 warns
            acc_events=not self._bare,
        )
        self._mark: Any = None

    def __enter__(self) -> "Recording":
        self._profile.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._profile.stop()

    def open(self, phase: Phase) -> None:
        """End the marked forward before, and begin one."""
        self.close()
        self._mark = record_function(f"{MARK}{phase}")
        self._mark.__enter__()
        self.opened += 1

    def close(self) -> None:
        """End the marked forward, if there is one."""
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None

    def read(self, itemsize: int) -> TorchRecording:
        """What was recorded, once it is stopped; `itemsize` is that of the arm's numbers in
        bytes.
        """
        results = self._profile.profiler.kineto_results
        if self._bare:
            return read_operators(results.events())
        found, began = read_events(self._profile.events(), itemsize), results.trace_start_ns()
        found.allocations = [
            ((event.start_ns() - began) * _NS, event.nbytes())
            for event in results.events()
            if event.name() == _MEMORY and event.nbytes() > 0
        ]
        return found


@functools.cache
def overhead_s() -> float:
    """Seconds that recording one operator adds to a forward on this machine's host: the least of
    some loops of a tiny operator.
    """
    number = torch.zeros(1)

    def loop() -> float:
        began = time.perf_counter()
        for _ in range(LOOP):
            number.add_(1)
        return time.perf_counter() - began

    bare = min(loop() for _ in range(LOOPS))
    with Recording("cpu"):
        recorded = min(loop() for _ in range(LOOPS))
    return max(0.0, recorded - bare) / LOOP


def called(name: str) -> AbstractContextManager[object]:
    """A mark around compiled code that is no operator of torch."""
    return record_function(f"{CALL}{name}")


def read_operators(events: Iterable[Any]) -> TorchRecording:
    """Marks and operators of kineto's own events of a CPU, without shapes: faster than
    `read_events`, which needs torch's tree.

    What runs inside an operator on the same thread is no time of its own. Times in seconds from the
    first event.
    """
    spans = sorted(
        (event.start_ns(), -event.end_ns(), event.name(), event.start_thread_id())
        for event in events
        if not event.is_async()
    )
    found, first = TorchRecording(), spans[0][0] if spans else 0
    threads = {thread for _, _, name, thread in spans if _is_mark(name)}
    around: list[tuple[int, list[int]]] = []
    """Ends of the events around the next one, and of each its time without that of those inside."""
    timed: list[tuple[str, int, list[int]]] = []
    for start, negative_end, name, thread in spans:
        if thread not in threads:
            continue
        while around and around[-1][0] <= start:
            around.pop()
        own_ns = [-negative_end - start]
        if around:
            around[-1][1][0] -= own_ns[0]
        around.append((-negative_end, own_ns))
        if _is_mark(name):
            found.windows.append(
                MarkedForward(
                    name.removeprefix(MARK), (start - first) * _NS, (-negative_end - first) * _NS
                )
            )
        elif name.startswith(CALL) or not name.startswith("["):
            timed.append((name, start, own_ns))
    found.operators = [
        OperatorRun(name, (at - first) * _NS, max(0, own[0]) * _NS) for name, at, own in timed
    ]
    return found


def _is_mark(name: str) -> bool:
    return name.startswith(MARK) and not name.startswith(CALL)


def read_events(events: Iterable[Any], itemsize: int) -> TorchRecording:
    """The events of torch (`torch.autograd.profiler_util.FunctionEvent`, times in microseconds) by
    what they are.
    """
    found, started = TorchRecording(), dict[int, float]()
    device, operators = list[Any](), list[Any]()
    thread: Any = None
    for event in events:
        name = event.name
        if event.device_type.name != "CPU":
            if not name.startswith(MARK) and not getattr(event, "is_user_annotation", False):
                device.append(event)
        elif name.startswith(CALL):
            operators.append(event)
        elif name.startswith(MARK):
            thread = event.thread
            found.windows.append(MarkedForward(name.removeprefix(MARK), *_span(event)))
        elif _RUNTIME.fullmatch(name):
            started[event.id] = event.time_range.start * _US
            if _WAIT.search(name):
                found.syncs.append(_span(event))
        elif not event.is_async and name != _MEMORY and not name.startswith("["):
            operators.append(event)
    for event in operators:
        if event.thread == thread:
            work = operator_work(
                event.name,
                getattr(event, "structured_input_shapes", None) or event.input_shapes or (),
                itemsize,
            )
            own_s = max(0.0, event.self_cpu_time_total * _US)
            start = event.time_range.start * _US
            found.operators.append(OperatorRun(event.name, start, own_s))
            found.work += [(event.name, start, work), *_shared(event, work)]
    for event in device:
        found.runs.append(DeviceRun(event.name, *_span(event), started.get(event.id)))
    found.windows.sort(key=lambda window: window.start)
    return found


def _span(event: Any) -> Span:
    return event.time_range.start * _US, event.time_range.end * _US


def _shared(event: Any, work: Work) -> list[tuple[str, float, Work]]:
    """The work of an operator given to the kernels that it launched itself, in proportion to their
    time.
    """
    total = sum(kernel.duration for kernel in event.kernels)
    if not total or work == Work():
        return []

    def part(amount: int | None, kernel: Any) -> int | None:
        return None if amount is None else round(kernel.duration / total * amount)

    at = event.time_range.start * _US
    return [
        (kernel.name, at, Work(*(part(amount, kernel) for amount in work)))
        for kernel in event.kernels
        if kernel.duration
    ]


ROUNDS = 60
"""At most so many."""
FEWEST = 3
"""At least so many, however long they take."""
PART = 5
"""Rounds of one recording, which is read before the next."""
ProfiledStep = Callable[[Recording], object]
"""Runs an arm once and marks its forwards in the recording."""
Cells = Sequence[Sequence[Sequence[MarkedForward]]]
"""For each round and column the marked forwards of its run."""


@dataclass
class Ran:
    """Runs of one kernel or operator."""

    activity: Activity
    count: int = 0
    seconds: float = 0.0


@dataclass
class PhaseTable:
    """What was recorded of one phase; rows are rounds, columns those of the job's arms."""

    arms: Sequence[int] = ()
    """The job's arm of each column."""
    times: dict[TimeClass, list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    """Seconds by class: of a run with several forwards of the phase their median."""
    walls: list[list[float]] = field(default_factory=list)
    """Seconds, the profiler's own time included."""
    own: list[list[float]] = field(default_factory=list)
    """Seconds that the profiler itself took of them at most, on a CPU."""
    forwards: Counter[int] = field(default_factory=Counter)
    """By arm."""
    ran: dict[int, dict[str, Ran]] = field(default_factory=lambda: defaultdict(dict))
    """By arm the kernels, copies and operators of all its forwards."""


def profile_rounds(
    steps: Sequence[ProfiledStep],
    *,
    arms: Sequence[int],
    device: Device,
    seed: str,
    deadline: float,
) -> dict[Phase, PhaseTable]:
    """Run the steps in rounds under the profiler; `arms` names the job's arm behind each step, of
    which one may stand twice.

    Ends after `ROUNDS`, or when `deadline` (a reading of `time.monotonic()`) has passed and there
    are `FEWEST`. Raises `ArmError`.
    """
    tables: dict[Phase, PhaseTable] = {}
    rounds = 0

    def unfinished() -> bool:
        return rounds < ROUNDS and (rounds < FEWEST or time.monotonic() < deadline)

    while unfinished():
        marks: list[list[range]] = []
        gc.collect()
        with Recording(device) as recording:
            _run(steps, 0, recording)  # does not count, as what it sets up is no part of a forward
            last = arms[0]
            while len(marks) < PART and unfinished():
                order = spread_order(arms, f"{seed}:profiled:{rounds}", last)
                last = arms[order[-1]]
                placed = {column: _run(steps, column, recording) for column in order}
                marks.append([placed[column] for column in range(len(steps))])
                rounds += 1
        recorded = recording.read(1)
        cells = [[[recorded.windows[mark] for mark in own] for own in row] for row in marks]
        add_rounds(tables, recorded, cells, arms, device)
    return tables


def add_rounds(
    tables: dict[Phase, PhaseTable],
    recorded: TorchRecording,
    cells: Cells,
    arms: Sequence[int],
    device: Device,
) -> None:
    """Add the rounds of a recording to the tables of their phases; `arms` names the arm of each
    column.
    """
    reader = _Reader(recorded, device)
    for row in cells:
        for phase in dict.fromkeys(window.phase for cell in row for window in cell):
            table = tables.setdefault(phase, PhaseTable(arms))
            splits, walls, overheads = [], [], []
            for arm, cell in zip(arms, row, strict=True):
                forwards = [reader.read(window) for window in cell if window.phase == phase]
                splits.append(
                    {
                        name: median(each.times[name] for each in forwards)
                        for name in forwards[0].times
                    }
                )
                walls.append(median(each.wall_s for each in forwards))
                overheads.append(median(each.overhead_s for each in forwards))
                table.forwards[arm] += len(forwards)
                for name, activity, seconds in (run for each in forwards for run in each.ran):
                    total = table.ran[arm].setdefault(name, Ran(activity))
                    total.count += 1
                    total.seconds += seconds
            for name in splits[0]:
                table.times[name].append([each[name] for each in splits])
            table.walls.append(walls)
            table.own.append(overheads)


class Forward(NamedTuple):
    """What was recorded of one forward."""

    wall_s: float
    times: dict[TimeClass, float]
    overhead_s: float
    """Seconds that recording its operators takes at most, on a CPU."""
    ran: list[tuple[str, Activity, float]]
    """Name and seconds of each kernel and copy, or operator that works on data and does not only
    dispatch."""


class _Reader:
    """A recording, in order of time."""

    def __init__(self, recorded: TorchRecording, device: Device) -> None:
        self.device, self.syncs = device, recorded.syncs
        self.operators = sorted(recorded.operators, key=lambda run: run.start)
        self.runs = sorted(recorded.runs, key=lambda run: run.start)
        self.starts = [run.start for run in (self.operators if device == "cpu" else self.runs)]

    def read(self, window: MarkedForward) -> Forward:
        """One forward; its host runs Python where it neither launches nor waits."""
        _, start, end = window
        inside = slice(bisect_left(self.starts, start), bisect_left(self.starts, end))
        if self.device == "cpu":
            operators = self.operators[inside]
            working = [run for run in operators if run.name not in DISPATCH]
            return Forward(
                end - start,
                split_operators(start, end, working),
                overhead_s() * len(operators),
                [(run.name, "operator", run.own_s) for run in working],
            )
        runs = self.runs[inside]
        timeline = Timeline(start, end, runs, self.syncs, [(start, end)])
        ran = [
            (run.name, _TRANSFERS.get(run.name[:6], "kernel"), run.end - run.start) for run in runs
        ]
        return Forward(end - start, split_time(timeline), 0.0, ran)


def _run(steps: Sequence[ProfiledStep], column: int, recording: Recording) -> range:
    """Run a step, and return which marks are those of its forwards."""
    first = recording.opened
    try:
        steps[column](recording)
    except (Exception, TimedOut) as error:
        raise ArmError(column) from error
    recording.close()
    return range(first, recording.opened)


class Profiled(NamedTuple):
    """A profile, and whether its device time can be that of the unprofiled wall."""

    profile: ArmProfile
    possible: bool


def profile_phase(
    phase: Phase,
    arm: ArmWall,
    *,
    table: PhaseTable,
    fitted: PhaseRounds,
    details: TorchRecording,
    visible: bool = True,
) -> Profiled:
    """The profile of one phase of an arm, from the rounds of a job.

    `details` is a recording of the arm with shapes and allocations; `visible` is false for an arm
    whose code no profiler sees inside (compiled for a CPU): it has no classes of time then. Raises
    `ValueError` if the phase of the arm was not recorded.
    """
    forwards = table.forwards[arm.arm]
    if not forwards:
        raise ValueError(f"the profiler recorded no {phase} of this arm")
    times, possible = fitted.times(arm)
    ran = table.ran[arm.arm]
    spans = [(window.start, window.end) for window in details.windows if window.phase == phase]
    observed = len(spans)
    work: dict[str, list[Work]] = defaultdict(list)
    for name, start, each in details.work:
        if place_of_time(spans, start) is not None:
            work[name].append(each)
    allocated = [size for at, size in details.allocations if place_of_time(spans, at) is not None]
    activities = [_mean(name, total, work[name], forwards, observed) for name, total in ran.items()]
    recorded = sum(each.seconds for each in activities)
    if fitted.device == "cpu" and visible and recorded:  # by the clock of their class
        scale = times["device"] / recorded
        activities = [
            each.model_copy(update={"seconds": scale * each.seconds}) for each in activities
        ]
    own = [column for column, index in enumerate(table.arms) if index == arm.arm]
    profile = ArmProfile(
        arm=arm.arm,
        tool="torch",
        phase=phase,
        forwards=forwards,
        wall_s=arm.seconds,
        profiled_wall_s=median(row[column] for row in table.walls for column in own),
        times=times if visible else {},
        launches=sum(total.count for total in ran.values()) / forwards,
        kernel_time_share=1.0 if ran else None,
        activities=tuple(sorted(activities, key=lambda each: -each.seconds)),
        allocations=len(allocated) / observed if observed else None,
        allocated_bytes=sum(allocated) / observed if observed else None,
        rounds=fitted.rounds,
    )
    return Profiled(profile, possible or not visible)


def _mean(name: str, total: Ran, work: Sequence[Work], forwards: int, observed: int) -> Activities:
    """Means of one forward. The work of an operator is known if that of all its runs is."""
    macs = [each.macs for each in work if each.macs is not None]
    moved = [each.bytes_moved for each in work if each.bytes_moved is not None]
    return Activities(
        name=name,
        activity=total.activity,
        count=total.count / forwards,
        seconds=total.seconds / forwards,
        gmacs=sum(macs) / 1e9 / observed if macs else None,
        bytes_moved=sum(moved) / observed if moved and len(moved) == len(work) else None,
    )
