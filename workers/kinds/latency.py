"""Latency: all arms of a job timed side by side, then peak memory, energy and throughput in a pass of its own for each."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from sweeps.job import PASS_SECONDS, Job
from sweeps.outcome import Samples
from sweeps.stats.timing import outliers
from workers.arms.prepared import raised
from workers.arms.vision import ImageInputs, VisionArm, prepare_vision
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.kinds.timed_job import ArmMetrics, SoloPass, TimedKind, run_timed
from workers.measure.energy import measured_energy
from workers.measure.interleaved import calibrate
from workers.measure.memory import peak_memory
from workers.measure.metric_values import median_time, metric_value
from workers.measure.timer import Stopwatch, TimedStep, synchronise
from workers.models.token_trace import Forwards, count_forwards
from workers.models.vision import shared_vision

CHUNK_S = 0.1
"""Within a pass on a GPU the device is waited for this often, so that the pass ends in time."""


def run(job: Job, *, pass_seconds: float = PASS_SECONDS) -> KindResult:
    """Measure the job's arms (see `run_timed`); a pass of `pass_seconds` below 2 s is for tests."""
    return run_timed(job, partial(LatencyKind, pass_seconds=pass_seconds))


class LatencyKind(TimedKind[VisionArm]):
    """Forwards of one input; a hook counts them and their images."""

    def __init__(self, job: Job, failures: FailureCollector, *, pass_seconds: float) -> None:
        super().__init__(job, failures)
        self.pass_seconds = pass_seconds
        self.loaded = shared_vision(job.condition, job.content_hashes)
        self.inputs: ImageInputs = {}
        self.counted: dict[int, Forwards] = {}
        """By arm: forwards and images that the first block of its model saw while the samples were taken."""
        self.latency_s: dict[int, float] = {}
        self.passes = [SoloPass(self._run_alone, pass_seconds, "pass_skipped", lambda _: pass_seconds)]

    def prepare(self, index: int) -> VisionArm:
        return prepare_vision(self.job, index, self.loaded, self.inputs)

    def inner_loop(self, steps: Sequence[TimedStep], clock: Stopwatch) -> int:
        return calibrate(steps, clock)

    @contextmanager
    def observed(self, arm: VisionArm) -> Iterator[None]:
        with count_forwards(arm.model) as self.counted[arm.index]:
            yield

    def read(self, arm: VisionArm, samples: Samples, column: int) -> ArmMetrics:
        walls = np.array(samples.seconds)[:, column]
        metrics = [median_time("latency", walls), metric_value("outlier_share", float(outliers(walls).mean()), n=len(walls))]
        sound = consistent(self.counted[arm.index], len(walls) * samples.inner[column], arm.condition.batch_size)
        if samples.device_seconds is not None:
            devices = np.array(samples.device_seconds)[:, column]
            metrics.append(median_time("device_latency", devices))
            sound = sound and bool((devices <= walls).all())
        self.latency_s[arm.index] = float(np.median(walls))
        return ArmMetrics(metrics, raised(consistency_check_failed=not sound))

    def _run_alone(self, arm: VisionArm) -> ArmMetrics:
        """Peak memory, energy and mean power, and throughput from the images that the first block saw."""
        device = arm.condition.device
        chunk = max(1, int(CHUNK_S / self.latency_s[arm.index])) if device == "cuda" else 1
        called = 0
        with peak_memory(device) as memory, measured_energy(device) as spent, count_forwards(arm.model) as counted:
            start = now = time.perf_counter()
            while now - start < self.pass_seconds:
                for _ in range(chunk):
                    arm.step()
                synchronise(device)
                now = time.perf_counter()
                called += chunk
        throughput = metric_value("throughput", counted.images / (now - start), n=counted.forwards)
        sound = consistent(counted, called, arm.condition.batch_size)
        metrics = [throughput, *memory.metrics, *spent.metrics({"image": counted.images}, counted.forwards)]
        return ArmMetrics(metrics, raised(memory_unmeasured=not memory.metrics, consistency_check_failed=not sound))


def consistent(counted: Forwards, called: int, batch: int) -> bool:
    """Whether throughput x latency is the batch, for the images that the model's first block saw in `called` forwards.

    With the wall time of these very forwards, throughput is images / wall and latency is wall / called, so that their product
    is images / called: it holds exactly, however noisy the machine, or something was not what it seemed.
    """
    return counted.forwards == called and counted.images == called * batch
