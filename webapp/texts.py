"""Sentences and numbers of pages and charts, made of the words of `sweeps.labels` and `sweeps.number_format`."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from sweeps.kinds import KINDS
from sweeps.labels import BITS, SPEEDUP, Conclusion, conclude_interval, conclude_row
from sweeps.number_format import is_missing

SHOWN = SPEEDUP._replace(mark="×")
"""Speed-ups in the app: words and decimals as in the report."""


def metrics_in(found: Iterable[str]) -> list[str]:
    """The metrics in a column, the one to be shown first at the front."""
    names = set(found)
    return [name for kind in KINDS.values() for name in kind.metrics if name in names]


def speed(point: Mapping[Any, Any]) -> Conclusion:
    """What a row of the view `speedup` allows to conclude."""
    return conclude_row(SHOWN, point, "speedup")


def with_words(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `estimate`, `interval` and `word` as the report prints them, and their `digits`."""
    found = [speed(point) for point in points.to_dict("records")]
    return points.assign(**{name: [getattr(each, name) for each in found] for name in ("estimate", "interval", "word", "digits")})


def against_control(row: Mapping[Any, Any]) -> str:
    """A tuned arm against the control of its tuning: a row of `store.quality_join.with_controls`; empty for other arms."""
    if not isinstance(row["control"], str):
        return ""
    if is_missing(row["change"]):
        return "control not measured"
    return conclude_interval(BITS, row["change"], row["change_low"], row["change_high"]).phrase


def single_point(point: Mapping[Any, Any]) -> str:
    """The only point of an arm, a row of the view `speedup`, after its label: `is probably slower: 0.97× [0.95, 0.99]`."""
    note = f"; flagged: {point['flags'].replace(',', ', ')}" if point["flags"] else ""
    return f"is {speed(point).phrase}{note}"
