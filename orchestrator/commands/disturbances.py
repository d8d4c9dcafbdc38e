"""What could disturb a measurement on this machine now: load, quotas, heat, clocks, steal, and
whether its energy can be read.
"""

from collections.abc import Iterator
from pathlib import Path

from sweeps.model.metrics import notes_on
from workers.measure.counters import GpuSamples, HostCounters, energy_problem
from workers.measure.environment import ROOT, allowed_cores, cpu_quotas, gpu, read_text

BUSY = 0.5
"""Load from which on a machine counts as busy."""


def disturbances(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """A label and a line for each; `root` holds `proc` and `sys`. What the machine does not state
    is called so.
    """
    counters = HostCounters(len(allowed_cores()), root).read()
    load = counters["load"]
    yield (
        "load",
        f"{load:.2f} in the last minute"
        + (" (something else is running: intervals will be wide)" if load > BUSY else ""),
    )
    yield "quota", _quota(counters, root)
    yield "heat", _heat(counters)
    yield "clocks", _clocks(counters, root)
    if "stolen" in counters:
        stolen, whole = counters["stolen"], counters["busy"] + counters["stolen"]
        yield (
            "steal",
            (
                f"{stolen / whole if whole else 0:.2%} of the CPU time since it started went to"
                " other virtual machines"
            ),
        )
    yield (
        "energy",
        energy_problem(root / "sys/class/powercap") or "of the CPU packages: readable (RAPL)",
    )
    with gpu() as handle:
        if handle is not None:
            samples = GpuSamples()
            samples.add(handle)
            readings, flags = samples.findings()
            found = [*notes_on(readings), *sorted(flags)]
            yield (
                "gpu",
                ", ".join(found) or "no clocks event reason that slows it, no other process",
            )


def _quota(counters: dict[str, float], root: Path) -> str:
    limits = cpu_quotas(root)
    allowed = f"cgroups allow {min(limits):g} cores" if limits else "no cgroup limits the CPU time"
    if "throttled" not in counters:
        return f"{allowed}; what they withheld is not stated here" if limits else allowed
    times = f" in {counters['throttles']:.0f} periods" if "throttles" in counters else ""
    return f"{allowed}; withheld so far: {counters['throttled']:.3g} s{times}"


def _heat(counters: dict[str, float]) -> str:
    if "thermal" not in counters:
        return "the kernel offers no counters of thermal throttling here"
    seconds = f", {counters['thermal_s']:.3g} s in all" if "thermal_s" in counters else ""
    return f"cores were slowed {counters['thermal']:.0f} times since the machine started{seconds}"


def _clocks(counters: dict[str, float], root: Path) -> str:
    now = (
        f"{counters['mhz']:.0f} MHz now"
        if "mhz" in counters
        else "the kernel states no frequency here"
    )
    governor = read_text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    return now + (f", governor {governor}" if governor else "")
