"""Profiles of an arm from recordings: classes of time of its unprofiled wall, and what ran, by phase.

A profiler slows the host, so that a profiled wall is not that of the arm. On a GPU the time of the device is by its own clock and
stays; what is left of the unprofiled wall is shared by the gaps in the proportion of the profiled forwards (`fit_to_wall`). On a
CPU the operators are the device, by the clock of the host: less the profiler's own time, which is measured, all classes keep their
shares (`share_of_wall`). Shapes and allocations come from forwards of their own, whose times are not used.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from sweeps.job import Device
from sweeps.profile import Activities, Activity, ArmProfile, Phase, TimeClass
from sweeps.stats.operator_work import DISPATCH, Work
from sweeps.stats.timeline import (
    OperatorRun,
    Timeline,
    fit_to_wall,
    median_times,
    place_of_time,
    share_of_wall,
    split_operators,
    split_time,
)
from workers.measure.recording import MarkedForward, Recorded, overhead_s

OPERATOR: Activity = "operator"


class Profiled(NamedTuple):
    """A profile, and whether its device time can be that of the unprofiled wall."""

    profile: ArmProfile
    possible: bool


@dataclass
class _Total:
    """Runs of one kernel or operator."""

    activity: Activity
    count: int = 0
    seconds: float = 0.0


def profile_phase(
    phase: Phase,
    *,
    arm: int,
    device: Device,
    wall_s: float,
    timed: Sequence[Recorded],
    detailed: Sequence[Recorded],
    visible: bool = True,
) -> Profiled:
    """The profile of one phase, whose forwards without a profiler take `wall_s`.

    `timed` are recordings without details, `detailed` those with shapes and allocations; `visible` is false for an arm whose code
    no profiler sees inside (compiled for a CPU): it has no classes of time then. Raises `ValueError` if no forward of the phase was
    recorded.
    """
    forwards = [(recorded, window) for recorded in timed for window in recorded.windows if window.phase == phase]
    if not forwards:
        raise ValueError(f"the profiler recorded no {phase} of this arm; it holds {sum(len(each.windows) for each in timed)} marks")
    split = [_split(recorded, window, device) for recorded, window in forwards]
    times, possible = median_times(split), True
    if device == "cpu":
        times = share_of_wall(times, wall_s)
    else:
        times, possible = fit_to_wall(times, wall_s)
    totals = _totals(timed, phase, device)
    work, allocations, observed = _details(detailed, phase, device)
    activities = [_mean(name, total, work.get(name), len(forwards), observed) for name, total in totals.items()]
    profile = ArmProfile(
        arm=arm,
        tool="torch",
        phase=phase,
        forwards=len(forwards),
        wall_s=wall_s,
        profiled_wall_s=median(window.end - window.start for _, window in forwards),
        times=times if visible else {},
        launches=sum(total.count for total in totals.values()) / len(forwards),
        covered=1.0 if totals else None,
        activities=tuple(sorted(activities, key=lambda each: -each.seconds)),
        allocations=len(allocations) / observed if observed else None,
        allocated_bytes=sum(allocations) / observed if observed else None,
    )
    return Profiled(profile, possible or not visible)


def _split(recorded: Recorded, window: MarkedForward, device: Device) -> dict[TimeClass, float]:
    """The classes of one profiled forward: its host runs Python where it neither launches nor waits."""
    _, start, end = window
    if device == "cpu":
        recorded_s = overhead_s() * sum(start <= run.start < end for run, _ in recorded.operators)
        return split_operators(start, end, _working(recorded), recorded_s)
    runs = [run for run, _ in recorded.runs if start <= run.start < end]
    return split_time(Timeline(start, end, runs, recorded.syncs, [(start, end)]))


def _working(recorded: Recorded) -> Iterator[OperatorRun]:
    """The operators that work on data, and do not only dispatch."""
    return (run for run, _ in recorded.operators if run.name not in DISPATCH)


def _totals(timed: Iterable[Recorded], phase: Phase, device: Device) -> dict[str, _Total]:
    """Runs and seconds of each kernel, copy or operator in all forwards of a phase."""
    totals: dict[str, _Total] = {}
    for recorded in timed:
        spans = _spans(recorded, phase)
        if device == "cpu":
            ran = [(run.name, OPERATOR, run.start, run.own_s) for run in _working(recorded)]
        else:
            ran = [(run.name, activity, run.start, run.end - run.start) for run, activity in recorded.runs]
        for name, activity, start, seconds in ran:
            if place_of_time(spans, start) is not None:
                total = totals.setdefault(name, _Total(activity))
                total.count += 1
                total.seconds += seconds
    return totals


def _details(detailed: Iterable[Recorded], phase: Phase, device: Device) -> tuple[dict[str, list[Work]], list[int], int]:
    """The work of each kernel or operator, the bytes of each allocation, and the forwards in which they were recorded."""
    work: dict[str, list[Work]] = {}
    allocations, forwards = [], 0
    for recorded in detailed:
        spans = _spans(recorded, phase)
        forwards += len(spans)
        done = ((run.name, run.start, each) for run, each in recorded.operators) if device == "cpu" else recorded.kernel_work
        for name, start, each in done:
            if place_of_time(spans, start) is not None:
                work.setdefault(name, []).append(each)
        allocations += [each.size for each in recorded.allocations if place_of_time(spans, each.at) is not None]
    return work, allocations, forwards


def _spans(recorded: Recorded, phase: Phase) -> list[tuple[float, float]]:
    return [(window.start, window.end) for window in recorded.windows if window.phase == phase]


def _mean(name: str, total: _Total, work: Sequence[Work] | None, forwards: int, observed: int) -> Activities:
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
