"""Item jobs: all arms of a job read the same items (images, windows of a text) in one pass; a kind
declares what differs.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import torch

from sweeps.model.job import Job, Pair
from sweeps.model.outcome import ArmOutcome
from workers.arms.prepared import JobArm
from workers.errors import TimedOut
from workers.kinds.failures import FailureCollector, KindResult
from workers.measure.process_state import use_threads

_A = TypeVar("_A", bound=JobArm)
_Item = TypeVar("_Item")
_Output = TypeVar("_Output")


class ItemKind(ABC, Generic[_A, _Item, _Output]):
    """What differs between the kinds whose arms read items, and the pass over the items."""

    verb: ClassVar[str]
    """What an arm does, for messages: `evaluating`."""
    progress: ClassVar[str]
    """What is done with the items, for messages: `images had been evaluated`."""
    bounded_by: ClassVar[str]
    """What a sweep can request less of, for messages."""
    total: int
    """How many items there are to be read."""
    done = 0
    """How many of them were read; counted by `items`."""

    def __init__(self, job: Job, failures: FailureCollector) -> None:
        """Load items and model. Raises what that raises: no arm caused it."""
        self.job, self.failures = job, failures
        self.arms: dict[int, _A] = {}
        self.pairs = [Pair(*pair) for pair in job.pairs]
        self.first: dict[int, Pair] = {}
        """For each arm the pair with the first baseline that it is compared with."""
        for pair in self.pairs:
            self.first.setdefault(pair.arm, pair)

    @abstractmethod
    def prepare(self, index: int) -> _A:
        """The arm `index` of the job."""

    @abstractmethod
    def items(self) -> Iterable[_Item]:
        """What all arms read, once they are prepared."""

    @abstractmethod
    def read(self, arm: _A, item: _Item) -> _Output:
        """What an arm makes of an item; what it raises is a failure of the arm."""

    @abstractmethod
    def keep(self, arm: _A, item: _Item, output: _Output) -> None:
        """Keep what the outcome needs of it."""

    @abstractmethod
    def compare(self, pair: Pair, baseline: _Output, arm: _Output) -> None:
        """Keep what the outcome needs of the two outputs for one item."""

    @abstractmethod
    def result(self) -> tuple[Sequence[ArmOutcome], Mapping[str, Any]]:
        """At the end the outcomes of the remaining arms, and the payload and the flags of the
        job.
        """

    @property
    def remaining(self) -> list[_A]:
        return [arm for index, arm in self.arms.items() if index not in self.failures.arms]

    def read_item(self, item: _Item) -> None:
        """Let every remaining arm read an item. Raises `TimedOut`, because which arm that meets is
        chance.
        """
        outputs: dict[int, _Output] = {}
        for arm in self.remaining:
            doing = f"{self.verb} {arm.arm}"
            with self.failures.collect(arm.index, doing, timeout=False, shared=False):
                outputs[arm.index] = self.read(arm, item)
            if arm.index in outputs:
                self.keep(arm, item, outputs[arm.index])
        for pair in self.pairs:
            if pair.baseline in outputs and pair.arm in outputs:
                self.compare(pair, outputs[pair.baseline], outputs[pair.arm])


def run_items(
    job: Job, declare: Callable[[Job, FailureCollector], ItemKind[_A, Any, Any]]
) -> KindResult:
    """Let the job's arms read the items; an error of an arm becomes a failure and the others go on.

    Arms run eagerly, whatever the runtime, batch size and cache: none of these changes what a model
    computes. Raises `TimedOut`, and what `declare` raises.
    """
    failures = FailureCollector(job)
    use_threads(job.condition)
    with torch.inference_mode():
        kind = declare(_eager(job), failures)
        kind.arms = {arm.index: arm for arm in failures.prepare(kind.job, kind.prepare)}
        if kind.arms:
            with explain_timeout(
                lambda: f"{kind.done} of {kind.total} {kind.progress}", kind.bounded_by
            ):
                for item in kind.items():
                    kind.read_item(item)
                    if not kind.remaining:
                        break
            failures.changes.look(None, f"{kind.verb} the arms")
            failures.leave()
        outcomes, fields = kind.result() if kind.remaining else ((), {})
        return failures.result(outcomes, **fields) if outcomes else failures.result()


@contextlib.contextmanager
def explain_timeout(done: Callable[[], str], bounded_by: str) -> Iterator[None]:
    """Add to the message of a `TimedOut` how far the block came, and what would be less work."""
    try:
        yield
    except TimedOut as error:
        raise TimedOut(
            f"{error}, when {done()}; allow a longer timeout or request fewer {bounded_by}"
        ) from error


def _eager(job: Job) -> Job:
    plain = {"runtime": None, "kv_cache": None}
    arms = tuple(
        arm.model_copy(update={"overrides": arm.overrides.model_copy(update=plain)})
        for arm in job.arms
    )
    condition = job.condition.model_copy(update={"batch_size": 1, "runtime": "eager"})
    return job.model_copy(update={"condition": condition, "arms": arms})
