"""Checks of noise on simulated rounds: right where there is none, and alarmed where something is
wrong.
"""

from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from sweeps.stats.noise_checks import difference_p, halves, no_effect_p, outlying, pair_logs, signs
from sweeps.stats.timing import Contrast, Rounds

ARMS = (0, 1, 0)


def rounds(
    rng: np.random.Generator, count: int, effect: float, noise: float = 0.02
) -> NDArray[np.float64]:
    """Times of a baseline in columns 0 and 2 and of an arm that is exp(`effect`) times as fast,
    with drift in common.
    """
    drift = np.cumsum(rng.normal(0, 0.01, count))[:, None]
    return np.asarray(
        0.01 * np.exp(np.array([0, -effect, 0]) + drift + rng.normal(0, noise, (count, 3)))
    )


def test_pairs_are_the_contrast_of_their_round() -> None:
    """The mean of the baseline's logarithms less that of the arm."""
    found = pair_logs([[2.0, 1.0, 8.0], [1.0, 1.0, 1.0]], ARMS, 0, 1)
    assert found == pytest.approx([np.log(4.0), 0.0])


def test_halves_agree_unless_the_effect_changes() -> None:
    """P is small in about one of 20 at 5 % where nothing changes, and nearly always where the arm
    becomes 6 % slower.
    """
    rng, alarms, found = np.random.default_rng(1), 0, 0
    for _ in range(200):
        steady, changed = rounds(rng, 60, 0.1), rounds(rng, 60, 0.1)
        changed[30:, 1] *= 1.06
        same, different = halves(steady, ARMS, 0, 1).p, halves(changed, ARMS, 0, 1).p
        assert same is not None
        assert different is not None
        alarms += same < 0.05
        found += different < 0.05
    assert alarms <= 22
    assert found >= 190


def test_few_rounds_have_no_probability() -> None:
    """Without a standard error there is none."""
    assert halves(rounds(np.random.default_rng(2), 6, 0.1), ARMS, 0, 1).p is None
    assert no_effect_p(Contrast(0.1, float("inf"), 1.0)) is None
    assert difference_p(Contrast(0.1, 0.0, 9), Contrast(0.1, 0.0, 9)) is None


def test_equal_columns_are_unusual_as_often_as_stated() -> None:
    """P of the baseline against itself is below 5 % in about one of 20."""
    rng = np.random.default_rng(3)
    found = [
        no_effect_p(null)
        for _ in range(200)
        if (null := Rounds(rounds(rng, 60, 0.1), ARMS).null(0)) is not None
    ]
    assert sum(p is not None and p < 0.05 for p in found) <= 22


def test_signs_are_a_coin_toss_without_an_effect() -> None:
    """60 of 100 heads are no surprise, 70 are one, and ties do not count."""
    assert signs([0.1] * 50 + [-0.1] * 50 + [0.0]) == (50, 50, 1.0)
    assert signs([0.1] * 70 + [-0.1] * 30).p < 1e-3
    assert signs([]).p == 1.0


def test_outliers_are_marked_by_their_distance() -> None:
    """One pair far away from all others is marked, on either side."""
    logs = np.random.default_rng(4).normal(0, 0.01, 50)
    logs[7], logs[9] = 1.0, -1.0
    assert list(np.flatnonzero(outlying(logs))) == [7, 9]
    assert exp(logs[7]) > 2
