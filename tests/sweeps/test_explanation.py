"""The sentence on why, from profiles whose reason is known, and what it does not claim where an
interval shows nothing.
"""

from typing import Any

import pytest

from sweeps.model.profile import ArmProfile, IntervalEstimate, Phase
from sweeps.text.explanation import bound, contradict, explain_capture, explain_wall


def profile(
    wall_ms: float, launches: float = 100, phase: Phase = "forward", **classes: float
) -> ArmProfile:
    """A profile with these classes of time in ms; what they leave of the wall is the host's."""
    known: dict[Any, float] = {name: ms / 1e3 for name, ms in classes.items()}
    times = {**known, "host": known.get("host", 0.0) + wall_ms / 1e3 - sum(known.values())}
    return ArmProfile(
        arm=0,
        tool="torch",
        phase=phase,
        forwards=5,
        wall_s=wall_ms / 1e3,
        times=times,
        launches=launches,
    )


def figure(value: float, half: float | None) -> IntervalEstimate:
    return (
        IntervalEstimate(value=value)
        if half is None
        else IntervalEstimate(value=value, low=value - half, high=value + half)
    )


def beside(baseline: ArmProfile, arm: ArmProfile, half: float | None = 0.01) -> ArmProfile:
    """The arm with its differences from the baseline, each with an interval of `half` of the wall
    to each side.
    """
    assert baseline.wall_s is not None
    assert arm.wall_s is not None
    names = dict.fromkeys((*arm.times, *baseline.times))
    changes = {
        name: figure(
            (arm.times.get(name, 0.0) - baseline.times.get(name, 0.0)) / baseline.wall_s, half
        )
        for name in names
    }
    speedup = figure(baseline.wall_s / arm.wall_s, half)
    return arm.model_copy(
        update={"baseline": 0, "rounds": 30, "speedup": speedup, "changes": changes}
    )


def test_a_launch_bound_gpu() -> None:
    """The case of the reports: half the device work, more launches, and no time saved."""
    baseline = profile(8.0, launches=312, device=3.8, launch=3.0)
    arm = beside(baseline, profile(8.05, launches=337, device=2.0, launch=4.0))
    assert (
        explain_wall(baseline, arm, "cuda")
        == "device work fell by 22 % of the wall (21 to 24), time in launches rose by 12 % of the"
        " wall (12 to 14), time of the host rose by 11 % of the wall (10 to 12), 25 launches"
        " were added, the forward is launch-bound (75 % of its wall), and wall time did not"
        " change measurably (-0.4 % to +1.6 %)"
    )


def test_a_launch_bound_gpu_that_became_slower() -> None:
    """Added launches take time themselves."""
    baseline = profile(6.55, launches=312, device=3.0)
    found = explain_wall(
        baseline, beside(baseline, profile(7.29, launches=337, device=1.6)), "cuda"
    )
    assert found is not None
    assert found.endswith(
        "is launch-bound (by Python and dispatch) (78 % of its wall), so wall time rose 11 % (10"
        " to 13)"
    )


def test_a_cpu_whose_operators_dominate() -> None:
    """On a CPU the operators are the device; what did not change measurably is stated with its
    interval.
    """
    baseline = profile(30, launches=200, device=28)
    arm = beside(baseline, profile(20, launches=221, device=17.8), half=0.02)
    assert (
        explain_wall(baseline, arm, "cpu")
        == "time in operators fell by 34 % of the wall (32 to 36), Python and dispatch did not"
        " change measurably (-1.3 % to +2.7 % of the wall), 21 operator calls were added, the"
        " forward is bound by its operators (89 % of its wall), so wall time fell 33 % (32"
        " to 34)"
    )


def test_a_cpu_where_dispatch_dominates() -> None:
    """A small model: operators save time, and what surrounds them takes more."""
    baseline = profile(3.0, launches=200, device=1.2)
    found = explain_wall(baseline, beside(baseline, profile(3.3, launches=260, device=0.8)), "cpu")
    assert found is not None
    assert (
        "Python and dispatch rose by 23 % of the wall (22 to 24), 60 operator calls were added"
        in found
    )
    assert (
        "dispatch-bound (Python and dispatch outlast the operators) (76 % of its wall), so wall"
        " time rose 10 %" in found
    )


@pytest.mark.parametrize("half", [0.001, 0.05])
def test_an_arm_that_does_nothing(half: float) -> None:
    """Equal profiles: nothing changed measurably, however precise, and no reason is made up."""
    same = profile(10, device=9)
    found = explain_wall(same, beside(same, same, half), "cpu")
    assert found is not None
    assert found.count("did not change measurably") == 3
    assert not {" fell ", " rose ", "so "} & {found}


def test_what_intervals_do_not_show_is_not_claimed() -> None:
    """The case of a small model: operators 21 % more and the wall 2 % more, with intervals that
    include nothing.
    """
    baseline = profile(2.7, device=2.2)
    found = explain_wall(baseline, beside(baseline, profile(2.75, device=2.66), half=0.25), "cpu")
    assert found is not None
    assert "time in operators was too noisy to compare (-8.0 % to +42 % of the wall)" in found
    assert found.endswith("and wall time was too noisy to compare (-19 % to +37 %)")


def test_a_wall_that_no_class_explains() -> None:
    """The sum is clear and its parts are not: that is stated, without a reason."""
    baseline = profile(10, device=6)
    arm = beside(baseline, profile(9.4, device=5.7), half=0.04)
    found = explain_wall(
        baseline, arm.model_copy(update={"speedup": figure(10 / 9.4, 0.01)}), "cpu"
    )
    assert found is not None
    assert found.endswith(
        "and wall time fell 6.0 % (5.1 to 6.9), which no class of time alone shows"
    )


def test_profiles_without_rounds_conclude_nothing() -> None:
    """Both walls are stated, and no claim."""
    found = explain_wall(profile(10, device=9), profile(5, device=4), "cpu")
    assert (
        found
        == "profiled without rounds, so that no difference has an interval and nothing is concluded"
        " (wall 10 → 5 ms)"
    )


def test_too_few_rounds_conclude_nothing() -> None:
    """No interval, no claim."""
    baseline = profile(10, device=9)
    found = explain_wall(baseline, beside(baseline, profile(5, device=4), half=None), "cpu")
    assert found is not None
    assert found.startswith(
        "profiled in too few rounds for their noise, so that no difference has an interval and"
        " nothing is concl"
    )


def test_a_class_without_an_interval_is_named() -> None:
    """The wall has one, and a class that has none is not claimed."""
    baseline = profile(10, device=9)
    arm = beside(baseline, profile(8, device=7))
    changes = {**arm.changes, "host": figure(0.0, None)}
    found = explain_wall(baseline, arm.model_copy(update={"changes": changes}), "cpu")
    assert found is not None
    assert "Python and dispatch has no interval: too few rounds for its noise" in found


def test_a_profile_that_contradicts_the_timing_explains_nothing() -> None:
    """Both numbers stand there instead of a reason; where the intervals meet, the reason does."""
    baseline = profile(10, device=9)
    arm = beside(baseline, profile(9.8, device=8.8))
    assert (
        explain_wall(baseline, arm, "cpu", figure(1.2, 0.05))
        == "no explanation, since its walls contradict the timing: a speed-up of 1.02 [1.01, 1.03]"
        " while it was profiled, of 1.20 [1.15, 1.25] when it was timed; profile again when the"
        " machine is quiet"
    )
    found = explain_wall(baseline, arm, "cpu", figure(1.05, 0.04))
    assert found is not None
    assert found.startswith(
        "while it was profiled (10 → 9.8 ms in other rounds, at another time, a speed-up of 1.02"
        " [1.01, 1.03], compatible with the timing): time in operators fell by 2.0 % of the wall"
    )
    assert found.endswith(
        "the forward is bound by its operators (90 % of its wall), so that it is faster"
    )


def test_the_timing_is_the_answer_and_the_profile_its_reason() -> None:
    """One verdict, that of the timing; the walls of the profile are named as such, and what follows
    is of the timing.
    """
    baseline = profile(5.57, launches=175, device=4.08)
    arm = beside(baseline, profile(5.82, launches=205, device=4.11), half=0.012)
    arm = arm.model_copy(update={"speedup": IntervalEstimate(value=0.957, low=0.912, high=1.005)})
    slower = explain_wall(baseline, arm, "cpu", IntervalEstimate(value=0.947, low=0.907, high=0.99))
    assert slower is not None
    assert slower.endswith("30 operator calls were added, so that it is slower")
    assert "bound by its operators" not in slower  # they took no longer, which is no reason
    assert "and wall time" not in slower
    unclear = explain_wall(baseline, arm, "cpu", IntervalEstimate(value=0.97, low=0.92, high=1.02))
    assert unclear is not None
    assert unclear.endswith("30 operator calls were added")
    faster = explain_wall(baseline, arm, "cpu", IntervalEstimate(value=1.03, low=1.001, high=1.06))
    assert faster is not None
    assert faster.endswith("; no class of time alone shows why it is faster")


def test_contradictions_need_both_intervals() -> None:
    """Without an interval nothing contradicts; intervals that touch do not."""
    assert contradict(figure(1.0, 0.1), figure(1.3, 0.1))
    assert contradict(figure(1.3, 0.1), figure(1.0, 0.1))
    assert not contradict(figure(1.0, 0.1), figure(1.2, 0.1))
    assert not contradict(figure(1.0, None), figure(2.0, 0.1))


@pytest.mark.parametrize(
    ("phase", "subject"), [("prefill", "the prefill is"), ("decode", "a decode step is")]
)
def test_phases_of_a_language_model(phase: Phase, subject: str) -> None:
    """The sentence names the phase."""
    baseline = profile(10, device=9, phase=phase)
    found = explain_wall(baseline, beside(baseline, profile(8, device=7, phase=phase)), "cpu")
    assert found is not None
    assert subject in found


def test_waiting_for_the_device_is_named() -> None:
    """Gaps that are mostly waits hold the forward by that."""
    assert bound(profile(10, device=2, sync=6), "cuda") == "held by waiting for the device"
    assert bound(profile(10, device=2, idle=7), "cuda") == "mostly idle"


def test_nothing_without_times() -> None:
    """Single kernels explain no wall."""
    bare = ArmProfile(arm=0, tool="ncu", forwards=1)
    assert bound(bare, "cuda") is None
    assert explain_wall(bare, profile(10, device=9), "cuda") is None
    assert explain_wall(profile(10, device=9), bare, "cuda") is None


def test_a_captured_arm_measures_launch_overhead() -> None:
    """The difference to the eager arm is launch overhead, where its interval shows one."""
    assert (
        explain_capture(0.0073, 0.0031, IntervalEstimate(value=7.3 / 3.1, low=2.3, high=2.4))
        == "captured as a CUDA graph it takes 3.1 ms instead of 7.3 ms: 58 % of the wall (57 to"
        " 58) is launch overhead, as measured"
    )
    found = explain_capture(0.010, 0.0099, IntervalEstimate(value=10 / 9.9, low=0.98, high=1.04))
    assert found.endswith("launch overhead is not measurable (-2 % to 4 % of the wall)")
    assert explain_capture(0.010, 0.005, None).endswith(
        "a difference without an interval, from which nothing follows"
    )
