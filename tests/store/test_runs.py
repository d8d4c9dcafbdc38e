"""How runs go: the time left, failures by class, and the health of environments."""

import pytest
from sqlalchemy import Engine

from store.read.runs import failure_classes, health, run_progress, seconds_left
from store.rows.owners import owner
from store.write.queue import claim
from store.write.record import record
from sweeps.model.outcome import Failure
from tests.store.conftest import a_job, an_outcome, keep, submit

FAILED = Failure(arm=1, reason="error", message="[a](http://b) broke", detail="Traceback: here")


@pytest.fixture
def half(engine: Engine) -> Engine:
    """A store with a sweep of five jobs: two ended after 10 s each, one with a failure, and one
    runs.
    """
    row = submit(engine, [a_job(size, (0.5, 0.7)) for size in (64, 96, 128, 160, 192)])
    for number, queued in enumerate(claim(engine, row, owner=owner(), limit=2)):
        outcome = an_outcome(
            queued.job,
            speedups=(1.5, 1.2),
            ended_at=1.79e9 + 100 * number,
            flags=["thermal_slowdown"],
            failures=[FAILED] * number,
        )
        record(engine, queued.row, owner(), outcome)
    claim(engine, row, owner=owner(), limit=1)
    return engine


def test_the_time_left_is_that_of_jobs_like_those_before(half: Engine) -> None:
    """One job was done in 10 s, another failed: three are left, one after the other."""
    (found,) = run_progress(half, now=1.79e9)
    assert found[:5] == ("sweep", "cpu", 2, 1, 2)
    assert found.left_s == pytest.approx(30)
    (found,) = run_progress(half)
    assert found.left_s is not None
    # what the running job has had since it was queued is taken off, at most all of it
    assert 20 <= found.left_s < 30
    (late,) = run_progress(half, now=1e12)
    assert late.left_s == pytest.approx(20)
    assert seconds_left(half, 1, now=1e12) == late.left_s
    assert seconds_left(half, 1, now=1e12, starting=1) == pytest.approx(10)
    assert found.heard_at is not None
    assert found.owner == owner()
    assert found.began_at == pytest.approx(found.heard_at, abs=60)
    labels = [f"deit_tiny_patch16_224 {size} px, batch 1, cpu" for size in (64, 96)]
    assert [line.job for line in found.visits] == labels
    assert [found.stale(found.heard_at + silent) for silent in (59, 61)] == [False, True]
    assert found.silent_s(found.heard_at + 500) == 500


def test_nothing_runs_where_all_is_done(engine: Engine) -> None:
    """A sweep without waiting or running jobs is not in progress."""
    keep(engine, an_outcome(a_job()))
    assert run_progress(engine) == []


def test_failures_and_health(half: Engine) -> None:
    """Each class of failures has its newest log and names its comparisons. An environment on a host
    has its attempts; throttling quarantines.
    """
    (found,) = failure_classes(half, "sweep")
    assert found[:4] == ("error", FAILED.message, 1, "latency")
    assert (found.detail, found.host, found.at) == (FAILED.detail, "here", 1.79e9 + 100)
    (named,) = found.examples
    assert (named["method"], named["image_size"]) == ("topk", 96)
    (seen,) = health(half)
    assert (seen.host, seen.attempts, seen.quarantined) == ("here", 2, 2)
    assert seen.flags == {"thermal_slowdown": 2}
    assert (seen.seen_at, seen.calibrated_at, seen.gflops) == (1.79e9 + 100, None, None)
