"""Rounds: every arm once per round in random order, after an equal warm-up, until the intervals of
all ratios are narrow enough.
"""

import contextlib
import gc
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeVar

from sweeps.model.job import Pair, Protocol
from sweeps.model.outcome import Samples
from sweeps.stats.pooling import quantile, within_process
from sweeps.stats.timing import Rounds, median, steady
from sweeps.stats.visits import FLOOR
from workers.errors import TimedOut
from workers.measure.timer import SampleTime, inner_loop

LOOK_GROWTH = 1.25
"""Intervals are checked after `pairs_min` rounds and whenever these have grown by a quarter: a
schedule independent of results."""
BURST_EVERY = 20
"""Rounds from one burst of each arm to the next."""
PLATEAU = FLOOR.sd / 2
"""Half-width of 95 % intervals by the errors within a process, below which other visits would show
more than more rounds."""
DRAWS = 100
"""Orders that are drawn at most until one repeats no arm."""
BLOCK_SAMPLES = 3
WARMUP_BLOCKS = 20
VISIT_WARMUP = 2
"""Samples of every arm before the rounds of one of several visits: what is still cold then is part
of how visits differ."""
WARMUP_S = 5.0
"""Warm-up ends after 20 blocks of 3 samples of every arm, or 5 seconds, even if not steady."""
CALIBRATION_FORWARDS = 3

Stopped = Literal["half_width", "plateau", "pairs_max", "budget"]
Orders = Sequence[tuple[int, ...]]
"""For each round the columns in the order they ran."""
Parts = Callable[[Orders], Iterable[Sequence[Sequence[float]]]]
"""Returns times of shape [rounds, steps]."""
StepT = TypeVar("StepT")
"""What a stopwatch runs."""
Timing = Callable[[StepT, int], SampleTime]
"""Times a step run that many times in a row."""


class ArmError(Exception):
    """A step raised (see `__cause__`); `column` is its index."""

    def __init__(self, column: int) -> None:
        super().__init__(f"step {column} failed")
        self.column = column


class Warmup(NamedTuple):
    """How the arms were warmed up: seconds of each, forwards of every one alike, and whether all
    became steady.
    """

    seconds: tuple[float, ...]
    forwards: int
    steady: bool


def calibrate(
    steps: Sequence[StepT], stopwatch: Timing[StepT], forwards: int = CALIBRATION_FORWARDS
) -> int:
    """The inner loop for all steps: what the fastest needs.

    One number for all, because the first forward after another arm finds cold caches, which must
    have the same weight in every arm.
    """
    fastest = min(
        _run(stopwatch, steps, column, 1).wall
        for column in range(len(steps))
        for _ in range(forwards)
    )
    return inner_loop(fastest)


def warm_up(
    steps: Sequence[StepT],
    inner: int,
    *,
    seed: str,
    stopwatch: Timing[StepT],
    deadline: float,
    samples: int = BLOCK_SAMPLES,
    blocks: int = WARMUP_BLOCKS,
    limit_s: float = WARMUP_S,
    clock: Callable[[], float] = time.monotonic,
) -> Warmup:
    """Run the steps interleaved, in blocks of `samples`, until the block median of every step has
    once stopped improving.

    Once, and not all at the same block: what is warm stays so while the others go on, and many
    steps are never all quiet at once. `deadline` is a reading of `clock`; `limit_s` is how long it
    may take at most. Raises `ArmError`.
    """
    began = clock()
    medians: list[list[float]] = [[] for _ in steps]
    seconds, passes, warm = [0.0] * len(steps), 0, [False] * len(steps)
    for block in range(blocks):
        times: list[list[float]] = [[] for _ in steps]
        for sample in range(samples):
            for column in random_order(len(steps), f"{seed}:warm-up:{block}:{sample}"):
                wall = _run(stopwatch, steps, column, inner).wall
                times[column].append(wall)
                seconds[column] += wall * inner
            passes += 1
            now = clock()
            if now - began > limit_s or now > deadline:
                return Warmup(tuple(seconds), passes * inner, steady=False)
        for column, taken in enumerate(times):
            medians[column].append(median(taken).value)
            warm[column] = warm[column] or steady(medians[column])
        if all(warm):
            break
    return Warmup(tuple(seconds), passes * inner, all(warm))


def time_rounds(
    steps: Sequence[StepT],
    inner: int,
    *,
    arms: Sequence[int],
    pairs: Sequence[Pair],
    protocol: Protocol,
    seed: str,
    stopwatch: Timing[StepT],
    deadline: float,
    parts: Parts = lambda _: (),
    burst: int = 0,
    enough_s: float = math.inf,
    pause: Callable[[], object] = lambda: None,
    between: Callable[[int], object] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Samples:
    """Time the steps in rounds; `arms` names the job's arm behind each step, where an arm may stand
    twice, and `pairs` holds arms.

    `parts` gives, at a look, further times of the rounds so far, such as those to the first token;
    their ratios count alike. `pause` is called after a look, `between` after each round with how
    many are done; their time is part of the budget. After the first and every `BURST_EVERY` rounds
    each arm runs `burst` samples in one go, as in steady running.

    Stops at a look when every ratio's interval is narrow enough, or as narrow as one process can
    make it (without pairs: every median's), after `pairs_max` rounds, when the budget is spent,
    after `enough_s` if `pairs_min` rounds are in, or at `deadline` (a reading of
    `clock`). One of several visits (`protocol.passes`) has no looks, and `pairs_min`
    rounds whatever its budget. Raises `ArmError`.
    """
    began = clock()
    once = [arms.index(arm) for arm in dict.fromkeys(arms)]
    walls: list[tuple[float, ...]] = []
    devices: list[tuple[float, ...]] = []
    orders: list[tuple[int, ...]] = []
    bursts: list[tuple[float, ...]] = []
    look, stopped = protocol.pairs_min if protocol.passes == 1 else math.inf, None
    while stopped is None:
        order = spread_order(arms, f"{seed}:{len(walls)}", orders[-1][-1] if orders else None)
        timings = {column: _run(stopwatch, steps, column, inner) for column in order}
        row = [timings[column] for column in range(len(steps))]
        walls.append(tuple(timing.wall for timing in row))
        devices.append(tuple(timing.device for timing in row if timing.device is not None))
        orders.append(order)
        if burst and len(walls) % BURST_EVERY == 1:
            turns = (once[turn] for turn in random_order(len(once), f"{seed}:burst:{len(walls)}"))
            times = {column: _run(stopwatch, steps, column, inner * burst).wall for column in turns}
            bursts.append(tuple(times[column] for column in once))
        if len(walls) == look:
            look = max(look + 1, int(look * LOOK_GROWTH))
            stopped = _enough([walls, *parts(orders)], arms, pairs, protocol.half_width)
            if stopped is None:
                pause()
        between(len(walls))
        now = clock()
        if stopped is None and len(walls) >= protocol.pairs_max:
            stopped = "pairs_max"
        fewest = len(walls) >= protocol.pairs_min
        limit_s = min(protocol.budget_s, enough_s) if fewest else protocol.budget_s
        if protocol.passes > 1 and not fewest:
            limit_s = math.inf  # of a visit, the least rounds come first
        if stopped is None and (now > deadline or now - began > limit_s):
            stopped = "budget"
    return Samples(
        arms=tuple(arms),
        seconds=tuple(walls),
        event_seconds=tuple(devices) if all(devices) else None,
        order=tuple(orders),
        inner=(inner,) * len(steps),
        stopped=stopped,
        bursts=tuple(bursts) or None,
    )


def by_column(
    series: Mapping[int, Sequence[float]], arms: Sequence[int], orders: Orders
) -> tuple[tuple[float, ...], ...]:
    """The times of each arm, in the order they were taken, as a table of shape [rounds, columns];
    see `Samples`.
    """
    upcoming = {arm: iter(times) for arm, times in series.items()}
    table = []
    for order in orders:
        row = {column: next(upcoming[arms[column]]) for column in order}
        table.append(tuple(row[column] for column in range(len(arms))))
    return tuple(table)


def _run(stopwatch: Timing[StepT], steps: Sequence[StepT], column: int, inner: int) -> SampleTime:
    try:
        return stopwatch(steps[column], inner)
    except (Exception, TimedOut) as error:
        raise ArmError(column) from error


def random_order(count: int, seed: str) -> tuple[int, ...]:
    """The columns 0 to `count` - 1 in an order that the seed decides."""
    order = list(range(count))
    random.Random(seed).shuffle(order)  # noqa: S311 - an order of arms is no secret, but must be repeatable
    return tuple(order)


def spread_order(arms: Sequence[int], seed: str, last: int | None) -> tuple[int, ...]:
    """A random order of columns in which arms follow themselves as rarely as possible; `last` is
    the column before, if any.

    An arm that runs after itself finds its weights in the caches, and is 0.8 to 1.5 % faster.
    """

    def repeats(order: tuple[int, ...]) -> int:
        before = order if last is None else (last, *order)
        return sum(arms[one] == arms[other] for one, other in pairwise(before))

    all_arms = [*arms, *([] if last is None else [arms[last]])]
    fewest = max(0, 2 * max(map(all_arms.count, all_arms)) - 1 - len(all_arms))
    drawn: list[tuple[int, ...]] = []
    for draw in range(DRAWS):
        drawn.append(random_order(len(arms), f"{seed}:{draw}"))
        if repeats(drawn[-1]) <= fewest:
            return drawn[-1]
    return min(drawn, key=repeats)


def _enough(
    tables: Iterable[Sequence[Sequence[float]]],
    arms: Sequence[int],
    pairs: Sequence[Pair],
    target: float,
) -> Stopped | None:
    """Whether each interval is narrow enough, or more rounds of this process would hardly narrow
    it; `tables` are times.
    """
    if not pairs:
        widths = [
            median(column).half_width for times in tables for column in zip(*times, strict=True)
        ]
        return "half_width" if max(widths) <= target else None
    contrasts = [
        rounds.contrast(*pair)
        for rounds in (Rounds(times, arms) for times in tables)
        for pair in pairs
    ]
    if all(within_process(contrast, 0).half_width <= target for contrast in contrasts):
        return "half_width"
    sure = (quantile(0.05, contrast.freedom) * contrast.se <= PLATEAU for contrast in contrasts)
    return "plateau" if all(sure) else None


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect garbage now, and none until the block ends."""
    running = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@contextlib.contextmanager
def frozen_heap() -> Iterator[None]:
    """Leave what exists now out of every collection of garbage until the block ends, so that each
    takes milliseconds.
    """
    gc.collect()
    own = not gc.get_freeze_count()
    if own:
        gc.freeze()
    try:
        yield
    finally:
        if own:
            gc.unfreeze()
