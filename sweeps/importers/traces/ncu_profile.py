"""The profile of an arm from kernels that Nsight Compute measured one by one: means weighted by
time, per name of kernel.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from sweeps.importers.traces.device_trace import FORWARD_RANGE, PREFILL_RANGE, ImportedProfile
from sweeps.importers.traces.ncu_report import NcuKernel, NcuReport
from sweeps.model.profile import COUNTERS, Activities, ArmProfile, Phase

ARGUMENTS = re.compile(r"<[^<>]*>|\([^()]*\)")
"""The innermost template arguments or parameters of a name."""
ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::")


def ncu_profiles(report: NcuReport, given: int | None = None) -> tuple[ImportedProfile, ...]:
    """The profiles of the kernels in `report`, one for each phase that its ranges name; `given`:
    forwards as stated.

    ncu runs each kernel alone and again for each group of counters, so that there is no timeline:
    neither wall time nor gaps. Its kernels may be a few of many: `kernel_time_share` is not known
    from the file. Its ranges do not separate forwards, so that without `given` totals are of the
    whole file; the means of counters need no number.
    """
    prompts = [each for each in report.kernels if PREFILL_RANGE in each.ranges]
    steps = [each for each in report.kernels if FORWARD_RANGE in each.ranges]
    found: dict[Phase, list[NcuKernel]] = {
        "prefill": prompts,
        "decode" if prompts else "forward": steps,
    }
    phases = {phase: kernels for phase, kernels in found.items() if kernels} or {
        "forward": list(report.kernels)
    }
    return tuple(
        _profile(report, phase, kernels, given if phase != "prefill" else None)
        for phase, kernels in phases.items()
    )


def _profile(
    report: NcuReport, phase: Phase, kernels: Sequence[NcuKernel], given: int | None
) -> ImportedProfile:
    forwards = given or 1
    profile = ArmProfile(
        arm=report.mark.arm or 0,
        tool="ncu",
        phase=phase,
        forwards=forwards,
        launches=_launches(kernels) / forwards,
        activities=_activities(kernels, forwards),
    )
    notes = []
    if given is None:
        notes.append(
            "how many forwards the file holds is not known: counts and seconds are of all of it;"
            " --forwards K divides"
        )
    if report.missing:
        notes.append(
            f"not in the file: {', '.join(name.replace('_', ' ') for name in report.missing)}"
        )
    total = sum(each.seconds * each.runs for each in report.kernels)
    return ImportedProfile(
        profile=profile,
        mark=report.mark,
        device_name=report.device_name,
        source=(
            "ncu, forwards not known" if given is None else f"ncu, forwards by --forwards {given}"
        ),
        kernels=_launches(kernels),
        kernels_in_file=_launches(report.kernels),
        time_share=sum(each.seconds * each.runs for each in kernels) / total if total else None,
        notes=tuple(notes),
    )


def covered_share(profiled: Iterable[Activities], whole: Iterable[Activities]) -> float | None:
    """The share of the kernel time in `whole`, a profile of all kernels of the arm, that the
    kernels in `profiled` stand for.

    Kernels are the same if their names are without arguments; of a name that runs ten times and was
    profiled three times, three tenths of its time count. `None` if `whole` has no kernels, or none
    of those in `profiled`.
    """
    seconds: dict[str, float] = {}
    runs: dict[str, float] = {}
    for each in whole:
        if each.activity == "kernel":
            name = function_name(each.name)
            seconds[name] = seconds.get(name, 0.0) + each.seconds
            runs[name] = runs.get(name, 0.0) + each.count
    found: dict[str, float] = {}
    for each in profiled:
        name = function_name(each.name)
        found[name] = found.get(name, 0.0) + each.count
    total = sum(seconds.values())
    common = found.keys() & seconds.keys()
    if not common or not total:
        return None
    return min(
        1.0,
        sum(min(1.0, found[name] / runs[name]) * seconds[name] for name in common if runs[name])
        / total,
    )


def function_name(name: str) -> str:
    """The name of a kernel without return type, namespaces, template arguments and parameters."""
    bare = ANONYMOUS.sub("", name)
    while (shorter := ARGUMENTS.sub("", bare)) != bare:
        bare = shorter
    return bare.strip().split(" ")[-1].split("::")[-1] or name


def mean_counters(activities: Iterable[Activities]) -> dict[str, float]:
    """Counters over all kernels, as means weighted by time, in the order of `COUNTERS`."""
    return _means([(each.seconds, each.counters) for each in activities])


def _launches(kernels: Iterable[NcuKernel]) -> int:
    return sum(each.runs for each in kernels)


def _activities(kernels: Sequence[NcuKernel], forwards: int) -> tuple[Activities, ...]:
    groups: dict[str, list[NcuKernel]] = {}
    for each in kernels:
        groups.setdefault(each.name, []).append(each)
    found = []
    for name, group in groups.items():
        found.append(
            Activities(
                name=name,
                activity="kernel",
                count=_launches(group) / forwards,
                seconds=sum(each.seconds * each.runs for each in group) / forwards,
                counters=_means([(each.seconds * each.runs, each.counters) for each in group]),
            )
        )
    return tuple(sorted(found, key=lambda each: (-each.seconds, each.name)))


def _means(measured: Sequence[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
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
