"""Sentences and numbers of pages and charts, made of the words of `sweeps.labels` and `sweeps.number_format`."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from store.host_labels import describe_missing
from sweeps.kinds import KINDS
from sweeps.labels import BITS, SPEEDUP, Conclusion, conclude, conclude_interval, conclude_row, unanswered
from sweeps.number_format import AXIS_LABELS, axis_value, is_missing
from webapp.charts.scales import Axis

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


def quality(row: Mapping[Any, Any]) -> Conclusion:
    """Quality of an arm: a row of `store.quality_join.join_quality`, with the verdict as `quality_verdict` and a `state`."""
    if is_missing(row["bits_per_byte_change"]):
        reason = row["reason"] if isinstance(row["reason"], str) else ""
        return unanswered(BITS, "not measured" if row["state"] == "measured" else row["state"], reason)
    bounds = (row["bits_per_byte_change"], row["bits_per_byte_change_low"], row["bits_per_byte_change_high"])
    return conclude(BITS, *bounds, verdict=row["quality_verdict"])


def against_control(row: Mapping[Any, Any]) -> str:
    """A tuned arm against the control of its tuning: a row of `store.quality_join.with_controls`; empty for other arms."""
    if not isinstance(row["control"], str):
        return ""
    if is_missing(row["change"]):
        return "control not measured"
    return conclude_interval(BITS, row["change"], row["change_low"], row["change_high"]).phrase


def place(x: float, axis: Axis, token_unit: str) -> str:
    """A place on the axis with its unit, such as `36 prompt tokens`, `0.3 GMACs` or `42 % of GMACs saved`."""
    return f"{_amount(x, axis)} {_unit(axis, token_unit)}"


def single_point(point: Mapping[Any, Any]) -> str:
    """The only point of an arm, a row of the view `speedup`, after its label: `is probably slower: 0.97× [0.95, 0.99]`."""
    note = f"; flagged: {point['flags'].replace(',', ', ')}" if point["flags"] else ""
    return f"is {speed(point).phrase}{note}"


def break_even_text(found: pd.DataFrame, axis: Axis, measured: tuple[float, float], token_unit: str, *, brief: bool = False) -> str:
    """The break-even of one arm, its rows of the view, as the rest of a sentence that begins with the arm's label.

    `measured` is the smallest and the largest x. A `brief` one, for a chart, has neither reasons nor notes on flagged points.
    """
    if found.empty:
        return "not analysed"
    first = next(found.itertuples())
    all_flagged = not brief and "All points are flagged" in str(first.why)
    notes = ["all points are flagged"] * all_flagged + [text for text in (describe_missing(first),) if text]
    low, high = (_amount(x, axis) for x in measured)
    unit = _unit(axis, token_unit)
    if first.verdict == "crossing":
        text = _crossings(found.sort_values("x").to_dict("records"), axis, unit)
    elif first.verdict == "always":
        text = "pays at every point measured" + ("" if brief else f", {low} to {high} {unit}")
    elif first.verdict == "never":
        text = f"never pays up to {high} {unit}"
    else:
        reason = str(first.why).partition(". ")[0].rstrip(".")
        text = "cannot tell" + ("" if brief else f": {reason[:1].lower()}{reason[1:]}")
    return "; ".join([text, *notes])


def _crossings(rows: list[dict[Any, Any]], axis: Axis, unit: str) -> str:
    at = [f"{_amount(row['x'], axis)} {unit}" for row in rows]
    bounds = [
        tuple(_amount(row[name], axis) for name in ("x_low", "x_high")) if not is_missing(row["x_low"]) else () for row in rows
    ]
    intervals = [f" ({' to '.join(ends)})" if ends else "" for ends in bounds]
    if len(rows) > 1:
        return f"crosses 1× at {', '.join(map(str.__add__, at, intervals))}"
    if rows[0]["direction"] == "loses":
        return f"stops paying at {at[0]}{intervals[0]}"
    return f"pays from {at[0]} on{intervals[0]}"


def _amount(x: float, axis: Axis) -> str:
    return axis_value(x, axis, digits=2)


def _unit(axis: Axis, token_unit: str) -> str:
    return token_unit if axis == "tokens" else AXIS_LABELS[axis].short_unit
