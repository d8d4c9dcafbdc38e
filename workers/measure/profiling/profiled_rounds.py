"""Rounds under the profiler: every arm once per round in random order, and the classes of time of
each of its forwards by phase.
"""

import gc
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from sweeps.model.condition import Device
from sweeps.model.profile import Activity, Phase, TimeClass
from sweeps.stats.profiles.operator_work import DISPATCH
from sweeps.stats.profiles.timeline import Timeline, split_operators, split_time
from workers.measure.process.timeout import TimedOut
from workers.measure.profiling.recording import MarkedForward, Recording, TorchRecording, overhead_s
from workers.measure.timing.interleaved import ArmError, spread_order

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
