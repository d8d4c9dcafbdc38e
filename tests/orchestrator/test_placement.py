"""A mixed cluster: every curve is whole on one host in one environment, whoever claims, dies,
returns or requests more.
"""

from orchestrator.plan.planning import submit_plan
from store.rows import owners
from store.rows.placement import curve_group
from store.write import queue
from store.write.record import record
from sweeps.model.job import Protocol
from sweeps.model.outcome import Failure
from tests.orchestrator.conftest import Store
from tests.orchestrator.sites import (
    LIBRARIES,
    SIZES,
    A,
    B,
    curves,
    jobs,
    measure,
    planned,
    shared_out,
    site,
)
from tests.store.conftest import a_job, an_outcome


def test_each_curve_is_whole_on_one_node(store: Store) -> None:
    """Two nodes with different libraries share out two curves of four points, not the points."""
    sweep = submit_plan(store.engine, planned(store, [A, B]))
    shared_out(store.engine, sweep, [A, B])
    assert curves(store) == [("small", "b", 4, 0), ("tiny", "a", 4, 0)]
    assert planned(store, [A, B]).jobs == ()


def test_a_curve_is_measured_whole_elsewhere_when_its_node_is_lost(store: Store) -> None:
    """The rest waits for its node while that may come back, and is not spliced: the other node
    measures all of it anew.
    """
    sweep = submit_plan(store.engine, planned(store, [A, B]))
    measure(store.engine, sweep, A)
    measure(store.engine, sweep, B, limit=9)
    assert queue.waiting(store.engine, sweep, [A.offer("cpu", {})])
    assert not queue.waiting(store.engine, sweep, [B.offer("cpu", {})])
    again = planned(store, [B])
    assert {(wanted.place, wanted.job.condition.model) for wanted in again.wanted} == {
        (None, "deit_tiny_patch16_224")
    }
    assert len(again.wanted) == 4
    assert submit_plan(store.engine, again) == sweep
    shared_out(store.engine, sweep, [B])
    assert curves(store) == [("small", "b", 4, 0), ("tiny", "a", 1, 3), ("tiny", "b", 4, 0)]
    assert planned(store, [B]).jobs == ()


def test_a_resumed_sweep_fills_gaps_where_the_curve_is(store: Store) -> None:
    """Both nodes are there again: each has only its own gaps left, and gets only these."""
    sweep = submit_plan(store.engine, planned(store, [A, B]))
    measure(store.engine, sweep, A, limit=1)
    measure(store.engine, sweep, B, limit=3)
    again = planned(store, [B, A])
    assert [(wanted.place, wanted.job.condition.model) for wanted in again.wanted].count(
        (A.place("cpu"), "deit_tiny_patch16_224")
    ) == 3
    assert [wanted.place for wanted in again.wanted].count(B.place("cpu")) == 1
    assert len(again.wanted) == 4
    submit_plan(store.engine, again)
    shared_out(store.engine, sweep, [B, A])
    assert curves(store) == [("small", "b", 4, 0), ("tiny", "a", 4, 0)]


def test_whole_curves_of_a_renamed_host_stay_answered(store: Store) -> None:
    """A machine that goes by another name since has the same environment: what is whole counts,
    what is not is measured whole.
    """
    sweep = submit_plan(store.engine, planned(store, [A]))
    measure(store.engine, sweep, A, limit=5)
    renamed = site("renamed")
    assert [wanted.place for wanted in planned(store, [renamed]).wanted] == [None] * 8
    measure(store.engine, sweep, A, limit=5)
    assert planned(store, [renamed]).jobs == ()


def test_a_changed_library_makes_another_place(store: Store) -> None:
    """A worker that reports another environment than the one it was pinned in does not fill that
    curve.
    """
    sweep = submit_plan(store.engine, planned(store, [A], jobs(models=("deit_tiny_patch16_224",))))
    changed = site("a", "new")
    measure(store.engine, sweep, A, limit=2)
    (claimed,) = queue.claim(store.engine, sweep, owner=owners.owner(), offer=A.offer("cpu", {}))
    outcome = an_outcome(claimed.job, environment=LIBRARIES["new"], host="a")
    assert record(store.engine, claimed.row, owners.owner(), outcome)
    assert curves(store) == [("tiny", "a", 2, 2), ("tiny", "a", 1, 3)]
    assert measure(store.engine, sweep, changed) == 0
    left = planned(store, [changed], jobs(models=("deit_tiny_patch16_224",)))
    assert [wanted.place for wanted in left.wanted] == [changed.place("cpu")] * 3
    submit_plan(store.engine, left)
    shared_out(store.engine, sweep, [changed])
    assert curves(store) == [("tiny", "a", 2, 2), ("tiny", "a", 4, 0)]


def test_a_failed_job_and_the_parts_of_a_split_one_stay_in_place(store: Store) -> None:
    """Released and split jobs go back to their curve's node, not to another."""
    requested = [a_job(size, keep_rates=(0.3, 0.5)) for size in SIZES]
    sweep = submit_plan(store.engine, planned(store, [A, B], requested))
    (claimed,) = queue.claim(store.engine, sweep, owner=owners.owner(), offer=A.offer("cpu", {}))
    queue.split(
        store.engine,
        claimed.row,
        owners.owner(),
        [claimed.job.only([pair]) for pair in claimed.job.pairs],
    )
    (claimed,) = queue.claim(store.engine, sweep, owner=owners.owner(), offer=A.offer("cpu", {}))
    queue.release(store.engine, claimed.row, owners.owner())
    assert measure(store.engine, sweep, B) == 0
    assert measure(store.engine, sweep, A, limit=9) == 5


def test_an_error_is_tried_again_in_its_place(store: Store) -> None:
    """A point that failed for no reason of its own is a gap; one that ran out of memory is an
    answer.
    """
    requested = jobs(models=("deit_tiny_patch16_224",))
    sweep = submit_plan(store.engine, planned(store, [A], requested))
    for reason in ("error", "out_of_memory", None, None):
        (claimed,) = queue.claim(
            store.engine, sweep, owner=owners.owner(), offer=A.offer("cpu", {})
        )
        failures = [Failure(arm=1, reason=reason, message="so")] if reason else []
        outcome = an_outcome(claimed.job, environment=LIBRARIES["old"], host="a", failures=failures)
        record(store.engine, claimed.row, owners.owner(), outcome)
    (left,) = planned(store, [B, A], requested).wanted
    assert (left.place, left.job.condition.image_size) == (A.place("cpu"), SIZES[0])
    tried = {A.place("cpu"): {(left.job.comparison_ids()[0], 0)}}
    assert planned(store, [B, A], requested, tried=tried).jobs == ()
    assert len(planned(store, [B], requested, tried=tried).jobs) == 4


def test_repeated_rounds_of_a_whole_curve_stay_on_its_host(store: Store) -> None:
    """Rounds belong to the curve; measuring again adds attempts where the first ones are."""
    protocol = Protocol(rounds=2)
    first = [a_job(size, protocol=protocol) for size in SIZES]
    requested = [*first, *(job.model_copy(update={"round": 1}) for job in first)]
    sweep = submit_plan(store.engine, planned(store, [A, B], requested))
    shared_out(store.engine, sweep, [A, B])
    assert curves(store) == [("tiny", "a", 4, 0)]
    again = planned(store, [B, A], requested, again=[requested[0].comparison_ids()[0]])
    assert [(wanted.place, wanted.job.round) for wanted in again.wanted] == [
        (A.place("cpu"), 0),
        (A.place("cpu"), 1),
    ]


ELSEWHERE = "elsewhere:17:4711"


def test_two_dispatchers_do_not_split_a_group(store: Store) -> None:
    """One store, two clusters: what one has begun the other plans around, while the first lives;
    then it measures it whole.
    """
    sweep = submit_plan(store.engine, planned(store, [A]))
    measure(store.engine, sweep, A, owner=ELSEWHERE)
    mine = planned(store, [B])
    assert [wanted.place for wanted in mine.wanted].count(A.place("cpu")) == 3
    assert submit_plan(store.engine, mine) == sweep
    assert measure(store.engine, sweep, B, limit=9) == 4
    assert [holder.owner for holder in queue.held(store.engine, sweep)] == [ELSEWHERE]
    assert not queue.waiting(store.engine, sweep, [B.offer("cpu", {})])
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE job SET renewed_at = renewed_at - 100 WHERE pinned_by = ?", (ELSEWHERE,)
        )
    assert queue.held(store.engine, sweep) == []
    submit_plan(store.engine, planned(store, [B]))
    assert measure(store.engine, sweep, B, limit=9) == 4
    assert curves(store) == [("small", "b", 4, 0), ("tiny", "a", 1, 3), ("tiny", "b", 4, 0)]


def test_a_living_dispatcher_keeps_its_pins(store: Store) -> None:
    """Renewing a lease renews the pins of jobs that wait."""
    sweep = submit_plan(store.engine, planned(store, [A]))
    measure(store.engine, sweep, A, owner=ELSEWHERE)
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE job SET renewed_at = renewed_at - 100 WHERE pinned_by = ?", (ELSEWHERE,)
        )
    assert queue.pins(store.engine, "sweep") == {}
    queue.renew(store.engine, ELSEWHERE)
    assert queue.pins(store.engine, "sweep") == {(curve_group(jobs()[0]), ""): A.place("cpu")}


def test_what_another_dispatcher_measured_meanwhile_counts(store: Store) -> None:
    """A whole curve of an environment that this run does not offer counts once it is seen, and not
    otherwise.
    """
    shared_out(store.engine, submit_plan(store.engine, planned(store, [A])), [A])
    assert len(planned(store, [B]).jobs) == 8
    assert planned(store, [B], seen={LIBRARIES["old"].environment_id}).jobs == ()


def test_arms_split_into_several_jobs_are_one_group() -> None:
    """Curves along GMACs saved run from arm to arm, so jobs of other arms under one condition
    belong together; batches do not.
    """
    one, other = a_job(64, keep_rates=(0.3,)), a_job(128, keep_rates=(0.5,))
    assert curve_group(one) == curve_group(other) != curve_group(a_job(64, batch_size=2))
