"""Where arms no longer fit into memory: a failure that is a point on their curve."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sweeps.analysis.rows import FailureRow, SpeedupRow


class MemoryLimit(NamedTuple):
    """An arm that ran out of memory under a condition, whatever the size of the input."""

    row: FailureRow
    """At the smallest such size."""
    from_here_on: bool
    """Whether no larger size was measured."""
    tokens: float | None = None
    """Of the baseline at this size, by the points of the model: as many there, or in proportion to
    the pixels."""
    gmacs: float | None = None
    """Of the baseline; `None` where no arm was measured at this size."""


def memory_limits(
    failures: Sequence[FailureRow], points: Sequence[SpeedupRow]
) -> dict[tuple[object, ...], MemoryLimit]:
    """One for each arm and condition, by `curve_key`; `points` are what was measured of the same
    sweep.
    """
    smallest: dict[tuple[object, ...], FailureRow] = {}
    for row in failures:
        if row.reason == "out_of_memory":
            known = smallest.setdefault(curve_key(row), row)
            if _size(row) < _size(known):
                smallest[curve_key(row)] = row
    largest: dict[tuple[object, ...], float] = {}
    by_size: dict[tuple[str, float], SpeedupRow] = {}
    for point in points:
        curve = curve_key(point)
        largest[curve] = max(largest.get(curve, 0.0), _size(point))
        by_size[point.model, _size(point)] = point
    return {
        curve: MemoryLimit(row, largest.get(curve, 0.0) < _size(row), *_place(row, by_size))
        for curve, row in smallest.items()
    }


def _place(
    row: FailureRow, by_size: Mapping[tuple[str, float], SpeedupRow]
) -> tuple[float | None, float | None]:
    """Tokens and GMACs of the baseline at the size of a failure."""
    if (same := by_size.get((row.model, _size(row)))) is not None:
        return same.tokens, same.gmacs_baseline
    other = next((point for (model, _), point in by_size.items() if model == row.model), None)
    if row.image_size is None or other is None or not other.image_size or other.tokens is None:
        return row.prompt_tokens, None
    return round(other.tokens * (row.image_size / other.image_size) ** 2), None


def curve_key(row: FailureRow | SpeedupRow) -> tuple[object, ...]:
    """What all sizes of one curve share."""
    return (
        *(row.host, row.environment, row.kind, row.method, row.params, row.baseline),
        *(row.model, row.weights, row.dtype, row.attention, row.batch_size, row.runtime),
        *(row.new_tokens, row.kv_cache, row.decoding, row.exclusive),
    )


def _size(row: FailureRow | SpeedupRow) -> float:
    return row.image_size or row.prompt_tokens or 0.0
