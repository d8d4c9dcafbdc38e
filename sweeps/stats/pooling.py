"""Pooled speed-ups: the value with its interval, the level that it spends, and the verdict that
follows from it.
"""

from math import exp, inf
from typing import Literal, NamedTuple

from sweeps.model.metrics import SPEED_FLOOR
from sweeps.stats.two_way import Contrast

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
    from scipy.special import (
        stdtrit,
    )

    return float(stdtrit(freedom, 1 - alpha / 2))
