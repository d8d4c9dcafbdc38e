"""What the timing kinds share: the deadline, rounds that go on without an arm that fails, and samples as metric rows."""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from sweeps.job import Arm, Job, Pair
from sweeps.outcome import Metric
from sweeps.statistics import Estimate
from workers.kinds.faults import Faults
from workers.measure.rounds import ArmError

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


A = TypeVar("A", bound=Timeable)
T = TypeVar("T")


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


def interleaved(job: Job, ready: Sequence[A], faults: Faults, take: Callable[[Sequence[A], Sequence[Pair]], T]) -> T | None:
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


def row(name: str, estimate: Estimate, unit: str, scale: float = 1) -> Metric:
    """`estimate` as a metric; an interval that too few samples leave open is left out."""
    closed: Mapping[str, float] = {}
    if estimate.half_width != float("inf"):
        closed = {"low": estimate.low * scale, "high": estimate.high * scale}
    return Metric(name=name, value=estimate.value * scale, unit=unit, n=estimate.n, **closed)


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
