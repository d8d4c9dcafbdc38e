"""The queue: submitting, claiming under a lease, giving back, splitting, and recovering from
dispatchers that died.
"""

import pytest
from sqlalchemy import Engine, event, text

from store.errors import StoreError
from store.rows import owners
from store.rows.placement import Capacity, Place
from store.write import queue
from store.write.record import record
from store.write.submission import NewSweep, newest_attempt, submit_sweep
from sweeps.model.job import Job, Protocol
from sweeps.model.outcome import Failure
from tests.store.conftest import a_job, an_outcome, states, submit

ME = owners.owner()


def test_submit_and_claim(engine: Engine) -> None:
    """Jobs come out as they went in, oldest first, each once."""
    jobs = [a_job(size) for size in (32, 64, 96)]
    sweep = submit(engine, jobs)
    first = queue.claim(engine, sweep, owner=ME, limit=2)
    rest = queue.claim(engine, sweep, owner=ME, limit=2)
    assert [claimed.job for claimed in first + rest] == jobs
    assert [claimed.attempts for claimed in first] == [0, 0]
    assert queue.claim(engine, sweep, owner=ME) == []
    assert queue.progress(engine, sweep).counts["running"] == 3


def test_claim_for_a_device(engine: Engine) -> None:
    """A dispatcher gets only jobs for the class of device that it has."""
    job = a_job()
    cuda = job.model_copy(update={"condition": job.condition.model_copy(update={"device": "cuda"})})
    sweep = submit(engine, [job, cuda])
    assert queue.waiting_devices(engine, sweep) == {"cpu", "cuda"}
    gpu, cpu = (
        Capacity(device, Place(f"environment of {device}", "here")) for device in ("cuda", "cpu")
    )
    assert [
        claimed.job for claimed in queue.claim(engine, sweep, owner=ME, offer=gpu, limit=5)
    ] == [cuda]
    assert queue.waiting_devices(engine, sweep) == {"cpu"}
    assert [
        claimed.job for claimed in queue.claim(engine, sweep, owner=ME, offer=cpu, limit=5)
    ] == [job]


def test_same_text_is_the_same_sweep(engine: Engine) -> None:
    """Submitting again queues nothing twice; another text is a new revision, which takes over."""
    first = submit(engine, [a_job(32), a_job(64)])
    assert submit(engine, [a_job(32), a_job(64)]) == first
    assert states(engine) == ["waiting", "waiting"]
    second = submit(engine, [a_job(64), a_job(96)], text="other text")
    assert second != first
    assert states(engine) == ["cancelled", "waiting", "waiting"]
    assert queue.progress(engine, second).counts["waiting"] == 2
    with engine.connect() as connection:
        linked = connection.execute(
            text("SELECT sweep, count(*) FROM sweep_comparison GROUP BY sweep")
        ).all()
    assert linked == [("sweep", 2)]


def test_two_sweeps_share_a_job(engine: Engine) -> None:
    """What two sweeps request is queued once, counted in both, and not cancelled when one of them
    changes.
    """
    one, two = (submit(engine, [a_job(32)], name="one"), submit(engine, [a_job(32)], name="two"))
    assert states(engine) == ["waiting"]
    submit(engine, [a_job(64)], name="one", text="other")
    assert states(engine) == ["waiting", "waiting"]
    (claimed,) = queue.claim(engine, two, owner=ME)
    record(engine, claimed.row, ME, an_outcome(claimed.job))
    assert queue.progress(engine, one).measured == queue.progress(engine, two).measured == 1


def test_shared_job_takes_the_stricter_protocol(engine: Engine) -> None:
    """A job that waits is measured as precisely as the most demanding of its sweeps requires."""
    sweep = submit(engine, [a_job(protocol=Protocol(pairs_max=100, half_width=0.005))])
    submit(
        engine,
        [a_job(protocol=Protocol(pairs_max=200, half_width=0.02, budget_s=20))],
        name="other",
    )
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    assert claimed.job.protocol == Protocol(pairs_max=200, half_width=0.005, budget_s=20)
    submit(engine, [a_job(protocol=Protocol(pairs_min=50, half_width=0.001))], name="third")
    assert states(engine) == ["running", "waiting"]


def test_comparisons_may_come_without_contents(engine: Engine) -> None:
    """A comparison alone is one whose contents are empty; a sweep may be stored before it is
    planned.
    """
    sweep = submit_sweep(engine, NewSweep("sweep", "text", "?"), a_job().comparisons(), [])
    assert queue.progress(engine, sweep) == queue.Progress(
        "sweep", dict.fromkeys(queue.STATES, 0), 1, 0, 0
    )


def test_release(engine: Engine) -> None:
    """A job given back waits again; an outcome handed over with it is history that answers
    nothing.
    """
    sweep = submit(engine, [a_job()])
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    queue.release(engine, claimed.row, ME)
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    assert claimed.attempts == 0
    crash = an_outcome(
        claimed.job, failures=[Failure(arm=None, reason="crash", message="signal 11")]
    )
    queue.release(engine, claimed.row, ME, crash)
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    assert claimed.attempts == 1
    assert queue.progress(engine, sweep).failed == 0
    record(engine, claimed.row, ME, an_outcome(claimed.job))
    with engine.connect() as connection:
        assert connection.execute(
            text(
                "SELECT n, reason FROM attempt LEFT JOIN failure ON attempt = attempt.id ORDER BY n"
            )
        ).all() == [(1, "crash"), (2, None)]


def test_split(engine: Engine) -> None:
    """The parts of a split job wait in its place, and its history is kept."""
    sweep = submit(engine, [a_job(keep_rates=(0.3, 0.5, 0.7))])
    (whole,) = queue.claim(engine, sweep, owner=ME)
    pairs = whole.job.pairs
    parts = [whole.job.only(pairs[:1]), whole.job.only(pairs[1:])]
    crash = an_outcome(
        whole.job,
        speedups=(1, 1, 1),
        failures=[Failure(arm=None, reason="crash", message="signal 11")],
    )
    children = queue.split(engine, whole.row, ME, parts, crash)
    assert queue.progress(engine, sweep).counts | {"cancelled": 0} == {
        "waiting": 2, "running": 0, "done": 0, "failed": 0, "cancelled": 0, "split": 1,
    }  # fmt: skip
    claimed = queue.claim(engine, sweep, owner=ME, limit=9)
    assert [child.row for child in claimed] == children
    assert [child.job for child in claimed] == parts
    with engine.connect() as connection:
        assert connection.execute(text("SELECT parent FROM job ORDER BY id")).scalars().all() == [
            None,
            whole.row,
            whole.row,
        ]
        assert connection.execute(text("SELECT count(*) FROM attempt")).scalar() == 1


def test_split_must_keep_every_comparison(engine: Engine) -> None:
    """Parts that lose a comparison, or request one twice, are refused, and the job stays with its
    owner.
    """
    sweep = submit(engine, [a_job(keep_rates=(0.3, 0.5))])
    (whole,) = queue.claim(engine, sweep, owner=ME)
    for parts in ([whole.job.only(whole.job.pairs[:1])], [whole.job, whole.job]):
        with pytest.raises(StoreError, match="must request each of its 2 comparisons once"):
            queue.split(engine, whole.row, ME, parts)
    assert states(engine) == ["running"]


def test_stale_plan_after_a_split(engine: Engine) -> None:
    """A new plan replaces waiting parts of the old one, so that nothing is measured twice."""
    job = a_job(keep_rates=(0.3, 0.5))
    sweep = submit(engine, [job])
    (whole,) = queue.claim(engine, sweep, owner=ME)
    queue.split(engine, whole.row, ME, [job.only(job.pairs[:1]), job.only(job.pairs[1:])])
    submit(engine, [job])
    claimed = queue.claim(engine, sweep, owner=ME, limit=9)
    assert [each.job for each in claimed] == [job]
    assert queue.progress(engine, sweep).counts["split"] == 0


def test_plan_made_before_a_split_queues_only_what_no_part_measures(engine: Engine) -> None:
    """A dispatcher plans, another splits the job and measures a half: the plan queues the other
    half alone, which waits already.
    """
    job = a_job(keep_rates=(0.3, 0.5))
    sweep = submit(engine, [job])
    (whole,) = queue.claim(engine, sweep, owner=ME)
    since = newest_attempt(engine)
    running, _ = queue.split(
        engine, whole.row, ME, [job.only(job.pairs[:1]), job.only(job.pairs[1:])]
    )
    assert [claimed.row for claimed in queue.claim(engine, sweep, owner=ME)] == [running]
    assert submit(engine, [job], since=since) == sweep
    assert states(engine) == ["split", "running", "waiting"]
    assert [claimed.job for claimed in queue.claim(engine, sweep, owner=ME, limit=9)] == [
        job.only(job.pairs[1:])
    ]


def test_plan_waits_for_a_running_part_that_it_requests(engine: Engine) -> None:
    """A job that measures a pair of another sweep's plan is linked to that sweep; under a milder
    protocol it does not count.
    """
    job = a_job(keep_rates=(0.3, 0.5), protocol=Protocol(pairs_min=30))
    one = submit(engine, [job.only(job.pairs[:1])], name="one")
    assert len(queue.claim(engine, one, owner="elsewhere:1:1")) == 1
    two = submit(engine, [job], name="two")
    assert (
        queue.progress(engine, two).counts["running"]
        == queue.progress(engine, two).counts["waiting"]
        == 1
    )
    assert [holder.jobs for holder in queue.held(engine, two)] == [1]
    strict = job.model_copy(update={"protocol": Protocol(pairs_min=60)})
    three = submit(engine, [strict], name="three")
    assert [claimed.job for claimed in queue.claim(engine, three, owner=ME, limit=9)] == [strict]


def test_waiting_parts_that_another_sweep_waits_for_are_shared(engine: Engine) -> None:
    """Two sweeps wait for a job that is split; a plan made before the split shares its parts and
    queues nothing.
    """
    job = a_job(keep_rates=(0.3, 0.5))
    one, two = submit(engine, [job], name="one"), submit(engine, [job], name="two")
    (whole,) = queue.claim(engine, one, owner=ME)
    queue.split(engine, whole.row, ME, [job.only(job.pairs[:1]), job.only(job.pairs[1:])])
    submit(engine, [job], name="two")
    assert states(engine) == ["split", "waiting", "waiting"]
    assert queue.progress(engine, two).counts["waiting"] == 2


def test_what_was_answered_after_the_plan_is_not_queued(engine: Engine) -> None:
    """A job that was done between plan and submission is left out; what was answered before the
    plan is queued.
    """
    job = a_job(keep_rates=(0.3, 0.5))
    sweep, since = submit(engine, [job.only(job.pairs[:1])]), newest_attempt(engine)
    (first,) = queue.claim(engine, sweep, owner=ME)
    record(engine, first.row, ME, an_outcome(first.job))
    submit(engine, [job], since=since)
    (rest,) = queue.claim(engine, sweep, owner=ME, limit=9)
    assert rest.job == job.only(job.pairs[1:])
    record(engine, rest.row, ME, an_outcome(rest.job))
    submit(engine, [job], since=since)
    assert queue.progress(engine, sweep).unfinished == 0
    submit(engine, [job], since=newest_attempt(engine))
    assert [claimed.job for claimed in queue.claim(engine, sweep, owner=ME, limit=9)] == [job]


def test_failure_that_is_no_answer_does_not_count_as_answered_meanwhile(engine: Engine) -> None:
    """An unforeseen error recorded after the plan leaves the pair to be queued."""
    job = a_job()
    sweep, since = submit(engine, [job]), newest_attempt(engine)
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    failure = Failure(arm=None, reason="error", message="no such file")
    record(engine, claimed.row, ME, an_outcome(job, failures=[failure]))
    submit(engine, [job], since=since)
    assert [claimed.job for claimed in queue.claim(engine, sweep, owner=ME)] == [job]


def test_unknown_sweep(engine: Engine) -> None:
    """Progress of a sweep that is not there is an error."""
    with pytest.raises(StoreError, match="no sweep 5"):
        queue.progress(engine, 5)


def test_large_sweeps_take_no_more_statements(engine: Engine) -> None:
    """Submitting, and submitting again with nothing new, takes as many statements for hundreds of
    jobs as for one.
    """
    statements: list[str] = []
    event.listen(
        engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2])
    )

    def counts(name: str, jobs: list[Job], plan: list[Job]) -> int:
        statements.clear()
        submit_sweep(engine, NewSweep(name, "text", "Does it pay?"), jobs, plan)
        return len(statements)

    one, many = (
        [a_job(32)],
        [a_job(16 * size, batch_size=batch) for size in range(1, 16) for batch in range(2, 18)],
    )
    assert counts("one", one, one) == counts("many", many, many)
    assert states(engine) == ["waiting"] * (1 + len(many))
    assert counts("one", one, []) == counts("many", many, [])
    assert set(states(engine)) == {"cancelled"}


def test_a_job_twice_in_a_plan_is_queued_once(engine: Engine) -> None:
    """Equal jobs of one plan are one row, under the stricter of their protocols."""
    mild, strict = (a_job(protocol=Protocol(pairs_min=10)), a_job(protocol=Protocol(pairs_min=50)))
    (claimed,) = queue.claim(engine, submit(engine, [mild, strict]), owner=ME, limit=5)
    assert claimed.job.protocol.pairs_min == 50
