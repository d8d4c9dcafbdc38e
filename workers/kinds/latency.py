"""Latency: all arms of a job timed side by side, then peak memory, energy and throughput in a pass of its own for each."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sweeps.job import PASS_SECONDS, Dtype, Job, Pair
from sweeps.outcome import ArmOutcome, MetricValue
from sweeps.stats.timing import median, outliers
from workers.arms.vision import PreparedArm, loaded, make_ready
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.kinds.timed_job import Deadline, Timed, added, concluded, interleaved, prepared, stopwatch_for
from workers.measure.energy import energy
from workers.measure.interleaved import calibrate, measure, warm_up
from workers.measure.memory import peak_memory
from workers.measure.metric_values import row
from workers.measure.monitors import watch
from workers.measure.threads import use_threads
from workers.measure.timer import synchronise
from workers.models.token_trace import Forwards, count_forwards

CHUNK_S = 0.1
"""Within a pass on a GPU the device is waited for this often, so that the pass ends in time."""


@dataclass(frozen=True)
class Counted(Timed):
    """The same, with a witness of how much was done."""

    forwards: tuple[Forwards, ...]
    """Forwards and images that the first block of each column's model saw while the samples were taken."""


def answer(job: Job, *, pass_seconds: float = PASS_SECONDS) -> KindResult:
    """Measure the job's arms; a fault of an arm becomes a failure and the others are measured.

    A pass of `pass_seconds` below 2 s is for tests. Raises what the model's loading raises: no arm is to blame for that.
    """
    faults = FailureCollector()
    deadline = Deadline(job, faults)
    use_threads(job.condition)
    with torch.inference_mode():
        model = loaded(job.condition, job.content_hashes)
        inputs: dict[tuple[int, Dtype], Tensor] = {}
        ready = prepared(job, faults, deadline, lambda index: make_ready(job, index, model, inputs))
        timed = _timed(job, ready, faults, deadline, reserve_s=pass_seconds * len(ready))
        return concluded(ready, timed, faults, _with_times, lambda done, arm: _with_pass(done, arm, pass_seconds, deadline))


def _timed(
    job: Job, ready: Sequence[PreparedArm], faults: FailureCollector, deadline: Deadline, reserve_s: float
) -> Counted | None:
    """Time the arms that stand (see `interleaved`); pairs beyond the fewest asked for end when only `reserve_s` is left."""

    def take(arms: Sequence[PreparedArm], pairs: Sequence[Pair]) -> Counted:
        steps = [arm.step for arm in arms]
        with stopwatch_for(job, arms, steps, faults) as clock:
            inner = calibrate(steps, clock)
            warmup = warm_up(steps, inner, seed=job.job_id, stopwatch=clock, deadline=deadline.at)
            budget_s = min(job.protocol.budget_s, deadline.left - reserve_s)
            with watch(job.condition.device, torch.get_num_threads()) as seen, contextlib.ExitStack() as counters:
                forwards = tuple(counters.enter_context(count_forwards(arm.model)) for arm in arms)
                samples = measure(
                    steps,
                    inner,
                    arms=[arm.index for arm in arms],
                    pairs=pairs,
                    protocol=job.protocol.model_copy(update={"budget_s": budget_s}),
                    seed=job.job_id,
                    stopwatch=clock,
                    deadline=deadline.at,
                )
        return Counted(samples, warmup, seen, forwards)

    return interleaved(job, ready, faults, take)


def _with_times(outcome: ArmOutcome, arm: PreparedArm, timed: Counted) -> ArmOutcome:
    column = timed.samples.arms.index(outcome.arm)
    walls = [row[column] for row in timed.samples.seconds]
    metrics = [
        row("latency", median(walls), "ms", 1e3),
        MetricValue(name="outlier_share", value=float(outliers(walls).mean()), unit="1", n=len(walls)),
    ]
    sound = consistent(timed.forwards[column], len(walls) * timed.samples.inner[column], arm.condition.batch_size)
    if timed.samples.device_seconds is not None:
        devices = [row[column] for row in timed.samples.device_seconds]
        metrics.append(row("device_latency", median(devices), "ms", 1e3))
        sound = sound and all(device <= wall for device, wall in zip(devices, walls, strict=True))
    flags = [] if sound else ["consistency_check_failed"]
    warmup = timed.warmup
    return added(outcome, metrics, flags, warmup_s=warmup.seconds[column], warmup_forwards=warmup.forwards)


def _with_pass(outcome: ArmOutcome, arm: PreparedArm, seconds: float, deadline: Deadline) -> ArmOutcome:
    """The arm alone for `seconds`: peak memory, energy and mean power, and throughput from the images its first block saw."""
    if deadline.left < seconds:
        return added(outcome, flags=["pass_skipped"])
    device = arm.condition.device
    latency_s = next(metric.value for metric in outcome.metrics if metric.name == "latency") / 1e3
    chunk = max(1, int(CHUNK_S / latency_s)) if device == "cuda" else 1
    called = 0
    with peak_memory(device) as memory, energy(device) as spent, count_forwards(arm.model) as counted:
        start = now = time.perf_counter()
        while now - start < seconds:
            for _ in range(chunk):
                arm.step()
            synchronise(device)
            now = time.perf_counter()
            called += chunk
    throughput = MetricValue(name="throughput", value=counted.images / (now - start), unit="images/s", n=counted.forwards)
    metrics = [throughput, *memory.metrics, *spent.metrics({"image": counted.images}, counted.forwards)]
    flags = [] if memory.metrics else ["memory_unmeasured"]
    flags += [] if consistent(counted, called, arm.condition.batch_size) else ["consistency_check_failed"]
    return added(outcome, metrics, flags)


def consistent(counted: Forwards, called: int, batch: int) -> bool:
    """Whether throughput x latency is the batch, for the images that the model's first block saw in `called` forwards.

    With the wall time of these very forwards, throughput is images / wall and latency is wall / called, so that their product
    is images / called: it holds exactly, however noisy the machine, or something was not what it seemed.
    """
    return counted.forwards == called and counted.images == called * batch
