"""Calibration: how much the log speed-up of one comparison differs between fresh processes beyond
the errors within each, or between visits.
"""

from collections.abc import Sequence
from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np

from sweeps.stats.timing import Array, Contrast
from sweeps.stats.visits import FLOOR, Spread

TERM_CONFIDENCE = 0.95
"""Of the interval of the term."""
USED_CONFIDENCE = 0.8
"""Intervals use the term's one-sided upper bound at this confidence: the estimate itself covers too
little where arms differ in it (`tests/sweeps/test_calibration.py`)."""
MIN_FREEDOM = 5
"""Errors within a process that rest on fewer degrees of freedom are too uncertain: about 18 rounds
are needed."""
SHARED = 0.25
"""Squared correlation of two contrasts of one process that have their baseline in common."""
MIN_SPREADS, MAX_FREEDOM = 8, 30.0
"""Comparisons that show what visits deviate by, and the most that all of them together count."""
LARGEST = 1.0
"""No process is slower by more than this, as a logarithm."""
_DECADES = {7: "up to 10 M", 8: "10 M to 100 M", 9: "100 M to 1 B"}

Repeats = Sequence[Sequence[Contrast]]
"""The contrasts of one job, each measured in several processes: shape [contrasts][processes]."""


class Calibration(NamedTuple):
    """The standard deviation of a log speed-up between processes, from repeats in fresh ones."""

    tau: float
    """Estimate by Paule and Mandel: at it the weighted squares around each contrast's mean are as
    large as expected."""
    low: float
    high: float
    """Interval at `TERM_CONFIDENCE` (Q-profile, Viechtbauer 2007)."""
    used: float
    """What intervals are made with: the upper bound at `USED_CONFIDENCE`, and no less than
    `visits.FLOOR` unless `high` is.

    So few or noisy repeats, which exclude nothing, narrow no interval.
    """
    freedom: float
    """Of the squares, less what contrasts with a common baseline share."""
    processes: int
    """Or visits."""
    contrasts: int


def fit_process_term(jobs: Sequence[Repeats]) -> Calibration | None:
    """The term that contrasts of several jobs have in common; `None` unless one was measured in two
    processes or more.

    A contrast whose standard error has fewer than `MIN_FREEDOM` does not count. An error estimated
    with f degrees of freedom is raised to f / (f - 2), the expectation of its weight. Random
    effects: in process p it is its mean + N(0, se_p^2 + tau^2).
    """
    repeats = [[_certain(contrast) for contrast in job] for job in jobs]
    repeats = [[contrast for contrast in job if len(contrast) > 1] for job in repeats]
    known = [contrast for job in repeats for contrast in job]
    if not known:
        return None
    squares = sum(len(contrast) - 1 for contrast in known)
    shares = [
        sum(len(one) - 1 for one in job) / (1 + SHARED * (len(job) - 1)) for job in repeats if job
    ]
    freedom = float(sum(shares))
    processes = max(map(len, known))
    effects, variances = np.zeros((len(known), processes)), np.full((len(known), processes), inf)
    for row, contrast in enumerate(known):
        effects[row, : len(contrast)] = [one.effect for one in contrast]
        variances[row, : len(contrast)] = [
            one.se**2 * one.freedom / (one.freedom - 2) for one in contrast
        ]

    def at(chi2: float) -> float:
        return sqrt(_solve(effects, variances, squares / freedom * chi2))

    # imported late, because commands without statistics do not need it
    from scipy.special import chdtri

    tail = (1 - TERM_CONFIDENCE) / 2
    low, high, used = (at(float(chdtri(freedom, p))) for p in (tail, 1 - tail, USED_CONFIDENCE))
    return Calibration(
        at(freedom), low, high, max(used, min(high, FLOOR.sd)), freedom, processes, len(known)
    )


def fit_visits(spreads: Sequence[Spread]) -> Calibration | None:
    """What visits deviate by in all comparisons of an environment, of which each shows a spread:
    the variances of comparisons are scaled inverse chi squares (Smyth 2004, section 6.2).

    The fewer the degrees of freedom, the more comparisons differ; `MAX_FREEDOM` at most. `None`
    with fewer than `MIN_SPREADS`.
    """
    known = [each for each in spreads if each.sd > 0 and each.freedom >= 1]
    if (number := len(known)) < MIN_SPREADS:
        return None
    # imported late, because commands without statistics do not need it
    from scipy.optimize import brentq
    from scipy.special import polygamma, psi, stdtrit

    half = np.array([each.freedom for each in known]) / 2
    logs = 2 * np.log([each.sd for each in known]) - psi(half) + np.log(half)
    variance = float(logs.var(ddof=1))
    apart = variance - float(polygamma(1, half).mean())
    freedom = MAX_FREEDOM
    if apart > polygamma(1, MAX_FREEDOM / 2):
        freedom = 2 * float(brentq(lambda x: polygamma(1, x) - apart, 1e-3, MAX_FREEDOM))
    sd = exp((float(logs.mean()) + float(psi(freedom / 2)) - log(freedom / 2)) / 2)
    error = float(stdtrit(number - 1, (1 + TERM_CONFIDENCE) / 2)) * sqrt(variance / number) / 2
    visits = round(sum(each.freedom + 1 for each in known))
    return Calibration(sd, sd * exp(-error), sd * exp(error), sd, freedom, visits, number)


def size_class(parameters: int | None) -> str:
    """The class of models with about as many parameters, the smallest where they are not known:
    what differs between processes is estimated for each.
    """
    return _DECADES.get(max(7, len(str((parameters or 1) - 1))), "above 1 B")


def _certain(contrast: Sequence[Contrast]) -> list[Contrast]:
    return [one for one in contrast if 0 < one.se < inf and one.freedom >= MIN_FREEDOM]


def _solve(effects: Array, variances: Array, target: float) -> float:
    """The variance between processes at which the weighted squares of contrasts, of shape
    [contrasts, processes], are `target`.

    0 where they are smaller without any. A missing effect has an infinite variance.
    """
    from scipy.optimize import brentq

    def excess(between: float) -> float:
        weights = 1 / (variances + between)
        means = np.sum(weights * effects, axis=1, keepdims=True) / np.sum(
            weights, axis=1, keepdims=True
        )
        return float(np.sum(weights * (effects - means) ** 2)) - target

    if excess(0.0) <= 0:
        return 0.0
    return LARGEST if excess(LARGEST) > 0 else float(brentq(excess, 0.0, LARGEST, xtol=1e-12))
