"""Ratio of mean times: by hand, seldom called different on outliers of both sides, found where an
arm is uneven.
"""

from math import exp, inf, log

import numpy as np
import pytest

from sweeps.stats.pooling import SpeedUp, mean_contrast, mean_disagrees, within_process
from sweeps.stats.timing import Rounds

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


@pytest.mark.parametrize(("rounds", "truth"), [(40, 0.0), (120, 0.1)])
def test_outliers_of_both_sides_are_no_disagreement(rounds: int, truth: float) -> None:
    """Of 400 comparisons with 5 % of all times 3 times as long, fewer than 1 of 100 are called
    different.
    """
    random = np.random.default_rng(1)
    wrong = 0
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
    for _ in range(100):
        times = drifting(random, 100)
        times[:, 1] *= np.where(random.random(100) < 0.7, 1 / 1.08, 2)
        called, ratio, found = disagrees(times)
        assert called
        assert ratio < 0.95
        assert found.value > 1
