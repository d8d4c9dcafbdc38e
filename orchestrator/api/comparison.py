"""Comparison of slots that run anything: visits spread over the time, each with rounds in random
order as in jobs; looks that share the probability of an error; verdicts against a margin.

Every comparison has 99 % intervals over all its looks, and verdicts follow from the printed
interval alone: of equal arms at most 1 % are called faster or slower.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from orchestrator.api.display import html_table
from sweeps.analysis.compared import (
    DEFAULT_MARGIN,
    ComparedArm,
    Judgement,
    Ratio,
    compare_pooled,
    null_ratio,
)
from sweeps.model.condition import Device
from sweeps.model.flags import flags_of_attempts, quarantine_reasons
from sweeps.model.job import Pair, Protocol
from sweeps.model.outcome import Environment, Samples
from sweeps.stats.pooling import ALPHA, SPENT_NOW, mean_contrast, mean_disagrees
from sweeps.stats.visits import Pooling, Visit, pool_visits
from sweeps.text.compared import (
    COLUMNS,
    compared_rows,
    compared_sentence,
    flag_sentences,
    null_sentence,
)
from workers.errors import TimedOut
from workers.measure.disturbances import own_disturbances
from workers.measure.environment import environment_of
from workers.measure.interleaved import (
    VISIT_WARMUP,
    WARMUP_S,
    ArmError,
    calibrate,
    frozen_heap,
    no_garbage_collection,
    time_rounds,
    warm_up,
)
from workers.measure.monitors import ContentionWait, watch
from workers.measure.timer import SampleTime

VISIT_S = 1.5
"""Seconds of rounds in a visit, where that gives between `MIN_VISITS` and `MAX_VISITS`."""
MIN_VISITS, MAX_VISITS = 4, 24
MIN_ROUNDS, PLANNED_ROUNDS = 2, 4
"""Of a visit: what it has even if the time is up, and what visits are planned to have."""
PREPARATION_SHARE = 1 / 3
"""Of the time that preparing visits takes at most, where there can be fewer of them."""
LOOKS = 3
"""Before the last one, at visits that divide all into equal parts. They share the part of the error
that the last look does not spend."""
LOOK_ALPHA = ALPHA * (1 - SPENT_NOW) / SPENT_NOW / LOOKS
CONTENTION_SHARE, CONTENTION_S = 0.1, 5.0
"""Other processes are waited for during this share of the time at most, and no longer than this."""
WARMUP_SHARE = 0.1
CHEAP_SHARE = 0.02
"""Of the time: where all slots run once in less, the inner loop rests on more runs."""
ROUNDS_MARGIN = 1.25
"""Rounds of a visit at most, as a share of those that its time is expected to allow."""

Slot = Callable[[int], SampleTime]
"""Runs its work so many times in a row; returns seconds per run."""
Slots = Sequence[Slot]


class ArmFailedError(Exception):
    """An arm could not be measured; `arm` is its name, and `reason` is for people."""

    def __init__(self, arm: str, reason: str) -> None:
        super().__init__(f"{arm}: {reason}")
        self.arm, self.reason = arm, reason

    def __reduce__(self) -> tuple[type["ArmFailedError"], tuple[str, str]]:
        return type(self), (self.arm, self.reason)


class ArmSource(NamedTuple):
    """Where an arm is from."""

    name: str
    """Such as `bench.py:step`, or a command."""
    digest: str = ""
    """Of its text, where that is known: another text is another arm."""


class VisitRecord(NamedTuple):
    """What one visit measured."""

    samples: Samples
    """Its `arms` are indices into the names."""
    flags: tuple[str, ...]
    readings: Mapping[str, float]
    started_at: float
    """Seconds since the epoch."""
    ended_at: float

    def times(self, index: int) -> NDArray[np.float64]:
        """Seconds of an arm, shape [rounds, columns]."""
        columns = [column for column, arm in enumerate(self.samples.arms) if arm == index]
        return np.array(self.samples.seconds)[:, columns]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How arms are compared; times in seconds."""

    time_s: float
    visits: int | None = None
    """`None`: as many as the time allows for, up to `MAX_VISITS`."""
    margin: float = DEFAULT_MARGIN
    control: str | None = None
    """An arm that must not differ from the baseline: if it does, the result is void."""
    seed: str = field(default_factory=lambda: uuid4().hex)
    warmup: int = VISIT_WARMUP
    """Samples of each slot before the rounds of a visit."""
    device: Device = "cpu"
    threads: int = 1
    """CPU threads that the arms use, by which the time of others is known."""
    own_s: Callable[[], float] = time.process_time
    """Reads the CPU time that the arms used."""
    clock: Callable[[], float] = time.monotonic
    """By which the time is spent."""
    sources: Mapping[str, ArmSource] = field(default_factory=dict)
    """By name where arms are from, as it is stored; those not given are from their name."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Of the axes, by name, such as the `n` of the inputs."""

    def source(self, name: str) -> ArmSource:
        return self.sources.get(name, ArmSource(name))


@dataclass(frozen=True)
class Result:
    """What was measured of some arms against the first one."""

    names: tuple[str, ...]
    """All arms; the first is the baseline."""
    arms: Mapping[str, ComparedArm]
    """By name, without the baseline and without arms that failed."""
    null: Ratio
    """The two slots of the baseline against each other: 1 but for noise."""
    seconds: Mapping[str, float]
    """Median seconds of one run of each measured arm."""
    failures: Mapping[str, str]
    """By name why an arm could not be measured."""
    setup: Setup
    spent_s: float
    environment: Environment
    visits: tuple[VisitRecord, ...]
    planned: int
    """Visits that the time allowed for; fewer were made where all was decided earlier."""
    void: str = ""
    """Why nothing may be concluded, such as that the control moved; else empty."""
    notes: tuple[str, ...] = ()
    """What was noticed besides, a line each."""

    @property
    def only(self) -> ComparedArm:
        """The arm, where there is one besides the baseline. Raises `ValueError` for several."""
        if len(self.arms) != 1:
            raise ValueError(f"choose one of the arms {', '.join(self.arms)}: result.arms[name]")
        return next(iter(self.arms.values()))

    @property
    def verdict(self) -> Judgement:
        return self.only.verdict

    @property
    def ratio(self) -> float:
        return self.only.ratio

    @property
    def low(self) -> float:
        return self.only.low

    @property
    def high(self) -> float:
        return self.only.high

    @property
    def pairs(self) -> int:
        return self.only.pairs

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(flag for arm in self.arms.values() for flag in arm.flags))

    def save(self, url: str | Path = "breakeven.db", sweep: str | None = None) -> str:
        """Record it in a store, as a sweep whose name is returned. Raises `StoreError`."""
        from orchestrator.api.stored import save_results

        return save_results([self], url, sweep)

    @property
    def margin(self) -> float:
        return self.setup.margin

    def __str__(self) -> str:
        """A line for each arm, and what casts doubt on them."""
        return "\n".join(
            [
                *(compared_sentence(arm, self.names[0], self.margin) for arm in self.arms.values()),
                *self.doubts(),
            ]
        )

    def doubts(self) -> list[str]:
        """What casts doubt on the figures, and why arms failed, a line each."""
        return [
            *([f"void: {self.void}"] if self.void else []),
            *(f"{name}: {reason}" for name, reason in self.failures.items()),
            *flag_sentences(self.flags),
            *self.notes,
        ]

    def _repr_html_(self) -> str:
        rows = compared_rows(self.arms.values(), self.seconds, self.names[0])
        return html_table(COLUMNS, rows, [null_sentence(self.null, self.names[0]), *self.doubts()])

    @property
    def needed_s(self) -> float | None:
        """Seconds after which all arms should be decided; `None` where they are, or that cannot be
        told.
        """
        return max((arm.needed_s for arm in self.arms.values() if arm.needed_s), default=None)


def measure(
    names: Sequence[str],
    make: Callable[[], Slots],
    *,
    progress: Callable[[float], object] = lambda _: None,
    **setup: object,
) -> Result:
    """Compare arms with the first of `names`, in about `time_s` seconds, less where all are decided
    earlier; `setup` are the fields of `Setup`.

    `make` prepares one visit: it returns a fresh slot for each name in their order, and one more
    for the first name, whose difference from the first slot shows the noise. An arm whose slot
    raises is left out and named in `failures`; `make` may raise `ArmFailedError`. `progress` is
    called with the share that is done. Raises `ArmFailedError` if the baseline or all other arms
    fail, and `ValueError` for fewer than two different names.
    """
    comparison = Comparison(names, make, Setup(**setup))  # type: ignore[arg-type]
    with frozen_heap():
        while not comparison.ended:
            comparison.visit()
            progress(comparison.share_done)
    return comparison.result()


class Comparison:
    """A comparison that is made visit by visit."""

    def __init__(self, names: Sequence[str], make: Callable[[], Slots], setup: Setup) -> None:
        """See `measure`."""
        if len(set(names)) < len(names) or len(names) < 2:
            raise ValueError(f"a comparison needs two or more different names, got {list(names)}")
        if setup.control is not None and setup.control not in names[1:]:
            raise ValueError(
                f"control {setup.control!r} is none of the arms {', '.join(names[1:])}"
            )
        self.names, self.setup = tuple(names), setup
        self.spent_s = 0.0
        self.ended = False
        """Whether all arms are decided, or the time is spent."""
        self._last = False
        self._make = make
        self._patience = ContentionWait(
            setup.threads,
            min(CONTENTION_S, CONTENTION_SHARE * setup.time_s),
            own_s=setup.own_s,
        )
        self._records: list[VisitRecord] = []
        self._failures: dict[str, str] = {}
        self._inner = 1
        self._prepare_s = self._round_s = 0.0
        self._planned = 0
        """Visits; 0 before the first one has begun."""

    @property
    def share_done(self) -> float:
        done = len(self._records) / max(1, self._planned)
        return 1.0 if self.ended else max(done, min(0.99, self.spent_s / self.setup.time_s))

    def visit(self) -> None:
        """Measure one visit. Raises `ArmFailedError`, see `measure`."""
        clock = self.setup.clock
        began, before_s = clock(), self.spent_s
        record: VisitRecord | None = None
        while record is None:
            self._patience.wait()
            made = clock()
            slots = self._fresh()
            made_s = clock() - made
            try:
                with no_garbage_collection():
                    self._warm_up(slots, made_s)
                    self.spent_s = before_s + clock() - began
                    record = self._timed(slots)
            except ArmError as error:
                self._leave_out(
                    self.names[self._indices()[error.column]], failure_text(error.__cause__)
                )
        self._records.append(record)
        self.spent_s = before_s + clock() - began
        self._decide()

    def _decide(self) -> None:
        """Look at the visits, if it is time for a look."""
        done, planned = len(self._records), self._planned
        self._last = done >= planned or (self.spent_s > self.setup.time_s and done >= MIN_ROUNDS)
        early = {-(-planned * look // (LOOKS + 1)) for look in range(1, LOOKS + 1)}
        self.ended = self._last or (
            done in early and all(arm.verdict != "undecided" for arm in self.result().arms.values())
        )

    def _indices(self) -> list[int]:
        """Of the slots of a visit the names, without arms that failed, and the baseline once
        more.
        """
        used = [index for index, name in enumerate(self.names) if name not in self._failures]
        return [*used, 0]

    def _fresh(self) -> Slots:
        """The slots of a visit without arms that failed. Raises `ArmFailedError`."""
        while True:
            try:
                slots = self._make()
            except ArmFailedError as error:
                self._leave_out(error.arm, error.reason)
                continue
            if len(slots) != len(self.names) + 1:
                raise ValueError(f"make() gave {len(slots)} slots for {len(self.names)} names + 1")
            return [slots[index] for index in self._indices()[:-1]] + [slots[-1]]

    def _leave_out(self, name: str, reason: str) -> None:
        """Raises `ArmFailedError` if nothing is left to compare."""
        known = name in self._failures
        self._failures[name] = reason
        if known or name == self.names[0] or len(self._failures) == len(self.names) - 1:
            raise ArmFailedError(name, reason)

    def _warm_up(self, slots: Slots, made_s: float) -> None:
        """Warm up; before the first visit thoroughly, which also gives the inner loop and the
        number of visits.
        """
        setup, clock = self.setup, self.setup.clock
        warming = partial(
            warm_up,
            slots,
            seed=f"{setup.seed}:{len(self._records)}",
            stopwatch=_run_slot,
            deadline=math.inf,
            clock=clock,
        )
        if self._planned:
            if setup.warmup:
                warming(self._inner, samples=setup.warmup, blocks=1)
            return
        start = clock()
        self._inner = calibrate(slots, _run_slot, 1)
        if clock() - start < CHEAP_SHARE * setup.time_s:
            self._inner = calibrate(slots, _run_slot)
        limit_s = min(WARMUP_S, WARMUP_SHARE * setup.time_s) if setup.warmup else 0.0
        warm = warming(self._inner, limit_s=limit_s)
        self._round_s = sum(warm.seconds) / warm.forwards * self._inner
        self._prepare_s = made_s + setup.warmup * self._round_s
        left_s = setup.time_s - (clock() - start) - made_s
        most = min(
            left_s / VISIT_S,
            left_s / (self._prepare_s + PLANNED_ROUNDS * self._round_s),
            setup.time_s * PREPARATION_SHARE / self._prepare_s,
        )
        self._planned = setup.visits or max(MIN_VISITS, min(MAX_VISITS, int(most)))

    def _timed(self, slots: Slots) -> VisitRecord:
        """Time the slots in rounds for this visit's part of what is left of the time."""
        setup, turn, indices = self.setup, len(self._records), self._indices()
        left = self._planned - turn
        budget_s = (setup.time_s - self.spent_s - (left - 1) * self._prepare_s) / left
        started = time.time()
        with (
            own_disturbances() as disturbed,
            watch(setup.device, setup.threads, own_s=setup.own_s) as seen,
        ):
            samples = time_rounds(
                slots,
                self._inner,
                arms=indices,
                pairs=[Pair(0, index) for index in indices if index],
                protocol=Protocol(
                    pairs_min=MIN_ROUNDS,
                    pairs_max=max(MIN_ROUNDS, int(ROUNDS_MARGIN * budget_s / self._round_s)),
                    budget_s=max(budget_s, 1e-3),
                    passes=max(2, self._planned),
                ),
                seed=f"{setup.seed}:{turn}:{len(self._failures)}",
                stopwatch=_run_slot,
                deadline=math.inf,
                between=seen.look,
                clock=setup.clock,
            )
        flags = tuple(sorted({*seen.flags, *disturbed}))
        return VisitRecord(samples, flags, seen.readings, started, time.time())

    def result(self, notes: Sequence[str] = ()) -> Result:
        """What all visits so far show."""
        right = [each for each in self._records if not quarantine_reasons(each.flags)]
        used = right or self._records
        alpha = ALPHA if self._last else LOOK_ALPHA
        flags = flags_of_attempts([each.flags for each in used])
        left = {self.names[index]: index for index in dict.fromkeys(self._indices())}
        pooled = {name: _pool(used, index) for name, index in left.items() if index}
        arms = {
            name: compare_pooled(
                name,
                pooling,
                flags | uneven,
                margin=self.setup.margin,
                alpha=alpha,
                spent_s=self.spent_s,
            )
            for name, (pooling, uneven) in pooled.items()
        }
        void = "" if right else "the machine was slowed in every visit"
        moved = arms.get(self.setup.control or "")
        if moved is not None and not moved.low <= 1 <= moved.high:
            void = (
                f"the control {moved.name} moved:"
                f" {moved.ratio:.3f}x [{moved.low:.3f}, {moved.high:.3f}]"
            )
        if void:
            arms = {name: replace(arm, verdict="undecided") for name, arm in arms.items()}
        return Result(
            names=self.names,
            arms=arms,
            null=null_ratio(next(iter(pooled.values()))[0].null, alpha * SPENT_NOW),
            seconds={
                name: statistics.median(
                    np.concatenate([each.times(index).ravel() for each in used])
                )
                for name, index in left.items()
            },
            failures=dict(self._failures),
            setup=self.setup,
            spent_s=self.spent_s,
            environment=environment_of(self.setup.device),
            visits=tuple(self._records),
            planned=self._planned,
            void=void,
            notes=tuple(notes),
        )


def _run_slot(slot: Slot, inner: int) -> SampleTime:
    return slot(inner)


def failure_text(error: BaseException | None) -> str:
    """Why a slot or a function failed, for people."""
    if isinstance(error, ArmFailedError):
        return error.reason
    if isinstance(error, TimedOut):
        return str(error)
    return f"raised {type(error).__name__}: {error}"


def _pool(records: Sequence[VisitRecord], index: int) -> tuple[Pooling, set[str]]:
    """The speed-up of an arm by all visits, and the flag of mean times that tell something else."""
    visits = [Visit(each.times(0), each.times(index)) for each in records]
    pooling = pool_visits(visits, range(len(visits)))
    mean = mean_contrast((visit.baseline, visit.arm) for visit in visits)
    return pooling, {"mean_disagrees"} if mean_disagrees(mean, pooling.speedup) else set()
