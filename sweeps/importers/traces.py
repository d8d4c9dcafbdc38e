"""What the file of a profiler holds: activities of the device, calls of the host, ranges, and the
marks that name an arm.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from sweeps.errors import UserError
from sweeps.model.profile import COUNTERS, Activity, ArmProfile, Phase, Side
from sweeps.number_format import count

FORWARD_RANGE, PREFILL_RANGE = "breakeven:forward", "breakeven:prefill"
"""The ranges that the runner opens once around each measured forward; of a language model around
each prompt and each step."""
COMPARISON_MARK = re.compile(r"breakeven:comparison:([0-9a-f]+)")
SIDE_MARK = re.compile(r"breakeven:side:(baseline|arm)")
ARM_MARK = re.compile(r"breakeven:arm:(\d+)")


Item = TypeVar("Item")
LONGEST_SHOWN = 3
"""Kernels that a summary lists."""


class TraceError(UserError):
    """What is wrong with the file of a profiler, and what would be right, in one line."""


class DeviceActivity(NamedTuple):
    """One run of a kernel, copy or memset on the device; times in ns."""

    name: str
    activity: Activity
    start: int
    end: int
    device: int | None = None
    process: int | None = None
    correlation: int | None = None
    """Equal for a run and the call of the host that started it."""
    bytes_moved: int | None = None
    whole_graph: bool = False
    """A CUDA graph, whose kernels were not recorded one by one."""


class ApiCall(NamedTuple):
    """One call of the CUDA runtime or driver by the host; times in ns."""

    name: str
    start: int
    end: int
    thread: int | None = None
    correlation: int | None = None


class NvtxRange(NamedTuple):
    """One NVTX range of the host; times in ns."""

    name: str
    start: int
    end: int
    thread: int | None = None


class DeviceTrace(NamedTuple):
    """A timeline as Nsight Systems records it."""

    runs: tuple[DeviceActivity, ...]
    calls: tuple[ApiCall, ...] = ()
    ranges: tuple[NvtxRange, ...] = ()
    device_names: tuple[str, ...] = ()
    version: str = ""
    """Of the tool and of its export, in words."""
    repeated: int = 0
    """Rows of runs that stand in the file more than once, left out of `runs`."""


class Mark(NamedTuple):
    """What the runner writes into ranges, so that an import finds the comparison and the arm."""

    comparisons: tuple[str, ...] = ()
    side: Side | None = None
    """Which arm of the comparison it is."""
    arm: int | None = None
    """Index into the arms of the job that was run."""


class ImportedProfile(NamedTuple):
    """The profile in a file, and what else is known of it."""

    profile: ArmProfile
    mark: Mark
    device_name: str | None
    source: str
    """The tool with its version, and how the number of forwards is known."""
    kernels: int
    """Kernels that the profile is made of, all forwards together."""
    kernels_in_file: int
    time_share: float | None
    """Share of the kernel time in the file that these kernels take."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know, a line each."""


def by_phase(prompts: list[Item], steps: list[Item], others: list[Item]) -> dict[Phase, list[Item]]:
    """What the ranges of the runner hold by phase; `others` where there are no ranges."""
    found: dict[Phase, list[Item]] = {
        "prefill": prompts,
        "decode" if prompts else "forward": steps,
    }
    return {phase: items for phase, items in found.items() if items} or {"forward": others}


def read_marks(texts: Iterable[str]) -> Mark:
    """The marks in names of ranges. Raises `TraceError` if they name two arms: one file is the
    profile of one arm.
    """
    text = "\n".join(texts)
    comparisons = tuple(dict.fromkeys(COMPARISON_MARK.findall(text)))
    sides: set[Side] = set(SIDE_MARK.findall(text))
    arms = {int(index) for index in ARM_MARK.findall(text)}
    for named in ([*map(str, sorted(arms))], sorted(sides)):
        if len(named) > 1:
            raise TraceError(
                f"its ranges name the arms {', '.join(named)}; a file holds one"
                " arm: run each with --arm N under the profiler"
            )
    return Mark(comparisons, next(iter(sides), None), next(iter(arms), None))


def summary_lines(imported: ImportedProfile, kernel_time_share: float | None) -> Iterator[str]:
    """What an imported profile covers and shows, without the file's name: how many kernels and what
    share of the time come first; `kernel_time_share` of the arm is in the profile, if it is known.
    """
    profile = imported.profile
    coverage = "what share of the arm's kernel time they take is not known"
    if kernel_time_share is not None:
        coverage = f"they take {100 * kernel_time_share:.3g} % of the arm's kernel time"
    yield imported.source
    yield f"{_kernels(imported)}; {coverage}"
    if profile.times:
        listed = (f"{cause} {1e3 * seconds:.3g} ms" for cause, seconds in profile.times.items())
        yield f"per forward: {', '.join(listed)}"
    means = weighted_means([(each.seconds, each.counters) for each in profile.activities])
    if means:
        listed = (
            f"{name.replace('_', ' ')} {value:.3g} {COUNTERS[name]}"
            for name, value in means.items()
        )
        only = f" (of these {count(imported.kernels, 'kernel')} alone, not of the arm)"
        yield (
            f"means weighted by time{'' if kernel_time_share == 1 else only}: {', '.join(listed)}"
        )
    total = sum(each.seconds for each in profile.activities)
    unit = "per forward" if profile.forwards > 1 else "times"
    for each in profile.activities[:LONGEST_SHOWN]:
        share = f"{100 * each.seconds / total:.3g} %" if total else "-"
        yield f"{share} of the profiled time: {each.name[:100]} ({each.count:,.4g} {unit})"
    yield from imported.notes


def _kernels(imported: ImportedProfile) -> str:
    """`6,856 kernels profiled, 311.6 per forward, 4 names`."""
    profile = imported.profile
    names = sum(each.activity == "kernel" for each in profile.activities)
    text = f"{count(imported.kernels, 'kernel')} profiled under {count(names, 'name')}"
    if profile.forwards > 1:
        text += f", {imported.kernels / profile.forwards:,.4g} per forward"
    if imported.kernels < imported.kernels_in_file:
        text += f" (of {imported.kernels_in_file:,} in the file"
        if imported.time_share is not None:
            text += f" and {100 * imported.time_share:.3g} % of their time"
        text += ")"
    return text


def weighted_means(measured: Sequence[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """The mean of each counter weighted by seconds, over those that have it; none without
    weight.
    """
    means = {}
    for name in COUNTERS:
        pairs = [(seconds, counters[name]) for seconds, counters in measured if name in counters]
        weight = sum(seconds for seconds, _ in pairs)
        if weight > 0:
            means[name] = sum(seconds * value for seconds, value in pairs) / weight
    return means
