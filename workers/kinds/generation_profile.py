"""Generation profile: where the time of prefill and of one decode step goes, in rounds under a
profiler after those without.
"""

import time
from collections.abc import Sequence

from sweeps.model.job import Job
from sweeps.model.profile import Phase
from workers.arms.language import LanguageArm
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.generation import GenerationKind
from workers.kinds.profile import DETAILS_S, PROFILE_S, PhaseProfiler
from workers.kinds.timed_job import ArmMetrics, SoloPass, Timed, run_timed
from workers.measure.interleaved import by_column
from workers.measure.recording import Recording
from workers.models.share_weights import DTYPES

PROFILED_STEPS = 8
"""Decode steps of a run that are profiled; the run ends with them."""


def run(job: Job) -> KindResult:
    """Time the job's arms (see `run_timed`), then profile them side by side."""
    profiler = PhaseProfiler()
    return profiler.result(
        job, run_timed(job, lambda own, failures: GenerationProfileKind(own, failures, profiler))
    )


class GenerationProfileKind(GenerationKind):
    """Runs as in a generation job; the rounds and passes afterwards are those under the profiler,
    in the same process.
    """

    def __init__(self, job: Job, failures: FailureCollector, profiler: PhaseProfiler) -> None:
        super().__init__(job, failures, pass_seconds=0.0, isolated=False)
        self.profiler = profiler
        self.passes = [SoloPass(self._profile, PROFILE_S, "pass_skipped", lambda _: DETAILS_S)]

    def measure_together(self, arms: Sequence[LanguageArm], timed: Timed) -> None:
        samples = timed.samples
        prefills = {arm.index: [each.ttft_s - each.encoding_s for each in arm.runs] for arm in arms}
        walls: dict[Phase, Sequence[Sequence[float]]] = {
            "prefill": by_column(prefills, samples.arms, samples.order),
            "decode": samples.series["tpot"],
        }
        self.profiler.record(arms, timed, walls, _run, self.failures)

    def _profile(self, arm: LanguageArm) -> ArmMetrics:
        return self.profiler.add(
            arm, lambda recording: _run(arm, recording), DTYPES[arm.condition.dtype].itemsize
        )


class _EnoughStepsError(Exception):
    """The prefill and the first decode steps were marked."""


class _Marks:
    """A clock of the workload that marks the prefill and the first decode steps, and then ends the
    run.
    """

    def __init__(self, recording: Recording, steps: int) -> None:
        self.recording, self.steps, self.read = recording, steps, 0

    def __call__(self) -> float:
        self.read += 1
        if self.read > self.steps + 1:
            self.recording.close()
            raise _EnoughStepsError
        self.recording.open("prefill" if self.read == 1 else "decode")
        return time.perf_counter()


def _run(arm: LanguageArm, recording: Recording) -> None:
    """The beginning of one run of the workload."""
    try:
        arm.workload.run(
            arm.model, clock=_Marks(recording, min(PROFILED_STEPS, len(arm.first.steps_s)))
        )
    except _EnoughStepsError:
        return
