"""Statistics of quality: means, ratios and their intervals; how two arms classify the same images
(drop in top-1, KL divergence, change of margin), and how well they predict the same text (bits per
byte, agreement, KL divergence).
"""

from collections.abc import Iterable, Sequence
from math import exp, log
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeps.model.metrics import METRICS
from sweeps.model.outcome import ArmImages, ArmScores, Predictions, TextScores, unpack
from sweeps.stats.pooling import quantile
from sweeps.stats.timing import CONFIDENCE, Array

QUALITY_ANALYSIS_VERSION = 3
"""Raised when a derived number may change; `breakeven reanalyse` then rebuilds the derived rows."""
KL_COVERAGE = (
    "the low end of the 95 % interval is a bound (at least so much), and the high end is none:"
    " where a few items hold most of it, the interval covers 58 to 92 %"
)
"""Printed next to means of KL divergences; by simulation."""
MIN_DOCUMENTS = 5
"""Fewer documents give no interval: what differs between them is not known."""
MAX_AUTOCORRELATION = 0.97
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
    tails (lognormal values of sigma 2; KL divergences may be so) it covers 83 to 92 % and not 95 %,
    and 58 to 72 % where 1 % of 100 items are 50 times as large: a third of such samples has none of
    them. Its low end is too high in 2.5 % at most (`KL_COVERAGE`). Raises `ValueError` for no
    values or values that are not finite.
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
    below, above = _reaches(quantile(1 - CONFIDENCE, n - 1), sample)
    return Interval(
        centre, min(centre - error * below, centre), max(centre + error * above, centre), n
    )


def ratio(amounts: ArrayLike, sizes: ArrayLike, documents: ArrayLike) -> Interval:
    """Sum of `amounts` over sum of `sizes` with an interval over documents; all of shape [windows].

    `documents` holds which document each window is of: windows of one are alike. The standard error
    is that of the jackknife which leaves out a document at a time, with degrees of freedom by their
    effective number (Kish: the square of the sum of sizes over the sum of their squares) less 1; to
    each side the interval is that of Student's t or, where it is wider, that of `mean`, which
    allows for skewness. Simulated coverage is 94 to 97 % for 5 to 100 documents of equal or unequal
    length whose windows are correlated by .1 to .5, and 88 to 92 % for 12 to 30 windows with
    lognormal differences. There is no interval below `MIN_DOCUMENTS` documents, unless the ratio is
    the same in each. A single document counts as `BLOCKS` contiguous ones, and its error is at
    least that of windows with the autocorrelation that they have: with one of .7 / .9 coverage is
    97 / 92 % for 50 windows, 99 / 98 % for 200. Raises `ValueError` for no windows.
    """
    amount, size = np.asarray(amounts, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if amount.ndim != 1 or amount.shape != size.shape or not np.sum(size) > 0:
        raise ValueError(
            f"a ratio needs windows with a size each, got shapes {amount.shape} and {size.shape}"
        )
    of = np.unique(np.asarray(documents), return_inverse=True)[1]
    alone = len(of) > 1 and not of.any()
    if alone:
        of = np.arange(len(of)) * min(BLOCKS, len(of)) // len(of)
    by_amount, by_size = np.bincount(of, amount), np.bincount(of, size)
    total, number = float(np.sum(by_size)), len(by_size)
    value = float(np.sum(amount)) / total
    if number > 1 and np.allclose(by_amount, value * by_size, rtol=1e-12, atol=0):
        return Interval(value, value, value, amount.size)
    if number < MIN_DOCUMENTS:
        return Interval(value, -np.inf, np.inf, amount.size)
    pseudo = number * value - (number - 1) * (np.sum(by_amount) - by_amount) / (total - by_size)
    error = float(np.std(pseudo, ddof=1)) / np.sqrt(number)
    if alone:
        error = max(error, _serial_error(amount - value * size) / total)
    reach = quantile(1 - CONFIDENCE, total**2 / float(np.sum(by_size**2)) - 1)
    below, above = (max(reach, each) for each in _reaches(reach, pseudo))
    return Interval(value, value - error * below, value + error * above, amount.size)


def _serial_error(values: Array) -> float:
    """Standard error of the sum of values whose mean is 0, by their lag-1 autocorrelation less its
    bias (Kendall).
    """
    n, squares = len(values), float(values @ values)
    lag = float(values[1:] @ values[:-1]) / squares
    known = min(max(lag + (1 + 3 * lag) / n, 0.0), MAX_AUTOCORRELATION)
    return float(np.sqrt(n / (n - 1) * squares * (1 + known) / (1 - known)))


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


def _reaches(quantile: float, values: Array) -> list[float]:
    """How far the interval of the mean of skewed values reaches below and above it, in standard
    errors, for a `quantile` of Student's t (the inverse of Hall's cubic).
    """
    skewness = float(np.mean((values - np.mean(values)) ** 3)) / float(np.std(values)) ** 3
    if abs(skewness) < 1e-6:
        return [quantile, quantile]
    n, root = len(values), float(np.sqrt(len(values)))
    cubes = (1 + skewness * (each / root - skewness / (6 * n)) for each in (quantile, -quantile))
    below, above = (3 * root * (float(np.cbrt(cube)) - 1) / skewness for cube in cubes)
    return [below, -above]


TOP1_FLOOR = METRICS["top1"].floor
"""Points of top-1 that are called no difference."""
TAIL = 0.05
"""The tail of the margin changes is the value that this share of images lies below."""
Z = 1.959963984540054
"""The normal distribution's quantile at (1 + `CONFIDENCE`) / 2."""


class Drop(NamedTuple):
    """Top-1 of the baseline less that of the arm on the same images, in points: above 0 the arm is
    worse.
    """

    value: float
    low: float
    high: float
    n: int
    lost: int
    """Images that the baseline alone has right."""
    gained: int
    """Images that the arm alone has right."""
    p: float
    """McNemar's exact test of no difference: the two-sided binomial probability of a split of lost
    and gained this uneven."""

    def verdict(self) -> QualityVerdict:
        """See `sweeps.stats.quality.interval_verdict`."""
        return interval_verdict(self.low, self.high, TOP1_FLOOR)


class Agreement(NamedTuple):
    """What one arm of an evaluation loses against another; shares of images in per cent, KL in
    nats, margins in logits.
    """

    images: int
    top1_baseline: Interval
    top1: Interval
    top5_baseline: float
    top5: float
    drop: Drop
    kl: Interval | None
    """Mean KL(baseline || arm) of the softmax over the outputs that stand for the classes of the
    data.

    `None` where the evaluation does not hold it for these two, or nothing finite.
    """
    margin_change: Interval | None
    """Mean margin of the arm less that of the baseline; `None` where nothing is finite."""
    margin_change_p05: float | None
    """The `TAIL` quantile of the same changes."""

    def verdict(self) -> QualityVerdict:
        return self.drop.verdict()


def accuracy_drop(baseline_hits: ArrayLike, arm_hits: ArrayLike) -> Drop:
    """Drop in top-1 between two arms, given which images each has right (booleans, shape [images],
    same order).

    The interval is Tango's score interval for a difference of paired proportions (Statistics in
    Medicine 17, 1998, p. 891): it needs no discordant images, and where few are its simulated
    coverage stays at 93 % or more, while Wald's falls to 77 %. Raises `ValueError` for no images,
    or two sides of unequal length.
    """
    baseline, arm = np.asarray(baseline_hits, dtype=np.bool_), np.asarray(arm_hits, dtype=np.bool_)
    if baseline.ndim != 1 or baseline.shape != arm.shape or not baseline.size:
        raise ValueError(
            f"two arms need answers to the same images, got shapes {baseline.shape} and {arm.shape}"
        )
    lost, gained = int(np.sum(baseline & ~arm)), int(np.sum(arm & ~baseline))
    low, high = _tango(lost, gained, baseline.size)
    value = 100 * (lost - gained) / baseline.size
    return Drop(
        value,
        min(100 * low, value),
        max(100 * high, value),
        baseline.size,
        lost,
        gained,
        mcnemar(lost, gained),
    )


def smallest_drop(images: int) -> float:
    """The least drop in points that so many images can show to be worse than `TOP1_FLOOR`; infinite
    where they can show none.

    It is shown where the arm loses images and gains none.
    """
    return next(
        (
            100 * lost / images
            for lost in range(1, images + 1)
            if 100 * _tango(lost, 0, images)[0] > TOP1_FLOOR
        ),
        np.inf,
    )


def images_for_same() -> int:
    """The fewest images whose interval lies within `TOP1_FLOOR` points where both arms are right on
    the same ones (Tango).
    """
    return int(np.ceil(Z**2 * (100 / TOP1_FLOOR - 1)))


def mcnemar(lost: int, gained: int) -> float:
    """Exact two-sided p of McNemar's test: how likely a split of `lost + gained` coin tosses at
    least this uneven is.

    That of `scipy.stats.binomtest`, whose import takes most of a second.
    """
    from scipy.special import bdtr

    return min(1.0, 2.0 * float(bdtr(min(lost, gained), lost + gained, 0.5)))


def share(hits: ArrayLike) -> Interval:
    """Share of true values (shape [images]) in per cent, with Wilson's score interval. Raises
    `ValueError` for none.
    """
    answers = np.asarray(hits, dtype=np.bool_)
    n = answers.size
    if not n:
        raise ValueError("a share of no images is not known")
    from scipy.stats import binomtest

    p = float(np.mean(answers))
    bounds = binomtest(int(answers.sum()), n).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(100 * p, 100 * min(bounds.low, p), 100 * max(bounds.high, p), n)


def compare_predictions(evaluation: Predictions, baseline: int, arm: int) -> Agreement:
    """How two arms of an evaluation agree, whether or not they are a pair of the job. Raises
    `ValueError` for an arm it lacks.
    """
    ranks, margins = {}, {}
    for index in (baseline, arm):
        images = of_arm(evaluation.arms, index)
        ranks[index], margins[index] = (
            unpack(images.rank, "i2"),
            unpack(images.margin, "f4").astype(np.float64),
        )
    hits = {index: rank == 0 for index, rank in ranks.items()}
    near = {index: float(100 * np.mean((rank >= 0) & (rank < 5))) for index, rank in ranks.items()}
    changes = _finite(margins[arm] - margins[baseline])
    apart = next(
        (
            unpack(pair.kl, "f4")
            for pair in evaluation.pairs
            if (pair.baseline, pair.arm) == (baseline, arm)
        ),
        None,
    )
    kl = np.empty(0) if apart is None else _finite(apart.astype(np.float64))
    return Agreement(
        images=evaluation.images,
        top1_baseline=share(hits[baseline]),
        top1=share(hits[arm]),
        top5_baseline=near[baseline],
        top5=near[arm],
        drop=accuracy_drop(hits[baseline], hits[arm]),
        kl=mean(kl) if kl.size else None,
        margin_change=mean(changes) if changes.size else None,
        margin_change_p05=float(np.quantile(changes, TAIL)) if changes.size else None,
    )


def predictions_problem(evaluation: Predictions) -> str | None:
    """Why the evaluation cannot be: an array that does not hold one value for each image; `None` if
    it can.
    """
    columns = [("labels", evaluation.labels, "i2")]
    for images in evaluation.arms:
        named = (("predicted", "i2"), ("rank", "i2"), ("margin", "f4"))
        columns += [
            (f"{name} of arm {images.arm}", getattr(images, name), dtype) for name, dtype in named
        ]
    columns += [(f"kl of arm {pair.arm}", pair.kl, "f4") for pair in evaluation.pairs]
    return array_problem(columns, evaluation.images, "images")


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]


def _tango(lost: int, gained: int, n: int) -> tuple[float, float]:
    """Tango's score interval of p_lost - p_gained: the differences that a score test at
    `CONFIDENCE` does not reject.
    """

    def score(difference: float) -> float:
        a = 2 * n
        b = -lost - gained + (2 * n - lost + gained) * difference
        c = -gained * difference * (1 - difference)
        nuisance = (np.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
        variance = n * (2 * nuisance + difference * (1 - difference))
        return float((lost - gained - n * difference) / np.sqrt(max(variance, 1e-300)))

    estimate = (lost - gained) / n
    edge = 1 - 1e-12
    from scipy.optimize import brentq

    low = (
        -1.0
        if estimate <= -edge
        else float(brentq(lambda x: score(x) - Z, -edge, estimate, xtol=1e-12))
    )
    high = (
        1.0
        if estimate >= edge
        else float(brentq(lambda x: score(x) + Z, estimate, edge, xtol=1e-12))
    )
    return low, high


BITS_FLOOR = METRICS["bits_per_byte"].floor
"""Bits per byte that are called no difference."""
BLOCKS = 5
"""Parts of a text of one document, by which its intervals are made: few, because windows that
follow each other are alike, and neighbouring parts less so the longer they are."""


class Fidelity(NamedTuple):
    """What one arm loses against another on the windows of a text that both scored."""

    windows: int
    skipped: int
    """Windows left out because one of the two gave no finite likelihood."""
    bytes: int
    characters: int
    tokens_baseline: int
    tokens: int
    """Tokens of the arm's own tokenizer: where they differ, perplexities per token cannot be
    compared, bits per byte can."""
    bits_per_byte_baseline: float
    bits_per_byte: float
    change: Interval
    """Bits per byte of the arm less those of the baseline: above 0 the arm is worse."""
    perplexity_baseline: float
    perplexity: float
    agreement: Interval | None
    """Positions at which both find the same token most likely, in per cent; `None` where the two
    read other tokens."""
    kl: Interval | None
    """Mean KL(baseline || arm) over positions in nats."""

    def verdict(self) -> QualityVerdict:
        """See `sweeps.stats.quality.interval_verdict`."""
        return interval_verdict(self.change.low, self.change.high, BITS_FLOOR)


def compare_texts(scores: TextScores, baseline: int, arm: int) -> Fidelity:
    """How two arms of a quality job predict the text. Raises `ValueError` for an arm it lacks, or
    that scored no window.
    """
    sizes, characters = (
        unpack(scores.bytes, "i4").astype(np.float64),
        unpack(scores.characters, "i4"),
    )
    sides = [of_arm(scores.arms, index) for index in (baseline, arm)]
    nll = [unpack(side.nll, "f8") for side in sides]
    tokens = [unpack(side.tokens, "i4") for side in sides]
    both = np.isfinite(nll[0]) & np.isfinite(nll[1]) & (sizes > 0)
    if not np.any(both):
        raise ValueError(f"arms {baseline} and {arm} have no window that both scored")
    total = float(np.sum(sizes[both]))
    counts = [int(np.sum(side[both])) for side in tokens]
    sums = [float(np.sum(side[both])) for side in nll]
    documents: NDArray[np.int32] = unpack(scores.documents, "i4")
    agreement, kl = _predictions(scores, baseline, arm, both, documents)
    return Fidelity(
        windows=int(np.sum(both)),
        skipped=int(np.sum(~both)),
        bytes=int(total),
        characters=int(np.sum(characters[both])),
        tokens_baseline=counts[0],
        tokens=counts[1],
        bits_per_byte_baseline=sums[0] / total / log(2),
        bits_per_byte=sums[1] / total / log(2),
        change=ratio((nll[1] - nll[0])[both] / log(2), sizes[both], documents[both]),
        perplexity_baseline=_perplexity(sums[0], counts[0]),
        perplexity=_perplexity(sums[1], counts[1]),
        agreement=agreement,
        kl=kl,
    )


def scored(scores: TextScores | None, arm: int) -> bool:
    """Whether an arm gave at least one window a finite likelihood."""
    return scores is not None and any(
        side.arm == arm and bool(np.any(np.isfinite(unpack(side.nll, "f8"))))
        for side in scores.arms
    )


def scores_problem(scores: TextScores) -> str | None:
    """Why the scores cannot be: an array that does not hold one value for each window; `None` if
    they can.
    """
    columns = [(name, getattr(scores, name), "i4") for name in ("bytes", "characters", "documents")]
    for side in scores.arms:
        columns += [
            (f"nll of arm {side.arm}", side.nll, "f8"),
            (f"tokens of arm {side.arm}", side.tokens, "i4"),
        ]
    for pair in scores.pairs:
        named = (("positions", "i4"), ("agree", "i4"), ("kl", "f4"))
        columns += [
            (f"{name} of arm {pair.arm}", getattr(pair, name), dtype) for name, dtype in named
        ]
    return array_problem(columns, scores.windows, "windows")


def _predictions(
    scores: TextScores,
    baseline: int,
    arm: int,
    both: NDArray[np.bool_],
    documents: NDArray[np.int32],
) -> tuple[Interval | None, Interval | None]:
    """Top-1 agreement in per cent and KL over the positions that were compared; `None` where there
    are none.
    """
    pair = next(
        (pair for pair in scores.pairs if (pair.baseline, pair.arm) == (baseline, arm)), None
    )
    if pair is None:
        return None, None
    positions, kl = (
        unpack(pair.positions, "i4").astype(np.float64),
        unpack(pair.kl, "f4").astype(np.float64),
    )
    used = both & (positions > 0) & np.isfinite(kl)
    if not np.any(used):
        return None, None
    positions, documents = positions[used], documents[used]
    share = ratio(100 * unpack(pair.agree, "i4")[used], positions, documents)
    share = share._replace(low=max(share.low, 0.0), high=min(share.high, 100.0))
    return share, ratio(kl[used] * positions, positions, documents)


def _perplexity(nll: float, tokens: int) -> float:
    """Per token of the arm's own tokenizer; infinite where it would not fit a float."""
    mean_nll = nll / tokens if tokens else np.inf
    return exp(mean_nll) if mean_nll < 700 else np.inf
