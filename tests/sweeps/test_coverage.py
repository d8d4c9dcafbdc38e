"""Coverage: on simulated times whose truth is known, intervals hold it at their level, and verdicts are seldom wrong."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from sweeps.stats.timing import MIN_PAIRS, Estimate, plateau, pooled_speedup, speedup, verdict

Array = NDArray[np.float64]


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


def noise(rng: np.random.Generator, *shape: int, sd: float = 0.01) -> Array:
    """Log noise of one sample: normal, and in 2 % of samples a spike of up to 50 %."""
    spikes = (rng.random(shape) < 0.02) * rng.uniform(0.1, 0.4, shape)
    return np.asarray(rng.normal(0, sd, shape) + spikes)


def drifting(rng: np.random.Generator, runs: int, samples: int) -> Array:
    """Times around 1 s whose logs drift (AR(1), rho 0.995, sd 3 %) beneath the noise, shape [runs, samples]."""
    steps = rng.normal(0, 0.03 * np.sqrt(1 - 0.995**2), (runs, samples))
    steps[:, 0] = rng.normal(0, 0.03, runs)
    drift = lfilter([1.0], [1.0, -0.995], steps, axis=1)
    return np.asarray(np.exp(drift + noise(rng, runs, samples)))


def test_pairs_cover_the_truth_under_drift_and_one_after_the_other_does_not() -> None:
    """Under drift the paired interval holds its 95 %; timing one arm after the other covers less than half the time."""
    rng = np.random.default_rng(1)
    runs, pairs, truth = 800, 100, 1.05
    samples = drifting(rng, runs, 2 * pairs)
    first = rng.random((runs, pairs)) < 0.5
    early, late = samples[:, 0::2], samples[:, 1::2]
    baseline, arm = np.where(first, early, late) * truth, np.where(first, late, early)
    interleaved = np.mean([covers(speedup(b, a), truth) for b, a in zip(baseline, arm, strict=True)])
    assert interleaved >= 0.93

    apart = [speedup(row[:pairs] * truth, row[pairs:]) for row in samples]
    assert np.mean([covers(estimate, truth) for estimate in apart]) < 0.5


def test_equal_arms_are_hardly_ever_told_apart() -> None:
    """A/A data under drift yields `faster` or `slower` in at most 1 of 200 runs, though no interval is needlessly wide."""
    samples = drifting(np.random.default_rng(2), 1000, 200)
    words = [verdict(speedup(row[0::2], row[1::2])) for row in samples]
    assert sum(word in ("faster", "slower") for word in words) <= 5
    assert words.count("same") >= 900


@pytest.mark.parametrize("pairs", [MIN_PAIRS, 100])
def test_a_slowdown_of_5_percent_is_found(pairs: int) -> None:
    """An arm slowed by 5 % is called slower in at least 99 of 100 runs, even with the fewest pairs."""
    samples = drifting(np.random.default_rng(3), 500, 2 * pairs)
    words = [verdict(speedup(row[0::2], row[1::2] * 1.05)) for row in samples]
    assert words.count("slower") >= 495


def test_a_small_difference_in_much_noise_is_unclear() -> None:
    """With 10 % noise and 30 pairs a true 1 % is not detectable, and the verdict is unclear."""
    rng = np.random.default_rng(4)
    logs = noise(rng, 400, 2, 30, sd=0.1)
    words = [verdict(speedup(np.exp(baseline + 0.01), np.exp(arm))) for baseline, arm in logs]
    assert words.count("unclear") >= 375


@pytest.mark.parametrize("sd", [0.01, 0.02, 0.03, 0.04, 0.06])
def test_stopping_on_width_keeps_the_coverage(sd: float) -> None:
    """Looking every 10 pairs from 30 to 300 and stopping at a half-width of 1 % still covers in 93 of 100 runs."""
    logs = noise(np.random.default_rng(5), 1000, 2, 300, sd=sd)
    covered = 0
    for baseline, arm in np.exp(logs):
        looks = (speedup(baseline[:pairs], arm[:pairs]) for pairs in range(30, 301, 10))
        estimate = next((look for look in looks if look.half_width <= 0.01), speedup(baseline, arm))
        covered += covers(estimate, 1.0)
    assert covered >= 930


def rounds_of(rng: np.random.Generator, rounds: int, between: float) -> list[tuple[Array, Array]]:
    """Rounds of 50 pairs around a speed-up of 1 whose own speed-ups differ by `between` (a standard deviation of logs)."""
    effects = rng.normal(0, between, (rounds, 1))
    baseline, arm = np.exp(noise(rng, rounds, 50) + effects), np.exp(noise(rng, rounds, 50))
    return list(zip(baseline, arm, strict=True))


@pytest.mark.parametrize("between", [0.0, 0.002, 0.004, 0.02])
@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_pooled_rounds_cover_the_truth(rounds: int, between: float) -> None:
    """Whether rounds differ not at all or by several times their own interval, three or more of them cover in 93 of 100 runs."""
    rng = np.random.default_rng(6)
    assert sum(covers(pooled_speedup(rounds_of(rng, rounds, between)), 1.0) for _ in range(500)) >= 465


def test_two_rounds_cover_while_they_differ_little() -> None:
    """Two rounds that differ by as much as each is uncertain still cover in 93 of 100 runs."""
    rng = np.random.default_rng(7)
    assert sum(covers(pooled_speedup(rounds_of(rng, 2, 0.0025)), 1.0) for _ in range(1000)) >= 930


@pytest.mark.parametrize("between", [0.0, 0.004, 0.02])
@pytest.mark.parametrize("cut", [(1, 50, 50, 50), (8, 50, 12, 50, 50), (25, 50, 50, 30)])
def test_attempts_that_were_cut_short_do_not_spoil_the_interval(cut: tuple[int, ...], between: float) -> None:
    """Three or more whole attempts beside others of a few pairs cover like whole ones alone, and are hardly wider."""
    rng = np.random.default_rng(11)
    covered, wider = 0, []
    for _ in range(500):
        whole_rounds = zip(cut, rounds_of(rng, len(cut), between), strict=True)
        rounds = [(baseline[:pairs], arm[:pairs]) for pairs, (baseline, arm) in whole_rounds]
        estimate = pooled_speedup(rounds)
        covered += covers(estimate, 1.0)
        whole = pooled_speedup([each for each in rounds if len(each[0]) == 50])
        wider.append(estimate.half_width / whole.half_width)
    assert covered >= 465
    assert np.median(wider) < 1.2


def test_throwing_all_pairs_together_would_not_cover() -> None:
    """The rounds above need their own rule: as one heap of pairs they would cover in fewer than half of the runs."""
    rng = np.random.default_rng(8)
    heaps = [np.concatenate(rounds_of(rng, 3, 0.02), axis=1) for _ in range(300)]
    assert sum(covers(speedup(*heap), 1.0) for heap in heaps) < 150


def test_rounds_that_agree_narrow_the_interval_and_rounds_that_differ_widen_it() -> None:
    """Five rounds that agree give a narrower interval than one of them; the same rounds, shifted apart, a wider one."""
    rounds = rounds_of(np.random.default_rng(9), 5, 0.0)
    alike = pooled_speedup(rounds)
    apart = pooled_speedup([(baseline * (1 + 0.03 * i), arm) for i, (baseline, arm) in enumerate(rounds)])
    assert alike.n == 250
    assert alike.half_width < speedup(*rounds[0]).half_width < apart.half_width


def test_one_round_is_a_plain_speedup_and_none_is_an_error() -> None:
    """A single round has no spread between rounds; no round has no answer."""
    (only,) = rounds_of(np.random.default_rng(10), 1, 0.0)
    assert pooled_speedup([only]) == speedup(*only)
    with pytest.raises(ValueError, match="at least one"):
        pooled_speedup([])


def test_noisy_comparisons_of_equal_arms_make_no_claim() -> None:
    """With 10 % noise, where the floor is no help, at most 1 of 100 A/A pairs is called different, where 95 % gives 1 of 50."""
    noisy = np.exp(np.random.default_rng(6).normal(0, 0.1, (2000, 2, 30)))
    found = [speedup(*row) for row in noisy]
    assert sum(verdict(estimate) in ("faster", "slower") for estimate in found) <= 20
    assert sum(estimate.low > 1.01 or estimate.high < 1 / 1.01 for estimate in found) >= 40


def looks(rng: np.random.Generator, sd: Array) -> list[float]:
    ratios = np.exp(rng.normal(0, sd))
    return [speedup(ratios[:pairs], np.ones(pairs)).half_width for pairs in range(30, 301, 10)]


def test_steady_noise_rarely_looks_like_a_plateau_and_growing_noise_does() -> None:
    """Normal noise ends early in at most 15 of 100 runs; noise that grows with the pairs ends early in at least 85."""
    rng = np.random.default_rng(12)
    normal, growing = np.full(300, 0.05), np.linspace(0.01, 0.31, 300)
    early = [
        sum(any(plateau(widths[:n]) for n in range(len(widths))) for widths in (looks(rng, sd) for _ in range(100)))
        for sd in [normal, growing]
    ]
    assert early[0] <= 15
    assert early[1] >= 85
