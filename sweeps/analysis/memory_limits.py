"""Where arms no longer fit into memory: a failure that is a point on their curve."""

from collections.abc import Sequence
from typing import NamedTuple

from sweeps.analysis.rows import FailureRow, SpeedupRow


class MemoryLimit(NamedTuple):
    """An arm that ran out of memory under a condition, whatever the size of the input."""

    row: FailureRow
    """At the smallest such size."""
    from_here_on: bool
    """Whether no larger size was measured."""


def memory_limits(
    failures: Sequence[FailureRow], points: Sequence[SpeedupRow]
) -> list[MemoryLimit]:
    """One for each arm and condition; `points` are what was measured of the same sweep."""
    smallest: dict[tuple[object, ...], FailureRow] = {}
    for row in failures:
        if row.reason == "out_of_memory":
            known = smallest.setdefault(_curve(row), row)
            if _size(row) < _size(known):
                smallest[_curve(row)] = row
    largest: dict[tuple[object, ...], float] = {}
    for point in points:
        curve = _curve(point)
        largest[curve] = max(largest.get(curve, 0.0), _size(point))
    return [
        MemoryLimit(row, largest.get(curve, 0.0) < _size(row)) for curve, row in smallest.items()
    ]


def _curve(row: FailureRow | SpeedupRow) -> tuple[object, ...]:
    """What all sizes of one curve share."""
    return (
        *(row.host, row.environment, row.kind, row.method, row.params, row.baseline),
        *(row.model, row.weights, row.dtype, row.attention, row.batch_size, row.runtime),
        *(row.new_tokens, row.kv_cache, row.decoding, row.exclusive),
    )


def _size(row: FailureRow | SpeedupRow) -> float:
    return row.image_size or row.prompt_tokens or 0.0
