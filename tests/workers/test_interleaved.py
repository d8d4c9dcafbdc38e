"""Warm-up, the order of rounds, and when they stop, on a simulated clock: every time is known."""

import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sweeps.model.job import Pair, Protocol
from sweeps.model.outcome import Samples
from sweeps.stats.timing import Rounds
from workers.errors import TimedOut
from workers.measure.interleaved import (
    PLATEAU,
    ArmError,
    by_column,
    calibrate,
    time_rounds,
    warm_up,
)
from workers.measure.timer import SampleTime, TimedStep

NEVER = float("inf")


def clock(step: TimedStep, inner: int) -> SampleTime:
    """A stopwatch that takes the time that the step returns."""
    return SampleTime(sum(float(step()) for _ in range(inner)) / inner, None)


def noisy(seconds: float, noise: float, seed: int) -> Callable[[], float]:
    """A step that returns about `seconds`."""
    source = random.Random(seed)
    return lambda: seconds * source.lognormvariate(0, noise)


def timed(steps: list[TimedStep], pairs: list[Pair], protocol: Protocol, **changed: Any) -> Samples:
    """`measure` with everything that a test does not care about filled in."""
    options = {"arms": range(len(steps)), "seed": "a job", "stopwatch": clock, "deadline": NEVER}
    return time_rounds(steps, 1, pairs=pairs, protocol=protocol, **(options | changed))


def test_stops_at_the_first_look_when_the_interval_is_narrow() -> None:
    """Quiet arms need no more than the fewest pairs."""
    samples = timed(
        [noisy(1, 0.001, 1), noisy(2, 0.001, 2)],
        [Pair(0, 1)],
        Protocol(pairs_min=30, half_width=0.02),
    )
    assert samples.stopped == "half_width"
    assert len(samples.seconds) == len(samples.order) == 30
    assert Rounds(samples.seconds, samples.arms).contrast(0, 1).effect == pytest.approx(
        math.log(0.5), abs=0.01
    )


def test_looks_only_on_schedule() -> None:
    """Rounds end at `pairs_min` or a quarter more: no lucky moment can end them."""
    ends = set()
    for noise in (0.02, 0.03, 0.04, 0.05):
        steps = [noisy(1, noise, 1), noisy(1, noise, 2)]
        samples = timed(
            steps, [Pair(0, 1)], Protocol(pairs_min=30, pairs_max=3000, half_width=0.012)
        )
        assert samples.stopped in ("half_width", "plateau")
        ends.add(len(samples.seconds))
    assert len(ends) >= 3
    assert ends <= {30, 37, 46, 57, 71, 88, 110, 137, 171, 213, 266, 332, 415, 518}


def test_stops_when_more_rounds_of_this_visit_would_hardly_help() -> None:
    """What differs between visits keeps the interval wide however many rounds one adds."""
    steps, protocol = (
        [noisy(1, 0.02, 1), noisy(1, 0.02, 2)],
        Protocol(pairs_max=10_000, half_width=0.001, budget_s=60),
    )
    samples = timed(steps, [Pair(0, 1)], protocol)
    assert samples.stopped == "plateau"
    assert len(samples.seconds) < 1000
    assert Rounds(samples.seconds, samples.arms).contrast(0, 1).se <= PLATEAU / 2


def test_stops_at_pairs_max() -> None:
    """Noise that never narrows enough ends at the most pairs requested, also between two looks."""
    samples = timed(
        [noisy(1, 0.2, 1), noisy(1, 0.2, 2)], [Pair(0, 1)], Protocol(pairs_min=30, pairs_max=44)
    )
    assert (samples.stopped, len(samples.seconds)) == ("pairs_max", 44)


def test_a_spent_budget_cuts_even_the_fewest_pairs() -> None:
    """A budget of a microsecond gives one round: what was planned as "at most" is at most."""
    samples = timed(
        [noisy(1, 0.2, 1), noisy(1, 0.2, 2)], [Pair(0, 1)], Protocol(pairs_min=31, budget_s=1e-6)
    )
    assert (samples.stopped, len(samples.seconds)) == ("budget", 1)


def test_without_pairs_the_medians_decide() -> None:
    """A lone arm is timed until its own median is known well enough."""
    samples = timed([noisy(1, 0.001, 1)], [], Protocol(pairs_min=30))
    assert (samples.stopped, len(samples.seconds)) == ("half_width", 30)


def test_each_round_runs_every_arm_once_in_a_random_but_repeatable_order() -> None:
    """All orders turn up, the same for one seed, and `order` holds what really ran."""
    ran: list[int] = []

    def step(column: int) -> TimedStep:
        source = noisy(1 + column, 0.2, column)

        def run() -> float:
            ran.append(column)
            return source()

        return run

    protocol = Protocol(pairs_min=60, pairs_max=60)
    samples = timed([step(column) for column in range(3)], [Pair(0, 1)], protocol)
    assert [column for order in samples.order for column in order] == ran
    assert all(sorted(order) == [0, 1, 2] for order in samples.order)
    assert len(set(samples.order)) == 6
    again = timed([step(column) for column in range(3)], [Pair(0, 1)], protocol)
    other = timed([step(column) for column in range(3)], [Pair(0, 1)], protocol, seed="another job")
    assert again == samples
    assert other.order != samples.order


def test_an_arm_may_have_two_columns() -> None:
    """Its step runs twice in every round; pairs name arms, not columns, and both columns count."""
    ran: list[str] = []

    def step(name: str, seconds: float) -> TimedStep:
        source = noisy(seconds, 0.01, len(ran))

        def run() -> float:
            ran.append(name)
            return source()

        return run

    dense, arm = step("dense", 1.0), step("arm", 2.0)
    samples = timed(
        [dense, arm, dense], [Pair(3, 5)], Protocol(pairs_min=12, pairs_max=12), arms=(3, 5, 3)
    )
    assert (ran.count("dense"), ran.count("arm")) == (24, 12)
    assert samples.arms == (3, 5, 3)
    assert {tuple(round(cell) for cell in row) for row in samples.seconds} == {(1, 2, 1)}
    rounds = Rounds(samples.seconds, samples.arms)
    assert rounds.contrast(3, 5).effect == pytest.approx(math.log(0.5), abs=0.02)
    assert rounds.null(3) is not None


def test_bursts_run_each_arm_once_in_one_go_between_rounds() -> None:
    """After the first and every 20 rounds `burst` samples of each arm, in one go."""
    ran: list[int] = []

    def step(place: int, seconds: float) -> TimedStep:
        def run() -> float:
            ran.append(place)
            return seconds

        return run

    dense, arm = step(0, 1.0), step(1, 2.0)
    protocol = Protocol(pairs_min=41, pairs_max=41)
    steps = [arm, dense, arm]
    samples = time_rounds(
        steps,
        2,
        arms=(5, 3, 5),
        pairs=[Pair(5, 3)],
        protocol=protocol,
        seed="",
        stopwatch=clock,
        deadline=NEVER,
        burst=3,
    )
    assert samples.bursts == ((2.0, 1.0),) * 3
    assert len(ran) == 41 * 3 * 2 + 3 * 2 * 2 * 3
    first = ran[6:18]
    assert first in ([0] * 6 + [1] * 6, [1] * 6 + [0] * 6), "one after the other, each in one go"
    assert samples.seconds == ((2.0, 1.0, 2.0),) * 41
    assert timed(steps, [Pair(0, 1)], Protocol(pairs_min=6, pairs_max=6)).bursts is None


def test_further_times_find_their_columns() -> None:
    """An arm of two columns took its times in the order in which these ran."""
    orders = [(0, 1, 2), (2, 1, 0), (1, 2, 0)]
    series = {3: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 5: [10.0, 20.0, 30.0]}
    assert by_column(series, (3, 5, 3), orders) == (
        (1.0, 10.0, 2.0),
        (4.0, 20.0, 3.0),
        (6.0, 30.0, 5.0),
    )


def test_further_times_must_be_known_well_enough_too() -> None:
    """Rounds go on while the parts of a run, such as its first token, have a wide interval."""
    source = random.Random(7)
    parts: list[tuple[float, float]] = []

    def noisy_parts(orders: Sequence[tuple[int, ...]]) -> list[list[tuple[float, float]]]:
        parts.extend(
            (source.lognormvariate(0, 0.15), source.lognormvariate(0, 0.15))
            for _ in orders[len(parts) :]
        )
        return [list(parts)]

    steps, protocol = (
        [noisy(1, 0.0001, 1), noisy(1, 0.0001, 2)],
        Protocol(pairs_min=30, pairs_max=150, half_width=0.015),
    )
    assert timed(steps, [Pair(0, 1)], protocol, parts=noisy_parts).stopped == "pairs_max"
    assert timed(steps, [Pair(0, 1)], protocol).stopped != "pairs_max"


def test_device_time_stands_beside_wall_time() -> None:
    """A clock that knows device time has it stored in the same shape."""
    samples = timed(
        [lambda: 2.0, lambda: 4.0],
        [Pair(0, 1)],
        Protocol(pairs_min=6, pairs_max=6),
        stopwatch=lambda step, _: SampleTime(float(step()), float(step()) / 2),
    )
    assert set(samples.event_seconds or ()) == {(1.0, 2.0)}


@pytest.mark.parametrize("fault", [RuntimeError("no"), TimedOut("late")])
def test_an_error_names_its_arm(fault: BaseException) -> None:
    """What a step raises arrives with its column, in calibration, warm-up and rounds."""

    def raising() -> None:
        raise fault

    steps: list[TimedStep] = [lambda: 1.0, raising]
    for work in (
        lambda: calibrate(steps, clock),
        lambda: warm_up(steps, 1, seed="", stopwatch=clock, deadline=NEVER),
        lambda: timed(steps, [Pair(0, 1)], Protocol()),
    ):
        with pytest.raises(ArmError) as caught:
            work()
        assert caught.value.column == 1
        assert caught.value.__cause__ is fault


def test_ctrl_c_is_no_failure_of_an_arm() -> None:
    """A keyboard interrupt passes through as it is."""

    def raising() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timed([raising], [], Protocol())


def test_warm_up_goes_on_until_every_arm_is_steady() -> None:
    """An arm that gets faster for 40 samples keeps both arms warming up, equally often."""
    left = [40]

    def slow_start() -> float:
        left[0] = max(0, left[0] - 1)
        return 1 + left[0] / 10

    quick = warm_up([lambda: 1.0, lambda: 1.0], 1, seed="a", stopwatch=clock, deadline=NEVER)
    slow = warm_up([lambda: 1.0, slow_start], 2, seed="a", stopwatch=clock, deadline=NEVER)
    assert quick.steady
    assert slow.steady
    assert quick.forwards < 40 <= slow.forwards
    assert slow.seconds[0] == pytest.approx(slow.forwards)
    assert slow.seconds[1] > slow.seconds[0]


def test_warm_up_gives_up_and_is_not_steady() -> None:
    """An arm that never stops getting faster is measured all the same, marked as not steady."""
    source = iter(range(1000, 0, -1))
    warmup = warm_up([lambda: 1.1 ** next(source)], 1, seed="a", stopwatch=clock, deadline=NEVER)
    assert not warmup.steady
    assert not warm_up(
        [lambda: 1.0], 1, seed="a", stopwatch=clock, deadline=time.monotonic() - 1
    ).steady


def test_the_inner_loop_is_what_the_fastest_arm_needs() -> None:
    """Equal for all arms: fewer forwards per sample would pay for cold caches more often."""
    assert calibrate([lambda: 1e-4, lambda: 1.0], clock) >= 10
    assert calibrate([lambda: 1.0, lambda: 2.0], clock) == 1
