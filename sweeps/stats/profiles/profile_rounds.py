"""Profiled rounds: the classes of time of every arm, and how they differ from a baseline's, by
pairs inside rounds.

What is fitted are shares: on a CPU of the profiled forward, on a GPU of its gaps beside the seconds
of the device, whose clock no profiler slows. They become seconds by the walls without a profiler,
so that the differences of all classes add up to that of the walls. The error of a difference is
that of the shares (delete-group jackknife over the profiled rounds), that of the speed-up, and on a
GPU how far its clock drifted, since the walls are those of other rounds.
"""

from collections.abc import Mapping, Sequence
from math import exp, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeps.model.condition import Device
from sweeps.model.profile import IntervalEstimate, TimeClass
from sweeps.stats.pooling import SpeedUp, quantile, within_process
from sweeps.stats.profiles.timeline import fit_to_wall, share_of_wall
from sweeps.stats.two_way import MIN_ROUNDS, Levels, Rounds, jackknife_se

WIDEST_SHARE = 1.0
"""Half-width of the interval of a difference, as a share of the baseline's wall, beyond which there
is none: too few rounds."""
_LEAST = 1e-9
"""Seconds that a forward counts as at least, so that its logarithm exists."""

_Array = NDArray[np.float64]


class ArmWall(NamedTuple):
    """An arm and its wall in seconds without a profiler."""

    arm: int
    seconds: float


def less_profiler(
    times: Mapping[TimeClass, ArrayLike],
    own: ArrayLike,
    arms: Sequence[int],
    walls: Mapping[int, float],
) -> dict[TimeClass, _Array]:
    """Times of forwards on a CPU without the profiler's own part of them, which lies between
    operators.

    `own` is that part as a loop of tiny operators gives it, of the shape of the tables. It is
    scaled by one factor of at most 1, so that profiled forwards are longer by it than the `walls`
    without a profiler (seconds by arm): in a model's forward the profiler takes less than in the
    loop, and what would be taken too much would be missing from the host.
    """
    tables: dict[TimeClass, _Array] = {
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
        tables: dict[TimeClass, _Array] = {
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
        has a host that is up to 5 % slower under it.
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

    def _other_errors(self, baseline: ArmWall, arm: ArmWall, speedup: SpeedUp) -> _Array:
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
        found: _Array = both[0] ** 2 + both[1] ** 2
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
