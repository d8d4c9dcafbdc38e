"""Points with their intervals: the value that most charts show, the one function that draws it, and
the marks, colours and hover texts of which all charts are made.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import log
from typing import Any, Literal, NamedTuple, TypeVar

import altair as alt
import pandas as pd

from sweeps.model.metrics import INTERVAL
from webapp.charts.scales import Extent, log_axis, ratio_axis, row_axis, row_step
from webapp.display.columns import COLUMNS
from webapp.display.links import POINT_KEY, point_link

Layers = alt.LayerChart | alt.FacetChart
Marks = Sequence[alt.Chart]
Tips = Mapping[str, Sequence[str]]
"""Hover text: for each column its title, or title and format of a number."""
LOCALE = {"number": {"decimal": ".", "thousands": "\u202f", "grouping": [3], "currency": ["", ""]}}
PAGE_CONFIG = {"locale": LOCALE, "legend": {"labelLimit": 0}, "text": {"fontSize": 12}}
"""Numbers in charts as pages show them, names in legends as long as they are, no smaller words."""
Channel = TypeVar("Channel", alt.Color, alt.Shape, alt.Stroke, alt.StrokeDash)

GREY = "#808591"
"""Of rules, notes and the noise floor: legible on white and on black."""
BLUE, ORANGE = "#3f7fbf", "#cf7c28"
ONE_COLOR = "#1a70b8"
SIDE_COLORS = {"baseline": "#6b7280", "arm": "#c2500c", "other arm": GREY}
LINKED = "Open the evidence of this point"
"""What a mark that is a link is called for assistive technology."""
NAMED_WIDTH = 640
"""Pixels that labels may assume: they are placed before the width of the chart is known."""
ROOM, LETTER = 15.0, 6.6
"""Pixels: height of a label, and width of one of its letters."""


@dataclass(frozen=True)
class Measure:
    """One axis of a chart: a column of its rows."""

    column: str
    title: str
    better: Literal["lower", "higher", ""] = ""
    scale: Literal["linear", "log", "log2", "ratio", "time", "rows"] = "linear"
    """`ratio`: logarithmic, with ticks such as `1.2×`; `log2`: with a tick at each value; `rows`:
    one below the other."""
    _: KW_ONLY
    form: str = "~r"
    """Of the ticks, as d3 takes it; of days, where it has a `%`."""
    alpha: float = 0.05
    """Probability that an interval of it misses."""
    ends: tuple[str, str] = ("", "")
    """Columns of its interval."""
    span: Extent | None = None
    none: float | None = None
    """The value of no difference, at which a rule stands."""
    floor: float = 0.0
    """Differences that count as none, a band around it."""

    @property
    def interval(self) -> tuple[str, str]:
        """Columns of its interval: `{column}_low` and `{column}_high`, or `ends`."""
        return self.ends if self.ends[0] else (f"{self.column}_low", f"{self.column}_high")

    def known_ends(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows with an interval of it."""
        ends = list(self.interval)
        return rows.dropna(subset=ends) if set(ends) <= set(rows) else rows.iloc[:0]

    def extent(self, rows: pd.DataFrame) -> Extent:
        """What its axis shows: `span`, or all values and intervals with some room beside them."""
        if self.span is not None:
            return self.span
        known = [rows[name] for name in (self.column, *self.interval) if name in rows]
        none = [] if self.none is None else [self.none - self.floor, self.none + self.floor]
        values = pd.concat([*known, pd.Series(none, dtype=float)]).astype(float).dropna()
        return around(values, linear=self.scale == "linear")


class Extra(NamedTuple):
    """Lines or texts beside the points: rows with the columns of both axes, and how they look."""

    rows: pd.DataFrame
    """Texts have `text`; a column `line` separates lines."""
    look: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PointsInfo:
    """Points with intervals along two axes; what is drawn of them, and what tests compare."""

    rows: pd.DataFrame
    """With `href` points are links; `hollow` and `area` are those of each mark."""
    x: Measure
    y: Measure
    tips: Tips
    color: str = "color"
    """Column of the colour, or of what `colors` has a colour for."""
    colors: Mapping[str, str] | None = None
    shape: str = ""
    shapes: Mapping[str, str] = field(default_factory=dict)
    joined: str = ""
    """Column whose equal values a line joins, dashed by `dashes`, in the order of `order`."""
    order: str = ""
    dashes: Mapping[str, list[int]] = field(default_factory=dict)
    lines: Sequence[Extra] = ()
    """Below the points."""
    texts: Sequence[Extra] = ()
    """Above them."""
    legend: Mapping[str, Any] | None = field(default_factory=dict)
    height: int = 360
    """Pixels; rows have heights of their own."""


def draw_points(info: PointsInfo) -> Layers:
    """The chart: rules at no difference, lines, intervals, points, texts."""
    rows = info.rows
    x, y = channel(alt.X, info.x, rows), channel(alt.Y, info.y, rows)
    color = category(alt.Color, info.color, info.colors, info.legend)
    layers: list[alt.Chart] = []
    for measure, value in ((info.x, x), (info.y, y)):
        if measure.none is not None:
            layers += no_difference(value, measure.floor, measure.none)
    layers += [_line(extra, x, y, color) for extra in info.lines]
    if info.joined:
        dash = category(alt.StrokeDash, info.joined, info.dashes, None)
        order = [alt.Order(f"{info.order}:Q")] if info.order else []
        layers.append(alt.Chart(rows).mark_line(strokeWidth=2).encode(x, y, color, dash, *order))
    by_row = info.y.scale == "rows"
    look = {"strokeWidth": 3, "opacity": 0.45} if by_row else {"strokeWidth": 1.4, "opacity": 0.55}
    for measure, value, other in ((info.x, x, y), (info.y, y, x)):
        layers += bars(measure.known_ends(rows), value, measure.interval, other, color, **look)
    looks: list[Any] = [alt.Size("area:Q", scale=None)] if "area" in rows else []
    if info.shapes:
        grey = {"symbolFillColor": GREY, "symbolStrokeColor": GREY}  # black on a dark theme else
        looks.append(category(alt.Shape, info.shape, info.shapes, grey))
    for hollow, own in rows.groupby("hollow") if "hollow" in rows else [(False, rows)]:
        mark = alt.Chart(own).mark_point(filled=not hollow, size=70, opacity=1, clip=True)
        layers.append(linked(mark.encode(x, y, color, *looks, tooltip=tips(info.tips))))
    for extra in info.texts:
        text = alt.Chart(extra.rows).mark_text(**{"fontSize": 12, "color": GREY, **extra.look})
        colored = [color] if info.color in extra.rows else []
        layers.append(text.encode(x, y, alt.Text("text:N"), *colored))
    height = row_step(list(dict.fromkeys(rows[info.y.column]))) if by_row else info.height
    return layered(*layers, height=height)


def _line(extra: Extra, x: alt.X, y: alt.Y, color: alt.Color) -> alt.Chart:
    name = str(color.shorthand).partition(":")[0]
    line = alt.Chart(extra.rows).mark_line(**{"color": GREY, **extra.look}).encode(x, y)
    apart = [alt.Detail("line:N")] if "line" in extra.rows else []
    made: alt.Chart = line.encode(*apart, *([color] if name in extra.rows else []))
    return made


Place = TypeVar("Place", alt.X, alt.Y)


def channel(kind: type[Place], measure: Measure, rows: pd.DataFrame) -> Place:
    """The encoding of an axis."""
    if measure.scale == "rows":
        return row_axis(kind, list(dict.fromkeys(rows[measure.column])), measure.column)
    if measure.scale == "time":
        axis = alt.Axis(title=measure.title, labelOverlap="greedy", grid=False)
        if "%" in measure.form:
            axis.tickCount, axis.format = "day", measure.form
        return kind(f"{measure.column}:T", axis=axis, scale=alt.Scale(type="utc", padding=24))
    span = measure.extent(rows)
    note = {"lower": " (less is better)", "higher": " (more is better)"}.get(measure.better, "")
    title = f"{measure.title}{note}"
    axis = alt.Axis(title=title, format=measure.form, tickCount=8, labelOverlap="greedy")
    if measure.scale == "log2":
        axis.values = sorted({float(value) for value in rows[measure.column]})
    elif measure.scale != "linear":
        axis = (
            ratio_axis(span, title)
            if measure.scale == "ratio"
            else log_axis(*span, title, format=measure.form)
        )
    base: dict[str, Any] = {"base": 2} if measure.scale == "log2" else {}
    scale = alt.Scale(
        type="linear" if measure.scale == "linear" else "log", domain=list(span), nice=False, **base
    )
    return kind(f"{measure.column}:Q", scale=scale, axis=axis)


def around(values: pd.Series, *, linear: bool = False) -> Extent:
    """Values with some room beside them."""
    low, high = float(values.min()), float(values.max())
    if linear:
        room = max(0.06 * (high - low), 0.02 * abs(high), 1e-9)
        return Extent(low - room, high + room)
    room = max((high / low) ** 0.06, 1.02)
    return Extent(low / room, high * room)


def bars(
    rows: pd.DataFrame, value: alt.X | alt.Y, ends: tuple[str, str], *others: Any, **look: Any
) -> list[alt.Chart]:
    """Intervals along the axis of `value`; none without a row that has both ends."""
    known = rows.dropna(subset=list(ends)) if len(rows) else rows
    if known.empty:
        return []
    second = alt.X2 if isinstance(value, alt.X) else alt.Y2
    place = type(value)(f"{ends[0]}:Q", scale=value["scale"]), second(f"{ends[1]}:Q")
    mark = alt.Chart(known).mark_rule(**({"strokeCap": "round"} | look), clip=True)
    return [mark.encode(*place, *others)]


def no_difference(value: alt.X | alt.Y, floor: float, none: float = 1.0) -> list[alt.Chart]:
    """A rule at the value of no difference, on a band of what counts as none."""
    ends = (none / (1 + floor), none * (1 + floor)) if none else (-floor, floor)
    band = alt.Chart(pd.DataFrame({"floor_low": [ends[0]], "floor_high": [ends[1]]}))
    upright = isinstance(value, alt.Y)
    datum, second = (alt.YDatum, alt.Y2) if upright else (alt.XDatum, alt.X2)
    low = type(value)("floor_low:Q", scale=value["scale"])
    rect = band.mark_rect(color=GREY, opacity=0.22, clip=True).encode(low, second("floor_high:Q"))
    rule = band.mark_rule(color=GREY, strokeWidth=1.2, clip=True).encode(
        datum(none, scale=value["scale"])
    )
    return [rect, rule] if floor else [rule]


def category(
    kind: type[Channel],
    column: str,
    values: Mapping[str, Any] | None,
    legend: Mapping[str, Any] | None = None,
) -> Channel:
    """An encoding by the values of a column, with a legend above the chart that looks so; without
    `values` the column holds colours.
    """
    if values is None:
        return kind(f"{column}:N", scale=None)
    shown = None if legend is None else alt.Legend(**{"title": None, "orient": "top", **legend})
    scale = alt.Scale(domain=list(values), range=list(values.values()))
    return kind(f"{column}:N", scale=scale, legend=shown)


def break_even_marks(found: pd.DataFrame) -> Iterator[alt.Chart]:
    """Break-evens to be drawn at their `x`: likeliest places as diamonds, a bound as an arrow to
    where the break-even lies.
    """
    bounds = found[found["x"].isna() & (found["x_low"].isna() | found["x_high"].isna())]
    shapes = {
        "diamond": (found, "x"),
        "triangle-left": (bounds, "x_high"),
        "triangle-right": (bounds, "x_low"),
    }
    for shape, (rows, column) in shapes.items():
        known = rows.dropna(subset=[column])
        yield alt.Chart(known.assign(x=known[column])).mark_point(
            shape=shape, filled=True, size=90, opacity=1, clip=True
        )


def draw_bars(
    rows: pd.DataFrame, x: alt.X, color: alt.Color, texts: Tips, *more: Any, above: Marks = ()
) -> Layers:
    """A bar for each row, one below the other by `label`, beside a rule at zero."""
    labels = list(dict.fromkeys(rows["label"]))
    mark = alt.Chart(rows).mark_bar(height=16)
    drawn = mark.encode(x, row_axis(alt.Y, labels), color, *more, tooltip=tips(texts))
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=GREY).encode(alt.X("zero:Q"))
    return layered(drawn, zero, *above, height=row_step(labels))


def placed_texts(
    chosen: pd.DataFrame, axes: Sequence[Measure], height: int, **look: Any
) -> Iterator[Extra]:
    """The values of `text` that have room beside their marks: to the right of it, and to the left;
    `axes` are x and y with their spans, `height` is that of the chart in pixels.
    """
    x, y = axes
    taken: list[tuple[float, float, float]] = []
    sides: dict[str, list[int]] = {"left": [], "right": []}
    for place, row in enumerate(chosen.to_dict("records")):
        across = _share(row[x.column], x) * NAMED_WIDTH
        up = _share(row[y.column], y) * height
        length = LETTER * min(len(row["text"]), 64) + 9
        spans = {"left": (across, across + length), "right": (across - length, across)}
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
        beside = {"align": side, "dx": 9 if side == "left" else -9, "dy": -9, "limit": 420}
        if places:
            yield Extra(chosen.iloc[places], beside | look)


def _share(value: float, measure: Measure) -> float:
    """Where a value lies on its axis, from 0 to 1."""
    low, high = measure.span or Extent(0.0, 1.0)
    if measure.scale == "linear":
        return (value - low) / (high - low)
    return log(value / low) / log(high / low)


def tips(texts: Tips) -> list[alt.Tooltip]:
    """Hover text."""
    found = []
    for name, text in texts.items():
        title, form = (text, "") if isinstance(text, str) else text
        kind = ("T" if form.startswith("%") else "Q") if form else "N"
        found.append(alt.Tooltip(f"{name}:{kind}", title=title, format=form or alt.Undefined))
    return found


def column_tips(rows: pd.DataFrame, names: Sequence[str]) -> dict[str, Sequence[str]]:
    """Hover text of those of the columns that have a value, as `COLUMNS` names them."""
    found: dict[str, Sequence[str]] = {}
    for name in names:
        if name in rows and rows[name].replace("", None).notna().any():
            title, form = COLUMNS[name].title, COLUMNS[name].chart_format
            found[name] = (title, form) if form else title
    return found


def with_links(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `href`, the address of the evidence of each that has a `comparison_id` (the
    newest where no host is known).
    """
    if "comparison_id" not in rows:
        return rows
    places = rows.reindex(columns=list(POINT_KEY)).astype(object)
    known = places.where(places.notna(), None).itertuples(index=False)
    return rows.assign(href=["" if place[0] is None else point_link(*place) for place in known])


def linked(mark: alt.Chart) -> alt.Chart:
    """The mark, each of whose points is a link where its rows have `href`.

    A link works in layered, concatenated and faceted charts alike, opens in a new tab on request,
    and Back returns to the address with all choices.
    """
    if "href" not in mark.data:
        return mark
    made: alt.Chart = mark.encode(href=alt.Href("href:N"), description=alt.DescriptionValue(LINKED))
    return made


def layered(*marks: alt.Chart, **properties: Any) -> Layers:
    """Marks above each other; those without a hover text of their own show none, instead of all
    their columns. Below each link lies an area that takes clicks, 20 pixels wide.
    """
    silent: list[alt.Chart] = []
    for mark in marks:
        if not _has(mark, "href"):
            silent.append(
                mark if _has(mark, "tooltip") else mark.encode(tooltip=alt.TooltipValue(None))
            )
            continue
        area = mark.copy(deep=["encoding"])
        area.mark = alt.MarkDef("point", filled=True, size=400, opacity=0, clip=True)
        for name in ("color", "shape", "size", "opacity", "stroke", "strokeDash", "description"):
            setattr(area.encoding, name, alt.Undefined)
        silent += [area, mark]
    return alt.layer(*silent, **properties)


def _has(mark: alt.Chart, channel: str) -> bool:
    return getattr(mark.encoding, channel, alt.Undefined) is not alt.Undefined


def speed_tips(form: str) -> Tips:
    """Hover text of a speed-up with its interval, the columns `speedup`, `low` and `high`."""
    ends = {"low": (f"{INTERVAL} from", form), "high": ("to", form)}
    return {"speedup": ("Speed-up", form), **ends}


def omit_empty_rows(chart: alt.TopLevelMixin, *, links: bool = True) -> None:
    """From now on the chart's specification shows at each point only those rows of the hover text
    that have a value there, where Vega-Lite would show `null` or nothing; numbers as on pages.
    Without `links` its points are none.
    """
    inner: Any = chart.to_dict

    def to_dict(*args: Any, **kwargs: Any) -> dict[str, Any]:
        spec = inner(*args, **kwargs)
        found: dict[str, Any] = with_known_rows(spec if links else without_links(spec))
        return found | {"config": PAGE_CONFIG | found.get("config", {})}

    object.__setattr__(chart, "to_dict", to_dict)


def with_known_rows(spec: Any) -> Any:
    """A Vega-Lite specification whose hover texts of several rows leave out the empty ones, point
    by point.
    """
    if isinstance(spec, list):
        return [with_known_rows(each) for each in spec]
    if not isinstance(spec, dict):
        return spec
    found = {
        name: value if name in {"data", "datasets"} else with_known_rows(value)
        for name, value in spec.items()
    }
    tooltip = found["encoding"].get("tooltip") if isinstance(found.get("encoding"), dict) else None
    if isinstance(tooltip, list) and tooltip:
        rows = f"merge({', '.join(map(_known_row, tooltip))})"
        found["encoding"] = found["encoding"] | {"tooltip": {"value": {"expr": rows}}}
    return found


def without_links(spec: Any) -> Any:
    """A Vega-Lite specification without links to pages, which lead nowhere from a file."""
    if isinstance(spec, list):
        return [without_links(each) for each in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        name: value if name == "datasets" else without_links(value)
        for name, value in spec.items()
        if name != "href"
    }


def _known_row(tip: Mapping[str, Any]) -> str:
    """A Vega expression: the row of a hover text as an object, empty where it has no value."""
    value = f"datum[{json.dumps(tip['field'])}]"
    form = {"quantitative": "format", "temporal": "utcFormat"}.get(tip.get("type", ""))
    shown = f"{form}({value}, {json.dumps(tip['format'])})" if form and tip.get("format") else value
    return (
        f"isValid({value}) && {value} !== '' ? {{{json.dumps(tip.get('title') or tip['field'])}:"
        f" {shown}}} : {{}}"
    )
