"""Ratio of mean times: what an arm gains over many forwards, slow ones counted, beside the robust
speed-up of a typical one.
"""

from collections.abc import Iterable
from math import exp, inf, log

import numpy as np
from numpy.typing import ArrayLike

from sweeps.stats.pooling import SpeedUp, quantile
from sweeps.stats.two_way import MAX_GROUPS, MIN_GROUPS, Contrast, jackknife_se

MEAN_ALPHA = 0.002
"""Probability at which a ratio of means that differs from the robust speed-up is called different,
if times were normal."""
MEAN_APART = 0.05
"""Least share by which it then differs, where both lie on one side of 1."""


def mean_contrast(attempts: Iterable[tuple[ArrayLike, ArrayLike]]) -> Contrast:
    """Log of the baseline's mean time over the arm's, over all rounds of some attempts, which weigh
    by their rounds.

    Each attempt has the times of the baseline and of the arm, both of shape [rounds, columns]. The
    standard error is that of the jackknife over contiguous groups of rounds, infinite where there
    are too few. Raises `ValueError` without an attempt.
    """
    rounds = [
        [np.mean(np.asarray(times, dtype=np.float64), axis=1) for times in sides]
        for sides in attempts
    ]
    sums = np.concatenate(rounds, axis=1)
    parts = np.array_split(sums, min(sums.shape[1], MAX_GROUPS), axis=1)
    groups = np.stack([part.sum(axis=1) for part in parts], axis=1)
    total = groups.sum(axis=1)
    effect = log(total[0] / total[1])
    if groups.shape[1] < MIN_GROUPS:
        return Contrast(effect, inf, 1.0)
    left = total[:, None] - groups
    return Contrast(effect, jackknife_se(np.log(left[0] / left[1])), groups.shape[1] - 1.0)


def mean_disagrees(mean: Contrast, found: SpeedUp) -> bool:
    """Whether mean times tell something else than the robust speed-up: times of one side are
    uneven, with slow forwards among them.

    The ratio of means lies beyond the interval, further off than its own error explains, and on the
    other side of 1 or more than `MEAN_APART` away. Simulated: in fewer than 1 of 100 comparisons
    where 5 % of all times are 3 times as long; where an arm is 8 % faster in 70 % of its forwards
    and takes twice as long in the others, in 95, 99 and 100 of 100 at 45, 60 and 100 rounds.
    """
    ratio, apart = exp(mean.effect), abs(mean.effect - found.log)
    if found.low <= ratio <= found.high or not apart > quantile(MEAN_ALPHA, mean.freedom) * mean.se:
        return False
    return apart > log(1 + MEAN_APART) or mean.effect * found.log < 0
