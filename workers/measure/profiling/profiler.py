"""Profiles of an arm from recordings: classes of time of its unprofiled wall, and what ran, by
phase.

A profiler slows the host, so that a profiled wall is not that of the arm. On a GPU the time of the
device is by its own clock and stays; what is left of the unprofiled wall is shared by the gaps in
the proportion of the profiled forwards (`fit_to_wall`). On a CPU the operators are the device, by
the clock of the host: less the profiler's own time (`less_profiler`), all classes keep their shares
(`share_of_wall`), and so do single operators, which add up to their class. Shapes and allocations
come from forwards of their own, whose times are not used.
"""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from sweeps.model.condition import Device
from sweeps.model.profile import Activities, ArmProfile, Phase
from sweeps.stats.profiles.operator_work import Work
from sweeps.stats.profiles.profile_rounds import ArmWall, PhaseRounds
from sweeps.stats.profiles.timeline import place_of_time
from workers.measure.profiling.profiled_rounds import PhaseTable, Ran
from workers.measure.profiling.recording import TorchRecording


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
