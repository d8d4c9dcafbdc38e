"""Call: models and functions of the user timed side by side; then the peak memory of each alone."""

import contextlib
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from sweeps.model.job import Job
from sweeps.model.outcome import Samples
from workers.arms.own import OwnArm, OwnWorkload, prepare_own
from workers.arms.prepared import raised
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.timed_job import ArmMetrics, SoloPass, TimedKind, run_timed
from workers.measure.readings import peak_memory
from workers.measure.samples import sampled_metrics
from workers.measure.timer import repeat

MEMORY_CALLS = 3
"""In which the peak of memory is reached."""


def run(job: Job) -> KindResult:
    """Measure the job's arms (see `run_timed`)."""
    workload = OwnWorkload(job)
    return run_timed(job, partial(CallKind, workload=workload), inference=workload.inference)


class CallKind(TimedKind[OwnArm]):
    """Calls with one input."""

    short = True

    def __init__(self, job: Job, failures: FailureCollector, *, workload: OwnWorkload) -> None:
        super().__init__(job, failures)
        self.workload = workload
        self.results: dict[int, Any] = {}
        """By arm what its first call returned."""
        self.passes = [self.once(SoloPass(_memory, 0.0, "pass_skipped", lambda _: 0.0))]

    def build(self, index: int, *, kept: bool) -> OwnArm:  # noqa: ARG002 - an arm has a copy of its own in any case
        return prepare_own(self.job, index, self.workload, self.results)

    def verify(self, arm: OwnArm) -> None:
        self.workload.check_call(arm, arm.step(), self.results)

    def observed(self, arm: OwnArm) -> AbstractContextManager[object]:  # noqa: ARG002 - nothing is known of its parts
        return contextlib.nullcontext()

    def read(self, arm: OwnArm, samples: Samples) -> ArmMetrics:
        return ArmMetrics(sampled_metrics(samples, arm.index))


def _memory(arm: OwnArm) -> ArmMetrics:
    """Peak memory in a few calls."""
    with peak_memory(arm.condition.device) as memory:
        repeat(arm.condition.device, arm.step, 0.0, MEMORY_CALLS)
    return ArmMetrics(memory, raised(memory_unmeasured=not memory))
