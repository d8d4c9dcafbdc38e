"""Runs that agree and disagree on simulated machines, and the sentence on speed-ups that change
with the state of the machine.
"""

from dataclasses import replace

import numpy as np
import pytest

from sweeps.analysis.rows import ClaimRow, SpeedupRow
from sweeps.stats.visits import Pooling, Visit, pool_visits
from sweeps.text.condition_text import states_caution
from sweeps.text.curves import describe_break_even
from tests.fixtures.typed_rows import row_of

VISITS = 12


def run(
    rng: np.random.Generator, log_speedup: float, visit_sd: float = 0.005, visits: int = VISITS
) -> list[Visit]:
    """Visits of one run in one state, whose log speed-ups deviate by `visit_sd`."""
    found = []
    for _ in range(visits):
        times = np.exp(rng.normal(0, 0.01, (12, 3)))
        found.append(
            Visit(times[:, :2], times[:, 2:] * np.exp(-log_speedup - rng.normal(0, visit_sd)))
        )
    return found


def pooled(*runs: list[Visit]) -> Pooling:
    return pool_visits(
        [visit for one in runs for visit in one], [turn for one in runs for turn in range(len(one))]
    )


@pytest.mark.parametrize("number", [2, 4])
def test_agreeing_runs_are_seldom_flagged(number: int) -> None:
    """At most 1 of 100 sets of runs that differ as visits do; 1 of 1000 is meant."""
    rng = np.random.default_rng(21)
    flagged = sum(pooled(*(run(rng, 0.1) for _ in range(number))).disagree for _ in range(300))
    assert flagged <= 3


def test_runs_that_differ_by_more_than_their_visits_are_flagged() -> None:
    """The interval then covers both runs."""
    rng = np.random.default_rng(22)
    found = [pooled(run(rng, 0.05), run(rng, 0.12)) for _ in range(50)]
    assert all(each.disagree for each in found)
    assert all(
        each.speedup.low < np.exp(0.06) and each.speedup.high > np.exp(0.11) for each in found
    )


def test_a_second_run_that_differs_a_little_destroys_no_answer() -> None:
    """1.40x and then 1.44x, each with visits 3 % apart: `faster` after both, as after each."""
    rng = np.random.default_rng(23)
    for _ in range(50):
        runs = [run(rng, np.log(ratio), 0.03) for ratio in (1.40, 1.44)]
        both = pooled(*runs)
        assert {each.speedup.verdict() for each in (*map(pooled, runs), both)} == {"faster"}
        assert both.disagree or both.speedup.half_width < max(
            pooled(one).speedup.half_width for one in runs
        )


def test_both_speed_ups_are_named_where_states_differ() -> None:
    """The first three, and how many more; nothing without the flag."""
    row = {
        "tokens": 196,
        "speedup": 1.231,
        "speedup_slow": 1.178,
        "flags": "contended,states_differ",
    }
    points = [(f"topk {number}", row_of(SpeedupRow, **row)) for number in range(5)]
    (sentence,) = states_caution(points)
    assert sentence.startswith(
        "speed-ups change with the state of the host: topk 0 at 196 tokens 1.23x when the host is"
        " quick, "
    )
    assert sentence.endswith(
        "topk 2 at 196 tokens 1.23x when the host is quick, 1.18x when it is slow; 2 more speed-ups"
    )
    assert (
        list(states_caution([("topk", row_of(SpeedupRow, **row | {"flags": "contended"}))])) == []
    )


@pytest.mark.parametrize("verdict", ["always", "pays_between", "unclear"])
def test_points_that_a_flag_excludes_stand_in_the_sentence(verdict: str) -> None:
    """But not in a brief one, which has no reasons."""
    row = row_of(
        ClaimRow,
        axis="tokens",
        metric="latency",
        x_first=4,
        x_last=196,
        verdict=verdict,
        points=3,
        why="Along tokens: faster at 36.",
        left_out="9, 64",
    )
    assert describe_break_even([row], "tokens").endswith("; left out by a flag: 9, 64")
    assert "left out" not in describe_break_even([row], "tokens", brief=True)
    assert "left out" not in describe_break_even([replace(row, left_out=None)], "tokens")
