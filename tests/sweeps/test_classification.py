"""Two arms on the same images: intervals cover simulated truths, and the verdict is unclear where
the data do not decide.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from sweeps.model.outcome import ArmImages, PairImages, Predictions, pack
from sweeps.stats.quality import (
    accuracy_drop,
    compare_predictions,
    interval_verdict,
    mcnemar,
    mean,
    predictions_problem,
    share,
)

Hits = tuple[np.ndarray, np.ndarray]


def simulated(random: np.random.Generator, images: int, lost: float, gained: float) -> Hits:
    """Hits of a baseline and an arm that are right apart on these shares of an endless stream of
    images.
    """
    outcome = random.choice(3, size=images, p=[lost, gained, 1 - lost - gained])
    both = random.random(images) < 0.8
    return np.where(outcome == 0, True, np.where(outcome == 1, False, both)), np.where(
        outcome == 1, True, np.where(outcome == 0, False, both)
    )


@pytest.mark.parametrize(
    ("images", "lost", "gained"), [(100, 0.02, 0.01), (360, 0.005, 0.005), (2000, 0.1, 0.1)]
)
def test_the_interval_of_a_drop_covers_the_truth(images: int, lost: float, gained: float) -> None:
    """In 1000 simulated evaluations the 95 % interval holds the true drop at least 930 times."""
    random = np.random.default_rng(1)
    found = [accuracy_drop(*simulated(random, images, lost, gained)) for _ in range(1000)]
    assert sum(one.low <= 100 * (lost - gained) <= one.high for one in found) >= 930


def test_the_bounds_of_a_drop_are_where_the_score_test_rejects() -> None:
    """At either end Tango's statistic, written out once more, is the 97.5 % quantile of the normal
    distribution.
    """
    baseline = np.array([True] * 43 + [False])
    found = accuracy_drop(baseline, np.ones(44, dtype=bool))
    assert (found.lost, found.gained, found.value) == (0, 1, pytest.approx(-100 / 44))
    z = 1.959964
    for bound in (found.low / 100, found.high / 100):
        a, b, c = 88, -1 + (88 + 1) * bound, -bound * (1 - bound)
        nuisance = (np.sqrt(b * b - 4 * a * c) - b) / (2 * a)
        score = (-1 - 44 * bound) / np.sqrt(44 * (2 * nuisance + bound * (1 - bound)))
        assert abs(score) == pytest.approx(z, rel=1e-5)


def test_without_discordant_images_the_interval_is_not_a_point() -> None:
    """Equal answers on few images do not prove equal arms; on many they do."""
    for images, verdict in ((360, "unclear"), (5000, "same")):
        found = accuracy_drop(np.ones(images), np.ones(images))
        assert (found.value, found.p) == (0, 1)
        assert -found.low == pytest.approx(found.high)
        assert found.high == pytest.approx(100 * 1.959964**2 / (images + 1.959964**2), rel=1e-4)
        assert found.verdict() == verdict


@pytest.mark.parametrize(
    ("lost", "gained", "verdict"),
    [
        (0.05, 0.01, "worse"),
        (0.01, 0.05, "better"),
        (0.0002, 0.0002, "same"),
        (0.03, 0.03, "unclear"),
        (0.012, 0.01, "unclear"),
    ],
)
def test_verdicts_on_simulated_truth(lost: float, gained: float, verdict: str) -> None:
    """Clear differences are found on 20 000 images; a true drop at the floor, or noise wider than
    it, is unclear.
    """
    hits = simulated(np.random.default_rng(3), 20_000, lost, gained)
    assert accuracy_drop(*hits).verdict() == verdict


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_swapping_the_sides_turns_the_drop(answers: list[tuple[bool, bool]]) -> None:
    """A drop one way is a gain the other way, its value lies in its interval, and that within -100
    to 100 points.
    """
    one, other = (np.array(side) for side in zip(*answers, strict=True))
    there, back = accuracy_drop(one, other), accuracy_drop(other, one)
    assert (there.value, there.lost, there.p) == (pytest.approx(-back.value), back.gained, back.p)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=1e-6)
    assert -100 <= there.low <= there.value <= there.high <= 100


def test_mcnemar_is_the_binomial_test() -> None:
    """The exact p is that of a sign test on the discordant images."""
    for lost, gained in ((0, 0), (1, 0), (5, 5), (12, 3), (0, 20)):
        expected = binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
        assert mcnemar(lost, gained) == pytest.approx(expected)


@pytest.mark.parametrize(("sigma", "least"), [(1.0, 915), (1.5, 890)])
def test_the_interval_of_a_skewed_mean(sigma: float, least: int) -> None:
    """For values as skewed as KL divergences it covers more often than Student's t, and nearly as
    often as its nominal 95 %.
    """
    random = np.random.default_rng(7)
    truth = np.exp(sigma**2 / 2)
    samples = random.lognormal(0, sigma, (1000, 360))
    covered = sum(found.low <= truth <= found.high for found in map(mean, samples))
    reach = 1.9666 * samples.std(axis=1, ddof=1) / np.sqrt(360)
    assert covered >= max(least, int(np.sum(np.abs(samples.mean(axis=1) - truth) <= reach)))


def test_the_interval_of_a_symmetric_mean_is_students() -> None:
    """Without skewness nothing is corrected; equal values have no spread; one value has no
    interval.
    """
    found = mean([-1.0, -0.5, 0.5, 1.0])
    reach = 3.182446 * np.std([-1, -0.5, 0.5, 1], ddof=1) / 2
    assert (found.low, found.high) == pytest.approx((-reach, reach))
    assert mean([2.0, 2.0, 2.0]) == (2, 2, 2, 3)
    assert mean([2.0]) == (2, -np.inf, np.inf, 1)


def test_a_share_has_wilsons_interval() -> None:
    """None right of 10 may still be up to 27.8 % (Wilson 1927); all right mirrors it."""
    assert share([False] * 10) == (0, 0, pytest.approx(27.75, abs=0.01), 10)
    assert share([True] * 10) == (100, pytest.approx(72.25, abs=0.01), 100, 10)


@pytest.mark.parametrize("sides", [([], []), ([True], [True, False])])
def test_what_cannot_be_compared(sides: tuple[list[bool], list[bool]]) -> None:
    """No images, or other images, are refused."""
    with pytest.raises(ValueError, match="the same images"):
        accuracy_drop(*sides)
    with pytest.raises(ValueError, match="at least one value"):
        mean([])
    with pytest.raises(ValueError, match="all finite"):
        mean([1.0, np.nan])


def test_a_floor_is_a_number_of_points() -> None:
    """A floor below 0 is refused; a wider floor calls more the same."""
    with pytest.raises(ValueError, match="not a finite number of at least 0"):
        interval_verdict(0.3, 0.7, -1)
    verdicts = [interval_verdict(0.3, 0.7, floor) for floor in (0.2, 0.3, 0.5, 0.7)]
    assert verdicts == ["worse", "unclear", "unclear", "same"]


def evaluation(
    ranks: Sequence[Sequence[int]], margins: Sequence[Sequence[float]], kl: Sequence[float]
) -> Predictions:
    """One arm for each row; KL of arm 1 against arm 0."""
    images = len(ranks[0])
    labels = pack([0] * images, "i2")
    arms = tuple(
        ArmImages(arm=arm, predicted=labels, rank=pack(rank, "i2"), margin=pack(margin, "f4"))
        for arm, (rank, margin) in enumerate(zip(ranks, margins, strict=True))
    )
    pairs = (PairImages(baseline=0, arm=1, kl=pack(kl, "f4")),)
    known = {"labels": labels, "listing": "ab", "arms": arms, "pairs": pairs}
    return Predictions(images=images, classes=10, **known)


def test_any_two_arms_of_an_evaluation_can_be_compared() -> None:
    """Also two that were not requested as a pair, whose KL alone is then not known."""
    seen = evaluation(
        [[0, 0, 4, 5], [0, 1, 4, -1], [0, 0, 0, 0]],
        [[1, 2, -1, -3], [1, -2, -1, np.nan], [4, 4, 4, 4]],
        [0, 1, 0.5, 0],
    )
    pair = compare_predictions(seen, 0, 1)
    assert (pair.images, pair.top5_baseline, pair.top5) == (4, 75, 75)
    assert (pair.top1_baseline.value, pair.top1.value) == (50, 25)
    assert (pair.drop.value, pair.drop.lost, pair.drop.gained) == (25, 1, 0)
    assert pair.kl is not None
    assert pair.kl.value == pytest.approx(0.375)
    assert pair.margin_change is not None
    assert (pair.margin_change.value, pair.margin_change.n) == (pytest.approx(-4 / 3), 3)
    assert pair.margin_change_p05 == pytest.approx(np.quantile([0, -4, 0], 0.05))
    other = compare_predictions(seen, 1, 2)
    assert (other.drop.value, other.kl, other.verdict()) == (-75, None, "unclear")
    with pytest.raises(ValueError, match=r"holds arms \[0, 1, 2\], not 3"):
        compare_predictions(seen, 0, 3)


def test_an_evaluation_that_contradicts_itself() -> None:
    """An array that lacks images, or is none, is named."""
    fine = evaluation([[0, 1]], [[1, 1]], [0, 0])
    assert predictions_problem(fine) is None
    arm = fine.arms[0]
    short = arm.model_copy(update={"margin": pack([1], "f4")})
    broken = arm.model_copy(update={"rank": "AAA="})
    for update, problem in (
        ({"images": 3}, "labels has 2 values for 3 images"),
        ({"arms": (short,)}, "margin of arm 0 has 1 values for 2 images"),
        ({"arms": (broken,)}, "rank of arm 0 has 1 values for 2 images"),
        ({"images": 0, "labels": "", "arms": (), "pairs": ()}, "it holds no images"),
    ):
        assert predictions_problem(fine.model_copy(update=update)) == problem
