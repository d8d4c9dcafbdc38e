"""Comparison of slots that run anything: visits spread over the time, each with rounds in random
order as in jobs; looks that share the probability of an error; verdicts against a margin.

Every comparison has 99 % intervals over all its looks, and verdicts follow from the printed
interval alone: of equal arms at most 1 % are called faster or slower.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from orchestrator.api.result import MIN_ROUNDS, Result, Setup, VisitRecord
from sweeps.analysis.compared import compare_pooled, null_ratio
from sweeps.model.flags import flags_of_attempts, quarantine_reasons
from sweeps.model.job import Pair, Protocol
from sweeps.stats.pooling import ALPHA, SPENT_NOW, mean_contrast, mean_disagrees
from sweeps.stats.visits import Pooling, Visit, pool_visits
from sweeps.text.compared import speedup_text
from workers.errors import TimedOut
from workers.measure.environment import environment_of
from workers.measure.interleaved import (
    WARMUP_S,
    ArmError,
    frozen_heap,
    no_garbage_collection,
    time_rounds,
    warm_up,
)
from workers.measure.monitors import ContentionWait, watch
from workers.measure.timer import SampleTime, inner_loop

VISIT_S = 1.5
"""Seconds of rounds in a visit, where that gives between `MIN_VISITS` and `MAX_VISITS`."""
MIN_VISITS, MAX_VISITS = 4, 24
PLANNED_ROUNDS = 4
"""Of a visit at least, where there can be fewer visits."""
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
SIMILAR = 4.0
"""Arms whose times differ by a smaller factor run equally often in a sample, so that cold caches
after another arm weigh alike; others as often as each needs."""
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


def measure(
    names: Sequence[str],
    make: Callable[[], Slots],
    *,
    progress: Callable[[float], object] = lambda _: None,
    **setup: object,
) -> Result:
    """Compare arms with the first of `names`, in about `time_s` seconds, less where all are decided
    earlier; `setup` are the fields of `Setup`.

    `make` prepares one visit: it returns a fresh slot for each name in their order, and then a
    second one for each, with data of its own. An arm whose slot raises is left out and named in
    `failures`; `make` may raise `ArmFailedError`. `progress` is called with the share that is done.
    Raises `ArmFailedError` if the baseline or all other arms fail, and `ValueError` for fewer than
    two different names.
    """
    comparison = Comparison(names, make, Setup(**setup))  # type: ignore[arg-type]
    with frozen_heap():
        while not comparison.ended:
            comparison.visit()
            progress(comparison.share_done)
    return comparison.result()


def check_names(names: Collection[str]) -> None:
    """Raises `ValueError` for fewer than two, equal and empty ones."""
    if len(set(names)) < max(2, len(names)) or "" in names:
        raise ValueError(f"a comparison needs two or more different names, got {[*names]}")


class _Loop(NamedTuple):
    """A slot that runs so often in a sample."""

    name: str
    slot: Slot
    inner: int = 1


def _run_loop(loop: _Loop, times: int) -> SampleTime:
    """Raises `ArmFailedError`."""
    try:
        taken = loop.slot(loop.inner * times)
    except ArmFailedError:
        raise
    except (Exception, TimedOut) as error:  # whatever an arm raises
        raise ArmFailedError(loop.name, failure_text(error)) from error
    if not 0 < taken.wall < math.inf:
        raise ArmFailedError(loop.name, f"took {taken.wall:g} s: the clock was changed")
    return taken


class Comparison:
    """A comparison that is made visit by visit."""

    def __init__(
        self,
        names: Sequence[str],
        make: Callable[[], Slots],
        setup: Setup,
        verify: Callable[[Sequence[str]], object] = lambda _: None,
        *,
        cached: Collection[str] = (),
        fault: Callable[[], str] = str,
    ) -> None:
        """See `measure`; `verify` is called after the rounds of each visit with the names that were
        timed, and raises `ArmFailedError` for one whose results are wrong by then. `cached` has the
        arms that seem to keep their results so far; `fault` states why nothing may be concluded.
        """
        check_names(names)
        for control in setup.controls:
            if control not in names[1:]:
                raise ValueError(f"control {control!r} is none of the arms {', '.join(names[1:])}")
        self.names, self.setup = tuple(names), setup
        self.spent_s = 0.0
        self.ended = False
        """Whether all arms are decided, or the time is spent."""
        self._last = False
        self._make, self._verify, self._cached, self._fault = make, verify, cached, fault
        self._patience = ContentionWait(
            setup.threads,
            min(CONTENTION_S, CONTENTION_SHARE * setup.time_s),
            own_s=setup.own_s,
        )
        self._records: list[VisitRecord] = []
        self._failures: dict[str, str] = {}
        self._inner: dict[str, int] = {}
        """Runs in a sample, by name."""
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
        while True:
            self._patience.wait()
            made = clock()
            slots = self._fresh()
            made_s = clock() - made
            try:
                with no_garbage_collection():
                    loops = self._warm_up(slots, made_s)
                    self.spent_s = before_s + clock() - began
                    record = self._timed(loops)
                self._verify([loop.name for loop in loops[: len(loops) // 2]])
                break
            except (ArmError, ArmFailedError) as error:
                failed = error.__cause__ if isinstance(error, ArmError) else error
                assert isinstance(failed, ArmFailedError)
                self._leave_out(failed)
        self._records.append(record)
        self.spent_s = before_s + clock() - began
        self._decide()

    def _decide(self) -> None:
        """Look at the visits, if it is time for a look."""
        done, planned = len(self._records), self._planned
        self._last = done >= planned or (self.spent_s > self.setup.time_s and done >= MIN_ROUNDS)
        early = {-(-planned * look // (LOOKS + 1)) for look in range(1, LOOKS + 1)}
        self.ended = self._last or (done in early and self._is_decided())

    def _is_decided(self) -> bool:
        """Whether all arms are, and the slots of the baseline agree: too few visits do not yet show
        that they differ.
        """
        result = self.result()
        apart = abs(math.log(result.null.value))
        return apart < math.log1p(result.margin) and all(
            arm.verdict != "undecided" for arm in result.arms.values()
        )

    def _indices(self) -> list[int]:
        """Of the slots of a visit the names, without arms that failed; each has two."""
        return 2 * [index for index, name in enumerate(self.names) if name not in self._failures]

    def _fresh(self) -> Slots:
        """The slots of a visit without arms that failed. Raises `ArmFailedError`."""
        while True:
            try:
                slots = self._make()
            except ArmFailedError as error:
                self._leave_out(error)
                continue
            if len(slots) != 2 * len(self.names):
                raise ValueError(
                    f"make() gave {len(slots)} slots for {len(self.names)} names, not 2 each"
                )
            pairs = zip(2 * self.names, slots, strict=True)
            return [slot for name, slot in pairs if name not in self._failures]

    def _leave_out(self, failed: ArmFailedError) -> None:
        """Raises it if nothing is left to compare besides controls."""
        name, controls = failed.arm, self.setup.controls
        known = name in self._failures
        self._failures[name] = failed.reason
        left = {*self.names[1:]} - {*self._failures, *controls, *controls.values()}
        if known or name == self.names[0] or not left:
            raise failed

    def _warm_up(self, slots: Slots, made_s: float) -> list[_Loop]:
        """Warm up; before the first visit thoroughly, which also gives the inner loops and the
        number of visits.
        """
        setup, clock = self.setup, self.setup.clock
        names = [self.names[index] for index in self._indices()]
        warming = partial(
            warm_up,
            seed=f"{setup.seed}:{len(self._records)}",
            stopwatch=_run_loop,
            deadline=math.inf,
            clock=clock,
        )
        loops = self._loops(names, slots)
        if self._planned:
            if setup.warmup:
                warming(loops, 1, samples=setup.warmup, blocks=1)
            return loops
        start = clock()
        calls = [_run_loop(loop, 1).wall for loop in loops]
        if clock() - start < CHEAP_SHARE * setup.time_s:
            for _ in range(2):
                again = [_run_loop(loop, 1).wall for loop in loops]
                calls = list(map(min, calls, again))
        self._choose_inner(names, calls)
        loops = self._loops(names, slots)
        limit_s = min(WARMUP_S, WARMUP_SHARE * setup.time_s) if setup.warmup else 0.0
        warm = warming(loops, 1, limit_s=limit_s)
        # one call alone also has the time of the call of the stopwatch
        calls = [seconds / warm.forwards for seconds in warm.seconds]
        self._choose_inner(names, calls)
        loops = self._loops(names, slots)
        self._round_s = sum(loop.inner * call for loop, call in zip(loops, calls, strict=True))
        # one call of each arm, at most a round, is for the check of results
        self._prepare_s = made_s + (setup.warmup + 1) * self._round_s
        left_s = setup.time_s - (clock() - start) - made_s
        most = min(
            left_s / VISIT_S,
            left_s / (self._prepare_s + PLANNED_ROUNDS * self._round_s),
            setup.time_s * PREPARATION_SHARE / self._prepare_s,
        )
        self._planned = setup.visits or max(MIN_VISITS, min(MAX_VISITS, int(most)))
        return loops

    def _loops(self, names: Sequence[str], slots: Slots) -> list[_Loop]:
        return [
            _Loop(name, slot, self._inner.get(name, 1))
            for name, slot in zip(names, slots, strict=True)
        ]

    def _choose_inner(self, names: Sequence[str], calls: Sequence[float]) -> None:
        """By the seconds of one call of each; none becomes shorter."""
        shortest = dict.fromkeys(names, math.inf)
        for name, seconds in zip(names, calls, strict=True):
            shortest[name] = min(shortest[name], seconds)
        needed = {name: inner_loop(seconds) for name, seconds in shortest.items()}
        if max(calls) < SIMILAR * min(calls):
            needed = dict.fromkeys(names, max(needed.values()))
        self._inner = {name: max(self._inner.get(name, 1), needed[name]) for name in needed}

    def _timed(self, loops: Sequence[_Loop]) -> VisitRecord:
        """Time the slots in rounds for this visit's part of what is left of the time."""
        setup, turn, indices = self.setup, len(self._records), self._indices()
        left = self._planned - turn
        budget_s = (setup.time_s - self.spent_s - (left - 1) * self._prepare_s) / left
        started = time.time()
        with watch(
            setup.device, setup.threads, own_s=setup.own_s, threads_s=setup.threads_s
        ) as seen:
            samples = time_rounds(
                loops,
                1,
                arms=indices,
                pairs=[Pair(0, index) for index in indices if index],
                protocol=Protocol(
                    pairs_min=MIN_ROUNDS,
                    pairs_max=max(MIN_ROUNDS, int(ROUNDS_MARGIN * budget_s / self._round_s)),
                    budget_s=max(budget_s, 1e-3),
                    passes=max(2, self._planned),
                ),
                seed=f"{setup.seed}:{turn}:{len(self._failures)}",
                stopwatch=_run_loop,
                deadline=math.inf,
                between=seen.look,
                clock=setup.clock,
            )
        samples = samples.model_copy(update={"inner": tuple(loop.inner for loop in loops)})
        flags = (*seen.flags, "cached_result") if self._cached else seen.flags
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
        void = self._fault() or ("" if right else "the machine was slowed in every visit")
        for pair in self.setup.controls.items():
            void = self._control_fault(*pair, used, alpha) or void
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

    def _control_fault(
        self, control: str, reference: str, visits: Sequence[VisitRecord], alpha: float
    ) -> str:
        """Why nothing may be concluded by a control; empty if its interval contains 1."""
        for name in (control, reference):
            if name in self._failures:
                return f"the control {name} failed: {self._failures[name]}"
        pooling, _ = _pool(visits, *map(self.names.index, (control, reference)))
        found = pooling.speedup._replace(alpha=alpha)
        if found.half_width == math.inf:
            return f"the control {control} has no interval: too few rounds"
        if found.low <= 1 <= found.high:
            return ""
        return f"the control {control} moved: {speedup_text(found.value, found.low, found.high)}"


def failure_text(error: BaseException | None) -> str:
    """Why a slot or a function failed, for people."""
    if isinstance(error, ArmFailedError):
        return error.reason
    if isinstance(error, TimedOut):
        return str(error)
    return f"raised {type(error).__name__}: {error}"


def _pool(
    records: Sequence[VisitRecord], index: int, baseline: int = 0
) -> tuple[Pooling, set[str]]:
    """The speed-up of an arm by all visits, and the flag of mean times that tell something else."""
    visits = [Visit(each.times(baseline), each.times(index)) for each in records]
    pooling = pool_visits(visits, range(len(visits)), run_sd=0.0)
    mean = mean_contrast((visit.baseline, visit.arm) for visit in visits)
    return pooling, {"mean_disagrees"} if mean_disagrees(mean, pooling.speedup) else set()


BAR = 30
"""Characters of the bar."""


def progress_bar() -> Callable[[float], object]:
    """Shows the share that is done, in a notebook or on the terminal of standard error; nothing
    elsewhere.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _notebook_bar()
    return _terminal_bar if sys.stderr.isatty() else lambda _: None


def _terminal_bar(share: float) -> None:
    filled = round(BAR * share)
    bar = f"\r{'#' * filled}{'.' * (BAR - filled)} {share:4.0%}"
    sys.stderr.write(bar if share < 1 else f"\r{' ' * len(bar)}\r")
    sys.stderr.flush()


def _notebook_bar() -> Callable[[float], object]:
    display: Any = sys.modules["IPython"].display
    shown = display.display(display.HTML(""), display_id=True)

    def show(share: float) -> None:
        bar = f"<progress value='{share:.3f}'></progress> {share:.0%}"
        shown.update(display.HTML(bar if share < 1 else ""))

    return show
