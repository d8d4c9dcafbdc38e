"""Break-even: where along a curve an optimisation begins or ceases to save time, or why that is not known."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from math import exp, log
from statistics import median
from typing import Literal

from sweeps.identity import FrozenModel
from sweeps.stats.curve import Curve, Point
from sweeps.stats.timing import DEFAULT_FLOOR, Verdict

MIN_POINTS = 2
WORDS: dict[Verdict, str] = {
    "faster": "faster",
    "slower": "slower",
    "same": "no different",
    "unclear": "not clear",
    "insufficient": "measured by too few pairs",
}


class Crossing(FrozenModel):
    """Where the speed-up crosses 1: between `low` and `high`, the nearest points on both sides that are clear."""

    x: float
    low: float
    high: float
    direction: Literal["gains", "loses"]
    """As x rises: `gains` from slower to faster, `loses` from faster to slower."""
    grid_limited: bool
    """No point lies between `low` and `high`: only more points, not more pairs, can narrow them."""


class BreakEven(FrozenModel):
    """The break-even of a curve; `why` explains it in a sentence."""

    verdict: Literal["crossing", "always", "never", "unclear"]
    crossings: tuple[Crossing, ...] = ()
    """In the order of x; empty unless the verdict is `crossing`."""
    why: str
    points: int
    """How many points it rests on."""


def break_even(curve: Curve, floor: float = DEFAULT_FLOOR, *, with_flagged: bool = False) -> BreakEven:
    """The break-even of a curve. `floor` is the device's noise floor; flagged points count on request, or if all are.

    A point is clear if its verdict is `faster` or `slower`, noise floor included, so that break-even never contradicts the
    verdicts beside the points. A crossing lies between two neighbouring clear points of opposite verdict; whatever lies
    between them is not clear and belongs to its interval. Its x is where the line through the speed-ups, straight in log
    speed-up and log x (in x, where x is not positive), meets 1 between them; the median of these places if it does so more
    than once. `always`: every point is faster. `never`: every point is slower or the same. Nothing is extrapolated.
    """
    points = curve.usable(with_flagged=with_flagged)
    verdicts = [point.verdict(floor) for point in points]
    clear = [index for index, verdict in enumerate(verdicts) if verdict in ("faster", "slower")]
    crossings = tuple(_crossing(points[left : right + 1]) for left, right in pairwise(clear) if verdicts[left] != verdicts[right])
    verdict: Literal["crossing", "always", "never", "unclear"] = "unclear"
    if crossings:
        verdict = "crossing"
    elif len(points) >= MIN_POINTS and set(verdicts) == {"faster"}:
        verdict = "always"
    elif len(points) >= MIN_POINTS and set(verdicts) <= {"slower", "same"}:
        verdict = "never"
    why = _why(curve, points, verdicts, crossings, floor)
    return BreakEven(verdict=verdict, crossings=crossings, why=why, points=len(points))


def _crossing(points: Sequence[Point]) -> Crossing:
    """The crossing between the first and the last of `points`, both clear and on opposite sides of 1."""
    first, last = points[0], points[-1]
    logarithmic = first.x > 0
    path = [(log(point.x) if logarithmic else point.x, log(point.speedup)) for point in points]
    places = [x0 + (x1 - x0) * y0 / (y0 - y1) for (x0, y0), (x1, y1) in pairwise(path) if min(y0, y1) < 0 < max(y0, y1)]
    place = median([*places, *(x for x, y in path if y == 0)])
    if logarithmic:
        place = exp(place)
    return Crossing(
        x=min(max(place, first.x), last.x),  # rounding must not carry it outside
        low=first.x,
        high=last.x,
        direction="gains" if first.speedup < 1 else "loses",
        grid_limited=len(points) == 2,
    )


def _why(curve: Curve, points: Sequence[Point], verdicts: Sequence[Verdict], crossings: Sequence[Crossing], floor: float) -> str:
    """Plain sentences: the finding, the stretches of equal verdict along the axis, and what is flagged."""
    if not points:
        return "No points were measured."
    stretches = [
        f"{WORDS[verdict]} at {_span([point for _, point in run])}"
        for verdict, run in groupby(zip(verdicts, points, strict=True), key=lambda pair: pair[0])
    ]
    sentences = [_finding(curve.axis, verdicts, crossings, floor), f"Along {curve.axis}: {', '.join(stretches)}."]
    flagged, left_out = sum(point.flagged for point in points), len(curve.points) - len(points)
    if flagged == len(points):
        sentences.append("All points are flagged; they count, since there are no others.")
    elif flagged:
        sentences.append(f"Flagged, but counted: {flagged} of {len(points)} points.")
    if left_out:
        sentences.append(f"Flagged and left out: {left_out} of {len(curve.points)} points.")
    return " ".join(sentences)


def _finding(axis: str, verdicts: Sequence[Verdict], crossings: Sequence[Crossing], floor: float) -> str:
    if crossings:
        found = "; ".join(
            f"{'begins' if crossing.direction == 'gains' else 'ceases'} to pay between {axis} = {_number(crossing.low)}"
            f" and {_number(crossing.high)}{' (neighbouring points)' if crossing.grid_limited else ''}"
            for crossing in crossings
        )
        return f"{found[0].upper()}{found[1:]}."
    if len(verdicts) < MIN_POINTS:
        return "One point is not a curve."
    seen = set(verdicts)
    if seen in ({"faster"}, {"slower"}, {"slower", "same"}):
        return f"{' or '.join(WORDS[word] for word in WORDS if word in seen).capitalize()} at every point measured."
    if seen == {"same"}:
        return f"No difference beyond {100 * floor:.3g} % at any point measured."
    for here, missing in (("faster", "slower"), ("slower", "faster")):
        if here in seen:
            return f"{here.capitalize()} at some points, clearly {missing} at none, so no crossing is known."
    return "Neither faster nor slower is clear at any point."


def _span(points: Sequence[Point]) -> str:
    """The first and the last x, or the only one."""
    first, last = _number(points[0].x), _number(points[-1].x)
    return first if len(points) == 1 else f"{first} to {last}"


def _number(x: float) -> str:
    return f"{x:.0f}" if abs(x) >= 1000 else f"{x:.4g}"
