"""What the file of a profiler holds: activities of the device, calls of the host, ranges, and the
marks that name an arm.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from sweeps.errors import UserError
from sweeps.model.profile import Activity, ArmProfile, Side

FORWARD_RANGE, PREFILL_RANGE = "breakeven:forward", "breakeven:prefill"
"""The ranges that the runner opens once around each measured forward; of a language model around
each prompt and each step."""
COMPARISON_MARK = re.compile(r"breakeven:comparison:([0-9a-f]+)")
SIDE_MARK = re.compile(r"breakeven:side:(baseline|arm)")
ARM_MARK = re.compile(r"breakeven:arm:(\d+)")


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


def read_marks(texts: Iterable[str]) -> Mark:
    """The marks in names of ranges. Raises `TraceError` if they name two arms: one file is the
    profile of one arm.
    """
    comparisons: dict[str, None] = {}
    sides: set[Side] = set()
    arms: set[int] = set()
    for text in texts:
        comparisons.update(dict.fromkeys(COMPARISON_MARK.findall(text)))
        sides.update(SIDE_MARK.findall(text))
        arms.update(int(index) for index in ARM_MARK.findall(text))
    if len(arms) > 1 or len(sides) > 1:
        named = ", ".join(map(str, sorted(arms))) if len(arms) > 1 else "baseline and arm"
        raise TraceError(
            f"its ranges name the arms {named}; a file holds one arm: run each with --arm N under"
            " the profiler"
        )
    return Mark(tuple(comparisons), next(iter(sides), None), next(iter(arms), None))
