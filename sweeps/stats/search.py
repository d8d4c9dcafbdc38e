"""Search for break-evens: which place on the axis to measure next, and with which arms, until every
curve is settled.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from math import inf, log, sqrt
from typing import NamedTuple

from sweeps.stats.curve import BreakEven, Curve, Point, break_even
from sweeps.stats.pooling import ALPHA

SCAN = 4
"""Places spread over the bracket that are measured first, with all arms."""
CLEAR = ("faster", "slower")
"""Verdicts between which a break-even lies."""


def point_alpha(max_points: int) -> float:
    """Level at which each place of a search is tested: that of a comparison, divided by the places
    that may be chosen.
    """
    return ALPHA / max_points


class Request(NamedTuple):
    """Measure these arms at `x`, whether for the first time or with more pairs."""

    x: float
    arms: tuple[str, ...]
    width: float = inf
    """Of the interval that it is to narrow, see `CurveProgress`."""


class CurveProgress(NamedTuple):
    """How far the search for the break-even of one arm is."""

    found: BreakEven
    low: float
    high: float
    """Between these places the curve is not settled; equal where it is."""

    @property
    def width(self) -> float:
        """Of the interval in logarithms; its length where the axis reaches 0."""
        return log(self.high / self.low) if self.low > 0 else self.high - self.low


def next_request(
    curves: Mapping[str, Curve],
    feasible: Sequence[float],
    *,
    factor: float,
    max_points: int,
    enough: Callable[[Point], bool],
    refused: Collection[tuple[str, float]] = (),
    first: Sequence[float] | None = None,
) -> Request | None:
    """What to measure next, given the curves so far; `None` when every curve is settled or nothing
    is left to try.

    `feasible` are the places that can be measured, ascending. First come the places `first`
    (default: a coarse scan); then, for the curve whose interval is widest, the place in it that has
    fewest pairs, and of those the one nearest to the likeliest break-even. Arms whose curve is
    settled there are left out. No more than `max_points` places are used; no pairs are added to
    points that are clear or have `enough`, nor where the arm does nothing, nor to the arms and
    places that are `refused`. A place is chosen by what was measured before, and its verdict rests
    on what is measured after.
    """
    measured = {point.x for curve in curves.values() for point in curve.points}
    known = {(arm, point.x) for arm, curve in curves.items() for point in curve.points}.union(
        refused
    )
    for x in scan(feasible, max_points) if first is None else first:
        missing = tuple(arm for arm in curves if (arm, x) not in known)
        if missing:
            return Request(x, missing)
    states = {arm: curve_progress(curve, feasible, factor) for arm, curve in curves.items()}
    for arm in sorted(states, key=lambda name: -states[name].width):
        if not states[arm].width:
            break
        low, high = states[arm].low, states[arm].high
        points = {point.x: point for point in curves[arm].points}
        idle = max(_idle(curves[arm]), default=-inf)
        inside = [
            x
            for x in feasible
            if max(low, idle) <= x <= high and (x in measured or len(measured) < max_points)
        ]
        wanted = [
            x
            for x in inside
            if (arm, x) not in refused and (x not in points or _open(points[x], enough))
        ]
        if wanted:
            middle = _middle(states[arm])
            pairs = {x: point.pairs for x, point in points.items()}
            x = min(
                wanted,
                key=lambda place: (
                    pairs.get(place, 0),
                    abs(log(place / middle)) if low > 0 else abs(place - middle),
                ),
            )
            others = (
                name
                for name, state in states.items()
                if state.width
                and state.low <= x <= state.high
                and (name, x) not in refused
                and all(point.x != x or _open(point, enough) for point in curves[name].points)
            )
            return Request(x, tuple(others), states[arm].width)
    return None


def _middle(state: CurveProgress) -> float:
    """The likeliest break-even between the places of a curve that is not settled, else their
    mean.
    """
    low, high = state.low, state.high
    mean = sqrt(low * high) if low > 0 else (low + high) / 2
    return next(
        (at.x for at in state.found.crossings if at.x is not None and low < at.x < high), mean
    )


def _open(point: Point, enough: Callable[[Point], bool]) -> bool:
    """Whether more pairs at a point can narrow an interval."""
    return not (point.no_op or point.verdict in CLEAR or enough(point))


def _idle(curve: Curve) -> list[float]:
    """The places from the lower end on at which the arm does nothing: below them nothing is to be
    found.
    """
    first = next(
        (index for index, point in enumerate(curve.points) if not point.no_op), len(curve.points)
    )
    return [point.x for point in curve.points[:first]]


def scan(feasible: Sequence[float], places: int = SCAN) -> list[float]:
    """The places of the coarse scan, `places` at most: both ends, and what lies evenly between
    them.
    """
    last, steps = len(feasible) - 1, min(SCAN, places) - 1
    return (
        [feasible[at] for at in sorted({round(step * last / steps) for step in range(steps + 1)})]
        if steps
        else [feasible[0]]
    )


def curve_progress(curve: Curve, feasible: Sequence[float], factor: float) -> CurveProgress:
    """What is known of a curve, and between which places it is not settled.

    Settled is a curve without a break-even, and one whose crossings, or the bound of it with the
    end of the bracket, are known within `factor`, or lie between neighbouring feasible places.
    """
    found = break_even(curve)
    wide = [
        ends
        for ends in _intervals(curve, found, feasible)
        if not 0 < ends[0] <= ends[1] <= factor * ends[0]
    ]
    if not wide:
        return CurveProgress(found, feasible[0], feasible[0])
    low, high = max(wide, key=lambda ends: ends[1] / ends[0] if ends[0] > 0 else inf)
    below = max((x for x in feasible if x <= low), default=feasible[0])
    above = min((x for x in feasible if x >= high), default=feasible[-1])
    return CurveProgress(found, below, above)


def _intervals(
    curve: Curve, found: BreakEven, feasible: Sequence[float]
) -> list[tuple[float, float]]:
    """Between which places the verdict is not known: brackets with a feasible place inside, and
    stretches of points not clear.
    """
    if found.verdict in ("always", "never", "same", "no_effect"):
        return []
    first, last = feasible[0], feasible[-1]
    clear = [point.x for point in curve.usable() if point.verdict in CLEAR and not point.no_op]
    unclear = [point.x for point in curve.usable() if point.x not in clear and not point.no_op]
    brackets = {
        (at.low, at.high): at
        for at in found.crossings
        if at.low is not None and at.high is not None
    }
    ends = [(low, high) for low, high in brackets if any(low < x < high for x in feasible)]
    if found.verdict == "crossing":
        return ends
    for low, high in pairwise([first, *clear, last]):
        if (low, high) not in brackets and (not clear or any(low <= x <= high for x in unclear)):
            ends.append((low, high))
    return ends
