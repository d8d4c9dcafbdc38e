"""Call profile: where the time of a call of each model of the user goes, in rounds under a profiler
after those without.
"""

from collections.abc import Sequence
from functools import partial

from sweeps.model.job import Job
from workers.arms.own import OwnArm, OwnWorkload
from workers.kinds.call import CallKind
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.profile import PhaseProfiler, run_marked
from workers.kinds.timed_job import Timed, run_timed


def run(job: Job) -> KindResult:
    """Time the job's arms (see `run_timed`), then profile them side by side."""
    workload = OwnWorkload(job)
    return run_timed(job, partial(CallProfileKind, workload=workload), inference=workload.inference)


class CallProfileKind(CallKind):
    """Calls as in a job that times them; the rounds and passes afterwards are those under the
    profiler.
    """

    def __init__(self, job: Job, failures: FailureCollector, *, workload: OwnWorkload) -> None:
        super().__init__(job, failures, workload=workload)
        self.profiler = PhaseProfiler[OwnArm](failures, run_marked)
        self.passes = self.profiler.passes

    def measure_together(self, arms: Sequence[OwnArm], timed: Timed) -> None:
        self.profiler.record(arms, timed, {"forward": timed.samples.seconds})

    def finish(self, result: KindResult) -> KindResult:
        return self.profiler.result(result)
