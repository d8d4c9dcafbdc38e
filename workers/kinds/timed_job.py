"""Timed jobs: prepare the arms, time them interleaved, and measure each alone; a kind declares what
differs (`TimedKind`).
"""

import contextlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import uuid4

import torch

from sweeps.model.job import Job, Pair
from sweeps.model.outcome import WAITED_S, ArmOutcome, MetricValue, Samples
from sweeps.stats.timing import Rounds
from workers.arms.prepared import PreparedArm, raised
from workers.errors import TimedOut, WrongResultError
from workers.kinds.failures import FailureCollector, KindResult, StateChangedError
from workers.measure.interleaved import (
    VISIT_WARMUP,
    ArmError,
    Orders,
    Warmup,
    by_column,
    calibrate,
    no_garbage_collection,
    time_rounds,
    warm_up,
)
from workers.measure.monitors import ContentionWait, Watch, watch
from workers.measure.optional import optional, optional_value
from workers.measure.process_state import raise_priority, use_threads
from workers.measure.results import first_difference
from workers.measure.threads import policy_readings
from workers.measure.timer import Stopwatch, TimedStep, stopwatch
from workers.models.share_weights import kept_arm

WAIT_SHARE, WAIT_S = 0.1, 5.0
"""A job waits for other processes to free the cores for this share of its budget or time-out at
most, and no longer than this."""
GPU_RTOL = 0.1
"""As a share of the largest value: sums of atomic operations differ from run to run, and by them
which tokens are merged."""

_A = TypeVar("_A", bound=PreparedArm)


class ArmMetrics(NamedTuple):
    """What a measurement adds to the outcome of an arm."""

    metrics: Sequence[MetricValue] = ()
    flags: Sequence[str] = ()


@dataclass(frozen=True)
class SoloPass(Generic[_A]):
    """A measurement of one arm that runs alone, after the arms were timed."""

    measure: Callable[[_A], ArmMetrics]
    reserve_s: float
    """Kept free of each job's time for it."""
    skipped: str
    """Flag of an arm that it is skipped for, because less than `needed_s` is left."""
    needed_s: Callable[[_A], float]
    answers: bool = False
    """Whether it is what the job is for, so that an arm that raises then has failed."""


_INNER: dict[str, int] = {}
"""By job in several visits: steps that make up one sample."""
_FIRST: dict[str, dict[int, Any]] = {}
"""By job in several visits: what each arm returned at the first."""
_KNOWN: dict[str, dict[tuple[str, int], ArmMetrics]] = {}
"""By job in several visits: what its passes measured of each arm, by the flag of a pass that is
skipped and the arm."""


class TimedKind(ABC, Generic[_A]):
    """What differs between the kinds that time their arms, and how the arms are timed."""

    passes: Sequence[SoloPass[_A]] = ()
    burst = 0
    """Samples in one go that show steady running, now and then between the rounds."""
    short = False
    """Whether steps are short: a sample holds several, and one more copy of an arm costs little."""

    def __init__(self, job: Job, failures: FailureCollector) -> None:
        """Load what all arms share. Raises what that raises: no arm caused it."""
        self.job, self.failures = job, failures
        allowed_s = min(job.protocol.budget_s, job.protocol.timeout_s)
        self.patience = ContentionWait(torch.get_num_threads(), min(WAIT_S, WAIT_SHARE * allowed_s))
        self.visits = job.protocol.passes > 1
        self.known = _KNOWN.setdefault(job.visited_id, {}) if self.visits else {}
        self.first: dict[int, Any] = _FIRST.setdefault(job.visited_id, {}) if self.visits else {}
        """By arm what it returned at first."""
        self.outcomes: dict[int, ArmOutcome] = {}
        """By arm what is known before it is measured."""

    @abstractmethod
    def build(self, index: int, *, kept: bool) -> _A:
        """The arm `index` of the job, after its first run; with `kept` one that does not depend on
        this visit.
        """

    def prepare(self, index: int) -> _A:
        """The arm `index` of the job; of one of several visits, one that is compiled or captured as
        it was made at the first visit.
        """
        runtime = self.job.arms[index].condition(self.job.condition).runtime
        if not self.visits or runtime == "eager":
            return self.build(index, kept=False)
        return replace(kept_arm(self.job, index, lambda: self.build(index, kept=True)), index=index)

    def describe(self, index: int) -> _A:
        """The arm `index` of the job, whose counts and output are kept."""
        arm = self.prepare(index)
        self.outcomes[index] = arm.outcome()
        if index not in self.first:
            self.first[index] = self.output(arm)
        return arm

    def once(self, solo: SoloPass[_A]) -> SoloPass[_A]:
        """A pass that measures each arm once, at the first visit of this process; later visits
        state the same figures.
        """

        def measured(arm: _A) -> ArmMetrics:
            key = solo.skipped, arm.index
            if key not in self.known:
                self.known[key] = solo.measure(arm)
            return self.known[key]

        if all((solo.skipped, index) in self.known for index in range(len(self.job.arms))):
            return SoloPass(measured, 0.0, solo.skipped, lambda _: -math.inf)
        return replace(solo, measure=measured)

    def twin(self, arm: _A) -> _A:
        """What the second column of an arm runs: a copy that is built as the arm is, where that
        costs little.
        """
        if self.short and arm.condition.runtime == "eager":
            with self.failures.collect(arm.index, f"preparing {arm.arm} again"):
                return self.prepare(arm.index)
        return arm

    def inner_loop(self, steps: Sequence[TimedStep], clock: Stopwatch) -> int:
        """Steps that make up one sample; of several visits as at the first."""
        if not self.short:
            return 1
        if not self.visits:
            return calibrate(steps, clock)
        key = self.job.visited_id
        _INNER[key] = _INNER.get(key) or calibrate(steps, clock, forwards=1)
        return _INNER[key]

    def warmup_options(self, arms: Sequence[_A]) -> Mapping[str, Any]:  # noqa: ARG002 - for kinds whose steps are long
        """Options of `warm_up`."""
        return {}

    @abstractmethod
    def observed(self, arm: _A) -> AbstractContextManager[object]:
        """Around the samples: observes what the arm does while it is timed."""

    def series(self, arm: _A) -> Mapping[str, Sequence[float]]:  # noqa: ARG002 - for kinds that time parts of a step
        """Further seconds of the samples taken so far, by metric."""
        return {}

    def measure_together(self, arms: Sequence[_A], timed: "Timed") -> None:
        """After the rounds, before each arm is measured alone: what the arms that were timed are
        measured for side by side.
        """

    @abstractmethod
    def read(self, arm: _A, samples: Samples) -> ArmMetrics:
        """The metrics of the arm's samples."""

    def finish(self, result: KindResult) -> KindResult:
        """The result of the job."""
        return result

    def time(self, prepared: Sequence[_A]) -> "Timed | None":
        """The samples of the arms that have not failed, taken anew without one that fails
        meanwhile; `None` when none is left.

        An arm all of whose baselines failed is not measured, because no question about it is left.
        A time-out meanwhile is the job's, which has no samples then.
        """
        job, failed = self.job, self.failures
        while True:
            pairs = [pair for pair in job.pairs if not failed.arms & set(pair)]
            for baseline, arm in job.pairs:
                if arm not in failed.arms and not any(arm in pair for pair in pairs):
                    failed.inherit(arm, baseline, str(job.arms[baseline]))
            arms = [arm for arm in prepared if arm.index not in failed.arms]
            if not arms:
                return None
            reserve_s = sum(each.reserve_s for each in self.passes) * len(prepared)
            # two arms alternate with two columns each; of several the most frequent baseline has
            # two, which halves the share of its noise in all pairs
            twice = dict(Counter(pair.baseline for pair in pairs).most_common(1))
            alternate = pairs and len(arms) == 2
            # what is made later lies elsewhere: of two arms none is always the later one
            again = [arm for arm in reversed(arms) if alternate or arm.index in twice]
            columns = [*arms, *reversed([self.twin(arm) for arm in again])]
            if failed.arms & {arm.index for arm in arms}:
                continue  # a second copy failed
            try:
                with no_garbage_collection():
                    timed = self._sample(arms, columns, pairs, reserve_s)
            except ArmError as error:
                if isinstance(error.__cause__, StateChangedError):
                    raise error.__cause__ from None
                if not failed.add_in_turn(error, columns, "timing"):
                    return None
            else:
                changed = self._changed(arms)
                failed.leave()
                if not changed:
                    return timed

    def output(self, arm: _A) -> Any:
        """A copy of what an arm returns; what `verify` compares by default."""

    def verify(self, arm: _A) -> None:
        """Raises `WrongResultError` where an arm that was timed returns something else than at
        first, by more than its dtype explains.
        """
        rtol = None if arm.condition.device == "cpu" else GPU_RTOL
        if found := first_difference(self.first[arm.index], self.output(arm), rtol=rtol):
            raise WrongResultError(f"it returns something else than at first: {found}")

    def _changed(self, arms: Sequence[_A]) -> bool:
        """Verify the arms that were timed; whether one fails."""
        before = len(self.failures.rows)
        for arm in arms:
            doing = f"checking what {arm.arm} returns after it was timed"
            # without an answer in time it is as it was
            with optional(doing), self.failures.collect(arm.index, doing, timeout=False):
                self.verify(arm)
        return len(self.failures.rows) > before

    def _sample(
        self, arms: Sequence[_A], columns: Sequence[_A], pairs: Sequence[Pair], reserve_s: float
    ) -> "Timed":
        """Warm up and time the arms, in `columns`, until only `reserve_s` is left."""

        def series(orders: Orders) -> dict[str, tuple[tuple[float, ...], ...]]:
            own = {arm.index: self.series(arm) for arm in arms}
            names = own[arms[0].index]
            return {
                name: by_column({arm: each[name] for arm, each in own.items()}, indices, orders)
                for name in names
            }

        job, steps = self.job, [arm.step for arm in columns]
        indices = [arm.index for arm in columns]
        named = {
            id(step): (arm.index, str(arm.arm)) for arm, step in zip(columns, steps, strict=True)
        }
        distinct = list({id(arm): arm for arm in columns}.values())
        once = steps[: len(distinct)]
        with self.failures.changes.timed(
            stopwatch(job.condition.device, warm=job.warm), named, self.failures.leave
        ) as clock:
            self.patience.wait()
            protocol = job.protocol.model_copy(
                update={"budget_s": job.protocol.budget_s - self.patience.waited_s}
            )
            inner = self.inner_loop(once, clock)
            timing: dict[str, Any] = {
                "seed": uuid4().hex,
                "stopwatch": clock,
                "deadline": self.failures.deadline,
            }
            if self.visits:
                warmup = warm_up(once, inner, **timing, samples=VISIT_WARMUP, blocks=1)
                warmup = warmup._replace(steady=True)
            else:
                warmup = warm_up(once, inner, **timing, **self.warmup_options(arms))
            with (
                watch(job.condition.device, torch.get_num_threads()) as seen,
                contextlib.ExitStack() as observers,
            ):
                for arm in distinct:
                    observers.enter_context(self.observed(arm))
                samples = time_rounds(
                    steps,
                    inner,
                    arms=indices,
                    pairs=pairs,
                    protocol=protocol,
                    enough_s=self.failures.left_s - reserve_s,
                    parts=lambda orders: series(orders).values(),
                    burst=self.burst,
                    pause=self.patience.wait,
                    between=seen.look,
                    **timing,
                )
        return Timed(samples.model_copy(update={"series": series(samples.order)}), warmup, seen)

    def measure_alone(self, arm: _A, timed: "Timed | None") -> ArmOutcome:
        """The outcome of an arm: with what its samples give, if it was timed, and then what each
        pass gives.
        """
        outcome = self.outcomes[arm.index]
        if timed is None or arm.index not in timed.samples.arms:
            return outcome
        column = list(dict.fromkeys(timed.samples.arms)).index(arm.index)
        warmup = {
            "warmup_s": timed.warmup.seconds[column],
            "warmup_forwards": timed.warmup.forwards * arm.forwards,
        }
        outcome = outcome.model_copy(update=warmup)
        with optional(f"metrics of {arm.arm}"):
            outcome = _extend(outcome, self.read(arm, timed.samples))
        doing = f"measuring {arm.arm} alone, after it was timed"
        with self.failures.collect(arm.index, doing):
            for each in self.passes:
                more = ArmMetrics(flags=[each.skipped])
                try:
                    more = each.measure(arm) if self.failures.left_s >= each.needed_s(arm) else more
                except TimedOut:  # the arm is answered by its samples
                    self.failures.allow_anew()
                except Exception:
                    if each.answers:
                        raise
                    with optional(f"while {doing}"):
                        raise
                outcome = _extend(outcome, more)
        return outcome


class Timed(NamedTuple):
    """The samples of the arms that could be timed, and how they were warmed up."""

    samples: Samples
    warmup: Warmup
    watch: Watch


def run_timed(
    job: Job,
    declare: Callable[[Job, FailureCollector], TimedKind[_A]],
    *,
    inference: bool = True,
) -> KindResult:
    """Measure the job's arms, without gradients where they only infer; an error of an arm becomes a
    failure and the others are measured.

    Raises what `declare` raises, such as for a model that cannot be loaded: no arm caused that.
    """
    low_priority = not optional_value("priority of the process", raise_priority, True)
    # from here on a changed priority is a failure of the arm that changed it
    failures = FailureCollector(job)
    use_threads(job.condition)
    with torch.inference_mode(inference):
        kind = declare(job, failures)
        arms = failures.prepare(job, kind.describe)
        timed = kind.time(arms)
        if timed is not None:
            with no_garbage_collection():
                kind.measure_together(
                    [arm for arm in arms if arm.index in timed.samples.arms], timed
                )
        outcomes = [kind.measure_alone(arm, timed) for arm in arms]
    flags = raised(
        low_priority=low_priority,
        warmup_not_converged=timed is not None and not timed.warmup.steady,
        consistency_check_failed=any(
            "consistency_check_failed" in outcome.flags for outcome in outcomes
        ),
    )
    readings = optional_value("threads", policy_readings, {}) | {WAITED_S: kind.patience.waited_s}
    if timed is None:
        return kind.finish(failures.result(outcomes, flags=flags, system_metrics=readings))
    seen = timed.watch
    return kind.finish(
        failures.result(
            outcomes,
            flags=(*flags, *seen.flags),
            samples=timed.samples,
            system_metrics={**seen.readings, **_equal_arms(timed.samples), **readings},
            system_series=seen.series,
        )
    )


def _equal_arms(samples: Samples) -> dict[str, float]:
    """The ratio of two copies of one arm, and its distance from 1 in standard errors; empty where
    each has one column.
    """
    twice = [arm for arm, columns in Counter(samples.arms).items() if columns > 1]
    contrast = Rounds(samples.seconds, samples.arms).null(twice[0]) if twice else None
    if contrast is None or not 0 < contrast.se < math.inf:
        return {}
    return {
        "equal_arms_ratio": math.exp(contrast.effect),
        "equal_arms_errors": abs(contrast.effect) / contrast.se,
    }


def _extend(outcome: ArmOutcome, more: ArmMetrics) -> ArmOutcome:
    flags = tuple(dict.fromkeys((*outcome.flags, *more.flags)))
    return outcome.model_copy(update={"metrics": (*outcome.metrics, *more.metrics), "flags": flags})
