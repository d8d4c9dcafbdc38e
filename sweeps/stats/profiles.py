"""Profiles: the time of a forward by class, from the intervals that a profiler recorded, and how
the classes of an arm differ from a baseline's, by pairs inside rounds.

Intervals are (start, end) in seconds by one clock. A union is a sorted list of intervals that
neither overlap nor touch.

What is fitted of rounds are shares: on a CPU of the profiled forward, on a GPU of its gaps beside
the seconds of the device, whose clock no profiler slows. They become seconds by the walls without a
profiler, so that the differences of all classes add up to that of the walls. The error of a
difference is that of the shares (delete-group jackknife over the profiled rounds), that of the
speed-up, and on a GPU how far its clock drifted, since the walls are those of other rounds.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import exp, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sweeps.model.condition import Device
from sweeps.model.profile import IntervalEstimate, TimeClass
from sweeps.stats.pooling import SpeedUp, quantile, within_process
from sweeps.stats.timing import MIN_ROUNDS, Array, Levels, Rounds, jackknife_se

Span = tuple[float, float]
TOLERANCE = 0.05
"""Device time may exceed the wall of other forwards by this share: both vary from forward to
forward. Beyond it they contradict."""


class DeviceRun(NamedTuple):
    """A kernel, copy or memset on the device."""

    name: str
    start: float
    end: float
    launched: float | None = None
    """When the call that started it was entered on the host; `None` where it is not known."""


class OperatorRun(NamedTuple):
    """An operator on the host."""

    name: str
    start: float
    own_s: float
    """Its time without that of the operators it calls."""


class Timeline(NamedTuple):
    """One forward on a device with a clock of its own."""

    start: float
    end: float
    runs: Sequence[DeviceRun]
    syncs: Sequence[Span] = ()
    """Calls that wait for the device."""
    host: Sequence[Span] = ()
    """Operators, Python and whatever else the host is known to work on."""


def union(intervals: Iterable[Span]) -> list[Span]:
    """The moments that lie in any of the intervals; empty and reversed ones are left out."""
    found: list[Span] = []
    for start, end in sorted(each for each in intervals if each[0] < each[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def common(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """The moments that lie in both of two unions."""
    found, left, right = [], 0, 0
    while left < len(one) and right < len(other):
        start, end = max(one[left][0], other[right][0]), min(one[left][1], other[right][1])
        if start < end:
            found.append((start, end))
        if one[left][1] < other[right][1]:
            left += 1
        else:
            right += 1
    return found


def outside(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """The moments of a union that do not lie in another."""
    if not one:
        return []
    edges = [
        one[0][0] - 1.0,
        *(edge for interval in other for edge in interval),
        max(one[-1][1], other[-1][1] if other else 0.0) + 1.0,
    ]
    return common(one, union(zip(edges[::2], edges[1::2], strict=True)))


def length(intervals: Iterable[Span]) -> float:
    """Seconds in a union."""
    return sum(end - start for start, end in intervals)


def split_time(forward: Timeline) -> dict[TimeClass, float]:
    """Seconds of a forward by class; they add up to its length.

    `device`: some kernel or copy runs, counted once however many overlap. The rest are gaps of the
    device: from the call that starts a kernel until it runs `launch`, else while the host waits
    `sync`, else while it works `host`, else `idle`.
    """
    whole = [(forward.start, forward.end)]
    busy = common(whole, union((run.start, run.end) for run in forward.runs))
    times: dict[TimeClass, float] = {"device": length(busy)}
    left = outside(whole, busy)
    launches = [(run.launched, run.start) for run in forward.runs if run.launched is not None]
    classes: tuple[tuple[TimeClass, Iterable[Span]], ...] = (
        ("launch", launches),
        ("sync", forward.syncs),
        ("host", forward.host),
    )
    for name, intervals in classes:
        found = common(left, union(intervals))
        times[name] = length(found)
        left = outside(left, found)
    return {**times, "idle": length(left)}


def split_operators(
    start: float, end: float, working: Iterable[OperatorRun]
) -> dict[TimeClass, float]:
    """Seconds of a forward on a CPU: `device` in operators that work on data, `host` outside of
    them.
    """
    busy = sum(run.own_s for run in working if start <= run.start < end)
    return {"device": busy, "host": max(0.0, end - start - busy)}


def fit_to_wall(
    times: Mapping[TimeClass, float], wall_s: float
) -> tuple[dict[TimeClass, float], bool]:
    """The classes of a profiled forward as those of one that takes `wall_s` without a profiler, and
    whether that is possible.

    A profiler slows the host and hardly the device. So `device` stays as it was measured, and what
    is left of the wall is shared by the gaps in the proportion of the profiled forward; without any
    gap it is `idle`. Device time beyond the wall is cut to it, and contradicts it where it is more
    than `TOLERANCE` longer.
    """
    device = times.get("device", 0.0)
    gaps: dict[TimeClass, float] = {
        name: seconds for name, seconds in times.items() if name != "device"
    }
    rest, total = max(0.0, wall_s - device), sum(gaps.values())
    if total > 0:
        gaps = {name: rest * seconds / total for name, seconds in gaps.items()}
    elif rest > 0:
        gaps["idle"] = rest
    return {"device": min(device, wall_s), **gaps}, device <= wall_s * (1 + TOLERANCE)


def share_of_wall(times: Mapping[TimeClass, float], wall_s: float) -> dict[TimeClass, float]:
    """The classes of a profiled forward on a CPU as those of one that takes `wall_s`: each keeps
    its share.

    Operators and all else run by the clock of the host there, and are slowed alike by what else
    uses the cores.
    """
    total = sum(times.values())
    return (
        {name: wall_s * seconds / total for name, seconds in times.items()}
        if total > 0
        else {"idle": wall_s}
    )


def place_of_time(windows: Sequence[Span], moment: float) -> int | None:
    """Which of some sorted windows, none of which overlap, holds a moment."""
    place = bisect_right(windows, moment, key=lambda window: window[0]) - 1
    return place if place >= 0 and moment < windows[place][1] else None


WIDEST_SHARE = 1.0
"""Half-width of the interval of a difference, as a share of the baseline's wall, beyond which there
is none: too few rounds."""
_LEAST = 1e-9
"""Seconds that a forward counts as at least, so that its logarithm exists."""


class ArmWall(NamedTuple):
    """An arm and its wall in seconds without a profiler."""

    arm: int
    seconds: float


def less_profiler(
    times: Mapping[TimeClass, ArrayLike],
    own: ArrayLike,
    arms: Sequence[int],
    walls: Mapping[int, float],
) -> dict[TimeClass, Array]:
    """Times of forwards on a CPU without the profiler's own part of them, which lies between
    operators.

    `own` is that part as a loop of tiny operators gives it, of the shape of the tables. It is
    scaled by one factor of at most 1, so that profiled forwards are longer by it than the `walls`
    without a profiler (seconds by arm): in a model's forward the profiler takes less than in the
    loop, and what would be taken too much would be missing from the host.
    """
    tables: dict[TimeClass, Array] = {
        name: np.asarray(table, dtype=np.float64) for name, table in times.items()
    }
    most = np.asarray(own, dtype=np.float64)
    profiled, taken = (
        np.median(table, axis=0) for table in (np.sum(list(tables.values()), axis=0), most)
    )
    longer = profiled - [walls[arm] for arm in arms]
    shares = np.clip(longer / np.where(taken > 0, taken, 1.0), 0.0, 1.0)
    return {
        **tables,
        "host": np.maximum(
            0.0, tables.get("host", np.zeros_like(most)) - float(np.median(shares)) * most
        ),
    }


class PhaseRounds:
    """Classes of time of one phase of all arms, from rounds under the profiler; fitted once."""

    def __init__(
        self, times: Mapping[TimeClass, ArrayLike], arms: Sequence[int], device: Device
    ) -> None:
        """`times` holds seconds of shape [rounds, columns] by class, `arms` names the arm of each
        column.

        Raises `ValueError` without a class, and for tables that are no finite numbers of that
        shape.
        """
        if not times:
            raise ValueError("no class of time was recorded; at least one is needed")
        tables: dict[TimeClass, Array] = {
            name: np.asarray(table, dtype=np.float64) for name, table in times.items()
        }
        total = np.sum(list(tables.values()), axis=0)
        self.device, self.rounds = device, len(total)
        gaps = (
            total
            if device == "cpu"
            else np.sum([table for name, table in tables.items() if name != "device"], axis=0)
        )
        whole = np.where(gaps > 0, gaps, 1.0)
        self._levels = {
            name: Levels(table if device != "cpu" and name == "device" else table / whole, arms)
            for name, table in tables.items()
        }
        self._totals = Rounds(np.maximum(total, _LEAST), arms)

    def times(self, arm: ArmWall) -> tuple[dict[TimeClass, float], bool]:
        """Seconds of an arm by class, which add up to its wall; and whether the device's time can
        be that of this wall.
        """
        return self._fit(
            {name: levels.level(arm.arm) for name, levels in self._levels.items()}, arm.seconds
        )

    def profiled_speedup(self, baseline: int, arm: int) -> SpeedUp:
        """The speed-up of the profiled forwards, less the profiler's own time."""
        return within_process(self._totals.contrast(baseline, arm), self.rounds)

    def changes(
        self, baseline: ArmWall, arm: ArmWall, speedup: SpeedUp, profiled: SpeedUp
    ) -> dict[TimeClass, IntervalEstimate]:
        """What an arm takes more than its baseline in each class, as shares of the baseline's wall.

        `speedup` is that of the walls. How far that of the profiled forwards (`profiled`) lies from
        it is a part of every interval on a CPU, since any class may hold it: the profiler does not
        slow both arms alike, and of two equal models in a new process the one that was built second
        has a host that is 5 to 7 % slower under it.
        """
        known = self.rounds >= MIN_ROUNDS and speedup.half_width < inf
        astray = _apart(speedup, profiled) if self.device == "cpu" else 0.0
        own = np.array([self._differences(baseline, arm, group) for group in range(self._groups)])
        errors = (
            self._other_errors(baseline, arm, speedup) if known else np.zeros(len(self._levels))
        )
        found = {}
        for place, (name, value) in enumerate(
            zip(self._levels, self._differences(baseline, arm), strict=True)
        ):
            half = (
                astray
                + _reach(jackknife_se(own[:, place]) ** 2, len(own) - 1.0, errors[place], speedup)
                if known
                else inf
            )
            ends = {"low": value - half, "high": value + half} if half <= WIDEST_SHARE else {}
            found[name] = IntervalEstimate(value=value, **ends)
        return found

    def _other_errors(self, baseline: ArmWall, arm: ArmWall, speedup: SpeedUp) -> Array:
        """The variance that the speed-up and the drift of a GPU add to the difference of each
        class, to first order.
        """
        walls = [
            self._differences(baseline, arm._replace(seconds=arm.seconds * exp(way * speedup.se)))
            for way in (1, -1)
        ]
        device = self._levels.get("device")
        drift = (
            device.drift / device.level(baseline.arm)
            if self.device == "cuda" and device and device.level(baseline.arm)
            else 0.0
        )
        scales = [self._differences(baseline, arm, scale=exp(way * drift)) for way in (1, -1)]
        both = [(np.array(more) - np.array(less)) / 2 for more, less in (walls, scales)]
        found: Array = both[0] ** 2 + both[1] ** 2
        return found

    @property
    def _groups(self) -> int:
        return len(next(iter(self._levels.values())).left_out(0))

    def _differences(
        self, baseline: ArmWall, arm: ArmWall, group: int | None = None, *, scale: float = 1.0
    ) -> list[float]:
        """Of each class, as shares of the baseline's wall; without a group of rounds where one is
        named.

        `scale` multiplies the time of the device.
        """
        sides = []
        for side in (baseline, arm):
            levels = {
                name: each.level(side.arm)
                if group is None
                else float(each.left_out(side.arm)[group])
                for name, each in self._levels.items()
            }
            levels["device"] = levels.get("device", 0.0) * scale
            sides.append(self._fit(levels, side.seconds)[0])
        return [
            (sides[1].get(name, 0.0) - sides[0].get(name, 0.0)) / baseline.seconds
            for name in self._levels
        ]

    def _fit(
        self, levels: Mapping[TimeClass, float], wall_s: float
    ) -> tuple[dict[TimeClass, float], bool]:
        levels = {name: max(0.0, level) for name, level in levels.items()}
        return (
            (share_of_wall(levels, wall_s), True)
            if self.device == "cpu"
            else fit_to_wall(levels, wall_s)
        )


def bounded(speedup: SpeedUp) -> IntervalEstimate:
    """A speed-up with its interval, as data."""
    known = speedup.half_width < inf
    return IntervalEstimate(
        value=speedup.value,
        low=speedup.low if known else None,
        high=speedup.high if known else None,
    )


def _reach(shares: float, freedom: float, wall: float, speedup: SpeedUp) -> float:
    """Half-width of an interval of the level of a speed-up, from the variances of both parts (Welch
    and Satterthwaite).
    """
    total = float(shares + wall)
    if not total:
        return 0.0
    joint = total**2 / (shares**2 / freedom + wall**2 / speedup.freedom)
    return quantile(speedup.spent, joint) * sqrt(total)


def _apart(one: SpeedUp, other: SpeedUp) -> float:
    """How far two speed-ups lie apart, in walls of the arm over the baseline's."""
    return abs(exp(-one.log) - exp(-other.log))
