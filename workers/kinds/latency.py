"""Latency: all arms of a job timed side by side, with bursts for throughput; then peak memory and
energy of each alone.
"""

import contextlib
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sweeps.model.condition import Dtype
from sweeps.model.job import PASS_SECONDS, Job
from sweeps.model.outcome import Samples
from workers.arms.prepared import raised
from workers.arms.vision import ImageInputs, VisionArm, prepare_vision
from workers.kinds.failures import FailureCollector, KindResult
from workers.kinds.timed_job import ArmMetrics, SoloPass, TimedKind, run_timed
from workers.measure.optional import optional
from workers.measure.peaks import measure_peaks
from workers.measure.readings import (
    measured_energy,
    measures_energy,
    peak_memory,
)
from workers.measure.samples import (
    burst_times,
    metric_value,
    own_times,
    possible_times,
    sampled_metrics,
    steady_throughput,
)
from workers.measure.timer import repeat
from workers.models.runtime import Forwards, count_forwards
from workers.models.vision import fresh_copy, shared_vision

FloatArray = NDArray[np.float64]
BURST = 4
"""Samples in one go, by which throughput is measured."""
STEADY_VISITS = 3
"""First visits of a process to a job that measure it: one alone may be disturbed."""
MEMORY_FORWARDS = 3
"""In which the peak of memory is reached; a GPU is waited for after as many."""


@dataclass
class Steady:
    """Steady running as earlier visits of this process to a job found it."""

    ratios: dict[int, list[float]] = field(default_factory=dict)
    """By arm and visit the time of a forward in steady running over that of a sample."""
    bursts: int = 0
    """Of each arm, at the last of them."""


BUDGET_FOR_PEAKS_S = 5.0
"""Of all visits to a job: with less, the half second in which peaks are measured is too much."""
PEAKS_OF: set[Dtype] = set()
"""Dtypes whose peaks this process has measured."""
_STEADY: dict[str, Steady] = {}


def run(job: Job, *, pass_seconds: float = PASS_SECONDS) -> KindResult:
    """Measure the job's arms (see `run_timed`); a pass of `pass_seconds` below 2 s is for tests."""
    return run_timed(job, partial(LatencyKind, pass_seconds=pass_seconds))


class LatencyKind(TimedKind[VisionArm]):
    """Forwards of one input; a hook counts them and their images."""

    short = True

    def __init__(self, job: Job, failures: FailureCollector, *, pass_seconds: float) -> None:
        super().__init__(job, failures)
        self.energy_s = (
            pass_seconds / job.protocol.passes if measures_energy(job.condition.device) else 0.0
        )
        """How long each arm runs alone for its energy, where it can be read."""
        self.kept = shared_vision(job.condition, job.content_hashes)
        self.loaded = fresh_copy(self.kept) if self.visits else self.kept
        self.inputs: ImageInputs = {}
        self.counted: dict[int, list[Forwards]] = {}
        """By arm, for each of its copies: forwards and images that the first block saw while the
        samples were taken."""
        self.steady = _STEADY.setdefault(job.visited_id, Steady()) if self.visits else Steady()
        visited = min(
            (len(self.steady.ratios.get(arm, ())) for arm in range(len(job.arms))), default=0
        )
        self.burst = BURST if visited < STEADY_VISITS else 0
        alone = SoloPass(self._run_alone, self.energy_s, "pass_skipped", lambda _: self.energy_s)
        self.passes = [alone if self.energy_s else self.once(alone)]

    def build(self, index: int, *, kept: bool) -> VisionArm:
        """An arm on this visit's copy of the weights, or on those that are kept."""
        if kept:
            return prepare_vision(self.job, index, self.kept, {})
        return prepare_vision(self.job, index, self.loaded, self.inputs)

    def output(self, arm: VisionArm) -> Tensor:
        logits: Tensor = arm.model(arm.x)
        return logits.clone()

    @contextlib.contextmanager
    def observed(self, arm: VisionArm) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            with optional("forwards and images"):
                seen = stack.enter_context(count_forwards(arm.model, blocks=arm.described))
                self.counted[arm.index] = [*self.counted.get(arm.index, ()), seen]
            yield

    def read(self, arm: VisionArm, samples: Samples) -> ArmMetrics:
        walls = own_times(samples.seconds, samples, arm.index)
        each = samples.inner[0] + self.job.warm
        called = len(walls) * each
        if samples.bursts is not None:
            steady_s = burst_times(samples, arm.index)
            called += len(steady_s) * (BURST * samples.inner[0] + self.job.warm)
            self.steady.ratios.setdefault(arm.index, []).append(
                float(np.median(steady_s) / np.median(walls))
            )
            self.steady.bursts = len(steady_s)
        ratio = metric_value(
            "steady_ratio", statistics.median(self.steady.ratios[arm.index]), n=self.steady.bursts
        )
        # of a later visit its throughput is that of its own state of the machine, as its latency is
        metrics = [
            steady_throughput(samples, arm.index, arm.condition.batch_size, ratio.value),
            ratio,
            *sampled_metrics(samples, arm.index),
        ]
        counted = self.counted[arm.index]
        seen = Forwards(
            sum(each.forwards for each in counted), sum(each.images for each in counted)
        )
        sound = consistent(seen, called, arm.condition.batch_size)
        sound = sound and possible_times(samples, arm.index)
        return ArmMetrics(metrics, raised(consistency_check_failed=not sound))

    def finish(self, result: KindResult) -> KindResult:
        """With the peaks of a CPU, by which a baseline far below them is known; once in a process,
        where they take little of the budget.
        """
        condition = self.job.condition
        budget_s = self.job.protocol.budget_s * self.job.protocol.passes
        if condition.device == "cuda" or budget_s < BUDGET_FOR_PEAKS_S:
            return result
        dtypes = {arm.condition(condition).dtype for arm in self.job.arms}
        if missing := dtypes - PEAKS_OF:
            PEAKS_OF.update(missing)
            return result._replace(peaks=measure_peaks("cpu", sorted(missing)))
        return result

    def _run_alone(self, arm: VisionArm) -> ArmMetrics:
        """Peak memory in a few forwards; energy and mean power in `energy_s` of them, where they
        can be read.
        """
        device = arm.condition.device
        with (
            peak_memory(device, arm.captured_bytes) as memory,
            measured_energy(device) as spent,
            count_forwards(arm.model, blocks=arm.described) as counted,
        ):
            called = repeat(device, arm.step, self.energy_s, MEMORY_FORWARDS)
        sound = consistent(counted, called, arm.condition.batch_size)
        metrics = [*memory, *spent.metrics({"image": counted.images}, counted.forwards)]
        return ArmMetrics(
            metrics,
            raised(memory_unmeasured=not memory, consistency_check_failed=not sound),
        )


def consistent(counted: Forwards, called: int, batch: int) -> bool:
    """Whether throughput x latency is the batch, for the images that the model's first block saw in
    `called` forwards.

    With the wall time of these very forwards, throughput is images / wall and latency is wall /
    called, so that their product is images / called: it holds exactly, however noisy the machine,
    or something was not what it seemed.
    """
    return counted.forwards == called and counted.images == called * batch
