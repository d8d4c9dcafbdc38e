"""Profile: where the time of each arm's forward goes, in rounds under a profiler after all arms
were timed without one.
"""

from collections.abc import Sequence

from sweeps.model.job import Job
from workers.arms.vision import VisionArm
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.kinds.latency import LatencyKind
from workers.kinds.profiled_job import DETAILS_S, PROFILE_S, PhaseProfiler
from workers.kinds.timed_job import ArmMetrics, SoloPass, Timed, run_timed
from workers.measure.profiling.recording import Recording
from workers.measure.readings.timer import synchronise
from workers.models.share_weights import DTYPES


def run(job: Job) -> KindResult:
    """Time the job's arms (see `run_timed`), then profile them side by side."""
    profiler = PhaseProfiler()
    return profiler.result(
        job, run_timed(job, lambda own, failures: ProfileKind(own, failures, profiler))
    )


class ProfileKind(LatencyKind):
    """Forwards as in a latency job; the rounds and passes afterwards are those under the
    profiler.
    """

    def __init__(self, job: Job, failures: FailureCollector, profiler: PhaseProfiler) -> None:
        super().__init__(job, failures, pass_seconds=0.0)
        self.profiler = profiler
        self.passes = [SoloPass(self._profile, PROFILE_S, "pass_skipped", lambda _: DETAILS_S)]

    def measure_together(self, arms: Sequence[VisionArm], timed: Timed) -> None:
        self.profiler.record(arms, timed, {"forward": timed.samples.seconds}, _run, self.failures)

    def _profile(self, arm: VisionArm) -> ArmMetrics:
        return self.profiler.add(
            arm, lambda recording: _run(arm, recording), DTYPES[arm.condition.dtype].itemsize
        )


def _run(arm: VisionArm, recording: Recording) -> None:
    """One forward, until the device is done."""
    recording.open("forward")
    arm.step()
    synchronise(arm.condition.device)
