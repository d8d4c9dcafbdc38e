"""Latency: all arms of a job timed side by side, with bursts for throughput; then peak memory and energy of each alone."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from sweeps.job import PASS_SECONDS, Job
from sweeps.outcome import Samples
from sweeps.stats.timing import median, outliers
from workers.arms.prepared import raised
from workers.arms.vision import ImageInputs, VisionArm, prepare_vision
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.kinds.timed_job import ArmMetrics, SoloPass, TimedKind, run_timed
from workers.measure.energy import measured_energy, measures_energy
from workers.measure.interleaved import calibrate
from workers.measure.memory import peak_memory
from workers.measure.metric_values import estimated, median_time, metric_value
from workers.measure.timer import Stopwatch, TimedStep, synchronise
from workers.models.token_trace import Forwards, count_forwards
from workers.models.vision import shared_vision

BURST = 4
"""Samples in one go, by which throughput is measured."""
MEMORY_FORWARDS = 3
"""In which the peak of memory is reached; a GPU is waited for after as many."""


def run(job: Job, *, pass_seconds: float = PASS_SECONDS) -> KindResult:
    """Measure the job's arms (see `run_timed`); a pass of `pass_seconds` below 2 s is for tests."""
    return run_timed(job, partial(LatencyKind, pass_seconds=pass_seconds))


class LatencyKind(TimedKind[VisionArm]):
    """Forwards of one input; a hook counts them and their images."""

    burst = BURST

    def __init__(self, job: Job, failures: FailureCollector, *, pass_seconds: float) -> None:
        super().__init__(job, failures)
        self.energy_s = pass_seconds if measures_energy(job.condition.device) else 0.0
        """How long each arm runs alone for its energy, where it can be read."""
        self.loaded = shared_vision(job.condition, job.content_hashes)
        self.inputs: ImageInputs = {}
        self.counted: dict[int, Forwards] = {}
        """By arm: forwards and images that the first block of its model saw while the samples were taken."""
        self.passes = [SoloPass(self._run_alone, self.energy_s, "pass_skipped", lambda _: self.energy_s)]

    def prepare(self, index: int) -> VisionArm:
        return prepare_vision(self.job, index, self.loaded, self.inputs)

    def inner_loop(self, steps: Sequence[TimedStep], clock: Stopwatch) -> int:
        return calibrate(steps, clock)

    @contextmanager
    def observed(self, arm: VisionArm) -> Iterator[None]:
        with count_forwards(arm.model) as self.counted[arm.index]:
            yield

    def read(self, arm: VisionArm, samples: Samples) -> ArmMetrics:
        columns = [column for column, index in enumerate(samples.arms) if index == arm.index]
        walls = np.array(samples.seconds)[:, columns].ravel()
        steady = np.array(samples.bursts)[:, list(dict.fromkeys(samples.arms)).index(arm.index)]
        metrics = [
            median_time("latency", walls),
            metric_value("outlier_share", float(outliers(walls).mean()), n=len(walls)),
            estimated("throughput", median(arm.condition.batch_size / steady)),
            metric_value("steady_ratio", float(np.median(steady) / np.median(walls)), n=len(steady)),
        ]
        called = (len(walls) + BURST * len(steady)) * samples.inner[0]
        sound = consistent(self.counted[arm.index], called, arm.condition.batch_size)
        if samples.device_seconds is not None:
            devices = np.array(samples.device_seconds)[:, columns].ravel()
            metrics.append(median_time("device_latency", devices))
            sound = sound and bool((devices <= walls).all())
        return ArmMetrics(metrics, raised(consistency_check_failed=not sound))

    def _run_alone(self, arm: VisionArm) -> ArmMetrics:
        """Peak memory in a few forwards; energy and mean power in `energy_s` of them, where they can be read."""
        device = arm.condition.device
        called = 0
        with peak_memory(device) as memory, measured_energy(device) as spent, count_forwards(arm.model) as counted:
            start = time.perf_counter()
            while called < MEMORY_FORWARDS or time.perf_counter() - start < self.energy_s:
                arm.step()
                called += 1
                if called % MEMORY_FORWARDS == 0:
                    synchronise(device)
        sound = consistent(counted, called, arm.condition.batch_size)
        metrics = [*memory.metrics, *spent.metrics({"image": counted.images}, counted.forwards)]
        return ArmMetrics(metrics, raised(memory_unmeasured=not memory.metrics, consistency_check_failed=not sound))


def consistent(counted: Forwards, called: int, batch: int) -> bool:
    """Whether throughput x latency is the batch, for the images that the model's first block saw in `called` forwards.

    With the wall time of these very forwards, throughput is images / wall and latency is wall / called, so that their product
    is images / called: it holds exactly, however noisy the machine, or something was not what it seemed.
    """
    return counted.forwards == called and counted.images == called * batch
