"""Isolation of the failing arm: which arm of a job made its worker die, and the outcome that
records it.

A job is bisected down to a single pair (`bisect`). Then its baseline runs alone: if that fails too,
the baseline is the failing arm, else the other one is.
"""

import time
from typing import NamedTuple

from orchestrator.cluster.nodes import Node
from orchestrator.host.worker_supervisor import WorkerFailure
from store.write import queue
from sweeps.model.condition import Condition
from sweeps.model.job import Arm, Job
from sweeps.model.outcome import Failure, FailureReason, Outcome


class Task(NamedTuple):
    """A claimed job that is being run."""

    queued: queue.QueuedJob
    failure: WorkerFailure | None = None
    """Set while the baseline runs alone: how the whole job ended."""

    @property
    def executions(self) -> int:
        """Executions of the job so far, the present one included."""
        return self.queued.attempts + 1


def bisect(job: Job) -> list[Job]:
    """The two halves of a job with several pairs."""
    middle = len(job.pairs) // 2
    return [job.only(job.pairs[:middle]), job.only(job.pairs[middle:])]


def baseline_key(job: Job) -> tuple[Condition, Arm]:
    """The baseline of a single-pair job in its condition: whether it runs alone holds for every
    other job with it.
    """
    return job.condition, job.arms[job.pairs[0].baseline]


def baseline_alone(job: Job) -> Job:
    """The job of running the baseline of a single pair alone."""
    return job.model_copy(update={"arms": (job.arms[job.pairs[0].baseline],), "pairs": ()})


def failed_outcome(
    task: Task, node: Node, failure: WorkerFailure, failing_arm: int | None
) -> Outcome:
    """The outcome of a job that came back without one; `failing_arm` is `None` when it is
    unknown.
    """
    job = task.queued.job
    reason: FailureReason = "error" if failure.kind == "node_died" else failure.kind
    times = f" ({task.executions} executions)" if task.executions > 1 else ""
    now = time.time()
    return Outcome(
        job=job,
        environment=node.environments[job.condition.device],
        host=node.host,
        started_at=failure.started_at or now,
        ended_at=failure.ended_at or now,
        failures=(
            Failure(
                arm=failing_arm,
                reason=reason,
                message=f"{failure.message}{times}",
                detail=failure.detail,
            ),
        ),
    )


def isolated_outcome(
    task: Task, node: Node, failure: WorkerFailure, alone: Outcome | WorkerFailure
) -> Outcome:
    """The outcome of a single-pair job that ended in `failure`, given the result of its baseline
    `alone`.

    If the baseline failed alone, it is the failing arm; if not, the other arm is, and what was
    measured of the baseline is kept.
    """
    job = task.queued.job
    baseline, arm = job.pairs[0]
    if isinstance(alone, Outcome) and not alone.failures:
        return failed_outcome(task, node, failure, arm).model_copy(
            update={
                "arms": tuple(
                    measured.model_copy(update={"arm": baseline}) for measured in alone.arms
                ),
                "samples": alone.samples and alone.samples.model_copy(update={"arms": (baseline,)}),
            }
        )
    outcome = failed_outcome(
        task, node, alone if isinstance(alone, WorkerFailure) else failure, baseline
    )
    cause = (
        outcome.failures[0]
        if isinstance(alone, WorkerFailure)
        else alone.failures[0].model_copy(update={"arm": baseline})
    )
    consequence = cause.model_copy(
        update={
            "arm": arm,
            "message": (
                f"not measured: its baseline {job.arms[baseline]} failed alone: {cause.message}"
            ),
        }
    )
    return outcome.model_copy(update={"failures": (cause, consequence)})
