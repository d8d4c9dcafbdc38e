"""How two arms classify the same images: drop in top-1 accuracy with a paired interval, KL
divergence, change of margin.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeps.model.metrics import METRICS
from sweeps.model.outcome import Predictions, unpack
from sweeps.stats.quality import (
    Interval,
    QualityVerdict,
    array_problem,
    interval_verdict,
    mean,
    of_arm,
)
from sweeps.stats.timing import CONFIDENCE

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

    def verdict(self, floor: float = TOP1_FLOOR) -> QualityVerdict:
        """See `sweeps.stats.quality.interval_verdict`; `floor` in points."""
        return interval_verdict(self.low, self.high, floor)


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


def smallest_drop(images: int, floor: float = TOP1_FLOOR) -> float:
    """The least drop in points that so many images can show to be worse than `floor`; infinite
    where they can show none.

    It is shown where the arm loses images and gains none.
    """
    return next(
        (
            100 * lost / images
            for lost in range(1, images + 1)
            if 100 * _tango(lost, 0, images)[0] > floor
        ),
        np.inf,
    )


def images_for_same(floor: float = TOP1_FLOOR) -> int:
    """The fewest images whose interval lies within `floor` points where both arms are right on the
    same ones (Tango).
    """
    return int(np.ceil(Z**2 * (100 / floor - 1)))


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


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
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
