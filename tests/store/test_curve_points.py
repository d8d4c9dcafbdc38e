"""Which points of a curve count: noisy ones do, wrong ones never, those without effect lie off it;
stale answers give way.
"""

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from store.read.answers import answers
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Protocol
from sweeps.model.outcome import Outcome
from tests.fixtures.sql_rows import rows
from tests.store.conftest import CPU, a_job, an_outcome, keep

SIZES = (64, 96, 128, 192)
COLUMNS = "verdict, points, x_low, x_high, worst_loss, why, left_out"
CURVE = f"SELECT {COLUMNS} FROM break_even WHERE axis = 'tokens'"


def flagged(outcome: Outcome, flag: str) -> Outcome:
    """The outcome with a flag of its other arm."""
    first, other = outcome.arms
    return outcome.model_copy(update={"arms": (first, other.model_copy(update={"flags": (flag,)}))})


def stored(engine: Engine, speedups: Sequence[float], flags: Sequence[str]) -> dict[str, object]:
    """The curve along the tokens of four sizes, each with a flag of its arm or none."""
    jobs = [a_job(size) for size in SIZES]
    submit_sweep(engine, NewSweep("sweep", "text", "?"), jobs, [])
    for job, truth, flag in zip(jobs, speedups, flags, strict=True):
        outcome = an_outcome(job, speedups=(truth,))
        keep(engine, flagged(outcome, flag) if flag else outcome)
    (found,) = rows(engine, CURVE)
    return found


def test_a_noisy_point_counts(engine: Engine) -> None:
    """A busy neighbour or a warm-up that did not converge hides no point of a curve."""
    flags = ("contended", "warmup_not_converged", "low_priority", "")
    found = stored(engine, (1.2, 1.3, 1.4, 1.5), flags)
    assert (found["verdict"], found["points"]) == ("always", 4)
    assert found["why"] == "Along tokens: faster at 16 to 144."


def test_a_wrong_point_never_counts(engine: Engine) -> None:
    """It is left out and counted in words, even where the curve has no other points."""
    found = stored(engine, (0.7, 1.3, 1.4, 1.5), ("token_trace_mismatch", "", "", ""))
    assert (found["verdict"], found["points"]) == ("always", 3)
    assert found["why"] == "Along tokens: faster at 36 to 144."
    assert found["left_out"] == "16"


def test_a_curve_of_wrong_points_is_unclear(engine: Engine) -> None:
    """There is nothing to claim anything from."""
    found = stored(engine, (1.2, 1.3, 1.4, 1.5), ("thermal_slowdown",) * 4)
    assert (found["verdict"], found["points"]) == ("unclear", 0)
    assert found["why"] == "No points were measured."
    assert found["left_out"] == "16, 36, 64, 144"


@pytest.mark.parametrize(
    ("flags", "verdict", "points"),
    [(("no_effect",) * 4, "no_effect", 4), (("no_effect", "no_effect", "", ""), "always", 2)],
)
def test_points_without_effect_lie_off_the_curve(
    *, engine: Engine, flags: Sequence[str], verdict: str, points: int
) -> None:
    """A method that removes nothing at a size neither pays nor loses there; one that never does has
    no effect.
    """
    found = stored(engine, (1.0, 1.0, 1.4, 1.5), flags)
    assert (found["verdict"], found["points"]) == (verdict, points)
    assert "removes nothing at 16 to" in str(found["why"])


def test_answers_by_another_protocol_version_are_stale(engine: Engine) -> None:
    """What was measured in the way of version 1 is no answer for version 2, is never pooled with
    it, and gives way to it.
    """
    old = a_job()
    new = old.model_copy(update={"protocol_version": 2})
    keep(engine, an_outcome(old, speedups=(1.2,)))
    requested = dict.fromkeys((*old.comparison_ids(), *new.comparison_ids()), Protocol())
    assert len(requested) == 2
    assert answers(engine, requested, [CPU.environment_id]).answered == {
        (old.comparison_ids()[0], 0)
    }
    keep(engine, an_outcome(new, speedups=(1.5,), ended_at=1_790_000_100.0))
    (row,) = rows(engine, "SELECT speedup, pairs, question_id FROM speedup")
    assert row["speedup"] == pytest.approx(1.5, rel=0.02)
    assert row["pairs"] == 40
    assert row["question_id"] == old.comparisons()[0].question_id
