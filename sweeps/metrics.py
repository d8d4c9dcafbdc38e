"""Declarations of metrics: name, unit, how a metric is compared, which direction is better, and when it is read.

Every layer iterates over these declarations; none branches on a metric's name. To add a metric, declare it here and measure it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    MetricSpec(name="throughput", unit="images/s", label="throughput", better="higher"),
)
METRICS: Mapping[str, MetricSpec] = {metric.name: metric for metric in _METRICS}
"""By name."""


def metric(name: str) -> MetricSpec:
    """The declaration of a metric. Raises `KeyError` with the known names."""
    if name not in METRICS:
        raise KeyError(f"metric {name!r} is not declared in sweeps/metrics.py; declared are {', '.join(METRICS)}")
    return METRICS[name]


def compared(names: Iterable[str], how: Comparison) -> tuple[MetricSpec, ...]:
    """Those of the named metrics that are compared in this way."""
    return tuple(METRICS[name] for name in names if METRICS[name].compared == how)
