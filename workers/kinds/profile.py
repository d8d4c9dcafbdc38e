"""Profile: where the time of each arm's forward goes, after all arms of a vision model were timed without a profiler."""

import numpy as np

from sweeps.job import Job
from sweeps.outcome import Samples
from workers.arms.vision import VisionArm
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.kinds.latency import LatencyKind
from workers.kinds.profiled_job import PROFILE_S, PhaseProfiler
from workers.kinds.timed_job import ArmMetrics, SoloPass, run_timed
from workers.measure.recording import Recorded, Recording, called
from workers.measure.timer import synchronise
from workers.models.cpp_build import observed_functions
from workers.models.share_weights import DTYPES


def run(job: Job) -> KindResult:
    """Time the job's arms (see `run_timed`), then profile each alone."""
    profiler = PhaseProfiler()
    return profiler.result(job, run_timed(job, lambda own, failures: ProfileKind(own, failures, profiler)))


class ProfileKind(LatencyKind):
    """Forwards as in a latency job; the passes afterwards are those under the profiler."""

    def __init__(self, job: Job, failures: FailureCollector, profiler: PhaseProfiler) -> None:
        super().__init__(job, failures, pass_seconds=0.0)
        self.profiler = profiler
        self.passes = [SoloPass(self._profile, PROFILE_S, "pass_skipped", lambda _: PROFILE_S)]

    def read(self, arm: VisionArm, samples: Samples) -> ArmMetrics:
        columns = [column for column, index in enumerate(samples.arms) if index == arm.index]
        self.profiler.walls[arm.index] = {"forward": float(np.median(np.array(samples.seconds)[:, columns]))}
        return super().read(arm, samples)

    def _profile(self, arm: VisionArm) -> ArmMetrics:
        timed = _record(arm, self.profiler.forwards(arm.index), details=False)
        return self.profiler.add(arm, [timed], [_record(arm, 1, details=True)])


def _record(arm: VisionArm, forwards: int, *, details: bool) -> Recorded:
    """Forwards under the profiler; one more before them does not count, as what it sets up is no part of a forward."""
    device = arm.condition.device
    with observed_functions(called), Recording(device, details=details) as recording:
        for _ in range(forwards + 1):
            recording.open("forward")
            arm.step()
            synchronise(device)
    recorded = recording.read(DTYPES[arm.condition.dtype].itemsize)
    del recorded.windows[0]
    return recorded
