"""The profile of an arm from a timeline of Nsight Systems: device time, gaps by cause, and
activities per forward.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from sweeps.importers.traces import (
    FORWARD_RANGE,
    PREFILL_RANGE,
    ApiCall,
    DeviceActivity,
    DeviceTrace,
    ImportedProfile,
    NvtxRange,
    TraceError,
    by_phase,
    read_marks,
)
from sweeps.model.profile import Activities, ArmProfile, Phase, TimeClass
from sweeps.number_format import count
from sweeps.stats.profiles import DeviceRun, Span, Timeline, length, split_time, union

NS = 1e-9
WAIT = re.compile(r"cu(da)?\w*Synchronize|cu(da)?Mem(cpy|set)(?!\w*Async)")
"""Calls that wait for the device."""

Started = Mapping[int | None, int]
"""When the host entered the call with each correlation id, in ns."""


class _Part(NamedTuple):
    """What of a trace is the arm's forwards."""

    forwards: int
    own: list[DeviceActivity]
    windows: list[Span]
    """Each forward from its start until its last kernel ends, in ns; empty where no ranges separate
    them."""
    source: str
    """How the number of forwards is known, in words."""


def nsys_profiles(trace: DeviceTrace, given: int | None = None) -> tuple[ImportedProfile, ...]:
    """The profiles of the arm in `trace`, one for each phase that its ranges name; `given` is the
    number of forwards as stated.

    Gaps are known only where ranges separate the forwards. Raises `TraceError` if the trace holds
    no kernels of a forward, if it has neither ranges nor a stated number of forwards, or if the two
    disagree.
    """
    ordered = sorted(trace.ranges, key=lambda each: each.start)
    prompts = [each for each in ordered if each.name == PREFILL_RANGE]
    steps = [each for each in ordered if each.name == FORWARD_RANGE]
    return tuple(
        _profile(trace, phase, ranges, None if phase == "prefill" else given)
        for phase, ranges in by_phase(prompts, steps, []).items()
    )


def _profile(
    trace: DeviceTrace, phase: Phase, ranges: list[NvtxRange], given: int | None
) -> ImportedProfile:
    runs = _of_one_device(_of_process(trace.runs, ranges))
    started = _started(trace.calls, runs) if ranges else {}
    kernels = _kernels(runs)
    unknown = sum(
        run.correlation not in started for run in kernels if ranges and run.start > ranges[0].start
    )
    if unknown and (given is None or phase != "forward"):
        other = ", or state with --forwards K how many forwards the whole file holds"
        raise TraceError(
            f"which call of the host started {unknown} of its {count(len(kernels), 'kernel')} is"
            f" not recorded (table CUPTI_ACTIVITY_KIND_RUNTIME), so that their {ranges[0].name} is"
            " not known; record it with"
            f" --trace=cuda,nvtx{other if phase == 'forward' else ''}"
        )
    ranges = [] if unknown else ranges
    part = _by_ranges(started, runs, ranges, given) if ranges else _as_stated(runs, given)
    mark = read_marks(each.name for each in trace.ranges)
    profile = ArmProfile(
        arm=mark.arm or 0,
        tool="nsys",
        phase=phase,
        forwards=part.forwards,
        profiled_wall_s=length(union(part.windows)) * NS / part.forwards if part.windows else None,
        times=_times(trace, started, runs, part, ranges),
        launches=len(part.own) / part.forwards,
        kernel_time_share=_recorded_one_by_one(part.own) if part.windows else None,
        activities=_activities(part.own, part.forwards),
    )
    kernels, of_file = _kernels(part.own), _kernels(trace.runs)
    total = _duration(of_file)
    return ImportedProfile(
        profile=profile,
        mark=mark,
        device_name=trace.device_names[0] if len(trace.device_names) == 1 else None,
        source=f"nsys {trace.version}".strip() + f", forwards by {part.source}",
        kernels=len(kernels),
        kernels_in_file=len(of_file),
        time_share=_duration(kernels) / total if total else None,
        notes=tuple(_notes(part, trace.repeated)),
    )


def _of_process(
    runs: Sequence[DeviceActivity], ranges: Sequence[NvtxRange]
) -> list[DeviceActivity]:
    """The runs of the process whose ranges there are; all of them if there are no ranges or it is
    not known.
    """
    own = {each.thread >> 24 for each in ranges if each.thread is not None}
    mine = [run for run in runs if own and (run.process is None or run.process >> 24 in own)]
    kept = mine or list(runs)
    found = sorted({run.process >> 24 & 0xFFFFFF for run in kept if run.process is not None})
    if len(found) > 1:
        listed = ", ".join(str(process) for process in found)
        raise TraceError(
            f"it holds kernels of several processes ({listed}); record one, or the ranges of"
            " `python -m workers.run`"
        )
    return kept


def _of_one_device(runs: list[DeviceActivity]) -> list[DeviceActivity]:
    devices = sorted(
        {run.device for run in runs if run.device is not None and run.activity == "kernel"}
    )
    if len(devices) > 1:
        listed = " and ".join(
            f"{device} ({count(sum(run.device == device for run in runs), 'run')})"
            for device in devices
        )
        raise TraceError(
            f"it holds kernels of the devices {listed}; a profile is of one: record with"
            " CUDA_VISIBLE_DEVICES=0"
        )
    return runs


def _by_ranges(
    started: Started, runs: list[DeviceActivity], ranges: list[NvtxRange], given: int | None
) -> _Part:
    """Each run belongs to the range in which the host started it, however late the device runs
    it.
    """
    starts = [each.start for each in ranges]
    ends = [each.end for each in ranges]
    own = []
    for run in runs:
        at = started.get(run.correlation, run.start)
        place = bisect_right(starts, at) - 1
        if place >= 0 and at <= ranges[place].end:
            own.append(run)
            ends[place] = max(ends[place], run.end)
    text = count(len(ranges), "range")
    if not _kernels(own):
        inside = f"none of its {count(len(_kernels(runs)), 'kernel')} was started inside"
        raise TraceError(
            f"{inside} its {text} {ranges[0].name}; record both: nsys profile --trace=cuda,nvtx"
        )
    if given not in (None, len(ranges)):
        raise TraceError(
            f"--forwards {given} disagrees with the {text} {ranges[0].name} in it; leave --forwards"
            " out, or name the right file"
        )
    # a forward whose kernels still run when the next begins ends there
    limits = [
        *starts[1:],
        max(ends),
    ]
    windows: list[Span] = [
        (start, min(end, limit)) for start, end, limit in zip(starts, ends, limits, strict=True)
    ]
    return _Part(len(ranges), own, windows, f"{text} {ranges[0].name}")


def _started(calls: Iterable[ApiCall], runs: Iterable[DeviceActivity]) -> Started:
    """When the host entered the first call with each correlation id, which is unique within a
    process: that of `runs`.

    Raises `TraceError` for calls of several processes where runs name none.
    """
    own = {run.process >> 24 for run in runs if run.process is not None}
    started: dict[int | None, int] = {}
    processes = set[int]()
    for each in calls:
        if each.thread is not None:
            if own and each.thread >> 24 not in own:
                continue
            processes.add(each.thread >> 24)
        if each.correlation:
            started[each.correlation] = min(each.start, started.get(each.correlation, each.start))
    if not own and len(processes) > 1:
        raise TraceError(
            "it holds calls of several processes, and its kernels name none (column globalPid);"
            " record one process"
        )
    return started


def _as_stated(runs: list[DeviceActivity], given: int | None) -> _Part:
    """All runs of a trace whose ranges do not show the forwards."""
    if given is None:
        raise TraceError(
            f"it has no ranges {FORWARD_RANGE}; record it again with those of `python -m"
            " workers.run job.json --arm N`, or state with --forwards K how many forwards it holds"
        )
    return _Part(given, runs, [], f"--forwards {given}")


def _kernels(runs: Iterable[DeviceActivity]) -> list[DeviceActivity]:
    return [run for run in runs if run.activity == "kernel"]


def _times(
    trace: DeviceTrace,
    started: Started,
    runs: Sequence[DeviceActivity],
    part: _Part,
    ranges: Sequence[NvtxRange],
) -> dict[TimeClass, float]:
    """Seconds per forward by class: `device` alone where no ranges separate forwards."""
    if not part.windows:
        return {
            "device": length(union((run.start, run.end) for run in part.own)) * NS / part.forwards
        }
    threads = {each.thread for each in ranges}
    syncs = [
        (each.start, each.end)
        for each in trace.calls
        if WAIT.match(each.name) and each.thread in threads
    ]
    host = [(each.start, each.end) for each in ranges]
    ordered = sorted(runs, key=lambda run: run.start)
    timed = [
        DeviceRun(run.name, run.start, run.end, started.get(run.correlation)) for run in ordered
    ]
    begins, latest = [run.start for run in timed], list(accumulate((run.end for run in timed), max))
    total: dict[TimeClass, float] = {}
    for start, end in part.windows:
        inside = timed[bisect_right(latest, start) : bisect_left(begins, end)]
        for name, spent in split_time(Timeline(start, end, inside, syncs, host)).items():
            total[name] = total.get(name, 0.0) + spent
    return {name: spent * NS / part.forwards for name, spent in total.items()}


def _activities(runs: Sequence[DeviceActivity], forwards: int) -> tuple[Activities, ...]:
    """Runs by kind and name, the longest total first."""
    groups: dict[tuple[str, str], list[DeviceActivity]] = {}
    for run in runs:
        groups.setdefault((run.activity, run.name), []).append(run)
    found = [
        Activities(
            name=name,
            activity=group[0].activity,
            count=len(group) / forwards,
            seconds=_duration(group) * NS / forwards,
            bytes_moved=(
                sum(run.bytes_moved or 0 for run in group) / forwards
                if group[0].bytes_moved is not None
                else None
            ),
        )
        for (_, name), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.seconds, each.name)))


def _recorded_one_by_one(runs: Sequence[DeviceActivity]) -> float | None:
    """The share of kernel time whose kernels were recorded one by one, which those of whole CUDA
    graphs are not.
    """
    kernels = _kernels(runs)
    total = _duration(kernels)
    return _duration(run for run in kernels if not run.whole_graph) / total if total else None


def _duration(runs: Iterable[DeviceActivity]) -> int:
    """Of all of them, in ns."""
    return sum(run.end - run.start for run in runs)


def _notes(part: _Part, repeated: int) -> Iterable[str]:
    if repeated:
        yield f"{count(repeated, 'row')} of activities stand in the file twice and count once"
    graphs = sum(run.whole_graph for run in part.own)
    if graphs:
        yield (
            f"{count(graphs, 'CUDA graph')} stand for kernels that were not recorded one by one; "
            "nsys profile --cuda-graph-trace=node records them"
        )
    if not part.windows:
        yield (
            f"gaps of the device are not known: no ranges {FORWARD_RANGE}, as `python -m"
            " workers.run job.json --arm N` sets them"
        )
        yield (
            "all activities of the file are counted, those of the start of the program and of"
            " warm-up included"
        )
