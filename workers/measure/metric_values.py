"""Values of metrics."""

from collections.abc import Mapping

from sweeps.outcome import MetricValue
from sweeps.stats.timing import Estimate


def row(name: str, estimate: Estimate, unit: str, scale: float = 1) -> MetricValue:
    """`estimate` as a metric; an interval that too few samples leave open is left out."""
    closed: Mapping[str, float] = {}
    if estimate.half_width != float("inf"):
        closed = {"low": estimate.low * scale, "high": estimate.high * scale}
    return MetricValue(name=name, value=estimate.value * scale, unit=unit, n=estimate.n, **closed)
