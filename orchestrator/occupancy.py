"""Occupancy: which jobs may run on a node at once, so far as one dispatcher knows; the host lock holds between dispatchers."""

from collections.abc import Sequence

from orchestrator.host_lock import TIMING
from orchestrator.nodes import Node
from sweeps.job import Job


def room(node: Node, there: Sequence[Job]) -> bool:
    """Whether a job might fit beside those that run there: cores are left, and none of them is timed."""
    return not any(job.kind in TIMING for job in there) and sum(_cores(job, node) for job in there) < max(1, node.cpus)


def fits(job: Job, node: Node, there: Sequence[Job]) -> bool:
    """Whether `job` may start beside those that run there: timing needs an idle node, other jobs enough cores and a GPU each."""
    if not there:
        return True
    if job.kind in TIMING or not room(node, there):
        return False
    gpus = sum(other.condition.device == "cuda" for other in (*there, job))
    return sum(_cores(other, node) for other in (*there, job)) <= max(1, node.cpus) and (
        job.condition.device == "cpu" or gpus <= node.gpus
    )


def _cores(job: Job, node: Node) -> int:
    """A CPU job without `threads` uses all cores; on a GPU it feeds the device, one of the node's several."""
    share = node.cpus if job.condition.device == "cpu" else node.cpus // max(1, node.gpus)
    return job.condition.threads or max(1, share)
