"""Statistics of one arm's times: median with its interval, outliers, and when a warm-up is over."""

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

ANALYSIS_VERSION = 8
"""Raised when a derived number may change; `breakeven reanalyse` then rebuilds the derived rows."""
CONFIDENCE = 0.95
WARM_BLOCKS = 2
WARM_IMPROVEMENT = 0.02


class Estimate(NamedTuple):
    """A value, its 95 % interval, and the number of pairs or samples behind it.

    Fewer than 6 values cannot give such an interval: it is then `low` 0 and `high` infinity, which
    JSON cannot hold and a store keeps as NULL.
    """

    value: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """The larger distance of `low` or `high` from `value`, as a share of `value`."""
        return max(self.value - self.low, self.high - self.value) / self.value


def median(samples_s: ArrayLike) -> Estimate:
    """Median of times (shape [samples], in seconds) with its order-statistic interval.

    Raises `ValueError` for times that are not positive and finite.
    """
    samples = _times(samples_s, "samples")
    low, high = _median_interval(samples)
    return Estimate(float(np.median(samples)), max(low, 0.0), high, samples.size)


def outliers(samples_s: ArrayLike) -> NDArray[np.bool_]:
    """True where a time lies outside Tukey's outer fences (3 interquartile ranges) of the log
    times; to flag, never to drop.
    """
    logs = np.log(_times(samples_s, "samples"))
    lower, upper = np.percentile(logs, [25, 75])
    reach = 3 * (upper - lower)
    result: NDArray[np.bool_] = (logs < lower - reach) | (logs > upper + reach)
    return result


def steady(block_medians: Sequence[float]) -> bool:
    """Whether an arm is warm: the last 2 blocks improved the best median (seconds) of all earlier
    blocks by at most 2 %.
    """
    earlier, last = block_medians[:-WARM_BLOCKS], block_medians[-WARM_BLOCKS:]
    return bool(earlier) and min(last) >= (1 - WARM_IMPROVEMENT) * min(earlier)


def _times(values: ArrayLike, what: str) -> NDArray[np.float64]:
    times = np.asarray(values, dtype=np.float64)
    if times.ndim != 1 or times.size == 0:
        raise ValueError(
            f"{what}: expected a list of at least one time in seconds, got shape {times.shape}"
        )
    bad = int(np.sum(~(np.isfinite(times) & (times > 0))))
    if bad:
        raise ValueError(f"{what}: {bad} of {times.size} times are not positive and finite")
    return times


@lru_cache(maxsize=4096)
def _rank(n: int) -> int:
    """The largest k for which the k-th smallest and k-th largest of n values enclose the median at
    `CONFIDENCE`; 0 if none.

    The interval is that of `scipy.stats.quantile_test`, which takes 1000 times as long and runs at
    every look at the samples.
    """
    from scipy.stats import binom

    rank = int(binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    return rank if binom.cdf(rank - 1, n, 0.5) <= (1 - CONFIDENCE) / 2 else rank - 1


def _median_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    rank = _rank(values.size)
    if rank == 0:
        return -np.inf, np.inf
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[-rank])


def load_distributions() -> None:
    """Import SciPy's distributions now, which takes a second the first time, and not with the first
    interval.
    """
    import_module("scipy.stats")
