"""Explanations: why an arm's wall time changed as it did, in a sentence that follows from two profiles."""

from collections.abc import Mapping

from sweeps.job import Device
from sweeps.profile import ArmProfile, TimeClass

_SMALL = 0.02
"""Changes up to this share count as none: walls and classes are medians of a few forwards."""
_HALF = 0.5
"""Gaps of at least this share of the wall hold it."""
_HELD: Mapping[Device, Mapping[TimeClass, str]] = {
    "cuda": {
        "launch": "launch-bound",
        "host": "launch-bound (by Python and dispatch)",
        "sync": "held by waiting for the device",
        "idle": "mostly idle",
    },
    "cpu": {"host": "dispatch-bound (Python and dispatch outlast the operators)", "idle": "mostly idle"},
}
_WORKED: Mapping[Device, str] = {"cuda": "bound by device work", "cpu": "bound by its operators"}
_WORK: Mapping[Device, str] = {"cuda": "device work", "cpu": "time in operators"}
_CALL: Mapping[Device, tuple[str, str]] = {"cuda": ("launch", "launches"), "cpu": ("operator call", "operator calls")}


def bound(profile: ArmProfile, device: Device) -> str | None:
    """What holds an arm: the class that its gaps mostly are where they are half of the wall or more, else its device work.

    `None` for a profile without wall or classes of time.
    """
    if not profile.wall_s or "device" not in profile.times:
        return None
    if 1 - profile.times["device"] / profile.wall_s < _HALF:
        return _WORKED[device]
    gaps = {name: seconds for name, seconds in profile.times.items() if name != "device"}
    if device == "cuda" and gaps.get("launch", 0.0) + gaps.get("host", 0.0) >= sum(gaps.values()) / 2:
        return _HELD[device]["launch" if gaps.get("launch", 0.0) >= gaps.get("host", 0.0) else "host"]
    longest = max(gaps, key=lambda name: gaps[name])
    return _HELD[device].get(longest, f"held by {longest}")


def explain_wall(baseline: ArmProfile, arm: ArmProfile, device: Device) -> str | None:
    """Why the wall of `arm` is what it is beside that of `baseline`, of the same phase; `None` where either lacks times.

    `device work fell 47 %, 25 launches were added, the forward is launch-bound, so wall time did not fall`.
    """
    held = bound(arm, device)
    if held is None or bound(baseline, device) is None or not baseline.wall_s or not arm.wall_s:
        return None
    work, wall = (_change(*sides) for sides in ((baseline.times["device"], arm.times["device"]), (baseline.wall_s, arm.wall_s)))
    parts = [f"{_WORK[device]} {_phrase(work)}", *_calls(baseline.launches, arm.launches, device), f"{_subject(arm)} is {held}"]
    gap = _change(baseline.wall_s - baseline.times["device"], arm.wall_s - arm.times["device"])
    if work < -_SMALL and wall >= -_SMALL:
        end = "so wall time did not fall" if wall <= _SMALL else f"so wall time rose {100 * wall:.0f} %"
    elif abs(wall) <= _SMALL:
        end = "and wall time did not change"
    else:
        same = held == _WORKED[device] and (work < 0) == (wall < 0)
        link = "so" if same or ((gap < 0) == (wall < 0) and held != _WORKED[device]) else "and"
        fell_less = work < -_SMALL and wall < -_SMALL and wall > work / 2
        end = f"{link} wall time {_phrase(wall)}{' only' if fell_less else ''}"
    return ", ".join([*parts, end])


def explain_capture(eager_s: float, captured_s: float) -> str:
    """What capturing the same arm as a CUDA graph shows: the difference is launch overhead, measured and not estimated."""
    saved = 1 - captured_s / eager_s
    times = f"captured as a CUDA graph it takes {1e3 * captured_s:.3g} ms in place of {1e3 * eager_s:.3g} ms"
    if saved <= _SMALL:
        return f"{times}: launch overhead is not what holds it, as measured"
    return f"{times}: {100 * saved:.0f} % of the wall is launch overhead, as measured"


def _subject(profile: ArmProfile) -> str:
    return {"forward": "the forward", "prefill": "the prefill", "decode": "a decode step"}[profile.phase]


def _change(before: float, after: float) -> float:
    """As a share; 0 where there was nothing before."""
    return after / before - 1 if before > 0 else 0.0


def _phrase(change: float) -> str:
    if abs(change) <= _SMALL:
        return "did not change"
    return f"{'fell' if change < 0 else 'rose'} {100 * abs(change):.0f} %"


def _calls(before: float, after: float, device: Device) -> list[str]:
    number = round(after - before)
    if not number:
        return []
    name = _CALL[device][abs(number) > 1]
    was = "was" if abs(number) == 1 else "were"
    return [f"{abs(number)} {name} {was} {'added' if number > 0 else 'removed'}"]
