"""Scales, ticks, rows and titles of axes."""

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import altair as alt
import pandas as pd

from webapp.display.axis_curves import Axis, free_axis, size_of

FASTER = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
SLOWER = (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
ROUND_DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 3, 4, 5, 6, 8))
"""Ticks of a decade of a logarithmic axis, the denser the later."""
MAX_ROUND, FEWEST_ROUND = 9, 4
"""Ticks of such an axis; an axis so short that it has fewer has equal steps."""
CENTRED: dict[str, Any] = {"labelBaseline": "middle", "labelFlush": False}
"""Of labels of rows: also the first and the last stand in the middle of their rows."""
TICKS = 14
"""At most about this many ticks on the axis of speed-ups."""


class Extent(NamedTuple):
    """What an axis shows."""

    low: float
    high: float


def x_span(values: pd.Series, axis: Axis = "tokens") -> Extent:
    """Some room beside the values; a share saved may be zero or below, so that its axis is
    linear.
    """
    low, high = float(values.min()), float(values.max())
    if axis == "gmacs_saved":
        room = max(0.04 * (high - low), 0.01)
        return Extent(low - room, high + room)
    room = max((high / low) ** 0.04, 1.1)
    return Extent(low / room, high * room)


def x_scale(span: Extent, axis: Axis = "tokens") -> alt.Scale:
    if axis == "gmacs_saved":
        return alt.Scale(type="linear", domain=list(span), nice=False)
    return alt.Scale(type="log", base=2, domain=list(span), nice=False)


def x_axis(axis: Axis, values: pd.Series, title: str | None = None) -> alt.Axis:
    """Ticks at the tokens measured, at 1, 2 and 5 times powers of ten GMACs, or at tenths saved;
    only the grid without a title.
    """
    if axis == "tokens":
        ticks = sorted({float(x) for x in values})
    elif axis == "gmacs_saved":
        step = 0.1 if values.max() - values.min() > 0.2 else 0.02
        low, high = math.floor(values.min() / step), math.ceil(values.max() / step)
        ticks = [round(place * step, 2) for place in range(low, high + 1)]
    else:
        low, high = math.floor(math.log10(values.min())), math.ceil(math.log10(values.max()))
        ticks = [float(f"{digit}e{power}") for power in range(low, high + 1) for digit in (1, 2, 5)]
    if title is None:
        return alt.Axis(values=ticks, title=None, labels=False, ticks=False)
    form = {"tokens": "d", "gmacs": "~r", "gmacs_saved": ".0%"}[axis]
    return alt.Axis(
        values=ticks, title=title, format=form, labelOverlap="greedy", labelSeparation=3
    )


def x_title(
    axis: Axis, points: pd.DataFrame, work: str | None, hint: str = " (papers: GFLOPs)"
) -> str:
    """The title of the axis; `work` is what was timed, whose MACs these are, such as `the
    prompt`.
    """
    titles: Mapping[Axis, str] = {
        "tokens": size_of(points).tokens,
        "gmacs": f"GMACs of {work if free_axis(points) is None else 'an item'}, unmodified{hint}",
        "gmacs_saved": f"Share of the baseline's GMACs saved in {work}",
    }
    return titles[axis]


def log_axis(low: float, high: float, title: str, **more: Any) -> alt.Axis:
    """A logarithmic axis of positive values with round ticks, each of which has its number."""
    look = {"format": "~r", "labelOverlap": "greedy", **more}
    return alt.Axis(title=title, values=round_ticks(low, high), **look)


def round_ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, about evenly apart on a logarithmic axis: as dense as
    `MAX_ROUND` allows.
    """
    if low >= high:
        return [low]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = range(first, last + 1)
    powers = [10.0**power for power in range(first, last + 1, (last - first) // MAX_ROUND + 1)]
    best = [tick for tick in powers if low <= tick <= high]
    for digits in ROUND_DIGITS:
        ticks = [
            tick
            for power in decades
            for digit in digits
            if low <= (tick := float(f"{digit}e{power}")) <= high
        ]
        best = ticks if len(ticks) <= MAX_ROUND else best
    if len(best) >= FEWEST_ROUND:
        return best
    rough = (high - low) / FEWEST_ROUND
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * digit for digit in (1, 2, 5, 10) if size * digit >= rough)
    return [
        float(f"{place * step:.12g}")
        for place in range(math.ceil(low / step), math.floor(high / step) + 1)
    ]


def ratio_scale(span: Extent) -> alt.Scale:
    return alt.Scale(type="log", domain=list(span), nice=False)


def ratio_axis(span: Extent, title: str | None) -> alt.Axis:
    """Only the grid without a title."""
    ticks = ratio_ticks(span)
    if title is None:
        return alt.Axis(values=ticks, title=None, labels=False, ticks=False)
    return alt.Axis(title=title, values=ticks, labelExpr="format(datum.value, '.3~r') + '×'")


def ratio_ticks(span: Extent) -> list[float]:
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


LINE_LETTERS = 38
"""Of one line of the label of a row."""
LINE, ROOM = 14, 14
"""Pixels of such a line, and between rows."""
_Place = TypeVar("_Place", alt.X, alt.Y)


def wrapped(label: str) -> str:
    """A label with a line break after at most `LINE_LETTERS` characters, at spaces where there are
    some, so that charts keep their width and nothing is cut.
    """
    return "\n".join(textwrap.wrap(label, LINE_LETTERS) or [""])


def row_axis(kind: type[_Place], labels: Sequence[str], column: str = "label") -> _Place:
    """An encoding of rows, in the order of the `labels` in their column, which the axis wraps."""
    lines = {label: wrapped(label).split("\n") for label in labels}
    wraps = f"{json.dumps(lines)}[datum.value]"
    axis = alt.Axis(labelExpr=wraps, labelLimit=0, ticks=False, domain=False, grid=False, **CENTRED)
    return kind(f"{column}:N", scale=alt.Scale(domain=list(labels)), title=None, axis=axis)


def row_step(labels: Sequence[str]) -> alt.Step:
    """Height of a chart with these rows: every row is as high as the highest label."""
    lines = max((wrapped(label).count("\n") + 1 for label in labels), default=1)
    return alt.Step(lines * LINE + ROOM)
