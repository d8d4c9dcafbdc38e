"""Profile: where the time of each arm's forward goes, in rounds under a profiler after all arms
were timed without one; with what profiles of language models share.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from sweeps.model.condition import Device
from sweeps.model.job import Job, Pair
from sweeps.model.outcome import WORKER_UNFIT
from sweeps.model.profile import ArmProfile, Phase
from sweeps.stats.pooling import within_process
from sweeps.stats.profiles import ArmWall, PhaseRounds, bounded, less_profiler
from sweeps.stats.timing import Rounds
from workers.arms.prepared import PreparedArm, raised
from workers.arms.vision import VisionArm
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.latency import LatencyKind
from workers.kinds.timed_job import ArmMetrics, SoloPass, Timed, run_timed
from workers.measure.interleaved import ArmError
from workers.measure.profiled_rounds import PhaseTable, profile_phase, profile_rounds
from workers.measure.readings import metric_value
from workers.measure.recording import Recording, TorchRecording, called
from workers.measure.timer import measure_peaks, synchronise
from workers.models.cpp_build import observed_functions
from workers.models.share_weights import DTYPES

ROUNDS_S, DETAILS_S = 4.0, 1.0
"""Kept free of each job's time for each arm: its part of the rounds under the profiler, and its
forwards with shapes."""
PROFILE_S = ROUNDS_S + DETAILS_S

_A = TypeVar("_A", bound=PreparedArm)


class PhaseProfiler:
    """Profiles of a job's arms, phase by phase, from rounds with and without the profiler."""

    def __init__(self) -> None:
        self.walls: dict[Phase, Rounds] = {}
        """Fitted rounds without a profiler."""
        self.columns: tuple[int, ...] = ()
        """The arm of each column of the rounds under the profiler."""
        self.tables: dict[Phase, PhaseTable] = {}
        self.fitted: dict[Phase, PhaseRounds] = {}
        self.found: list[ArmProfile] = []

    def record(
        self,
        arms: Sequence[_A],
        timed: Timed,
        walls: Mapping[Phase, Sequence[Sequence[float]]],
        run: Callable[[_A, Recording], object],
        failures: FailureCollector,
    ) -> None:
        """Run the arms in rounds under the profiler, without one that fails meanwhile.

        `walls` are seconds of the rounds without it, by phase and of the shape of the samples;
        `run` runs an arm once and marks its forwards. Nothing is recorded where less time is left
        than the arms need afterwards.
        """
        samples = timed.samples
        self.walls = {
            phase: Rounds(table, samples.arms, warmup_converged=timed.warmup.steady)
            for phase, table in walls.items()
        }
        self.columns = samples.arms
        allowed_s = min(ROUNDS_S * len(arms), failures.left_s - DETAILS_S * len(arms))
        while allowed_s > 0:
            left = {arm.index: arm for arm in arms if arm.index not in failures.arms}
            self.columns = tuple(index for index in samples.arms if index in left)
            if not left:
                return
            device = next(iter(left.values())).condition.device
            steps = [
                lambda recording, own=left[index]: run(own, recording) for index in self.columns
            ]
            deadline = time.monotonic() + allowed_s
            try:
                with observed_functions(called):
                    self.tables = profile_rounds(
                        steps, arms=self.columns, device=device, seed=uuid4().hex, deadline=deadline
                    )
                break
            except ArmError as error:
                failed = left[self.columns[error.column]]
                if not failures.add_in_turn(
                    failed.index,
                    error.__cause__ or error,
                    f"profiling {failed.arm}",
                    "profiling the arms",
                ):
                    return
        for phase, table in self.tables.items():
            own = {arm: self.walls[phase].seconds(arm) for arm in set(self.columns)}
            times = (
                less_profiler(table.times, table.own, self.columns, own)
                if device == "cpu"
                else table.times
            )
            self.fitted[phase] = PhaseRounds(times, self.columns, device)

    def add(
        self, arm: PreparedArm, record_details: Callable[[Recording], object], itemsize: int
    ) -> ArmMetrics:
        """Keep the profile of every phase of an arm; the flag where its device time cannot be that
        of its wall.

        `record_details` runs it once and marks its forwards; `itemsize` is that of its numbers in
        bytes. Nothing sees inside what is compiled for a CPU, so that such an arm has no classes of
        time.
        """
        condition = arm.condition
        visible = (condition.device, condition.runtime) != ("cpu", "compile")
        metrics, possible = [], True
        if arm.index not in self.columns:
            return ArmMetrics()  # it failed under the profiler
        if not self.fitted:
            return ArmMetrics(flags=["pass_skipped"])
        detailed = [_details(condition.device, record_details, itemsize)]
        for phase, fitted in self.fitted.items():
            wall = ArmWall(arm.index, self.walls[phase].seconds(arm.index))
            rounds: Any = {"table": self.tables[phase], "fitted": fitted, "columns": self.columns}
            profile, sound = profile_phase(
                phase, wall, **rounds, detailed=detailed, visible=visible
            )
            self.found.append(profile)
            metrics.append(metric_value(f"{phase}_wall", 1e3 * wall.seconds))
            possible = possible and sound
        return ArmMetrics(metrics, raised(consistency_check_failed=not possible))

    def result(self, job: Job, measured: KindResult) -> KindResult:
        """The result of the job: profiles instead of samples, with the peaks of the machine for
        the dtypes of its arms.
        """
        dtypes = [arm.condition(job.condition).dtype for arm in job.arms]
        peaks = measure_peaks(job.condition.device, dtypes) if self.found else ()
        compared = tuple(self._compared(profile, job) for profile in self.found)
        metrics = dict(measured.system_metrics)
        if job.condition.device == "cuda":
            # torch leaves CUPTI attached, which slows every later launch: this process times
            # nothing more
            metrics[WORKER_UNFIT] = 1.0
        return measured._replace(
            samples=None, profiles=compared, peaks=peaks, system_metrics=metrics
        )

    def _compared(self, profile: ArmProfile, job: Job) -> ArmProfile:
        """A profile with what distinguishes it from that of its first baseline."""
        baseline = next((pair.baseline for pair in job.pairs if pair.arm == profile.arm), None)
        walls, fitted = self.walls[profile.phase], self.fitted[profile.phase]
        if baseline is None or baseline not in self.columns:
            return profile
        pair = Pair(baseline, profile.arm)
        speedup = within_process(walls.contrast(*pair), walls.rounds)
        profiled = fitted.profiled_speedup(*pair)
        before, after = (ArmWall(arm, walls.seconds(arm)) for arm in pair)
        changes = fitted.changes(before, after, speedup, profiled) if profile.times else {}
        figures = {
            "speedup": bounded(speedup),
            "profiled_speedup": bounded(profiled),
            "changes": changes,
        }
        return profile.model_copy(update={"baseline": baseline, **figures})


def _details(device: Device, run: Callable[[Recording], object], itemsize: int) -> TorchRecording:
    """One run with shapes and allocations; one more before it does not count, as what it sets up is
    no part of a forward.
    """
    with observed_functions(called), Recording(device, details=True) as recording:
        run(recording)
        recording.close()
        skipped = recording.opened
        run(recording)
    recorded = recording.read(itemsize)
    del recorded.windows[:skipped]
    return recorded


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
