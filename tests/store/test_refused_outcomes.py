"""What a job's failures leave in the store, and outcomes that are refused."""

import math

import pytest
from sqlalchemy import Engine, text

from store.errors import StoreError
from store.rows import owners
from store.rows.samples import unpack_samples
from store.rows.transactions import writing
from store.write import queue
from store.write.record import record, record_imported
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.outcome import Failure
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep

ME = owners.owner()
DAY = 86_400.0
NOW = 1_790_000_000.0
OF_CURVES = ("x_first", "x_last", "worst_loss", "largest_gain")


def test_failures(engine: Engine) -> None:
    """The failed arm is in failures and not in speedup, the other one the other way round;
    measuring later clears it.
    """
    job = a_job(keep_rates=(0.3, 0.5))
    oom = Failure(arm=1, reason="out_of_memory", message="no room")
    keep(engine, an_outcome(job, speedups=(1, 2), failures=[oom]))
    assert [row["params"] for row in rows(engine, "SELECT params FROM speedup")] == [
        '{"keep_rate":0.5,"layers":[3,6,9]}'
    ]
    (failed,) = rows(engine, "SELECT * FROM failures")
    assert (failed["params"], failed["reason"], failed["message"]) == (
        '{"keep_rate":0.3,"layers":[3,6,9]}',
        "out_of_memory",
        "no room",
    )
    assert failed["at"] == "2026-09-21T14:13:20.000Z"
    keep(engine, an_outcome(job, speedups=(1, 2), seed=1))
    assert rows(engine, "SELECT * FROM failures") == []
    assert rows(engine, "SELECT count(*) AS kept FROM failure") == [{"kept": 1}]


@pytest.mark.parametrize(("arm", "failures"), [(0, 2), (1, 1), (None, 2)])
def test_who_fails_with_whom(engine: Engine, arm: int | None, failures: int) -> None:
    """A failed baseline fails all its pairs, a failed arm its own, a failed job everything."""
    failure = Failure(arm=arm, reason="crash", message="signal 11")
    keep(engine, an_outcome(a_job(keep_rates=(0.3, 0.5)), speedups=(1, 1), failures=[failure]))
    assert len(rows(engine, "SELECT * FROM failures")) == failures


@pytest.mark.parametrize(("reason", "state"), [("timeout", "done"), ("error", "failed")])
def test_state_of_the_job(engine: Engine, reason: str, state: str) -> None:
    """Failures that answer the question end a job as done, an unforeseen exception as failed."""
    sweep = submit_sweep(engine, NewSweep("sweep", "text", "?"), a_job().comparisons(), [a_job()])
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    record(
        engine,
        claimed.row,
        ME,
        an_outcome(claimed.job, failures=[Failure(arm=1, reason=reason, message="so")]),
    )
    assert queue.progress(engine, sweep).counts[state] == 1


def test_silence_is_an_error(engine: Engine) -> None:
    """A pair without results in an outcome is not lost: it is a failure that is no answer."""
    outcome = an_outcome(a_job()).model_copy(update={"samples": None})
    keep(engine, outcome)
    (failed,) = rows(engine, "SELECT reason, message FROM failures")
    assert failed["reason"] == "error"
    assert "neither samples nor a failure for arm 1, topk(keep_rate=0.5" in failed["message"]


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_times(engine: Engine, bad: float) -> None:
    """Times that cannot be are kept raw and fail the pair; they never reach the statistics."""
    outcome = an_outcome(a_job())
    assert outcome.samples is not None
    seconds = ((bad, 0.01), *outcome.samples.seconds[1:])
    keep(
        engine,
        outcome.model_copy(
            update={"samples": outcome.samples.model_copy(update={"seconds": seconds})}
        ),
    )
    (failed,) = rows(engine, "SELECT reason, message FROM failures")
    assert "not positive and finite for arm 0, dense" in failed["message"]
    with engine.connect() as connection:
        kept = unpack_samples(connection.execute(text("SELECT * FROM sample")).one()).seconds[0, 0]
    assert kept == bad or math.isnan(bad)


def test_ragged_samples_are_refused(engine: Engine) -> None:
    """Samples that are no table are a contradiction, and nothing of the outcome is stored."""
    outcome = an_outcome(a_job())
    assert outcome.samples is not None
    ragged = outcome.samples.model_copy(update={"seconds": ((0.1,), *outcome.samples.seconds[1:])})
    with pytest.raises(
        StoreError, match=r"a round of seconds has 1 values, but there are 2 columns"
    ):
        keep(engine, outcome.model_copy(update={"samples": ragged}))
    assert rows(engine, "SELECT * FROM attempt") == []


def test_imports_are_all_or_nothing(engine: Engine) -> None:
    """If one of several outcomes cannot be stored, none is; those that are known already count for
    nothing.
    """
    good, other = an_outcome(a_job(32)), an_outcome(a_job(64))
    assert other.samples is not None
    ragged = other.samples.model_copy(update={"seconds": ((0.1,), *other.samples.seconds[1:])})
    with pytest.raises(StoreError, match="a round of seconds"):
        record_imported(engine, [good, other.model_copy(update={"samples": ragged})])
    assert rows(engine, "SELECT * FROM attempt") == []
    assert (
        record_imported(engine, [good, good, other]),
        record_imported(engine, [good, other]),
    ) == (2, 0)
    assert rows(engine, "SELECT count(*) AS n FROM speedup") == [{"n": 2}]


def test_numbers_must_be_numbers(engine: Engine) -> None:
    """The database itself refuses text and impossible values in columns of figures."""
    keep(engine, an_outcome(a_job()))
    for change in (
        "UPDATE effect_row SET effect = 'fast'",
        "UPDATE effect_row SET effect = -1",
        "UPDATE effect_row SET effect_high = 9e999",
        "UPDATE effect_row SET verdict = 'great'",
        "UPDATE attempt SET ended_at = 1",
        "UPDATE metric_row SET value = 'much'",
        "UPDATE comparison_attempt SET comparison_id = 'nothing'",
    ):
        with pytest.raises(StoreError, match="constraint failed"), writing(engine) as connection:
            connection.execute(text(change))
