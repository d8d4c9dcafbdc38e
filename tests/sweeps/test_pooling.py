"""Pooled speed-ups: weights of processes, alpha spent over attempts, and verdicts that are seldom wrong."""

from math import log

import numpy as np
import pytest

from sweeps.metrics import SPEED_FLOOR
from sweeps.stats.pooling import ALPHA, PROCESS_SD, ProcessTerm, SpeedUp, Verdict, pool, pool_stepwise, quantile, ratio_verdict
from sweeps.stats.two_way import Contrast


def attempt(effect: float, se: float = 0.003, freedom: float = 29) -> Contrast:
    return Contrast(effect, se, freedom)


def test_one_process_has_its_own_error_and_what_differs_between_processes() -> None:
    """The standard error of one attempt is that of its rounds and of processes together."""
    found = pool([[attempt(0.1, 0.003)]], 90, [ProcessTerm(0.004)])
    assert (found.log, found.se) == pytest.approx((0.1, 0.005))
    assert found.low < 1 < found.high or found.value == pytest.approx(np.exp(0.1))


def test_a_precise_attempt_is_not_made_worse_by_a_poor_one() -> None:
    """30 pairs beside 300 narrow the interval a little, where equal weights would widen it."""
    good, poor = attempt(0.05, 0.002), attempt(0.09, 0.2)
    alone, both = pool([[good]], 300), pool([[good], [poor]], 330)
    assert both.se < alone.se
    assert both.log == pytest.approx(0.05, abs=0.001)


def test_attempts_of_one_process_share_its_bias() -> None:
    """Ten attempts of one process never become more certain than a process is."""
    one_process = pool([[attempt(0.05, 0.003)] * 10], 900)
    ten = pool([[attempt(0.05, 0.003)]] * 10, 900)
    assert one_process.se > PROCESS_SD > ten.se


def test_processes_that_differ_more_than_expected_widen_the_interval() -> None:
    """The standard error grows with the spread of processes that disagree."""
    agree = pool([[attempt(value)] for value in (0.050, 0.051, 0.049)], 270)
    differ = pool([[attempt(value)] for value in (0.00, 0.05, 0.10)], 270)
    assert differ.se > 3 * agree.se
    assert differ.log == pytest.approx(agree.log)


def test_a_second_run_that_differs_a_little_destroys_no_answer() -> None:
    """1.40 and 1.44 are clear alone and together, and are no disagreement; 1.40 and 1.70 are one."""
    runs = [[Contrast(log(value), 0.012, 24)] for value in (1.40, 1.44)]
    assert pool(runs, 120).verdict() == "faster"
    assert pool(runs, 120).half_width < pool(runs[:1], 60).half_width
    assert not pool_stepwise(runs, 120).disagree
    assert pool_stepwise([runs[0], [Contrast(log(1.70), 0.012, 24)]], 120).disagree


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_agreeing_runs_are_seldom_flagged(processes: int) -> None:
    """Runs that differ as the stated term assumes disagree in fewer than 5 of 1000 cases."""
    rng = np.random.default_rng(4)
    runs = rng.normal(0, np.hypot(0.003, PROCESS_SD), (1000, processes))
    assert sum(pool_stepwise([[Contrast(one, 0.003, 29)] for one in row], 90).disagree for row in runs) < 5


def test_alpha_is_spent_over_all_attempts() -> None:
    """The k-th look has 1 / (k (k + 1)) of it, which sums to less than all however many looks there are."""
    for looks in (1, 2, 5):
        found = SpeedUp(0.0, 0.01, 1e6, 100, looks)
        assert found.half_width == pytest.approx(0.01 * quantile(ALPHA / (looks * (looks + 1)), 1e6))
    assert sum(1 / (look * (look + 1)) for look in range(1, 10_000)) < 1


def test_the_verdict_follows_the_printed_interval() -> None:
    """Faster and slower exclude 1; same lies within the margin, and is preferred; too few pairs have no verdict."""
    se = 0.002
    width = SpeedUp(0.0, se, 1e6, 90).half_width
    for effect, verdict in ((0.03, "faster"), (-0.03, "slower"), (0.0, "same"), (width + 0.001, "same"), (SPEED_FLOOR, "faster")):
        found = SpeedUp(effect, se, 1e6, 90)
        assert found.verdict() == verdict
        if verdict != "same":
            assert not found.low <= 1 <= found.high
    assert SpeedUp(0.03, 0.02, 1e6, 90).verdict() == "unclear"
    assert SpeedUp(0.5, 0.001, 1e6, 10).verdict(pairs_min=30) == "insufficient"


def test_a_speed_up_without_an_error_has_no_interval() -> None:
    """A few rounds give a value, an interval from 0 to infinity, and no verdict."""
    found = pool([[Contrast(0.3, np.inf, 1.0)]], 3)
    assert (found.value, found.low, found.high, found.verdict()) == (pytest.approx(np.exp(0.3)), 0.0, np.inf, "unclear")
    with pytest.raises(ValueError, match="at least one"):
        pool([], 0)


@pytest.mark.parametrize("se", [0.002, 0.006, 0.02])
def test_equal_arms_measured_again_until_clear_are_seldom_called_different(se: float) -> None:
    """Requesting more until a verdict is there, ten times at most, is wrong in at most 1 of 100 comparisons."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(2000):
        attempts: list[list[Contrast]] = []
        for _ in range(10):
            own = se * np.sqrt(rng.chisquare(29) / 29)
            attempts.append([Contrast(rng.normal(0, np.hypot(se, 0.005)), own, 29)])
            verdict = pool(attempts, 90).verdict()
            if verdict != "unclear":
                break
        wrong += verdict in ("faster", "slower")
    assert wrong <= 20 + 3 * np.sqrt(20)


@pytest.mark.parametrize(("between", "processes"), [(0.0, 1), (0.005, 1), (0.005, 2), (0.005, 4), (0.01, 6), (0.02, 8)])
def test_intervals_cover_whatever_differs_between_processes(between: float, processes: int) -> None:
    """At 95 % pooled processes cover in 93 of 100 runs: one or two while they differ as assumed, six or more beyond that too."""
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(1000):
        own = 0.003 * np.sqrt(rng.chisquare(29, processes) / 29)
        found = pool([[Contrast(rng.normal(0, np.hypot(0.003, between)), se, 29)] for se in own], 90)
        covered += abs(found.log) <= quantile(0.05, found.freedom) * found.se
    assert covered >= 930


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.05, 1.15, "faster"),
        (1.0001, 1.2, "faster"),
        (1.0, 1.2, "unclear"),
        (0.8, 0.95, "slower"),
        (0.8, 1.0, "unclear"),
        (0.99, 1.01, "same"),
        (1.001, 1.02, "same"),
        (1 / 1.02, 0.999, "same"),
        (1.001, 1.021, "faster"),
        (0.95, 1.05, "unclear"),
        (0.0, np.inf, "unclear"),
    ],
)
def test_verdicts_follow_from_the_interval(low: float, high: float, expected: Verdict) -> None:
    """Faster and slower need an interval without 1, same one inside the margin; nothing else decides."""
    assert ratio_verdict(low, high) == expected


def test_a_wider_margin_calls_more_the_same() -> None:
    """What is faster by 2.5 to 3.5 % is no difference within a margin of 5 %."""
    assert [ratio_verdict(1.025, 1.035, floor) for floor in (0.0, 0.02, 0.03, 0.05)] == ["faster", "faster", "faster", "same"]


def test_an_interval_that_excludes_nothing_is_none() -> None:
    """One degree of freedom, or an error of a factor of 3, leave ends that no speed-up reaches: they are 0 and infinity."""
    for contrast in (Contrast(0.3, 0.1, 1.0), Contrast(0.3, 1.2, 29.0)):
        found = pool([[contrast]], 12)
        assert (found.low, found.high, found.half_width) == (0, np.inf, np.inf)
        assert found.verdict() == "unclear"
