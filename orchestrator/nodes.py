"""Nodes: what a node of the cluster offers, judged by its own survey and by what was declared to Ray; no Ray here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator import package_version
from orchestrator.sites import Site
from orchestrator.worker_process import NodeInfo
from sweeps.job import Device
from sweeps.outcome import Environment


@dataclass(frozen=True, eq=False, kw_only=True)
class Node(Site):
    """One machine of the cluster."""

    environments: dict[Device, Environment]
    """As of the survey, or of the newest outcome."""
    node_id: str
    devices: tuple[Device, ...]
    cpus: int
    gpus: int


class Judged(NamedTuple):
    """A node that can be used, or `None`, and a line for each thing that is not as it was declared."""

    node: Node | None
    lines: tuple[str, ...] = ()


def name(facts: Mapping[str, Any]) -> str:
    """A node for people, from its row of `ray.nodes()`: host name and address."""
    return f"{facts.get('NodeManagerHostname') or '?'} ({facts['NodeManagerAddress']})"


def judged(facts: Mapping[str, Any], survey: NodeInfo) -> Judged:
    """What the node in a row of `ray.nodes()` offers, given its own survey.

    A node with another version of our code is left out, a device class that was declared to Ray and is absent is not offered,
    and neither is one that was not declared: `--num-cpus 0` keeps jobs off a head.
    """
    called = name(facts)
    others = sorted(set(survey.packages) - {package_version.version()})
    if others:
        return left_out(
            facts, f"it has breakeven {' and '.join(others)}, here is {package_version.version()}; install the same there"
        )
    counted = facts["Resources"]
    cpus, gpus = int(counted.get("CPU", 0)), int(counted.get("GPU", 0))
    declared = {"cpu": cpus, "cuda": gpus}
    environments = {device: found for device, found in survey.environments.items() if declared[device]}
    lines = []
    if gpus and "cuda" not in survey.environments:
        lines.append(f"node {called} declares {gpus} GPUs to Ray, but no CUDA device can be used there; it gets no GPU jobs")
    if not environments:
        offers = "no CPU" if not cpus else "nothing that jobs can use"
        return Judged(None, (*lines, f"node {called} gets no jobs: it offers {offers} to Ray"))
    node = Node(
        node_id=facts["NodeID"],
        host=survey.host,
        devices=tuple(environments),
        environments=environments,
        cpus=cpus,
        gpus=gpus,
        labels=facts.get("Labels") or {},
        resources={name: amount for name, amount in counted.items() if not name.startswith("node:")},
    )
    return Judged(node, tuple(lines))


def left_out(facts: Mapping[str, Any], reason: str) -> Judged:
    """A node that cannot be used, and why."""
    return Judged(None, (f"node {name(facts)} is left out: {reason}",))
