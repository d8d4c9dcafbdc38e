"""Search for break-evens: which place on the axis to measure next, and with which arms, until every curve is settled."""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf, log, sqrt
from typing import NamedTuple

from sweeps.stats.breakeven import BreakEven, break_even
from sweeps.stats.curve import Curve, Point
from sweeps.stats.pooling import ALPHA

SCAN = 4
"""Places spread over the bracket that are measured first, with all arms."""


def point_alpha(max_points: int) -> float:
    """Level at which each place of a search is tested: that of a comparison, divided by the places that may be chosen."""
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
) -> Request | None:
    """What to measure next, given the curves so far; `None` when every curve is settled or nothing is left to try.

    `feasible` are the places that can be measured, ascending. First comes a coarse scan; then, for the curve whose interval is
    widest, the place in it that has fewest pairs, and of those the one nearest to its middle. Arms whose curve is settled there
    are left out. No more than `max_points` places are used; no pairs are added to points that have `enough`, nor where the arm
    does nothing, nor to the arms and places that are `refused`, because they cannot be measured. A place is chosen by what was
    measured before, and its verdict rests on what is measured after.
    """
    measured = {point.x for curve in curves.values() for point in curve.points}
    known = {(arm, point.x) for arm, curve in curves.items() for point in curve.points}.union(refused)
    for x in scan(feasible, max_points):
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
        inside = [x for x in feasible if max(low, idle) <= x <= high and (x in measured or len(measured) < max_points)]
        wanted = [x for x in inside if (arm, x) not in refused and (x not in points or _open(points[x], enough))]
        if wanted:
            middle = sqrt(low * high) if low > 0 else (low + high) / 2
            pairs = {x: point.pairs for x, point in points.items()}
            x = min(wanted, key=lambda place: (pairs.get(place, 0), abs(log(place / middle)) if low > 0 else abs(place - middle)))
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


def _open(point: Point, enough: Callable[[Point], bool]) -> bool:
    return not point.no_op and not enough(point)


def _idle(curve: Curve) -> list[float]:
    """The places from the lower end on at which the arm does nothing: below them nothing is to be found."""
    first = next((index for index, point in enumerate(curve.points) if not point.no_op), len(curve.points))
    return [point.x for point in curve.points[:first]]


def scan(feasible: Sequence[float], places: int = SCAN) -> list[float]:
    """The places of the coarse scan, `places` at most: both ends, and what lies evenly between them."""
    last, steps = len(feasible) - 1, min(SCAN, places) - 1
    return [feasible[at] for at in sorted({round(step * last / steps) for step in range(steps + 1)})]


def curve_progress(curve: Curve, feasible: Sequence[float], factor: float) -> CurveProgress:
    """What is known of a curve, and between which places it is not settled.

    Settled is a curve without a break-even, and one whose crossings, or the bound of it with the end of the bracket, are known
    within `factor`, or lie between neighbouring feasible places.
    """
    found = break_even(curve)
    if found.verdict in ("always", "never", "no_effect"):
        return CurveProgress(found, feasible[0], feasible[0])
    intervals = [
        (feasible[0] if crossing.low is None else crossing.low, feasible[-1] if crossing.high is None else crossing.high)
        for crossing in found.crossings
    ] or [(feasible[0], feasible[-1])]
    low, high = max(intervals, key=lambda ends: ends[1] / ends[0] if ends[0] > 0 else inf)
    below = max((x for x in feasible if x <= low), default=feasible[0])
    above = min((x for x in feasible if x >= high), default=feasible[-1])
    neighbours = feasible.index(above) - feasible.index(below) <= 1
    if (low > 0 and high / low <= factor) or (neighbours and found.verdict == "crossing"):
        return CurveProgress(found, low, low)
    return CurveProgress(found, below, above)
