"""Generation profile: where the time of prefill and of one decode step goes, in rounds under a
profiler after those without.
"""

import time
from collections.abc import Sequence

from sweeps.model.job import Job
from sweeps.model.profile import Phase
from workers.arms.generation_workload import EnoughStepsError
from workers.arms.language import LanguageArm
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.generation import GenerationKind
from workers.kinds.profile import ProfilingKind
from workers.kinds.timed_job import Timed, run_timed
from workers.measure.interleaved import by_column
from workers.measure.profiling import Recording

PROFILED_STEPS = 8
"""Decode steps of a run that are profiled; the run ends with them."""


def run(job: Job) -> KindResult:
    """Time the job's arms (see `run_timed`), then profile them side by side."""
    return run_timed(job, GenerationProfileKind)


class GenerationProfileKind(ProfilingKind[LanguageArm], GenerationKind):
    """Runs as in a generation job; all in the same process."""

    def __init__(self, job: Job, failures: FailureCollector) -> None:
        super().__init__(job, failures, pass_seconds=0.0, isolated=False)
        self.profile(_run)

    def measure_together(self, arms: Sequence[LanguageArm], timed: Timed) -> None:
        samples = timed.samples
        prefills = {arm.index: [each.ttft_s - each.encoding_s for each in arm.runs] for arm in arms}
        walls: dict[Phase, Sequence[Sequence[float]]] = {
            "prefill": by_column(prefills, samples.arms, samples.order),
            "decode": samples.series["tpot"],
        }
        self.profiler.record(arms, timed, walls)


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
            raise EnoughStepsError
        self.recording.open("prefill" if self.read == 1 else "decode")
        return time.perf_counter()


def _run(arm: LanguageArm, recording: Recording) -> None:
    """The beginning of one run of the workload."""
    try:
        arm.workload.run(
            arm.model, clock=_Marks(recording, min(PROFILED_STEPS, len(arm.first.steps_s)))
        )
    except EnoughStepsError:
        return
