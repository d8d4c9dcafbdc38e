"""Timelines: the time of a forward by class, from the intervals that a profiler recorded of the
device and of the host.

Intervals are (start, end) in seconds by one clock. A union is a sorted list of intervals that
neither overlap nor touch.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from sweeps.model.profile import TimeClass

Span = tuple[float, float]
TOLERANCE = 0.05
"""Device time may exceed the wall of other forwards by this share: both vary from forward to
forward. Beyond it they contradict."""
GAPS: tuple[TimeClass, ...] = ("launch", "sync", "host", "idle")
"""In the order in which a moment at which several hold is counted."""


class DeviceRun(NamedTuple):
    """A kernel, copy or memset on the device."""

    name: str
    start: float
    end: float
    launched: float | None = None
    """When the call that started it was entered on the host; `None` where it is not known."""


class OperatorRun(NamedTuple):
    """An operator on the host."""

    name: str
    start: float
    own_s: float
    """Its time without that of the operators it calls."""


class Timeline(NamedTuple):
    """One forward on a device with a clock of its own."""

    start: float
    end: float
    runs: Sequence[DeviceRun]
    syncs: Sequence[Span] = ()
    """Calls that wait for the device."""
    host: Sequence[Span] = ()
    """Operators, Python and whatever else the host is known to work on."""


def union(intervals: Iterable[Span]) -> list[Span]:
    """The moments that lie in any of the intervals; empty and reversed ones are left out."""
    found: list[Span] = []
    for start, end in sorted(each for each in intervals if each[0] < each[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def common(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """The moments that lie in both of two unions."""
    found, left, right = [], 0, 0
    while left < len(one) and right < len(other):
        start, end = max(one[left][0], other[right][0]), min(one[left][1], other[right][1])
        if start < end:
            found.append((start, end))
        if one[left][1] < other[right][1]:
            left += 1
        else:
            right += 1
    return found


def outside(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """The moments of a union that do not lie in another."""
    if not one:
        return []
    edges = [
        one[0][0] - 1.0,
        *(edge for interval in other for edge in interval),
        max(one[-1][1], other[-1][1] if other else 0.0) + 1.0,
    ]
    return common(one, union(zip(edges[::2], edges[1::2], strict=True)))


def length(intervals: Iterable[Span]) -> float:
    """Seconds in a union."""
    return sum(end - start for start, end in intervals)


def split_time(forward: Timeline) -> dict[TimeClass, float]:
    """Seconds of a forward by class; they add up to its length.

    `device`: some kernel or copy runs, counted once however many overlap. The rest are gaps of the
    device: from the call that starts a kernel until it runs `launch`, else while the host waits
    `sync`, else while it works `host`, else `idle`.
    """
    whole = [(forward.start, forward.end)]
    busy = common(whole, union((run.start, run.end) for run in forward.runs))
    times: dict[TimeClass, float] = {"device": length(busy)}
    left = outside(whole, busy)
    launches = [(run.launched, run.start) for run in forward.runs if run.launched is not None]
    classes: tuple[tuple[TimeClass, Iterable[Span]], ...] = (
        ("launch", launches),
        ("sync", forward.syncs),
        ("host", forward.host),
    )
    for name, intervals in classes:
        found = common(left, union(intervals))
        times[name] = length(found)
        left = outside(left, found)
    return {**times, "idle": length(left)}


def split_operators(
    start: float, end: float, working: Iterable[OperatorRun]
) -> dict[TimeClass, float]:
    """Seconds of a forward on a CPU: `device` in operators that work on data, `host` outside of
    them.
    """
    busy = sum(run.own_s for run in working if start <= run.start < end)
    return {"device": busy, "host": max(0.0, end - start - busy)}


def median_times(forwards: Sequence[Mapping[TimeClass, float]]) -> dict[TimeClass, float]:
    """The median of each class over several forwards."""
    names = dict.fromkeys(name for each in forwards for name in each)
    return {name: median(each.get(name, 0.0) for each in forwards) for name in names}


def fit_to_wall(
    times: Mapping[TimeClass, float], wall_s: float
) -> tuple[dict[TimeClass, float], bool]:
    """The classes of a profiled forward as those of one that takes `wall_s` without a profiler, and
    whether that is possible.

    A profiler slows the host and hardly the device. So `device` stays as it was measured, and what
    is left of the wall is shared by the gaps in the proportion of the profiled forward; without any
    gap it is `idle`. Device time beyond the wall is cut to it, and contradicts it where it is more
    than `TOLERANCE` longer.
    """
    device = times.get("device", 0.0)
    gaps: dict[TimeClass, float] = {
        name: seconds for name, seconds in times.items() if name != "device"
    }
    rest, total = max(0.0, wall_s - device), sum(gaps.values())
    if total > 0:
        gaps = {name: rest * seconds / total for name, seconds in gaps.items()}
    elif rest > 0:
        gaps["idle"] = rest
    return {"device": min(device, wall_s), **gaps}, device <= wall_s * (1 + TOLERANCE)


def share_of_wall(times: Mapping[TimeClass, float], wall_s: float) -> dict[TimeClass, float]:
    """The classes of a profiled forward on a CPU as those of one that takes `wall_s`: each keeps
    its share.

    Operators and all else run by the clock of the host there, and are slowed alike by what else
    uses the cores.
    """
    total = sum(times.values())
    return (
        {name: wall_s * seconds / total for name, seconds in times.items()}
        if total > 0
        else {"idle": wall_s}
    )


def place_of_time(windows: Sequence[Span], moment: float) -> int | None:
    """Which of some sorted windows, none of which overlap, holds a moment."""
    place = bisect_right(windows, moment, key=lambda window: window[0]) - 1
    return place if place >= 0 and moment < windows[place][1] else None
