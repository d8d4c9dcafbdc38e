"""The queue: submitting, claiming under a lease, giving back, splitting, and recovering from
dispatchers that died.
"""

import pytest
from sqlalchemy import Engine, event

from store.errors import StoreError
from store.rows import owners
from store.rows.placement import Capacity, Place
from store.write import queue
from store.write.queue import QueuedJob
from store.write.record import record
from store.write.submission import newest_attempt, submit_sweep
from sweeps.model.job import Job, Protocol
from sweeps.model.outcome import Failure
from tests.store.conftest import a_job, a_sweep, an_outcome, states, submit, table

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
