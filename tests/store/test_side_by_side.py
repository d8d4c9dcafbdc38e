"""Sides of a store beside each other, and the history of a question: what is matched, what differs,
and since when.
"""

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.read.evidence.history import question_history
from store.read.evidence.side_by_side import BY, side_by_side, side_choices
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Job
from sweeps.model.outcome import Environment, Outcome
from tests.store.conftest import a_job, an_outcome

DAY = 86_400.0
START = 1_790_000_000.0
"""In the afternoon of 2026-09-21."""


def submit(engine: Engine, name: str, jobs: Sequence[Job]) -> None:
    requested = [
        (comparison, job.content_hashes) for job in jobs for comparison in job.comparisons()
    ]
    submit_sweep(engine, NewSweep(name, f"name: {name}", "Why?"), requested, [])


def process(outcome: Outcome, name: str) -> Outcome:
    return outcome.model_copy(update={"process": name})


def test_environments_are_compared_by_their_speed_ups(engine: Engine) -> None:
    """One arm is faster by a quarter in the other environment, one is not; what differs between
    them is listed.
    """
    old = Environment(device="cpu", device_name="a CPU", facts={"torch": "2.14", "cores": "2"})
    new = Environment(device="cpu", device_name="a CPU", facts={"torch": "2.15", "cores": "2"})
    job = a_job(keep_rates=(0.5, 0.7))
    outcomes = [
        an_outcome(job, speedups=(1.5, 1.2), environment=old, seed=1),
        an_outcome(job, speedups=(1.5 * 1.25, 1.2), environment=new, seed=2, ended_at=START + 100),
    ]
    record_imported(engine, outcomes)
    choices = [choice.value for choice in side_choices(engine, "environment")]
    assert choices == [f"{new.environment_id}:here", f"{old.environment_id}:here"]
    found = side_by_side(engine, "environment", *choices)
    assert (found.tested, found.only_a, found.only_b) == (2, 0, 0)
    clear, other = found.rows
    assert (clear.difference.found, other.difference.found) == ("different", "unclear")
    assert clear.difference.low is not None
    assert clear.difference.high is not None
    assert clear.difference.low < 1.25 < clear.difference.high
    assert found.facts == [("torch", "2.15", "2.14")]
    assert found.differing == {"environment": (new.environment_id, old.environment_id)}
    assert found.versions == []


def test_sweeps_are_matched_by_question_or_by_all_else(engine: Engine) -> None:
    """A sweep at another dtype has no question in common: points match by all but the dtype. The
    same sweep has one answer.
    """
    single, half = a_job(64), a_job(64, dtype="bfloat16")
    other = a_job(96, dtype="bfloat16")
    submit(engine, "single", [single])
    submit(engine, "half", [half, other])
    record_imported(
        engine,
        [
            process(an_outcome(job, seed=number), str(number))
            for number, job in enumerate((single, half, other))
        ],
    )
    found = side_by_side(engine, "sweep", "single", "half")
    assert found.differing == {"dtype": ("float32", "bfloat16")}
    assert [row.a["image_size"] for row in found.rows] == [64]
    assert (found.only_a, found.only_b) == (0, 1)
    same = side_by_side(engine, "sweep", "half", "half")
    assert {row.difference.found for row in same.rows} == {"one answer"}
    assert same.tested == 0


def test_revisions_with_another_version_of_a_method(engine: Engine) -> None:
    """Both revisions answer one question by two comparisons; the version that differs is named."""
    before, after = a_job(version=1), a_job(version=2)
    submit(engine, "one", [before])
    requested = [(comparison, after.content_hashes) for comparison in after.comparisons()]
    submit_sweep(engine, NewSweep("one", "name: one\n# again", "Why?"), requested, [])
    record_imported(
        engine,
        [
            process(an_outcome(before), "a"),
            process(an_outcome(after, speedups=(2.0,), ended_at=START + 60), "b"),
        ],
    )
    assert [choice.value for choice in side_choices(engine, "revision")] == ["2:one", "1:one"]
    found = side_by_side(engine, "revision", "1:one", "2:one")
    assert found.versions == [("version of topk", "1", "2")]
    assert [row.difference.found for row in found.rows] == ["different"]
    (question,) = before.comparisons()
    history = question_history(engine, question.question_id)
    assert [(point.what, point.pairs) for point in history.points] == [
        ("answer", 40),
        ("attempt", 40),
    ] * 2
    assert len(history.versions) == 2
    assert set(history.versions.values()) == {"topk version 1", "topk version 2"}


def test_days_are_compared_by_their_own_attempts(engine: Engine) -> None:
    """The stored answer pools both days; each side is that of its day alone, and a question of one
    day is left out.
    """
    job, once = a_job(), a_job(64)
    outcomes = [
        process(an_outcome(job, speedups=(1.2,)), "a"),
        process(an_outcome(job, speedups=(1.6,), seed=1, ended_at=START + DAY), "b"),
        process(an_outcome(once, seed=2, ended_at=START + DAY), "c"),
    ]
    record_imported(engine, outcomes)
    assert [choice.value for choice in side_choices(engine, "date")] == ["2026-09-22", "2026-09-21"]
    found = side_by_side(engine, "date", "2026-09-21", "2026-09-22")
    (row,) = found.rows
    assert (row.a["rounds"], row.b["rounds"]) == (1, 1)
    assert (row.a["effect"], row.b["effect"]) == (
        pytest.approx(1.2, rel=0.01),
        pytest.approx(1.6, rel=0.01),
    )
    assert row.difference.found == "different"


def test_answers_of_one_process_are_not_independent(engine: Engine) -> None:
    """A process that ran over midnight measured both sides: no ratio has an interval, and the rule
    is that of two intervals.
    """
    job = a_job()
    record_imported(
        engine,
        [
            process(an_outcome(job), "a"),
            process(an_outcome(job, seed=1, ended_at=START + DAY), "a"),
        ],
    )
    (row,) = side_by_side(engine, "date", "2026-09-21", "2026-09-22").rows
    assert row.difference.found == "overlap"
    assert row.difference.low is None


def test_answers_without_a_verdict_are_not_tested(engine: Engine) -> None:
    """A quarantined side is listed, and takes no share of the level."""
    old, new = (
        Environment(device="cpu", device_name="a CPU", facts={"torch": version})
        for version in ("1", "2")
    )
    job = a_job()
    slowed = an_outcome(job, environment=new, flags=("thermal_slowdown",), ended_at=START + 5)
    record_imported(engine, [an_outcome(job, environment=old), slowed])
    found = side_by_side(
        engine, "environment", *(choice.value for choice in side_choices(engine, "environment"))
    )
    assert [row.difference.found for row in found.rows] == ["not comparable"]
    assert found.tested == 0


def test_unknown_sides_are_refused(engine: Engine) -> None:
    """With the sides that there are; an empty store has none."""
    for by in BY:
        assert side_choices(engine, by) == []
    submit(engine, "one", [a_job()])
    record_imported(engine, [an_outcome(a_job())])
    with pytest.raises(StoreError, match="no sweep is called two; there are one"):
        side_by_side(engine, "sweep", "one", "two")
    with pytest.raises(StoreError, match="no measured answer to question nothing"):
        question_history(engine, "nothing")


def test_a_history_by_another_metric_is_refused(engine: Engine) -> None:
    """The metrics that there are stand in the message."""
    job = a_job()
    record_imported(engine, [an_outcome(job)])
    with pytest.raises(StoreError, match="by tpot; it has answers by latency"):
        question_history(engine, job.comparisons()[0].question_id, "tpot")
