"""Pareto chart: two figures of each arm against each other, with their intervals, and the arms that
no other surpasses named.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import log
from typing import Any, Literal, NamedTuple

import altair as alt
import pandas as pd

from webapp.charts.encodings import GREY
from webapp.charts.scales import Extent, log_axis, ratio_axis

PARETO_HEIGHT = 400
"""Pixels."""
ALL_NAMED = 12
"""Points of which also those that others surpass are named, where there is room."""
NAMED_WIDTH = 640
"""Pixels that labels may assume: they are placed before the width of the chart is known."""
ROOM, LETTER = 15.0, 6.6
"""Pixels: height of a label, and width of one of its letters."""


class Measure(NamedTuple):
    """One axis of the chart."""

    column: str
    """Of the points; `{column}_low` and `{column}_high` hold its interval where there are such
    columns, empty where it has none."""
    title: str
    """With its unit: `Time of a forward, ms`."""
    better: Literal["lower", "higher"] = "lower"
    scale: Literal["linear", "log", "ratio"] = "linear"
    """`ratio`: logarithmic, with ticks such as `1.2×`."""
    form: str = "~r"
    """Of the ticks of a linear axis, as d3 takes it."""
    alpha: float = 0.05
    """Probability that an interval of it misses."""

    @property
    def ends(self) -> tuple[str, str]:
        return f"{self.column}_low", f"{self.column}_high"


def pareto_chart(
    points: pd.DataFrame,
    x: Measure,
    y: Measure,
    *,
    label: str = "arm",
    front: str = "front",
    colors: Mapping[str, str] | None = None,
    tooltip: Sequence[alt.Tooltip] = (),
    named: Collection[str] = (),
    height: int = PARETO_HEIGHT,
) -> alt.LayerChart | alt.FacetChart:
    """A point for each row at `x` and `y` with thin rules for the intervals of both.

    `points` has the columns of both measures (numbers; rows that lack one of the two are left out),
    `label` (text; names the point) and `front` (bool: no other surpasses it, which the caller
    decides, since it takes intervals and more than two figures to know). Points of the front are
    filled and named beside the mark, where the names have room; the others are hollow and grey,
    and of many named in the hover text alone. `named` are labels that are written in any case.
    `colors` maps a label to its colour (default: one for all). `tooltip` are the lines of the hover
    text (default: label, x and y); a column `href`, if there is one, makes points links. Raises
    `ValueError` where no row has both figures.
    """
    drawn = points.dropna(subset=[x.column, y.column])
    if drawn.empty:
        raise ValueError(f"no arm has both: {x.title}; {y.title}")
    colored = [
        _color(colors, name) if on else GREY
        for name, on in zip(drawn[label], drawn[front], strict=True)
    ]
    filled = [
        color if on else "transparent" for color, on in zip(colored, drawn[front], strict=True)
    ]
    drawn = drawn.assign(color=colored, filled=filled)
    place_x, place_y = (_encoded(measure, drawn) for measure in (x, y))
    at_x, at_y = alt.X(f"{x.column}:Q", **place_x), alt.Y(f"{y.column}:Q", **place_y)
    color = alt.Color("color:N", scale=None)
    texts = list(tooltip) or [
        alt.Tooltip(f"{label}:N", title="Arm"),
        *(_tip(measure) for measure in (x, y)),
    ]
    rules = []
    for measure in (x, y):
        known, ends = _with_interval(drawn, measure), measure.ends
        rule = alt.Chart(known).mark_rule(strokeWidth=1.3, opacity=0.55)
        across = (alt.X(f"{ends[0]}:Q", **place_x), alt.X2(f"{ends[1]}:Q"), at_y)
        upright = (at_x, alt.Y(f"{ends[0]}:Q", **place_y), alt.Y2(f"{ends[1]}:Q"))
        rules += [rule.encode(*(across if measure is x else upright), color)] if len(known) else []
    shape = alt.Chart(drawn).mark_point(size=80, strokeWidth=1.6, opacity=1)
    mark = shape.encode(
        at_x,
        at_y,
        alt.Stroke("color:N", scale=None),
        alt.Fill("filled:N", scale=None),
        tooltip=texts,
    )
    first = drawn[front].astype(bool) | drawn[label].isin(list(named))
    chosen = pd.concat([drawn[first], drawn[~first] if len(drawn) <= ALL_NAMED else drawn.iloc[:0]])
    names = []
    for align, rows in _named(chosen, (x, y), label, drawn, height):
        text = alt.Chart(rows).mark_text(
            align=align, dx=9 if align == "left" else -9, dy=-9, fontSize=12, limit=420
        )
        names.append(text.encode(at_x, at_y, alt.Text(f"{label}:N"), color))
    mark = mark.encode(href="href:N") if "href" in drawn else mark
    return alt.layer(*rules, mark, *names).properties(height=height)


def _color(colors: Mapping[str, str] | None, name: str) -> str:
    return (colors or {}).get(name, "#1a70b8")


def _tip(measure: Measure) -> alt.Tooltip:
    return alt.Tooltip(f"{measure.column}:Q", title=measure.title, format=".4~g")


def _with_interval(points: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    return (
        points.dropna(subset=list(measure.ends))
        if set(measure.ends) <= set(points.columns)
        else points.iloc[:0]
    )


def _extent(measure: Measure, points: pd.DataFrame) -> tuple[float, float]:
    """The range of an axis: all values and intervals, with some room beside them."""
    columns = [name for name in (measure.column, *measure.ends) if name in points]
    values = pd.concat([points[name].astype(float) for name in columns]).dropna()
    low, high = float(values.min()), float(values.max())
    if measure.scale != "linear":
        room = max((high / low) ** 0.06, 1.02)
        return low / room, high * room
    room = max(0.06 * (high - low), 0.02 * abs(high), 1e-9)
    return low - room, high + room


def _encoded(measure: Measure, points: pd.DataFrame) -> dict[str, Any]:
    title = f"{measure.title} ({'less' if measure.better == 'lower' else 'more'} is better)"
    span = Extent(*_extent(measure, points))
    scale = alt.Scale(
        type="linear" if measure.scale == "linear" else "log", domain=list(span), nice=False
    )
    if measure.scale == "ratio":
        axis = ratio_axis(span, title)
    elif measure.scale == "log":
        axis = log_axis(*span, title)
    else:
        axis = alt.Axis(title=title, format=measure.form, tickCount=8, labelOverlap="greedy")
    axis.gridOpacity = 0.3
    return {"scale": scale, "axis": axis}


def _named(
    chosen: pd.DataFrame,
    measures: tuple[Measure, Measure],
    label: str,
    points: pd.DataFrame,
    height: int,
) -> Iterator[tuple[Literal["left", "right"], pd.DataFrame]]:
    """The `chosen` points whose names have room among all `points`: names to the right of their
    mark, and to the left of it.
    """
    x, y = measures
    taken: list[tuple[float, float, float]] = []
    sides: dict[Literal["left", "right"], list[int]] = {"left": [], "right": []}
    for place, row in enumerate(chosen.to_dict("records")):
        across, up = (
            _share(row[x.column], x, points) * NAMED_WIDTH,
            _share(row[y.column], y, points) * height,
        )
        length = LETTER * min(len(str(row[label])), 64) + 9
        spans: dict[Literal["left", "right"], tuple[float, float]] = {
            "left": (across, across + length),
            "right": (across - length, across),
        }
        for side in sorted(spans, key=lambda name: (name == "left") != (across < NAMED_WIDTH / 2)):
            start, end = spans[side]
            inside = start >= 0 and end <= NAMED_WIDTH
            if inside and all(
                abs(up - other) > ROOM or end < left or start > right
                for left, right, other in taken
            ):
                taken.append((start, end, up))
                sides[side].append(place)
                break
    for side, places in sides.items():
        if places:
            yield side, chosen.iloc[places]


def _share(value: float, measure: Measure, points: pd.DataFrame) -> float:
    """Where a value lies on its axis, from 0 to 1."""
    low, high = _extent(measure, points)
    return (
        log(value / low) / log(high / low)
        if measure.scale != "linear"
        else (value - low) / (high - low)
    )
