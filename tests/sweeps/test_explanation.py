"""The sentence on why, from profiles whose reason is known."""

from typing import Any

import pytest

from sweeps.profile import ArmProfile, Phase
from sweeps.stats.explanation import bound, explain_capture, explain_wall


def profile(wall_ms: float, launches: float = 100, phase: Phase = "forward", **classes: float) -> ArmProfile:
    """A profile with these classes of time in ms; what they leave of the wall is the host's."""
    known: dict[Any, float] = {name: ms / 1e3 for name, ms in classes.items()}
    times = {**known, "host": known.get("host", 0.0) + wall_ms / 1e3 - sum(known.values())}
    return ArmProfile(arm=0, tool="torch", phase=phase, forwards=5, wall_s=wall_ms / 1e3, times=times, launches=launches)


def test_a_launch_bound_gpu() -> None:
    """The case of the reports: half the device work, more launches, and no time saved."""
    baseline = profile(8.0, launches=312, device=3.8, launch=3.0)
    arm = profile(8.05, launches=337, device=2.0, launch=4.0)
    expected = "device work fell 47 %, 25 launches were added, the forward is launch-bound, so wall time did not fall"
    assert explain_wall(baseline, arm, "cuda") == expected


def test_a_launch_bound_gpu_that_became_slower() -> None:
    """Added launches take time themselves."""
    found = explain_wall(profile(6.55, launches=312, device=3.0), profile(7.29, launches=337, device=1.6), "cuda")
    assert found is not None
    assert found.endswith("the forward is launch-bound (by Python and dispatch), so wall time rose 11 %")


def test_a_compute_bound_gpu() -> None:
    """Where the device is busy, its time is the wall."""
    found = explain_wall(profile(100, device=98), profile(54, launches=125, device=52), "cuda")
    assert found == "device work fell 47 %, 25 launches were added, the forward is bound by device work, so wall time fell 46 %"


def test_a_cpu_whose_operators_dominate() -> None:
    """On a CPU the operators are the device."""
    found = explain_wall(profile(30, launches=200, device=28), profile(20, launches=221, device=17.5), "cpu")
    assert found == (
        "time in operators fell 38 %, 21 operator calls were added, the forward is bound by its operators, so wall time fell 33 %"
    )


def test_a_cpu_where_dispatch_dominates() -> None:
    """A small model: operators save time, and what surrounds them does not."""
    found = explain_wall(profile(3.0, launches=200, device=1.2), profile(3.3, launches=260, device=0.8), "cpu")
    assert found == (
        "time in operators fell 33 %, 60 operator calls were added, the forward is dispatch-bound (Python and dispatch outlast the "
        "operators), so wall time rose 10 %"
    )


def test_an_arm_that_does_nothing() -> None:
    """Equal profiles: nothing changed, and no reason is made up."""
    same = profile(10, device=9)
    assert (
        explain_wall(same, same, "cpu")
        == "time in operators did not change, the forward is bound by its operators, and wall time did not change"
    )


def test_a_saving_that_arrives_in_part() -> None:
    """The host keeps its share, so that less than half of the saving is left."""
    found = explain_wall(profile(10, device=4.5, launch=4.0), profile(9.2, device=1.8, launch=4.0), "cuda")
    assert found == "device work fell 60 %, the forward is launch-bound, and wall time fell 8 % only"


@pytest.mark.parametrize(("phase", "subject"), [("prefill", "the prefill is"), ("decode", "a decode step is")])
def test_phases_of_a_language_model(phase: Phase, subject: str) -> None:
    """The sentence names the phase."""
    found = explain_wall(profile(10, device=9, phase=phase), profile(8, device=7, phase=phase), "cpu")
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
    """The difference to the eager arm is launch overhead, as far as there is one."""
    assert explain_capture(0.0073, 0.0031) == (
        "captured as a CUDA graph it takes 3.1 ms in place of 7.3 ms: 58 % of the wall is launch overhead, as measured"
    )
    assert explain_capture(0.010, 0.0099).endswith("launch overhead is not what holds it, as measured")
