"""Generation profile: where the time of prefill and of one decode step goes, after all arms were timed without a profiler."""

import time

import numpy as np

from sweeps.job import Job
from sweeps.outcome import Samples
from workers.arms.language import LanguageArm
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.kinds.generation import GenerationKind
from workers.kinds.profiled_job import FEWEST, PROFILE_S, PhaseProfiler
from workers.kinds.timed_job import ArmMetrics, SoloPass, run_timed
from workers.measure.recording import Recorded, Recording, called
from workers.models.cpp_build import observed_functions
from workers.models.share_weights import DTYPES

PROFILED_STEPS = 8
"""Decode steps of a run that are profiled; what follows them runs without the profiler."""


def run(job: Job) -> KindResult:
    """Time the job's arms (see `run_timed`), then profile each alone."""
    profiler = PhaseProfiler()
    return profiler.result(job, run_timed(job, lambda own, failures: GenerationProfileKind(own, failures, profiler)))


class GenerationProfileKind(GenerationKind):
    """Runs as in a generation job; the passes afterwards are those under the profiler, in the same process."""

    def __init__(self, job: Job, failures: FailureCollector, profiler: PhaseProfiler) -> None:
        super().__init__(job, failures, pass_seconds=0.0, isolated=False)
        self.profiler = profiler
        self.passes = [SoloPass(self._profile, PROFILE_S, "pass_skipped", lambda _: PROFILE_S)]

    def read(self, arm: LanguageArm, samples: Samples) -> ArmMetrics:
        prefills = [each.ttft_s - each.encoding_s for each in arm.runs]
        steps = np.concatenate([each.steps_s for each in arm.runs])
        self.profiler.walls[arm.index] = {"prefill": float(np.median(prefills)), "decode": float(np.median(steps))}
        return super().read(arm, samples)

    def _profile(self, arm: LanguageArm) -> ArmMetrics:
        _, *timed = (_record(arm, details=False) for _ in range(FEWEST + 1))  # the first sets up what is no part of a forward
        return self.profiler.add(arm, timed, [_record(arm, details=True)])


class _Marks:
    """A clock of the workload that marks the prefill and the first decode steps, and then ends the recording."""

    def __init__(self, recording: Recording, steps: int) -> None:
        self.recording, self.steps, self.read = recording, steps, 0

    def __call__(self) -> float:
        self.read += 1
        if self.read > self.steps + 1:
            self.recording.stop()
        else:
            self.recording.open("prefill" if self.read == 1 else "decode")
        return time.perf_counter()


def _record(arm: LanguageArm, *, details: bool) -> Recorded:
    """One run of the workload whose beginning is recorded."""
    steps = min(PROFILED_STEPS, len(arm.first.steps_s))
    with observed_functions(called), Recording(arm.condition.device, details=details) as recording:
        arm.workload.run(arm.model, clock=_Marks(recording, steps))
    return recording.read(DTYPES[arm.condition.dtype].itemsize)
