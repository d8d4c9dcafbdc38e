"""Rounds under the profiler: every arm once per round in random order, and the profile of each arm:
classes of time of its unprofiled wall, and what ran, by phase.

A profiler slows the host, so that a profiled wall is not that of the arm. On a GPU the time of the
device is by its own clock and stays; what is left of the unprofiled wall is shared by the gaps in
the proportion of the profiled forwards (`fit_to_wall`). On a CPU the operators are the device, by
the clock of the host: less the profiler's own time (`less_profiler`), all classes keep their shares
(`share_of_wall`), and so do single operators, which add up to their class. Shapes and allocations
come from forwards of their own, whose times are not used.
"""

import gc
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from sweeps.model.condition import Device
from sweeps.model.profile import Activities, Activity, ArmProfile, Phase, TimeClass
from sweeps.stats.profiles import (
    ArmWall,
    PhaseRounds,
    Timeline,
    place_of_time,
    split_operators,
    split_time,
)
from sweeps.stats.roofline import DISPATCH, Work
from workers.errors import TimedOut
from workers.measure.interleaved import ArmError, spread_order
from workers.measure.recording import MarkedForward, Recording, TorchRecording, overhead_s

ROUNDS = 60
"""At most so many."""
FEWEST = 3
"""At least so many, however long they take."""
PART = 5
"""Rounds of one recording, which is read before the next."""
OPERATOR: Activity = "operator"

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

    times: dict[TimeClass, list[list[float]]] = field(default_factory=dict)
    """Seconds by class: of a run with several forwards of the phase their median."""
    walls: list[list[float]] = field(default_factory=list)
    """Seconds, the profiler's own time included."""
    own: list[list[float]] = field(default_factory=list)
    """Seconds that the profiler itself took of them at most, on a CPU."""
    forwards: dict[int, int] = field(default_factory=dict)
    """By arm."""
    ran: dict[int, dict[str, Ran]] = field(default_factory=dict)
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
    while rounds < ROUNDS and (rounds < FEWEST or time.monotonic() < deadline):
        marks: list[list[range]] = []
        gc.collect()
        with Recording(device) as recording:
            _run(steps, 0, recording)  # does not count, as what it sets up is no part of a forward
            last = arms[0]
            while (
                len(marks) < PART
                and rounds < ROUNDS
                and (rounds < FEWEST or time.monotonic() < deadline)
            ):
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
            table = tables.setdefault(phase, PhaseTable())
            splits, walls, overheads = [], [], []
            for arm, cell in zip(arms, row, strict=True):
                own = [window for window in cell if window.phase == phase]
                split = [reader.split(window) for window in own]
                splits.append({name: median(each[name] for each in split) for name in split[0]})
                walls.append(median(window.end - window.start for window in own))
                overheads.append(median(reader.overhead(window) for window in own))
                table.forwards[arm] = table.forwards.get(arm, 0) + len(own)
                for window in own:
                    reader.add_runs(window, table.ran.setdefault(arm, {}))
            for name in splits[0]:
                table.times.setdefault(name, []).append([each[name] for each in splits])
            table.walls.append(walls)
            table.own.append(overheads)


class _Reader:
    """A recording, in order of time."""

    def __init__(self, recorded: TorchRecording, device: Device) -> None:
        self.device, self.recorded = device, recorded
        self.operators = sorted((run for run, _ in recorded.operators), key=lambda run: run.start)
        self.runs = sorted(recorded.runs, key=lambda each: each[0].start)
        self._operator_starts = [run.start for run in self.operators]
        self._run_starts = [run.start for run, _ in self.runs]
        self.overhead_s = overhead_s() if device == "cpu" else 0.0

    def split(self, window: MarkedForward) -> dict[TimeClass, float]:
        """The classes of one forward: its host runs Python where it neither launches nor waits."""
        _, start, end = window
        if self.device == "cpu":
            own = self.operators[self._slice(self._operator_starts, window)]
            return split_operators(start, end, (run for run in own if run.name not in DISPATCH))
        runs = [run for run, _ in self.runs[self._slice(self._run_starts, window)]]
        return split_time(Timeline(start, end, runs, self.recorded.syncs, [(start, end)]))

    def overhead(self, window: MarkedForward) -> float:
        """Seconds of one forward on a CPU that recording its operators takes at most."""
        return self.overhead_s * len(self.operators[self._slice(self._operator_starts, window)])

    def add_runs(self, window: MarkedForward, ran: dict[str, Ran]) -> None:
        """Add the kernels and copies of one forward, or the operators that work on data and do not
        only dispatch.
        """
        if self.device == "cpu":
            own = self.operators[self._slice(self._operator_starts, window)]
            found = [(run.name, OPERATOR, run.own_s) for run in own if run.name not in DISPATCH]
        else:
            runs = self.runs[self._slice(self._run_starts, window)]
            found = [(run.name, activity, run.end - run.start) for run, activity in runs]
        for name, activity, seconds in found:
            total = ran.setdefault(name, Ran(activity))
            total.count += 1
            total.seconds += seconds

    @staticmethod
    def _slice(starts: Sequence[float], window: MarkedForward) -> slice:
        return slice(bisect_left(starts, window.start), bisect_left(starts, window.end))


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
    columns: Sequence[int],
    detailed: Sequence[TorchRecording],
    visible: bool = True,
) -> Profiled:
    """The profile of one phase of an arm, from the rounds of a job whose `columns` name its arms.

    `detailed` are recordings of the arm with shapes and allocations; `visible` is false for an arm
    whose code no profiler sees inside (compiled for a CPU): it has no classes of time then. Raises
    `ValueError` if the phase of the arm was not recorded.
    """
    forwards = table.forwards.get(arm.arm, 0)
    if not forwards:
        raise ValueError(f"the profiler recorded no {phase} of this arm")
    times, possible = fitted.times(arm)
    ran = table.ran.get(arm.arm, {})
    work, allocations, observed = _details(detailed, phase, fitted.device)
    activities = [
        _mean(name, total, work.get(name), forwards, observed) for name, total in ran.items()
    ]
    recorded = sum(each.seconds for each in activities)
    if fitted.device == "cpu" and visible and recorded:  # by the clock of their class
        scale = times["device"] / recorded
        activities = [
            each.model_copy(update={"seconds": scale * each.seconds}) for each in activities
        ]
    own = [column for column, index in enumerate(columns) if index == arm.arm]
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
        allocations=len(allocations) / observed if observed else None,
        allocated_bytes=sum(allocations) / observed if observed else None,
        rounds=fitted.rounds,
    )
    return Profiled(profile, possible or not visible)


def _details(
    detailed: Iterable[TorchRecording], phase: Phase, device: Device
) -> tuple[dict[str, list[Work]], list[int], int]:
    """The work of each kernel or operator, the bytes of each allocation, and the forwards in which
    they were recorded.
    """
    work: dict[str, list[Work]] = {}
    allocations, forwards = [], 0
    for recorded in detailed:
        spans = [(window.start, window.end) for window in recorded.windows if window.phase == phase]
        forwards += len(spans)
        done = (
            ((run.name, run.start, each) for run, each in recorded.operators)
            if device == "cpu"
            else recorded.kernel_work
        )
        for name, start, each in done:
            if place_of_time(spans, start) is not None:
                work.setdefault(name, []).append(each)
        allocations += [
            each.size for each in recorded.allocations if place_of_time(spans, each.at) is not None
        ]
    return work, allocations, forwards


def _mean(
    name: str, total: Ran, work: Sequence[Work] | None, forwards: int, observed: int
) -> Activities:
    """Means of one forward. The work of an operator is known if that of all its runs is."""
    macs = [each.macs for each in work or () if each.macs is not None]
    moved = [each.bytes_moved for each in work or () if each.bytes_moved is not None]
    return Activities(
        name=name,
        activity=total.activity,
        count=total.count / forwards,
        seconds=total.seconds / forwards,
        gmacs=sum(macs) / 1e9 / observed if macs else None,
        bytes_moved=sum(moved) / observed if moved and len(moved) == len(work or ()) else None,
    )
