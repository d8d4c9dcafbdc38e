"""Nodes: what a node of the cluster offers, and which jobs of one dispatcher may run there at once;
imports no Ray.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.host import package_version
from orchestrator.host.worker_supervisor import NodeInfo
from orchestrator.plan.sites import Site
from sweeps.model.condition import Device
from sweeps.model.job import Job
from sweeps.model.outcome import Environment


@dataclass(frozen=True, eq=False, kw_only=True)
class Node(Site):
    """One machine of the cluster."""

    environments: dict[Device, Environment]
    """As reported by the node, or by its newest outcome."""
    node_id: str
    devices: tuple[Device, ...]
    cpus: int
    gpus: int


class CheckedNode(NamedTuple):
    """A node that can be used, or `None`, and a line for each thing that is not as it was
    declared.
    """

    node: Node | None
    lines: tuple[str, ...] = ()


def node_name(row: Mapping[str, Any]) -> str:
    """Host name and address of a node, from its row of `ray.nodes()`."""
    return f"{row.get('NodeManagerHostname') or '?'} ({row['NodeManagerAddress']})"


def check_node(row: Mapping[str, Any], info: NodeInfo) -> CheckedNode:
    """What the node in a row of `ray.nodes()` offers, by its own report.

    A node with another version of our code is left out, a device class that was declared to Ray and
    is absent is not offered, and neither is one that was not declared: `--num-cpus 0` keeps jobs
    off a head.
    """
    name = node_name(row)
    others = sorted(set(info.packages) - {package_version.source_version()})
    if others:
        return excluded(
            row,
            f"it has breakeven {' and '.join(others)}, here is {package_version.source_version()};"
            " install the same there",
        )
    resources = row["Resources"]
    cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
    declared = {"cpu": cpus, "cuda": gpus}
    environments = {
        device: found for device, found in info.environments.items() if declared[device]
    }
    lines = []
    if gpus and "cuda" not in info.environments:
        lines.append(
            f"node {name} declares {gpus} GPUs to Ray, but no CUDA device can be used there; it"
            " gets no GPU jobs"
        )
    if not environments:
        offers = "no CPU" if not cpus else "nothing that jobs can use"
        return CheckedNode(None, (*lines, f"node {name} gets no jobs: it offers {offers} to Ray"))
    node = Node(
        node_id=row["NodeID"],
        host=info.host,
        devices=tuple(environments),
        environments=environments,
        cpus=cpus,
        gpus=gpus,
        labels=row.get("Labels") or {},
        resources={key: amount for key, amount in resources.items() if not key.startswith("node:")},
    )
    return CheckedNode(node, tuple(lines))


def excluded(row: Mapping[str, Any], reason: str) -> CheckedNode:
    """A node that cannot be used, and why."""
    return CheckedNode(None, (f"node {node_name(row)} is left out: {reason}",))


def has_capacity(node: Node, there: Sequence[Job]) -> bool:
    """Whether a job might fit beside those that run there: none has the node alone, and a GPU or
    cores are left.
    """
    occupations = {job.occupation for job in there}
    if "device" in occupations:
        return len(there) < node.gpus
    return "node" not in occupations and sum(_cores(job, node) for job in there) < max(1, node.cpus)


def can_start(job: Job, node: Node, there: Sequence[Job]) -> bool:
    """Whether `job` may start beside those that run there; between dispatchers the host lock
    decides.

    Timing needs an idle node, or with `exclusive: device` a GPU beside such jobs alone; other jobs
    enough cores and a GPU each.
    """
    if not there:
        return True
    if (
        job.occupation == "node"
        or {job.occupation} != {other.occupation for other in there}
        or not has_capacity(node, there)
    ):
        return False
    if job.occupation == "device":
        return True
    gpus = sum(other.condition.device == "cuda" for other in (*there, job))
    return sum(_cores(other, node) for other in (*there, job)) <= max(1, node.cpus) and (
        job.condition.device == "cpu" or gpus <= node.gpus
    )


def _cores(job: Job, node: Node) -> int:
    """A CPU job without `threads` uses all cores; on a GPU it feeds the device, one of the node's
    several.
    """
    share = node.cpus if job.condition.device == "cpu" else node.cpus // max(1, node.gpus)
    return job.condition.threads_on(share)
