"""Statements about noise and the lines of the rule: each number in them is that of the data."""

import re
from math import exp
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sweeps.model.flags import FLAGS, flags_of_attempts, quarantine_reasons, wrong
from sweeps.stats.evidence import (
    Halves,
    Signs,
    difference_p,
    halves,
    no_effect_p,
    outlying,
    pair_logs,
    signs,
)
from sweeps.stats.pooling import SpeedUp
from sweeps.stats.timing import Contrast
from sweeps.stats.visits import Pooling, Spread, Visit, VisitPart, pool_visits
from sweeps.text.evidence import (
    AttemptChecks,
    NoiseFinding,
    noise_findings,
    noise_in_words,
    rule_lines,
    verdict_reason,
)
from tests.fixtures.machine_states import plain_visit

CLEAR = Contrast(0.1, 0.003, 29)


def pooled(*runs: float, visits: int = 6, columns: int = 1) -> Pooling:
    """Runs of visits with so many columns of the baseline each, whose log speed-ups are about those
    given.
    """
    rng = np.random.default_rng(1)
    found = [
        plain_visit(rng, run, 10, 0.01, columns=columns) for run in runs for _ in range(visits)
    ]
    return pool_visits(found, [*range(visits)] * len(runs))


def made(log: float, se: float, freedom: float = 29.0) -> Pooling:
    """A pooling with these figures instead of measured ones."""
    one = Spread(se, freedom)
    part = VisitPart(log, 1.0)
    found = SpeedUp(log, se, freedom, 60)
    return Pooling(
        found, (part,), "quick", 60, False, one, one, one, 0.01, one, 1.0, None, (), None, None
    )


def checks(**changed: Any) -> AttemptChecks:
    """Of an attempt of 60 rounds that is beyond doubt, with changes."""
    null, same = (
        Contrast(0.001, 0.003, 29),
        Halves(Contrast(0.1, 0.004, 14), Contrast(0.101, 0.004, 14), 0.8),
    )
    quiet = {"cpu_mhz_min": 2000.0, "cpu_mhz_max": 2000.0}
    return AttemptChecks(7, null, same, Signs.of(58, 2), 0, 60, quiet)._replace(**changed)


def noisy(mean: Contrast = CLEAR, **changed: Any) -> set[str]:
    """The checks that raise a doubt after these changes."""
    found = noise_findings([checks(**changed)], pooled(0.1), mean, [(1.001, "same")])
    return {finding.check for finding in found if finding.noise}


def test_each_check_can_suggest_noise() -> None:
    """One change at a time is found by its own check alone, and without one nothing is; what is not
    known is no reason.
    """
    halves = Halves(Contrast(0.2, 0.004, 14), Contrast(0.0, 0.004, 14), 1e-6)
    for changed, check in (
        ({"null": Contrast(0.02, 0.003, 29)}, "Baseline against itself"),
        ({"null": Contrast(0.2, 0.3, 29)}, "Baseline against itself"),
        ({"halves": halves}, "Earlier and later half"),
        ({"signs": Signs.of(31, 29)}, "Sign of each pair"),
        ({"signs": Signs.of(2, 58)}, "Sign of each pair"),
        ({"outlying": 12}, "Outliers"),
        ({"mean": Contrast(-0.2, 0.02, 29)}, "Mean times"),
        ({"readings": {"foreign_cores": 0.5}}, "Readings of the machine"),
    ):
        assert noisy(**changed) == {check}
    assert noisy() == noisy(null=None, halves=None, readings={}) == set()
    found = noise_findings([checks()], pooled(0.1), CLEAR, [(1.001, "same")])
    assert noise_in_words(found) == f"None of {len(found)} checks raises a doubt."


def by_check(
    pooling: Pooling, *nulls: tuple[float, str], **changed: Any
) -> dict[str, NoiseFinding]:
    """All findings by their names."""
    found = noise_findings([checks(**changed)], pooling, CLEAR, nulls)
    return {finding.check: finding for finding in found}


def test_runs_that_disagree_and_a_machine_that_errs() -> None:
    """Runs on both sides of 1, and equal arms that were called faster."""
    found = by_check(pooled(0.15, -0.1, columns=2), (1.05, "faster"), (1.0, "same"))
    assert not found["Agreement of visits"].noise
    assert "with an SD of 0.48 % inside runs" in found["Agreement of visits"].statement
    assert found["Agreement of runs"].noise
    assert found["Null comparisons of the machine"].noise
    assert "1.000× to 1.050×; 1 called" in found["Null comparisons of the machine"].statement
    assert found["Interval"].noise
    agreeing = by_check(pooled(0.1, 0.1))
    assert not agreeing["Agreement of visits"].noise
    assert not agreeing["Agreement of runs"].noise


def test_equal_columns_of_visits_count_before_those_of_an_attempt() -> None:
    """Where the pooling has a null ratio, a clear one is a doubt, whatever the attempts alone
    show.
    """
    rng = np.random.default_rng(2)
    equal = [plain_visit(rng, 0.1, 10, 0.01, columns=2) for _ in range(6)]
    biased = [Visit(visit.baseline * (1, 1.03), visit.arm) for visit in equal]
    findings = [
        by_check(pool_visits(visits, range(6)), null=Contrast(0.2, 0.003, 29))
        for visits in (equal, biased)
    ]
    assert [found["Baseline against itself"].noise for found in findings] == [False, True]


def test_the_rule_has_the_numbers_of_the_pooling() -> None:
    """Visits, their spread, the error, the interval and the verdict, as the pooling has them."""
    pooling = pooled(0.1)
    found = pooling.speedup
    lines = {line.what: line for line in rule_lines(pooling, found.verdict(), pairs_min=30)}
    own = [np.exp(part.log) for part in pooling.parts]
    assert lines["6 visits"].value == f"{min(own):.3f}× to {max(own):.3f}×"
    assert "60 of 60 in the quick state" in lines["6 visits"].how
    assert f"{pooling.between.sd:.5f}" in lines["Between visits"].how
    assert f"{pooling.counted.sd:.5f}" in lines["Between visits"].value
    assert f"{found.se:.5f}" in lines["Pooled, 60 pairs"].value
    assert lines["Level"].value == "0.5 %"
    assert lines["Interval"].value == f"{found.value:.3f}× [{found.low:.3f}, {found.high:.3f}]"
    assert lines["Verdict"].value == "faster"
    assert "Agreement of runs" not in lines
    assert "In the slow state" not in lines


def test_the_rule_names_what_runs_and_states_show() -> None:
    """How unlikely runs are by what visits differ by, and the speed-up in the slow state."""
    pooling = pooled(0.15, -0.1, columns=2)
    slow = SpeedUp(0.3, 0.01, 10, 40)
    pooling = pooling._replace(slow=slow)
    found = rule_lines(pooling, pooling.speedup.verdict(), pairs_min=30)
    lines = {line.what: line for line in found}
    assert f"{pooling.runs_p:.2g}" in lines["Agreement of runs"].how
    numbers = f"{slow.value:.3f}× [{slow.low:.3f}, {slow.high:.3f}]"
    assert lines["In the slow state"].value == numbers


def test_a_bound_that_just_clears_has_enough_decimals() -> None:
    """An end of 0.9796 beside a floor of 0.9804 is not printed as 0.980 beside 0.980."""
    reach = SpeedUp(0.0, 0.005, 29, 60).half_width
    pooling = made(-0.0206 - reach, 0.005)
    assert pooling.speedup.verdict() == "slower"
    text = verdict_reason(pooling, pooling.speedup.verdict(), pairs_min=30)
    ends = re.findall(r"0\.\d+", text)
    assert len(set(ends)) == 2


# ---- checks of noise on simulated rounds ----


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
    for _ in range(80):
        steady, changed = rounds(rng, 60, 0.1), rounds(rng, 60, 0.1)
        changed[30:, 1] *= 1.06
        same, different = halves(steady, ARMS, 0, 1).p, halves(changed, ARMS, 0, 1).p
        assert same is not None
        assert different is not None
        alarms += same < 0.05
        found += different < 0.05
    assert alarms <= 9
    assert found >= 76


def test_few_rounds_have_no_probability() -> None:
    """Without a standard error there is none."""
    assert halves(rounds(np.random.default_rng(2), 6, 0.1), ARMS, 0, 1).p is None
    assert no_effect_p(Contrast(0.1, float("inf"), 1.0)) is None
    assert difference_p(Contrast(0.1, 0.0, 9), Contrast(0.1, 0.0, 9)) is None


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


# ---- flags ----


SLOWED = {"thermal_slowdown", "hardware_slowdown", "power_brake", "quota_throttled"}
WRONG = {
    "traced",
    *SLOWED,
    "consistency_check_failed",
    "state_changed",
    "token_trace_mismatch",
    "text_differs",
    "text_too_short",
    "void",
}


def test_what_each_flag_does() -> None:
    """Figures of another question are wrong, and one such flag is enough, as is one that is not
    declared; a slowed machine also quarantines.
    """
    assert {flag for flag in FLAGS if wrong([flag])} == WRONG
    assert wrong(["contended", "a_later_flag"])
    assert not wrong(["contended", "low_priority", "no_effect"])
    assert not wrong([])
    assert {flag for flag in FLAGS if quarantine_reasons([flag])} == SLOWED
    reasons = quarantine_reasons(["contended", "thermal_slowdown", "a_later_flag", "power_brake"])
    assert reasons == ("thermal_slowdown", "power_brake")


@pytest.mark.parametrize(("disturbed", "flagged"), [(2, False), (3, True)])
def test_a_few_disturbed_visits_flag_no_answer(disturbed: int, flagged: bool) -> None:
    """Noise counts from a quarter of twelve visits on; whatever else was raised counts once."""
    visits = [
        ["contended"] * (turn < disturbed)
        + ["pass_skipped"] * (turn == 5)
        + ["later"] * (turn == 7)
        for turn in range(12)
    ]
    expected = {"pass_skipped", "later"} | ({"contended"} if flagged else set())
    assert flags_of_attempts(visits) == expected
    assert flags_of_attempts([["contended"]]) == {"contended"}
