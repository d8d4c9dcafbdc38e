"""The speed-ups of one comparison over days, revisions and library versions, and where their level
moved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp

from sweeps.model.metrics import SPEED_FLOOR
from sweeps.stats.change_points import MIN_ESTIMATES, change_points
from sweeps.stats.pooling import ALPHA, SpeedUp


@dataclass(frozen=True)
class TrendPoint:
    """What one day has of a comparison at one revision in one environment."""

    at: str
    """ISO 8601, UTC: when the newest part of it ended."""
    found: SpeedUp
    flags: str
    versions: Mapping[str, str]
    """What may have changed since the measurement before: commit, facts of the environment,
    versions of the methods, contents."""


@dataclass(frozen=True)
class Trend:
    """The measurements of one comparison on one device of one host by one metric, oldest first."""

    question_id: str
    host: str
    device_name: str
    metric: str
    measurements: Sequence[TrendPoint]
    series: int = 1
    """How many are searched together: the probability of a false change is shared among them."""

    @property
    def decided(self) -> bool:
        """Whether there are enough measurements to find a change at all."""
        return len(self.measurements) >= MIN_ESTIMATES

    @cached_property
    def changes(self) -> "Sequence[Change]":
        """Where the speed-up moved by more than `SPEED_FLOOR`, oldest first."""
        logs = [each.found for each in self.measurements]
        found = change_points(
            [each.log for each in logs],
            [each.se for each in logs],
            [each.freedom for each in logs],
            alpha=ALPHA / self.series,
            floor=SPEED_FLOOR,
        )
        return [
            Change(
                self.measurements[each.place].at,
                exp(each.before),
                exp(each.after),
                differences(*self.measurements[each.place - 1 : each.place + 1]),
            )
            for each in found
        ]

    def slower_since(self, since: str = "") -> "Change | None":
        """The newest change, where it is to slower and not before `since` (ISO 8601)."""
        last = self.changes[-1] if self.changes else None
        return last if last and last.after < last.before and last.at >= since else None


@dataclass(frozen=True)
class Change:
    """The speed-up moved from one level to another."""

    at: str
    """When the first measurement at the new level ended."""
    before: float
    after: float
    what: Mapping[str, tuple[str, str]]
    """What differs from the measurement before, by name: then and now; empty: nothing that is
    recorded."""

    @property
    def ratio(self) -> float:
        """Above 1: faster than before."""
        return self.after / self.before


def differences(one: TrendPoint, other: TrendPoint) -> dict[str, tuple[str, str]]:
    """What is recorded otherwise, by name; what only one of them has is `none` in the other."""
    names = dict.fromkeys((*one.versions, *other.versions))
    both = {
        name: (one.versions.get(name, "none"), other.versions.get(name, "none")) for name in names
    }
    return {name: (then, now) for name, (then, now) in both.items() if then != now}
