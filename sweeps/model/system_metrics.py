"""System metrics: what the monitors read around timing and between its rounds, and which of it is
worth a note beside a result.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

SYSTEM_METRICS: Mapping[str, str] = {
    "seconds": "s: time of the rounds",
    "load_before": "processes that run or wait to, mean of the minute before the rounds",
    "load_after": "the same at their end",
    "process_cores": "CPU time of this process over wall time",
    "foreign_cores": "CPU time of other processes on the cores it may use, over wall time",
    "stolen_cores": (
        "CPU time that the host of a virtual machine took from these cores, over wall time"
    ),
    "involuntary_switches": "times that a thread of this process was made to wait for another",
    "cpu_mhz_min": (
        "MHz: least mean frequency of the first cores it may use, of the readings between rounds"
    ),
    "cpu_mhz_max": "MHz: largest of these readings",
    "quota_throttled_s": "s: time, over all CPUs, in which a cgroup quota withheld them",
    "quota_throttles": "periods in which that happened",
    "thermal_throttles": "times that heat slowed a core that it may use, or their package",
    "thermal_throttled_s": "s: how long, over all these cores",
    "cpu_energy_j": (
        "J: energy of the processors' packages and their memory, whoever used them (RAPL)"
    ),
    "cpu_power_mean": "W: the same over the time of the rounds",
    "gpu_sm_clock_min": "MHz",
    "gpu_sm_clock_max": "MHz",
    "gpu_memory_clock_min": "MHz",
    "gpu_temperature_max": "degrees Celsius",
    "gpu_power_mean": "W",
    "gpu_event_reasons": "bits of NVML's clocks event reasons, all that were seen",
    "gpu_power_capped": "share of readings at which a software power cap held",
    "gpu_reason_*": "share of readings at which this clocks event reason held; those seen alone",
    "gpu_processes": "most processes that computed on the GPU at once, this one included",
    "gpu_memory_used_max": "MiB: most memory of the GPU in use by all",
    "gpu_memory_foreign_max": "MiB: most that other processes had of it",
    "equal_arms_ratio": "ratio of the baseline's two columns",
    "equal_arms_errors": "its distance from 1 in standard errors",
    "threads_spin": "1 if threads that wait keep their cores busy",
    "threads_pinned": "1 if each thread stays on a core",
    "waited_s": "s: how long other processes kept the cores busy and were waited for",
    "memory_growth_mib": "MiB that the job left behind, where that was too much",
    "worker_unfit": "1 if the process may run no other job",
}
"""Name of each reading (`*`: the rest of a name), with its unit and meaning. What a machine does
not offer is absent, never 0."""

SYSTEM_SERIES: Mapping[str, str] = {
    "seconds": "s since timing began",
    "rounds": "rounds done by then",
    "load": "processes that run or wait to, mean of the last minute",
    "cpu_mhz": "MHz, mean of the first cores it may use",
    "foreign_s": "s of CPU time of other processes on these cores since timing began",
    "stolen_s": "s of CPU time that the host of a virtual machine took since then",
    "quota_throttled_s": "s in which a cgroup quota withheld CPUs since then",
    "cpu_energy_j": "J since then",
    "gpu_sm_clock": "MHz",
    "gpu_memory_clock": "MHz",
    "gpu_temperature": "degrees Celsius",
    "gpu_power": "W",
    "gpu_reasons": "bits of NVML's clocks event reasons",
}
"""Columns of `Outcome.system_series`: the last reading before the end of a round, where a machine
offers it."""

RATES: Mapping[str, str] = {
    "load": "load, processes that run or wait",
    "cpu_mhz": "clock of the CPU, MHz",
    "foreign_cores": "used by others, cores",
    "stolen_cores": "stolen by the host, cores",
    "quota_throttled": "withheld by a quota, CPUs",
    "cpu_power": "power of the CPU, W",
    "gpu_sm_clock": "clock of the SMs, MHz",
    "gpu_memory_clock": "clock of the GPU's memory, MHz",
    "gpu_temperature": "temperature of the GPU, °C",
    "gpu_power": "power of the GPU, W",
}
"""What readings between rounds show at each time, for people, in the order in which it is shown."""
_COUNTERS = {
    "foreign_s": "foreign_cores",
    "stolen_s": "stolen_cores",
    "quota_throttled_s": "quota_throttled",
    "cpu_energy_j": "cpu_power",
}
"""Columns of `SYSTEM_SERIES` that count since timing began, and the rate of each."""
REASON = "gpu_reason_"
"""Begins the names of the shares of clocks event reasons."""
_USUAL = frozenset(
    {"gpu_idle", "applications_clocks_setting", "display_clock_setting", "sync_boost"}
)
"""Reasons that do not slow a measurement: an idle moment between rounds, or clocks that were set on
purpose."""
_CLOCKS = (("cpu_mhz", "CPU", "{:.0f}"), ("gpu_sm_clock", "SMs", "{:.0f}"))
STEADY = 0.9
"""Clocks that fell below this share of their largest reading are worth a note."""
FOREIGN, STOLEN = 0.1, 0.05
"""Cores from which on others' work is worth a note."""
CAPPED = 0.1
"""Share of readings under a power cap."""
FOREIGN_MIB = 256.0


def worst(readings: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Those of several attempts as one: of minima the least, of everything else the largest."""
    found: dict[str, float] = {}
    for each in readings:
        for name, value in each.items():
            known = found.get(name, value)
            found[name] = min(known, value) if name.endswith("_min") else max(known, value)
    return found


def has_clock(readings: Mapping[str, float]) -> bool:
    """Whether a clock could be read, so that steady clocks are known to be steady."""
    return any(f"{name}_min" in readings for name, _, _ in _CLOCKS)


def notes_on(readings: Mapping[str, float]) -> Iterator[str]:
    """What stands out in the readings of an attempt, a few words each; nothing of a quiet machine
    with steady clocks.
    """
    if (foreign := readings.get("foreign_cores", 0.0)) >= FOREIGN:
        yield f"others used {foreign:.2f} cores"
    if (stolen := readings.get("stolen_cores", 0.0)) >= STOLEN:
        yield f"{stolen:.2f} cores stolen"
    if (withheld := readings.get("quota_throttled_s", 0.0)) > 0:
        yield f"quota withheld {withheld:.2g} s"
    if times := readings.get("thermal_throttles", 0.0):
        yield f"{times:.0f} thermal throttles"
    for name, device, form in _CLOCKS:
        low, high = readings.get(f"{name}_min"), readings.get(f"{name}_max")
        if low is not None and high is not None and low < STEADY * high:
            yield f"{device} at {form.format(low)} to {form.format(high)} MHz"
    for name, share in sorted(readings.items()):
        reason = name.removeprefix(REASON)
        if (
            reason != name
            and reason not in _USUAL
            and share >= (CAPPED if reason == "sw_power_cap" else 0.0)
        ):
            yield f"{reason.replace('_', ' ')} at {share:.0%} of readings"
    if (others := readings.get("gpu_memory_foreign_max", 0.0)) >= FOREIGN_MIB:
        yield f"others had {others / 1024:.2g} GiB of the GPU"


def rates(series: Mapping[str, Sequence[float | None]]) -> dict[str, list[float | None]]:
    """Columns of `SYSTEM_SERIES` as what holds at each reading: `seconds`, `rounds` and those of
    `RATES` that are known.

    What counts since timing began becomes its mean rate since the reading before; the first is the
    mean since timing began.
    """
    found: dict[str, list[float | None]] = {
        name: list(series[name]) for name in ("seconds", "rounds") if name in series
    }
    seconds = [value or 0.0 for value in series.get("seconds", ())]
    for name, column in series.items():
        if name in _COUNTERS:
            found[_COUNTERS[name]] = list(_rates(seconds, column))
        elif name in RATES:
            found[name] = list(column)
    return found


def _rates(seconds: Sequence[float], counts: Sequence[float | None]) -> Iterator[float | None]:
    since, before = 0.0, 0.0
    for now, count in zip(seconds, counts, strict=True):
        if count is None or now <= since:
            yield None
            continue
        yield (count - before) / (now - since)
        since, before = now, count
