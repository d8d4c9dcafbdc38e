"""Demands: a sweep's `resources` keep its jobs on the nodes that have them, each demand on its
own.
"""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan import planning
from orchestrator.plan.planning import submit_plan
from orchestrator.plan.sites import InfeasibleError, Site
from store.rows import owners
from store.rows.placement import curve_group
from store.write import queue
from tests.orchestrator.commands import in_process
from tests.orchestrator.conftest import Store
from tests.orchestrator.sites import A, B, curves, measure, planned, shared_out, site
from tests.store.conftest import a_job

HERE, THERE = '{"zone":"here"}', '{"zone":"there"}'
DEMANDS: dict[str, dict[str, str | float]] = {HERE: {"zone": "here"}, THERE: {"zone": "there"}}


def test_every_requested_environment_gets_whole_curves(store: Store) -> None:
    """Two demands: both nodes measure everything, resumed where one of them was stopped."""
    both = [{"zone": "here"}, {"zone": "there"}]
    plan = planned(store, [A, B], resources=both)
    assert [wanted.resources for wanted in plan.wanted] == [HERE] * 8 + [THERE] * 8
    sweep = submit_plan(store.engine, plan)
    measure(store.engine, sweep, A, limit=99, demands=DEMANDS)
    measure(store.engine, sweep, B, limit=3, demands=DEMANDS)
    again = planned(store, [A, B], resources=both)
    assert [(wanted.resources, wanted.place) for wanted in again.wanted] == [
        (THERE, B.place("cpu"))
    ] * 5
    submit_plan(store.engine, again)
    shared_out(store.engine, sweep, [A, B], demands=DEMANDS)
    assert curves(store) == [(model, host, 4, 0) for model in ("small", "tiny") for host in "ab"]
    assert planned(store, [A, B], resources=both).jobs == ()


def test_one_demand_keeps_jobs_off_other_nodes(store: Store) -> None:
    """A node without the label gets nothing, and what it measured before does not count."""
    shared_out(store.engine, submit_plan(store.engine, planned(store, [B])), [B])
    plan = planned(store, [A, B], resources={"zone": "here"})
    assert len(plan.wanted) == 8
    sweep = submit_plan(store.engine, plan)
    assert measure(store.engine, sweep, B, demands=DEMANDS) == 0
    assert measure(store.engine, sweep, site("c", zone="there"), demands=DEMANDS) == 0
    assert measure(store.engine, sweep, A, limit=99, demands=DEMANDS) == 8


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            {"zone": "nowhere"},
            (
                r"`resources` requires a node with zone=nowhere, and no node has it; nodes: a"
                r" \(zone=here\); b \(zone=there\)"
            ),
        ),
        ([{"zone": "here"}, {"big": 2}], "requires a node with big=2"),
        (
            {"zone": "here", "rack": "1"},
            "requires one node with zone=here, rack=1, and no node has it all",
        ),
    ],
)
def test_a_label_that_no_node_has_is_named(store: Store, resources: Any, message: str) -> None:
    """Refused before anything is stored, by the label's name."""
    sites = [A, B, site("c", rack="1")] if "rack" in resources else [A, B]
    with pytest.raises(InfeasibleError, match=message):
        planning.require_feasible(planned(store, [A, B], resources=resources).expansion, sites)


def test_amounts_of_resources_are_counted() -> None:
    """A number is the least amount of a resource; text is a label's whole value."""
    node = Site("a", {}, {"zone": "x"}, {"big": 2.0})
    assert node.meets({"big": 2, "zone": "x"})
    assert not node.meets({"big": 3})
    assert not node.meets({"zone": "xy"})


def test_accuracy_is_measured_once_and_anywhere(store: Store) -> None:
    """What no machine changes is neither pinned nor required by every demand."""
    timed, evaluated = a_job(), a_job(kind="accuracy")
    plan = planned(
        store, [A, B], [timed, evaluated], resources=[{"zone": "here"}, {"zone": "there"}]
    )
    assert [(wanted.job.kind, wanted.resources) for wanted in plan.wanted] == [
        ("latency", HERE),
        ("accuracy", HERE),
        ("latency", THERE),
    ]
    assert curve_group(evaluated) == ""
    sweep = submit_plan(store.engine, planned(store, [A, B], [evaluated]))
    (claimed,) = queue.claim(store.engine, sweep, owner=owners.owner(), offer=B.offer("cpu", {}))
    queue.release(store.engine, claimed.row, owners.owner())
    assert queue.claim(store.engine, sweep, owner=owners.owner(), offer=A.offer("cpu", {}))


def test_plan_and_run_name_a_label_that_is_not_there(tmp_path: Path) -> None:
    """Exit code 2 and one line, before a store or Ray is touched; the label is in it."""
    sweep = tmp_path / "labels.yaml"
    points = (
        "axes: {model: [deit_tiny_patch16_224], image_size: [32]}\nmethods: [{method: topk,"
        " keep_rate: 0.5}]\n"
    )
    sweep.write_text(f"schema: 1\nname: labels\n{points}resources: [{{zone: a}}, {{big: 1}}]\n")
    for command in ("plan", "run"):
        done = in_process(command, "labels.yaml", "--db", "store.db", folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(
            "breakeven: `resources` requires a node with zone=a, and no node has it; nodes: "
        )
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "store.db").exists()
