"""Metrics of an arm that follow from what an outcome holds of it: a worker states them, and an
outcome from elsewhere must state the same. Imports no torch.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeps.model.metrics import metric
from sweeps.model.outcome import ArmOutcome, MetricValue, Outcome, Predictions, Samples, unpack
from sweeps.model.profile import ArmProfile
from sweeps.stats.quality import Interval, of_arm, share
from sweeps.stats.timing import Estimate, median, outliers

if TYPE_CHECKING:
    from numpy.typing import NDArray

PER_SECOND = {"s": 1.0, "ms": 1e3}
"""What one second is in the units of times."""
CLOCKS_DIFFER, EVENT_S = 1e-3, 1e-6
"""How far the clock of CUDA events and the host's may differ: as a share, and for the two events of
a sample."""


def metric_value(
    name: str,
    value: float,
    *,
    n: int | None = None,
    low: float | None = None,
    high: float | None = None,
) -> MetricValue:
    """A value in the unit of its declaration. Raises `KeyError` for a name that is not declared."""
    return MetricValue(name=name, value=value, unit=metric(name).unit, n=n, low=low, high=high)


def estimated(name: str, estimate: Estimate | Interval, scale: float = 1) -> MetricValue:
    """An estimate times `scale`; an interval that is open, because too few samples bound it, is
    left out.
    """
    value, low, high = (each * scale for each in (estimate.value, estimate.low, estimate.high))
    if not np.isfinite([low, high]).all():
        return metric_value(name, value, n=estimate.n)
    return metric_value(name, value, n=estimate.n, low=low, high=high)


def median_time(name: str, seconds: "NDArray[Any] | list[float]") -> MetricValue:
    """The median of some seconds, in the unit of the declaration."""
    return estimated(name, median(seconds), PER_SECOND[metric(name).unit])


def own_times(table: Sequence[Sequence[float]], samples: Samples, arm: int) -> "NDArray[Any]":
    """The times of an arm in a table of the shape of the samples, of all its columns."""
    columns = [column for column, index in enumerate(samples.arms) if index == arm]
    return np.array(table)[:, columns].ravel()


def sampled_metrics(samples: Samples, arm: int) -> list[MetricValue]:
    """The medians of an arm's times, by the metrics that its samples are, and the share of
    outliers.
    """
    walls = own_times(samples.seconds, samples, arm)
    tables = samples.series or {"latency": samples.seconds}
    if not samples.series and samples.event_seconds is not None:
        tables = {**tables, "device_latency": samples.event_seconds}
    return [
        *(median_time(name, own_times(table, samples, arm)) for name, table in tables.items()),
        metric_value("outlier_share", float(outliers(walls).mean()), n=len(walls)),
    ]


def burst_times(samples: Samples, arm: int) -> "NDArray[Any]":
    """Seconds per forward of an arm in steady running, of a visit that measured it."""
    return np.array(samples.bursts)[:, list(dict.fromkeys(samples.arms)).index(arm)]


def possible(device_s: "NDArray[Any]", wall_s: "NDArray[Any]", inner: int) -> bool:
    """Whether times between CUDA events, per forward of samples of `inner`, can lie inside the wall
    times around them.

    Two clocks: events have a resolution of about 0.5 us, and the drivers' time stamps drift by
    parts in a thousand at most.
    """
    return bool((device_s <= wall_s * (1 + CLOCKS_DIFFER) + EVENT_S / inner).all())


def possible_times(samples: Samples, arm: int) -> bool:
    """Whether those of an arm can; true where no events were timed."""
    if samples.event_seconds is None:
        return True
    device_s, wall_s = (
        own_times(table, samples, arm) for table in (samples.event_seconds, samples.seconds)
    )
    return possible(device_s, wall_s, samples.inner[0])


def steady_throughput(samples: Samples, arm: int, batch: int, ratio: float) -> MetricValue:
    """Items per second by the bursts; in a visit without them its samples times `ratio`, that of
    steady running in earlier ones.
    """
    steady_s = (
        ratio * own_times(samples.seconds, samples, arm)
        if samples.bursts is None
        else burst_times(samples, arm)
    )
    return estimated("throughput", median(batch / steady_s))


def accuracy_metrics(predictions: Predictions, arm: int) -> list[MetricValue]:
    """Shares of images whose true class is the first, and among the first five."""
    rank = unpack(of_arm(predictions.arms, arm).rank, "i2")
    return [estimated("top1", share(rank == 0)), estimated("top5", share(rank < 5))]


def text_metrics(
    nll: Sequence[float], tokens: Sequence[int], sizes: Sequence[int], characters: Sequence[int]
) -> list[MetricValue]:
    """How well an arm predicts a text, by the nats and tokens of its windows, their bytes and their
    characters.
    """
    rows = {
        "bits_per_byte": sum(nll) / (sum(sizes) * math.log(2)),
        "perplexity": math.exp(min(sum(nll) / sum(tokens), 700.0)),
        "characters_scored": sum(characters),
        "tokens_scored": sum(tokens),
    }
    return [metric_value(name, value, n=len(nll)) for name, value in rows.items()]


def wall_metric(profile: ArmProfile) -> MetricValue:
    """The wall without a profiler of the phase of a profile."""
    return metric_value(f"{profile.phase}_wall", 1e3 * (profile.wall_s or 0.0))


def repeated_metrics(outcome: Outcome, arm: ArmOutcome, batch: int) -> Iterator[MetricValue]:
    """The metrics of an arm that follow from its samples, predictions, scores or profiles."""
    index, stated = arm.arm, {each.name: each.value for each in arm.metrics}
    samples, texts, images = outcome.samples, outcome.text_scores, outcome.predictions
    if samples is not None and index in samples.arms:
        yield from sampled_metrics(samples, index)
        if (ratio := stated.get("steady_ratio")) is not None:
            yield steady_throughput(samples, index, batch, ratio)
    if images is not None:
        yield from accuracy_metrics(images, index)
    if texts is not None:
        own = of_arm(texts.arms, index)
        packed = (own.nll, own.tokens, texts.bytes, texts.characters)
        columns = zip(packed, ("f8", "i4", "i4", "i4"), strict=True)
        yield from text_metrics(*(unpack(text, dtype).tolist() for text, dtype in columns))
    for profile in outcome.profiles or ():
        if profile.arm == index:
            yield wall_metric(profile)
