"""Cost model: the time of a forward is launch + work, alpha + beta x MACs, so that a curve of
speed-ups has three parameters.

With t_baseline = alpha (1 + b g) and t_arm = alpha (a + c h), for g and h MACs of the baseline and
the arm, the speed-up is (1 + b g) / (a + c h): what the reports on token reduction assume, here
fitted with its errors and tested for misfit. With the baseline's times, both costs are known in
seconds.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sweeps.stats.pooling import WIDEST_LOG, quantile
from sweeps.stats.timing import Array

MODEL_SD = 0.01
"""Standard deviation of what the model leaves unexplained in a log speed-up: caches and kernels
change with the size."""
MISFIT_P = 0.01
"""A fit whose residuals are less probable than this is not used."""
FIT_ALPHA = 0.03
"""Probability that the interval of a fit misses its crossing."""
GRID = 2048
"""Places between the first and the last point at which the fit is evaluated."""
_STEPS = 30
"""Damped Gauss-Newton steps before the slower, bounded search takes over."""
_CONVERGED = 1e-10
"""A step of parameters, which are logarithms, that is no change any more."""


class CostFit(NamedTuple):
    """A fitted curve of log speed-ups."""

    parameters: Array
    """Logarithms of (a, b, c); of (a, c) where the baseline's work is the same at every point."""
    covariance: Array
    freedom: int
    """Points less parameters."""
    misfit_p: float
    """Probability of residuals as large as these."""

    @property
    def adequate(self) -> bool:
        return self.misfit_p >= MISFIT_P

    def predict(self, gmacs_baseline: ArrayLike, gmacs: ArrayLike) -> tuple[Array, Array]:
        """Log speed-up and its standard error at the work given."""
        baseline, arm = np.asarray(gmacs_baseline, np.float64), np.asarray(gmacs, np.float64)
        value, gradient = _model(self.parameters, baseline, arm)
        return value, np.sqrt(np.einsum("ip,pq,iq->i", gradient, self.covariance, gradient))


class FittedCrossing(NamedTuple):
    """Where a fitted curve crosses 1: `low` or `high` is `None` where it is not distinguished from
    1 to the end measured.
    """

    x: float | None
    low: float | None
    high: float | None
    gains: bool
    """Whether it rises through 1."""


def fit_costs(
    gmacs_baseline: ArrayLike, gmacs: ArrayLike, log_speedup: ArrayLike, se: ArrayLike
) -> CostFit | None:
    """The cost model of points, all of shape [points], by least squares weighted by 1 / (se^2 +
    `MODEL_SD`^2).

    `None` with no more points than parameters, or where the points do not determine them. The
    covariance is scaled up where residuals are larger than their standard errors.
    """
    return _fit(
        *(
            np.asarray(values, np.float64).tobytes()
            for values in (gmacs_baseline, gmacs, log_speedup, se)
        )
    )


@lru_cache(maxsize=1000)
def _fit(*given: bytes) -> CostFit | None:
    """The fit of points given by the bytes of their numbers: the same points lie on several axes,
    of which each requests it.
    """
    # imported late, because commands without statistics do not need it
    from scipy.special import chdtrc

    baseline, arm, logs, se = (np.frombuffer(values) for values in given)
    weights = 1 / np.hypot(se, MODEL_SD)
    constant = bool(np.ptp(baseline) < 1e-9 * baseline.max())
    size = 2 if constant else 3
    if len(logs) <= size:
        return None
    scale = 1 / np.exp(np.log(arm).mean())
    start = np.log([0.5, scale] if constant else [1.0, scale, scale])

    def weighted(parameters: Array) -> tuple[Array, Array]:
        value, gradient = _model(parameters, baseline, arm)
        return weights * (value - logs), weights[:, None] * gradient

    found = _damped(weighted, start)
    if found is None:
        found = _bounded(weighted, start)
    residuals, gradient = weighted(found)
    if np.linalg.matrix_rank(gradient, rtol=1e-6) < size:  # its square is inverted below
        return None
    freedom, chi2 = len(logs) - size, float(residuals @ residuals)
    covariance = np.asarray(
        np.linalg.inv(gradient.T @ gradient) * max(1.0, chi2 / freedom), np.float64
    )
    return CostFit(found, covariance, freedom, float(chdtrc(freedom, chi2)))


def _damped(weighted: Callable[[Array], tuple[Array, Array]], start: Array) -> Array | None:
    """The least squares by Levenberg and Marquardt's steps; `None` where these do not end at a
    minimum that they determine well.
    """
    at, damping = start, 1e-3
    residuals, gradient = weighted(at)
    cost = residuals @ residuals
    for _ in range(_STEPS):
        normal = gradient.T @ gradient
        try:
            step = -np.linalg.solve(
                normal + np.diag(damping * np.diag(normal)), gradient.T @ residuals
            )
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.abs(at + step - start) < 12):
            return None
        if np.max(np.abs(step)) < _CONVERGED:
            return at
        tried = weighted(at + step)
        if (lower := tried[0] @ tried[0]) <= cost:
            at, cost, (residuals, gradient), damping = at + step, lower, tried, damping / 30
        else:
            damping *= 10
            if damping > 1e6:
                return None
    return None


def _bounded(weighted: Callable[[Array], tuple[Array, Array]], start: Array) -> Array:
    """The same by SciPy, within bounds, where a parameter may not be determined."""
    from scipy.optimize import least_squares

    bounds = (start - 12, start + 12)
    found = least_squares(
        lambda at: weighted(at)[0], start, lambda at: weighted(at)[1], bounds=bounds
    )
    return np.asarray(found.x, np.float64)


def crossing(
    found: CostFit, x: Sequence[float], gmacs_baseline: ArrayLike, gmacs: ArrayLike
) -> FittedCrossing | None:
    """Where the fit crosses 1 once between the first and the last of the points at ascending `x`;
    `None` if it does not.

    Between points the work is interpolated, straight in x or in logarithms, whichever fits the
    points better. A method that rounds its tokens is off that line: by as much as a point is off
    the line through its neighbours, at most. The interval is the set of x at which the fit, so far
    off, is not distinguished from 1 (test inversion); towards at least one end it must be.
    """
    at = np.asarray(x, np.float64)
    grid = np.geomspace(at[0], at[-1], GRID) if at[0] > 0 else np.linspace(at[0], at[-1], GRID)
    work, off = _work_between(at, gmacs_baseline, gmacs, grid)
    value, se = found.predict(*work)
    gradient = _model(found.parameters, *work)[1][:, -1]
    reach = quantile(FIT_ALPHA, 1e6) * se + np.abs(gradient) * off
    sign = np.where(value > reach, 1, np.where(value < -reach, -1, 0))
    unknown = np.flatnonzero(sign == 0)
    before, after = int(sign[0]), int(sign[-1])
    if not len(unknown) or before == after or np.ptp(unknown) != len(unknown) - 1:
        return None
    first, last = unknown[0], unknown[-1]
    flips = np.flatnonzero(np.diff(np.sign(value)))
    place = float(grid[flips[0]]) if len(flips) == 1 else None
    low = None if not before else float(grid[first])
    high = None if not after else float(grid[last])
    return FittedCrossing(place, low, high, gains=after > 0 or before < 0)


def interpolated(
    found: CostFit, x: Sequence[float], gmacs_baseline: ArrayLike, gmacs: ArrayLike, place: float
) -> tuple[float, float]:
    """Log speed-up at a `place` between the points at ascending `x` by the fit through them, and
    its standard error.

    The error counts that of the fit, what the model leaves unexplained at a single size, and by how
    much a method that rounds its tokens can be off the line on which the work is interpolated (see
    `crossing`). Raises `ValueError` for a place outside.
    """
    at = np.asarray(x, np.float64)
    if not at[0] <= place <= at[-1]:
        raise ValueError(
            f"{place:g} lies outside of the points, {at[0]:g} to {at[-1]:g}; nothing is"
            " extrapolated"
        )
    work, off = _work_between(at, gmacs_baseline, gmacs, np.array([place]))
    value, se = found.predict(*work)
    gradient = _model(found.parameters, *work)[1][:, -1]
    return float(value[0]), float(np.hypot(se[0], MODEL_SD) + abs(gradient[0]) * off)


def _work_between(
    at: Array, gmacs_baseline: ArrayLike, gmacs: ArrayLike, places: Array
) -> tuple[Array, float]:
    """Work of both sides at `places` (shape [2, places]), and by how much the points are off the
    lines it lies on at most.

    The lines are straight in x or in logarithms, whichever fits the points better.
    """
    sides = np.log(np.asarray([gmacs_baseline, gmacs], np.float64))
    off = _off_line(at, *np.exp(sides))
    if at[0] > 0 and (off_logs := _off_line(np.log(at), *sides, logarithmic=True)) < off:
        return np.exp([np.interp(np.log(places), np.log(at), side) for side in sides]), off_logs
    return np.array([np.interp(places, at, np.exp(side)) for side in sides]), off


def _off_line(at: Array, baseline: Array, arm: Array, *, logarithmic: bool = False) -> float:
    """By how much the logarithm of a point's share of the work is off at most, taken from the line
    through its neighbours.
    """
    place = (at[1:-1] - at[:-2]) / (at[2:] - at[:-2])
    lines = [side[:-2] + place * (side[2:] - side[:-2]) for side in (baseline, arm)]
    if logarithmic:
        return float(np.max(np.abs((arm - baseline)[1:-1] - (lines[1] - lines[0])), initial=0.0))
    return float(
        np.max(np.abs(np.log(arm / baseline)[1:-1] - np.log(lines[1] / lines[0])), initial=0.0)
    )


def _model(parameters: Array, baseline: Array, arm: Array) -> tuple[Array, Array]:
    """Log speed-ups of shape [points], and their derivatives by the parameters, of shape [points,
    parameters].
    """
    launch, work = np.exp(parameters[0]), np.exp(parameters[-1]) * arm
    own = -np.log(launch + work)
    parts = [-launch / (launch + work), -work / (launch + work)]
    if len(parameters) == 2:
        return own, np.stack(parts, axis=-1)
    gain = np.exp(parameters[1]) * baseline
    return np.log1p(gain) + own, np.stack([parts[0], gain / (1 + gain), parts[1]], axis=-1)


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
    from scipy.optimize import least_squares

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
