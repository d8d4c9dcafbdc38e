"""Surprises: how much of the time that saved MACs promise was saved, and the points that fall short of it most."""

from collections.abc import Sequence
from math import inf, log
from typing import Any

import pandas as pd

from store.frames import rows_of
from sweeps.flags import split_flags, wrong
from sweeps.number_format import is_missing
from sweeps.stats.promise import delivered

_ARM = ("method", "params")


def arrived(row: Any) -> float | None:
    """The share of the promised saving that arrived, of a row of the view `speedup` with `speedup_macs`: 1 is all of it.

    See `sweeps.stats.promise.delivered`.
    """
    promise = getattr(row, "speedup_macs", None)
    return None if is_missing(promise) or is_missing(row.speedup) else delivered(row.speedup, promise)


def arrived_text(row: Any) -> str:
    """`37 %`; a dash where there is no such share, and a bound where more than the whole promise was lost."""
    share = arrived(row)
    return "-" if share is None else "< -100 %" if share < -1 else f"{100 * share + 0.0:.0f} %"


def shortfall(row: Any) -> float:
    """By how much the log of the promised speed-up lies above the interval at least; 0 where the interval reaches it.

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
    """Points with the arms that fall short most first; those of one arm stay together, in the order of `then`."""
    worst: dict[tuple[Any, ...], float] = {}
    for row in rows_of(points):
        key = tuple(getattr(row, name) for name in _ARM)
        worst[key] = max(worst.get(key, -inf), shortfall(row))
    keys = [worst[key] for key in points[list(_ARM)].itertuples(index=False, name=None)]
    ascending = [False, *(True for _ in (*_ARM, *then))]
    ordered = points.assign(worst_shortfall=keys).sort_values(["worst_shortfall", *_ARM, *then], ascending=ascending)
    return ordered.drop(columns="worst_shortfall")
