"""Values of metrics, made through their declarations in `sweeps.model.metrics`: a name that is not
declared is an error.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeps.model.metrics import METRICS, metric
from sweeps.model.outcome import MetricValue
from sweeps.stats.quality import Interval
from sweeps.stats.timing import Estimate, median

PER_SECOND = {"s": 1.0, "ms": 1e3}
"""What one second is in the units of times."""


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


def counter_value(name: str, count: float) -> MetricValue:
    """What a method counted. Most counters are the method's own; one named like another metric
    raises `ValueError`.
    """
    if name in METRICS and METRICS[name].read != "counter":
        raise ValueError(
            f"the counter {name!r} of a method has the name of a metric; rename it in the method's"
            " file"
        )
    return MetricValue(name=name, value=float(count), unit="1")
