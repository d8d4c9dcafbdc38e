"""Statistics of paired timings: speed-up, interval, verdict, and when to stop warming up and measuring."""

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeps.metrics import SPEED_FLOOR

ANALYSIS_VERSION = 3
"""Raised when a derived number may change; `breakeven reanalyse` then rebuilds the derived rows."""
CONFIDENCE = 0.95
DEFAULT_FLOOR = SPEED_FLOOR
"""Noise floor of a device that was not calibrated by A/A tests."""
MIN_PAIRS = 30
"""With fewer pairs no verdict is given."""
CLEAR = 1.5
"""`faster` and `slower` need an interval this many times as wide as the one of 95 %: about three standard errors, 99.7 %.

A sweep has dozens of questions, so at 95 % some answers would be false: beside a busy neighbour 3 of 20 A/A pairs were."""

WARM_BLOCKS = 2
WARM_IMPROVEMENT = 0.02
PLATEAU_LOOKS = 8
PLATEAU_SHRINK = 0.05

SHORT = 2
"""A round with fewer than 1/2 of the pairs of the longest one was cut short: its pairs join another round's."""

Verdict = Literal["faster", "slower", "same", "unclear", "insufficient"]


class Estimate(NamedTuple):
    """A value, its 95 % interval, and the number of pairs or samples behind it.

    Fewer than 6 values cannot give such an interval: it is then `low` 0 and `high` infinity, which JSON cannot hold and a
    store keeps as NULL.
    """

    value: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """The larger distance of `low` or `high` from `value`, as a share of `value`."""
        return max(self.value - self.low, self.high - self.value) / self.value


def speedup(baseline_s: ArrayLike, arm_s: ArrayLike) -> Estimate:
    """Speed-up of an arm over its baseline: exp of the median log ratio of paired times, both shape [pairs], in seconds.

    The interval is made of order statistics of the ratios (sign-test interval, Conover, Practical Nonparametric Statistics,
    section 3.2): it assumes nothing about the distribution. Pairing cancels whatever drift both halves of a pair share.
    Raises `ValueError` for times that are not positive and finite, and for two sides of unequal length.
    """
    ratios = _log_ratios(baseline_s, arm_s)
    low, high = _median_interval(ratios)
    return Estimate(*_exp(np.median(ratios), low, high), ratios.size)


def pooled_speedup(rounds: Sequence[tuple[ArrayLike, ArrayLike]]) -> Estimate:
    """Speed-up over several rounds, each a (baseline, arm) of `speedup`, measured in fresh processes; `n` counts all pairs.

    Processes differ by more than their pairs show (memory layout, hash seeds: Kalibera and Jones 2013), so each round is one
    observation, weighted by its pairs: the value is the geometric mean of the rounds' medians, and the interval Student's t on
    them, at least as wide as that of all pairs together. While the rounds' own intervals all overlap it need not reach beyond
    their hull, without which two rounds would be nearly worthless. In simulation three or more rounds cover at 95 % however
    large the differences between rounds; two rounds at 93 % while these are at most twice a round's standard error, at 80 % at
    worst. A single round is `speedup`, and holds for that process alone.

    A round that was cut short (see `SHORT`) is too few pairs for a median of its own: such rounds are joined, in their order,
    until they are no longer short, and the rest joins the last round.
    """
    if not rounds:
        raise ValueError("no rounds to pool; at least one (baseline, arm) is needed")
    logs = _joined([_log_ratios(baseline_s, arm_s) for baseline_s, arm_s in rounds])
    medians = np.array([np.median(ratios) for ratios in logs])
    together = np.concatenate(logs)
    if len(logs) == 1:
        return Estimate(*_exp(medians[0], *_median_interval(together)), together.size)
    from scipy.stats import t  # half a second of import, which commands without statistics are spared

    weights = np.array([ratios.size for ratios in logs]) / together.size
    centre = float(weights @ medians)
    # Unbiased for equal variances between rounds, too wide for variances that fall with the pairs; s^2/k for equal weights.
    squares = float(weights @ weights)
    spread = squares / (1 - squares) * float(weights @ (medians - centre) ** 2)
    reach = float(t.ppf((1 + CONFIDENCE) / 2, medians.size - 1) * np.sqrt(spread))
    pooled_low, pooled_high = _median_interval(together)
    low, high = min(centre - reach, pooled_low), max(centre + reach, pooled_high)
    lows, highs = zip(*map(_median_interval, logs), strict=True)
    if max(lows) <= min(highs):
        low, high = max(low, min(lows)), min(high, max(highs))
    # Rounding may leave the mean of equal medians just outside them.
    return Estimate(*_exp(centre, min(low, centre), max(high, centre)), together.size)


def median(samples_s: ArrayLike) -> Estimate:
    """Median of times (shape [samples], in seconds) with its order-statistic interval. Raises `ValueError` like `speedup`."""
    samples = _times(samples_s, "samples")
    low, high = _median_interval(samples)
    return Estimate(float(np.median(samples)), max(low, 0.0), high, samples.size)


def verdict(estimate: Estimate, floor: float = DEFAULT_FLOOR, pairs_min: int = 0) -> Verdict:
    """What a speed-up's interval allows to conclude; `floor` is the device's noise floor as a share (0.01 for 1 %).

    `insufficient` is a measurement that was cut short, with fewer pairs than the `pairs_min` requested. `faster` and
    `slower` need an interval that, stretched by `CLEAR` about its value, clears 1 by more than the floor, `same` one inside the
    floor, and each of them `MIN_PAIRS` pairs. Everything else is `unclear`.
    """
    if not 0 <= floor < np.inf:
        raise ValueError(f"noise floor {floor} is not a share of at least 0, such as {DEFAULT_FLOOR}")
    if estimate.n < pairs_min:
        return "insufficient"
    if estimate.n < MIN_PAIRS:
        return "unclear"
    if _stretched(estimate.value, estimate.low) > 1 + floor:
        return "faster"
    if _stretched(estimate.value, estimate.high) < 1 / (1 + floor):
        return "slower"
    if 1 / (1 + floor) <= estimate.low and estimate.high <= 1 + floor:
        return "same"
    return "unclear"


def outliers(samples_s: ArrayLike) -> NDArray[np.bool_]:
    """True where a time lies outside Tukey's outer fences (3 interquartile ranges) of the log times; to flag, never to drop."""
    logs = np.log(_times(samples_s, "samples"))
    lower, upper = np.percentile(logs, [25, 75])
    reach = 3 * (upper - lower)
    result: NDArray[np.bool_] = (logs < lower - reach) | (logs > upper + reach)
    return result


def steady(block_medians: Sequence[float]) -> bool:
    """Whether an arm is warm: the last 2 blocks improved the best median (seconds) of all earlier blocks by at most 2 %."""
    earlier, last = block_medians[:-WARM_BLOCKS], block_medians[-WARM_BLOCKS:]
    return bool(earlier) and min(last) >= (1 - WARM_IMPROVEMENT) * min(earlier)


def plateau(half_widths: Sequence[float]) -> bool:
    """Whether going on is pointless: the interval no longer narrows as the number of pairs doubles.

    `half_widths` are those of all looks so far, at equal steps of pairs. From 8 looks on, the median of the later half must
    be at least 5 % below that of the earlier half; steady noise makes it a quarter. Where the interval lies does not matter.
    """
    half = len(half_widths) // 2
    if len(half_widths) < PLATEAU_LOOKS:
        return False
    return bool(np.median(half_widths[half:]) > (1 - PLATEAU_SHRINK) * np.median(half_widths[:half]))


def _times(values: ArrayLike, what: str) -> NDArray[np.float64]:
    times = np.asarray(values, dtype=np.float64)
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"{what}: expected a list of at least one time in seconds, got shape {times.shape}")
    bad = int(np.sum(~(np.isfinite(times) & (times > 0))))
    if bad:
        raise ValueError(f"{what}: {bad} of {times.size} times are not positive and finite")
    return times


def _log_ratios(baseline_s: ArrayLike, arm_s: ArrayLike) -> NDArray[np.float64]:
    baseline, arm = _times(baseline_s, "baseline"), _times(arm_s, "arm")
    if baseline.size != arm.size:
        raise ValueError(f"pairs need two sides of equal length, got {baseline.size} baseline and {arm.size} arm times")
    ratios: NDArray[np.float64] = np.log(baseline) - np.log(arm)
    return ratios


def _joined(logs: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """The log ratios of rounds, those that were cut short joined until none has less than a share of 1/`SHORT` of the longest."""
    longest = max(ratios.size for ratios in logs)
    whole = [ratios for ratios in logs if SHORT * ratios.size >= longest]
    rest = np.empty(0)
    for ratios in logs:
        if SHORT * ratios.size < longest:
            rest = np.concatenate((rest, ratios))
            if SHORT * rest.size >= longest:
                whole.append(rest)
                rest = np.empty(0)
    return [*whole[:-1], np.concatenate((whole[-1], rest))]


@lru_cache(maxsize=4096)
def _rank(n: int) -> int:
    """The largest k for which the k-th smallest and k-th largest of n values enclose the median at `CONFIDENCE`; 0 if none.

    The interval is that of `scipy.stats.quantile_test`, which takes 1000 times as long and runs at every look at the samples.
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


def _stretched(value: float, end: float) -> float:
    """An end of the interval moved away from its value by `CLEAR`, on the scale of logs on which intervals are symmetric."""
    return float(value * (end / value) ** CLEAR)


def _exp(value: float | np.floating, low: float, high: float) -> tuple[float, float, float]:
    return float(np.exp(value)), float(np.exp(low)), float(np.exp(high))


def load_distributions() -> None:
    """Import SciPy's distributions now, which takes a second the first time, and not with the first interval."""
    import_module("scipy.stats")
