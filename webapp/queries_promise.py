"""What the page Promise reads: points with what their MACs promise, and break-evens along the tokens of a whole sweep."""

import pandas as pd

from store.engine import connect_readonly
from store.token_break_evens import token_break_evens
from sweeps.stats.delivered import delivered_share


def with_promise(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `speedup_macs` and `delivered`, which the view of older stores lacks."""
    if {"speedup_macs", "delivered"} <= set(points.columns):
        return points
    promise = points["gmacs_baseline"] / points["gmacs_total"]
    shares = [delivered_share(*pair) for pair in zip(points["speedup"], promise, strict=True)]
    return points.assign(speedup_macs=promise, delivered=pd.Series(shares, index=points.index, dtype=float))


def sweep_break_evens(sweep: str, metric: str, url: str | None = None) -> pd.DataFrame:
    """See `store.token_break_evens`."""
    engine = connect_readonly(url)
    try:
        return token_break_evens(engine, sweep, metric)
    finally:
        engine.dispose()
