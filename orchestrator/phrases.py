"""Phrases: how a report and a progress line name arms, ratios, places on an axis and verdicts."""

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

STYLES = {
    "faster": "green",
    "slower": "red",
    "better": "green",
    "worse": "red",
    "same": "",
    "unclear": "dim",
    "crossing": "bold",
    "always": "green",
    "never": "red",
}
"""How each verdict looks on a terminal."""


def rows(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows of a frame as named tuples, whose fields have no types."""
    yield from frame.itertuples()


def ratio(value: float | None, low: float | None, high: float | None) -> str:
    """`1.23x [1.20, 1.26]`, or without the interval where there is none."""
    if value is None or pd.isna(value):
        return "-"
    interval = "" if low is None or high is None or pd.isna(low) or pd.isna(high) else f" [{low:.3f}, {high:.3f}]"
    return f"{value:.3f}x{interval}"


def amount(value: float | None, axis: str) -> str:
    """A position on an axis: whole tokens, GMACs with three significant digits, or a share saved in per cent."""
    if value is None or pd.isna(value):
        return "?"
    if axis == "gmacs_saved":
        return f"{100 * value:.3g} %"
    return f"{value:.0f}" if axis == "tokens" else f"{value:.3g}"


def label(row: Any, without: str | None = None) -> str:
    """Method with the parameters that were asked for: `topk keep_rate=0.5 layers=[3,6,9]`; `without` leaves one of them out."""
    params = json.loads(row.params) if row.params else {}
    if isinstance(params, list):
        return f"{row.method} {row.params}"
    shown = [
        f"{key}={json.dumps(value, separators=(',', ':'))}"
        for key, value in params.items()
        if value is not None and key != (without or "").partition(".")[0]
    ]
    return " ".join([row.method, *shown])


def bounded(value: float | None, low: float | None, high: float | None, form: str = ".2f") -> str:
    """`1.10 [0.31, 1.92]` in the given format, or without the interval where there is none."""
    if value is None or pd.isna(value):
        return "-"
    interval = "" if low is None or high is None or pd.isna(low) or pd.isna(high) else f" [{low:{form}}, {high:{form}}]"
    return f"{value:{form}}{interval}"


def markdown_row(cells: Any) -> str:
    """One row of a table in GitHub-flavoured Markdown."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
