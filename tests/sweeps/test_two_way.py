"""The two-way estimate: exact where there is no noise, of full coverage on simulated noise, and
better than the paired median.
"""

import numpy as np
import pytest

from sweeps.stats.evidence import no_effect_p
from sweeps.stats.pooling import quantile, within_process
from sweeps.stats.timing import Contrast, Rounds
from tests.fixtures.timing_noise import autoregressive, simulated_rounds

LOGS = np.log([0.020, 0.018, 0.016, 0.025, 0.020])
ARMS = [0, 1, 2, 3, 0]
"""The first arm has two columns."""


def test_times_without_noise_give_their_ratio() -> None:
    """What slows a whole round cancels: the contrast is the logarithm of the ratio, with no
    error.
    """
    slowness = np.linspace(1, 3, 40)[:, None]
    found = Rounds(slowness * [0.4, 0.2, 0.1], range(3)).contrast(0, 1)
    assert found.effect == pytest.approx(np.log(2))
    assert found.se == pytest.approx(0, abs=1e-9)


def test_a_contrast_has_the_opposite_sign_when_its_sides_are_swapped() -> None:
    """Baseline over arm and arm over baseline are inverses with the same error."""
    rounds = Rounds(simulated_rounds(np.random.default_rng(0), "drift", LOGS, 60), ARMS)
    there, back = rounds.contrast(0, 2), rounds.contrast(2, 0)
    assert there.effect == pytest.approx(-back.effect)
    assert there.se == pytest.approx(back.se)
    assert -there == Contrast(-there.effect, there.se, there.freedom)


def test_slow_rounds_and_slow_samples_have_no_weight() -> None:
    """A tenth of the rounds ten times as slow, and a tenth of one column's samples too, move the
    contrast by less than 0.2 %.
    """
    seconds = np.exp(np.random.default_rng(1).normal(0, 0.005, (100, 4)))
    before = Rounds(seconds, range(4)).contrast(0, 1)
    seconds[::10] *= 10
    seconds[5::10, 1] *= 10
    after = Rounds(seconds, range(4)).contrast(0, 1)
    assert after.effect == pytest.approx(before.effect, abs=0.002)
    assert after.se < 2 * before.se


@pytest.mark.parametrize("rounds", [1, 14, 15])
def test_few_rounds_have_a_contrast_without_an_error(rounds: int) -> None:
    """Below 15 rounds (5 groups in the jackknife) the standard error is infinite, and there is no
    interval; from 15 on there is.
    """
    times = [0.2, 0.1] * np.exp(np.random.default_rng(0).normal(0, 0.001, (rounds, 2)))
    found = Rounds(times, [0, 1]).contrast(0, 1)
    assert found.effect == pytest.approx(np.log(2), abs=0.01)
    assert (found.se < np.inf) == (rounds == 15)
    assert Rounds(times, [0, 1]).null(0) is None
    assert (within_process(found, rounds).half_width < np.inf) == (rounds == 15)


@pytest.mark.parametrize(
    "seconds", [[], [[]], [0.1, 0.2], [[0.1, 0.0]], [[0.1, np.nan]], [[0.1, np.inf]]]
)
def test_what_is_no_time_is_an_error(seconds: list[float]) -> None:
    """Times that are not positive and finite, or not in rounds, are refused."""
    with pytest.raises(ValueError, match=r"seconds|positive"):
        Rounds(seconds, [0, 1])


@pytest.mark.parametrize("noise", ["drift", "heavy_tails", "neighbour"])
def test_intervals_cover_and_beat_the_paired_median(noise: str) -> None:
    """On each noise intervals of 95 % cover in at least 93 of 100 runs, those of the baseline
    against itself too, and the variance is well below that of the median.
    """
    rng = np.random.default_rng(3)
    covered, nulls, errors, medians = [], [], [], []
    for _ in range(200):
        seconds = simulated_rounds(rng, noise, LOGS, 90)
        rounds = Rounds(seconds, ARMS)
        nulls.append((no_effect_p(rounds.null(0)) or 0) >= 0.05)
        for arm in (1, 2, 3):
            truth, found = LOGS[0] - LOGS[arm], rounds.contrast(0, arm)
            covered.append(abs(found.effect - truth) <= quantile(0.05, found.freedom) * found.se)
            errors.append(found.effect - truth)
            medians.append(np.median(np.log(seconds[:, 0] / seconds[:, arm])) - truth)
    assert np.mean(covered) >= 0.93
    assert np.mean(nulls) >= (0.93 if noise == "drift" else 0.92)
    assert np.var(medians) / np.var(errors) >= (1.1 if noise == "neighbour" else 1.5)


def test_correlated_differences_are_accounted_for() -> None:
    """Columns that wander each on its own, with a lag-1 correlation of 0.5, are covered in at least
    90 of 100 long runs.
    """
    rng = np.random.default_rng(4)
    covered = []
    for _ in range(60):
        logs = np.stack([autoregressive(rng, 300, 0.5, 0.05) for _ in LOGS], axis=1)
        found = Rounds(np.exp(logs), ARMS).contrast(0, 1)
        covered.append(abs(found.effect) <= quantile(0.05, found.freedom) * found.se)
    assert np.mean(covered) >= 0.9


@pytest.mark.parametrize(
    ("rounds", "slower", "lasting"), [(90, 0.2, 15), (30, 0.3, 30), (90, 0.05, 30)]
)
def test_arms_that_were_not_warm_have_wide_intervals_that_cover(
    rounds: int, slower: float, lasting: int
) -> None:
    """Arms that begin slower by up to `slower`, each by its own share, for `lasting` rounds: 95 %
    intervals cover 93 % or more.
    """
    rng, covered = np.random.default_rng(5), 0
    for _ in range(100):
        start = slower * rng.random(4)[ARMS] * np.exp(-np.arange(rounds)[:, None] / lasting)
        found = Rounds(
            simulated_rounds(rng, "quiet", LOGS, rounds) * np.exp(start),
            ARMS,
            warmup_converged=False,
        )
        for arm in (1, 2, 3):
            contrast = found.contrast(0, arm)
            truth = LOGS[0] - LOGS[arm]
            covered += (
                abs(contrast.effect - truth) <= quantile(0.05, contrast.freedom) * contrast.se
            )
    assert covered >= 0.93 * 300
