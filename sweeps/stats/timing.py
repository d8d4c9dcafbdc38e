"""Statistics of times: the median of one arm's, when a warm-up is over, and the robust two-way
estimate of timed rounds.

The model of rounds is y = round + column + noise, with y the logarithm of a time: what slows a
whole round cancels, and single slow times lose their weight instead of widening every interval.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
ANALYSIS_VERSION = 11
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


def _times(values: ArrayLike, what: str) -> Array:
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
    from scipy.special import bdtrik

    return int(np.ceil(bdtrik((1 - CONFIDENCE) / 2, n, 0.5)))


def _median_interval(values: Array) -> tuple[float, float]:
    rank = _rank(values.size)
    if rank == 0:
        return -np.inf, np.inf
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[-rank])


def load_distributions() -> None:
    """Import SciPy's distributions now, which takes time once, and not with the first interval."""
    import_module("scipy.special")


BIWEIGHT = 4.685
"""Residuals beyond this many standard deviations have no weight (Tukey's biweight: 95 % efficient
for normal noise)."""
NORMAL_MAD = 1.4826
"""Standard deviation of normal noise over its median absolute deviation."""
ITERATIONS = 10
WINDOW = 5
"""Noise is estimated from this many rounds around each one, so that rounds beside a busy neighbour
weigh less."""
MAX_GROUPS = 30
"""At most so many contiguous groups of rounds in the jackknife: noise correlated over less than a
group is accounted for."""
ROUNDS_PER_GROUP = 3
SETTLING = 2.0
"""Of how far the halves lie apart, where arms were still becoming faster: what may be left beyond
the later half."""
MIN_GROUPS = 5
"""With fewer a standard error has so few degrees of freedom (below 4) that no interval is worth
printing."""
MIN_ROUNDS = MIN_GROUPS * ROUNDS_PER_GROUP


class Contrast(NamedTuple):
    """A log speed-up of one process: `effect`, its standard error `se`, and the degrees of freedom
    of `se`.
    """

    effect: float
    se: float
    freedom: float

    def __neg__(self) -> "Contrast":
        return Contrast(-self.effect, self.se, self.freedom)


class Rounds:
    """Times of rounds, fitted once; contrasts between any columns follow from it."""

    def __init__(
        self, seconds: ArrayLike, arms: Sequence[int], *, warmup_converged: bool = True
    ) -> None:
        """`seconds` has shape [rounds, columns] and `arms` names the arm of each column; an arm may
        have several.

        Where warm-up ended before the arms were steady (`warmup_converged` is false), the later
        half of the rounds gives the estimate, and twice how far the earlier half lies from it is a
        part of its error: an arm that still becomes faster has a wide interval. Raises `ValueError`
        for times that are not positive and finite.
        """
        times = np.asarray(seconds, dtype=np.float64)
        if times.ndim != 2 or times.size == 0:
            raise ValueError(
                f"expected times in seconds of shape [rounds, columns], got shape {times.shape}"
            )
        bad = int(np.sum(~(np.isfinite(times) & (times > 0))))
        if bad:
            raise ValueError(f"{bad} of {times.size} times are not positive and finite")
        self.rounds, self.arms = len(times), np.asarray(arms)
        self._earlier = None
        if not warmup_converged and len(times) > 1:
            self._earlier = Rounds(times[: len(times) // 2], arms)
            times = times[len(times) // 2 :]
        logs = np.log(times)
        self.columns, self._without = _fits(logs)
        """Log time of each column less the mean over columns, shape [columns]; without a group of
        rounds each [groups, columns]."""
        self._level = float(np.median(logs - self.columns))

    def seconds(self, arm: int) -> float:
        """The time of an arm in a typical round; the ratio of two of them is that of their
        contrast.
        """
        return float(np.exp(self._level + self.columns[self.arms == arm].mean()))

    def contrast(self, baseline: int, arm: int) -> Contrast:
        """Log speed-up of `arm` over `baseline`; the columns of an arm are averaged."""
        return self._between(self.arms == baseline, self.arms == arm)

    def null(self, arm: int) -> Contrast | None:
        """Between the first two columns of one arm, which are equal; `None` where it has fewer."""
        first, *others = np.flatnonzero(self.arms == arm)
        places = np.arange(len(self.arms))
        return self._between(places == first, places == others[0]) if others else None

    def _between(self, baseline: NDArray[np.bool_], arm: NDArray[np.bool_]) -> Contrast:
        """The standard error is that of the delete-group jackknife over groups of rounds; infinite
        below `MIN_ROUNDS`.
        """
        effect = float(self.columns[baseline].mean() - self.columns[arm].mean())
        groups = len(self._without)
        if groups < MIN_GROUPS:
            return Contrast(effect, float("inf"), 1.0)
        variance = (
            jackknife_se(
                self._without[:, baseline].mean(axis=1) - self._without[:, arm].mean(axis=1)
            )
            ** 2
        )
        if self._earlier is not None:
            variance += (SETTLING * (effect - self._earlier._between(baseline, arm).effect)) ** 2
        return Contrast(effect, float(np.sqrt(variance)), groups - 1.0)


class Levels:
    """Robust levels of columns of numbers that add up as round + column + noise, such as shares of
    a time.
    """

    def __init__(self, values: ArrayLike, arms: Sequence[int]) -> None:
        """`values` has shape [rounds, columns], `arms` names the arm of each column. Raises
        `ValueError` for another shape.
        """
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.ndim != 2 or numbers.size == 0 or not np.isfinite(numbers).all():
            raise ValueError(
                f"expected finite numbers of shape [rounds, columns], got shape {numbers.shape}"
            )
        self._arms = np.asarray(arms)
        columns, without = _fits(numbers)
        self._levels = columns + np.median(numbers - columns)
        groups = _groups(len(numbers))
        self._without: Array = self._levels[None]
        if len(groups) > 1:
            left = [
                np.median(np.delete(numbers, group, axis=0) - own)
                for group, own in zip(groups, without, strict=True)
            ]
            self._without = without + np.array(left)[:, None]
        rounds = np.median(numbers - columns, axis=1)
        self.drift = float(np.std([np.median(rounds[group]) for group in groups]))
        """Standard deviation, between groups of rounds, of what all columns have in common."""

    def level(self, arm: int) -> float:
        """That of an arm, whose columns are averaged."""
        return float(self._levels[self._arms == arm].mean())

    def left_out(self, arm: int) -> Array:
        """The same without one group of rounds each, shape [groups]."""
        means: Array = self._without[:, self._arms == arm].mean(axis=1)
        return means


def jackknife_se(left_out: Array) -> float:
    """The standard error of an estimate from those without one group of rounds each; infinite for
    fewer than `MIN_GROUPS`.

    The factor is (groups - 1) / groups times (groups / (groups - 1))^2: weights follow the noise,
    which makes it too small.
    """
    groups = len(left_out)
    if groups < MIN_GROUPS:
        return float("inf")
    return float(np.sqrt(groups / (groups - 1) * np.sum((left_out - left_out.mean()) ** 2)))


def _groups(rounds: int) -> list[NDArray[np.intp]]:
    """Contiguous groups of rounds."""
    return np.array_split(np.arange(rounds), max(1, min(rounds // ROUNDS_PER_GROUP, MAX_GROUPS)))


def _fits(values: Array) -> tuple[Array, Array]:
    """Column effects of all rounds [columns], and without one group of rounds each [groups,
    columns].
    """
    start = np.median(values - np.median(values, axis=1, keepdims=True), axis=0)
    groups = _groups(len(values))
    kept = np.ones((len(groups), len(values)))
    for index, group in enumerate(groups):
        kept[index, group] = 0
    columns, noise = _fit(values, start[None], np.ones((1, len(values))))
    without = (
        _fit(values, np.repeat(columns, len(groups), axis=0), kept, noise)[0]
        if len(groups) > 1
        else columns
    )
    return columns[0], without


def _fit(
    logs: Array, columns: Array, kept: Array, noise: Array | None = None
) -> tuple[Array, Array]:
    """Column effects by iteratively reweighted least squares.

    `logs` has shape [rounds, columns], the start `columns` [fits, columns], `kept` [fits, rounds]
    is 0 for rounds left out. Without `noise`, the standard deviation of each round's noise, it is
    estimated at every iteration, from one fit. Returns both.
    """
    weights = np.repeat(kept[:, :, None], logs.shape[1], axis=2)
    found = np.ones(len(logs)) if noise is None else noise
    for _ in range(ITERATIONS):
        rounds = _means(logs - columns[:, None], weights, axis=2)
        residuals = logs - rounds[:, :, None] - columns[:, None]
        if noise is None:
            found = _noise(np.abs(residuals[0]))
        if not found.all():
            break  # more than half of the times fit exactly
        share = np.minimum(np.abs(residuals) / (BIWEIGHT * found[:, None]), 1)
        weights = (1 - share**2) ** 2 * kept[:, :, None] * (found.min() / found[:, None]) ** 2
        rounds = _means(logs - columns[:, None], weights, axis=2)
        columns = _means(logs - rounds[:, :, None], weights, axis=1)
        columns = columns - columns.mean(axis=1, keepdims=True)
    return columns, found


def _means(values: Array, weights: Array, axis: int) -> Array:
    """Weighted means along an axis; 0 where nothing has weight."""
    total = weights.sum(axis=axis)
    means: Array = (values * weights).sum(axis=axis) / np.where(total > 0, total, 1)
    return means


def _noise(residuals: Array) -> Array:
    """The standard deviation of the noise around each round, at least that of all, from absolute
    residuals [rounds, columns].
    """
    around = min(WINDOW // 2, len(residuals) - 1)
    padded = np.pad(residuals, ((around, around), (0, 0)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * around + 1, axis=0)
    local = np.median(windows.reshape(len(residuals), -1), axis=1)
    return np.asarray(NORMAL_MAD * np.maximum(local, np.median(residuals)))
