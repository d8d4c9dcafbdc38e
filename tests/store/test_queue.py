"""The queue: submitting, claiming under a lease, giving back, splitting, and recovering from
dispatchers that died; submitted sweeps, and how runs go.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, text, update

from store.errors import StoreError
from store.read.runs import failure_classes, health, run_progress, seconds_left
from store.rows import owners
from store.rows.placement import Capacity, Place
from store.rows.transactions import writing
from store.schema.tables import SUBMISSION
from store.write import queue, submissions
from store.write.queue import QueuedJob
from store.write.record import record
from store.write.submission import newest_attempt, submit_sweep
from sweeps.model.job import Job, Protocol
from sweeps.model.outcome import Failure
from tests.store.conftest import (
    CLAIM,
    a_job,
    a_sweep,
    an_outcome,
    check_order_of_submissions,
    queued,
    states,
    submit,
    table,
)

ME = owners.owner()
CRASH = Failure(arm=None, reason="crash", message="signal 11")


def claimed(engine: Engine, sweep: int, limit: int = 9) -> list[QueuedJob]:
    return queue.claim(engine, sweep, owner=ME, limit=limit)


def jobs_of(claims: list[QueuedJob]) -> list[Job]:
    return [each.job for each in claims]


def halves(job: Job) -> list[Job]:
    """The job in two parts: its first pair, and the others."""
    return [job.only(job.pairs[:1]), job.only(job.pairs[1:])]


def test_submit_and_claim(engine: Engine) -> None:
    """Jobs come out as they went in, oldest first, each once."""
    jobs = [a_job(size) for size in (32, 64, 96)]
    sweep = submit(engine, jobs)
    first, rest = claimed(engine, sweep, 2), claimed(engine, sweep, 2)
    assert jobs_of(first + rest) == jobs
    assert [each.attempts for each in first] == [0, 0]
    assert claimed(engine, sweep) == []
    assert queue.progress(engine, sweep).counts["running"] == 3


def test_claim_for_a_device(engine: Engine) -> None:
    """A dispatcher gets only jobs for the class of device that it has."""
    job, cuda = a_job(), a_job(device="cuda")
    sweep = submit(engine, [job, cuda])
    assert queue.waiting_devices(engine, sweep) == {"cpu", "cuda"}
    for device, own in (("cuda", cuda), ("cpu", job)):
        offer = Capacity(device, Place(f"environment of {device}", "here"))
        found = queue.claim(engine, sweep, owner=ME, offer=offer, limit=5)
        assert jobs_of(found) == [own]
    assert queue.waiting_devices(engine, sweep) == set()


def test_same_text_is_the_same_sweep(engine: Engine) -> None:
    """Submitting again queues nothing twice; another text is a new revision, which takes over."""
    first = submit(engine, [a_job(32), a_job(64)])
    assert submit(engine, [a_job(32), a_job(64)]) == first
    assert states(engine) == ["waiting", "waiting"]
    second = submit(engine, [a_job(64), a_job(96)], text="other text")
    assert second != first
    assert states(engine) == ["cancelled", "waiting", "waiting"]
    assert queue.progress(engine, second).counts["waiting"] == 2
    linked = "SELECT sweep, count(*) FROM sweep_comparison GROUP BY sweep"
    assert table(engine, linked) == [("sweep", 2)]


def test_two_sweeps_share_a_job(engine: Engine) -> None:
    """What two sweeps request is queued once, counted in both, and not cancelled when one of them
    changes; it is measured as precisely as the most demanding requires while it waits.
    """
    milder = a_job(32, protocol=Protocol(pairs_max=100, half_width=0.005))
    longer = a_job(32, protocol=Protocol(pairs_max=200, half_width=0.02, budget_s=20))
    one, two = (submit(engine, [job], job_id) for job, job_id in ((milder, "one"), (longer, "two")))
    assert states(engine) == ["waiting"]
    submit(engine, [a_job(64)], name="one", text="other")
    assert states(engine) == ["waiting", "waiting"]
    (own,) = claimed(engine, two)
    assert own.job.protocol == Protocol(pairs_max=200, half_width=0.005, budget_s=20)
    strict = a_job(32, protocol=Protocol(pairs_min=50, half_width=0.001))
    submit(engine, [strict], name="three")
    assert states(engine) == ["running", "waiting", "waiting"]
    record(engine, own.row, ME, an_outcome(own.job))
    assert queue.progress(engine, one).measured == queue.progress(engine, two).measured == 1


def test_a_job_twice_in_a_plan_is_queued_once(engine: Engine) -> None:
    """Equal jobs of one plan are one row, under the stricter of their protocols; a sweep may be
    stored before it is planned.
    """
    jobs = [a_job(protocol=Protocol(pairs_min=pairs)) for pairs in (10, 50)]
    sweep = submit_sweep(engine, a_sweep(), a_job().comparisons(), [])
    none = dict.fromkeys(queue.STATES, 0)
    assert queue.progress(engine, sweep) == queue.Progress("sweep", none, 1, 0, 0)
    (own,) = claimed(engine, submit(engine, jobs))
    assert own.job.protocol.pairs_min == 50
    with pytest.raises(StoreError, match="no sweep 5"):
        queue.progress(engine, 5)


def test_release(engine: Engine) -> None:
    """A job given back waits again; an outcome handed over with it is history that answers
    nothing.
    """
    sweep = submit(engine, [a_job()])
    for outcome in (None, an_outcome(a_job(), failures=[CRASH])):
        (own,) = claimed(engine, sweep)
        assert own.attempts == 0
        queue.release(engine, own.row, ME, outcome)
        assert queue.progress(engine, sweep).failed == 0
    (own,) = claimed(engine, sweep)
    assert own.attempts == 1
    record(engine, own.row, ME, an_outcome(own.job))
    history = "SELECT n, reason FROM attempt LEFT JOIN failure ON attempt = attempt.id ORDER BY n"
    assert table(engine, history) == [(1, "crash"), (2, None)]


def test_split(engine: Engine) -> None:
    """The parts of a split job wait in its place, and its history is kept; parts that lose a
    comparison, or request one twice, are refused, and the job stays with its owner.
    """
    sweep = submit(engine, [a_job(keep_rates=(0.3, 0.5, 0.7))])
    (whole,) = claimed(engine, sweep)
    parts = halves(whole.job)
    for wrong in (parts[:1], [whole.job, whole.job]):
        with pytest.raises(StoreError, match="must request each of its 3 comparisons once"):
            queue.split(engine, whole.row, ME, wrong)
    assert states(engine) == ["running"]
    crash = an_outcome(whole.job, speedups=(1, 1, 1), failures=[CRASH])
    children = queue.split(engine, whole.row, ME, parts, crash)
    assert states(engine) == ["split", "waiting", "waiting"]
    found = claimed(engine, sweep)
    assert [child.row for child in found] == children
    assert jobs_of(found) == parts
    assert table(engine, "SELECT parent FROM job ORDER BY id") == [(None,), *2 * [(whole.row,)]]
    assert table(engine, "SELECT count(*) FROM attempt") == [(1,)]


def test_stale_plan_after_a_split(engine: Engine) -> None:
    """A new plan replaces waiting parts of the old one, so that nothing is measured twice."""
    job = a_job(keep_rates=(0.3, 0.5))
    sweep = submit(engine, [job])
    (whole,) = claimed(engine, sweep)
    queue.split(engine, whole.row, ME, halves(job))
    submit(engine, [job])
    assert jobs_of(claimed(engine, sweep)) == [job]
    assert queue.progress(engine, sweep).counts["split"] == 0


def test_plan_made_before_a_split_queues_only_what_no_part_measures(engine: Engine) -> None:
    """A dispatcher plans, another splits the job and measures a half: the plan queues the other
    half alone, which waits already.
    """
    job = a_job(keep_rates=(0.3, 0.5))
    sweep = submit(engine, [job])
    (whole,) = claimed(engine, sweep)
    since = newest_attempt(engine)
    running, _ = queue.split(engine, whole.row, ME, halves(job))
    assert [each.row for each in claimed(engine, sweep, 1)] == [running]
    assert submit(engine, [job], since=since) == sweep
    assert states(engine) == ["split", "running", "waiting"]
    assert jobs_of(claimed(engine, sweep)) == halves(job)[1:]


def test_plan_waits_for_a_running_part_that_it_requests(engine: Engine) -> None:
    """A job that measures a pair of another sweep's plan is linked to that sweep; under a milder
    protocol it does not count.
    """
    job = a_job(keep_rates=(0.3, 0.5), protocol=Protocol(pairs_min=30))
    one = submit(engine, halves(job)[:1], name="one")
    assert len(queue.claim(engine, one, owner="elsewhere:1:1")) == 1
    two = submit(engine, [job], name="two")
    counts = queue.progress(engine, two).counts
    assert (counts["running"], counts["waiting"]) == (1, 1)
    assert [holder.jobs for holder in queue.held(engine, two)] == [1]
    strict = job.model_copy(update={"protocol": Protocol(pairs_min=60)})
    assert jobs_of(claimed(engine, submit(engine, [strict], name="three"))) == [strict]


def test_waiting_parts_that_another_sweep_waits_for_are_shared(engine: Engine) -> None:
    """Two sweeps wait for a job that is split; a plan made before the split shares its parts and
    queues nothing.
    """
    job = a_job(keep_rates=(0.3, 0.5))
    one, two = (submit(engine, [job], name=name) for name in ("one", "two"))
    (whole,) = claimed(engine, one)
    queue.split(engine, whole.row, ME, halves(job))
    submit(engine, [job], name="two")
    assert states(engine) == ["split", "waiting", "waiting"]
    assert queue.progress(engine, two).counts["waiting"] == 2


def test_what_was_answered_after_the_plan_is_not_queued(engine: Engine) -> None:
    """A job that was done between plan and submission is left out; what was answered before the
    plan is queued, and so is an unforeseen error, which is no answer.
    """
    job = a_job(keep_rates=(0.3, 0.5))
    sweep, since = submit(engine, halves(job)[:1]), newest_attempt(engine)
    (first,) = claimed(engine, sweep)
    record(engine, first.row, ME, an_outcome(first.job))
    submit(engine, [job], since=since)
    (rest,) = claimed(engine, sweep)
    assert [rest.job] == halves(job)[1:]
    failure = Failure(arm=None, reason="error", message="no such file")
    record(engine, rest.row, ME, an_outcome(rest.job, failures=[failure]))
    submit(engine, [job], since=since)
    (rest,) = claimed(engine, sweep)
    record(engine, rest.row, ME, an_outcome(rest.job))
    submit(engine, [job], since=since)
    assert queue.progress(engine, sweep).unfinished == 0
    submit(engine, [job], since=newest_attempt(engine))
    assert jobs_of(claimed(engine, sweep)) == [job]


def test_large_sweeps_take_no_more_statements(engine: Engine) -> None:
    """Submitting, and submitting again with nothing new, takes as many statements for many jobs as
    for one.
    """
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))

    def counts(name: str, jobs: list[Job], plan: list[Job]) -> int:
        statements.clear()
        submit_sweep(engine, a_sweep(name), jobs, plan)
        return len(statements)

    many = [a_job(16 * size, batch_size=batch) for size in range(1, 9) for batch in range(2, 10)]
    one = [a_job(32)]
    assert counts("one", one, one) == counts("many", many, many)
    assert states(engine) == ["waiting"] * (1 + len(many))
    assert counts("one", one, []) == counts("many", many, [])
    assert set(states(engine)) == {"cancelled"}


def grow_old(engine: Engine) -> None:
    """Let all leases be older than they may be."""
    with writing(engine) as connection:
        old = text("UPDATE job SET renewed_at = renewed_at - :s")
        connection.execute(old, {"s": owners.LEASE_S + 1})


def test_lease(engine: Engine) -> None:
    """Only the owner of a running job may end its lease, with an outcome of that job."""
    sweep = submit(engine, [a_job(32)])
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    for end_lease in (
        lambda: record(engine, claimed.row, "other:1:1", an_outcome(claimed.job)),
        lambda: queue.release(engine, claimed.row, "other:1:1"),
        lambda: queue.split(engine, claimed.row, "other:1:1", [claimed.job]),
    ):
        with pytest.raises(
            StoreError, match=f"held by {ME}; it is no longer running for other:1:1"
        ):
            end_lease()
    with pytest.raises(StoreError, match="has the identity"):
        record(engine, claimed.row, ME, an_outcome(a_job(64)))
    assert states(engine) == ["running"]
    queue.release(engine, claimed.row, ME)
    with pytest.raises(StoreError, match="is waiting; it is no longer running for"):
        record(engine, claimed.row, ME, an_outcome(claimed.job))
    with pytest.raises(StoreError, match="job 77 does not exist"):
        queue.release(engine, 77, ME)


def test_recover_from_a_process_that_ended(engine: Engine, path: Path) -> None:
    """Jobs of a process that ended wait again, as do those of a process that began at another time
    and had the number of one that runs; those of a running one stay with it.
    """
    sweep = submit(engine, [a_job(32), a_job(64), a_job(96)])
    program = (
        "from store.open import engine; from store.rows import owners; from store.write import queue;"
        f"queue.claim(engine.connect({str(path)!r}), {sweep}, owner=owners.owner())"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    host = ME.partition(":")[0]
    for own in (f"{host}:{os.getpid()}:1", ME):
        queue.claim(engine, sweep, owner=own)
    assert states(engine) == ["running"] * 3
    assert queue.recover(engine) == 2
    assert states(engine) == ["waiting", "waiting", "running"]


def test_owners_on_other_hosts_keep_their_jobs_while_they_renew(engine: Engine) -> None:
    """An owner elsewhere loses its jobs only when its lease is old; nobody renews those of
    another.
    """
    sweep = submit(engine, [a_job(32), a_job(64)])
    for own in ("dead:1:1", "living:1:1"):
        queue.claim(engine, sweep, owner=own)
    assert queue.recover(engine) == 0
    grow_old(engine)
    assert queue.renew(engine, "living:1:1") == 1
    assert queue.recover(engine) == 1
    assert states(engine) == ["waiting", "running"]
    grow_old(engine)
    assert queue.recover(engine) == 1
    assert queue.renew(engine, "living:1:1") == 0


def test_leases_hold_whatever_clock_their_host_has(engine: Engine, path: Path) -> None:
    """A host whose clock is two hours off keeps the job that it has just taken, and takes none that
    another one holds.
    """
    sweep = submit(engine, [a_job(32), a_job(64)])
    queue.claim(engine, sweep, owner="here:1:1")
    taken = [sys.executable, "-c", CLAIM, str(path), str(sweep), "7200"]
    done = subprocess.run(taken, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0"]
    assert queue.recover(engine) == 0
    assert [holder.silent_s < owners.LEASE_S for holder in queue.held(engine, sweep)] == [True] * 2


def test_order(engine: Engine) -> None:
    check_order_of_submissions(engine)


def test_what_may_become_of_one(engine: Engine) -> None:
    """Open ones are paused, resumed and cancelled; ended ones are not, and each refusal names the
    state. Only a queued one of a larger priority is seen as more urgent, and only the end of a long
    log is kept.
    """
    (number,) = queued(engine, 3)
    assert [submissions.waits_above(engine, priority) for priority in (2, 3)] == [True, False]
    with pytest.raises(StoreError, match=rf"submission {number} \(sweep 0\) is queued"):
        submissions.change_state(engine, number, "queued")
    assert submissions.change_state(engine, number, "paused", "by me").why == "by me"
    assert not submissions.waits_above(engine, 2)
    assert submissions.take_next(engine) is None
    submissions.change_state(engine, number, "queued")
    assert submissions.take_next(engine) is not None
    submissions.keep_running(engine, number, "x" * 30_000 + "the end")
    log = submissions.find_submission(engine, number).log
    assert (len(log), log[-7:]) == (submissions.LOG_CHARACTERS, "the end")
    submissions.end_run(engine, number, "answered", "", "all of it")
    assert submissions.find_submission(engine, number).log == "all of it"
    for wish in ("paused", "queued", "cancelled"):
        with pytest.raises(StoreError, match="is answered"):
            submissions.change_state(engine, number, wish)
    with pytest.raises(StoreError, match="has no submission 99"):
        submissions.change_state(engine, 99, "paused")


@pytest.mark.parametrize("wish", ["cancelled", "paused"])
def test_a_running_one_is_stopped(engine: Engine, wish: str) -> None:
    """Its server notices at its next sign of life, and how the run ends does not undo the wish."""
    (number,) = queued(engine, 0)
    submissions.take_next(engine)
    assert submissions.keep_running(engine, number, "so far")
    submissions.change_state(engine, number, wish)
    assert not submissions.keep_running(engine, number, "more")
    submissions.end_run(engine, number, "queued", "its server was stopped", "the end")
    found = submissions.find_submission(engine, number)
    assert (found.state, found.log) == (wish, "the end")


def test_one_of_a_dead_server_is_taken_again(engine: Engine) -> None:
    """A server that ended without a word loses its submission, one that lives does not."""
    number, other = queued(engine, 1, 0)
    assert submissions.take_next(engine) is not None
    assert submissions.take_next(engine) is not None
    assert submissions.take_next(engine) is None
    with engine.begin() as connection:
        ended = update(SUBMISSION).where(SUBMISSION.c.id == number)
        connection.execute(ended.values(owner="elsewhere:1:1", renewed_at=1.0))
    again = submissions.take_next(engine)
    assert again is not None
    assert again.id == number
    assert submissions.find_submission(engine, other).state == "running"


FAILED = Failure(arm=1, reason="error", message="[a](http://b) broke", detail="Traceback: here")


@pytest.fixture
def half(engine: Engine) -> Engine:
    """A store with a sweep of five jobs: two ended after 10 s each, one with a failure, and one
    runs.
    """
    row = submit(engine, [a_job(size, (0.5, 0.7)) for size in (64, 96, 128, 160, 192)])
    for number, each in enumerate(queue.claim(engine, row, owner=ME, limit=2)):
        outcome = an_outcome(
            each.job,
            speedups=(1.5, 1.2),
            ended_at=1.79e9 + 100 * number,
            flags=["thermal_slowdown"],
            failures=[FAILED] * number,
        )
        record(engine, each.row, ME, outcome)
    queue.claim(engine, row, owner=ME, limit=1)
    return engine


def test_the_time_left_is_that_of_jobs_like_those_before(half: Engine) -> None:
    """One job was done in 10 s, another failed: three are left, one after the other, of larger
    images.
    """
    (found,) = run_progress(half, now=1.79e9)
    assert found[:5] == ("sweep", "cpu", 2, 1, 2)
    assert found.left_s is not None
    assert 30 < (before_s := found.left_s) < 33
    (found,) = run_progress(half)
    assert found.left_s is not None
    # what the running job has had since it was queued is taken off, at most all of it
    assert 20 <= found.left_s < before_s
    (late,) = run_progress(half, now=1e12)
    assert late.left_s == pytest.approx(20, rel=0.1)
    assert seconds_left(half, 1, now=1e12) == late.left_s
    assert seconds_left(half, 1, now=1e12, starting=1) == pytest.approx(10, rel=0.1)
    assert found.heard_at is not None
    assert found.owner == ME
    assert found.began_at == pytest.approx(found.heard_at, abs=60)
    labels = [f"deit_tiny_patch16_224 {size} px, batch 1, cpu" for size in (64, 96)]
    assert [line.job for line in found.visits] == labels
    assert [found.stale(found.heard_at + silent) for silent in (59, 61)] == [False, True]
    assert found.silent_s(found.heard_at + 500) == 500


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
