"""Checks of whether a speed-up is noise: pair by pair, as pairs add up, half against half, and
equal columns against each other.
"""

from collections.abc import Sequence
from math import hypot, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeps.stats.quality import mcnemar
from sweeps.stats.timing import Array, Contrast, Rounds, outliers


class Halves(NamedTuple):
    """The log speed-up by the earlier and by the later half of the rounds."""

    earlier: Contrast
    later: Contrast
    p: float | None
    """Of a difference at least so large where both are the same; `None` where a half has too few
    rounds."""


class Signs(NamedTuple):
    """How many pairs have the arm faster and slower; pairs with equal times are left out."""

    faster: int
    slower: int
    p: float
    """Of a split this uneven where either is as likely (two-sided, exact), the pairs being
    independent."""

    @classmethod
    def of(cls, faster: int, slower: int) -> "Signs":
        return cls(faster, slower, mcnemar(faster, slower))


def pair_logs(seconds: ArrayLike, arms: Sequence[int], baseline: int, arm: int) -> Array:
    """Log of baseline over arm in each round, shape [rounds], from times of shape [rounds,
    columns].

    Of an arm with several columns it is the mean of the logarithms, as in `Rounds.contrast`.
    """
    logs, columns = np.log(np.asarray(seconds, dtype=np.float64)), np.asarray(arms)
    found: Array = logs[:, columns == baseline].mean(axis=1) - logs[:, columns == arm].mean(axis=1)
    return found


def outlying(logs: ArrayLike) -> NDArray[np.bool_]:
    """Which log ratios lie outside the outer fences of `sweeps.stats.timing.outliers`; they are
    shown, and count as all do.
    """
    return outliers(np.exp(np.asarray(logs, dtype=np.float64)))


def halves(seconds: ArrayLike, arms: Sequence[int], baseline: int, arm: int) -> Halves:
    """Both halves of times of shape [rounds, columns], of at least 2 rounds, and whether they
    agree.
    """
    times = np.asarray(seconds, dtype=np.float64)
    middle = len(times) // 2
    earlier, later = (
        Rounds(part, arms).contrast(baseline, arm) for part in (times[:middle], times[middle:])
    )
    return Halves(earlier, later, difference_p(earlier, later))


def signs(logs: ArrayLike) -> Signs:
    """The sign test of log ratios, shape [pairs]."""
    ratios = np.asarray(logs, dtype=np.float64)
    return Signs.of(int(np.sum(ratios > 0)), int(np.sum(ratios < 0)))


def no_effect_p(contrast: Contrast) -> float | None:
    """Two-sided probability of an effect at least so large where there is none; `None` without a
    standard error.
    """
    return _two_sided(contrast.effect, contrast.se, contrast.freedom)


def difference_p(one: Contrast, other: Contrast) -> float | None:
    """Two-sided probability that independent estimates of one effect lie at least so far apart
    (Welch); `None` without errors.
    """
    se = hypot(one.se, other.se)
    if not 0 < se < inf:
        return None
    freedom = se**4 / sum(each.se**4 / each.freedom for each in (one, other))
    return _two_sided(one.effect - other.effect, se, freedom)


def _two_sided(effect: float, se: float, freedom: float) -> float | None:
    if not 0 < se < inf:
        return None
    # imported late, because commands without statistics do not need it
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(effect) / se))
