"""Occupancy: which jobs of one dispatcher may run on a node at once; between dispatchers the host lock decides."""

from collections.abc import Sequence

from orchestrator.nodes import Node
from sweeps.job import Job


def room(node: Node, there: Sequence[Job]) -> bool:
    """Whether a job might fit beside those that run there: none has the node alone, and a GPU or cores are left."""
    occupations = {job.occupation for job in there}
    if "device" in occupations:
        return len(there) < node.gpus
    return "node" not in occupations and sum(_cores(job, node) for job in there) < max(1, node.cpus)


def fits(job: Job, node: Node, there: Sequence[Job]) -> bool:
    """Whether `job` may start beside those that run there.

    Timing needs an idle node, or with `exclusive: device` a GPU beside such jobs alone; other jobs enough cores and a GPU each.
    """
    if not there:
        return True
    if job.occupation == "node" or {job.occupation} != {other.occupation for other in there} or not room(node, there):
        return False
    if job.occupation == "device":
        return True
    gpus = sum(other.condition.device == "cuda" for other in (*there, job))
    return sum(_cores(other, node) for other in (*there, job)) <= max(1, node.cpus) and (
        job.condition.device == "cpu" or gpus <= node.gpus
    )


def _cores(job: Job, node: Node) -> int:
    """A CPU job without `threads` uses all cores; on a GPU it feeds the device, one of the node's several."""
    share = node.cpus if job.condition.device == "cpu" else node.cpus // max(1, node.gpus)
    return job.condition.threads or max(1, share)
