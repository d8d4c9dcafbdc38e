"""Declarations of metrics: name, unit, how a metric is compared, which direction is better, and when it is read.

Every layer iterates over these declarations; none branches on a metric's name. To add a metric, declare it here and measure it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Comparison = Literal["ratio", "difference"]
Read = Literal["round", "item", "once"]


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """What is known of a metric before it is measured."""

    name: str
    unit: str
    label: str
    """For people: `time to the first token`."""
    read: Read = "once"
    """`round`: a sample of every round of a timed job; `item`: for every image or text window; `once`: in a pass of its own."""
    compared: Comparison | None = None
    """How an arm is compared with its baseline: baseline over arm, arm less baseline, or not at all."""
    better: Literal["lower", "higher"] | None = None
    floor: float = 0.0
    """Differences that count as none: a share of 1 for a ratio, else in `unit`."""
    digits: int = 3
    """Decimals of an effect as it is printed."""
    stage: str | None = None
    """Suffix of the metrics that hold the MACs of what it times (`gmacs_ttft`), where it times a part of a run."""
    work: str | None = None
    """For people: what it times, whose MACs stand beside it."""

    @property
    def pooled(self) -> bool:
        """Whether attempts are pooled: samples of rounds are new evidence, another pass over the same items is not."""
        return self.read == "round"


SPEED_FLOOR = 0.01
"""Ratios within 1 % of 1 count as the same."""

_METRICS = (
    MetricSpec(
        name="latency",
        unit="ms",
        label="latency",
        read="round",
        compared="ratio",
        better="lower",
        floor=SPEED_FLOOR,
        work="an image",
    ),
    MetricSpec(
        name="ttft",
        unit="ms",
        label="time to the first token",
        read="round",
        compared="ratio",
        better="lower",
        floor=SPEED_FLOOR,
        stage="ttft",
        work="the prompt",
    ),
    MetricSpec(
        name="tpot",
        unit="ms",
        label="time per output token",
        read="round",
        compared="ratio",
        better="lower",
        floor=SPEED_FLOOR,
        stage="tpot",
        work="one output token",
    ),
    MetricSpec(
        name="time_per_char",
        unit="ms",
        label="time per character",
        read="round",
        compared="ratio",
        better="lower",
        floor=SPEED_FLOOR,
        work="a whole run",
    ),
    MetricSpec(
        name="top1", unit="%", label="top-1 accuracy", read="item", compared="difference", better="higher", floor=0.2, digits=2
    ),
    MetricSpec(name="top5", unit="%", label="top-5 accuracy", read="item", compared="difference", better="higher", digits=2),
    MetricSpec(
        name="bits_per_byte",
        unit="bit",
        label="bits per byte",
        read="item",
        compared="difference",
        better="lower",
        floor=0.005,
        digits=4,
    ),
    MetricSpec(name="device_latency", unit="ms", label="latency on the device"),
    MetricSpec(name="outlier_share", unit="1", label="share of outliers"),
    MetricSpec(name="throughput", unit="images/s", label="throughput", better="higher"),
    MetricSpec(name="energy_per_image", unit="J", label="energy per image", better="lower"),
    MetricSpec(name="energy_per_token", unit="J", label="energy per token", better="lower"),
    MetricSpec(name="energy_per_char", unit="J", label="energy per character", better="lower"),
    MetricSpec(name="mean_power", unit="W", label="mean power"),
    MetricSpec(name="rss_before", unit="MiB", label="resident memory before"),
    MetricSpec(name="peak_rss", unit="MiB", label="peak resident memory", better="lower"),
    MetricSpec(name="cuda_allocated_before", unit="MiB", label="GPU memory allocated before"),
    MetricSpec(name="cuda_peak_allocated", unit="MiB", label="peak GPU memory allocated", better="lower"),
    MetricSpec(name="cuda_peak_reserved", unit="MiB", label="peak GPU memory reserved", better="lower"),
    MetricSpec(name="rss_isolated", unit="MiB", label="resident memory in a process of its own"),
    MetricSpec(name="peak_rss_isolated", unit="MiB", label="peak resident memory in a process of its own", better="lower"),
    MetricSpec(name="cuda_peak_allocated_isolated", unit="MiB", label="peak GPU memory allocated in a process of its own"),
    MetricSpec(name="cuda_peak_reserved_isolated", unit="MiB", label="peak GPU memory reserved in a process of its own"),
    MetricSpec(name="load_s", unit="s", label="time to load in a process of its own", better="lower"),
    MetricSpec(name="tpot_p95", unit="ms", label="95th percentile of the time per output token", better="lower"),
    MetricSpec(name="prefill_tokens_per_s", unit="1/s", label="prefill tokens per second", better="higher"),
    MetricSpec(name="decode_tokens_per_s", unit="1/s", label="decoded tokens per second", better="higher"),
    MetricSpec(name="chars_per_s", unit="1/s", label="characters per second", better="higher"),
    MetricSpec(name="base_tokens_per_s", unit="1/s", label="tokens of the base tokenizer per second", better="higher"),
    MetricSpec(name="tokenizer_s", unit="s", label="time in the tokenizer", better="lower"),
    MetricSpec(name="achieved_gb_per_s", unit="GB/s", label="achieved bandwidth", better="higher"),
    MetricSpec(name="peak_gb_per_s", unit="GB/s", label="peak bandwidth of the machine"),
    MetricSpec(name="kv_bytes_needed", unit="B", label="bytes that the KV cache needs", better="lower"),
    MetricSpec(name="kv_bytes_resident", unit="B", label="resident bytes of the KV cache", better="lower"),
    MetricSpec(name="kv_bytes_virtual", unit="B", label="virtual bytes of the KV cache"),
    MetricSpec(name="characters", unit="1", label="characters decoded"),
    MetricSpec(name="tokens_decoded", unit="1", label="tokens decoded"),
    MetricSpec(name="gmacs_ttft", unit="GMAC", label="GMACs to the first token"),
    MetricSpec(name="gmacs_tpot", unit="GMAC", label="GMACs per output token"),
    MetricSpec(name="gmacs_overhead_ttft", unit="GMAC", label="GMACs of the methods to the first token"),
    MetricSpec(name="gmacs_overhead_tpot", unit="GMAC", label="GMACs of the methods per output token"),
    MetricSpec(name="diversity", unit="1", label="diversity of the tokens"),
    MetricSpec(name="kl", unit="nat", label="KL divergence from the baseline", better="lower"),
    MetricSpec(name="margin_change", unit="logit", label="change of the margin"),
    MetricSpec(name="margin_change_p05", unit="logit", label="5th percentile of the change of the margin"),
    MetricSpec(name="cka", unit="1", label="CKA with the baseline, mean over blocks"),
    MetricSpec(name="cka_*", unit="1", label="CKA with the baseline"),
    MetricSpec(name="angle", unit="degree", label="angle to the baseline, mean over blocks"),
    MetricSpec(name="angle_*", unit="degree", label="angle to the baseline"),
    MetricSpec(name="relative_cost", unit="1", label="GMACs relative to the baseline", better="lower"),
    MetricSpec(name="perplexity", unit="1", label="perplexity", better="lower"),
    MetricSpec(name="agreement", unit="%", label="top-1 agreement with the baseline", better="higher"),
    MetricSpec(name="characters_scored", unit="1", label="characters scored"),
    MetricSpec(name="tokens_scored", unit="1", label="tokens scored"),
    MetricSpec(name="zeroshot_*_bits_per_byte", unit="bit", label="bits per byte in a zero-shot task", better="lower"),
    MetricSpec(name="zeroshot_*", unit="1", label="result in a zero-shot task"),
)
METRICS: Mapping[str, MetricSpec] = {metric.name: metric for metric in _METRICS}
"""By name."""


def metric(name: str) -> MetricSpec:
    """The declaration of a metric; one with a `*` declares all metrics that match. Raises `KeyError` with the known names."""
    if name in METRICS:
        return METRICS[name]
    found = next((spec for pattern, spec in METRICS.items() if "*" in pattern and fnmatchcase(name, pattern)), None)
    if found is None:
        raise KeyError(f"metric {name!r} is not declared in sweeps/metrics.py; declared are {', '.join(METRICS)}")
    return found


def compared(names: Iterable[str], how: Comparison) -> tuple[MetricSpec, ...]:
    """Those of the named metrics that are compared in this way."""
    return tuple(METRICS[name] for name in names if METRICS[name].compared == how)
