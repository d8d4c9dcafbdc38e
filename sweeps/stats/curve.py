"""Curve: the paired speed-ups of one arm along one axis, where they cross 1, what lies between
them, and which place to measure next in a search for a break-even.

Claims rest on the verdicts of the points and name measured points only. The cost model gives the
likeliest place of a break-even between two of them, never a narrower bracket, and a speed-up
between two sizes. Nothing is extrapolated.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from math import copysign, exp, hypot, inf, log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from sweeps.model.identity import FrozenModel
from sweeps.stats.cost_model import (
    MODEL_SD,
    CostFit,
    FittedCrossing,
    LaunchWork,
    crossing,
    fit_costs,
    fit_launch_work,
    interpolated,
)
from sweeps.stats.pooling import ALPHA, SpeedUp, Verdict


class Point(FrozenModel):
    """One speed-up on a curve; `low` and `high` are `None` where no interval is known."""

    x: float = Field(allow_inf_nan=False)
    speedup: float = Field(gt=0, allow_inf_nan=False)
    low: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    high: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    se: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Standard error of the log speed-up, what differs between visits included."""
    verdict: Verdict
    pairs: int = Field(default=0, ge=0)
    gmacs_baseline: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    gmacs: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of the arm, with what its method adds."""
    no_op: bool = False
    """Whether the arm saw the same tokens and MACs as the baseline: its speed-up does not depend on
    the method."""
    comparison_id: str = ""
    wrong: bool = False
    """Whether a flag marks the measurement as wrong, not only as noisy."""

    @model_validator(mode="after")
    def _ordered(self) -> "Point":
        if (self.low or self.speedup) > self.speedup or (self.high or self.speedup) < self.speedup:
            raise ValueError(
                f"speed-up {self.speedup} at x={self.x} lies outside its own interval [{self.low},"
                f" {self.high}]"
            )
        return self


class Curve(FrozenModel):
    """Points in the order of x, each x once, measured in one environment."""

    axis: str
    """What x is: `tokens`, `gmacs`, or any numeric field or parameter."""
    points: tuple[Point, ...] = ()

    @field_validator("points", mode="after")
    @classmethod
    def _sorted(cls, points: tuple[Point, ...]) -> tuple[Point, ...]:
        ordered = tuple(sorted(points, key=lambda point: point.x))
        twice = sorted({left.x for left, right in pairwise(ordered) if left.x == right.x})
        if twice:
            where = ", ".join(f"{x:g}" for x in twice)
            raise ValueError(
                f"several points at x = {where}: pool their rounds first, or split the curve by"
                " whatever else differs"
            )
        return ordered

    def usable(self) -> tuple[Point, ...]:
        """The points that count: those that no flag marks as wrong, with the verdict that each has
        on the curve (`_confirmed`).
        """
        counted = [point for point in self.points if not point.wrong]
        active = _confirmed([point for point in counted if not point.no_op])
        idle = [point for point in counted if point.no_op]
        return tuple(sorted([*active, *idle], key=lambda point: point.x))

    def gaps(self) -> list[Point]:
        """The unclear points that lie between clear ones."""
        points = [point for point in self.usable() if not point.no_op]
        clear = [at for at, point in enumerate(points) if point.verdict in CLEAR] or [0]
        return [p for p in points[clear[0] : clear[-1]] if p.verdict == "unclear"]


CLEAR = ("faster", "slower")
"""Verdicts between which a break-even lies."""
SUPPORT = 0.5
"""A point supports its neighbours if its log speed-up is at least so many half-widths of its
interval from 0: 92 % one-sided, where the interval holds with 99.5 %."""
ALONE = 2.0
"""From so many half-widths on a point is clear without support."""


def _confirmed(points: Sequence[Point]) -> Iterator[Point]:
    """The points of a curve; one that is faster or slower without support is `unclear`.

    Support is a neighbour on the same side of 1 (`SUPPORT`), an interval far from 1 (`ALONE`), or
    the place at an end of the curve, where a fixed sequence of tests begins. The level of a point
    thus does not depend on the number of points, and the false claims of a curve hardly do
    (`tests/sweeps/scenarios/test_sizes.py`).
    """
    shares = [_half_widths(point) for point in points]
    for at, point in enumerate(points):
        near = shares[at - 1 : at + 2 : 2] if 0 < at < len(points) - 1 else [inf, -inf]
        share = shares[at]
        lone = abs(share) < ALONE and max(copysign(1, share) * each for each in near) < SUPPORT
        yield (
            point.model_copy(update={"verdict": "unclear"})
            if (lone and point.verdict in CLEAR)
            else point
        )


def _half_widths(point: Point) -> float:
    """Log speed-up in half-widths of its interval; infinite for a clear one without interval."""
    half = log(point.high / point.speedup) if point.high else 0.0
    signs = {"faster": inf, "slower": -inf}
    return log(point.speedup) / half if half else signs.get(point.verdict, 0.0)


MIN_POINTS = 2
NEVER_GAIN = 0.05
"""A method of which no point is faster, and of which none can gain more than this, is not shown to
pay (`never`)."""

Claim = Literal[
    "crossing",
    "pays_from",
    "pays_up_to",
    "pays_at_both_ends",
    "pays_between",
    "always",
    "never",
    "same",
    "no_effect",
    "unclear",
]


class Crossing(FrozenModel):
    """Where the speed-up crosses 1: between the measured points `low` and `high`, of which one may
    be unknown.
    """

    x: float | None
    """The likeliest place; `None` where only a bound is known, and between neighbouring points that
    no cost model joins."""
    low: float | None
    high: float | None
    direction: Literal["gains", "loses"]
    """As x rises: `gains` from slower to faster, `loses` from faster to slower."""
    grid_limited: bool = False
    """No point lies between `low` and `high`: only more points, not more pairs, can narrow them."""


class BreakEven(FrozenModel):
    """The break-even of a curve."""

    verdict: Claim
    crossings: tuple[Crossing, ...] = ()
    """In the order of x; the bound of `pays_from` (its `high`) and of `pays_up_to` (its `low`)
    likewise."""
    x_first: float | None = None
    """The smallest x that the claim rests on; points that a flag excludes, and those without
    effect, do not count."""
    x_last: float | None = None
    """The largest."""
    worst_loss: float | None = None
    """Share of time that is lost at most where it does not pay, by the intervals of the points
    there."""
    largest_gain: float | None = None
    """Largest speed-up less 1 that the interval of any point allows."""
    points: int
    """How many points it rests on."""


def break_even(curve: Curve) -> BreakEven:
    """What the points of a curve allow to claim about it.

    `no_effect`: at every point the arm saw the same tokens and MACs as the baseline. Such points
    are left out of every other claim. `always`: every point is faster. `pays_from`, `pays_up_to`:
    every point from there to the end of the axis is faster, and none is slower; `crossing`: the
    same, and a point on the other side is clearly slower: the bracket reaches from the last such
    point to the first from which on every point is faster. `pays_at_both_ends`: every point is
    faster at both ends, and none between them. `pays_between`: faster points elsewhere, or one at
    an end and others apart from it, with the brackets between clear points of opposite verdict.
    `same`: every point is within the floor. `never`: none is faster, and none can gain more than
    `NEVER_GAIN`. Else `unclear`.

    A false claim at a measured size needs a false verdict there that `_confirmed` keeps; at most
    5 % per curve, whatever the number of sizes up to 32, which `tests/sweeps/scenarios/` and
    `tests/sweeps/test_breakeven.py` simulate.
    """
    usable = curve.usable()
    points = [point for point in usable if not point.no_op]
    if not points:
        return BreakEven(verdict="no_effect" if usable else "unclear", points=len(usable))
    claim = _claim(points)
    gain = max((point.high or inf) for point in points) - 1
    return BreakEven(
        verdict=claim.verdict,
        crossings=claim.crossings,
        x_first=points[0].x,
        x_last=points[-1].x,
        worst_loss=_worst_loss(claim.elsewhere),
        largest_gain=gain if gain < inf else None,
        points=len(points),
    )


class _Claim(NamedTuple):
    verdict: Claim
    crossings: tuple[Crossing, ...] = ()
    elsewhere: Sequence[Point] = ()
    """The points on the other side of a bound, where it does not clearly pay."""


def _claim(points: Sequence[Point]) -> _Claim:
    faster = [point.verdict == "faster" for point in points]
    if len(points) < MIN_POINTS or all(faster) or not any(faster):
        return _Claim(_uniform_claim(points))
    first, last = faster.index(False), len(points) - faster[::-1].index(False)
    between = points[first:last]  # what remains without the faster points at both ends
    gaps = any(faster[first:last])
    lost = Crossing(x=None, low=points[first - 1].x, high=None, direction="loses")
    gained = Crossing(x=None, low=None, high=points[last % len(points)].x, direction="gains")
    crossings = _between_verdicts(points)
    if faster[0] and faster[-1] and not gaps:
        return _Claim("pays_at_both_ends", crossings or (lost, gained), between)
    alone = gaps and not crossings and len(points) - len(between) == 1
    if faster[0] == faster[-1] or alone or len(crossings) > 1:
        return _Claim("pays_between", crossings)
    bound = lost if faster[0] else gained
    if not crossings:
        return _Claim("pays_up_to" if faster[0] else "pays_from", (bound,), between)
    known = {"low": lost.low} if faster[0] else {"high": gained.high}
    whole = crossings[0].model_copy(update=known)
    limited = whole.grid_limited and whole == crossings[0]
    return _Claim("crossing", (whole.model_copy(update={"grid_limited": limited}),))


def _uniform_claim(points: Sequence[Point]) -> Claim:
    """What is claimed of points all of which are faster, or none."""
    if len(points) < MIN_POINTS:
        return "unclear"
    if points[0].verdict == "faster":
        return "always"
    if all(point.verdict == "same" for point in points):
        return "same"
    return (
        "never"
        if all(point.high is not None and point.high - 1 <= NEVER_GAIN for point in points)
        else "unclear"
    )


def _between_verdicts(points: Sequence[Point]) -> tuple[Crossing, ...]:
    """A crossing between every two clear points of opposite verdict with none clear between
    them.
    """
    clear = [index for index, point in enumerate(points) if point.verdict in ("faster", "slower")]
    changes = [
        (left, right)
        for left, right in pairwise(clear)
        if points[left].verdict != points[right].verdict
    ]
    fitted = _fitted(points) if len(changes) == 1 else None
    return tuple(
        Crossing(
            x=_likeliest(points[left : right + 1], fitted),
            low=points[left].x,
            high=points[right].x,
            direction="gains" if points[right].verdict == "faster" else "loses",
            grid_limited=right == left + 1,
        )
        for left, right in changes
    )


def _likeliest(bracket: Sequence[Point], fitted: FittedCrossing | None) -> float | None:
    """Where the cost model crosses 1, if it does inside the bracket, else the line through its ends
    if points lie between them, none of which is unclear on the other side of 1 than the line there.

    The line is straight in log speed-up and log x (in x, where that is not positive).
    """
    left, right = bracket[0], bracket[-1]
    if fitted is not None and fitted.x is not None and left.x < fitted.x < right.x:
        return fitted.x
    if len(bracket) == 2:
        return None
    share = log(left.speedup) / (log(left.speedup) - log(right.speedup))
    place = (
        exp(log(left.x) + share * log(right.x / left.x))
        if left.x > 0
        else left.x + share * (right.x - left.x)
    )
    for point in bracket[1:-1]:
        end = left if point.x < place else right
        if point.verdict == "unclear" and (point.speedup > 1) != (end.speedup > 1):
            return None
    return min(max(place, left.x), right.x)  # rounding must not carry it outside


def _fitted(points: Sequence[Point]) -> FittedCrossing | None:
    """The crossing of the cost model through the points, if it is adequate and their work is
    known.
    """
    found = fit_points(points)
    return predicted(found, points) if found is not None and found.adequate else None


def predicted(found: CostFit, points: Sequence[Point]) -> FittedCrossing | None:
    """Where the cost model crosses 1 among the points that it was fitted to, as
    `cost_model.crossing` finds it.
    """
    return crossing(found, [point.x for point in points], *_work(points))


def fit_points(points: Sequence[Point]) -> CostFit | None:
    """The cost model of points; `None` where the work or the standard error of one is not known, or
    there are too few.
    """
    errors = [point.se for point in points]
    if None in errors or not all(point.gmacs and point.gmacs_baseline for point in points):
        return None
    return fit_costs(
        *_work(points), [log(point.speedup) for point in points], np.asarray(errors, np.float64)
    )


def _work(points: Sequence[Point]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """GMACs of the baseline and of the arm, each of shape [points]."""
    baseline, arm = np.array(
        [[point.gmacs_baseline, point.gmacs] for point in points], np.float64
    ).T
    return baseline, arm


def _worst_loss(points: Sequence[Point]) -> float | None:
    """The largest share of time that the intervals allow to be lost; `None` where that is
    unlimited, or no point is given.
    """
    lows = [point.low for point in points]
    return max(0.0, *(1 / low - 1 for low in lows if low)) if lows and None not in lows else None


class MeasuredPoint(NamedTuple):
    """A point of a curve and the pooled speed-up behind it."""

    point: Point
    speedup: SpeedUp


class Interpolation(NamedTuple):
    """A speed-up between two neighbouring points."""

    speedup: SpeedUp
    left: MeasuredPoint
    right: MeasuredPoint


def interpolate(measured: Sequence[MeasuredPoint], x: float) -> Interpolation | None:
    """The speed-up at `x` between points of one curve, or `None` where none can be claimed.

    Points that a flag marks as wrong, or where the arm does nothing, do not count. There is no
    claim beyond the first and the last of the others, nor where the cost model cannot be fitted to
    them or does not fit. At whatever level, the interval is wider than those of both neighbours:
    they are measured, and what the model leaves unexplained at a size comes on top.
    """
    found = sorted(
        (each for each in measured if not (each.point.wrong or each.point.no_op)),
        key=lambda each: each.point.x,
    )
    places = [each.point.x for each in found]
    if len(found) < 2 or not places[0] < x < places[-1]:
        return None
    fit = fit_points([each.point for each in found])
    if fit is None or not fit.adequate:
        return None
    value, se = interpolated(fit, places, *_work([each.point for each in found]), x)
    after = next(index for index, place in enumerate(places) if place > x)
    left, right = found[after - 1], found[after]
    both = (left.speedup, right.speedup)
    speedup = SpeedUp(
        value,
        max(se, *(hypot(each.se, MODEL_SD) for each in both)),
        min(each.freedom for each in both),
        min(each.pairs for each in both),
    )
    return Interpolation(speedup, left, right)


def launch_work_of(points: Sequence[Point], seconds: Mapping[str, float]) -> LaunchWork | None:
    """The fit of points with their work, all of which have a standard error; `seconds` are the
    baseline's by comparison.
    """
    sides = [
        (p.gmacs_baseline, p.gmacs, seconds[p.comparison_id], log(p.speedup), p.se) for p in points
    ]
    return fit_launch_work(*np.array(sides, np.float64).T) if sides else None


SCAN = 4
"""Places spread over the bracket that are measured first, with all arms."""


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
    states = [
        (arm, state)
        for arm, curve in curves.items()
        for state in _open_progress(curve, feasible, factor)
    ]
    for arm, state in sorted(states, key=lambda each: -each[1].width):
        low, high = state.low, state.high
        points = {point.x: point for point in (*curves[arm].points, *curves[arm].usable())}
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
            middle = _middle(state)
            pairs = {x: point.pairs for x, point in points.items()}
            x = min(
                wanted,
                key=lambda place: (
                    pairs.get(place, 0),
                    abs(log(place / middle)) if low > 0 else abs(place - middle),
                ),
            )
            others = dict.fromkeys(
                name
                for name, other in states
                if other.low <= x <= other.high
                and (name, x) not in refused
                and all(point.x != x or _open(point, enough) for point in curves[name].usable())
            )
            return Request(x, tuple(others), state.width)
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
    end of the bracket, are known within `factor`, or lie between neighbouring feasible places,
    without an unclear point between two clear ones of one verdict.
    """
    settled = CurveProgress(break_even(curve), feasible[0], feasible[0])
    return max(_open_progress(curve, feasible, factor), key=lambda at: at.width, default=settled)


def _open_progress(
    curve: Curve, feasible: Sequence[float], factor: float
) -> Iterator[CurveProgress]:
    """Each stretch of places between which a curve is not settled."""
    found = break_even(curve)
    brackets = {(at.low, at.high) for at in found.crossings}
    for low, high in _intervals(curve, found, feasible):
        if (low, high) in brackets and 0 < low <= high <= factor * low:
            continue
        below = max((x for x in feasible if x <= low), default=feasible[0])
        above = min((x for x in feasible if x >= high), default=feasible[-1])
        if below < above:
            yield CurveProgress(found, below, above)


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
    stretches = clear if found.verdict == "crossing" else [first, *clear, last]
    for low, high in pairwise(stretches):
        if (low, high) not in brackets and (not clear or any(low <= x <= high for x in unclear)):
            ends.append((low, high))
    return ends
