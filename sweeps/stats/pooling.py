"""Speed-ups: the value with its interval, the level that it spends, the verdict that follows, the
ratio of mean times beside it, and what saved MACs promise.
"""

from collections.abc import Iterable, Sequence
from math import exp, inf, log
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sweeps.model.metrics import SPEED_FLOOR
from sweeps.number_format import is_missing
from sweeps.stats.timing import MAX_GROUPS, MIN_GROUPS, Contrast, jackknife_se

ALPHA = 0.01
"""Probability that the intervals of a comparison ever miss its speed-up, over all runs that are
ever made of it."""
SPENT_NOW = 0.5
"""Part of it that the interval of what was measured so far spends; the rest covers looks after
further runs."""
WIDEST_LOG = 3.0
"""Half-width of the interval of a log speed-up, a factor of 20 to each side, beyond which there is
none: too few pairs for it."""

Verdict = Literal["faster", "slower", "same", "unclear", "insufficient", "quarantined"]
"""`insufficient`: fewer pairs than requested; `quarantined`: the machine was slowed in every
attempt (`sweeps.model.flags`)."""


class SpeedUp(NamedTuple):
    """A pooled speed-up: its logarithm with standard error and degrees of freedom, and the pairs
    that it rests on.
    """

    log: float
    se: float
    freedom: float
    pairs: int
    alpha: float = ALPHA
    """Probability that an interval ever misses, over all looks."""

    @property
    def value(self) -> float:
        return exp(self.log)

    @property
    def spent(self) -> float:
        """Part of `alpha` that the interval spends."""
        return self.alpha * SPENT_NOW

    @property
    def quantile(self) -> float:
        """Of Student's t at `spent`: how many standard errors the interval reaches to each side."""
        return quantile(self.spent, self.freedom)

    @property
    def half_width(self) -> float:
        """Of the interval of the log speed-up; infinite where there is none, or none narrower than
        `WIDEST_LOG`.
        """
        width = self.quantile * self.se if self.se < inf else inf
        return width if width <= WIDEST_LOG else inf

    @property
    def low(self) -> float:
        """Lower end of the interval of the speed-up; 0 where there is none."""
        return exp(self.log - self.half_width)

    @property
    def high(self) -> float:
        """Upper end of the interval of the speed-up; infinite where there is none."""
        return exp(self.log + self.half_width) if self.half_width < inf else inf

    def verdict(self, pairs_min: int = 0) -> Verdict:
        """That of `ratio_verdict`, or `insufficient` for a measurement with fewer pairs than the
        `pairs_min` requested.
        """
        return "insufficient" if self.pairs < pairs_min else ratio_verdict(self.low, self.high)


def within_process(contrast: Contrast, pairs: int) -> SpeedUp:
    """The speed-up of one process by the errors within it alone: what another process would show is
    not in the interval.
    """
    return SpeedUp(contrast.effect, contrast.se, contrast.freedom, pairs)


def ratio_verdict(low: float, high: float, floor: float = SPEED_FLOOR) -> Verdict:
    """What the interval of a speed-up allows to conclude.

    `same`: it lies within `floor` of 1, on whichever side; else `faster` or `slower` where it
    excludes 1.
    """
    if low >= 1 / (1 + floor) and high <= 1 + floor:
        return "same"
    return "faster" if low > 1 else "slower" if high < 1 else "unclear"


def quantile(alpha: float, freedom: float) -> float:
    """Of Student's t: exceeded by its absolute value with probability `alpha`."""
    # imported late, because commands without statistics do not need it
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - alpha / 2))


READING_BLOCKS = 4
"""Blocks of readings that follow each other, of which an interval of their mean is made; 3 of fewer
than 8 readings."""


def serial_reach(values: Sequence[float], alpha: float) -> float:
    """Half-width of the interval of the mean of readings in order of time, which may be correlated;
    infinite for a single one.

    Student's t over blocks of neighbours, weighted by their sizes, or over single readings, where
    that is wider. At 99 %: 95 to 98 % of intervals hold the mean of 4 to 24 readings with an
    autocorrelation of .7, which by single readings 72 to 89 % do.
    """
    number = len(values)
    few = READING_BLOCKS if number >= 2 * READING_BLOCKS else 3
    return max(_block_reach(values, min(number, few), alpha), _block_reach(values, number, alpha))


def _block_reach(values: Sequence[float], count: int, alpha: float) -> float:
    if count < 2:
        return inf
    blocks = np.array_split(np.asarray(values, dtype=np.float64), count)
    shares = [len(block) / len(values) for block in blocks]
    squares = [(block.mean() - np.mean(values)) ** 2 for block in blocks]
    return quantile(alpha, count - 1) * float(np.sqrt(np.dot(shares, squares) / (count - 1)))


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


def macs_speedup(gmacs_baseline: float | None, gmacs: float | None) -> float | None:
    """The speed-up if time went with MACs; `gmacs` are those of the arm, its method's own included.
    `None` if one is not known.
    """
    return gmacs_baseline / gmacs if gmacs_baseline and gmacs else None


def realised_share(speedup: float | None, promise: float | None) -> float | None:
    """The log speed-up over the log of what the MACs promise: 1 is all of the promised saving,
    below 0 the arm is slower.

    `None` where one of them is not known, and where the promise is within 2 % of no change, since
    the share would be noise.
    """
    if not speedup or not promise or speedup <= 0 or promise <= 0:
        return None
    return (
        None if 1 / (1 + SPEED_FLOOR) <= promise <= 1 + SPEED_FLOOR else log(speedup) / log(promise)
    )


class RealisedShare(NamedTuple):
    """The shares of several points together."""

    median: float
    least: float
    most: float
    points: int
    """Of which a share is known."""
    low: float | None = None
    high: float | None = None
    """Medians of the ends of their intervals, between which the median lies if all of them hold."""


def realised_of(
    shares: Iterable[float | None], ends: Sequence[tuple[float, float]] = ()
) -> RealisedShare | None:
    """The median and the range of the shares that are known; `None` where none is. `ends` are the
    intervals of all of them.
    """
    known = [share for share in shares if share is not None and not is_missing(share)]
    if not known:
        return None
    share = RealisedShare(median(known), min(known), max(known), len(known))
    if len(ends) < len(known):
        return share
    low, high = map(median, zip(*ends, strict=True))
    return share._replace(low=low, high=high)
