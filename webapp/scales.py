"""Scales: the axes of a speed-up chart, logarithmic both, with ticks where a reader wants them."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import altair as alt
import pandas as pd

Axis = Literal["tokens", "gmacs"]
TITLE: Mapping[Axis, str] = {
    "tokens": "Patch tokens per image",
    "gmacs": "GMACs per image of the unmodified model (papers say GFLOPs)",
}
FASTER = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
SLOWER = (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
TICKS = 14
"""At most about this many ticks on the axis of speed-ups."""


class Span(NamedTuple):
    """What an axis shows."""

    low: float
    high: float


def x_span(values: pd.Series) -> Span:
    low, high = float(values.min()), float(values.max())
    room = max((high / low) ** 0.04, 1.1)
    return Span(low / room, high * room)


def y_span(*columns: pd.Series) -> Span:
    """Symmetric around 1, so that twice as fast stands as far above the rule as half as fast stands below it."""
    values = pd.concat([column.astype(float) for column in columns]).dropna()
    most = max(1.05, *(max(value, 1 / value) for value in values)) ** 1.08
    return Span(1 / most, most)


def x_scale(span: Span) -> alt.Scale:
    return alt.Scale(type="log", base=2, domain=list(span), nice=False)


def x_axis(axis: Axis, values: pd.Series, *, bare: bool = False) -> alt.Axis:
    """Ticks at the tokens measured, or at 1, 2 and 5 times powers of ten GMACs; `bare` leaves only the grid."""
    if axis == "tokens":
        ticks = sorted({float(x) for x in values})
    else:
        low, high = math.floor(math.log10(values.min())), math.ceil(math.log10(values.max()))
        ticks = [float(f"{digit}e{power}") for power in range(low, high + 1) for digit in (1, 2, 5)]
    if bare:
        return alt.Axis(values=ticks, title=None, labels=False, ticks=False)
    return alt.Axis(values=ticks, title=TITLE[axis], format="d" if axis == "tokens" else "~r", labelOverlap="greedy")


def y_axis(span: Span) -> alt.Axis:
    return alt.Axis(title="Speed-up", values=ratio_ticks(span), labelExpr="format(datum.value, '.3~r') + '×'")


def ratio_ticks(span: Span) -> list[float]:
    """Round ratios from 1 outwards, far enough apart for their labels."""
    room = math.log(span.high / span.low) / TICKS
    ticks = [1.0]
    for steps in (FASTER, SLOWER):
        last = 1.0
        for step in steps:
            if span.low <= step <= span.high and abs(math.log(step / last)) >= room:
                ticks.append(step)
                last = step
    return sorted(ticks)
