"""Profiles of timelines with known answers: time by class, what belongs to a forward, and what
contradicts itself.
"""

import pytest

from sweeps.importers.nsys import nsys_profiles
from sweeps.importers.traces import (
    FORWARD_RANGE,
    ApiCall,
    DeviceActivity,
    DeviceTrace,
    Mark,
    NvtxRange,
    TraceError,
    read_marks,
    summary_lines,
)
from tests.fixtures.device_traces import (
    DEVICE_US,
    FORWARD_US,
    HOST_US,
    KERNELS,
    LAUNCHING_US,
    PROCESS,
    SYNC_US,
    THREAD,
    a_trace,
)

US = 1e-6


def test_forwards_in_ranges() -> None:
    """Each class of time, the wall, launches and kernels are those of one forward; kernels before
    and after count nowhere.
    """
    (found,) = nsys_profiles(a_trace(4, before=("fill",) * 3, after=("argmax",)))
    profile = found.profile
    assert (profile.forwards, profile.launches, profile.kernel_time_share) == (4, 18, 1)
    assert (found.kernels, found.kernels_in_file) == (72, 76)
    assert found.time_share == pytest.approx(72 / 76)
    assert profile.wall_s is None
    assert profile.profiled_wall_s == pytest.approx(FORWARD_US * US)
    in_us = {
        "device": DEVICE_US,
        "launch": LAUNCHING_US,
        "sync": SYNC_US,
        "host": HOST_US,
        "idle": 0,
    }
    expected = {name: us * US for name, us in in_us.items()}
    assert profile.times == pytest.approx(expected, abs=1e-12)
    gemm = next(each for each in profile.activities if each.name == "gemm")
    assert (gemm.count, gemm.seconds) == (3, pytest.approx(30 * US))
    assert sum(each.seconds for each in profile.activities) == pytest.approx(DEVICE_US * US)


def test_kernels_belong_to_the_range_that_launched_them() -> None:
    """A kernel that the device runs after the range has ended belongs to it, and its forward lasts
    until then.
    """
    runs = (
        DeviceActivity("late", "kernel", 150, 180, 0, PROCESS, 1),
        DeviceActivity("soon", "kernel", 220, 260, 0, PROCESS, 2),
        DeviceActivity("never", "kernel", 350, 360, 0, PROCESS, 3),
    )
    calls = tuple(
        ApiCall("cudaLaunchKernel", at, at + 5, THREAD, number)
        for number, at in ((1, 50), (2, 210), (3, 340))
    )
    ranges = (NvtxRange(FORWARD_RANGE, 0, 100, THREAD), NvtxRange(FORWARD_RANGE, 200, 300, THREAD))
    (found,) = nsys_profiles(DeviceTrace(runs, calls, ranges))
    ns = {name: seconds * 2e9 for name, seconds in found.profile.times.items()}
    assert ns == pytest.approx(
        {"device": 30 + 40, "launch": 100 + 10, "sync": 0, "host": 50 + 50, "idle": 0}, abs=1e-6
    )
    assert found.profile.profiled_wall_s == pytest.approx(140e-9)
    assert [each.name for each in found.profile.activities] == ["soon", "late"]


def test_neither_ranges_nor_a_stated_number() -> None:
    """Such a trace is refused with both ways out; stated, all activities are divided, and what they
    cover is not known.
    """
    trace = a_trace(1, kernels=[f"kernel {number}" for number in range(30)], ranges=False)
    ways = "no ranges breakeven:forward; record it again .* --arm N.* with --forwards K how many"
    with pytest.raises(TraceError, match=ways):
        nsys_profiles(trace)
    (found,) = nsys_profiles(trace, 3)
    profile = found.profile
    assert (profile.forwards, profile.launches, profile.kernel_time_share) == (3, 10, None)
    assert found.profile.times == pytest.approx({"device": 100 * US})
    assert found.profile.profiled_wall_s is None
    assert found.source.endswith("forwards by --forwards 3")
    assert "gaps of the device are not known" in found.notes[0]
    assert "warm-up included" in found.notes[-1]
    with pytest.raises(TraceError, match="--forwards 5 disagrees with the 4 ranges"):
        nsys_profiles(a_trace(4), 5)
    empty = a_trace(2, before=("fill",))
    with pytest.raises(TraceError, match="none of its 1 kernel was started inside its 2 ranges"):
        nsys_profiles(empty._replace(runs=empty.runs[:1]))


def test_phases_are_profiled_apart() -> None:
    """Beside ranges of prompts those of forwards are decode steps: a profile of each, with a number
    of their own.
    """
    trace = a_trace(4)
    names = ("breakeven:prefill", FORWARD_RANGE, FORWARD_RANGE, FORWARD_RANGE)
    ranges = tuple(each._replace(name=name) for each, name in zip(trace.ranges, names, strict=True))
    found = nsys_profiles(trace._replace(ranges=ranges))
    phases = [(each.profile.phase, each.profile.forwards, each.profile.launches) for each in found]
    assert phases == [("prefill", 1, 18), ("decode", 3, 18)]


def test_copies_and_memsets() -> None:
    """Copies and memsets count as launches and as device time, with the bytes that they move."""
    trace = a_trace(2)
    first, second = trace.ranges
    copies = [
        DeviceActivity(
            "memcpy HtoD", "memcpy", each.start + 500, each.start + 1500, 0, PROCESS, None, 4096
        )
        for each in (first, second)
    ]
    (found,) = nsys_profiles(trace._replace(runs=(*trace.runs, *copies)))
    copy = next(each for each in found.profile.activities if each.activity == "memcpy")
    assert (copy.count, copy.bytes_moved, copy.seconds) == (1, 4096, pytest.approx(1 * US))
    assert found.profile.launches == 19
    assert found.profile.times["device"] == pytest.approx((DEVICE_US + 1) * US)
    assert (found.kernels, found.profile.kernel_time_share) == (36, 1)


def test_whole_graphs_are_not_covered() -> None:
    """Time of CUDA graphs whose kernels were not recorded is not in the profile's share, and a note
    states what records them.
    """
    trace = a_trace(2)
    graphs = []
    for place, each in enumerate(trace.ranges, 900):
        run = DeviceActivity("CUDA graph 1", "kernel", each.end - 2000, each.end - 1000, 0, PROCESS)
        graphs.append(run._replace(correlation=place, whole_graph=True))
    calls = [
        ApiCall("cudaGraphLaunch", run.start - 500, run.start - 100, THREAD, run.correlation)
        for run in graphs
    ]
    (found,) = nsys_profiles(
        trace._replace(runs=(*trace.runs, *graphs), calls=(*trace.calls, *calls))
    )
    assert found.profile.kernel_time_share == pytest.approx(DEVICE_US / (DEVICE_US + 1))
    assert any("--cuda-graph-trace=node" in note for note in found.notes)


def test_devices_and_processes() -> None:
    """Kernels of two devices are refused by name; of two processes those of the ranges are taken,
    and without ranges none.
    """
    trace = a_trace(3)
    other = tuple(run._replace(device=1) for run in trace.runs[:18])
    with pytest.raises(TraceError, match=r"kernels of the devices 0 \(54 runs\) and 1 \(18 runs\)"):
        nsys_profiles(trace._replace(runs=(*trace.runs, *other)))
    foreign = tuple(run._replace(process=99 << 24) for run in trace.runs)
    both = (*trace.runs, *foreign)
    assert nsys_profiles(trace._replace(runs=both))[0].kernels == 54
    with pytest.raises(TraceError, match=r"kernels of several processes \(99, 4242\)"):
        nsys_profiles(trace._replace(runs=both, ranges=()))


def of_another_process(trace: DeviceTrace, later_us: int) -> DeviceTrace:
    """The trace with a second process that launches the same kernels later, by calls of the same
    correlation ids.
    """
    later = 1000 * later_us
    runs = (
        run._replace(process=99 << 24, start=run.start + later, end=run.end + later)
        for run in trace.runs
    )
    calls = (
        call._replace(thread=99 << 24 | 1, start=call.start + later, end=call.end + later)
        for call in trace.calls
    )
    return trace._replace(runs=(*trace.runs, *runs), calls=(*trace.calls, *calls))


@pytest.mark.parametrize("later_us", [1, 300])
def test_correlation_ids_are_those_of_a_process(later_us: int) -> None:
    """Another traced process with the same correlation ids changes no number of the process with
    the ranges.
    """
    trace = a_trace(5)
    (alone,), (beside,) = nsys_profiles(trace), nsys_profiles(of_another_process(trace, later_us))
    assert beside.profile == alone.profile
    assert (beside.kernels, beside.kernels_in_file) == (90, 180)
    unnamed = of_another_process(trace, later_us)
    with pytest.raises(TraceError, match="calls of several processes"):
        nsys_profiles(
            unnamed._replace(runs=tuple(run._replace(process=None) for run in unnamed.runs))
        )


def late(trace: DeviceTrace) -> DeviceTrace:
    """The trace of a device that is so busy that each kernel runs a forward after its launch."""
    runs = tuple(
        run._replace(start=run.start + 400_000, end=run.end + 400_000) for run in trace.runs
    )
    return trace._replace(runs=runs)


def test_calls_that_were_not_recorded() -> None:
    """Without the calls that started them, kernels that run late are not those of the ranges:
    refused, or counted as stated.
    """
    whole = late(a_trace(5))
    assert nsys_profiles(whole)[0].kernels == 90
    for calls in (
        (),
        whole.calls[:40],
        tuple(call._replace(correlation=None) for call in whole.calls),
    ):
        trace = whole._replace(calls=calls)
        with pytest.raises(TraceError, match=r"is not recorded .*--forwards K"):
            nsys_profiles(trace)
        (stated,) = nsys_profiles(trace, 5)
        assert (stated.kernels, stated.profile.forwards) == (90, 5)
        assert stated.profile.times == pytest.approx({"device": DEVICE_US * US})
    names = ("breakeven:prefill", *[FORWARD_RANGE] * 4)
    ranges = tuple(each._replace(name=name) for each, name in zip(whole.ranges, names, strict=True))
    for given in (None, 4):
        with pytest.raises(TraceError, match="is not recorded"):
            nsys_profiles(whole._replace(calls=(), ranges=ranges), given)


def test_marks() -> None:
    """Comparisons and the arm are read from names of ranges, wherever they stand in them; two arms
    contradict each other.
    """
    own = "comparison:0123456789abcdef", "comparison:fe:none", "side:arm", "arm:2"
    assert read_marks([*(f"x breakeven:{each}" for each in own), "block 3"]) == Mark(
        ("0123456789abcdef", "fe"), "arm", 2
    )
    assert read_marks(["block 0", "reduction"]) == Mark()
    with pytest.raises(TraceError, match="name the arms 0, 2; a file holds one arm"):
        read_marks(["breakeven:arm:2", "breakeven:arm:0"])


def test_summary_states_what_is_covered() -> None:
    """The lines name the source of the number of forwards, kernels and share of time first, then
    the classes of time.
    """
    (found,) = nsys_profiles(a_trace(4, before=("fill",) * 4))
    lines = list(summary_lines(found, found.profile.kernel_time_share))
    assert lines[0] == "nsys 2025.1 (schema 3.20.0), forwards by 4 ranges breakeven:forward"
    assert lines[1].startswith(
        f"72 kernels profiled under {len(set(KERNELS))} names, 18 per forward (of 76 in the file"
        " and 94.7 %"
    )
    assert lines[1].endswith("; they take 100 % of the arm's kernel time")
    assert (
        lines[2]
        == "per forward: device 0.18 ms, launch 0.041 ms, sync 0.004 ms, host 0.003 ms, idle 0 ms"
    )
