"""Statistics of quality, the same for images and for text: means, ratios and their intervals,
verdicts, packed arrays.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sweeps.model.outcome import ArmImages, ArmScores, unpack
from sweeps.stats.pooling import quantile
from sweeps.stats.timing import CONFIDENCE

QUALITY_ANALYSIS_VERSION = 2
"""Raised when a derived number may change; `breakeven reanalyse` then rebuilds the derived rows."""
KL_COVERAGE = "its 95 % interval covers 83 to 92 % where a few items hold most of it (heavy tails)"
"""Printed beside means of KL divergences; by simulation."""
MIN_DOCUMENTS = 5
"""Fewer documents give no interval: what differs between them is not known."""
QualityVerdict = Literal["better", "worse", "same", "unclear"]
ArmItems = TypeVar("ArmItems", ArmImages, ArmScores)


class Interval(NamedTuple):
    """A value and its 95 % interval, which rests on `n` images or windows; the ends are infinite
    where there is none.
    """

    value: float
    low: float
    high: float
    n: int


def interval_verdict(low: float, high: float, floor: float) -> QualityVerdict:
    """The verdict on a change above which the arm is worse, from its interval; `floor` in the unit
    of the change.

    `worse` and `better` need an interval that excludes no difference by more than the floor, `same`
    one inside the floor. Raises `ValueError` for a floor that is negative or not finite.
    """
    if not 0 <= floor < np.inf:
        raise ValueError(f"floor {floor} is not a finite number of at least 0")
    if low > floor:
        return "worse"
    if high < -floor:
        return "better"
    return "same" if -floor <= low and high <= floor else "unclear"


def mean(values: ArrayLike) -> Interval:
    """Mean over images or windows (shape [n]) with an interval that allows for skewness, such as
    that of KL divergences.

    Student's t on Hall's transformation (Journal of the Royal Statistical Society B 54, 1992, p.
    221), which corrects as the bootstrap-t does, but in one pass and the same each time. On heavy
    tails (lognormal values of sigma 2; KL divergences may be so) it covers 83 to 92 % and not 95 %
    (`KL_COVERAGE`). Raises `ValueError` for no values or values that are not finite.
    """
    sample = np.asarray(values, dtype=np.float64)
    n = sample.size
    if sample.ndim != 1 or not n or not np.all(np.isfinite(sample)):
        raise ValueError(f"a mean needs at least one value, all finite; got shape {sample.shape}")
    centre = float(np.mean(sample))
    if n == 1:
        return Interval(centre, -np.inf, np.inf, n)
    error = float(np.std(sample, ddof=1)) / np.sqrt(n)
    if error == 0:
        return Interval(centre, centre, centre, n)
    skewness = float(np.mean((sample - centre) ** 3)) / float(np.std(sample)) ** 3
    from scipy.stats import t

    quantile = float(t.ppf((1 + CONFIDENCE) / 2, n - 1))
    low, high = (centre - error * _unskewed(side * quantile, skewness, n) for side in (1, -1))
    return Interval(centre, min(low, centre), max(high, centre), n)


def ratio(amounts: ArrayLike, sizes: ArrayLike, documents: ArrayLike) -> Interval:
    """Sum of `amounts` over sum of `sizes` with an interval over documents; all of shape [windows].

    `documents` holds which document each window is of: windows of one are alike. The standard error
    is that of the jackknife which leaves out a document at a time, with degrees of freedom by their
    effective number (Kish: the square of the sum of sizes over the sum of their squares) less 1; to
    each side the interval is that of Student's t or, where it is wider, that of `mean`, which
    allows for skewness. Simulated coverage is 94 to 97 % for 5 to 100 documents of equal or unequal
    length whose windows are correlated by .1 to .5, and 88 to 92 % for 12 to 30 windows with
    lognormal differences. There is no interval below `MIN_DOCUMENTS` documents, unless the ratio is
    the same in each. Raises `ValueError` for no windows.
    """
    amount, size = np.asarray(amounts, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if amount.ndim != 1 or amount.shape != size.shape or not np.sum(size) > 0:
        raise ValueError(
            f"a ratio needs windows with a size each, got shapes {amount.shape} and {size.shape}"
        )
    of = np.unique(np.asarray(documents), return_inverse=True)[1]
    by_amount, by_size = np.bincount(of, amount), np.bincount(of, size)
    total, number = float(np.sum(by_size)), len(by_size)
    value = float(np.sum(amount)) / total
    if number > 1 and np.allclose(by_amount, value * by_size, rtol=1e-12, atol=0):
        return Interval(value, value, value, amount.size)
    if number < MIN_DOCUMENTS:
        return Interval(value, -np.inf, np.inf, amount.size)
    pseudo = number * value - (number - 1) * (np.sum(by_amount) - by_amount) / (total - by_size)
    error = float(np.std(pseudo, ddof=1)) / np.sqrt(number)
    skewness = float(np.mean((pseudo - np.mean(pseudo)) ** 3)) / float(np.std(pseudo)) ** 3
    reach = quantile(1 - CONFIDENCE, total**2 / float(np.sum(by_size**2)) - 1)
    below, above = (
        max(reach, side * _unskewed(side * reach, skewness, number)) for side in (1, -1)
    )
    return Interval(value, value - error * below, value + error * above, amount.size)


def of_arm(arms: Sequence[ArmItems], arm: int) -> ArmItems:
    """What was read of an arm. Raises `ValueError` for an arm that is not among them."""
    if (found := next((one for one in arms if one.arm == arm), None)) is None:
        raise ValueError(f"the data holds arms {[one.arm for one in arms]}, not {arm}")
    return found


def array_problem(columns: Iterable[tuple[str, str, str]], count: int, items: str) -> str | None:
    """Why packed arrays, each with its name and dtype, do not hold one value for each of `count`
    items; `None` if they do.
    """
    for name, text, dtype in columns:
        try:
            size = unpack(text, dtype).size
        except ValueError as error:
            return f"{name} is no packed array of {dtype}: {error}"
        if size != count:
            return f"{name} has {size} values for {count} {items}"
    return None if count > 0 else f"it holds no {items}"


def _unskewed(quantile: float, skewness: float, n: int) -> float:
    """The quantile of the studentised mean of n skewed values for a `quantile` of Student's t (the
    inverse of Hall's cubic).
    """
    if abs(skewness) < 1e-6:
        return quantile
    root = float(np.cbrt(1 + skewness * (quantile / np.sqrt(n) - skewness / (6 * n))))
    return 3 * float(np.sqrt(n)) * (root - 1) / skewness
