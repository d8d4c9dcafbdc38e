"""Surprises: how much of the time that saved MACs promise was saved, and the points that fall short
of it most.
"""

from collections.abc import Sequence
from math import inf, log
from typing import Any

import pandas as pd

from store.rows.frames import rows_of
from sweeps.model.flags import split_flags, wrong
from sweeps.number_format import is_missing
from sweeps.stats.pooling import realised_share

_ARM = ("method", "params")


def realised_interval(row: Any) -> tuple[float, float, float] | None:
    """The share of the promised saving that arrived (1: all of it) and its interval, of a row of
    `speedup` with `speedup_macs`.

    See `sweeps.stats.pooling.realised_share`. `None` where the speed-up has no interval.
    """
    promise, speedups = (
        getattr(row, "speedup_macs", None),
        (row.speedup, row.speedup_low, row.speedup_high),
    )
    if row.verdict == "insufficient" or any(map(is_missing, (promise, *speedups))):
        return None
    shares = [realised_share(speedup, promise) for speedup in speedups]
    known = [share for share in shares if share is not None]
    return (known[0], min(known), max(known)) if len(known) == len(shares) else None


def realised_text(row: Any) -> str:
    """`37 % [30, 44]`; a dash where there is no such share."""
    found = realised_interval(row)
    if found is None:
        return "-"
    share, low, high = (f"{100 * each + 0.0:.0f}" for each in found)
    return f"{share} % [{low}, {high}]"


def shortfall(row: Any) -> float:
    """By how much the log of the promised speed-up lies above the interval at least; 0 where the
    interval reaches it.

    Below all others where it is not known, or a flag marks the figures as wrong.
    """
    promise, high = row.speedup_macs, row.speedup_high
    if is_missing(promise) or is_missing(high) or promise <= 0 or wrong(split_flags(row.flags)):
        return -inf
    return max(0.0, log(promise / high))


def worst_shortfall(points: pd.DataFrame) -> float:
    """The largest `shortfall` of some points."""
    return max(map(shortfall, rows_of(points)), default=-inf)


def worst_first(points: pd.DataFrame, then: Sequence[str] = ("tokens",)) -> pd.DataFrame:
    """Points with the arms that fall short most first; those of one arm stay together, in the order
    of `then`.
    """
    worst: dict[tuple[Any, ...], float] = {}
    for row in rows_of(points):
        key = tuple(getattr(row, name) for name in _ARM)
        worst[key] = max(worst.get(key, -inf), shortfall(row))
    keys = [worst[key] for key in points[list(_ARM)].itertuples(index=False, name=None)]
    ascending = [False, *(True for _ in (*_ARM, *then))]
    ordered = points.assign(worst_shortfall=keys).sort_values(
        ["worst_shortfall", *_ARM, *then], ascending=ascending
    )
    return ordered.drop(columns="worst_shortfall")
