"""Wording: verdicts, numbers and intervals as plain words, the same in the app, in charts and in tables."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from store.host_labels import incomplete
from sweeps.labels import BITS, SPEEDUP, Conclusion, conclude, unanswered
from sweeps.stats.classification import interval_verdict
from webapp.charts.scales import Axis

SHOWN = SPEEDUP._replace(mark="×")
"""Speed-ups in the app: the words and decimals of the report, since rounding decides between words."""
UNIT: Mapping[Axis, str] = {"tokens": "tokens", "gmacs": "GMACs", "gmacs_saved": "of GMACs saved"}
SPOKEN_UNIT: Mapping[Axis, str] = {**UNIT, "tokens": "prompt tokens"}
"""Of language models."""
METRIC: Mapping[str, str] = {
    "latency": "latency",
    "time_per_char": "time per character",
    "tpot": "time per output token",
    "ttft": "time to the first token",
}
"""Metrics of the view `speedup` in words, the one to be shown first at the front."""
WORK: Mapping[str, str] = {"time_per_char": "a whole run", "tpot": "one output token", "ttft": "the prompt"}
"""What a metric of language models times, and whose MACs stand beside it."""


def counted(number: int, noun: str) -> str:
    """`1 point`, `2 points`, `12,000 points`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def metrics(found: pd.Series) -> list[str]:
    """The metrics that a frame has, the one to be shown first at the front."""
    known = set(found)
    return [*(name for name in METRIC if name in known), *sorted(known - set(METRIC))]


def speed(point: Mapping[Any, Any]) -> Conclusion:
    """What a row of the view `speedup` allows to conclude."""
    bounds = (point["speedup"], point["speedup_low"], point["speedup_high"])
    return conclude(SHOWN, *bounds, verdict=str(point["verdict"]), floor=point["floor"])


def quality(row: Mapping[Any, Any]) -> Conclusion:
    """Quality of an arm: a row of `store.quality_join.judged`, with the verdict as `judgement` and a `state`."""
    if _missing(row["bits_per_byte_change"]):
        reason = row["reason"] if isinstance(row["reason"], str) else ""
        return unanswered(BITS, "not measured" if row["state"] == "measured" else row["state"], reason)
    bounds = (row["bits_per_byte_change"], row["bits_per_byte_change_low"], row["bits_per_byte_change_high"])
    return conclude(BITS, *bounds, verdict=row["judgement"])


def against_control(row: Mapping[Any, Any]) -> str:
    """A tuned arm against the control of its tuning: a row of `store.quality_join.with_controls`; empty for other arms."""
    if not isinstance(row["control"], str):
        return ""
    if _missing(row["change"]):
        return "control not measured"
    judged = interval_verdict(row["change_low"], row["change_high"], BITS.floor)
    return conclude(BITS, row["change"], row["change_low"], row["change_high"], verdict=judged).phrase


def amount(x: float, axis: Axis) -> str:
    """A place on the axis: whole tokens, GMACs with two significant digits, or a share saved in per cent."""
    if axis == "gmacs_saved":
        return f"{float(f'{100 * x:.2g}'):g} %"
    return f"{x:,.0f}" if axis == "tokens" else f"{float(f'{x:.2g}'):,g}"


def place(x: float, axis: Axis, *, spoken: bool = False) -> str:
    """A place on the axis with its unit; `spoken` for language models, whose tokens are those of the prompt."""
    return f"{amount(x, axis)} {(SPOKEN_UNIT if spoken else UNIT)[axis]}"


def single(point: Mapping[Any, Any]) -> str:
    """The one point of an arm as the rest of a sentence that begins with the arm's name: a row of the view `speedup`.

    Such as `is probably slower: 0.97× [0.95, 0.99]`.
    """
    note = f"; flagged: {point['flags'].replace(',', ', ')}" if point["flags"] else ""
    return f"is {speed(point).phrase}{note}"


def short(found: pd.DataFrame, axis: Axis, up_to: float, *, spoken: bool = False) -> str:
    """One arm's break-even for a chart: its rows of the view, and the largest x measured; `spoken` for language models."""
    if found.empty:
        return "not analysed"
    lacking = incomplete(next(found.itertuples()))
    return _short(found, axis, up_to, spoken=spoken) + (lacking and f" ({lacking})")


def _short(found: pd.DataFrame, axis: Axis, up_to: float, *, spoken: bool) -> str:
    verdict, unit = str(found["verdict"].iloc[0]), (SPOKEN_UNIT if spoken else UNIT)[axis]
    if verdict == "crossing":
        rows = _by_x(found)
        first = "at" if len(rows) > 1 or rows[0]["direction"] == "loses" else "from"
        return f"{first} {', '.join(_place(row, axis, f' {unit}', '[{}, {}]') for row in rows)}"
    words = {"always": "pays at every point measured", "never": f"never pays up to {amount(up_to, axis)} {unit}"}
    return words.get(verdict, "cannot tell")


def headline(found: pd.DataFrame, axis: Axis, low: float, high: float, *, spoken: bool = False) -> str:
    """One arm's break-even as the rest of a sentence that begins with the arm's name; `low` and `high` bound what was measured."""
    if found.empty:
        return "has not been analysed yet"
    flagged = "; all points are flagged" if "All points are flagged" in str(found["why"].iloc[0]) else ""
    lacking = incomplete(next(found.itertuples()))
    return _finding(found, axis, low, high, spoken=spoken) + flagged + (lacking and f"; {lacking}")


def _finding(found: pd.DataFrame, axis: Axis, low: float, high: float, *, spoken: bool) -> str:
    verdict, unit = str(found["verdict"].iloc[0]), (SPOKEN_UNIT if spoken else UNIT)[axis]
    rows = _by_x(found)
    if verdict == "crossing" and len(rows) == 1:
        gains = rows[0]["direction"] != "loses"
        return ("pays from " if gains else "stops paying at ") + _place(
            rows[0], axis, f" {unit}{' on' if gains else ''}", "({} to {})"
        )
    if verdict == "crossing":
        return f"crosses the line {len(rows)} times, at " + ", ".join(_place(row, axis, f" {unit}", "({} to {})") for row in rows)
    if verdict == "always":
        return f"pays at every point measured, {amount(low, axis)} to {amount(high, axis)} {unit}"
    if verdict == "never":
        return f"never pays up to {amount(high, axis)} {unit}"
    reason, _, _ = str(found["why"].iloc[0]).partition(". ")
    return f"cannot tell: {reason[:1].lower()}{reason[1:].rstrip('.')}"


def _place(row: Mapping[str, Any], axis: Axis, unit: str, bounds: str) -> str:
    at = f"{amount(row['x'], axis)}{unit}"
    if _missing(row["x_low"]) or _missing(row["x_high"]):
        return at
    return f"{at} {bounds.format(amount(row['x_low'], axis), amount(row['x_high'], axis))}"


def _by_x(found: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in found.sort_values("x").to_dict("records")]


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)
