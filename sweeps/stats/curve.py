"""Curve: the paired speed-ups of one arm along one axis."""

from itertools import pairwise

from pydantic import Field, field_validator, model_validator

from sweeps.identity import FrozenModel
from sweeps.stats.timing import DEFAULT_FLOOR, MIN_PAIRS, Estimate, Verdict, verdict


class Point(FrozenModel):
    """One speed-up on a curve; `low` and `high` are `None` where no interval is known."""

    x: float = Field(allow_inf_nan=False)
    speedup: float = Field(gt=0, allow_inf_nan=False)
    low: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    high: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    pairs: int | None = Field(default=None, ge=0)
    """`None` where it is not known (published figures): the interval then decides alone."""
    insufficient: bool = False
    """Whether fewer pairs were measured than requested."""
    comparison_id: str = ""
    flagged: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> "Point":
        if (self.low or self.speedup) > self.speedup or (self.high or self.speedup) < self.speedup:
            raise ValueError(f"speed-up {self.speedup} at x={self.x} lies outside its own interval [{self.low}, {self.high}]")
        return self

    @classmethod
    def measured(cls, x: float, estimate: Estimate, *, comparison_id: str = "", flagged: bool = False) -> "Point":
        """The point of a measured speed-up; interval ends that are 0 or infinite (too few pairs) become `None`."""
        low, high = estimate.low or None, estimate.high if estimate.high < float("inf") else None
        return cls(x=x, speedup=estimate.value, low=low, high=high, pairs=estimate.n, comparison_id=comparison_id, flagged=flagged)

    def verdict(self, floor: float = DEFAULT_FLOOR) -> Verdict:
        """The same word as `sweeps.stats.timing.verdict` gives to the measured speed-up."""
        if self.insufficient:
            return "insufficient"
        low, high = self.low or 0.0, self.high or float("inf")
        return verdict(Estimate(self.speedup, low, high, MIN_PAIRS if self.pairs is None else self.pairs), floor)


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
            raise ValueError(f"several points at x = {where}: pool their rounds first, or split the curve by whatever else differs")
        return ordered

    def usable(self, *, with_flagged: bool = False) -> tuple[Point, ...]:
        """The points that count: the unflagged ones; all of them on request, or if every one is flagged."""
        clean = tuple(point for point in self.points if not point.flagged)
        return self.points if with_flagged or not clean else clean
