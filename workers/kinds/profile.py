"""Profile: where the time of each arm's forward goes, in rounds under a profiler after all arms
were timed without one; with what profiles of language models share.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar
from uuid import uuid4

from sweeps.model.job import Job
from sweeps.model.outcome import WORKER_UNFIT
from sweeps.model.profile import ArmProfile, Phase
from sweeps.stats.pooling import within_process
from sweeps.stats.profiles import ArmWall, PhaseRounds, bounded, less_profiler
from sweeps.stats.timing import Rounds
from workers.arms.prepared import PreparedArm, raised
from workers.arms.vision import VisionArm
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.latency import LatencyKind
from workers.kinds.timed_job import ArmMetrics, SoloPass, Timed, TimedKind, run_timed
from workers.measure.interleaved import ArmError
from workers.measure.peaks import measure_peaks
from workers.measure.profiling import (
    PhaseTable,
    Recording,
    TorchRecording,
    called,
    profile_phase,
    profile_rounds,
)
from workers.measure.samples import wall_metric
from workers.measure.timer import synchronise
from workers.models.cpp_build import observed_functions
from workers.models.share_weights import loaded_dtype

ROUNDS_S, DETAILS_S = 4.0, 1.0
"""Kept free of each job's time for each arm: its part of the rounds under the profiler, and its
forwards with shapes."""
PROFILE_S = ROUNDS_S + DETAILS_S

_A = TypeVar("_A", bound=PreparedArm)


class PhaseProfiler(Generic[_A]):
    """Profiles of a job's arms, phase by phase, from rounds with and without the profiler."""

    def __init__(self, failures: FailureCollector, run: Callable[[_A, Recording], object]) -> None:
        """`run` runs an arm once and marks its forwards."""
        self.failures, self.run = failures, run
        details = SoloPass(self._add, PROFILE_S, "pass_skipped", lambda _: DETAILS_S, answers=True)
        self.passes = [details]
        self.walls: dict[Phase, Rounds] = {}
        """Fitted rounds without a profiler."""
        self.columns: tuple[int, ...] = ()
        """The arm of each column of the rounds under the profiler."""
        self.tables: dict[Phase, PhaseTable] = {}
        self.fitted: dict[Phase, PhaseRounds] = {}
        self.found: list[ArmProfile] = []

    def record(
        self, arms: Sequence[_A], timed: Timed, walls: Mapping[Phase, Sequence[Sequence[float]]]
    ) -> None:
        """Run the arms in rounds under the profiler, without one that fails meanwhile.

        `walls` are seconds of the rounds without it, by phase and of the shape of the samples.
        Nothing is recorded where less time is left than the arms need afterwards.
        """
        failures, self.columns = self.failures, timed.samples.arms
        self.walls = {
            phase: Rounds(table, self.columns, warmup_converged=timed.warmup.steady)
            for phase, table in walls.items()
        }
        device, by_index = arms[0].condition.device, {arm.index: arm for arm in arms}
        allowed_s = min(ROUNDS_S * len(arms), failures.left_s - DETAILS_S * len(arms))
        while allowed_s > 0:
            columns = [
                by_index[index] for index in timed.samples.arms if index not in failures.arms
            ]
            self.columns = tuple(arm.index for arm in columns)
            if not columns:
                return
            steps = [partial(self.run, arm) for arm in columns]
            deadline = time.monotonic() + allowed_s
            try:
                with observed_functions(called):
                    self.tables = profile_rounds(
                        steps, arms=self.columns, device=device, seed=uuid4().hex, deadline=deadline
                    )
                break
            except ArmError as error:
                if not failures.add_in_turn(error, columns, "profiling"):
                    return
        for phase, table in self.tables.items():
            own = {arm: self.walls[phase].seconds(arm) for arm in set(self.columns)}
            times = (
                less_profiler(table.times, table.own, self.columns, own)
                if device == "cpu"
                else table.times
            )
            self.fitted[phase] = PhaseRounds(times, self.columns, device)

    def _add(self, arm: _A) -> ArmMetrics:
        """Keep the profile of every phase of an arm; the flag where its device time cannot be that
        of its wall.

        Nothing sees inside what is compiled or exported for a CPU, so that such an arm has no
        classes of time.
        """
        condition = arm.condition
        if arm.index not in self.columns:
            return ArmMetrics()  # it failed under the profiler
        if not self.fitted:
            return ArmMetrics(flags=["pass_skipped"])
        details, metrics, possible = self._details(arm), [], True
        for phase, fitted in self.fitted.items():
            wall = ArmWall(arm.index, self.walls[phase].seconds(arm.index))
            profile, sound = profile_phase(
                phase,
                wall,
                table=self.tables[phase],
                fitted=fitted,
                details=details,
                visible=condition.device != "cpu" or condition.runtime == "eager",
            )
            self.found.append(profile)
            metrics.append(wall_metric(profile))
            possible = possible and sound
        return ArmMetrics(metrics, raised(consistency_check_failed=not possible))

    def _details(self, arm: _A) -> TorchRecording:
        """One run with shapes and allocations; one more before it does not count, as what it sets
        up is no part of a forward.
        """
        condition = arm.condition
        with (
            observed_functions(called),
            Recording(condition.device, details=True) as recording,
        ):
            self.run(arm, recording)
            recording.close()
            skipped = recording.opened
            self.run(arm, recording)
        recorded = recording.read(loaded_dtype(condition).itemsize)
        del recorded.windows[:skipped]
        return recorded

    def result(self, measured: KindResult) -> KindResult:
        """The result of the job: profiles instead of samples, with the peaks of the machine for
        the dtypes of its arms.
        """
        job = self.failures.job
        device = job.condition.device
        dtypes = [arm.condition(job.condition).dtype for arm in job.arms]
        metrics = dict(measured.system_metrics)
        if device == "cuda":
            # torch leaves CUPTI attached, which slows every later launch: this process times
            # nothing more
            metrics[WORKER_UNFIT] = 1.0
        return measured._replace(
            samples=None,
            profiles=tuple(map(self._compared, self.found)),
            peaks=measure_peaks(device, dtypes) if self.found else (),
            system_metrics=metrics,
        )

    def _compared(self, profile: ArmProfile) -> ArmProfile:
        """A profile with what distinguishes it from that of its first baseline."""
        pair = next((pair for pair in self.failures.job.pairs if pair.arm == profile.arm), None)
        walls, fitted = self.walls[profile.phase], self.fitted[profile.phase]
        if pair is None or pair.baseline not in self.columns:
            return profile
        speedup = within_process(walls.contrast(*pair), walls.rounds)
        profiled = fitted.profiled_speedup(*pair)
        before, after = (ArmWall(arm, walls.seconds(arm)) for arm in pair)
        figures = {
            "baseline": pair.baseline,
            "speedup": bounded(speedup),
            "profiled_speedup": bounded(profiled),
            "changes": fitted.changes(before, after, speedup, profiled) if profile.times else {},
        }
        return profile.model_copy(update=figures)


def run(job: Job) -> KindResult:
    """Time the job's arms (see `run_timed`), then profile them side by side."""
    return run_timed(job, ProfileKind)


class ProfilingKind(TimedKind[_A]):
    """Mixed into a kind that times its arms: the rounds and passes afterwards are those under the
    profiler.
    """

    profiler: PhaseProfiler[_A]

    def profile(self, run: Callable[[_A, Recording], object]) -> None:
        """`run` runs an arm once and marks its forwards."""
        self.profiler = PhaseProfiler(self.failures, run)
        self.passes = self.profiler.passes

    def measure_together(self, arms: Sequence[_A], timed: Timed) -> None:
        self.profiler.record(arms, timed, {"forward": timed.samples.seconds})

    def finish(self, result: KindResult) -> KindResult:
        return self.profiler.result(result)


class ProfileKind(ProfilingKind[VisionArm], LatencyKind):
    """Forwards as in a latency job."""

    def __init__(self, job: Job, failures: FailureCollector) -> None:
        super().__init__(job, failures, pass_seconds=0.0)
        self.profile(run_marked)


def run_marked(arm: PreparedArm, recording: Recording) -> None:
    """One forward or call, until the device is done."""
    recording.open("forward")
    arm.step()
    synchronise(arm.condition.device)
