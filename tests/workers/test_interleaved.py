"""Warm-up, the order of rounds, and when they stop, on a simulated clock: every time is known."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from sweeps.job import Pair
from sweeps.outcome import Samples
from sweeps.protocol import Protocol
from sweeps.stats.timing import speedup
from workers.measure.interleaved import LOOK_EVERY, ArmError, calibrate, time_rounds, warm_up
from workers.measure.timeout import TimedOut
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
    samples = timed([noisy(1, 0.001, 1), noisy(2, 0.001, 2)], [Pair(0, 1)], Protocol(pairs_min=30))
    assert samples.stopped == "half_width"
    assert len(samples.seconds) == len(samples.order) == 30
    columns = list(zip(*samples.seconds, strict=True))
    assert speedup(columns[0], columns[1]).value == pytest.approx(0.5, rel=0.01)


def test_looks_only_on_schedule() -> None:
    """Rounds end at `pairs_min` or a multiple of ten after it, so that no lucky moment in between can end them."""
    samples = timed([noisy(1, 0.02, 1), noisy(1, 0.02, 2)], [Pair(0, 1)], Protocol(pairs_min=30, pairs_max=3000))
    assert samples.stopped == "half_width"
    assert len(samples.seconds) > 30
    assert (len(samples.seconds) - 30) % LOOK_EVERY == 0


def test_every_ratio_must_be_narrow() -> None:
    """One noisy arm keeps its quiet neighbours going."""
    steps = [noisy(1, 0.0001, 1), noisy(1, 0.0001, 2), noisy(1, 0.03, 3)]
    samples = timed(steps, [Pair(0, 1), Pair(0, 2)], Protocol(pairs_min=30, pairs_max=3000))
    assert len(samples.seconds) > 30


def test_stops_when_the_interval_no_longer_shrinks() -> None:
    """Two-valued times keep the median's interval from ever getting narrower: going on is pointless."""
    source = random.Random(3)
    samples = timed([lambda: 1.0, lambda: source.choice([1.0, 2.0])], [Pair(0, 1)], Protocol(pairs_max=10_000, budget_s=60))
    assert samples.stopped == "plateau"
    assert len(samples.seconds) < 1000


def test_stops_at_pairs_max() -> None:
    """Noise that never narrows enough ends at the most pairs requested, also between two looks."""
    samples = timed([noisy(1, 0.2, 1), noisy(1, 0.2, 2)], [Pair(0, 1)], Protocol(pairs_min=30, pairs_max=44))
    assert (samples.stopped, len(samples.seconds)) == ("pairs_max", 44)


def test_a_spent_budget_never_cuts_the_fewest_pairs() -> None:
    """A budget of a microsecond still gives `pairs_min` pairs."""
    samples = timed([noisy(1, 0.2, 1), noisy(1, 0.2, 2)], [Pair(0, 1)], Protocol(pairs_min=31, budget_s=1e-6))
    assert (samples.stopped, len(samples.seconds)) == ("budget", 31)


def test_the_deadline_cuts_even_the_fewest_pairs() -> None:
    """A job about to be killed hands back what it has."""
    deadline = time.monotonic() - 1
    samples = timed([noisy(1, 0.2, 1), noisy(1, 0.2, 2)], [Pair(0, 1)], Protocol(), deadline=deadline)
    assert (samples.stopped, len(samples.seconds)) == ("budget", 1)


def test_without_pairs_the_medians_decide() -> None:
    """A lone arm is timed until its own median is known well enough."""
    samples = timed([noisy(1, 0.001, 1)], [], Protocol(pairs_min=30))
    assert (samples.stopped, len(samples.seconds)) == ("half_width", 30)


def test_each_round_runs_every_arm_once_in_a_random_but_repeatable_order() -> None:
    """All orders of three arms turn up, the same ones for the same seed, and `order` holds what really ran."""
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


def test_rows_keep_the_columns_whatever_the_order() -> None:
    """The cell of an arm holds that arm's time in every round, and `arms` names the job's arm behind it."""
    samples = timed([lambda: 1.0, lambda: 2.0, lambda: 4.0], [Pair(0, 1)], Protocol(pairs_min=6, pairs_max=6), arms=(0, 3, 5))
    assert set(samples.seconds) == {(1.0, 2.0, 4.0)}
    assert samples.arms == (0, 3, 5)
    assert samples.device_seconds is None


def test_device_time_stands_beside_wall_time() -> None:
    """A clock that knows device time has it stored in the same shape."""
    samples = timed(
        [lambda: 2.0, lambda: 4.0],
        [Pair(0, 1)],
        Protocol(pairs_min=6, pairs_max=6),
        stopwatch=lambda step, _: SampleTime(float(step()), float(step()) / 2),
    )
    assert set(samples.device_seconds or ()) == {(1.0, 2.0)}


@pytest.mark.parametrize("fault", [RuntimeError("no"), TimedOut("late")])
def test_an_error_names_its_arm(fault: BaseException) -> None:
    """What a step raises arrives with the step's column, in calibration, warm-up and rounds alike."""

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
    assert not warm_up([lambda: 1.0], 1, seed="a", stopwatch=clock, deadline=time.monotonic() - 1).steady


def test_the_inner_loop_is_what_the_fastest_arm_needs() -> None:
    """Equal for all arms: an arm with fewer forwards per sample would pay for cold caches more often."""
    assert calibrate([lambda: 1e-4, lambda: 1.0], clock) >= 10
    assert calibrate([lambda: 1.0, lambda: 2.0], clock) == 1
