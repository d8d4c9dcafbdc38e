"""Attempts pooled: visits of several runs, processes, hosts and implementations, and what slow
machines do to them.
"""

import json

import numpy as np
import pytest
from sqlalchemy import Engine

from store.write.reanalysis import reanalyse
from store.write.record import record_imported
from sweeps.model.job import Protocol
from sweeps.model.outcome import SAME_COUNTS, Outcome
from tests.store.conftest import (
    a_job,
    an_outcome,
    in_visits,
    keep,
    pooled,
    seconds_of,
    submit,
    table,
    with_arms,
    with_seconds,
)

SPEED = "speedup, speedup_low, speedup_high, pairs, rounds, verdict, flags, host_speed FROM speedup"
RUN = Protocol(pairs_min=3, pairs_max=20, passes=6)


def a_run(slower: float = 1.0, run: int = 0) -> list[Outcome]:
    """Six visits on a machine that takes `slower` times as long."""
    job, at = a_job(64, protocol=RUN), 1_790_000_000.0 + 100 * run
    visits = in_visits(job, 6, seed=run, ended_at=at, pairs=10)
    return [with_seconds(each, seconds_of(each) * slower) for each in visits]


def test_attempts_count_alike_whichever_process_made_them(engine: Engine) -> None:
    """All visits of all runs are one look, by the statistics from their raw samples; the processes
    are kept beside the answer. A further run narrows the interval; reanalysing changes nothing.
    """
    visits = [
        one.model_copy(update={"process": name})
        for one, name in zip(a_run(), "aaabbb", strict=True)
    ]
    record_imported(engine, visits)
    ((speedup, low, high, *more),) = table(engine, f"SELECT {SPEED}")
    expected = pooled(visits)
    ends = (expected.value, expected.low, expected.high)
    assert (speedup, low, high) == pytest.approx(ends, rel=1e-12)
    assert more[:4] == [60, 6, "faster", ""]
    assert table(engine, "SELECT processes FROM effect_row") == [('["a", "b"]',)]
    record_imported(engine, a_run(run=1))
    (second,) = table(engine, f"SELECT {SPEED}")
    assert second[3:5] == (120, 12)
    assert second[2] - second[1] < 0.75 * (high - low)
    reanalyse(engine)
    assert table(engine, f"SELECT {SPEED}") == [second]


def test_a_further_attempt_narrows_the_interval_by_what_it_shows(engine: Engine) -> None:
    """One attempt alone has an interval of at least 7.83 % to each side; one that agrees narrows
    it.
    """
    above = []
    for seed in (0, 1):
        keep(engine, an_outcome(a_job(), noise=0.002, seed=seed))
        above += table(engine, "SELECT speedup_high / speedup FROM speedup")
    (alone,), (both,) = above
    assert alone == pytest.approx(np.exp(0.0783), rel=1e-3)
    assert np.log(both) < 0.9 * np.log(alone)


def test_runs_that_disagree_are_flagged(engine: Engine) -> None:
    """Two runs, each of three visits that agree, lie further apart than visits do: their own spread
    is the error.
    """
    for run, truth in enumerate((1.5, 1.65)):
        ended_at = 1.79e9 + 100 * run
        visits = in_visits(a_job(), 3, speedups=(truth,), seed=run, ended_at=ended_at)
        record_imported(engine, visits)
        ((_, low, high, _, rounds, _, flags, _),) = table(engine, f"SELECT {SPEED}")
        assert flags == ("runs_disagree" if run else "")
    assert (rounds, low < 1.5, high > 1.65) == (6, True, True)


def test_the_slow_state_has_its_own_speedup(engine: Engine) -> None:
    """The answer is that of the quick state; where the slow one clearly has another, both are
    stated and flagged.
    """
    visits = in_visits(a_job(), 12)
    for number in range(0, 12, 3):
        visits[number] = with_seconds(visits[number], seconds_of(visits[number]) * [1.3, 1.9])
    record_imported(engine, visits)
    columns = "speedup, speedup_low, speedup_slow, speedup_slow_low, speedup_slow_high, flags"
    ((quick, low, slow, slow_low, slow_high, flags),) = table(
        engine, f"SELECT {columns} FROM speedup"
    )
    assert (quick, slow) == pytest.approx((1.5, 1.5 * 1.3 / 1.9), rel=0.01)
    assert slow_low < slow < slow_high < low
    assert "states_differ" in flags.split(",")


def test_a_slow_run_says_so(engine: Engine) -> None:
    """The speed of the newest run stands beside the answer, which stays that of the quick state;
    mostly slow, it is flagged.
    """
    record_imported(engine, [*a_run(), *a_run(1.25, 1)])
    ((*_, flags, host_speed),) = table(engine, f"SELECT {SPEED}")
    assert (host_speed, flags) == (pytest.approx(0.8, abs=0.03), "")
    record_imported(engine, [visit for run in range(2, 7) for visit in a_run(1.25, run)])
    ((*_, verdict, flags, _),) = table(engine, f"SELECT {SPEED}")
    assert (verdict, flags) == ("faster", "slow_state")


@pytest.mark.parametrize(("flag", "widened"), [("no_effect", True), ("", False)])
def test_an_arm_without_effect_that_is_off_widens_the_others(
    engine: Engine, flag: str, widened: bool
) -> None:
    """It does the work of the baseline, and takes 10 % longer; one with equal counts that is slowed
    on purpose shows nothing of the measurement.
    """
    visits = in_visits(a_job(64, keep_rates=(0.5, 1.0)), speedups=(1.3, 1 / 1.1))
    counts = {name: getattr(visits[0].arms[0], name) for name in SAME_COUNTS}
    equal = {**counts, "flags": (flag,) if flag else ()}
    record_imported(engine, [with_arms(visit, {}, {}, equal) for visit in visits])
    widths = {
        json.loads(params)["keep_rate"]: np.log(high / low) / 2
        for params, low, high in table(
            engine, "SELECT params, speedup_low, speedup_high FROM speedup"
        )
    }
    assert (widths[0.5] > 0.1) == widened
    assert widths[1.0] < 0.05


def test_attempts_of_two_hosts_or_implementations_are_not_pooled(engine: Engine) -> None:
    """The same environment on two hosts gives two rows with their own speed-ups. Only attempts that
    ran by the newest one's implementation count, of the arm and of the baseline.
    """
    host_a, host_b = "a", "b"
    shown = "SELECT host, implementation, pairs, round(speedup * 10) FROM speedup ORDER BY host"
    compiled = {"implementation": "compiled"}
    elsewhere = an_outcome(a_job(), speedups=(2.0,), host=host_b)
    keep(engine, elsewhere)
    for number, (speedup, fields, expected) in enumerate(
        (
            (1.2, ({}, {}), (host_a, None, 40, 12)),
            (1.5, ({}, compiled), (host_a, "compiled", 40, 15)),
            (1.5, ({}, compiled), (host_a, "compiled", 80, 15)),
            (1.2, ({}, {}), (host_a, None, 80, 12)),
            (2.0, (compiled, {}), (host_a, None, 40, 20)),
        ),
        1,
    ):
        of = {"speedups": (speedup,), "seed": number, "ended_at": 1.79e9 + number}
        keep(engine, with_arms(an_outcome(a_job(), host=host_a, **of), *fields))
        assert table(engine, shown) == [expected, (host_b, None, 40, 20)]


def test_a_curve_of_a_search_is_decided_at_its_own_level(engine: Engine) -> None:
    """Points that are clear by themselves are not on the curve of a sweep with a stricter level,
    nor after `reanalyse`.
    """
    jobs = [a_job(64), a_job(128)]
    for name, settings in (("grid", {}), ("search", {"point_alpha": 1e-12})):
        submit(engine, jobs, name, settings=settings)
    for job in jobs:
        record_imported(engine, in_visits(job, speedups=(1.08,), noise=0.03, pairs=60))
    wanted = "sweep, verdict, point_alpha FROM break_even WHERE axis = 'tokens' ORDER BY sweep"
    expected = [("grid", "always", None), ("search", "unclear", 1e-12)]
    assert table(engine, f"SELECT {wanted}") == expected
    reanalyse(engine)
    assert table(engine, f"SELECT {wanted}") == expected
