"""Attribution: which arm of a job is at fault when its worker dies, and the outcome that records it."""

import time
from typing import NamedTuple

from orchestrator.nodes import Node
from orchestrator.worker_process import Fault
from store import queue
from sweeps.job import Arm, Condition, Job
from sweeps.outcome import Failure, FailureReason, Outcome


class Task(NamedTuple):
    """A claimed job on its way."""

    queued: queue.QueuedJob
    fault: Fault | None = None
    """Set while the baseline runs alone: how the job ended that it is suspected of."""

    @property
    def executions(self) -> int:
        """Executions of the job so far, the present one included."""
        return self.queued.attempts + 1


def suspect(job: Job) -> tuple[Condition, Arm]:
    """A single-pair job's baseline under its condition: whether it runs alone holds for every other job with it."""
    return job.condition, job.arms[job.pairs[0].baseline]


def baseline_alone(job: Job) -> Job:
    """The job of running the baseline of a single pair by itself, to see whether the fault is its own."""
    return job.model_copy(update={"arms": (job.arms[job.pairs[0].baseline],), "pairs": ()})


def failed(task: Task, node: Node, fault: Fault, arm: int | None) -> Outcome:
    """The outcome of a job that came back without one: `arm` is the one at fault, `None` when that is unknown."""
    job = task.queued.job
    reason: FailureReason = "error" if fault.kind == "node_died" else fault.kind
    times = f" ({task.executions} executions)" if task.executions > 1 else ""
    now = time.time()
    return Outcome(
        job=job,
        environment=node.environments[job.condition.device],
        host=node.host,
        started_at=fault.started_at or now,
        ended_at=fault.ended_at or now,
        failures=(Failure(arm=arm, reason=reason, message=f"{fault.message}{times}", detail=fault.detail),),
    )


def attributed(task: Task, node: Node, fault: Fault, alone: Outcome | Fault) -> Outcome:
    """The outcome of a single-pair job that ended in `fault`, given what came of its baseline `alone`.

    If the baseline failed there too, the fault is its own; if not, it is the arm's, and what was measured of the baseline is kept.
    """
    job = task.queued.job
    baseline, arm = job.pairs[0]
    if isinstance(alone, Outcome) and not alone.failures:
        return failed(task, node, fault, arm).model_copy(
            update={
                "arms": tuple(measured.model_copy(update={"arm": baseline}) for measured in alone.arms),
                "samples": alone.samples and alone.samples.model_copy(update={"arms": (baseline,)}),
            }
        )
    outcome = failed(task, node, alone if isinstance(alone, Fault) else fault, baseline)
    cause = outcome.failures[0] if isinstance(alone, Fault) else alone.failures[0].model_copy(update={"arm": baseline})
    orphan = cause.model_copy(
        update={"arm": arm, "message": f"not measured: its baseline {job.arms[baseline]} failed alone: {cause.message}"}
    )
    return outcome.model_copy(update={"failures": (cause, orphan)})
