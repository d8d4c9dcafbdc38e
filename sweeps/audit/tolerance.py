"""Tolerance: how far numbers of a table may lie apart by rounding and noise alone."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any

from scipy.special import ndtri

from sweeps.references.measurement import Measurement, MeasurementTable

TYPICAL_NOISE = 0.03
"""Relative standard deviation of a time in a table that states none. A median of 30 forwards on a shared CPU is known to 3.6 %
(half of its 95 % interval; our own quickstart), GPU reports state up to 2 %."""
FAMILY_ERROR = 1e-4
"""Chance that a rule finds something in a whole table where only noise is at work."""


def noise_of(table: MeasurementTable, rows: Iterable[Measurement]) -> float:
    """Relative standard deviation of a time: the largest that the rows state, else the table's, else `TYPICAL_NOISE`."""
    stated = [row.noise for row in rows if row.noise is not None]
    return max(stated, default=table.noise or TYPICAL_NOISE)


@cache
def quantile_of(comparisons: int) -> float:
    """Standard deviations that one of so many comparisons exceeds by chance with `FAMILY_ERROR`."""
    return float(-ndtri(FAMILY_ERROR / (2 * max(comparisons, 1))))


def rounding(value: float) -> float:
    """Relative half step of a number as it is written: of 7.6 that is 0.05 / 7.6. Zeros at the end are lost."""
    text = repr(float(value))
    if "e" in text or value == 0:
        return 0.0
    decimals = text.partition(".")[2].rstrip("0")
    return 0.5 * 10.0 ** -len(decimals) / abs(value)


def allowed(values: Sequence[float], noise: float, comparisons: int) -> float:
    """How far the logarithm of a product or ratio of these numbers may be from its true value, one of so many `comparisons`."""
    spread = quantile_of(comparisons) * noise * math.sqrt(len(values))
    return spread + sum(math.log1p(rounding(value)) for value in values)


def grouped(rows: Iterable[Measurement], key: Callable[[Measurement], Hashable]) -> dict[Any, list[Measurement]]:
    """Rows with equal keys, in the order of the table."""
    found: dict[Any, list[Measurement]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def arm_of(row: Measurement) -> tuple[object, ...]:
    """What rows that differ in their size and batch alone have in common."""
    return (row.label, row.method, row.device, row.model, row.setting, row.keep_rate, row.stages, row.r, row.sparsity)


def curve_of_batches(row: Measurement) -> tuple[object, ...]:
    """What rows that differ in their batch alone have in common."""
    return (*arm_of(row), row.image_size, row.tokens, row.gmacs)


def place_of_row(row: Measurement) -> str:
    """`with_tr, 448 px, batch 8`."""
    parts = [row.label or row.method or "", row.model or "", row.setting or ""]
    parts += [f"{row.image_size} px"] if row.image_size else [f"{row.tokens} tokens"] if row.tokens else []
    parts += [f"batch {row.batch}"] if row.batch else []
    return ", ".join(part for part in parts if part) or "a row"


def in_words(values: Iterable[object]) -> str:
    """`1, 2 and 4`, each once."""
    words = list(dict.fromkeys(map(str, values)))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
