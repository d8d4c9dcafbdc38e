"""Break-even: from where on, or up to where, an optimisation saves time along a curve; every claim holds for the whole curve.

Claims rest on the points' own verdicts, read as fixed-sequence tests from both ends of the axis, and on the fitted cost model
where that is adequate. Nothing is extrapolated.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, inf, log
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeps.identity import FrozenModel
from sweeps.metrics import SPEED_FLOOR
from sweeps.stats.cost_model import CostFit, FittedCrossing, crossing, fit_costs
from sweeps.stats.curve import Curve, Point

MIN_POINTS = 2
NEVER_GAIN = 0.05
"""A method of which no point is faster, and of which none can gain more than this, is not shown to pay (`never`)."""

Claim = Literal["crossing", "pays_from", "pays_up_to", "pays_at_both_ends", "always", "never", "no_effect", "unclear"]


class Crossing(FrozenModel):
    """Where the speed-up crosses 1: between `low` and `high`, of which one may be unknown."""

    x: float | None
    """The likeliest place; `None` where only a bound is known."""
    low: float | None
    high: float | None
    direction: Literal["gains", "loses"]
    """As x rises: `gains` from slower to faster, `loses` from faster to slower."""
    grid_limited: bool = False
    """No point lies between `low` and `high`: only more points, not more pairs, can narrow them."""
    fitted: bool = False
    """Whether `low` or `high` comes from the cost model, and not from a measured point."""


class BreakEven(FrozenModel):
    """The break-even of a curve."""

    verdict: Claim
    crossings: tuple[Crossing, ...] = ()
    """In the order of x; the bound of `pays_from` (its `high`) and of `pays_up_to` (its `low`) likewise."""
    worst_loss: float | None = None
    """Share of time that is lost at most where it does not pay, by the intervals of the points there."""
    largest_gain: float | None = None
    """Largest speed-up less 1 that the interval of any point allows."""
    pairs_factor: float | None = None
    """Times as many pairs would probably decide a curve that is unclear; `None` where that is not known."""
    more_seconds: float | None = None
    """Measuring time that this would take, by what the points that are not clear took so far; `None` where that is not known."""
    points: int
    """How many points it rests on."""


def break_even(curve: Curve, *, modelled: bool = True) -> BreakEven:
    """What can be claimed about a curve, by its points and, where it is adequate and wanted (`modelled`), by the cost model.

    `no_effect`: at every point the arm saw the same tokens and MACs as the baseline. Such points are left out. `crossing`: the
    points change between faster and slower, or the cost model crosses 1 with both sides clear; several are possible.
    `pays_from` and `pays_up_to`: every point from there to the end of the axis is faster, and beyond it none is clear;
    `pays_at_both_ends`: both, with points that are not clear between the two bounds.
    `always`: every point is faster. `never`: none is, and none can gain more than `NEVER_GAIN`. Else `unclear`.

    A false claim needs a false verdict at an end of the axis or inside a run of verdicts, or an interval of the cost model that
    misses: at most 5 % per curve, which `tests/sweeps/test_breakeven.py` simulates.
    """
    usable = curve.usable()
    points = [point for point in usable if not point.no_op]
    if not points:
        return BreakEven(verdict="no_effect" if usable else "unclear", points=len(usable))
    claim = _claim(points, _fitted(points) if modelled else None)
    gain = max((point.high or inf) for point in points) - 1
    factors = _pairs_factors(points) if claim.verdict == "unclear" else {}
    return BreakEven(
        verdict=claim.verdict,
        crossings=claim.crossings,
        worst_loss=_worst_loss(claim.beyond),
        largest_gain=gain if gain < inf else None,
        pairs_factor=max(factors.values(), default=None),
        more_seconds=_more_seconds(points, factors) if factors else None,
        points=len(points),
    )


class _Claim(NamedTuple):
    verdict: Claim
    crossings: tuple[Crossing, ...] = ()
    beyond: Sequence[Point] = ()
    """The points where it does not clearly pay, on the other side of a bound."""


def _claim(points: Sequence[Point], fitted: FittedCrossing | None) -> _Claim:
    verdicts = {point.verdict for point in points}
    crossings = _between_verdicts(points)
    if fitted is not None and len(crossings) == 1:
        crossings = (_narrowed(crossings[0], fitted),)
    elif fitted is not None and not crossings and verdicts != {"faster"} and None not in (fitted.low, fitted.high):
        crossings = (_of_fit(fitted),)
    if crossings:
        return _Claim("crossing", crossings)
    if len(points) < MIN_POINTS:
        return _Claim("unclear")
    if "faster" in verdicts:
        return _from_the_ends(points, fitted)
    never = all(point.high is not None and point.high - 1 <= NEVER_GAIN for point in points)
    return _Claim("never" if never else "unclear")


def _from_the_ends(points: Sequence[Point], fitted: FittedCrossing | None) -> _Claim:
    """What the unbroken runs of faster points from both ends of the axis allow to claim, where no point is slower."""
    faster = [point.verdict == "faster" for point in points]
    if all(faster):
        return _Claim("always")
    start = len(faster) - faster[::-1].index(False)
    end = faster.index(False)
    if faster[0] and faster[-1]:
        return _Claim("pays_at_both_ends", (_at_least(points[end - 1].x), _at_most(points[start].x)), points[end:start])
    if faster[-1]:
        fit = fitted.high if fitted is not None and fitted.gains else None
        return _Claim("pays_from", (_at_most(points[start].x, fit),), points[:start])
    if faster[0]:
        fit = fitted.low if fitted is not None and not fitted.gains else None
        return _Claim("pays_up_to", (_at_least(points[end - 1].x, fit),), points[end:])
    return _Claim("unclear")


def _at_most(x: float, fit: float | None = None) -> Crossing:
    """The bound of a gain at a measured point, or lower by the cost model."""
    bound = x if fit is None else min(x, fit)
    return Crossing(x=None, low=None, high=bound, direction="gains", fitted=bound < x)


def _at_least(x: float, fit: float | None = None) -> Crossing:
    """The bound of a loss at a measured point, or higher by the cost model."""
    bound = x if fit is None else max(x, fit)
    return Crossing(x=None, low=bound, high=None, direction="loses", fitted=bound > x)


def _between_verdicts(points: Sequence[Point]) -> tuple[Crossing, ...]:
    """A crossing between every two neighbouring clear points of opposite verdict."""
    clear = [index for index, point in enumerate(points) if point.verdict in ("faster", "slower")]
    changes = [(left, right) for left, right in pairwise(clear) if points[left].verdict != points[right].verdict]
    return tuple(
        Crossing(
            x=_interpolated(points[left], points[right]),
            low=points[left].x,
            high=points[right].x,
            direction="gains" if points[right].verdict == "faster" else "loses",
            grid_limited=right == left + 1,
        )
        for left, right in changes
    )


def _interpolated(left: Point, right: Point) -> float:
    """Where the line through two points on opposite sides of 1, straight in log speed-up and log x (x, if not positive), is 1."""
    share = log(left.speedup) / (log(left.speedup) - log(right.speedup))
    place = exp(log(left.x) + share * log(right.x / left.x)) if left.x > 0 else left.x + share * (right.x - left.x)
    return min(max(place, left.x), right.x)  # rounding must not carry it outside


def _fitted(points: Sequence[Point]) -> FittedCrossing | None:
    """The crossing of the cost model through the points, if it is adequate and their work is known."""
    found = fit_points(points)
    return predicted(found, points) if found is not None and found.adequate else None


def predicted(found: CostFit, points: Sequence[Point]) -> FittedCrossing | None:
    """Where the cost model crosses 1 among the points that it was fitted to, as `cost_model.crossing` finds it."""
    return crossing(found, [point.x for point in points], *_work(points))


def fit_points(points: Sequence[Point]) -> CostFit | None:
    """The cost model of points; `None` where the work or the standard error of one is not known, or there are too few."""
    errors = [point.se for point in points]
    if None in errors or not all(point.gmacs and point.gmacs_baseline for point in points):
        return None
    processes = sorted({process for point in points for process in point.loads})
    loads = [[point.loads.get(process, 0.0) for process in processes] for point in points] if processes else None
    return fit_costs(*_work(points), [log(point.speedup) for point in points], np.asarray(errors, np.float64), loads)


def _work(points: Sequence[Point]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """GMACs of the baseline and of the arm, each of shape [points]."""
    baseline, arm = np.array([[point.gmacs_baseline, point.gmacs] for point in points], np.float64).T
    return baseline, arm


def _narrowed(bracket: Crossing, fitted: FittedCrossing) -> Crossing:
    """The crossing between two points, narrowed by the cost model where both agree."""
    lows, highs = (bracket.low, fitted.low), (bracket.high, fitted.high)
    low, high = max(end for end in lows if end is not None), min(end for end in highs if end is not None)
    if fitted.gains != (bracket.direction == "gains") or low >= high:
        return bracket
    x = fitted.x if fitted.x is not None and low <= fitted.x <= high else bracket.x
    x = min(max(x, low), high) if x is not None else None
    narrower = (low, high) != (bracket.low, bracket.high)
    return bracket.model_copy(
        update={"x": x, "low": low, "high": high, "fitted": narrower, "grid_limited": bracket.grid_limited and not narrower}
    )


def _of_fit(fitted: FittedCrossing) -> Crossing:
    return Crossing(x=fitted.x, low=fitted.low, high=fitted.high, direction="gains" if fitted.gains else "loses", fitted=True)


def _worst_loss(points: Sequence[Point]) -> float | None:
    """The largest share of time that the intervals allow to be lost; `None` where that is unlimited, or no point is given."""
    lows = [point.low for point in points]
    return max(0.0, *(1 / low - 1 for low in lows if low)) if lows and None not in lows else None


def _pairs_factors(points: Sequence[Point]) -> dict[float, float]:
    """Times as many pairs at which each point that is not clear would probably have a verdict, by x; empty if one is not known."""
    factors = {}
    for point in points:
        if point.verdict not in ("unclear", "insufficient"):
            continue
        if not point.low or not point.high:
            return {}
        effect, width = abs(log(point.speedup)), log(point.high / point.low) / 2
        needed = max(effect, log(1 + SPEED_FLOOR) - effect)
        factors[point.x] = (width / needed) ** 2
    return factors


def _more_seconds(points: Sequence[Point], factors: Mapping[float, float]) -> float | None:
    """What the pairs that are missing by `factors` would take, half of what was measured at least."""
    taken = [(max(factors[point.x] - 1, 0.5), point.seconds) for point in points if point.x in factors]
    known = [more * seconds for more, seconds in taken if seconds is not None]
    return sum(known) if len(known) == len(taken) else None
