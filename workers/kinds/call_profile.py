"""Call profile: where the time of a call of each model of the user goes, in rounds under a profiler
after those without.
"""

from functools import partial

from sweeps.model.job import Job
from workers.arms.own import OwnArm, OwnWorkload
from workers.kinds.call import CallKind
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.profile import ProfilingKind, run_marked
from workers.kinds.timed_job import run_timed


def run(job: Job) -> KindResult:
    """Time the job's arms (see `run_timed`), then profile them side by side."""
    workload = OwnWorkload(job)
    return run_timed(job, partial(CallProfileKind, workload=workload), inference=workload.inference)


class CallProfileKind(ProfilingKind[OwnArm], CallKind):
    """Calls as in a job that times them."""

    def __init__(self, job: Job, failures: FailureCollector, *, workload: OwnWorkload) -> None:
        super().__init__(job, failures, workload=workload)
        self.profile(run_marked)
