"""What may run on a node at once."""

import pytest

from orchestrator.cluster.nodes import Node, can_start, has_capacity
from sweeps.model.condition import Device, Kind
from sweeps.model.job import Job
from tests.orchestrator.conftest import job
from tests.orchestrator.worker_entrypoints import ENVIRONMENTS


def requested(
    kind: Kind, threads: int | None = None, device: Device = "cpu", name: str = "a"
) -> Job:
    made = job(name, model="slow")
    condition = made.condition.model_copy(update={"threads": threads, "device": device})
    return made.model_copy(update={"kind": kind, "condition": condition})


NODE = Node(
    host="box", environments=ENVIRONMENTS, node_id="ab", devices=("cpu", "cuda"), cpus=8, gpus=2
)


def test_timing_needs_an_idle_node() -> None:
    """And nothing starts beside it."""
    assert can_start(requested("latency"), NODE, [])
    assert not can_start(requested("latency", 1), NODE, [requested("accuracy", 1)])
    assert not can_start(requested("generation", 1), NODE, [requested("quality", 1)])
    assert not has_capacity(NODE, [requested("latency", 1)])
    assert not can_start(requested("accuracy", 1), NODE, [requested("latency", 1)])


@pytest.mark.parametrize(("threads", "at_once"), [(3, 2), (20, 1), (None, 1)])
def test_others_share_the_cores(threads: int | None, at_once: int) -> None:
    """As many as the cores reach for, and always one."""
    there: list[Job] = []
    while can_start(one := requested("accuracy", threads), NODE, there):
        there.append(one)
    assert len(there) == at_once


def test_each_gpu_has_one_job() -> None:
    """Each takes its share of the cores unless it names its threads; CPU jobs fill what is left."""
    there = [requested("accuracy", None, "cuda"), requested("accuracy", 2, "cuda")]
    assert can_start(there[1], NODE, there[:1])
    assert not can_start(requested("accuracy", 1, "cuda"), NODE, there)
    assert can_start(requested("accuracy", 2), NODE, there)
    assert not can_start(requested("accuracy", 3), NODE, there)


def test_head_that_declares_no_cpu_still_takes_a_gpu_job() -> None:
    """Its cores are not counted, its GPU is."""
    head = Node(
        host="box", environments=ENVIRONMENTS, node_id="ab", devices=("cuda",), cpus=0, gpus=1
    )
    assert can_start(requested("accuracy", None, "cuda"), head, [])


def on_device(name: str = "a", kind: Kind = "latency") -> Job:
    made = requested(kind, None, "cuda", name)
    return made.model_copy(
        update={"condition": made.condition.model_copy(update={"exclusive": "device"})}
    )


def test_timing_on_single_gpus_runs_on_all_of_them() -> None:
    """One job for each of the node's two GPUs, and beside them neither timing of the whole node nor
    what shares it.
    """
    assert can_start(on_device(), NODE, [])
    assert can_start(on_device("b", "generation"), NODE, [on_device()])
    assert has_capacity(NODE, [on_device()])
    assert not has_capacity(NODE, [on_device(), on_device("b")])
    assert not can_start(on_device("c"), NODE, [on_device(), on_device("b")])
    assert not can_start(requested("latency", None, "cuda"), NODE, [on_device()])
    assert not can_start(requested("accuracy", 1), NODE, [on_device()])
    assert not can_start(on_device(), NODE, [requested("latency", None, "cuda")])
    assert not can_start(on_device(), NODE, [requested("quality", 1)])
