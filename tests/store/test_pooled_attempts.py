"""Attempts pooled: several processes, several attempts of one, two slots of an arm, and bursts, which are kept and not pooled."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from sqlalchemy import Engine

from store.record import reanalyse, record, record_imported
from store.submission import NewSweep, submit_sweep
from sweeps.job import Job
from sweeps.outcome import Outcome
from sweeps.stats.pooling import pool
from sweeps.stats.two_way import Contrast, Rounds
from tests.fixtures.sql_rows import rows
from tests.store.conftest import two_slots

MakeJob = Callable[..., Job]
MakeOutcome = Callable[..., Outcome]
SPEED = ("speedup", "speedup_low", "speedup_high")


def contrasts(outcomes: Sequence[Outcome]) -> list[Contrast]:
    """The log speed-up of arm 1 over arm 0 in each outcome."""
    return [Rounds(outcome.samples.seconds, (0, 1)).contrast(0, 1) for outcome in outcomes if outcome.samples]


def test_rounds_are_pooled(engine: Engine, make_job: MakeJob, make_outcome: MakeOutcome) -> None:
    """Attempts at one comparison in one environment are pooled by the statistics."""
    outcomes = [make_outcome(make_job(), speedups=(truth,), seed=index) for index, truth in enumerate((1.4, 1.5, 1.6))]
    for outcome in outcomes:
        record(engine, None, None, outcome)
    ratio = pool([[contrast] for contrast in contrasts(outcomes)], 120)
    (row,) = rows(engine, "SELECT * FROM speedup")
    assert (row["rounds"], row["pairs"]) == (3, 120)
    assert tuple(row[name] for name in SPEED) == pytest.approx((ratio.value, ratio.low, ratio.high), rel=1e-12)


def test_attempts_of_one_process_share_what_is_particular_to_it(
    engine: Engine, make_job: MakeJob, make_outcome: MakeOutcome
) -> None:
    """Two attempts of one process are one process to the pool, and a third of another is a second one; each is a look."""
    outcomes = [make_outcome(make_job(), seed=index, noise=0.03) for index in range(3)]
    outcomes = [one.model_copy(update={"process": name}) for one, name in zip(outcomes, ("a", "a", "b"), strict=True)]
    record_imported(engine, outcomes)
    first, second, third = contrasts(outcomes)
    ratio = pool([[first, second], [third]], 120)
    assert ratio.looks == 3
    (row,) = rows(engine, "SELECT * FROM speedup")
    assert tuple(row[name] for name in SPEED) == pytest.approx((ratio.value, ratio.low, ratio.high), rel=1e-12)
    apart = pool([[first], [second], [third]], 120)
    assert ratio.half_width > apart.half_width


def test_both_slots_of_the_baseline_count(engine: Engine, make_job: MakeJob, make_outcome: MakeOutcome) -> None:
    """A baseline that was timed twice in each round is the mean of both by logarithms, and its median that of all its times."""
    once = make_outcome(make_job(), speedups=(1.5,))
    twice = two_slots(make_outcome(make_job(64), speedups=(1.5,)))
    record_imported(engine, [once, twice])
    first, second = rows(engine, "SELECT * FROM speedup ORDER BY image_size DESC")
    assert second["speedup"] == pytest.approx(1.04**0.5 * first["speedup"], rel=2e-3)
    assert (second["pairs"], second["rounds"]) == (40, 1)
    assert once.samples is not None
    baseline = np.array(once.samples.seconds)[:, 0]
    assert second["baseline_ms"] == 1e3 * np.median(np.concatenate([baseline, 1.04 * baseline]))


def test_bursts_and_process_tell_outcomes_apart(engine: Engine, make_job: MakeJob, make_outcome: MakeOutcome) -> None:
    """Outcomes that differ in bursts or in their process alone are two."""
    outcome = make_outcome(make_job())
    assert outcome.samples is not None
    with_bursts = outcome.samples.model_copy(update={"bursts": ((0.01, 0.02),)})
    others = [outcome.model_copy(update={"samples": with_bursts}), outcome.model_copy(update={"process": "4:2"})]
    assert record_imported(engine, [outcome, *others]) == 3
    assert record_imported(engine, [outcome, *others]) == 0
    assert [row["process"] for row in rows(engine, "SELECT process FROM attempt ORDER BY id")] == [None, None, "4:2"]


def test_a_curve_of_a_search_is_decided_at_its_own_level(engine: Engine, make_job: MakeJob, make_outcome: MakeOutcome) -> None:
    """Points that are just clear by themselves are not on the curve of a sweep with a stricter level, nor after `reanalyse`."""
    jobs = [make_job(64), make_job(128)]
    for name, settings in (("grid", {}), ("search", {"point_alpha": 1e-12})):
        submit_sweep(engine, NewSweep(name, "text", "Why?", settings), jobs, jobs)
    for job in jobs:
        record(engine, None, None, make_outcome(job, speedups=(1.08,), noise=0.03, pairs=60))
    wanted = "SELECT sweep, verdict, point_alpha FROM break_even WHERE axis = 'tokens' ORDER BY sweep"
    expected = [
        {"sweep": "grid", "verdict": "always", "point_alpha": None},
        {"sweep": "search", "verdict": "unclear", "point_alpha": 1e-12},
    ]
    assert rows(engine, wanted) == expected
    reanalyse(engine)
    assert rows(engine, wanted) == expected
