"""Attempts pooled: several runs, several processes, two slots of an arm, and bursts, which are kept
and not pooled.
"""

import json

import numpy as np
import pytest
from sqlalchemy import Engine

from store.write.reanalysis import reanalyse
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.outcome import Outcome
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, in_visits, keep, pooled, two_slots
from tests.store.profile_fixtures import a_profile_job, a_profiled_outcome

SPEED = ("speedup", "speedup_low", "speedup_high")


def test_attempts_count_alike_whichever_process_made_them(engine: Engine) -> None:
    """Two attempts of one process and one of another are three visits; the processes are kept
    beside the answer.
    """
    outcomes = [an_outcome(a_job(), seed=index, noise=0.03) for index in range(3)]
    outcomes = [
        one.model_copy(update={"process": name})
        for one, name in zip(outcomes, ("a", "a", "b"), strict=True)
    ]
    record_imported(engine, outcomes)
    ratio = pooled(outcomes)
    (row,) = rows(engine, "SELECT * FROM speedup")
    assert tuple(row[name] for name in SPEED) == pytest.approx(
        (ratio.value, ratio.low, ratio.high), rel=1e-12
    )
    assert (row["rounds"], row["pairs"]) == (3, 120)
    assert rows(engine, "SELECT processes FROM effect_row") == [{"processes": '["a", "b"]'}]


def test_a_further_attempt_narrows_the_interval_by_what_it_shows(engine: Engine) -> None:
    """One attempt alone has an interval of at least 7.45 % to each side; one that agrees narrows
    it.
    """
    width = "SELECT speedup_high / speedup AS above FROM speedup"
    keep(engine, an_outcome(a_job(), noise=0.002))
    (alone,) = rows(engine, width)
    assert alone["above"] == pytest.approx(np.exp(0.0745), rel=1e-3)
    keep(engine, an_outcome(a_job(), noise=0.002, seed=1))
    (both,) = rows(engine, width)
    assert np.log(both["above"]) < 0.7 * np.log(alone["above"])


def test_runs_that_disagree_are_flagged(engine: Engine) -> None:
    """Two runs, each of three visits that agree, lie further apart than visits do: their own spread
    is the error.
    """
    for run, truth in enumerate((1.5, 1.65)):
        record_imported(
            engine, in_visits(a_job(), 3, speedups=(truth,), seed=run, ended_at=1.79e9 + 100 * run)
        )
        (row,) = rows(engine, "SELECT * FROM speedup")
        assert row["flags"] == ("runs_disagree" if run else "")
    assert row["rounds"] == 6
    assert row["speedup_low"] < 1.5
    assert row["speedup_high"] > 1.65


def test_the_slow_state_has_its_own_speedup(engine: Engine) -> None:
    """The answer is that of the quick state; where the slow one clearly has another, both are
    stated and flagged.
    """
    for number, outcome in enumerate(in_visits(a_job(), 12)):
        assert outcome.samples is not None
        slow = number % 3 == 0
        seconds = np.asarray(outcome.samples.seconds) * ([1.3, 1.9] if slow else [1.0, 1.0])
        samples = outcome.samples.model_copy(
            update={"seconds": tuple(map(tuple, seconds.tolist()))}
        )
        keep(engine, outcome.model_copy(update={"samples": samples}))
    (row,) = rows(engine, "SELECT * FROM speedup")
    assert row["speedup"] == pytest.approx(1.5, rel=0.01)
    assert row["speedup_slow"] == pytest.approx(1.5 * 1.3 / 1.9, rel=0.01)
    assert (
        row["speedup_slow_low"]
        < row["speedup_slow"]
        < row["speedup_slow_high"]
        < row["speedup_low"]
    )
    assert "states_differ" in row["flags"].split(",")


def test_both_slots_of_the_baseline_count(engine: Engine) -> None:
    """A baseline that was timed twice in each round is the mean of both by logarithms, and its
    median that of all its times.
    """
    once = an_outcome(a_job(), speedups=(1.5,))
    twice = two_slots(an_outcome(a_job(64), speedups=(1.5,)))
    record_imported(engine, [once, twice])
    first, second = rows(engine, "SELECT * FROM speedup ORDER BY image_size DESC")
    assert second["speedup"] == pytest.approx(1.04**0.5 * first["speedup"], rel=2e-3)
    assert (second["pairs"], second["rounds"]) == (40, 1)
    assert once.samples is not None
    baseline = np.array(once.samples.seconds)[:, 0]
    assert second["baseline_ms"] == 1e3 * np.median(np.concatenate([baseline, 1.04 * baseline]))


SERIES = {"seconds": (0.2, 0.4), "rounds": (3.0, 6.0), "cpu_mhz": (None, 2000.0)}


def test_what_tells_outcomes_apart(engine: Engine) -> None:
    """Bursts, the process, readings between rounds, the implementation or a profile alone make
    another outcome, which is known again from its JSON.
    """
    plain = an_outcome(a_job())
    assert plain.samples is not None
    baseline, arm = plain.arms
    bursts = plain.samples.model_copy(update={"bursts": ((0.01, 0.02),)})
    compiled = (baseline, arm.model_copy(update={"implementation": "compiled"}))
    walls = ({"device": 20.0, "host": 5.0}, {"device": 12.0, "host": 6.0})
    profile = a_profile_job()
    outcomes = [
        plain,
        plain.model_copy(update={"samples": bursts}),
        plain.model_copy(update={"process": "4:2"}),
        plain.model_copy(update={"system_series": SERIES}),
        plain.model_copy(update={"arms": compiled}),
        a_profiled_outcome(profile, walls),
        a_profiled_outcome(profile, walls[::-1]),
    ]
    assert [keep(engine, outcome) for outcome in outcomes] == [True] * len(outcomes)
    again = [Outcome.model_validate_json(outcome.model_dump_json()) for outcome in outcomes]
    assert not any(keep(engine, outcome) for outcome in again)
    found = rows(engine, "SELECT process, payload FROM attempt ORDER BY id")[: len(outcomes) - 2]
    payloads = [json.loads(row["payload"]) for row in found]
    assert [row["process"] for row in found] == [None, None, "4:2", None, None]
    assert [payload["system_series"] is None for payload in payloads] == [True] * 3 + [False, True]
    assert [payload["arms"][1]["implementation"] for payload in payloads] == [None] * 4 + [
        "compiled"
    ]
    with pytest.raises(ValueError, match="the columns of system_series differ in length"):
        Outcome.model_validate(
            plain.model_dump() | {"system_series": {"seconds": (0.2,), "load": (1.0, 1.0)}}
        )


def test_a_curve_of_a_search_is_decided_at_its_own_level(engine: Engine) -> None:
    """Points that are clear by themselves are not on the curve of a sweep with a stricter level,
    nor after `reanalyse`.
    """
    jobs = [a_job(64), a_job(128)]
    for name, settings in (("grid", {}), ("search", {"point_alpha": 1e-12})):
        submit_sweep(engine, NewSweep(name, "text", "Why?", settings), jobs, jobs)
    for job in jobs:
        record_imported(engine, in_visits(job, speedups=(1.08,), noise=0.03, pairs=60))
    wanted = (
        "SELECT sweep, verdict, point_alpha FROM break_even WHERE axis = 'tokens' ORDER BY sweep"
    )
    expected = [
        {"sweep": "grid", "verdict": "always", "point_alpha": None},
        {"sweep": "search", "verdict": "unclear", "point_alpha": 1e-12},
    ]
    assert rows(engine, wanted) == expected
    reanalyse(engine)
    assert rows(engine, wanted) == expected
