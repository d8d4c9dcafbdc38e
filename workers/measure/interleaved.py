"""Rounds: every arm once per round in random order, after an equal warm-up, until the intervals of all ratios are narrow enough."""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from sweeps.job import Pair
from sweeps.outcome import Samples
from sweeps.protocol import Protocol
from sweeps.stats.timing import median, plateau, speedup, steady
from workers.measure.timeout import TimedOut
from workers.measure.timer import SampleTime, Stopwatch, TimedStep, inner_loop

LOOK_EVERY = 10
"""Intervals are checked after `pairs_min` rounds and every 10 rounds from there: a schedule independent of results."""
BLOCK_SAMPLES = 3
WARMUP_BLOCKS = 20
WARMUP_S = 5.0
"""Warm-up ends after 20 blocks of 3 samples of every arm, or 5 seconds, even if not steady."""
CALIBRATION_FORWARDS = 3

Stopped = Literal["half_width", "plateau", "pairs_max", "budget"]
Parts = Callable[[], Iterable[Sequence[Sequence[float]]]]
"""Returns times of shape [rounds, steps]."""


class ArmError(Exception):
    """A step raised (see `__cause__`); `column` is its index."""

    def __init__(self, column: int) -> None:
        super().__init__(f"step {column} failed")
        self.column = column


class Warmup(NamedTuple):
    """How the arms were warmed up: seconds of each, forwards of every one alike, and whether all became steady."""

    seconds: tuple[float, ...]
    forwards: int
    steady: bool


def calibrate(steps: Sequence[TimedStep], stopwatch: Stopwatch) -> int:
    """The inner loop for all steps: what the fastest needs.

    One number for all, because the first forward after another arm finds cold caches, which must have the same weight in every arm.
    """
    fastest = min(_run(stopwatch, steps, column, 1).wall for column in range(len(steps)) for _ in range(CALIBRATION_FORWARDS))
    return inner_loop(fastest)


def warm_up(
    steps: Sequence[TimedStep],
    inner: int,
    *,
    seed: str,
    stopwatch: Stopwatch,
    deadline: float,
    samples: int = BLOCK_SAMPLES,
    limit_s: float = WARMUP_S,
) -> Warmup:
    """Run the steps interleaved, in blocks of `samples`, until the block median of every step has once stopped improving.

    Once, and not all at the same block: what is warm stays so while the others go on, and many steps are never all quiet at once.
    `deadline` is a reading of `time.monotonic()`; `limit_s` is how long it may take at most. Raises `ArmError`.
    """
    began = time.monotonic()
    medians: list[list[float]] = [[] for _ in steps]
    seconds, passes, warm = [0.0] * len(steps), 0, [False] * len(steps)
    for block in range(WARMUP_BLOCKS):
        times: list[list[float]] = [[] for _ in steps]
        for sample in range(samples):
            for column in _order(len(steps), f"{seed}:warm-up:{block}:{sample}"):
                wall = _run(stopwatch, steps, column, inner).wall
                times[column].append(wall)
                seconds[column] += wall * inner
            passes += 1
            now = time.monotonic()
            if now - began > limit_s or now > deadline:
                return Warmup(tuple(seconds), passes * inner, steady=False)
        for column, taken in enumerate(times):
            medians[column].append(median(taken).value)
            warm[column] = warm[column] or steady(medians[column])
        if all(warm):
            break
    return Warmup(tuple(seconds), passes * inner, all(warm))


def time_rounds(
    steps: Sequence[TimedStep],
    inner: int,
    *,
    arms: Sequence[int],
    pairs: Sequence[Pair],
    protocol: Protocol,
    seed: str,
    stopwatch: Stopwatch,
    deadline: float,
    parts: Parts = tuple,
) -> Samples:
    """Time the steps in rounds; `arms` names the job's arm behind each step and `pairs` holds indices of steps.

    `parts` gives, at a look, further times of the rounds so far, such as those to the first token; their ratios count alike.
    Stops at a look when every ratio's interval is narrow enough or no longer shrinks (without pairs: every median's), after
    `pairs_max` rounds, when the budget is spent and `pairs_min` rounds are in, or at `deadline` (a reading of
    `time.monotonic()`) with however few. Raises `ArmError`.
    """
    began = time.monotonic()
    walls: list[tuple[float, ...]] = []
    devices: list[tuple[float, ...]] = []
    orders: list[tuple[int, ...]] = []
    widths: list[list[float]] = []
    upcoming: list[tuple[int, ...]] = []
    stopped: Stopped | None = None
    while stopped is None:
        if not upcoming:  # drawn ahead, because work between two rounds slows the first sample of the next one
            upcoming = [_order(len(steps), f"{seed}:{len(walls) + turn}") for turn in range(LOOK_EVERY)][::-1]
        order = upcoming.pop()
        timings = dict(zip(order, [_run(stopwatch, steps, column, inner) for column in order], strict=True))
        row = [timings[column] for column in range(len(steps))]
        walls.append(tuple(timing.wall for timing in row))
        devices.append(tuple(timing.device for timing in row if timing.device is not None))
        orders.append(order)
        if len(walls) >= protocol.pairs_min and (len(walls) - protocol.pairs_min) % LOOK_EVERY == 0:
            widths.append([width for times in (walls, *parts()) for width in _half_widths(times, pairs)])
            stopped = _enough(widths, protocol.half_width)
        now = time.monotonic()
        if stopped is None and len(walls) >= protocol.pairs_max:
            stopped = "pairs_max"
        elif stopped is None and (now > deadline or (now - began > protocol.budget_s and len(walls) >= protocol.pairs_min)):
            stopped = "budget"
    return Samples(
        arms=tuple(arms),
        seconds=tuple(walls),
        device_seconds=tuple(devices) if all(devices) else None,
        order=tuple(orders),
        inner=(inner,) * len(steps),
        stopped=stopped,
    )


def _run(stopwatch: Stopwatch, steps: Sequence[TimedStep], column: int, inner: int) -> SampleTime:
    try:
        return stopwatch(steps[column], inner)
    except (Exception, TimedOut) as error:
        raise ArmError(column) from error


def _order(count: int, seed: str) -> tuple[int, ...]:
    order = list(range(count))
    random.Random(seed).shuffle(order)  # noqa: S311 - an order of arms is no secret, but must be repeatable
    return tuple(order)


def _half_widths(walls: Sequence[Sequence[float]], pairs: Sequence[Pair]) -> list[float]:
    columns = list(zip(*walls, strict=True))
    if not pairs:
        return [median(column).half_width for column in columns]
    return [speedup(columns[baseline], columns[arm]).half_width for baseline, arm in pairs]


def _enough(widths: Sequence[Sequence[float]], target: float) -> Stopped | None:
    """Whether each ratio is narrow enough, or at least as narrow as it will get; `widths` has shape [looks, ratios]."""
    narrow = [width <= target for width in widths[-1]]
    if all(narrow):
        return "half_width"
    histories = zip(*widths, strict=True)
    return "plateau" if all(done or plateau(history) for done, history in zip(narrow, histories, strict=True)) else None
