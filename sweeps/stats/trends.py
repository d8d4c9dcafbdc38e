"""Trends: the speed-ups of one comparison over days, revisions and library versions, and where the
level of a series of estimates, each with a standard error, moves.

Binary segmentation (Scott and Knott 1974): of all places to split a stretch in two, the one whose
two levels differ most in standard errors is a change where chance is excluded as its cause; then
both parts are searched in the same way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeps.model.metrics import SPEED_FLOOR
from sweeps.stats.pooling import ALPHA, SpeedUp

MIN_ESTIMATES = 4
"""With fewer, hardly anything shows how much estimates at one level differ."""
MIN_DAYS = 2
"""Estimates on each side of a change."""
MAX_LAG = 0.9
"""The largest correlation of neighbouring days that is assumed."""
MIN_DAY_FREEDOM = 3.0
"""Least degrees of freedom of the noise of days, however correlated they may be."""
MIN_STEPS = 12
"""From so many on, the median step between neighbours is known well enough."""
STEPS_EFFICIENCY = 0.37
"""Degrees of freedom of a variance by a median, as a share of those by the mean of squares."""
Floats = NDArray[np.float64]


class Estimates(NamedTuple):
    """A series in order of time, shape [n] each."""

    values: Floats
    errors: Floats
    """Standard errors."""
    freedom: Floats
    """Their degrees of freedom."""

    def between(self, begin: int, end: int) -> "Estimates":
        return Estimates(*(each[begin:end] for each in self))


class ChangePoint(NamedTuple):
    """The level moved between `place - 1` and `place`."""

    place: int
    """Index of the first estimate at the new level."""
    before: float
    """Level of the stretch that ends here, up to the change before."""
    after: float
    """Level of the stretch that begins here, up to the next change."""
    p: float
    """Probability of levels at least as different at any place of the searched stretch, where
    none moved."""


def change_points(
    values: ArrayLike,
    errors: ArrayLike,
    freedom: ArrayLike,
    *,
    alpha: float = ALPHA,
    floor: float = 0.0,
) -> list[ChangePoint]:
    """Where the level of a series moved by more than `floor`, in order of time.

    values, errors, freedom: shape [n]. alpha: probability of any change where none is. A change has
    `MIN_DAYS` estimates on both sides. Estimates that scatter more about their levels than their
    standard errors allow get larger ones, and are taken to be correlated as far as the series does
    not exclude it. Raises `ValueError` for an error that is not positive and finite.
    """
    series = Estimates(*(np.asarray(each, float) for each in (values, errors, freedom)))
    if not bool(np.all((series.errors > 0) & np.isfinite(series.errors))):
        raise ValueError("standard errors must be positive and finite")
    if not len(series.values):
        return []
    found = dict(_search(series, 0, len(series.values), alpha, floor))
    ends = [0, *sorted(found), len(series.values)]
    levels = [_level(series.between(*pair))[0] for pair in pairwise(ends)]
    return [
        ChangePoint(place, levels[number], levels[number + 1], found[place])
        for number, place in enumerate(ends[1:-1])
    ]


def _search(
    series: Estimates, begin: int, end: int, alpha: float, floor: float
) -> Iterator[tuple[int, float]]:
    """Each change from `begin` to `end` with its probability."""
    splits = [
        (*_difference(series.between(begin, at), series.between(at, end)), at)
        for at in range(begin + MIN_DAYS, end - MIN_DAYS + 1)
    ]
    if not splits:
        return
    _, p, size, place = max(splits)
    p = min(1.0, p * len(splits))  # the most different of so many places (Bonferroni)
    if p <= alpha and size > floor:
        yield place, p
        yield from _search(series, begin, place, alpha, floor)
        yield from _search(series, place, end, alpha, floor)


def _difference(before: Estimates, after: Estimates) -> tuple[float, float, float]:
    """Of two stretches the distance of their levels in standard errors, the probability of one at
    least as large by chance, and the distance.

    Each level leaves out the estimate that supports the difference most, so that no single day
    makes a change.
    """
    sides = before, after
    values, errors, freedom = (np.concatenate(each) for each in zip(*sides, strict=True))
    days, first = np.arange(len(values)), len(before.values)
    later = days >= first
    left: Floats = values - np.where(later, after.values.mean(), before.values.mean())
    lag = _correlation(left)
    alike = lag ** abs(np.subtract.outer(days, days))
    ends = (slice(0, first), slice(first, None))
    rest = len(days) - len(sides)
    # what scatters within both stretches, of the standard errors and of days with this correlation
    own = sum(float(errors[end] @ errors[end]) * (1 - 1 / len(errors[end])) for end in ends)
    free = len(days) - sum(float(alike[end, end].sum()) / len(errors[end]) for end in ends)
    beyond = max(0.0, (float(left @ left) - own) / free)
    known = max(MIN_DAY_FREEDOM, rest * (1 - lag**2) / (1 + lag**2))
    if rest >= MIN_STEPS and (steps := _beyond_of_steps(before, after) / (1 - lag)) < beyond:
        beyond, known = steps, max(MIN_DAY_FREEDOM, STEPS_EFFICIENCY * known)
    sign = 1.0 if after.values.mean() > before.values.mean() else -1.0
    weights = 1 / (errors**2 + beyond)
    for end, side in zip(ends, (1, -1), strict=True):
        weights[end][np.argmin(side * sign * values[end])] = 0.0
    shares = weights / np.where(later, weights[first:].sum(), weights[:first].sum())
    shares[:first] *= -1
    distance = max(0.0, sign * float(shares @ values))
    variances = (shares * errors) ** 2
    variance = float(variances.sum() + beyond * (shares @ alike @ shares))
    # Welch and Satterthwaite
    part = variance - float(variances.sum())
    nu = min(rest, variance**2 / (float(np.sum(variances**2 / freedom)) + part**2 / known))
    z = float(distance / np.sqrt(variance))
    # imported late, because pages and commands that only show trends do not need it
    from scipy.special import stdtr

    return z, float(2 * stdtr(nu, -z)), float(distance)


def _correlation(left: Floats) -> float:
    """Upper end of the correlation of neighbouring days, by what they leave of two levels: less its
    bias, with three standard errors: looks at many nights rest on it.
    """
    number, lag = len(left), float(left[1:] @ left[:-1]) / (float(left @ left) or 1.0)
    upper = lag + 2 * (1 + 3 * lag) / number + 3 / number**0.5
    return float(min(max(upper, 0.0), MAX_LAG))


def _beyond_of_steps(*sides: Estimates) -> float:
    """Variance beyond the standard errors by the median step between neighbours, which other
    changes of the level hardly touch.
    """
    values, errors = (np.concatenate(each) for each in list(zip(*sides, strict=True))[:2])
    own = errors[1:] ** 2 + errors[:-1] ** 2
    from scipy.special import gammaincinv

    median = 2 * gammaincinv(0.5, 0.5)  # of chi-squared with one degree of freedom
    ratio = float(np.median(np.diff(values) ** 2 / own)) / median
    return float(max(0.0, ratio - 1) * np.median(own) / 2)


def _level(part: Estimates) -> tuple[float, float, float]:
    """Mean weighted by precision, its variance, and the degrees of freedom of that."""
    weights = part.errors**-2.0
    shares = weights / weights.sum()
    variances = (shares * part.errors) ** 2
    total = float(variances.sum())
    return (
        float(shares @ part.values),
        total,
        total**2 / float(np.sum(variances**2 / part.freedom)),
    )


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
        """Where the speed-up moved by more than `SPEED_FLOOR`, oldest first.

        The looks at a growing series share the level: each has an equal part of those so far, of
        which none can find a change before `MIN_ESTIMATES`.
        """
        return self._changes(self.measurements)

    @cached_property
    def possible(self) -> "Change | None":
        """A fall that the newest measurement alone shows: a second day like it would be a
        change.
        """
        again = self._changes([*self.measurements, *self.measurements[-1:]])
        last = again[-1] if len(again) > len(self.changes) else None
        newest = last is not None and last.at == self.measurements[-1].at
        return last if last and newest and last.ratio < 1 else None

    def _changes(self, measurements: Sequence[TrendPoint]) -> "Sequence[Change]":
        logs = [each.found for each in measurements]
        found = change_points(
            [each.log for each in logs],
            [each.se for each in logs],
            [each.freedom for each in logs],
            alpha=ALPHA / self.series / max(1, len(logs) - MIN_ESTIMATES + 1),
            floor=SPEED_FLOOR,
        )
        return [
            Change(
                measurements[each.place].at,
                exp(each.before),
                exp(each.after),
                differences(*measurements[each.place - 1 : each.place + 1]),
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
