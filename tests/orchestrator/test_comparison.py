"""Comparisons of slots whose times are known: rates of errors, detections, looks, failures and
controls.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from orchestrator.api.comparison import ArmFailedError, Slot, measure
from orchestrator.api.result import Result
from sweeps.analysis.compared import judge, null_ratio
from sweeps.stats.timing import Contrast
from workers.measure.timer import SampleTime

pytestmark = pytest.mark.usefixtures("without_garbage")
CALL_S = 3e-3
ROUND_SD, VISIT_SD, TAIL_SHARE = 0.03, 0.004, 0.03
"""Of log times: noise of a call, what visits differ by, and calls that take five times the noise."""


class Clock:
    """Goes on by what slots take, and by nothing else."""

    now_s = 0.0

    def run(self, seconds: float, inner: int) -> SampleTime:
        self.now_s += seconds * inner
        return SampleTime(seconds, None)

    @property
    def setup(self) -> dict[str, Any]:
        """Of a comparison by this clock, which no other process disturbs."""
        return {"clock": lambda: self.now_s, "own_s": lambda: 1e9 * time.perf_counter()}


def slots(
    speedups: Sequence[float], seed: int, clock: Clock, second: float = 1.0
) -> Callable[[], list[Slot]]:
    """Makes two slots of each arm with these speed-ups, whose noise is that of real machines:
    skewed, with slow calls, and another level at each visit and in each state; `second` is the
    speed-up of the second slot of the first arm.
    """
    both = [*speedups, second, *speedups[1:]]
    source = np.random.default_rng(seed)

    def make() -> list[Slot]:
        slow = 0.15 * (source.random() < 0.2)
        own = source.normal(0, VISIT_SD, len(both))

        def slot(place: int) -> Slot:
            level = slow + own[place] - math.log(both[place])

            def run(inner: int) -> SampleTime:
                tail = 5 if source.random() < TAIL_SHARE else 1
                noise = abs(source.normal(0, ROUND_SD)) * tail
                return clock.run(CALL_S * math.exp(level + noise), inner)

            return run

        return [slot(place) for place in range(len(both))]

    return make


def compared(speedup: float, seed: int, **options: Any) -> Result:
    return simulated(["old", "new"], [1.0, speedup], seed, **options)


def simulated(names: Sequence[str], speedups: Sequence[float], seed: int, **options: Any) -> Result:
    clock = Clock()
    options = {"time_s": 3.0, "visits": 12, "seed": str(seed), **clock.setup, **options}
    return measure(names, slots(speedups, seed, clock), **options)


@pytest.mark.parametrize(
    ("comparisons", "wrong"),
    [(10, 0), pytest.param(400, 4, marks=pytest.mark.slow)],
)
def test_equal_arms_are_rarely_called_faster_or_slower(comparisons: int, wrong: int) -> None:
    """In at most 1 % of comparisons, and most are called equal within 2 %."""
    verdicts = Counter(str(compared(1.0, seed).verdict) for seed in range(comparisons))
    assert verdicts["faster"] + verdicts["slower"] <= wrong
    assert verdicts["equal"] >= 0.8 * comparisons


@pytest.mark.parametrize(
    ("speedup", "margin", "verdict"),
    [(0.97, 0.01, "slower"), (1.03, 0.02, "faster")],
)
def test_differences_are_found(speedup: float, margin: float, verdict: str) -> None:
    """3 % against a margin of 1 %, and against none, in at least 5 of 6; never the opposite."""
    found = [compared(speedup, seed, margin=margin) for seed in range(6)]
    verdicts = Counter(str(each.verdict) for each in found)
    assert verdicts[verdict] >= 5
    assert set(verdicts) <= {verdict, "undecided"}
    assert sum(each.low <= speedup <= each.high for each in found) == 6


def test_a_clear_difference_ends_early_and_an_unclear_one_does_not() -> None:
    """Looks lie at a quarter, half and three quarters of the visits."""
    assert len(compared(1.5, 0).visits) == 3
    unclear = compared(0.985, 0)
    assert unclear.verdict == "undecided"
    assert len(unclear.visits) == 12
    assert unclear.needed_s is not None
    assert unclear.needed_s > unclear.spent_s


def test_verdicts_follow_from_the_printed_interval() -> None:
    """At every look, against the margin of the comparison."""
    for speedup in (0.9, 0.98, 1.01):
        found = compared(speedup, 7, margin=0.03)
        assert found.verdict == judge(found.low, found.high, 0.03)
        assert found.only.not_slower == (found.low > 1 / 1.03)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.001, 1.5, "faster"),
        (0.9, 0.98, "slower"),
        (0.9, 0.985, "undecided"),
        (0.985, 1.019, "equal"),
        (0.985, 1.03, "undecided"),
        (0.0, math.inf, "undecided"),
    ],
)
def test_an_interval_is_judged_by_the_margin(low: float, high: float, verdict: str) -> None:
    """2 % here: slower is below 1 / 1.02 = 0.9804."""
    assert judge(low, high) == verdict


def test_the_baseline_is_compared_with_itself() -> None:
    """Its two slots differ by noise; one that is truly slower widens the intervals of all arms."""
    equal = compared(1.0, 3)
    assert equal.null.low < 1 < equal.null.high
    clock = Clock()
    make = slots([1.0, 1.0], 3, clock, second=0.9)
    unequal = measure(["old", "new"], make, time_s=3.0, visits=12, **clock.setup)
    assert unequal.null.high < 1 or unequal.null.low > 1
    assert unequal.high / unequal.low > equal.high / equal.low + 0.05


def test_a_baseline_that_differs_wildly_from_itself_has_no_interval() -> None:
    """Instead of one whose ends are no numbers."""
    assert null_ratio(Contrast(0.5, 300.0, 1.0), 0.01) == (math.exp(0.5), 0.0, math.inf)


@pytest.mark.parametrize("seed", range(12))
def test_times_however_far_apart_have_a_result(seed: int) -> None:
    """Heavy tails, few visits, few rounds: an interval or none, and a line in words."""
    clock, source = Clock(), np.random.default_rng(seed)
    noise, apart = 10.0 ** source.uniform(-2, 1, 2)

    def make() -> list[Slot]:
        own = source.normal(0, apart, 4)

        def run(place: int, inner: int) -> SampleTime:
            log = own[place] + noise * source.standard_t(2)
            return clock.run(1e-3 * math.exp(np.clip(log, -12, 12)), inner)

        return [partial(run, place) for place in range(4)]

    time_s = 10.0 ** source.uniform(-2, 1)
    found = measure(["old", "new"], make, time_s=time_s, visits=1 + seed % 6, **clock.setup)
    assert found.null.low <= found.null.value <= found.null.high
    assert found.low <= found.ratio <= found.high
    assert str(found).startswith("new: ")


def test_a_control_that_moves_voids_the_result() -> None:
    """The other arm has no verdict then; one that stands still changes nothing."""
    names = ["old", "new", "control"]
    moved = simulated(names, [1.0, 1.5, 0.9], 1, controls={"control": "old"})
    assert moved.void.startswith("the control control moved: 0.")
    assert moved.arms["control"].high < 0.95
    assert moved.arms["new"].verdict == "undecided"
    still = simulated(names, [1.0, 1.5, 1.0], 1, controls={"control": "old"})
    assert (still.void, still.arms["new"].verdict) == ("", "faster")


def test_a_control_without_an_interval_voids_the_result() -> None:
    """As nothing shows then that it stood still."""
    clock, source = Clock(), np.random.default_rng(0)

    def run(inner: int) -> SampleTime:
        return clock.run(math.exp(source.normal(0, 9)), inner)

    options = {"time_s": 1.0, "visits": 2, **clock.setup}
    found = measure(["a", "b", "c"], lambda: [run] * 6, controls={"c": "a"}, **options)
    assert found.void == "the control c has no interval: too few rounds"


def failing(names: Sequence[str], at: int, **options: Any) -> Result:
    """A comparison whose second arm raises after so many calls."""
    clock, calls = Clock(), 0
    good = slots([1.0] * len(names), 5, clock)

    def make() -> list[Slot]:
        first, second, *others = good()

        def run(inner: int) -> SampleTime:
            nonlocal calls
            calls += 1
            if calls > at:
                raise ValueError("no")
            return second(inner)

        return [first, run, *others]  # the second slot of this arm works

    return measure(names, make, time_s=3.0, visits=6, **clock.setup, **options)


def test_a_control_that_fails_voids_the_result() -> None:
    """Also where it is what another one is compared with; and a control alone is nothing to
    compare.
    """
    for controls in ({"bad": "old"}, {"other": "bad"}):
        found = failing(["old", "bad", "other", "new"], 60, controls=controls)
        assert found.void == "the control bad failed: raised ValueError: no"
        assert found.arms["new"].verdict == "undecided"
    with pytest.raises(ArmFailedError, match="bad: raised ValueError: no"):
        failing(["old", "bad", "control"], 60, controls={"control": "old"})


def test_an_arm_that_fails_is_left_out() -> None:
    """In the midst: the other arm is measured in all visits, and the reason is printed."""
    found = failing(["old", "bad", "new"], 60)
    assert found.failures == {"bad": "raised ValueError: no"}
    assert set(found.arms) == {"new"}
    assert found.only.visits == len(found.visits)
    assert str(found).splitlines()[1] == "bad: raised ValueError: no"


def test_without_another_arm_a_failure_is_an_error() -> None:
    """As is one of the baseline, here before any visit."""
    with pytest.raises(ArmFailedError, match="bad: raised ValueError: no"):
        failing(["old", "bad"], 0)

    def make() -> list[Slot]:
        raise ArmFailedError("first", "broken")

    with pytest.raises(ArmFailedError, match="first: broken"):
        measure(["first", "b", "c"], make, time_s=3.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_no_clock_gives_is_a_failure(seconds: float) -> None:
    """Instead of a ratio that cannot be computed."""
    good, bad = (lambda _, taken=taken: SampleTime(taken, None) for taken in (1e-3, seconds))
    with pytest.raises(ArmFailedError, match=f"new: took {seconds:g} s: the clock was changed"):
        measure(["old", "new"], lambda: [good, bad, good, bad], time_s=1.0)


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", ""]])
def test_two_different_names_are_needed(names: list[str]) -> None:
    """As the results are by name."""
    with pytest.raises(ValueError, match="two or more different names"):
        simulated(names, [1.0] * len(names), 0)
