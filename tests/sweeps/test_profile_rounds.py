"""Classes of time from simulated rounds whose truth is known: coverage, no false alarm, and cases
that cannot be distinguished.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest

from sweeps.model.condition import Device
from sweeps.model.profile import IntervalEstimate, TimeClass
from sweeps.stats.pooling import SpeedUp, within_process
from sweeps.stats.profiles import ArmWall, PhaseRounds, bounded, less_profiler
from sweeps.stats.timing import Rounds

ARMS = (0, 1, 2, 0)
"""The baseline has two columns."""
CPU_MS: tuple[Mapping[TimeClass, float], ...] = (
    {"device": 3.0, "host": 1.0},
    {"device": 2.0, "host": 1.1},
    {"device": 3.0, "host": 1.0},
)
"""Of the arms: the second saves a quarter of the wall in operators and adds 2.5 % outside, the
third is the first again."""
GPU_MS: tuple[Mapping[TimeClass, float], ...] = (
    {"device": 2.0, "launch": 1.0, "host": 0.8, "sync": 0.2, "idle": 0.0},
    {"device": 1.0, "launch": 1.3, "host": 1.6, "sync": 0.1, "idle": 0.0},
    {"device": 2.0, "launch": 1.0, "host": 0.8, "sync": 0.2, "idle": 0.0},
)


class Found(NamedTuple):
    changes: dict[TimeClass, IntervalEstimate]
    times: dict[TimeClass, float]
    speedup: SpeedUp
    of_equal: dict[TimeClass, IntervalEstimate]
    """Changes of the third arm, which is the first again."""


def common_noise(source: np.random.Generator, rounds: int) -> np.ndarray:
    """What slows all samples of a round: clocks that wander, and slow and fast rounds; shape
    [rounds, 1].
    """
    return np.exp(
        np.cumsum(source.normal(0, 0.003, (rounds, 1)), axis=0)
        + source.normal(0, 0.05, (rounds, 1))
    )


def noisy(
    source: np.random.Generator, common: np.ndarray, means: np.ndarray, noise: float
) -> np.ndarray:
    """Times around `means`, with noise of each sample, and one sample in twenty much slower."""
    rounds = len(common)
    own = np.exp(source.normal(0, noise, (rounds, len(means))))
    slow = np.where(
        source.random((rounds, len(means))) < 0.05, source.uniform(1, 3, (rounds, len(means))), 1.0
    )
    found: np.ndarray = common * own * slow * means
    return found


def simulate(
    seed: int,
    truth: tuple[Mapping[TimeClass, float], ...],
    device: Device = "cpu",
    *,
    rounds: int = 30,
    noise: float = 0.02,
    slowed: tuple[float, ...] = (1.3, 1.3, 1.3),
) -> Found:
    """The others against the first arm, from unprofiled rounds and as many profiled ones, which
    take `slowed` times as long by arm.

    On a GPU the profiler slows only the gaps.
    """
    source = np.random.default_rng(seed)
    columns = [truth[place] for place in ARMS]
    means = np.array([sum(each.values()) for each in columns])
    walls = noisy(source, common_noise(source, 3 * rounds), means, noise)
    unprofiled = Rounds(walls * 1e-3, ARMS)
    tables, common = {}, common_noise(source, rounds)
    for name in truth[0]:
        means = 1e-3 * np.array([each[name] for each in columns])
        if device == "cpu" or name != "device":
            means *= [slowed[place] for place in ARMS]
        tables[name] = noisy(source, common, means, noise)
    profiled = PhaseRounds(tables, ARMS, device)
    sides = [ArmWall(place, unprofiled.seconds(place)) for place in range(3)]
    speedups = [within_process(unprofiled.contrast(0, arm), len(walls)) for arm in (1, 2)]
    changes, of_equal = (
        profiled.changes(sides[0], sides[arm], speedup, profiled.profiled_speedup(0, arm))
        for arm, speedup in enumerate(speedups, 1)
    )
    return Found(changes, profiled.times(sides[1])[0], speedups[0], of_equal)


def true_changes(truth: tuple[Mapping[TimeClass, float], ...], arm: int) -> dict[TimeClass, float]:
    wall = sum(truth[0].values())
    return {name: (truth[arm][name] - truth[0][name]) / wall for name in truth[0]}


@pytest.mark.parametrize(("device", "truth", "rounds"), [("cpu", CPU_MS, 30), ("cuda", GPU_MS, 12)])
def test_intervals_cover_the_truth(
    device: Device, truth: tuple[Mapping[TimeClass, float], ...], rounds: int
) -> None:
    """Intervals of 99 % hold the difference of every class in at least 97 of 100 simulated jobs; an
    arm that is its baseline again has a false alarm in at most one of them. A quarter of the wall
    less in operators is seen on a CPU in each of them, within a tenth of the wall.
    """
    right, alarms = dict.fromkeys(truth[0], 0), 0
    for seed in range(100):
        found = simulate(seed, truth, device, rounds=rounds)
        for name, expected in true_changes(truth, 1).items():
            change = found.changes[name]
            right[name] += (
                change.low is None or change.high is None or change.low <= expected <= change.high
            )
        alarms += any(
            each.low is not None and each.high is not None and not each.low <= 0 <= each.high
            for each in found.of_equal.values()
        )
        if device == "cpu":
            operators = found.changes["device"]
            assert operators.low is not None
            assert operators.high is not None
            assert operators.low > operators.high - 0.1
            assert operators.high < 0
    assert min(right.values()) >= 97
    assert alarms <= 1


def test_a_small_change_in_few_noisy_rounds_cannot_be_told() -> None:
    """2.5 % of the wall more outside of operators, noise of 10 %, 9 rounds: mostly no claim, and
    never a wrong one.
    """
    claimed = 0
    for seed in range(30):
        host = simulate(seed, CPU_MS, rounds=9, noise=0.1).changes["host"]
        claimed += host.low is not None and host.low > 0
        assert host.high is None or host.high > 0
    assert claimed <= 6


def test_too_few_rounds_have_no_interval() -> None:
    """Five rounds: differences, and no interval."""
    found = simulate(0, CPU_MS, rounds=5).changes
    assert [(each.low, each.high) for each in found.values()] == [(None, None)] * 2
    assert found["device"].value == pytest.approx(-0.25, abs=0.15)


@pytest.mark.parametrize(("device", "truth"), [("cpu", CPU_MS), ("cuda", GPU_MS)])
def test_changes_add_up_to_that_of_the_wall(
    device: Device, truth: tuple[Mapping[TimeClass, float], ...]
) -> None:
    """Of all classes together; and the classes of the arm to its wall."""
    found = simulate(3, truth, device)
    assert sum(each.value for each in found.changes.values()) == pytest.approx(
        1 / found.speedup.value - 1
    )
    assert sum(found.times.values()) == pytest.approx(sum(truth[1].values()) / 1e3, rel=0.25)


def test_a_profiler_that_slows_one_arm_more_widens_its_intervals() -> None:
    """Where profiled forwards have another ratio than unprofiled ones, by how much is a part of
    every interval.
    """
    even, uneven = (
        simulate(1, CPU_MS, slowed=(1.3, each, 1.3)).changes["device"] for each in (1.3, 1.95)
    )
    widths = [(each.high or 0.0) - (each.low or 0.0) for each in (even, uneven)]
    assert widths[1] > widths[0] + 0.2


def test_slow_forwards_have_no_weight() -> None:
    """A tenth of the rounds in which one class takes ten times as long changes shares by less than
    1 % of the wall.
    """
    device, host = np.exp(np.random.default_rng(0).normal(0, 0.01, (2, 40, 2)))
    tables: dict[TimeClass, np.ndarray] = {"device": device, "host": host}
    before = PhaseRounds(tables, (0, 1), "cpu").times(ArmWall(1, 1.0))[0]
    tables["host"][::10, 1] *= 10
    after = PhaseRounds(tables, (0, 1), "cpu").times(ArmWall(1, 1.0))[0]
    assert after["device"] == pytest.approx(before["device"], abs=0.01)


def test_a_class_that_never_occurs_is_zero() -> None:
    """An idle class of zeros has level 0 and changes by nothing."""
    found = simulate(0, GPU_MS, "cuda")
    assert found.times["idle"] == 0
    assert found.changes["idle"] == IntervalEstimate(value=0, low=0, high=0)
    with pytest.raises(ValueError, match="no class of time"):
        PhaseRounds({}, (0,), "cpu")


def test_a_speed_up_without_an_interval_has_none_as_data() -> None:
    """Infinite ends are left out."""
    assert bounded(SpeedUp(0.0, float("inf"), 1.0, 5)) == IntervalEstimate(value=1.0)
    assert bounded(SpeedUp(0.0, 0.0, 9.0, 5)) == IntervalEstimate(value=1.0, low=1.0, high=1.0)


@pytest.mark.parametrize(
    ("most_ms", "profiled_ms", "host_ms"),
    [(1.0, 1.5, 1.0), (0.25, 1.5, 1.25), (0.0, 1.5, 1.5), (1.0, 0.5, 0.5)],
)
def test_the_profilers_own_time_is_what_forwards_are_longer_by(
    most_ms: float, profiled_ms: float, host_ms: float
) -> None:
    """Forwards of 4 ms that take 4.5 ms with a profiler, which by a loop would take 1 ms or 0.25 ms
    at most, or nothing; where they are no longer than without, nothing is taken off.
    """
    ones = np.full((20, 2), 1e-3)
    times: dict[TimeClass, np.ndarray] = {"device": 3 * ones, "host": profiled_ms * ones}
    found = less_profiler(times, most_ms * ones, (0, 1), {0: 4.0e-3, 1: 4.0e-3})
    assert found["host"] == pytest.approx(host_ms * ones)
    assert found["device"] == pytest.approx(3 * ones)
