"""Statements about noise and the lines of the rule: each number in them is that of the data."""

import re
from typing import Any

import numpy as np
import pytest

from sweeps.stats.noise_checks import Halves, Signs
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
    return Pooling(found, (part,), "quick", 60, one, one, 0.01, 1.0, None, (), None, None)


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


def test_nothing_suggests_noise_where_there_is_none() -> None:
    """All checks pass, and the sentence counts them."""
    assert noisy() == set()
    found = noise_findings([checks()], pooled(0.1), CLEAR, [(1.001, "same")])
    assert noise_in_words(found) == f"None of {len(found)} checks raises a doubt."


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"null": Contrast(0.02, 0.003, 29)}, "Baseline against itself"),
        ({"null": Contrast(0.2, 0.3, 29)}, "Baseline against itself"),
        (
            {"halves": Halves(Contrast(0.2, 0.004, 14), Contrast(0.0, 0.004, 14), 1e-6)},
            "Earlier and later half",
        ),
        ({"signs": Signs.of(31, 29)}, "Sign of each pair"),
        ({"signs": Signs.of(2, 58)}, "Sign of each pair"),
        ({"outlying": 12}, "Outliers"),
        ({"mean": Contrast(-0.2, 0.02, 29)}, "Mean times"),
        ({"readings": {"foreign_cores": 0.5}}, "Readings of the machine"),
    ],
)
def test_each_check_can_suggest_noise(changed: dict[str, Any], check: str) -> None:
    """One change at a time is found by its own check alone."""
    assert noisy(**changed) == {check}


def by_check(
    pooling: Pooling, *nulls: tuple[float, str], **changed: Any
) -> dict[str, NoiseFinding]:
    """All findings by their names."""
    found = noise_findings([checks(**changed)], pooling, CLEAR, nulls)
    return {finding.check: finding for finding in found}


def test_runs_that_disagree_and_a_machine_that_errs() -> None:
    """Runs on both sides of 1, and equal arms that were called faster."""
    found = by_check(pooled(0.15, -0.1, columns=2), (1.05, "faster"), (1.0, "same"))
    assert found["Agreement of visits"].noise
    assert found["Agreement of runs"].noise
    assert found["Null comparisons of the machine"].noise
    assert "1.000× to 1.050×; 1 called" in found["Null comparisons of the machine"].statement
    assert found["Interval"].noise


def test_runs_that_agree_raise_no_doubt() -> None:
    """Two runs of one speed-up."""
    found = by_check(pooled(0.1, 0.1))
    assert not found["Agreement of visits"].noise
    assert not found["Agreement of runs"].noise


def test_one_visit_names_what_is_assumed() -> None:
    """Its deviation of 1 % stands in the statement, and no agreement of runs is known."""
    found = by_check(pooled(0.1, visits=1))
    assert "Agreement of runs" not in found
    assert re.findall(r"[\d.]+ %", found["Agreement of visits"].statement) == ["1 %"]
    assert not found["Agreement of visits"].noise


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


def test_what_is_not_known_is_no_reason() -> None:
    """Without a second column, halves or readings the statement names what is missing."""
    assert noisy(null=None, halves=None, readings={}) == set()


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
    lines = {
        line.what: line for line in rule_lines(pooling, pooling.speedup.verdict(), pairs_min=30)
    }
    assert f"{pooling.runs_p:.2g}" in lines["Agreement of runs"].how
    assert (
        lines["In the slow state"].value == f"{slow.value:.3f}× [{slow.low:.3f}, {slow.high:.3f}]"
    )


def test_a_calibrated_floor_is_named() -> None:
    """What was assumed before visits were compared is that of the calibration."""
    visits = [plain_visit(np.random.default_rng(3), 0.1, 10, 0.01)]
    lines = rule_lines(pool_visits(visits, [0], 0.0234), "unclear", pairs_min=3)
    (line,) = [line for line in lines if line.what == "Between visits"]
    assert "0.0234" in line.how
    assert line.value.startswith("SD 0.02340")


def test_a_bound_that_just_clears_has_enough_decimals() -> None:
    """An end of 0.9796 beside a floor of 0.9804 is not printed as 0.980 beside 0.980."""
    reach = SpeedUp(0.0, 0.005, 29, 60).half_width
    pooling = made(-0.0206 - reach, 0.005)
    assert pooling.speedup.verdict() == "slower"
    text = verdict_reason(pooling, pooling.speedup.verdict(), pairs_min=30)
    ends = re.findall(r"0\.\d+", text)
    assert len(set(ends)) == 2


@pytest.mark.parametrize("verdict", ["quarantined", "insufficient"])
def test_other_reasons_name_no_bound(verdict: Any) -> None:
    """Where the interval does not decide, none of its ends is the reason."""
    pooling = made(0.1, 0.003)
    text = verdict_reason(pooling, verdict, pairs_min=90)
    assert f"{pooling.speedup.low:.3f}" not in text
