"""Statistics against exact binomial sums, by their symmetries, and by hand; `test_coverage.py` has the simulated truth."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.stats.timing import (
    DEFAULT_FLOOR,
    MIN_PAIRS,
    Estimate,
    Verdict,
    median,
    outliers,
    plateau,
    pooled_speedup,
    speedup,
    steady,
    verdict,
)

TIMES = st.lists(st.tuples(st.floats(1e-4, 10), st.floats(1e-4, 10)), min_size=6, max_size=60)


def test_speedup_of_constant_times_is_their_ratio() -> None:
    """An arm that takes half the time has a speed-up of exactly 2, without spread."""
    assert speedup([0.4] * 30, [0.2] * 30) == pytest.approx((2.0, 2.0, 2.0, 30))


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (10, 2), (20, 6), (30, 10), (50, 18), (100, 40)])
def test_interval_uses_the_tabulated_ranks(n: int, rank: int) -> None:
    """The interval of the median runs between the order statistics that textbooks tabulate for 95 %."""
    samples = np.arange(1.0, n + 1)
    assert median(samples) == Estimate((n + 1) / 2, rank, n + 1 - rank, n)


@pytest.mark.parametrize("n", range(6, 301, 7))
def test_interval_is_the_narrowest_that_covers_95_percent(n: int) -> None:
    """By exact binomial sums the chosen ranks cover at least 95 %, and the next narrower ones do not."""
    rank = int(median(np.arange(1.0, n + 1)).low)
    tail = [sum(comb(n, i) for i in range(k)) / 2**n for k in (rank, rank + 1)]
    assert 1 - 2 * tail[0] >= 0.95 > 1 - 2 * tail[1]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_too_few_values_have_no_interval(n: int) -> None:
    """Below 6 values every interval reaches from 0 to infinity, and no verdict is given."""
    times = np.linspace(1, 2, n)
    for estimate in (median(times), speedup(times, times), pooled_speedup([(times, times)])):
        assert (estimate.low, estimate.high, estimate.n) == (0, np.inf, n)
    assert verdict(speedup(times, times)) == "unclear"


@given(TIMES, st.floats(0.01, 100))
def test_speedup_knows_no_unit_and_no_order(times: list[tuple[float, float]], unit: float) -> None:
    """Changing the unit of time or the order of the pairs changes nothing."""
    baseline, arm = np.array(times).T
    expected = pytest.approx(speedup(baseline, arm))
    assert speedup(baseline * unit, arm * unit) == expected
    assert speedup(baseline[::-1], arm[::-1]) == expected


@given(TIMES)
def test_swapping_the_sides_inverts_the_speedup(times: list[tuple[float, float]]) -> None:
    """The speed-up of the baseline over the arm is the inverse, and so is its interval."""
    baseline, arm = np.array(times).T
    there, back = speedup(baseline, arm), speedup(arm, baseline)
    assert (1 / there.value, 1 / there.high, 1 / there.low) == pytest.approx(back[:3])
    assert there.low <= there.value <= there.high


@given(TIMES, st.lists(st.floats(0.1, 10), min_size=60, max_size=60))
def test_what_a_pair_shares_cancels(times: list[tuple[float, float]], shared: list[float]) -> None:
    """A slowness that hits both halves of a pair alike leaves the speed-up unchanged."""
    baseline, arm = np.array(times).T
    slow = np.array(shared[: len(times)])
    assert speedup(baseline * slow, arm * slow) == pytest.approx(speedup(baseline, arm))


@pytest.mark.parametrize(
    ("baseline", "arm", "message"),
    [
        ([1.0] * 3, [1.0] * 2, "3 baseline and 2 arm"),
        ([1.0, 0.0, -1.0], [1.0] * 3, "baseline: 2 of 3"),
        ([1.0] * 2, [1.0, float("nan")], "arm: 1 of 2"),
        ([1.0] * 2, [1.0, float("inf")], "arm: 1 of 2"),
        ([], [], r"at least one time in seconds, got shape \(0,\)"),
        ([[1.0]], [1.0], r"shape \(1, 1\)"),
    ],
)
def test_bad_times_are_refused_with_counts(baseline: list[float], arm: list[float], message: str) -> None:
    """Times that cannot be times, or that do not pair up, are errors with their number."""
    with pytest.raises(ValueError, match=message):
        speedup(baseline, arm)
    with pytest.raises(ValueError, match=message):
        pooled_speedup([([1.0], [1.0]), (baseline, arm)])


def test_rounds_without_any_spread_pool_to_their_ratio() -> None:
    """Equal constant rounds give an interval of no width that still holds its value, whatever the rounding."""
    for ratio in (0.1, 0.7, 1.1, 3.0):
        pooled = pooled_speedup([([ratio] * 10, [1.0] * 10)] * 3)
        assert pooled.low <= pooled.value <= pooled.high
        assert pooled[:3] == pytest.approx((ratio, ratio, ratio))


@given(st.lists(TIMES, min_size=2, max_size=4))
def test_a_pooled_interval_holds_its_value(rounds: list[list[tuple[float, float]]]) -> None:
    """However wild the rounds, the pooled value lies in its interval, and swapping the sides inverts both."""
    sides = [tuple(np.array(times).T) for times in rounds]
    there, back = pooled_speedup(sides), pooled_speedup([(arm, baseline) for baseline, arm in sides])
    assert there.low <= there.value <= there.high
    assert there.value * back.value == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)


@pytest.mark.parametrize(
    ("low", "value", "high", "pairs", "expected"),
    [
        (1.05, 1.1, 1.15, 30, "faster"),
        (1.03, 1.1, 1.15, 30, "unclear"),
        (1.011, 1.011, 1.2, 30, "faster"),
        (1.009, 1.009, 1.2, 30, "unclear"),
        (0.8, 0.9, 0.95, 30, "slower"),
        (0.8, 0.9, 0.97, 30, "unclear"),
        (0.995, 1.0, 1.005, 30, "same"),
        (0.991, 1.0, 1.009, 30, "same"),
        (0.95, 1.0, 1.05, 30, "unclear"),
        (1.5, 1.55, 1.6, MIN_PAIRS - 1, "unclear"),
        (0.999, 1.0, 1.001, MIN_PAIRS - 1, "unclear"),
        (0.0, 2.0, np.inf, 1000, "unclear"),
    ],
)
def test_verdicts_follow_from_the_interval(low: float, value: float, high: float, pairs: int, expected: Verdict) -> None:
    """A claim needs an interval that clears 1 by the floor of 1 % even when stretched by half; `same` one inside the floor."""
    assert verdict(Estimate(value, low, high, pairs)) == expected


def test_fewer_pairs_than_asked_are_insufficient() -> None:
    """What was cut short is `insufficient` however narrow; enough pairs, though fewer than any claim needs, are `unclear`."""
    assert verdict(Estimate(1.5, 1.49, 1.51, 99), pairs_min=100) == "insufficient"
    assert verdict(Estimate(1.5, 1.49, 1.51, 100), pairs_min=100) == "faster"
    assert verdict(Estimate(1.5, 1.49, 1.51, 10), pairs_min=10) == "unclear"


def test_pooled_rounds_weigh_by_their_pairs() -> None:
    """The value is the mean of the rounds' medians by pairs; a round of a few pairs joins another one instead of being one."""

    def ratios(ratio: float, pairs: int) -> tuple[list[float], list[float]]:
        return [ratio] * pairs, [1.0] * pairs

    assert pooled_speedup([ratios(np.e, 40), ratios(1.0, 20)]).value == pytest.approx(np.exp(2 / 3))
    assert pooled_speedup([ratios(1.1, 40), ratios(9.0, 1)]) == speedup([1.1] * 40 + [9.0], [1.0] * 41)
    assert pooled_speedup([ratios(1.1, 1)] * 30).n == 30
    assert pooled_speedup([ratios(2.0, 3), ratios(1.1, 40), ratios(1.1, 40), ratios(2.0, 17)]).n == 100


def test_a_higher_floor_gives_fewer_verdicts() -> None:
    """What is faster by 3 % is no difference on a device that is noisy by 5 %; a floor below 0 is refused."""
    estimate = Estimate(1.03, 1.025, 1.035, 100)
    assert [verdict(estimate, floor) for floor in (0.0, DEFAULT_FLOOR, 0.03, 0.05)] == ["faster", "faster", "unclear", "same"]
    with pytest.raises(ValueError, match=r"-0\.01 is not a share"):
        verdict(estimate, -0.01)


def test_half_width_is_the_longer_side() -> None:
    """An asymmetric interval counts with its longer side, as a share of the value."""
    assert Estimate(2.0, 1.9, 2.3, 30).half_width == pytest.approx(0.15)
    assert Estimate(2.0, 0.0, np.inf, 3).half_width == np.inf


def test_outliers_are_spikes_on_either_side() -> None:
    """A slow and a fast spike are flagged, normal noise hardly ever, and every sample keeps its place."""
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
    """Two blocks without a gain of 2 % on the best before them end the warm-up; slow gains, or a slow block before, do not."""
    assert steady(medians) is expected


def test_a_plateau_is_an_interval_that_stops_narrowing() -> None:
    """A constant width is a plateau from the eighth look on, a width falling with the root of the pairs never is."""
    assert [plateau([0.02] * n) for n in (0, 1, 7, 8, 20)] == [False, False, False, True, True]
    assert not any(plateau([1 / n**0.5 for n in range(3, last)]) for last in range(4, 40))
    assert not plateau([np.inf] * 4 + [0.1] * 4)
