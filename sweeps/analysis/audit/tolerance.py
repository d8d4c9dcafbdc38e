"""Tolerance: how far numbers of a table may lie apart by rounding and noise alone."""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from sweeps.importers.measurement import Measurement

TYPICAL_NOISE = 0.03
"""Relative standard deviation of a time in a table that states none. A median of 30 forwards on a
shared CPU is known to 3.6 % (half of its 95 % interval; our own quickstart), GPU reports state up
to 2 %."""
FAMILY_ERROR = 1e-4
"""Chance that a rule finds something in a whole table where only noise is at work."""


@cache
def quantile_of(comparisons: int) -> float:
    """Standard deviations that one of so many comparisons exceeds by chance with `FAMILY_ERROR`."""
    return float(-ndtri(FAMILY_ERROR / (2 * max(comparisons, 1))))


def rounding(value: float) -> float:
    """Relative half step of a number as it is written: of 7.6 that is 0.05 / 7.6. Zeros at the end
    are lost.
    """
    return float(roundings(np.array([float(value)]))[0])


def roundings(values: Any) -> "np.ndarray[Any, Any]":
    """`rounding` of each number; 0 below 1e-4, where numbers are written with exponents, and where
    there is none.
    """
    sizes = np.abs(np.asarray(values, dtype=float))
    found = np.zeros(sizes.shape)
    left = np.flatnonzero((sizes >= 1e-4) & (sizes < 1e16))
    for decimals in range(18):
        if not len(left):
            break
        here = sizes[left]
        done = np.round(here, decimals) == here
        found[left[done]] = 0.5 * 10.0**-decimals / here[done]
        left = left[~done]
    return found


def allowed(values: Sequence[float], noise: float, comparisons: int) -> float:
    """How far the logarithm of a product or ratio of these numbers may be from its true value, one
    of so many `comparisons`.
    """
    return float(allowed_each([np.array([value]) for value in values], noise, comparisons)[0])


def allowed_each(columns: Sequence[Any], noise: Any, comparisons: int) -> "np.ndarray[Any, Any]":
    """`allowed` for each row of columns of numbers."""
    spread = quantile_of(comparisons) * noise * math.sqrt(len(columns))
    return np.asarray(spread + sum(np.log1p(roundings(column)) for column in columns))


def place_of_row(row: Measurement) -> str:
    """`with_tr, 448 px, batch 8`."""
    parts = [row.label or row.method or "", row.model or "", row.setting or ""]
    parts += (
        [f"{row.image_size} px"]
        if row.image_size
        else [f"{row.tokens} tokens"]
        if row.tokens
        else []
    )
    parts += [f"batch {row.batch}"] if row.batch else []
    return ", ".join(part for part in parts if part) or "a row"


def in_words(values: Iterable[object]) -> str:
    """`1, 2 and 4`, each once."""
    words = list(dict.fromkeys(map(str, values)))
    return (
        words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
    )
