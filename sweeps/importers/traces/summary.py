"""What an imported profile covers and shows, in lines for people: how many kernels and what share
of the time comes first.
"""

from collections.abc import Iterator

from sweeps.importers.traces.device_trace import ImportedProfile
from sweeps.importers.traces.ncu_profile import mean_counters
from sweeps.model.profile import COUNTERS, ArmProfile
from sweeps.number_format import count

_SHOWN = 3
"""Kernels that are listed."""


def summary_lines(imported: ImportedProfile, kernel_time_share: float | None) -> Iterator[str]:
    """The lines, without the file's name; `kernel_time_share` of the arm is in the profile, if it
    is known.
    """
    profile = imported.profile
    yield imported.source
    yield f"{_kernels(imported)}; {_coverage(kernel_time_share)}"
    if profile.times:
        each = "per forward: "
        yield each + ", ".join(
            f"{cause} {1e3 * seconds:.3g} ms" for cause, seconds in profile.times.items()
        )
    means = mean_counters(profile.activities)
    if means:
        listed = ", ".join(
            f"{name.replace('_', ' ')} {value:.3g} {COUNTERS[name]}"
            for name, value in means.items()
        )
        only = (
            ""
            if kernel_time_share == 1
            else f" (of these {count(imported.kernels, 'kernel')} alone, not of the arm)"
        )
        yield f"means weighted by time{only}: {listed}"
    yield from _longest(profile)
    yield from imported.notes


def _kernels(imported: ImportedProfile) -> str:
    """`6,856 kernels profiled, 311.6 per forward, 4 names`."""
    profile = imported.profile
    names = sum(each.activity == "kernel" for each in profile.activities)
    text = f"{count(imported.kernels, 'kernel')} profiled under {count(names, 'name')}"
    if profile.forwards > 1:
        text += f", {imported.kernels / profile.forwards:,.4g} per forward"
    if imported.kernels < imported.kernels_in_file:
        share = (
            ""
            if imported.time_share is None
            else f" and {100 * imported.time_share:.3g} % of their time"
        )
        text += f" (of {imported.kernels_in_file:,} in the file{share})"
    return text


def _coverage(kernel_time_share: float | None) -> str:
    if kernel_time_share is None:
        return "what share of the arm's kernel time they take is not known"
    return f"they take {100 * kernel_time_share:.3g} % of the arm's kernel time"


def _longest(profile: ArmProfile) -> Iterator[str]:
    total = sum(each.seconds for each in profile.activities)
    for each in profile.activities[:_SHOWN]:
        share = f"{100 * each.seconds / total:.3g} %" if total else "-"
        runs = (
            f"{each.count:,.4g} per forward" if profile.forwards > 1 else f"{each.count:,.4g} times"
        )
        yield f"{share} of the profiled time: {each.name[:100]} ({runs})"
