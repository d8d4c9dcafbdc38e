"""Statements about noise and the lines of the rule: each number in them is that of the data."""

import re
from typing import Any

import pytest

from sweeps.noise_findings import AttemptChecks, noise_findings, noise_in_words
from sweeps.stats.noise_checks import Halves, Signs
from sweeps.stats.pooling import ProcessTerm, pool_stepwise
from sweeps.stats.two_way import Contrast
from sweeps.verdict_rule import WorkedAttempt, rule_lines, verdict_reason

CLEAR = Contrast(0.1, 0.003, 29)


def checks(**changed: Any) -> AttemptChecks:
    """Of an attempt of 60 rounds that is beyond doubt, with changes."""
    null, same = Contrast(0.001, 0.003, 29), Halves(Contrast(0.1, 0.004, 14), Contrast(0.101, 0.004, 14), 0.8)
    quiet = {"cpu_mhz_min": 2000.0, "cpu_mhz_max": 2000.0}
    return AttemptChecks(7, null, same, Signs.of(58, 2), 0, 60, quiet)._replace(**changed)


def noisy(mean: Contrast = CLEAR, **changed: Any) -> set[str]:
    """The checks that raise a doubt after these changes."""
    found = noise_findings([checks(**changed)], pool_stepwise([[CLEAR]], 60), mean, [(1.001, "same")])
    return {finding.check for finding in found if finding.noise}


def test_nothing_suggests_noise_where_there_is_none() -> None:
    """All checks pass, and the sentence counts them."""
    assert noisy() == set()
    found = noise_findings([checks()], pool_stepwise([[CLEAR]], 60), CLEAR, [(1.001, "same")])
    assert noise_in_words(found) == f"None of {len(found)} checks raises a doubt."


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"null": Contrast(0.02, 0.003, 29)}, "Baseline against itself"),
        ({"null": Contrast(0.2, 0.3, 29)}, "Baseline against itself"),
        ({"halves": Halves(Contrast(0.2, 0.004, 14), Contrast(0.0, 0.004, 14), 1e-6)}, "Earlier and later half"),
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


def test_processes_that_disagree_and_a_machine_that_errs() -> None:
    """Processes on both sides of 1, and equal arms that were called faster."""
    pooling = pool_stepwise([[Contrast(0.15, 0.003, 29)], [Contrast(-0.1, 0.003, 29)]], 120)
    nulls = [(1.05, "faster"), (1.0, "same")]
    found = {finding.check: finding for finding in noise_findings([checks(), checks()], pooling, CLEAR, nulls)}
    assert found["Agreement of processes"].noise
    assert "raised" in found["Agreement of processes"].statement
    assert found["Null comparisons of the machine"].noise
    assert "1.000× to 1.050×; 1 called" in found["Null comparisons of the machine"].statement
    assert found["Interval"].noise


def test_what_is_not_known_is_no_reason() -> None:
    """Without a second column, halves or readings the statement names what is missing."""
    assert noisy(null=None, halves=None, readings={}) == set()


def test_a_calibration_is_named_with_its_date() -> None:
    """The term's line has its source, its freedom and when it was made."""
    term = ProcessTerm(0.01, 22.4, "abc")
    pooling = pool_stepwise([[CLEAR]], 60, [term])
    attempts = [WorkedAttempt(7, "p", 60, CLEAR, settled=True)]
    lines = rule_lines(attempts, pooling, pooling.found.verdict(), pairs_min=30, calibrated={"abc": "made 2026-11-20"})
    (line,) = [line for line in lines if line.what == "Between processes"]
    assert "abc, made 2026-11-20" in line.how
    assert "22.4 degrees" in line.value
    pooled = next(line for line in lines if line.what.startswith("Pooled"))
    assert re.findall(r"0\.0\d+", pooled.how) == ["0.00300", "0.01000"]


def test_a_bound_that_just_clears_has_enough_decimals() -> None:
    """An end of 0.9796 beside a floor of 0.9804 is not printed as 0.980 beside 0.980."""
    found = pool_stepwise([[Contrast(-0.0206 - 2.9 * 0.005, 0.0, 29)]], 60, [ProcessTerm(0.005)])
    text = verdict_reason(found, found.found.verdict(), pairs_min=30)
    assert found.found.verdict() == "slower"
    ends = re.findall(r"0\.\d+", text)
    assert len(set(ends)) == 2
