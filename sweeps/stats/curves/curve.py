"""Curve: the paired speed-ups of one arm along one axis."""

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from pydantic import Field, field_validator, model_validator

from sweeps.model.identity import FrozenModel
from sweeps.number_format import axis_label, axis_value
from sweeps.stats.pooling import Verdict


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
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Time that the jobs it was measured in took, with all of their arms."""
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
        """The points that count: those that no flag marks as wrong."""
        return tuple(point for point in self.points if not point.wrong)


DIGITS = 4
"""Of a place that is not a whole number."""
LEFT_OUT = "Wrong by a flag, and left out: "
"""Begins the sentence on the points that do not count."""
WORDS: dict[Verdict, str] = {
    "faster": "faster",
    "slower": "slower",
    "same": "no different",
    "unclear": "not clear",
    "insufficient": "measured by too few pairs",
    "quarantined": "measured on a slowed machine alone",
}

AMOUNT_WORDS: dict[Verdict, str] = {
    **WORDS,
    "faster": "less",
    "slower": "more",
    "insufficient": "read once, which is too little",
}
"""Of amounts such as peak memory and energy."""


def describe_curve(
    curve: Curve, parameter: str | None = None, words: Mapping[Verdict, str] = WORDS
) -> str:
    """The stretches of equal verdict along the axis in a sentence, and which points do not count.

    `parameter` is the one that varies along the axis `parameter`.
    """
    usable = curve.usable()
    points = [point for point in usable if not point.no_op]
    runs = [
        (verdict, list(run)) for verdict, run in groupby(points, key=lambda point: point.verdict)
    ]
    stretches = [f"{words[verdict]} at {_span(run, curve.axis)}" for verdict, run in runs]
    if nothing := [point for point in usable if point.no_op]:
        stretches.append(f"removes nothing at {_span(nothing, curve.axis)}")
    sentences = (
        [f"Along {axis_label(curve.axis, parameter).along}: {', '.join(stretches)}."]
        if stretches
        else ["No points were measured."]
    )
    if wrong := [axis_value(point.x, curve.axis, DIGITS) for point in curve.points if point.wrong]:
        sentences.append(f"{LEFT_OUT}{', '.join(wrong)}.")
    return " ".join(sentences)


def _span(points: Sequence[Point], axis: str) -> str:
    """The first and the last x, or the only one."""
    first, last = (axis_value(point.x, axis, DIGITS) for point in (points[0], points[-1]))
    return first if len(points) == 1 else f"{first} to {last}"
