"""A mixed cluster: every curve is whole on one host in one environment, whoever claims, dies, comes back or asks for more."""

import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator import planning
from orchestrator.planning import Plan
from orchestrator.sites import InfeasibleError, Site
from orchestrator.submission import submit
from store import queue
from store.connection import Engine
from store.placement import curve_group
from store.recording import record
from sweeps.expansion import Expansion
from sweeps.job import Job, Protocol
from sweeps.outcome import Environment, Failure
from sweeps.reading import Document
from sweeps.spec import Sweep
from tests.orchestrator.conftest import Store
from tests.store.conftest import a_job, an_outcome

LIBRARIES = {name: Environment(device="cpu", device_name=name, facts={"torch": name}) for name in ("old", "new")}
SIZES = (64, 96, 128, 160)


def site(host: str, environment: str = "old", **labels: str) -> Site:
    return Site(host, {"cpu": LIBRARIES[environment]}, labels)


A, B = site("a", "old", zone="here"), site("b", "new", zone="there")


def jobs(sizes: Sequence[int] = SIZES, models: Sequence[str] = ("deit_tiny_patch16_224", "deit_small_patch16_224")) -> list[Job]:
    """One curve for each model."""
    made = [a_job(size) for size in sizes]
    return [
        job.model_copy(update={"condition": job.condition.model_copy(update={"model": model})}) for job in made for model in models
    ]


def planned(store: Store, sites: Collection[Site], asked: Sequence[Job] | None = None, resources: Any = None, **more: Any) -> Plan:
    asked = asked or jobs()
    document = Document(
        "sweep.yaml", "text", {"schema": 1, "name": "sweep", **({"resources": resources} if resources else {})}, {}, {}
    )
    sweep = Sweep.model_validate(document.root)
    comparisons = tuple(comparison for job in asked for comparison in job.comparisons())
    points = {"points": len(asked), "excluded": 0, "duplicates": 0}
    expansion = Expansion(sweep, "text", tuple(asked), comparisons, document=document, written={}, **points)
    return planning.plan(expansion, store.engine, sites, **more)


def measure(engine: Engine, sweep: int, at: Site, *, limit: int = 1, demands: Any = None, owner: str | None = None) -> int:
    """Let a site claim jobs and record their outcomes one by one; returns how many it found."""
    offer = at.offer("cpu", demands or {})
    owner = owner or queue.owner()
    for count in range(limit):
        claimed = queue.claim(engine, sweep, owner=owner, offer=offer)
        if not claimed:
            return count
        job = claimed[0].job
        speedups = (1.5,) * len(job.pairs)
        record(engine, claimed[0].row, owner, an_outcome(job, speedups=speedups, environment=at.environments["cpu"], host=at.host))
    return limit


def shared_out(engine: Engine, sweep: int, sites: Sequence[Site], **more: Any) -> None:
    """Let the sites take turns until none finds a job."""
    while sum(measure(engine, sweep, each, **more) for each in sites):
        pass


def curves(store: Store) -> list[tuple[str, str, int, int]]:
    """Model, host, points and points that are missing, of each curve along tokens."""
    sql = "SELECT model, host, points, points_missing FROM break_even WHERE axis = 'tokens' ORDER BY model, host"
    return [(model.split("_")[1], *rest) for model, *rest in store.table(sql).itertuples(index=False)]


def test_each_curve_is_whole_on_one_node(store: Store) -> None:
    """Two nodes with different libraries share out two curves of four points, not the points."""
    sweep = submit(store.engine, planned(store, [A, B]))
    shared_out(store.engine, sweep, [A, B])
    assert curves(store) == [("small", "b", 4, 0), ("tiny", "a", 4, 0)]
    assert planned(store, [A, B]).jobs == ()


def test_equal_nodes_do_not_share_a_curve_either(store: Store) -> None:
    """Two hosts in the same environment differ all the same; a slow one takes fewer curves."""
    other = site("c")
    sweep = submit(store.engine, planned(store, [A, other], jobs(models=("deit_tiny_patch16_224",))))
    shared_out(store.engine, sweep, [A, other])
    assert curves(store) == [("tiny", "a", 4, 0)]


def test_a_curve_is_measured_whole_elsewhere_when_its_node_is_lost(store: Store) -> None:
    """The rest waits for its node while that may come back, and is not spliced: the other node measures all of it anew."""
    sweep = submit(store.engine, planned(store, [A, B]))
    measure(store.engine, sweep, A)
    measure(store.engine, sweep, B, limit=9)
    assert queue.waiting(store.engine, sweep, [A.offer("cpu", {})])
    assert not queue.waiting(store.engine, sweep, [B.offer("cpu", {})])
    again = planned(store, [B])
    assert {(wanted.place, wanted.job.condition.model) for wanted in again.wanted} == {(None, "deit_tiny_patch16_224")}
    assert len(again.wanted) == 4
    assert submit(store.engine, again) == sweep
    shared_out(store.engine, sweep, [B])
    assert curves(store) == [("small", "b", 4, 0), ("tiny", "a", 1, 3), ("tiny", "b", 4, 0)]
    assert planned(store, [B]).jobs == ()


def test_a_resumed_sweep_fills_gaps_where_the_curve_is(store: Store) -> None:
    """Both nodes are there again: each has only its own gaps left, and gets only these."""
    sweep = submit(store.engine, planned(store, [A, B]))
    measure(store.engine, sweep, A, limit=1)
    measure(store.engine, sweep, B, limit=3)
    again = planned(store, [B, A])
    assert [(wanted.place, wanted.job.condition.model) for wanted in again.wanted].count(
        (A.place("cpu"), "deit_tiny_patch16_224")
    ) == 3
    assert [wanted.place for wanted in again.wanted].count(B.place("cpu")) == 1
    assert len(again.wanted) == 4
    submit(store.engine, again)
    shared_out(store.engine, sweep, [B, A])
    assert curves(store) == [("small", "b", 4, 0), ("tiny", "a", 4, 0)]


def test_more_points_of_a_curve_are_measured_where_it_is(store: Store) -> None:
    """A larger size asked for later goes to the node that has the smaller ones."""
    shared_out(store.engine, submit(store.engine, planned(store, [A, B])), [A, B])
    more = planned(store, [B, A], jobs((*SIZES, 224)))
    assert [(wanted.place, wanted.job.condition.image_size) for wanted in more.wanted] == [
        (A.place("cpu"), 224),
        (B.place("cpu"), 224),
    ]


def test_whole_curves_of_a_renamed_host_stay_answered(store: Store) -> None:
    """A machine that goes by another name since has the same environment: what is whole counts, what is not is measured whole."""
    sweep = submit(store.engine, planned(store, [A]))
    measure(store.engine, sweep, A, limit=5)
    renamed = site("renamed")
    assert [wanted.place for wanted in planned(store, [renamed]).wanted] == [None] * 8
    measure(store.engine, sweep, A, limit=5)
    assert planned(store, [renamed]).jobs == ()


def test_a_changed_library_makes_another_place(store: Store) -> None:
    """A worker that reports another environment than the one it was pinned in does not fill that curve."""
    sweep = submit(store.engine, planned(store, [A], jobs(models=("deit_tiny_patch16_224",))))
    changed = site("a", "new")
    measure(store.engine, sweep, A, limit=2)
    (claimed,) = queue.claim(store.engine, sweep, owner=queue.owner(), offer=A.offer("cpu", {}))
    outcome = an_outcome(claimed.job, environment=LIBRARIES["new"], host="a")
    assert record(store.engine, claimed.row, queue.owner(), outcome)
    assert curves(store) == [("tiny", "a", 2, 2), ("tiny", "a", 1, 3)]
    assert measure(store.engine, sweep, changed) == 0
    left = planned(store, [changed], jobs(models=("deit_tiny_patch16_224",)))
    assert [wanted.place for wanted in left.wanted] == [changed.place("cpu")] * 3
    submit(store.engine, left)
    shared_out(store.engine, sweep, [changed])
    assert curves(store) == [("tiny", "a", 2, 2), ("tiny", "a", 4, 0)]


def test_a_failed_job_and_the_parts_of_a_split_one_stay_in_place(store: Store) -> None:
    """Released and split jobs go back to their curve's node, not to another."""
    asked = [a_job(size, keep_rates=(0.3, 0.5)) for size in SIZES]
    sweep = submit(store.engine, planned(store, [A, B], asked))
    (claimed,) = queue.claim(store.engine, sweep, owner=queue.owner(), offer=A.offer("cpu", {}))
    queue.split(store.engine, claimed.row, queue.owner(), [claimed.job.only([pair]) for pair in claimed.job.pairs])
    (claimed,) = queue.claim(store.engine, sweep, owner=queue.owner(), offer=A.offer("cpu", {}))
    queue.release(store.engine, claimed.row, queue.owner())
    assert measure(store.engine, sweep, B) == 0
    assert measure(store.engine, sweep, A, limit=9) == 5


def test_an_error_is_tried_again_in_its_place(store: Store) -> None:
    """A point that failed for no reason of its own is a gap; one that ran out of memory is an answer."""
    asked = jobs(models=("deit_tiny_patch16_224",))
    sweep = submit(store.engine, planned(store, [A], asked))
    for reason in ("error", "out_of_memory", None, None):
        (claimed,) = queue.claim(store.engine, sweep, owner=queue.owner(), offer=A.offer("cpu", {}))
        failures = [Failure(arm=1, reason=reason, message="so")] if reason else []
        outcome = an_outcome(claimed.job, environment=LIBRARIES["old"], host="a", failures=failures)
        record(store.engine, claimed.row, queue.owner(), outcome)
    (left,) = planned(store, [B, A], asked).wanted
    assert (left.place, left.job.condition.image_size) == (A.place("cpu"), SIZES[0])
    tried = {A.place("cpu"): {(left.job.comparison_ids()[0], 0)}}
    assert planned(store, [B, A], asked, tried=tried).jobs == ()
    assert len(planned(store, [B], asked, tried=tried).jobs) == 4


def test_repeated_rounds_of_a_whole_curve_stay_on_its_host(store: Store) -> None:
    """Rounds belong to the curve; measuring again adds attempts where the first ones are."""
    protocol = Protocol(rounds=2)
    first = [a_job(size, protocol=protocol) for size in SIZES]
    asked = [*first, *(job.model_copy(update={"round": 1}) for job in first)]
    sweep = submit(store.engine, planned(store, [A, B], asked))
    shared_out(store.engine, sweep, [A, B])
    assert curves(store) == [("tiny", "a", 4, 0)]
    again = planned(store, [B, A], asked, again=[asked[0].comparison_ids()[0]])
    assert [(wanted.place, wanted.job.round) for wanted in again.wanted] == [(A.place("cpu"), 0), (A.place("cpu"), 1)]


ELSEWHERE = "elsewhere:17:4711"


def test_two_dispatchers_do_not_split_a_group(store: Store) -> None:
    """One store, two clusters: what one has begun the other plans around, while the first lives; then it measures it whole."""
    sweep = submit(store.engine, planned(store, [A]))
    measure(store.engine, sweep, A, owner=ELSEWHERE)
    mine = planned(store, [B])
    assert [wanted.place for wanted in mine.wanted].count(A.place("cpu")) == 3
    assert submit(store.engine, mine) == sweep
    assert measure(store.engine, sweep, B, limit=9) == 4
    assert [holder.owner for holder in queue.held(store.engine, sweep)] == [ELSEWHERE]
    assert not queue.waiting(store.engine, sweep, [B.offer("cpu", {})])
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE job SET renewed_at = renewed_at - 100 WHERE pinned_by = ?", (ELSEWHERE,))
    assert queue.held(store.engine, sweep) == []
    submit(store.engine, planned(store, [B]))
    assert measure(store.engine, sweep, B, limit=9) == 4
    assert curves(store) == [("small", "b", 4, 0), ("tiny", "a", 1, 3), ("tiny", "b", 4, 0)]


def test_a_living_dispatcher_keeps_its_pins(store: Store) -> None:
    """Renewing a lease renews the pins of jobs that wait."""
    sweep = submit(store.engine, planned(store, [A]))
    measure(store.engine, sweep, A, owner=ELSEWHERE)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE job SET renewed_at = renewed_at - 100 WHERE pinned_by = ?", (ELSEWHERE,))
    assert queue.pins(store.engine, "sweep") == {}
    queue.renew(store.engine, ELSEWHERE)
    assert queue.pins(store.engine, "sweep") == {(curve_group(jobs()[0]), ""): A.place("cpu")}


def test_what_another_dispatcher_measured_meanwhile_counts(store: Store) -> None:
    """A whole curve of an environment that this run does not offer counts once it is seen, and not otherwise."""
    shared_out(store.engine, submit(store.engine, planned(store, [A])), [A])
    assert len(planned(store, [B]).jobs) == 8
    assert planned(store, [B], seen={LIBRARIES["old"].environment_id}).jobs == ()


HERE, THERE = '{"zone":"here"}', '{"zone":"there"}'
DEMANDS: dict[str, dict[str, str | float]] = {HERE: {"zone": "here"}, THERE: {"zone": "there"}}


def test_every_environment_asked_for_gets_whole_curves(store: Store) -> None:
    """Two demands: both nodes measure everything, resumed where one of them was stopped."""
    both = [{"zone": "here"}, {"zone": "there"}]
    plan = planned(store, [A, B], resources=both)
    assert [wanted.resources for wanted in plan.wanted] == [HERE] * 8 + [THERE] * 8
    sweep = submit(store.engine, plan)
    measure(store.engine, sweep, A, limit=99, demands=DEMANDS)
    measure(store.engine, sweep, B, limit=3, demands=DEMANDS)
    again = planned(store, [A, B], resources=both)
    assert [(wanted.resources, wanted.place) for wanted in again.wanted] == [(THERE, B.place("cpu"))] * 5
    submit(store.engine, again)
    shared_out(store.engine, sweep, [A, B], demands=DEMANDS)
    assert curves(store) == [(model, host, 4, 0) for model in ("small", "tiny") for host in "ab"]
    assert planned(store, [A, B], resources=both).jobs == ()


def test_one_demand_keeps_jobs_off_other_nodes(store: Store) -> None:
    """A node without the label gets nothing, and what it measured before does not count."""
    shared_out(store.engine, submit(store.engine, planned(store, [B])), [B])
    plan = planned(store, [A, B], resources={"zone": "here"})
    assert len(plan.wanted) == 8
    sweep = submit(store.engine, plan)
    assert measure(store.engine, sweep, B, demands=DEMANDS) == 0
    assert measure(store.engine, sweep, site("c", zone="there"), demands=DEMANDS) == 0
    assert measure(store.engine, sweep, A, limit=99, demands=DEMANDS) == 8


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            {"zone": "nowhere"},
            r"`resources` asks for a node with zone=nowhere, and no node has it; nodes: a \(zone=here\); b \(zone=there\)",
        ),
        ({"big": 2}, "asks for a node with big=2"),
        ([{"zone": "here"}, {"rack": "7"}], "asks for a node with rack=7"),
        ({"zone": "here", "rack": "1"}, "asks for one node with zone=here, rack=1, and no node has all of it"),
    ],
)
def test_a_label_that_no_node_has_is_named(store: Store, resources: Any, message: str) -> None:
    """Refused before anything is stored, by the label's name."""
    sites = [A, B, site("c", rack="1")] if "rack" in resources else [A, B]
    with pytest.raises(InfeasibleError, match=message):
        planning.demand(planned(store, [A, B], resources=resources).expansion, sites)


def test_amounts_of_resources_are_counted() -> None:
    """A number is the least amount of a resource; text is a label's whole value."""
    node = Site("a", {}, {"zone": "x"}, {"big": 2.0})
    assert node.meets({"big": 2, "zone": "x"})
    assert not node.meets({"big": 3})
    assert not node.meets({"zone": "xy"})


def test_accuracy_is_measured_once_and_anywhere(store: Store) -> None:
    """What no machine changes is neither pinned nor asked for by every demand."""
    timed, judged = a_job(), a_job(kind="accuracy")
    plan = planned(store, [A, B], [timed, judged], resources=[{"zone": "here"}, {"zone": "there"}])
    assert [(wanted.job.kind, wanted.resources) for wanted in plan.wanted] == [
        ("latency", HERE),
        ("accuracy", HERE),
        ("latency", THERE),
    ]
    assert curve_group(judged) == ""
    sweep = submit(store.engine, planned(store, [A, B], [judged]))
    (claimed,) = queue.claim(store.engine, sweep, owner=queue.owner(), offer=B.offer("cpu", {}))
    queue.release(store.engine, claimed.row, queue.owner())
    assert queue.claim(store.engine, sweep, owner=queue.owner(), offer=A.offer("cpu", {}))


def test_arms_split_into_several_jobs_are_one_group() -> None:
    """Curves along GMACs saved run from arm to arm, so jobs of other arms under one condition belong together; batches do not."""
    one, other = a_job(64, keep_rates=(0.3,)), a_job(128, keep_rates=(0.5,))
    assert curve_group(one) == curve_group(other) != curve_group(a_job(64, batch_size=2))


def test_outcomes_of_several_hosts_are_imported_as_their_curves(store: Store) -> None:
    """`record` without a queue keeps hosts apart as well."""
    for host, sizes in (("a", SIZES), ("b", SIZES[:2])):
        for job in jobs(sizes, models=("deit_tiny_patch16_224",)):
            record(store.engine, None, None, an_outcome(job, host=host, environment=LIBRARIES["old"]))
    queue.submit(
        store.engine,
        "sweep",
        "text",
        "?",
        [one for job in jobs(models=("deit_tiny_patch16_224",)) for one in job.comparisons()],
        [],
    )
    assert curves(store) == [("tiny", "a", 4, 0), ("tiny", "b", 2, 2)]


def test_plan_and_run_name_a_label_that_is_not_there(tmp_path: Path) -> None:
    """Exit code 2 and one line, before a store or Ray is touched; the label is in it."""
    sweep = tmp_path / "labels.yaml"
    points = "axes: {model: [deit_tiny_patch16_224], image_size: [32]}\nmethods: [{method: topk, keep_rate: 0.5}]\n"
    sweep.write_text(f"schema: 1\nname: labels\n{points}resources: [{{zone: a}}, {{big: 1}}]\n")
    for command in ("plan", "run"):
        arguments = [sys.executable, "-m", "orchestrator", command, str(sweep), "--db", str(tmp_path / "store.db")]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("breakeven: `resources` asks for a node with zone=a, and no node has it; nodes: ")
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "store.db").exists()
