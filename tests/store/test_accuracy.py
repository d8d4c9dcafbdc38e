"""Accuracy in the store: a view that equals the statistics, and which evaluation counts."""

from sqlalchemy import Engine

from store.read import queries
from store.write import queue
from sweeps.model.job import Job, Protocol
from sweeps.model.outcome import Failure
from sweeps.stats.quality import TOP1_FLOOR, compare_predictions
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_evaluation, keep, submit, table


def test_the_view_equals_the_statistics(engine: Engine) -> None:
    """Every figure of the accuracy view is what `sweeps.stats.quality` computes from the
    predictions.
    """
    job = a_job(keep_rates=(0.3, 0.5), kind="accuracy", corruption="jpeg", severity=3)
    outcome = an_evaluation(job, losses=(0.2, 0.01), images=4000, unreadable=["x", "y"])
    keep(engine, outcome)
    assert outcome.predictions is not None
    found = rows(engine, "SELECT * FROM accuracy ORDER BY params")
    counts = ("images", "only_baseline_correct", "only_arm_correct", "mcnemar_p")
    drop = ("top1_drop", "top1_drop_low", "top1_drop_high", *counts)
    for arm, row in enumerate(found, start=1):
        agreement = compare_predictions(outcome.predictions, 0, arm)
        assert agreement.kl is not None
        assert agreement.margin_change is not None
        expected = {
            "top1_baseline": agreement.top1_baseline.value,
            "top1": agreement.top1.value,
            "top5_baseline": agreement.top5_baseline,
            "top5": agreement.top5,
            **dict(zip(drop, agreement.drop, strict=True)),
            **dict(zip(("kl", "kl_low", "kl_high"), agreement.kl[:3], strict=True)),
            "margin_change": agreement.margin_change.value,
            "margin_change_high": agreement.margin_change.high,
            "margin_change_p05": agreement.margin_change_p05,
            "verdict": agreement.verdict(),
            "floor": TOP1_FLOOR,
            "kind": "accuracy",
            "data": "digits",
            "corruption": "jpeg",
            "severity": 3,
            "unreadable": 2,
            "source": "imported",
        }
        assert {name: row[name] for name in expected} == expected
    assert [row["verdict"] for row in found] == ["worse", "worse"]
    assert rows(engine, "SELECT * FROM speedup") == []


def test_failures_of_accuracy_are_counted(engine: Engine) -> None:
    """An arm that gave no numbers is in failures with its data; a later answer clears it."""
    job = a_job(keep_rates=(0.3, 0.5), kind="accuracy")
    sweep = submit(engine, [job])
    failure = Failure(arm=1, reason="not_a_number", message="logits are not finite")
    keep(engine, an_evaluation(job, losses=(0, 0), failures=[failure]))
    assert table(engine, "SELECT reason, data FROM failures") == [("not_a_number", "digits")]
    assert queue.progress(engine, sweep)[2:] == (2, 1, 1)
    keep(engine, an_evaluation(job, losses=(0, 0), ended_at=1_790_000_100.0))
    (listed,) = queries.sweep_summaries(engine)
    assert (listed["measured"], listed["failures"]) == (2, 0)


def test_most_images_right_and_newest_count(engine: Engine) -> None:
    """Attempts are not pooled: of those that no flag marks as wrong the one with most images
    counts, among equals the newest.
    """
    job, shown = a_job(kind="accuracy"), "SELECT images, flags FROM accuracy"
    keep(engine, an_evaluation(job, images=3000, flags=["token_trace_mismatch"]))
    assert table(engine, shown) == [(3000, "token_trace_mismatch")]
    keep(engine, an_evaluation(job, images=2000, ended_at=1_790_000_100.0))
    keep(engine, an_evaluation(job, images=2000, seed=9, losses=(0.5,), ended_at=1_790_000_200.0))
    keep(engine, an_evaluation(job, images=500, ended_at=1_790_000_300.0))
    assert table(engine, shown) == [(2000, "")]
    ((at, drop),) = table(engine, "SELECT measured_at, top1_drop FROM accuracy")
    assert (at, drop > 30) == ("2026-09-21T14:16:40.000Z", True)
    keep(engine, an_evaluation(job, images=2500, flags=["unreadable_images"]))
    assert table(engine, shown) == [(2500, "unreadable_images")]


def test_a_shared_job_takes_the_larger_number_of_images(engine: Engine) -> None:
    """Two sweeps that wait for one evaluation get as many images as either requests; all is
    most.
    """
    for name, images, most in (
        ("a", 100, 100),
        ("b", 500, 500),
        ("c", None, None),
        ("d", 50, None),
    ):
        submit(engine, [a_job(kind="accuracy", protocol=Protocol(images=images))], name)
        ((waiting,),) = table(engine, "SELECT payload FROM job")
        assert Job.model_validate_json(waiting).protocol.images == most
