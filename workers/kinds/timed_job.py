"""What the timing kinds share: the deadline, rounds that go on without an arm that fails, and how arms become an outcome."""

import contextlib
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sweeps.job import Arm, Job, Pair
from sweeps.outcome import ArmOutcome, MetricValue, Samples
from workers.kinds import KindResult
from workers.kinds.failures import FailureCollector
from workers.measure.interleaved import ArmError, Warmup
from workers.measure.monitors import Watch
from workers.measure.timer import Step, Stopwatch, stopwatch

TIMEOUT_SHARE = 0.9
"""So much of the job's time-out is used by plan; pairs come first, passes that would reach beyond are skipped and flagged."""


class Timeable(Protocol):
    """An arm that can be timed."""

    @property
    def index(self) -> int:
        """Its place in the job's arms."""

    @property
    def arm(self) -> Arm:
        """As asked."""

    def outcome(self) -> ArmOutcome:
        """What is known of it before it is timed."""


@dataclass(frozen=True)
class Timed:
    """The samples of the arms that could be timed, and how they were warmed up."""

    samples: Samples
    warmup: Warmup
    watch: Watch


A = TypeVar("A", bound=Timeable)
T = TypeVar("T", bound=Timed)


class Deadline:
    """When a job has to be done: its time-out counts from the start, less compiling, and anew whenever the alarm has rung."""

    def __init__(self, job: Job, faults: FailureCollector) -> None:
        self.began, self.allowed, self.faults = time.monotonic(), TIMEOUT_SHARE * job.protocol.timeout_s, faults

    @property
    def at(self) -> float:
        """As a reading of `time.monotonic()`."""
        return (self.faults.last_timeout or self.began) + self.allowed

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.at - time.monotonic()

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


def prepared(job: Job, faults: FailureCollector, deadline: Deadline, make: Callable[[int], A]) -> list[A]:
    """The arms that `make` builds and runs once, by their places in the job; compiling has a limit of its own."""
    ready = []
    for index, arm in enumerate(job.arms):
        with (
            faults.of(index, f"preparing {arm}"),
            faults.changes.watched(index, f"preparing {arm}"),
            deadline.stopped() if index in job.compiled else contextlib.nullcontext(),
        ):
            ready.append(make(index))
    return ready


def interleaved(
    job: Job, ready: Sequence[A], faults: FailureCollector, take: Callable[[Sequence[A], Sequence[Pair]], T]
) -> T | None:
    """What `take` measures of the arms that still stand, anew without the one that fails; `None` when none stands.

    `take` gets the arms and the pairs among them as places in that list, and raises `ArmError` for a place. An arm all of whose
    baselines failed is not measured, for no question about it is left.
    """
    while True:
        pairs = [pair for pair in job.pairs if not faults.arms & set(pair)]
        for baseline, arm in job.pairs:
            if arm not in faults.arms and not any(arm in pair for pair in pairs):
                faults.inherit(arm, baseline, str(job.arms[baseline]))
        arms = [arm for arm in ready if arm.index not in faults.arms]
        if not arms:
            return None
        place = {arm.index: at for at, arm in enumerate(arms)}
        try:
            with no_collector():
                return take(arms, [Pair(place[baseline], place[arm]) for baseline, arm in pairs])
        except ArmError as fault:
            guilty = arms[fault.column]
            faults.add(guilty.index, fault.__cause__ or fault, f"timing {guilty.arm}")


def concluded(
    ready: Sequence[A],
    timed: T | None,
    faults: FailureCollector,
    with_times: Callable[[ArmOutcome, A, T], ArmOutcome],
    *passes: Callable[[ArmOutcome, A], ArmOutcome],
) -> KindResult:
    """What was found of all arms: those that were timed are told `with_times`, and then go through the `passes` alone."""
    arms = []
    flags = set(timed.watch.flags if timed else ())
    if timed and not timed.warmup.steady:
        flags.add("warmup_not_converged")
    for each in ready:
        outcome = each.outcome()
        if timed and each.index in timed.samples.arms:
            outcome = with_times(outcome, each, timed)
            doing = f"measuring {each.arm} alone, after it was timed"
            with faults.of(each.index, doing), faults.changes.watched(each.index, doing):
                for alone in passes:
                    outcome = alone(outcome, each)
        arms.append(outcome)
        flags.update({"consistency_check_failed"} & set(outcome.flags))
    return faults.findings(
        arms, flags=flags, samples=timed.samples if timed else None, system_metrics=timed.watch.readings if timed else {}
    )


def stopwatch_for(
    job: Job, arms: Sequence[Timeable], steps: Sequence[Step], faults: FailureCollector
) -> AbstractContextManager[Stopwatch]:
    """The stopwatch for the job's device; what a step changes in the process is put back after its sample."""
    named = {id(step): (arm.index, str(arm.arm)) for arm, step in zip(arms, steps, strict=True)}
    return faults.changes.timed(stopwatch(job.condition.device), named)


def added(outcome: ArmOutcome, metrics: Iterable[MetricValue] = (), flags: Iterable[str] = (), **fields: Any) -> ArmOutcome:
    """`outcome` with more metrics and flags, each flag once, and with other `fields`."""
    more = {"metrics": (*outcome.metrics, *metrics), "flags": tuple(dict.fromkeys((*outcome.flags, *flags)))}
    return outcome.model_copy(update={**fields, **more})


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Keep the garbage collector from running inside a sample."""
    running = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
