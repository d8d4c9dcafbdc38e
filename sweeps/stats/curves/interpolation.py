"""Interpolation: a speed-up between two measured sizes of a curve, by the cost model through its
points; never beyond them.
"""

from collections.abc import Sequence
from math import hypot
from typing import NamedTuple

import numpy as np

from sweeps.stats.curves.breakeven import fit_points
from sweeps.stats.curves.cost_model import MODEL_SD, interpolated
from sweeps.stats.curves.curve import Point
from sweeps.stats.pooling import SpeedUp


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
    baseline, arm = np.array(
        [[each.point.gmacs_baseline, each.point.gmacs] for each in found], np.float64
    ).T
    value, se = interpolated(fit, places, baseline, arm, x)
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
