"""Latency: all arms of a job timed side by side, then peak memory, energy and throughput in a pass of its own for each."""

import contextlib
import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sweeps.job import PASS_SECONDS, Dtype, Job, Pair
from sweeps.outcome import ArmOutcome, Metric, Samples
from sweeps.statistics import Estimate, median, outliers
from workers.kinds import Findings
from workers.kinds.arms import Ready, loaded, make_ready, use_threads
from workers.kinds.faults import Faults
from workers.measure.clock import stopwatch, synchronise
from workers.measure.energy import energy
from workers.measure.macs import Forwards, count_forwards
from workers.measure.memory import peak_memory
from workers.measure.monitors import Watch, watch
from workers.measure.rounds import ArmError, Warmup, calibrate, measure, warm_up

CHUNK_S = 0.1
"""Within a pass on a GPU the device is waited for this often, so that the pass ends in time."""
TIMEOUT_SHARE = 0.9
"""So much of the job's time-out is used by plan; pairs come first, passes that would reach beyond are skipped and flagged."""


@dataclass(frozen=True)
class Timed:
    """The samples of the arms that could be timed, and how they were warmed up."""

    samples: Samples
    warmup: Warmup
    watch: Watch
    counted: tuple[Forwards, ...]
    """Forwards and images that the first block of each column's model saw while the samples were taken."""


class Deadline:
    """When a job has to be done: its time-out counts from the start, less compiling, and anew whenever the alarm has rung."""

    def __init__(self, job: Job, faults: Faults) -> None:
        self.began, self.allowed, self.faults = time.monotonic(), TIMEOUT_SHARE * job.protocol.timeout_s, faults

    @property
    def left(self) -> float:
        """Seconds left."""
        return (self.faults.last_timeout or self.began) + self.allowed - time.monotonic()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Time that does not count, because it has a limit of its own."""
        start = time.monotonic()
        try:
            yield
        finally:
            stood_s = time.monotonic() - start
            self.began += stood_s
            if self.faults.last_timeout is not None:
                self.faults.last_timeout += stood_s


def answer(job: Job, *, pass_seconds: float = PASS_SECONDS) -> Findings:
    """Measure the job's arms; a fault of an arm becomes a failure and the others are measured.

    A pass of `pass_seconds` below 2 s is for tests. Raises what the model's loading raises: no arm is to blame for that.
    """
    faults = Faults()
    deadline = Deadline(job, faults)
    use_threads(job.condition)
    with torch.inference_mode():
        model = loaded(job.condition, job.contents)
        inputs: dict[tuple[int, Dtype], Tensor] = {}
        ready: list[Ready] = []
        for index, arm in enumerate(job.arms):
            with faults.of(index, f"preparing {arm}"), deadline.stopped() if index in job.compiled else contextlib.nullcontext():
                ready.append(make_ready(job, index, model, inputs))
        timed = _timed(job, ready, faults, deadline, reserve_s=pass_seconds * len(ready))
        arms = []
        flags = set(timed.watch.flags if timed else ())
        if timed and not timed.warmup.steady:
            flags.add("unsteady")
        for each in ready:
            outcome = each.outcome()
            if timed and each.index in timed.samples.arms:
                outcome = _with_times(outcome, timed, each.condition.batch_size)
                with faults.of(each.index, f"measuring memory and throughput of {each.arm}, after it was timed"):
                    outcome = _with_pass(outcome, each, pass_seconds, deadline)
            arms.append(outcome)
            flags.update({"identity_violated"} & set(outcome.flags))
    return Findings(
        arms=tuple(arms),
        failures=tuple(faults.rows),
        samples=timed.samples if timed else None,
        readings=timed.watch.readings if timed else {},
        flags=tuple(sorted(flags)),
    )


def _timed(job: Job, ready: Sequence[Ready], faults: Faults, deadline: Deadline, reserve_s: float) -> Timed | None:
    """Time the arms that still stand, anew without the one that fails; `None` when none stands.

    Pairs beyond the fewest asked for end when only `reserve_s` is left.
    """
    while True:
        pairs = [pair for pair in job.pairs if not faults.arms & set(pair)]
        _fail_orphans(job, pairs, faults)
        arms = [arm for arm in ready if arm.index not in faults.arms]
        if not arms:
            return None
        column = {arm.index: place for place, arm in enumerate(arms)}
        steps = [arm.step for arm in arms]
        clock = stopwatch(job.condition.device)
        try:
            with _no_collector():
                inner = calibrate(steps, clock)
                warmup = warm_up(steps, inner, seed=job.job_id, stopwatch=clock, deadline=time.monotonic() + deadline.left)
                budget_s = min(job.protocol.budget_s, deadline.left - reserve_s)
                with watch(job.condition.device, torch.get_num_threads()) as seen, contextlib.ExitStack() as counters:
                    counted = tuple(counters.enter_context(count_forwards(arm.model)) for arm in arms)
                    samples = measure(
                        steps,
                        inner,
                        arms=tuple(column),
                        pairs=[Pair(column[baseline], column[arm]) for baseline, arm in pairs],
                        protocol=job.protocol.model_copy(update={"budget_s": budget_s}),
                        seed=job.job_id,
                        stopwatch=clock,
                        deadline=time.monotonic() + deadline.left,
                    )
            return Timed(samples, warmup, seen, counted)
        except ArmError as fault:
            guilty = arms[fault.column]
            faults.add(guilty.index, fault.__cause__ or fault, f"timing {guilty.arm}")


def _fail_orphans(job: Job, alive: Sequence[Pair], faults: Faults) -> None:
    """Fail the arms all of whose baselines have failed: no question about them is left."""
    for baseline, arm in job.pairs:
        if arm not in faults.arms and not any(arm in pair for pair in alive):
            faults.inherit(arm, baseline, str(job.arms[baseline]))


def _with_times(outcome: ArmOutcome, timed: Timed, batch: int) -> ArmOutcome:
    column = timed.samples.arms.index(outcome.arm)
    walls = [row[column] for row in timed.samples.seconds]
    metrics = [
        _metric("latency", median(walls), "ms", 1e3),
        Metric(name="outlier_share", value=float(outliers(walls).mean()), unit="1", n=len(walls)),
    ]
    flags = list(outcome.flags)
    if not consistent(timed.counted[column], len(walls) * timed.samples.inner[column], batch):
        flags.append("identity_violated")
    if timed.samples.device_seconds is not None:
        devices = [row[column] for row in timed.samples.device_seconds]
        metrics.append(_metric("device_latency", median(devices), "ms", 1e3))
        if any(device > wall for device, wall in zip(devices, walls, strict=True)):
            flags.append("identity_violated")
    return outcome.model_copy(
        update={
            "warmup_s": timed.warmup.seconds[column],
            "warmup_forwards": timed.warmup.forwards,
            "metrics": (*outcome.metrics, *metrics),
            "flags": tuple(dict.fromkeys(flags)),
        }
    )


def _with_pass(outcome: ArmOutcome, arm: Ready, seconds: float, deadline: Deadline) -> ArmOutcome:
    """The arm alone for `seconds`: peak memory, energy and mean power, and throughput from the images its first block saw."""
    if deadline.left < seconds:
        return outcome.model_copy(update={"flags": (*outcome.flags, "pass_skipped")})
    device = arm.condition.device
    latency_s = next(metric.value for metric in outcome.metrics if metric.name == "latency") / 1e3
    chunk = max(1, int(CHUNK_S / latency_s)) if device == "cuda" else 1
    forwards_s = []
    with peak_memory(device) as memory, energy(device) as spent, count_forwards(arm.model) as counted:
        start = now = time.perf_counter()
        while now - start < seconds:
            before = now
            for _ in range(chunk):
                arm.step()
            synchronise(device)
            now = time.perf_counter()
            forwards_s.append((now - before) / chunk)
    throughput = counted.images / (now - start)
    metrics = [Metric(name="throughput", value=throughput, unit="images/s", n=counted.forwards), *memory.metrics]
    if spent.joules is not None and counted.images:
        metrics.append(Metric(name="energy_per_image", value=spent.joules / counted.images, unit="J", n=counted.forwards))
        metrics.append(Metric(name="mean_power", value=spent.joules / spent.seconds, unit="W", n=1))
    flags = list(outcome.flags)
    if not memory.metrics:
        flags.append("memory_unmeasured")
    if not consistent(counted, len(forwards_s) * chunk, arm.condition.batch_size):
        flags.append("identity_violated")
    return outcome.model_copy(update={"metrics": (*outcome.metrics, *metrics), "flags": tuple(dict.fromkeys(flags))})


def consistent(counted: Forwards, called: int, batch: int) -> bool:
    """Whether throughput x latency is the batch, for the images that the model's first block saw in `called` forwards.

    With the wall time of these very forwards, throughput is images / wall and latency is wall / called, so that their product
    is images / called: it holds exactly, however noisy the machine, or something was not what it seemed.
    """
    return counted.forwards == called and counted.images == called * batch


def _metric(name: str, estimate: Estimate, unit: str, scale: float) -> Metric:
    """`estimate` as a row; an interval that too few samples leave open is left out."""
    closed: Mapping[str, float] = {}
    if estimate.half_width != float("inf"):
        closed = {"low": estimate.low * scale, "high": estimate.high * scale}
    return Metric(name=name, value=estimate.value * scale, unit=unit, n=estimate.n, **closed)


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector from running inside a sample."""
    running = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
