"""Declarations of metrics: name, unit, how a metric is compared, which direction is better, and
when it is read.

Every layer iterates over these declarations; none branches on a metric's name. To add a metric,
declare it here and measure it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from sweeps.model.kinds import KINDS, Modality

Compared = Literal["ratio", "amount", "difference"]
Read = Literal["round", "item", "once", "counter"]
Better = Literal["lower", "higher"]


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """What is known of a metric before it is measured."""

    name: str
    """`*` in it stands for the rest of the name of each member of a family, such as
    `zeroshot_*_acc`."""
    unit: str
    label: str
    """For people: `time to the first token`."""
    read: Read = "once"
    """`round`: a sample of every round of a timed job, pooled over attempts; `item`: for every
    image or text window; `once`: in a pass of its own; `counter`: counted by a method. Other
    counters are the method's own, and not declared."""
    compared: Compared | None = None
    """How arms are compared, if they are: `ratio`, baseline over arm, of times in every round;
    `amount`, the same of what a pass of its own reads; `difference`, by how much the arm is
    worse."""
    repeatable: bool = False
    """Whether an amount that is read again is the same, so that one reading is enough for a
    verdict."""
    better: Better | None = None
    floor: float = 0.0
    """Effects that count as none: a share of 1 for a ratio, else in `unit`."""
    digits: int = 3
    """Decimals of an effect as it is printed."""
    stage: str | None = None
    """Suffix of the metrics that hold the MACs of what it times (`gmacs_ttft`), where it times a
    part of a run."""
    modality: Modality | None = None
    """Of the models that have it; `None`: of all."""
    series: bool = True
    """Whether its samples are a series of their own; else they are `Samples.seconds`, the time of a
    forward."""
    work: str | None = None
    """For people: what it times, whose MACs stand beside it."""


Metrics = Iterator[MetricSpec]
SPEED_FLOOR = 0.02
"""Speed-ups whose interval lies within this share of 1 are called the same."""
INTERVAL = "99.5 %"
"""Level of the intervals of speed-ups in words: what `sweeps.stats.pooling` spends on what was
measured so far."""


def _time(name: str, modality: Modality | None, label: str, work: str, **more: Any) -> MetricSpec:
    """A time that every round samples, whose ratio is a speed-up."""
    return MetricSpec(
        name=name,
        modality=modality,
        unit="ms",
        label=label,
        work=work,
        read="round",
        compared="ratio",
        better="lower",
        floor=SPEED_FLOOR,
        **more,
    )


def _amount(
    unit: str, modality: Modality | None, /, *, repeatable: bool = False, **labels: str
) -> Metrics:
    """Amounts read once in an attempt, of which less is better, each with its label."""
    amount: Any = {"compared": "amount", "floor": SPEED_FLOOR, "repeatable": repeatable}
    return (replace(spec, **amount) for spec in _shown(unit, modality, "lower", "once", **labels))


def _loss(name: str, modality: Modality, unit: str, label: str, **more: Any) -> MetricSpec:
    """Read for every item of the data; arms are compared by how much they lose."""
    return MetricSpec(
        name=name,
        modality=modality,
        unit=unit,
        label=label,
        read="item",
        compared="difference",
        **more,
    )


def _shown(
    unit: str,
    modality: Modality | None,
    better: Better | None = None,
    /,
    read: Read = "once",
    **labels: str,
) -> Metrics:
    """Metrics that are not compared, each with its label; `ANY` in a name stands for `*`."""
    return (
        MetricSpec(
            name=name.replace("ANY", "*"),
            label=label,
            unit=unit,
            modality=modality,
            better=better,
            read=read,
        )
        for name, label in labels.items()
    )


_METRICS = (
    _time("latency", None, "latency", "an image", series=False),
    _time("ttft", "language", "time to the first token", "the prompt", stage="ttft"),
    _time("tpot", "language", "time per output token", "one output token", stage="tpot"),
    _time("time_per_char", "language", "time per character", "a whole run"),
    # By 0.2 points the same weights differ between careful evaluations: DeiT-B has 81.8 % in its
    # paper and 81.98 % in timm, for
    # the resizing filter and the crop alone.
    _loss("top1", "vision", "%", "top-1 accuracy", better="higher", floor=0.2, digits=2),
    # About 1 % of the perplexity of a token of three bytes.
    _loss(
        "bits_per_byte", "language", "bit", "bits per byte", better="lower", floor=0.005, digits=4
    ),
    *_shown("%", "vision", "higher", read="item", top5="top-5 accuracy"),
    *_shown("nat", None, "lower", read="item", kl="KL divergence from the baseline"),
    *_shown(
        *("logit", "vision", "higher"),
        read="item",
        margin_change="change of margin",
        margin_change_p05="change of margin, 5 % quantile",
    ),
    *_shown("1", "vision", read="item", mcnemar_p="McNemar's exact p"),
    *_shown(
        *("images", "vision"),
        read="item",
        only_baseline_correct="images only the baseline has right",
        only_arm_correct="images only the arm has right",
        unreadable="images that could not be read",
    ),
    *_shown("1", "language", "lower", read="item", perplexity="perplexity per token"),
    *_shown(
        *("%", "language", "higher"),
        read="item",
        top1_agreement="agreement of the most likely token",
        agreement="agreement of the most likely token, of an arm with the first baseline",
    ),
    *_shown("windows", "language", read="item", windows_skipped="windows without a likelihood"),
    *_shown("B", "language", read="item", bytes_scored="bytes scored"),
    *_shown(
        "1",
        "language",
        read="item",
        characters_scored="characters scored",
        tokens_scored="tokens scored",
    ),
    *_shown("ms", "vision", "lower", device_latency="latency on the device"),
    *_shown("images/s", "vision", "higher", throughput="throughput"),
    *_shown(
        "1",
        "vision",
        steady_ratio="time of a forward in steady running over that of one after another arm",
    ),
    *_shown("s", "vision", "lower", seconds_to_compile="time to compile or export"),
    *_shown(
        *("1", "vision", "lower"),
        logit_difference="largest difference of logits from eager's, relative to the largest logit",
    ),
    *_amount("J", "vision", energy_per_image="energy per image"),
    *_shown("1", "vision", "lower", relative_cost="GMACs relative to the baseline"),
    *_shown(
        "1",
        "vision",
        diversity="diversity of tokens",
        cka="similarity of features to those of the baseline (CKA)",
    ),
    *_shown("degree", "vision", "lower", angle="angle between features and those of the baseline"),
    *_shown("ms", "language", "lower", tpot_p95="time per output token, 95 % quantile"),
    *_shown(
        *("1/s", "language", "higher"),
        prefill_tokens_per_s="tokens per second of prefill",
        decode_tokens_per_s="tokens per second of decoding",
        chars_per_s="characters per second",
        base_tokens_per_s="tokens of the base tokenizer per second",
    ),
    *_shown("s", "language", "lower", tokenizer_s="time of the tokenizer", load_s="time to load"),
    *_shown(
        *("GB/s", "language", "higher"),
        achieved_gb_per_s="bandwidth of reading the weights",
        peak_gb_per_s="peak memory bandwidth",
    ),
    *_shown(
        *("B", "language", "lower"),
        kv_bytes_needed="KV cache needed",
        kv_bytes_resident="KV cache resident",
        kv_bytes_virtual="KV cache reserved",
    ),
    *_shown(
        *("MiB", "language", "lower"),
        rss_isolated="memory in a process of its own, before the run",
        peak_rss_isolated="peak memory in a process of its own",
        cuda_peak_allocated_isolated="peak CUDA memory allocated, in a process of its own",
        cuda_peak_reserved_isolated="peak CUDA memory reserved, in a process of its own",
    ),
    *_shown(
        *("MiB", None, "lower"),
        rss_before="memory before the run",
    ),
    *_amount("MiB", None, repeatable=True, peak_rss="peak memory"),
    *_shown("MiB", None, "lower", cuda_allocated_before="CUDA memory before the run"),
    *_amount("MiB", None, repeatable=True, cuda_peak_allocated="peak CUDA memory allocated"),
    *_shown("MiB", None, "lower", cuda_peak_reserved="peak CUDA memory reserved"),
    *_shown("W", None, "lower", mean_power="mean power"),
    *_shown("1", None, outlier_share="share of outliers"),
    *_amount("J", "language", energy_per_token="energy per token"),  # noqa: S106 - no password
    *_shown("J", "language", "lower", energy_per_char="energy per character"),
    *_shown(
        *("GMAC", "language", "lower"),
        gmacs_ttft="GMACs until the first token",
        gmacs_tpot="GMACs per output token",
        gmacs_overhead_ttft="GMACs of the methods themselves until the first token",
        gmacs_overhead_tpot="GMACs of the methods themselves per output token",
    ),
    *_shown("1", "language", characters="characters generated", tokens_decoded="tokens decoded"),
    *_shown("ms", None, "lower", forward_wall="forward without a profiler, beside its profile"),
    *_shown(
        *("ms", "language", "lower"),
        prefill_wall="prefill without a profiler, beside its profile",
        decode_wall="decode step without a profiler, beside its profile",
    ),
    *_shown(
        *("1", "language"),
        read="counter",
        achieved_sparsity="achieved sparsity",
        kernel_calls="calls of the sparse kernel",
        fallback_calls="calls without the sparse kernel",
    ),
)
METRICS: Mapping[str, MetricSpec] = {metric.name: metric for metric in _METRICS}
"""By name."""


FAMILIES: tuple[MetricSpec, ...] = (
    _loss(
        "zeroshot_*_acc",
        "language",
        "1",
        "zero-shot accuracy",
        better="higher",
        floor=0.0,
        digits=3,
    ),
    *_shown(
        "bit", "language", "lower", zeroshot_ANY_bits_per_byte="bits per byte in a zero-shot task"
    ),
    *_shown("1", "language", "higher", zeroshot_ANY="zero-shot score"),
    *_shown("degree", "vision", "lower", angle_ANY="angle between features"),
    *_shown("1", "vision", "higher", cka_ANY="similarity of features (CKA)"),
)
"""Metrics of which there are as many as blocks, tasks or methods, first match first; `*` stands for
the rest of a name."""


def find_metric(name: str) -> MetricSpec | None:
    """The declaration of a metric or of its family; `None` where there is none, as for what a
    method of the user's counts.
    """
    return METRICS.get(name) or next(
        (family for family in FAMILIES if fnmatchcase(name, family.name)), None
    )


def metric(name: str) -> MetricSpec:
    """The declaration of a metric. Raises `KeyError` with the known names."""
    if (found := find_metric(name)) is None:
        raise KeyError(
            f"metric {name!r} is not declared in sweeps/model/metrics.py; declared are"
            f" {', '.join(METRICS)}"
        )
    return found


def compared(names: Iterable[str], how: Compared) -> tuple[MetricSpec, ...]:
    """Those of the named metrics that are compared in this way."""
    return tuple(spec for name in names if (spec := metric(name)).compared == how)


COMPARED_BY: tuple[str, ...] = tuple(
    dict.fromkeys(name for kind in KINDS.values() for name in kind.metrics)
)
"""The metrics by which kinds compare arms, in the order of the kinds."""


def timed_metrics() -> tuple[str, ...]:
    """The times by which arms are compared, those that a kind shows first before its others."""
    return tuple(name for name in COMPARED_BY if METRICS[name].read == "round")


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
    "spin_turn_ns": "ns: one turn of a thread that spins; by it and the next two turns are chosen",
    "wake_us": "us: until a thread that sleeps runs again",
    "operator_gap_us": "us: between two parallel operators of a small model",
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
