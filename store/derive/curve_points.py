"""Points of a curve, from rows of effects."""

from collections.abc import Sequence
from math import inf, log
from typing import Any

from sqlalchemy import Row

from sweeps.model.flags import split_flags, wrong
from sweeps.stats.curves.curve import Curve, Point
from sweeps.stats.pooling import SpeedUp

SIZE_AXES = ("tokens", "gmacs", "image_size")
"""Axes along which the image size or the prompt's length varies, on a scale without zero."""


def curve_of(
    rows: Sequence[Row[Any]],
    axis: str,
    alpha: float | None = None,
    places: Sequence[float | None] | None = None,
) -> Curve:
    """The curve of rows, oldest first, at `places`, or by default their column `axis`; without
    those whose x is not known.

    Points have their intervals at the level `alpha`, or those stored where it is `None`.
    """
    # of two at one x the newer stays
    points = {
        float(x): Point(
            x=x,
            speedup=row.effect,
            **dict(zip(("low", "high", "verdict"), _interval(row, alpha), strict=True)),
            se=row.effect_se,
            pairs=row.n,
            seconds=row.seconds,
            gmacs_baseline=row.gmacs_baseline,
            gmacs=row.gmacs_arm,
            comparison_id=row.comparison_id,
            wrong=wrong(split_flags(row.flags)),
            no_op="no_effect" in split_flags(row.flags),
        )
        for row, x in zip(rows, places or [getattr(row, axis) for row in rows], strict=True)
        if x is not None and (x or axis not in SIZE_AXES)
    }
    return Curve(axis=axis, points=tuple(points.values()))


def _interval(row: Row[Any], alpha: float | None) -> tuple[float | None, float | None, Any]:
    """Ends and verdict of a point; around an amount that was read once, and has a verdict, lies the
    floor.
    """
    if (
        row.compared == "amount"
        and row.effect_low is None
        and row.verdict not in ("insufficient", "quarantined")
    ):
        return row.effect / (1 + row.floor), row.effect * (1 + row.floor), row.verdict
    return at_level(row, alpha)


def at_level(row: Any, alpha: float | None) -> tuple[float | None, float | None, Any]:
    """Ends of the interval and verdict of a row of `effect_row` at the level `alpha`; those stored
    where it is `None`.
    """
    if alpha is None or row.effect_se is None or not row.effect_freedom:
        return row.effect_low, row.effect_high, row.verdict
    found = SpeedUp(log(row.effect), row.effect_se, row.effect_freedom, row.n, alpha)
    ends = (found.low, found.high) if found.half_width < inf else (None, None)
    return *ends, row.verdict if row.verdict in ("insufficient", "quarantined") else found.verdict()
