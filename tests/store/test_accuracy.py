"""Accuracy in the store: evaluations kept whole, a view that equals the statistics, failures, and
what counts as answered.
"""

from typing import Any

import pytest
from sqlalchemy import Engine, text

from store.derive.payloads import PredictionStore
from store.errors import StoreError
from store.read import queries
from store.read.answers import answers
from store.rows.transactions import writing
from store.write import queue
from store.write.reanalysis import reanalyse
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Job, Protocol
from sweeps.model.outcome import Failure, Outcome
from sweeps.stats.quality import TOP1_FLOOR, compare_predictions
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_evaluation, an_outcome, keep

JOIN = """
SELECT a.method, a.params, a.image_size, a.top1_drop, s.speedup, s.batch_size, a.gmacs_total
FROM accuracy AS a
JOIN speedup AS s USING (arm_id, model, weights, image_size)
ORDER BY a.params, s.batch_size"""


def kept(engine: Engine) -> list[Any]:
    return [
        PredictionStore.unpack(row["payload"])
        for row in rows(engine, "SELECT payload FROM image_predictions")
    ]


def test_an_evaluation_is_kept_whole(engine: Engine) -> None:
    """The store returns the very evaluation, recognises it, and distinguishes another one."""
    outcome = an_evaluation(a_job(kind="accuracy"), unreadable=["a/b.png"])
    assert keep(engine, outcome)
    assert kept(engine) == [outcome.predictions]
    assert not keep(engine, Outcome.model_validate_json(outcome.model_dump_json()))
    assert keep(engine, an_evaluation(a_job(kind="accuracy"), seed=1))
    assert "evaluation" not in rows(engine, "SELECT payload FROM attempt")[0]["payload"]


def test_the_view_equals_the_statistics(engine: Engine) -> None:
    """Every figure of the accuracy view is what `sweeps.stats.quality` computes from the
    predictions.
    """
    job = a_job(keep_rates=(0.3, 0.5), kind="accuracy", corruption="jpeg", severity=3)
    outcome = an_evaluation(job, losses=(0.2, 0.01), images=4000, unreadable=["x", "y"])
    keep(engine, outcome)
    assert outcome.predictions is not None
    found = rows(engine, "SELECT * FROM accuracy ORDER BY params")
    for arm, row in enumerate(found, start=1):
        agreement = compare_predictions(outcome.predictions, 0, arm)
        assert agreement.kl is not None
        assert agreement.margin_change is not None
        assert (row["top1_baseline"], row["top1"], row["top5_baseline"], row["top5"]) == (
            agreement.top1_baseline.value,
            agreement.top1.value,
            agreement.top5_baseline,
            agreement.top5,
        )
        counts = ("images", "only_baseline_correct", "only_arm_correct", "mcnemar_p")
        figures = ("top1_drop", "top1_drop_low", "top1_drop_high", *counts)
        assert tuple(row[name] for name in figures) == agreement.drop
        assert (row["kl"], row["kl_low"], row["kl_high"]) == agreement.kl[:3]
        assert (
            row["margin_change"],
            row["margin_change_low"],
            row["margin_change_high"],
        ) == agreement.margin_change[:3]
        assert (row["margin_change_p05"], row["verdict"], row["floor"]) == (
            agreement.margin_change_p05,
            agreement.verdict(),
            TOP1_FLOOR,
        )
    known = {
        "kind": "accuracy",
        "data": "digits",
        "corruption": "jpeg",
        "severity": 3,
        "unreadable": 2,
        "source": "imported",
    }
    assert {name: found[0][name] for name in known} == known
    assert [row["verdict"] for row in found] == ["worse", "worse"]
    assert rows(engine, "SELECT * FROM speedup") == []


def test_failures_of_accuracy(engine: Engine) -> None:
    """An arm that gave no numbers is in failures with its data; the other one is in accuracy; a
    later answer clears it.
    """
    job = a_job(keep_rates=(0.3, 0.5), kind="accuracy")
    sweep = submit_sweep(engine, NewSweep("sweep", "text", "?"), job.comparisons(), [])
    failure = Failure(arm=1, reason="not_a_number", message="logits are not finite")
    keep(engine, an_evaluation(job, losses=(0, 0), failures=[failure]))
    (failed,) = rows(engine, "SELECT reason, kind, data, params FROM failures")
    assert tuple(failed.values()) == (
        "not_a_number",
        "accuracy",
        "digits",
        '{"keep_rate":0.3,"layers":[3,6,9]}',
    )
    assert len(rows(engine, "SELECT * FROM accuracy")) == 1
    state = queue.progress(engine, sweep)
    assert (state.comparisons, state.measured, state.failed) == (2, 1, 1)
    keep(engine, an_evaluation(job, losses=(0, 0), ended_at=1_790_000_100.0))
    assert rows(engine, "SELECT * FROM failures") == []
    (listed,) = queries.sweep_summaries(engine)
    assert (listed["measured"], listed["failures"]) == (2, 0)


def test_silence_is_an_error(engine: Engine) -> None:
    """An accuracy outcome without results of an arm is a failure that is no answer."""
    outcome = an_evaluation(a_job(kind="accuracy")).model_copy(update={"predictions": None})
    keep(engine, outcome)
    (failed,) = rows(engine, "SELECT reason, message FROM failures")
    assert failed["reason"] == "error"
    assert "neither predictions nor a failure for arm 1" in failed["message"]


def test_an_evaluation_that_contradicts_itself_is_refused(engine: Engine) -> None:
    """Arrays of another length than the images are a contradiction, and nothing of the outcome is
    stored.
    """
    outcome = an_evaluation(a_job(kind="accuracy"))
    assert outcome.predictions is not None
    wrong = outcome.predictions.model_copy(update={"images": 7})
    with pytest.raises(StoreError, match="labels has 1000 values for 7 images"):
        keep(engine, outcome.model_copy(update={"predictions": wrong}))
    assert rows(engine, "SELECT * FROM attempt") == []


def test_most_images_right_and_newest_count(engine: Engine) -> None:
    """Attempts are not pooled: of those that no flag marks as wrong the one with most images
    counts, among equals the newest.
    """
    job = a_job(kind="accuracy")
    keep(engine, an_evaluation(job, images=3000, flags=["token_trace_mismatch"]))
    assert rows(engine, "SELECT images, flags FROM accuracy") == [
        {"images": 3000, "flags": "token_trace_mismatch"}
    ]
    keep(engine, an_evaluation(job, images=2000, ended_at=1_790_000_100.0))
    keep(engine, an_evaluation(job, images=2000, seed=9, losses=(0.5,), ended_at=1_790_000_200.0))
    keep(engine, an_evaluation(job, images=500, ended_at=1_790_000_300.0))
    (row,) = rows(engine, "SELECT images, flags, verdict, measured_at, top1_drop FROM accuracy")
    assert (row["images"], row["flags"], row["measured_at"]) == (
        2000,
        "",
        "2026-09-21T14:16:40.000Z",
    )
    assert row["top1_drop"] > 30
    keep(engine, an_evaluation(job, images=2500, flags=["unreadable_images"]))
    assert rows(engine, "SELECT images, flags FROM accuracy") == [
        {"images": 2500, "flags": "unreadable_images"}
    ]


def test_reanalyse_rebuilds_accuracy(engine: Engine) -> None:
    """Derived rows that were lost or spoilt come back from the evaluations, beside those of
    latency.
    """
    keep(engine, an_evaluation(a_job(keep_rates=(0.3, 0.5), kind="accuracy"), losses=(0.1, 0.0)))
    keep(engine, an_outcome(a_job()))
    before = rows(engine, "SELECT * FROM accuracy ORDER BY 1")
    with writing(engine) as connection:
        connection.execute(text("UPDATE effect_row SET effect = 7, analysis_version = 0"))
    assert reanalyse(engine) == 3
    assert rows(engine, "SELECT * FROM accuracy ORDER BY 1") == before
    assert len(rows(engine, "SELECT * FROM speedup")) == 1


@pytest.mark.parametrize(
    ("made", "seen", "requested", "expected"),
    [
        (None, 400, None, True),
        (None, 400, 100, True),
        (100, 100, None, False),
        (100, 100, 200, False),
        (200, 200, 100, True),
        (1000, 400, 2000, True),  # there are no more than 400
        (1000, 400, None, True),
    ],
)
def test_answered(
    *, engine: Engine, made: int | None, seen: int, requested: int | None, expected: bool
) -> None:
    """As many images as are requested answer a question, or all there are."""
    outcome = an_evaluation(a_job(kind="accuracy", protocol=Protocol(images=made)), images=seen)
    keep(engine, outcome)
    (comparison,) = outcome.job.comparison_ids()
    found = answers(
        engine, {comparison: Protocol(images=requested)}, [outcome.environment.environment_id]
    ).answered
    assert found == ({(comparison, 0)} if expected else set())


@pytest.mark.parametrize(("requested", "expected"), [(100, False), (1000, True), (None, True)])
def test_a_time_out_answers_for_as_many_images(
    *, engine: Engine, requested: int | None, expected: bool
) -> None:
    """Fewer images may be done in the same time, so they are tried."""
    failure = Failure(arm=None, reason="timeout", message="too slow")
    outcome = an_evaluation(
        a_job(kind="accuracy", protocol=Protocol(images=1000)), failures=[failure]
    )
    keep(engine, outcome)
    (comparison,) = outcome.job.comparison_ids()
    found = answers(
        engine, {comparison: Protocol(images=requested)}, [outcome.environment.environment_id]
    ).answered
    assert found == ({(comparison, 0)} if expected else set())


def test_a_shared_job_takes_the_larger_number_of_images(engine: Engine) -> None:
    """Two sweeps that wait for one evaluation get as many images as either requests; all is
    most.
    """
    for number, (name, images) in enumerate((("a", 100), ("b", 500), ("c", None), ("d", 50))):
        job = a_job(kind="accuracy", protocol=Protocol(images=images))
        submit_sweep(engine, NewSweep(name, "text", "?"), job.comparisons(), [job])
        (waiting,) = rows(engine, "SELECT payload FROM job")
        assert (
            Job.model_validate_json(waiting["payload"]).protocol.images
            == (100, 500, None, None)[number]
        )
