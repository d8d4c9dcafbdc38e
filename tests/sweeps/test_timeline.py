"""Timelines with known answers: classes of time add up, overlaps count once, and the unprofiled
wall is shared honestly.
"""

import random

import pytest

from sweeps.stats.profiles import (
    DeviceRun,
    OperatorRun,
    Span,
    Timeline,
    common,
    fit_to_wall,
    length,
    outside,
    place_of_time,
    share_of_wall,
    split_operators,
    split_time,
    union,
)


def test_random_unions_against_a_raster() -> None:
    """Set operations on intervals agree with the same operations on the whole numbers that they
    cover.
    """
    source = random.Random(0)
    for _ in range(200):
        one, other = (
            [tuple(sorted(source.choices(range(30), k=2))) for _ in range(6)] for _ in range(2)
        )
        cells = [
            {cell for start, end in each for cell in range(start, end)} for each in (one, other)
        ]
        unions = union(one), union(other)
        found = {"common": common(*unions), "outside": outside(*unions)}
        assert length(found["common"]) == len(cells[0] & cells[1])
        assert length(found["outside"]) == len(cells[0] - cells[1])
        assert length(unions[0]) == len(cells[0])


def kernel(start: float, end: float, launched: float | None = None) -> DeviceRun:
    return DeviceRun("kernel", start, end, launched)


def test_a_timeline_by_hand() -> None:
    """Two overlapping kernels and a third; the gaps are what the host did in them."""
    forward = Timeline(
        start=0,
        end=20,
        runs=[kernel(3, 6, 2), kernel(5, 8, 2.5), kernel(12, 15, 10)],
        syncs=[(14, 18)],
        host=[(0, 11)],
    )
    assert split_time(forward) == {"device": 8, "launch": 3, "sync": 3, "host": 4, "idle": 2}


def test_a_launch_known_to_be_later_than_its_kernel_is_ignored() -> None:
    """Clocks that disagree give no negative time."""
    times = split_time(Timeline(0, 4, [kernel(1, 2, 3)]))
    assert times == {"device": 1, "launch": 0, "sync": 0, "host": 0, "idle": 3}


def test_classes_add_up_to_the_forward() -> None:
    """However the intervals overlap, each moment has one class."""
    source = random.Random(0)

    def intervals(count: int) -> list[Span]:
        starts = [source.uniform(-2, 12) for _ in range(count)]
        return [(start, start + source.uniform(0, 3)) for start in starts]

    for _ in range(20):
        runs = [kernel(start, end, start - source.uniform(0, 2)) for start, end in intervals(8)]
        times = split_time(Timeline(0, 10, runs, intervals(3), intervals(5)))
        assert sum(times.values()) == pytest.approx(10)
        assert set(times) == {"device", "launch", "sync", "host", "idle"}
        assert min(times.values()) >= 0


def test_operators_of_a_cpu() -> None:
    """Own times of the operators that start within the forward; the rest is outside."""
    working = [
        OperatorRun("mm", 1.0, 3.0),
        OperatorRun("add", 4.5, 0.5),
        OperatorRun("mm", 11.0, 3.0),
    ]
    assert split_operators(0, 10, working) == {"device": 3.5, "host": 6.5}
    assert split_operators(0, 3, working) == {"device": 3.0, "host": 0.0}


def test_a_cpu_keeps_the_shares() -> None:
    """A profiled forward of 20 beside another process is one of 10 without: operators are half of
    both.
    """
    assert share_of_wall({"device": 10, "host": 10}, 10) == {"device": 5, "host": 5}
    assert share_of_wall({"device": 0, "host": 0}, 10) == {"idle": 10}


def test_the_device_keeps_its_time_and_gaps_share_the_rest() -> None:
    """A profiled forward of 20 with 8 on the device: unprofiled it takes 14, so the gaps of 12
    shrink to 6, each by half.
    """
    times, possible = fit_to_wall({"device": 8, "launch": 3, "sync": 3, "host": 4, "idle": 2}, 14)
    assert times == {"device": 8, "launch": 1.5, "sync": 1.5, "host": 2, "idle": 1}
    assert possible
    assert sum(times.values()) == 14
    assert fit_to_wall({"device": 8, "host": 0}, 10) == ({"device": 8, "host": 0, "idle": 2}, True)


@pytest.mark.parametrize(
    ("device", "possible"), [(10.0, True), (10.4, True), (10.6, False), (30.0, False)]
)
def test_device_time_beyond_the_wall_is_a_contradiction(device: float, possible: bool) -> None:
    """A little more is noise between forwards, and is cut; more than that is marked."""
    times, found = fit_to_wall({"device": device, "host": 5}, 10)
    assert found == possible
    assert sum(times.values()) == pytest.approx(10)


def test_the_window_of_a_moment() -> None:
    """The end of a window is no part of it."""
    windows = [(0.0, 1.0), (2.0, 3.0)]
    places = [place_of_time(windows, moment) for moment in (-1, 0, 0.5, 1, 2.9, 3)]
    assert places == [None, 0, 0, None, 1, None]
