"""Points of a curve, from rows of effects."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from store.derive.savings_curves import GMACS_SAVED
from store.standings import at_level
from sweeps.flags import split_flags, wrong
from sweeps.stats.curve import Curve, Point


def curve_of(rows: Sequence[Row[Any]], axis: str, alpha: float | None = None) -> Curve:
    """The curve of rows, oldest first, whose column `axis` is x; without those whose x is not known, or 0 along a size.

    Points have their intervals at the level `alpha`, or those stored where it is `None`.
    """
    points = {
        float(x): Point(
            x=x,
            speedup=row.effect,
            **dict(zip(("low", "high", "verdict"), at_level(row, alpha), strict=True)),
            se=row.effect_se,
            pairs=row.n,
            gmacs_baseline=row.gmacs_baseline,
            gmacs=row.gmacs_arm,
            comparison_id=row.comparison_id,
            wrong=wrong(split_flags(row.flags)),
            no_op="no_effect" in split_flags(row.flags),
        )
        for row in rows  # of two points at one x the newer one stays
        if (x := getattr(row, axis)) is not None and (x or axis == GMACS_SAVED)
    }
    return Curve(axis=axis, points=tuple(points.values()))
