"""Comparison of slots that run anything: visits spread over the time, each with rounds in random
order as in jobs; looks that share the probability of an error; verdicts against a margin.

Every comparison has 99 % intervals over all its looks, and verdicts follow from the printed
interval alone: of equal arms at most 1 % are called faster or slower.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log1p
from typing import Literal, NamedTuple
from uuid import uuid4

import numpy as np

from sweeps.model.condition import Device
from sweeps.model.flags import flags_of_attempts, quarantine_reasons
from sweeps.model.job import Pair, Protocol
from sweeps.model.outcome import Environment, Samples
from sweeps.stats.pooling import ALPHA, SPENT_NOW, SpeedUp, mean_contrast, mean_disagrees, quantile
from sweeps.stats.visits import Pooling, Visit, pool_visits
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

DEFAULT_MARGIN = 0.02
"""An arm is slower only if it certainly loses more than this share of the speed."""
VISIT_S = 1.5
"""Seconds of rounds in a visit, where that gives between `MIN_VISITS` and `MAX_VISITS`."""
MIN_VISITS, MAX_VISITS = 4, 24
MIN_ROUNDS, PLANNED_ROUNDS = 2, 4
"""Of a visit: what it has even if the time is up, and what visits are planned to have."""
PREPARATION_SHARE = 1 / 3
"""Of the time that preparing visits takes at most, where there can be fewer of them."""
LOOKS = 3
"""At the visits that an equal part of all lies between; they share the part of the error that the
last look does not spend."""
LOOK_ALPHA = ALPHA * (1 - SPENT_NOW) / SPENT_NOW / LOOKS
WAIT_SHARE, WAIT_S = 0.1, 5.0
"""Other processes are waited for during this share of the time at most, and no longer than this."""
WARMUP_SHARE = 0.1
CHEAP_SHARE = 0.02
"""Of the time: where all slots run once in less, the inner loop rests on more runs."""
NO_MORE_THAN = 1.25
"""Rounds of a visit as a share of those that its time is expected to allow."""

Slot = Callable[[int], SampleTime]
"""Runs its work so many times in a row; returns seconds per run."""
Judgement = Literal["faster", "slower", "equal", "undecided"]


class ArmFailedError(Exception):
    """An arm could not be measured; `arm` is its name, and the message is for people."""

    def __init__(self, arm: str, reason: str) -> None:
        super().__init__(f"{arm}: {reason}")
        self.arm, self.reason = arm, reason


class Ratio(NamedTuple):
    """A ratio of times with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Compared:
    """One arm compared with the baseline; a speed-up of 2 is half the time."""

    name: str
    verdict: Judgement
    """`faster`: the interval lies above 1. `slower`: below 1 / (1 + margin). `equal`: within the
    margin on both sides. Else `undecided`."""
    ratio: float
    """Speed-up: time of the baseline over that of the arm."""
    low: float
    """99 % interval over all looks; 0 and infinity where there is none."""
    high: float
    pairs: int
    """Rounds that it rests on."""
    visits: int
    flags: tuple[str, ...] = ()
    """Reasons for doubt, see `sweeps.model.flags`."""
    needed_s: float | None = None
    """Seconds in all after which it should be decided, from the width of the interval; `None` for a
    decided one, and where that cannot be told."""
    not_slower: bool = False
    """Whether the interval lies above 1 / (1 + margin)."""


class VisitRecord(NamedTuple):
    """What one visit measured."""

    samples: Samples
    """Its `arms` are indices into the names."""
    flags: tuple[str, ...]
    readings: Mapping[str, float]
    started_at: float
    """Seconds since the epoch."""
    ended_at: float


@dataclass(frozen=True)
class Result:
    """What was measured of some arms against the first one."""

    names: tuple[str, ...]
    """All arms; the first is the baseline."""
    arms: Mapping[str, Compared]
    """By name, without the baseline and without arms that failed."""
    null: Ratio
    """The two slots of the baseline against each other: 1 but for noise."""
    seconds: Mapping[str, float]
    """Median seconds of one run of each measured arm."""
    failures: Mapping[str, str]
    """By name why an arm could not be measured."""
    margin: float
    spent_s: float
    environment: Environment
    visits: tuple[VisitRecord, ...]
    planned: int
    """Visits that the time allowed for; fewer were made where all was decided earlier."""
    void: str = ""
    """Why nothing may be concluded, such as that the control moved; else empty."""

    @property
    def only(self) -> Compared:
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

    @property
    def needed_s(self) -> float | None:
        """Seconds after which all arms should be decided; `None` where they are, or that cannot be
        told.
        """
        return max((arm.needed_s for arm in self.arms.values() if arm.needed_s), default=None)


def judge(low: float, high: float, margin: float = DEFAULT_MARGIN) -> Judgement:
    """The verdict of an interval of a speed-up, see `Compared.verdict`."""
    if low > 1:
        return "faster"
    if high < 1 / (1 + margin):
        return "slower"
    return "equal" if low > 1 / (1 + margin) and high < 1 + margin else "undecided"


def measure(
    names: Sequence[str],
    make: Callable[[], Sequence[Slot]],
    *,
    time_s: float,
    visits: int | None = None,
    margin: float = DEFAULT_MARGIN,
    control: str | None = None,
    seed: str = "",
    warmup: int = VISIT_WARMUP,
    device: Device = "cpu",
    threads: int = 1,
    own_s: Callable[[], float] = time.process_time,
    progress: Callable[[float], object] = lambda _: None,
) -> Result:
    """Compare arms with the first of `names` in about `time_s` seconds, less where all are decided
    earlier.

    `make` prepares one visit: it returns a fresh slot for each name in their order, and one more
    for the first name again, whose difference from the first slot shows the noise. `warmup` is the
    samples of each slot before the rounds of a visit (0: none). An arm whose slot raises is left
    out and named in `failures`; `make` may raise `ArmFailedError`. `control` names an arm that must
    not differ from the baseline: if it does, the result is void. `own_s` gives the CPU time that
    the arms use, by which that of others is known; `progress` is called with the share that is
    done. Raises `ArmFailedError` if the baseline or all other arms fail, and `ValueError` for fewer
    than two different names.
    """
    if len(set(names)) < len(names) or len(names) < 2:
        raise ValueError(f"a comparison needs two or more different names, got {list(names)}")
    if control is not None and control not in names[1:]:
        raise ValueError(f"control {control!r} is none of the arms {', '.join(names[1:])}")
    run = _Run(
        tuple(names),
        make,
        time_s,
        seed=seed or uuid4().hex,
        warmup=warmup,
        device=device,
        threads=threads,
        own_s=own_s,
    )
    with frozen_heap():
        run.prepare_first(visits)
        looks = {-(-run.planned * look // (LOOKS + 1)) for look in range(1, LOOKS + 1)}
        while True:
            run.visit()
            done = len(run.records)
            progress(max(done / run.planned, min(1.0, run.elapsed_s() / time_s)))
            last = done >= run.planned or (run.elapsed_s() > time_s and done >= MIN_ROUNDS)
            if not last and done not in looks:
                continue
            result = run.result(margin, control, ALPHA if last else LOOK_ALPHA)
            if last or all(arm.verdict != "undecided" for arm in result.arms.values()):
                progress(1.0)
                return result


class _Run:
    """The visits of one comparison."""

    def __init__(
        self,
        names: tuple[str, ...],
        make: Callable[[], Sequence[Slot]],
        time_s: float,
        *,
        seed: str,
        warmup: int,
        device: Device,
        threads: int,
        own_s: Callable[[], float],
    ) -> None:
        self.names, self.make, self.time_s = names, make, time_s
        self.seed, self.warmup = seed, warmup
        self.device, self.threads, self.own_s = device, threads, own_s
        self.began = time.monotonic()
        self.patience = ContentionWait(threads, min(WAIT_S, WAIT_SHARE * time_s), own_s=own_s)
        self.records: list[VisitRecord] = []
        self.failures: dict[str, str] = {}
        self.inner, self.planned, self.prepare_s = 1, MIN_VISITS, 0.0
        self.round_s = 0.0
        self.slots: Sequence[Slot] | None = None
        """Of the first visit, from when it was planned."""

    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def indices(self) -> list[int]:
        """Of the slots of a visit the names, without arms that failed, the baseline last once
        more.
        """
        used = [index for index, name in enumerate(self.names) if name not in self.failures]
        return [*used, 0]

    def fresh(self) -> Sequence[Slot]:
        """The slots of a visit that did not fail. Raises `ArmFailedError`."""
        while True:
            try:
                slots = self.make()
            except ArmFailedError as error:
                self.leave_out(error.arm, error.reason)
                continue
            if len(slots) != len(self.names) + 1:
                raise ValueError(f"make() gave {len(slots)} slots for {len(self.names)} names + 1")
            return [slots[index] for index in self.indices()[:-1]] + [slots[-1]]

    def leave_out(self, name: str, reason: str) -> None:
        """Raises `ArmFailedError` if nothing is left to compare."""
        if name in self.failures:
            raise ArmFailedError(name, reason)
        self.failures[name] = reason
        if name == self.names[0] or len(self.failures) == len(self.names) - 1:
            raise ArmFailedError(name, reason)

    def run_slots(self, slots: Sequence[Slot], visit: Callable[[Sequence[Slot]], None]) -> bool:
        """Whether no slot failed; an arm that did is left out."""
        try:
            with no_garbage_collection():
                visit(slots)
        except ArmError as error:
            cause = error.__cause__
            reason = (
                cause.reason
                if isinstance(cause, ArmFailedError)
                else f"{type(cause).__name__}: {cause}"
            )
            self.leave_out(self.names[self.indices()[error.column]], reason)
            return False
        return True

    def prepare_first(self, visits: int | None) -> None:
        """Choose the inner loop, warm up, and plan the visits, with the slots of the first one."""

        def warm(slots: Sequence[Slot]) -> None:
            start = time.monotonic()
            self.inner = calibrate(slots, _run_slot, 1)
            if time.monotonic() - start < CHEAP_SHARE * self.time_s:
                self.inner = calibrate(slots, _run_slot)
            limit_s = min(WARMUP_S, WARMUP_SHARE * self.time_s)
            done = warm_up(
                slots,
                self.inner,
                seed=self.seed,
                stopwatch=_run_slot,
                deadline=math.inf,
                limit_s=limit_s if self.warmup else 0.0,
            )
            self.round_s = sum(done.seconds) / done.forwards * self.inner

        while True:
            start = time.monotonic()
            self.slots = self.fresh()
            made_s = time.monotonic() - start
            if self.run_slots(self.slots, warm):
                break
        self.prepare_s = made_s + self.warmup * self.round_s
        left_s = self.time_s - self.elapsed_s()
        most = min(
            left_s / VISIT_S,
            left_s / (self.prepare_s + PLANNED_ROUNDS * self.round_s),
            self.time_s * PREPARATION_SHARE / max(self.prepare_s, 1e-9),
        )
        self.planned = visits or max(MIN_VISITS, min(MAX_VISITS, int(most)))

    def visit(self) -> None:
        """Measure one visit and record it."""
        while True:
            self.patience.wait()
            slots = self.slots or self.fresh()
            is_first, self.slots = self.slots is not None, None
            visit = _OneVisit(self, warm=not is_first)
            if self.run_slots(slots, visit):
                break
        assert visit.record is not None
        self.records.append(visit.record)

    def result(self, margin: float, control: str | None, alpha: float) -> Result:
        """What all visits so far show; the intervals miss with probability `alpha` * `SPENT_NOW` at
        this look.
        """
        used = [each for each in self.records if not quarantine_reasons(each.flags)]
        slowed = not used
        used = used or self.records
        names = self.names
        left = [index for index in dict.fromkeys(self.indices()) if index]
        pooled = {names[index]: _pool(used, index) for index in left}
        noise = flags_of_attempts([each.flags for each in used])
        arms = {
            name: self._compared(name, pooling, noise | uneven, margin=margin, alpha=alpha)
            for name, (pooling, uneven) in pooled.items()
        }
        null = next(iter(pooled.values()))[0].null
        void = "the machine was slowed in every visit" if slowed else ""
        if control in arms and (arms[control].low > 1 or arms[control].high < 1):
            moved = arms[control]
            void = (
                f"the control {control} moved: {moved.ratio:.3f}x [{moved.low:.3f},"
                f" {moved.high:.3f}]"
            )
        if void:
            arms = {name: replace(arm, verdict="undecided") for name, arm in arms.items()}
        return Result(
            names=names,
            arms=arms,
            null=Ratio(1.0, 0.0, math.inf)
            if null is None
            else _ratio(null.effect, quantile(alpha * SPENT_NOW, null.freedom) * null.se),
            seconds={
                names[index]: statistics.median(
                    time_s for each in used for time_s in _columns(each.samples, index).ravel()
                )
                for index in [0, *left]
            },
            failures=dict(self.failures),
            margin=margin,
            spent_s=self.elapsed_s(),
            environment=environment_of(self.device),
            visits=tuple(self.records),
            planned=self.planned,
            void=void,
        )

    def _compared(
        self, name: str, pooling: Pooling, flags: set[str], *, margin: float, alpha: float
    ) -> Compared:
        found = pooling.speedup._replace(alpha=alpha)
        verdict = judge(found.low, found.high, margin)
        raised = {
            "slow_state": pooling.state == "slow",
            "states_differ": pooling.states_differ,
        }
        return Compared(
            name,
            verdict,
            found.value,
            found.low,
            found.high,
            found.pairs,
            len(pooling.parts),
            tuple(sorted({*flags, *(flag for flag, holds in raised.items() if holds)})),
            _needed_s(found, margin, self.elapsed_s()) if verdict == "undecided" else None,
            not_slower=found.low > 1 / (1 + margin),
        )


class _OneVisit:
    """Warms up the slots of a visit and times them in rounds."""

    def __init__(self, run: _Run, *, warm: bool) -> None:
        self.run, self.warm = run, warm
        self.record: VisitRecord | None = None

    def __call__(self, slots: Sequence[Slot]) -> None:
        run, turn = self.run, len(self.run.records)
        seed = f"{run.seed}:{turn}:{len(run.failures)}"
        if self.warm and run.warmup:
            warm_up(
                slots,
                run.inner,
                seed=seed,
                stopwatch=_run_slot,
                deadline=math.inf,
                samples=run.warmup,
                blocks=1,
            )
        left = run.planned - turn
        budget_s = (run.time_s - run.elapsed_s() - (left - 1) * run.prepare_s) / left
        expected = budget_s / run.round_s * NO_MORE_THAN
        started = time.time()
        with watch(run.device, run.threads, own_s=run.own_s) as seen:
            samples = time_rounds(
                slots,
                run.inner,
                arms=run.indices(),
                pairs=[Pair(0, index) for index in run.indices() if index],
                protocol=Protocol(
                    pairs_min=MIN_ROUNDS,
                    pairs_max=max(MIN_ROUNDS, int(expected)),
                    budget_s=max(budget_s, 1e-3),
                    passes=max(2, run.planned),
                ),
                seed=seed,
                stopwatch=_run_slot,
                deadline=math.inf,
                between=seen.look,
            )
        self.record = VisitRecord(samples, seen.flags, seen.readings, started, time.time())


def _run_slot(slot: Slot, inner: int) -> SampleTime:
    return slot(inner)


def _columns(samples: Samples, index: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Seconds of an arm, shape [rounds, columns]."""
    columns = [column for column, arm in enumerate(samples.arms) if arm == index]
    return np.array(samples.seconds)[:, columns]


def _pool(records: Sequence[VisitRecord], index: int) -> tuple[Pooling, set[str]]:
    """The speed-up of an arm by all visits, and the flag of mean times that tell something else."""
    visits = [Visit(_columns(each.samples, 0), _columns(each.samples, index)) for each in records]
    pooling = pool_visits(visits, range(len(visits)))
    mean = mean_contrast((visit.baseline, visit.arm) for visit in visits)
    return pooling, {"mean_disagrees"} if mean_disagrees(mean, pooling.speedup) else set()


def _ratio(effect: float, half_width: float) -> Ratio:
    return Ratio(exp(effect), exp(effect - half_width), exp(effect + half_width))


def _needed_s(found: SpeedUp, margin: float, spent_s: float) -> float | None:
    """Seconds after which the interval, whose width falls with the root of the time, is narrow
    enough for a verdict; `None` where there is no interval.
    """
    allowed = log1p(margin)
    distance = max(found.log, -found.log - allowed, allowed - abs(found.log))
    if found.half_width == math.inf:
        return None
    return spent_s * max(1.0, (found.half_width / distance) ** 2) if distance > 0 else None
