"""Statistics of one arm's times against exact binomial sums and by hand."""

from math import comb, exp, inf, log

import numpy as np
import pytest

from sweeps.stats.pooling import SpeedUp, mean_contrast, mean_disagrees, within_process
from sweeps.stats.timing import Estimate, Rounds, median, outliers, steady


def test_interval_is_the_narrowest_that_covers_95_percent() -> None:
    """By exact binomial sums the chosen ranks cover at least 95 %, and the next narrower ones do
    not; below 6 values every interval reaches from 0 to infinity.
    """
    for n in range(6, 301, 7):
        found = median(np.arange(1.0, n + 1))
        rank = int(found.low)
        assert found == Estimate((n + 1) / 2, rank, n + 1 - rank, n)
        tail = [sum(comb(n, i) for i in range(k)) / 2**n for k in (rank, rank + 1)]
        assert 1 - 2 * tail[0] >= 0.95 > 1 - 2 * tail[1]
    assert median(np.linspace(1, 2, 5))[1:] == (0, np.inf, 5)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1.0, 0.0, -1.0], "samples: 2 of 3"),
        ([1.0, float("nan")], "samples: 1 of 2"),
        ([], r"at least one time in seconds, got shape \(0,\)"),
        ([[1.0]], r"shape \(1, 1\)"),
    ],
)
def test_bad_times_are_refused_with_counts(times: list[float], message: str) -> None:
    """Times that cannot be times are errors that name how many."""
    with pytest.raises(ValueError, match=message):
        median(times)


def test_half_width_is_the_longer_side() -> None:
    """An asymmetric interval counts with its longer side, as a share of the value."""
    assert Estimate(2.0, 1.9, 2.3, 30).half_width == pytest.approx(0.15)
    assert Estimate(2.0, 0.0, np.inf, 3).half_width == np.inf


def test_outliers_are_spikes_on_either_side() -> None:
    """A slow and a fast spike are flagged, normal noise hardly ever, and every sample keeps its
    place.
    """
    times = np.exp(np.random.default_rng(11).normal(0, 0.01, 1000))
    times[[17, 400]] = 2.0, 0.5
    flags = outliers(times)
    assert flags.shape == times.shape
    assert flags[17]
    assert flags[400]
    assert flags.sum() <= 3


@pytest.mark.parametrize(
    ("medians", "expected"),
    [
        ([], False),
        ([1.0], False),
        ([1.0, 1.0], False),
        ([1.0, 1.0, 1.0], True),
        ([2.0, 1.5, 1.2, 1.1], False),
        ([2.0, 1.0, 1.0], False),
        ([2.0, 1.0, 1.0, 0.99], True),
        ([1.0, 0.985, 0.97], False),
        ([1.0, 1.3, 1.0], True),
        ([1.0, 1.1, 1.2], True),
    ],
)
def test_warm_up_ends_when_blocks_stop_improving(medians: list[float], expected: bool) -> None:
    """Two blocks without a gain of 2 % on the best before them end the warm-up; slow gains, or a
    slow block before, do not.
    """
    assert steady(medians) is expected


# ---- ratio of mean times ----


COLUMNS = (0, 1, 2, 3, 0)
"""Arms of the columns; the baseline has two."""


def disagrees(times: np.ndarray) -> tuple[bool, float, SpeedUp]:
    """Whether the mean of arm 1 is called different, its ratio, and the robust speed-up."""
    found = within_process(Rounds(times, COLUMNS).contrast(0, 1), len(times))
    mean = mean_contrast([(times[:, [0, 4]], times[:, [1]])])
    return mean_disagrees(mean, found), exp(mean.effect), found


def drifting(random: np.random.Generator, rounds: int) -> np.ndarray:
    return np.asarray(
        np.exp(
            np.cumsum(random.normal(0, 0.01, rounds))[:, None] + random.normal(0, 0.05, (rounds, 5))
        )
    )


def test_the_ratio_of_means_by_hand() -> None:
    """All rounds count alike, whatever attempt they are of; few rounds have no error."""
    found = mean_contrast([([[2.0, 4.0], [3.0, 3.0]], [[1.0], [1.0]]), ([[6.0]], [[4.0]])])
    assert (found.effect, found.se) == (pytest.approx(log(12 / 6)), inf)
    assert not mean_disagrees(found, SpeedUp(0.0, 0.001, 9.0, 3))


def test_outliers_of_both_sides_are_no_disagreement() -> None:
    """Of 400 comparisons with 5 % of all times 3 times as long, fewer than 1 of 100 are called
    different.
    """
    random = np.random.default_rng(1)
    wrong, rounds, truth = 0, 40, 0.1
    for _ in range(400):
        times = drifting(random, rounds) * np.where(random.random((rounds, 5)) < 0.05, 3, 1)
        times[:, 1] *= exp(-truth)
        wrong += disagrees(times)[0]
    assert wrong / 400 < 0.01


def test_an_uneven_arm_is_found() -> None:
    """8 % faster in 70 % of its forwards and twice as slow in 30 %: `faster` in a typical forward,
    and slower in the mean.
    """
    random = np.random.default_rng(2)
    for _ in range(50):
        times = drifting(random, 100)
        times[:, 1] *= np.where(random.random(100) < 0.7, 1 / 1.08, 2)
        called, ratio, found = disagrees(times)
        assert called
        assert ratio < 0.95
        assert found.value > 1
