"""Launch and work of the baseline and of an arm, in seconds: what the reports on token reduction
print, with intervals.
"""

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sweeps.stats.curves.cost_model import MODEL_SD
from sweeps.stats.curves.curve import Point
from sweeps.stats.pooling import WIDEST_LOG, quantile
from sweeps.stats.two_way import Array

COST_ALPHA = 0.05
"""Probability that an interval misses its parameter."""
FEWEST_POINTS = 4
"""One more than the parameters of a curve of speed-ups."""


class Cost(NamedTuple):
    """A parameter of the time of a forward, and its 95 % interval, whose lower end is 0 at
    least.
    """

    value: float
    low: float
    high: float


class RelativeCosts(NamedTuple):
    """Ratios of an arm's costs to the baseline's: those of the costs beside them. `None`: wider
    than any interval that is shown.
    """

    fixed: Cost | None
    """Of a forward, whatever its work."""
    work: Cost | None
    """Of a GMAC (or token)."""


class LaunchWork(NamedTuple):
    """The time of a forward of each arm: launch in seconds, and seconds per unit of work."""

    launch_baseline: Cost
    work_baseline: Cost
    launch: Cost
    work: Cost
    ratios: RelativeCosts


def fit_launch_work(
    work_baseline: ArrayLike,
    work: ArrayLike,
    seconds_baseline: ArrayLike,
    log_speedup: ArrayLike,
    se: ArrayLike,
) -> LaunchWork | None:
    """Launch and work from points of shape [points]: work of both arms, the baseline's time, log
    speed-up with standard error.

    The level of times differs from job to job (clocks, neighbours) far more than a speed-up, which
    is paired. So the baseline's times are fitted first, for the spread of that level, and then
    together with the speed-ups, each weighted by its own error. `None` with fewer than
    `FEWEST_POINTS`, or where the points do not determine the parameters, as where the work is the
    same.
    """
    # imported late, because commands without statistics do not need it
    from scipy.optimize import (
        least_squares,
    )

    base, own, seconds, logs = (
        np.asarray(v, np.float64) for v in (work_baseline, work, seconds_baseline, log_speedup)
    )
    if len(base) < FEWEST_POINTS or np.ptp(base) < 1e-9 * base.max():
        return None
    level = _level(base, np.log(seconds))
    sd = np.sqrt(np.asarray(se, np.float64) ** 2 + MODEL_SD**2)

    def residuals(parameters: Array) -> Array:
        launch_0, work_0, launch, cost = np.exp(parameters)
        dense = np.log(launch_0 + work_0 * base)
        return np.concatenate(
            [(np.log(seconds) - dense) / level, (logs - dense + np.log(launch + cost * own)) / sd]
        )

    half = seconds.mean() / 2
    start = np.log([half, half / base.mean(), half, half / own.mean()])
    found = least_squares(residuals, start, bounds=(start - 12, start + 12), x_scale="jac")
    if np.linalg.matrix_rank(found.jac, rtol=1e-6) < len(start):
        return None
    covariance = np.linalg.inv(found.jac.T @ found.jac)
    reach = quantile(COST_ALPHA, len(base) - 2)
    ends = zip(np.exp(found.x), reach * np.sqrt(np.diag(covariance)), strict=True)
    launch_0, work_0, launch, cost = (
        Cost(float(v), float(max(0.0, v - v * r)), float(v + v * r)) for v, r in ends
    )
    # In a ratio the level of the times, which differs from job to job, cancels: it is known far
    # better than both costs.
    directions = (np.array(each) for each in ((-1.0, 0.0, 1.0, 0.0), (0.0, -1.0, 0.0, 1.0)))
    ratios = RelativeCosts(*(_ratio(each, found.x, covariance, reach) for each in directions))
    return LaunchWork(launch_0, work_0, launch, cost, ratios)


def _ratio(direction: Array, logs: Array, covariance: Array, reach: float) -> Cost | None:
    """The exponential of a difference of parameters with its interval."""
    value, half = (
        float(direction @ logs),
        reach * float(np.sqrt(direction @ covariance @ direction)),
    )
    return Cost(exp(value), exp(value - half), exp(value + half)) if half <= WIDEST_LOG else None


def launch_work_of(points: Sequence[Point], seconds: Mapping[str, float]) -> LaunchWork | None:
    """The fit of points with their work, all of which have a standard error; `seconds` are the
    baseline's by comparison.
    """
    sides = [
        (p.gmacs_baseline, p.gmacs, seconds[p.comparison_id], log(p.speedup), p.se) for p in points
    ]
    return fit_launch_work(*np.array(sides, np.float64).T) if sides else None


def _level(work: Array, log_seconds: Array) -> float:
    """Standard deviation of the level of times between jobs, from the residuals of launch + work of
    the baseline alone.
    """
    times = np.exp(log_seconds)
    design = np.stack([np.ones_like(work), work], axis=1)
    weights = 1 / times
    line = np.linalg.lstsq(design * weights[:, None], times * weights, rcond=None)[0]
    return max(
        MODEL_SD, float(np.sqrt(np.sum((weights * (times - design @ line)) ** 2) / (len(work) - 2)))
    )
