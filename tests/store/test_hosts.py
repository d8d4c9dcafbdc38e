"""Several hosts in one store: each has its own speed-ups and curves, and attempts of different
implementations are not pooled.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine, text

from store.write.reanalysis import reanalyse
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Job
from sweeps.model.outcome import Failure, Outcome
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep

CURVES = """SELECT host, axis, verdict, points, points_missing, x FROM break_even WHERE axis <> 'image_size' ORDER BY host, axis"""


def requested(engine: Engine, jobs: Sequence[Job], name: str = "hosts") -> int:
    return submit_sweep(engine, NewSweep(name, "text", "?"), jobs, [])


def routed(outcome: Outcome, implementation: str, arm: int = 1) -> Outcome:
    """The outcome had that arm run by this implementation."""
    arms = [
        each.model_copy(update={"implementation": implementation}) if each.arm == arm else each
        for each in outcome.arms
    ]
    return outcome.model_copy(update={"arms": tuple(arms)})


def test_attempts_of_two_hosts_are_not_pooled(engine: Engine) -> None:
    """The same environment on two hosts gives two rows with their own speed-ups; a second attempt
    joins its own host's.
    """
    job = a_job()
    for host, speedup, seed in (("a", 1.5, 0), ("b", 2.0, 1), ("a", 1.5, 2)):
        keep(engine, an_outcome(job, speedups=(speedup,), seed=seed, host=host))
    found = rows(engine, "SELECT host, speedup, pairs FROM speedup ORDER BY host")
    assert [(row["host"], row["pairs"]) for row in found] == [("a", 80), ("b", 40)]
    assert [row["speedup"] for row in found] == pytest.approx([1.5, 2.0], rel=0.02)


def test_points_of_two_hosts_are_not_spliced(engine: Engine) -> None:
    """Points shared out between two hosts are two curves, each of which lacks what the other
    measured; a whole one none.
    """
    jobs = [a_job(size) for size in (64, 128, 224, 384)]
    requested(engine, jobs)
    for job, speedup, host in zip(jobs, (0.7, 0.9, 1.2, 1.5), "abab", strict=True):
        keep(engine, an_outcome(job, speedups=(speedup,), host=host))
    found = rows(engine, CURVES)
    assert [(row["host"], row["axis"], row["points"], row["points_missing"]) for row in found] == [
        ("a", "gmacs", 2, 2), ("a", "tokens", 2, 2), ("b", "gmacs", 2, 2), ("b", "tokens", 2, 2),
    ]  # fmt: skip
    for job, speedup in zip(jobs, (0.7, 0.9, 1.2, 1.5), strict=True):
        keep(engine, an_outcome(job, speedups=(speedup,), host="c"))
    whole = [row for row in rows(engine, CURVES) if row["host"] == "c"]
    assert [(row["points"], row["points_missing"], row["verdict"]) for row in whole] == [
        (4, 0, "crossing")
    ] * 2


def test_a_failure_is_no_missing_point(engine: Engine) -> None:
    """A size that ran out of memory is answered, though it is no point; the host that had the
    failure is named beside it.
    """
    jobs = [a_job(size) for size in (64, 128, 4096)]
    requested(engine, jobs)
    for job in jobs[:2]:
        keep(engine, an_outcome(job, host="a"))
    lost = Failure(arm=1, reason="out_of_memory", message="too large")
    keep(engine, an_outcome(jobs[2], failures=[lost], host="a"))
    assert {(row["points"], row["points_missing"]) for row in rows(engine, CURVES)} == {(2, 0)}
    assert [row["host"] for row in rows(engine, "SELECT host FROM failures")] == ["a"]


def test_an_old_version_of_a_method_is_not_missing(engine: Engine) -> None:
    """What was requested of an older version of a method, and is answered by the new one, does not
    leave a curve incomplete.
    """
    requested(engine, [a_job(size) for size in (64, 128)])
    jobs = [a_job(size, version=2) for size in (64, 128)]
    requested(engine, jobs)
    for job in jobs:
        keep(engine, an_outcome(job))
    assert {(row["points"], row["points_missing"]) for row in rows(engine, CURVES)} == {(2, 0)}


def test_curves_along_savings_keep_hosts_apart(engine: Engine) -> None:
    """Keep rates shared out between two hosts: a curve for each that has three of them, with the
    number that it lacks.
    """
    jobs = [a_job(keep_rates=(rate,)) for rate in (0.9, 0.7, 0.5, 0.3)]
    requested(engine, jobs)
    for place, (job, host) in enumerate(zip(jobs, "aaab", strict=True)):
        outcome = an_outcome(job, speedups=(0.9 + place / 10,), host=host)
        arms = (
            outcome.arms[0],
            outcome.arms[1].model_copy(update={"gmacs": outcome.arms[1].gmacs * (1 - place / 10)}),
        )
        keep(engine, outcome.model_copy(update={"arms": arms}))
    found = rows(
        engine, "SELECT host, points, points_missing FROM break_even WHERE axis = 'gmacs_saved'"
    )
    assert found == [{"host": "a", "points": 3, "points_missing": 1}]


def test_reanalysis_rebuilds_rows_of_all_hosts(engine: Engine) -> None:
    """The same rows come back, whatever the order in which they were derived first."""
    jobs = [a_job(size, keep_rates=(0.3, 0.5, 0.7)) for size in (64, 128, 224)]
    requested(engine, jobs)
    for host in "ab":
        for job in jobs[: 2 if host == "b" else 3]:
            keep(engine, an_outcome(job, speedups=(0.8, 1.1, 1.3), host=host))
    tables = ("effect_row", "break_even_row")
    before = {table: sorted(rows(engine, f"SELECT * FROM {table}"), key=str) for table in tables}
    with engine.begin() as connection:
        connection.execute(text("UPDATE break_even_row SET points_missing = 7, why = '?'"))
        connection.execute(text("UPDATE effect_row SET effect = 7"))
    reanalyse(engine)
    assert {
        table: sorted(rows(engine, f"SELECT * FROM {table}"), key=str) for table in tables
    } == before


def test_attempts_of_two_routes_are_not_pooled(engine: Engine) -> None:
    """Only attempts that ran by the newest one's implementation count, of the arm and of the
    baseline.
    """
    job = a_job()

    def store(
        implementation: str | None, speedup: float, ended_at: float, arm: int = 1
    ) -> tuple[Any, ...]:
        outcome = an_outcome(
            job, speedups=(speedup,), ended_at=1.79e9 + ended_at, seed=int(ended_at)
        )
        keep(engine, outcome if implementation is None else routed(outcome, implementation, arm))
        (row,) = rows(
            engine, "SELECT implementation, pairs, round(speedup * 10) AS tenths FROM speedup"
        )
        return tuple(row.values())

    assert store(None, 1.2, 1) == (None, 40, 12)
    assert store("compiled", 1.5, 2) == ("compiled", 40, 15)
    assert store("compiled", 1.5, 3) == ("compiled", 80, 15)
    assert store(None, 1.2, 4) == (None, 80, 12)
    assert store("compiled", 2.0, 5, arm=0) == (None, 40, 20)
