"""Sides of a store beside each other, and the history of a question: what is matched, what differs,
and since when.
"""

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.read.evidence.history import question_history
from store.read.evidence.side_by_side import BY, By, SideBySide, side_by_side, side_choices
from store.write.record import record_imported
from sweeps.model.job import Job
from sweeps.model.outcome import Environment
from tests.store.conftest import a_job, an_outcome, submit

START = 1_790_000_000.0
"""In the afternoon of 2026-09-21."""
TOMORROW = START + 86_400.0
DAYS = ("2026-09-21", "2026-09-22")
OLD, NEW = (
    Environment(device="cpu", device_name="a CPU", facts={"torch": torch, "cores": "2"})
    for torch in ("2.14", "2.15")
)


def keep(engine: Engine, job: Job, process: str, ended_at: float = START, **more: object) -> None:
    """Record what a process measured of a job."""
    outcome = an_outcome(job, ended_at=ended_at, **more)
    record_imported(engine, [outcome.model_copy(update={"process": process})])


def values(engine: Engine, by: By) -> list[str]:
    return [choice.value for choice in side_choices(engine, by)]


def differences(found: SideBySide) -> list[str]:
    return [row.difference.found for row in found.rows]


def test_environments_are_compared_by_their_speed_ups(engine: Engine) -> None:
    """One arm is faster by a quarter in the other environment, one is not; what differs between
    them is listed.
    """
    job = a_job(keep_rates=(0.5, 0.7))
    keep(engine, job, "a", speedups=(1.5, 1.2), environment=OLD, seed=1)
    keep(engine, job, "b", START + 100, speedups=(1.5 * 1.25, 1.2), environment=NEW, seed=2)
    choices = values(engine, "environment")
    assert choices == [f"{each.environment_id}:here" for each in (NEW, OLD)]
    found = side_by_side(engine, "environment", *choices)
    assert (found.tested, found.only_a, found.only_b) == (2, 0, 0)
    assert differences(found) == ["different", "unclear"]
    clear = found.rows[0].difference
    assert clear.low is not None
    assert clear.high is not None
    assert clear.low < 1.25 < clear.high
    assert found.facts == [("torch", "2.15", "2.14")]
    assert found.differing == {"environment": (NEW.environment_id, OLD.environment_id)}
    assert found.versions == []


def test_answers_without_a_verdict_are_not_tested(engine: Engine) -> None:
    """A quarantined side is listed, and takes no share of the level."""
    keep(engine, a_job(), "a", environment=OLD)
    keep(engine, a_job(), "b", environment=NEW, flags=("thermal_slowdown",))
    found = side_by_side(engine, "environment", *values(engine, "environment"))
    assert (differences(found), found.tested) == (["not comparable"], 0)


def test_sweeps_are_matched_by_question_or_by_all_else(engine: Engine) -> None:
    """A sweep at another dtype has no question in common: points match by all but the dtype. The
    same sweep has one answer.
    """
    single, half = a_job(64), a_job(64, dtype="bfloat16")
    other = a_job(96, dtype="bfloat16")
    submit(engine, [single], "single")
    submit(engine, [half, other], "half")
    for number, job in enumerate((single, half, other)):
        keep(engine, job, str(number), seed=number)
    found = side_by_side(engine, "sweep", "single", "half")
    assert found.differing == {"dtype": ("float32", "bfloat16")}
    assert [row.a["image_size"] for row in found.rows] == [64]
    assert (found.only_a, found.only_b) == (0, 1)
    same = side_by_side(engine, "sweep", "half", "half")
    assert (set(differences(same)), same.tested) == ({"one answer"}, 0)


def test_revisions_with_another_version_of_a_method(engine: Engine) -> None:
    """Both revisions answer one question by two comparisons; the version that differs is named."""
    before, after = a_job(version=1), a_job(version=2)
    submit(engine, [before], "one")
    submit(engine, [after], "one", "again")
    keep(engine, before, "a")
    keep(engine, after, "b", START + 60, speedups=(2.0,))
    assert values(engine, "revision") == ["2:one", "1:one"]
    found = side_by_side(engine, "revision", "1:one", "2:one")
    assert found.versions == [("version of topk", "1", "2")]
    assert differences(found) == ["different"]
    (question,) = before.comparisons()
    history = question_history(engine, question.question_id)
    points = [(point.what, point.pairs) for point in history.points]
    assert points == [("answer", 40), ("attempt", 40)] * 2
    assert sorted(history.versions.values()) == ["topk version 1", "topk version 2"]
    with pytest.raises(StoreError, match="by tpot; it has answers by latency"):
        question_history(engine, question.question_id, "tpot")


def test_days_are_compared_by_their_own_attempts(engine: Engine) -> None:
    """The stored answer pools both days; each side is that of its day alone, and a question of one
    day is left out. A process that ran over midnight measured both sides: no ratio has an interval,
    and the rule is that of two intervals.
    """
    keep(engine, a_job(), "a", speedups=(1.2,))
    keep(engine, a_job(), "b", TOMORROW, speedups=(1.6,), seed=1)
    keep(engine, a_job(64), "c", TOMORROW, seed=2)
    assert values(engine, "date") == [*reversed(DAYS)]
    (row,) = side_by_side(engine, "date", *DAYS).rows
    assert (row.a["rounds"], row.b["rounds"], row.difference.found) == (1, 1, "different")
    assert (row.a["effect"], row.b["effect"]) == pytest.approx((1.2, 1.6), rel=0.01)
    keep(engine, a_job(64), "c", seed=3)
    by_size = {
        row.a["image_size"]: row.difference for row in side_by_side(engine, "date", *DAYS).rows
    }
    assert (by_size[64].found, by_size[64].low) == ("overlap", None)


def test_unknown_sides_are_refused(engine: Engine) -> None:
    """With the sides that there are; an empty store has none."""
    assert [side_choices(engine, by) for by in BY] == [[]] * len(BY)
    submit(engine, [a_job()], "one")
    with pytest.raises(StoreError, match="no sweep is called two; there are one"):
        side_by_side(engine, "sweep", "one", "two")
    with pytest.raises(StoreError, match="no measured answer to question nothing"):
        question_history(engine, "nothing")
