"""Speed-up charts for the app, `breakeven plot` and notebooks: the curves of a panel with their
break-evens at their foot, or rows for a panel with one size.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from textwrap import wrap
from typing import Any, Literal

import altair as alt
import pandas as pd

from store.read.curves import label_hosts
from sweeps.analysis.rows import ClaimRow
from sweeps.text.curves import break_even_cell, break_even_headline
from webapp.charts import scales
from webapp.charts.panels import (
    RUNTIME_GAIN,
    PanelInfo,
    condition_words,
    panel_value,
    rows_by_arm,
)
from webapp.charts.points import (
    GREY,
    Layers,
    bars,
    break_even_marks,
    category,
    column_tips,
    layered,
    linked,
    no_difference,
    tips,
    with_links,
)
from webapp.charts.scales import Extent
from webapp.display import texts
from webapp.display.arm_style import ArmStyle
from webapp.display.axis_curves import size_of
from webapp.display.links import POINT_KEY

Width = int | Literal["container"]
WIDTH, HEIGHT, ROW, SMALL = 620, 330, 24, 240
"""Pixels: width and height of a panel's curves, height of a row where there is one size, side of a
small panel."""
UNDER = (
    "Each method against the unmodified model under the same runtime; below, the tokens from which"
    f" on it pays. {RUNTIME_GAIN.capitalize()}: the unmodified model against the sweep's other"
    " baseline."
)
FOOT = 10
"""Pixels between break-evens above the axis of sizes."""
SHORT, LINE_PX = 30, 15
"""Letters of a line of a label beside the end of a curve; pixels of such a line."""
NARROW = "containerSize()[0] < 500"
"""Whether a chart of a page is so narrow that the page's table alone names the arms."""
WORDS_PX = 15
"""Height of a line of words below the curves."""
APART = alt.Resolve.from_dict(
    {
        "scale": {"color": "independent", "strokeDash": "independent"},
        "legend": {"shape": "independent", "stroke": "independent"},
    }
)
"""Parts of a chart have legends and arms of their own: an arm in colour in one panel may be grey in
another."""
SHAPES: Mapping[str, str] = {
    "faster": "triangle-up",
    "probably faster": "M0,-0.87L-1,0.87L1,0.87ZM0,-0.29L0.5,0.58L-0.5,0.58Z",
    "same": "square",
    "within floor": "M-1,-0.4L1,-0.4L1,0.4L-1,0.4Z",
    "slower": "triangle-down",
    "probably slower": "M0,0.87L-1,-0.87L1,-0.87ZM0,0.29L0.5,-0.58L-0.5,-0.58Z",
    "unclear": (
        "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0ZM-0.55,0A0.55,0.55,0,1,0,0.55,0A0.55,0.55,0,1,0,-0.55,0Z"
    ),
    "too few pairs": "cross",
    "quarantined": "M-0.9,-1L-0.3,-1L-0.3,1L-0.9,1ZM0.3,-1L0.9,-1L0.9,1L0.3,1Z",
    "no interval": (
        "M-1,-0.6L-0.6,-1L0,-0.4L0.6,-1L1,-0.6L0.4,0L1,0.6L0.6,1L0,0.4L-0.6,1L-1,0.6L-0.4,0Z"
    ),
}
"""Shapes of the words of `sweeps.analysis.labels`; hollow ones (not clear) are outlines, so that
the legend has them too."""
CROSS = "M-1,-1L1,1M-1,1L1,-1"
"""Of an arm that does not fit into memory."""
MAIN_WORDS = frozenset({"faster", "same", "slower", "unclear"})
"""Words that the legend shows even if no point has them."""
HOVER = (
    *("arm", "prompt_tokens", "tokens", "estimate", "interval", "word", "reason", "flags"),
    *("pairs", "baseline_ms", "arm_ms"),
)
"""Columns of the hover text of a point; those without a value are left out, and then all after the
eighth."""
DRAWN_COLUMNS = (
    *(*POINT_KEY, *HOVER, "batch_size", "image_size", "gmacs_baseline", "x", "distrusted", "row"),
    *("speedup", "speedup_low", "speedup_high"),
)
"""Columns of points that are drawn; the others would only make a page with many of them slow."""
TONES = ("#5c6069", "#9a6324", "#808591", "#b08d57")
"""Outlines of published points by source: muted, so that measured arms stand out."""
HOVER_PUBLISHED = {
    "published": "Source",
    "place": "Where",
    "label": "Arm",
    "setting": "Setting",
    "device_name": "Device",
    "batch_size": ("Batch", "d"),
    "speedup": ("Speed-up, published", ".3f"),
}


def speedup_chart(infos: Iterable[PanelInfo]) -> alt.VConcatChart:
    """Speed-up along an axis, one panel per model and condition, with the break-even of every arm
    in words below it; see `webapp.charts.panels.panel_infos`.

    Speed-ups lie on a logarithmic axis; x is logarithmic to base 2, but for the share of MACs
    saved.
    """
    return configured(alt.vconcat(*map(_panel, infos), spacing=48))


def small_multiples(infos: Iterable[PanelInfo]) -> alt.VConcatChart:
    """Speed-up along the tokens, a small panel for each model, condition, runtime and dtype, all
    with the same axes; below each the break-evens of its arms.

    `infos` are split by `webapp.charts.panels.RUNTIME`.
    """
    first, *_ = own = list(infos)
    points = pd.concat([info.panel.points for info in own])
    lowest = min(1.0, *points[["speedup", "speedup_low"]].min())
    up = first.spans[1]._replace(low=0.95 * lowest)  # no room for losses that no arm has
    names = [name for name in first.panel.about if points[name].nunique() > 1]
    small = [_small(replace(info, spans=(info.spans[0], up)), names) for info in own]
    pooled = first.panel._replace(points=points)
    words = condition_words(pooled, first.axis, label_hosts(points))
    notes = dict.fromkeys(info.notes[0] for info in own)
    models = ", ".join(points["model"].unique())
    named = first.title.replace(str(first.panel.about["model"]), models, 1)
    title = _title(named, [words, *notes, UNDER])
    apart = alt.Resolve(scale=APART.scale)
    grid = alt.concat(*small, columns=3, spacing=28, title=title, resolve=apart)
    return configured(alt.vconcat(grid))


def _small(info: PanelInfo, names: Sequence[str]) -> alt.VConcatChart:
    """One of small multiples, with the `names` in which they differ as its title."""
    panel = info.panel
    title = scales.x_title(info.axis, panel.points, panel.metric.work)
    look = {"width": SMALL, "height": SMALL}
    named = " · ".join(panel_value(panel, name) for name in names)
    curves = layered(*curve_layers(info, SMALL, title=title), **look, title=named)
    return _with_claims(info, curves, SMALL, lambda rows: break_even_cell(rows).text)


def _with_claims(
    info: PanelInfo,
    curves: Layers,
    width: int,
    claim: Callable[[Sequence[ClaimRow]], str],
    **look: Any,
) -> alt.VConcatChart:
    """Curves with the break-even of each of their arms in words below."""
    claims = rows_by_arm(info.panel.break_evens)
    known = [(arm, f"{arm}: {claim(claims[arm])}") for arm in info.styles if arm in claims]
    rows = pd.DataFrame(known, columns=["arm", "words"])
    words = alt.Chart(rows, width=width, height=WORDS_PX * len(known))
    place = alt.X(value=0), alt.Y("words:N", sort=None, axis=None)
    text = words.mark_text(align="left", fontSize=12)
    below = text.encode(*place, _arm_looks(info)[0], text="words:N")
    return alt.vconcat(curves, below, spacing=6, **look)


def stacked(charts: Sequence[alt.VConcatChart], title: str, subtitle: str = "") -> alt.VConcatChart:
    """Several results of `speedup_chart` one below the other, under one title."""
    views = [panel for chart in charts for panel in chart.vconcat]
    heading = alt.TitleParams(
        title, subtitle=subtitle or alt.Undefined, fontSize=20, subtitleFontSize=14, offset=24
    )
    return configured(alt.vconcat(*views, spacing=48, title=heading))


def _panel(info: PanelInfo) -> Any:
    title = _title(info.title, [info.condition, *info.notes])
    curves = draw_panel(info, title=title)
    if info.single:
        return curves
    unit = size_of(info.panel.points).token_unit
    return _with_claims(
        info, curves, WIDTH, lambda rows: break_even_headline(rows, unit), resolve=APART
    )


def _title(title: str, texts: Sequence[str]) -> alt.TitleParams:
    return alt.TitleParams(title, subtitle=[line for text in texts for line in wrap(text, 110)])


def configured(chart: alt.VConcatChart) -> alt.VConcatChart:
    """The chart with fonts, rules and legends, which Vega-Lite takes at the top level only."""
    small = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    title = {"fontSize": 16, "subtitleFontSize": 12, "subtitleColor": GREY, "subtitlePadding": 6}
    config = {
        "view": {"stroke": None},
        "axis": {"domain": False, "titlePadding": 10, "gridOpacity": 0.3, **small},
        "title": {"anchor": "start", "frame": "group", "offset": 16, **title},
        "legend": {
            "labelFontSize": 12,
            "labelLimit": 0,
            "symbolSize": 70,
            "columnPadding": 18,
            "offset": 12,
        },
    }
    # set in place: each method of Altair that sets one copies the whole chart first
    chart.config, chart.resolve = config, APART
    return chart


def draw_panel(
    info: PanelInfo, *, links: bool = False, width: Width = WIDTH, **look: Any
) -> Layers:
    """The curves of a panel, or its rows where there is one size; with `links` points lead to their
    evidence. A chart that fits its container keeps the height of its drawing.
    """
    rows = ROW * (len(info.styles) + len(info.published))
    look |= {"width": width, "height": rows if info.single else HEIGHT}
    if width == "container":
        look["autosize"] = alt.AutoSizeParams(type="fit-x", contains="padding")
    if info.single:
        return row_layers(info, links=links, **look)
    title = scales.x_title(info.axis, info.panel.points, info.panel.metric.work)
    curves = curve_layers(info, HEIGHT, links=links, title=title)
    return layered(*curves, *end_names(info, HEIGHT), **look)


def _arm_looks(
    info: PanelInfo, legend: Mapping[str, Any] | None = None
) -> tuple[alt.Color, alt.StrokeDash]:
    """Colours of the arms, of which all but the coloured ones are grey, and their dashes."""
    colors = {
        arm: style.color if arm in info.coloured else GREY for arm, style in info.styles.items()
    }
    dashes = {arm: style.dash for arm, style in info.styles.items()}
    return (
        category(alt.Color, "arm", colors, legend),
        category(alt.StrokeDash, "arm", dashes, legend),
    )


def _places(info: PanelInfo, arms: Sequence[str]) -> pd.DataFrame:
    """Break-evens of arms as they are drawn."""
    found = info.panel.break_evens
    return found.loc[found["arm"].isin(arms), ["arm", "axis", "x", "x_low", "x_high", "why"]]


def curve_layers(
    info: PanelInfo,
    height: float,
    *,
    title: str | None,
    links: bool = False,
    words: bool = True,
    legend: Mapping[str, Any] | None = None,
) -> Iterator[alt.Chart]:
    """Noise floor, rule at 1, intervals as areas, lines, break-evens at the foot, limits of memory,
    points; `title` is that of the axis along which they are. No line runs through a point whose
    verdict is open.

    Legends are of the `words` of verdicts above the curves, and one of arms that looks as `legend`.
    """
    points, (across, up) = info.panel.points, info.spans
    x_scale = scales.x_scale(across, info.axis)
    ticks = pd.concat([points["x"], points["limit_x"]]).dropna()
    x = alt.X("x:Q", scale=x_scale, axis=scales.x_axis(info.axis, ticks, title))
    y_axis = scales.ratio_axis(up, info.measure)
    y = alt.Y("speedup:Q", scale=scales.ratio_scale(up), axis=y_axis)
    color, dash = _arm_looks(info, legend)
    # a line ends there
    known = points.assign(speedup=points["speedup"].mask(texts.undecided(points)))
    drawn = known[["arm", "x", "speedup", "speedup_low", "speedup_high"]]
    in_colour, named = points["arm"].isin(info.coloured), points["arm"].isin(info.styles)
    coloured = drawn[in_colour]
    found = _places(info, info.coloured)
    yield from no_difference(y, float(points["floor"].max()))
    band = found[found["arm"] == info.selected].dropna(subset=["x_low", "x_high"])
    if len(band):  # without the scale of the curves it would put zero on their axis
        rect = alt.Chart(band).mark_rect(opacity=0.16, clip=True)
        yield rect.encode(alt.X("x_low:Q", scale=x_scale), alt.X2("x_high:Q"), color)
    columns = ["arm", "x", "theory", "gmacs_baseline", "gmacs_total"]
    promised = points.loc[points["arm"] == info.selected, columns].dropna(subset=["theory"])
    dotted: dict[str, Any] = {
        "strokeWidth": 1.6,
        "strokeDash": [1, 4],
        "strokeCap": "round",
        "opacity": 0.9,
    }
    bounded = coloured.dropna(subset=["speedup_low", "speedup_high"])
    low = alt.Y("speedup_low:Q", title=info.measure), alt.Y2("speedup_high:Q")
    thin: dict[str, Any] = {"strokeWidth": 1.2, "opacity": 0.5, "clip": True}
    grey = alt.Chart(drawn[~named]).mark_line(color=GREY, **thin)
    ticked = alt.Chart(bounded).mark_errorbar(ticks={"size": 5}, thickness=1, clip=True)
    lines = (
        alt.Chart(promised).mark_line(clip=True, **dotted).encode(x, alt.Y("theory:Q"), color),
        grey.encode(x, y, alt.Detail("arm:N")),
        alt.Chart(drawn[named & ~in_colour]).mark_line(**thin).encode(x, y, color, dash),
        alt.Chart(bounded).mark_area(opacity=0.13, line=False, clip=True).encode(x, *low, color),
        alt.Chart(coloured).mark_line(strokeWidth=2.2, clip=True).encode(x, y, color, dash),
        ticked.encode(x, *low, color),
        *_brackets(found, x, color, height),
        _limits(points[named]).encode(alt.X("limit_x:Q", scale=x_scale), y, color),
        *_beyond(points, up, height),
    )
    yield from (mark for mark in lines if len(mark.data))
    yield _point_marks(info.marked, links=links, words=words).encode(x, y, color)
    if len(info.published):
        yield _published_marks(info.published).encode(x, y)


def end_names(info: PanelInfo, height: float, *, bold: bool = True) -> Iterator[alt.Chart]:
    """The arms in colour, named at the ends of their lines."""
    here = [arm for arm in info.coloured if arm in set(info.panel.points["arm"])]
    ends = alt.Chart(line_ends(info.panel.points, here, info.spans[1], height))
    weight: Any = 600 if bold else 400
    text = alt.expr(f"{NARROW} ? '' : split(datum.label, '\\n')")
    yield ends.mark_text(
        align="left", dx=8, fontSize=12, fontWeight=weight, lineHeight=LINE_PX, text=text
    ).encode(alt.X(value="width"), alt.Y("place:Q"), _arm_looks(info)[0])


def _brackets(
    found: pd.DataFrame, x: alt.X, color: alt.Color, height: float
) -> Iterator[alt.Chart]:
    """At the foot of the curves, a line for each arm: its break-even between measured points as a
    bar, its likeliest place or its bound as a mark.
    """
    known = found.dropna(subset=["x", "x_low", "x_high"], how="all")
    for number, (_, own) in enumerate(known.groupby("arm", sort=False)):
        y = alt.Y(value=height - FOOT * (number + 1))
        yield from bars(own, x, ("x_low", "x_high"), y, color, strokeWidth=6, opacity=0.45)
        yield from (mark.encode(x, y, color) for mark in break_even_marks(own))


def _limits(points: pd.DataFrame) -> alt.Chart:
    """A cross where an arm ran out of memory, as high as its nearest point; the caller adds y and
    colour.
    """
    near = points.assign(away=(points["x"] - points["limit_x"]).abs()).sort_values("away")
    found = near.dropna(subset=["away", "speedup"]).drop_duplicates("arm")
    mark = alt.Chart(found[["arm", "speedup", "limit", "limit_x"]]).mark_point(
        shape=CROSS, size=60, strokeWidth=2.5, opacity=1, clip=True
    )
    made: alt.Chart = mark.encode(tooltip=tips({"arm": "Arm", "limit": "Memory"}))
    return made


def _beyond(points: pd.DataFrame, span: Extent, height: float) -> Iterator[alt.Chart]:
    """How many points lie above and below the axis of speed-ups, with an arrow each."""
    for sign, outside, y in (
        ("↑", points["speedup"] > span.high, 10),
        ("↓", points["speedup"] < span.low, height - 10),
    ):
        rows = pd.DataFrame({"text": [f"{sign} {outside.sum()} beyond"]} if outside.any() else {})
        mark = alt.Chart(rows).mark_text(align="left", dx=6, fontSize=12, color=GREY)
        yield mark.encode(alt.X(value=0), alt.Y(value=y), alt.Text("text:N"))


def row_layers(info: PanelInfo, *, links: bool = False, words: bool = True, **look: Any) -> Layers:
    """Forest plot: one row per arm with its speed-up and interval, below them published ones."""
    points, span = info.marked, info.spans[1]
    estimates = zip(points["arm"], points["estimate"], strict=True)
    labels = {arm: f"{arm}: {estimate}" for arm, estimate in estimates}
    points = points.assign(row=points["arm"].map(labels))
    published = with_rows(info.published)
    rows = [*(labels[name] for name in info.styles), *published["row"]]
    axis = _arm_axis(labels, info.styles)
    row = alt.Y("row:N", scale=alt.Scale(domain=rows), axis=axis)
    x_axis = scales.ratio_axis(span, info.measure)
    x = alt.X("speedup:Q", scale=scales.ratio_scale(span), axis=x_axis)
    color, _ = _arm_looks(info)
    theory = alt.Chart(points.dropna(subset=["theory"])).mark_tick(
        thickness=1.6, size=18, orient="vertical", opacity=0.75
    )
    ends = ("speedup_low", "speedup_high")
    return layered(
        *no_difference(x, float(points["floor"].max())),
        theory.encode(alt.X("theory:Q", scale=scales.ratio_scale(span)), row, color),
        *bars(points, x, ends, row, color, strokeWidth=3, opacity=0.45),
        _point_marks(points, links=links, words=words).encode(x, row, color),
        *([_published_marks(published).encode(x, row)] if len(published) else []),
        **look,
    )


def line_ends(
    points: pd.DataFrame, arms: Sequence[str], span: Extent, height: float
) -> pd.DataFrame:
    """A row for each of the arms with its `label`, in lines, and the `place` of its first line on
    the axis of speed-ups, apart enough to be read.
    """
    low, high = math.log(span.low), math.log(span.high)
    line = (high - low) * LINE_PX / height
    last = points.sort_values("x").groupby("arm")["speedup"].last()
    named = sorted(arms, key=lambda arm: float(last[arm]))
    labels = ["\n".join(wrap(arm, SHORT, max_lines=4, placeholder="…")) for arm in named]
    half = [line * (label.count("\n") + 1) / 2 for label in labels]
    places = [min(max(math.log(last[arm]), low), high) for arm in named]
    for _ in range(50):  # neighbours that overlap move apart by the same distance
        for below, above in pairwise(range(len(places))):
            if (missing := half[below] + half[above] - (places[above] - places[below])) > 1e-9:
                places[below] -= missing / 2
                places[above] += missing / 2
    upper = high + line / 2
    for arm in reversed(range(len(places))):  # none above the chart
        places[arm] = min(places[arm], upper - half[arm])
        upper = places[arm] - half[arm]
    firsts = [math.exp(at + up - line / 2) for at, up in zip(places, half, strict=True)]
    return pd.DataFrame({"arm": named, "place": firsts, "label": labels})


def _point_marks(points: pd.DataFrame, *, links: bool, words: bool) -> alt.Chart:
    """The points with all their columns as hover text, and a legend of their `words`; the caller
    adds x, y and colour.
    """
    points = points[[name for name in DRAWN_COLUMNS if name in points]]
    shown = MAIN_WORDS | set(points["word"])
    legend = {
        "symbolFillColor": GREY,
        "symbolStrokeWidth": 0,
        "values": [word for word in SHAPES if word in shown],
    }
    hover = column_tips(points, HOVER)
    if "prompt_tokens" in hover:  # they are the same
        hover.pop("tokens", None)
    mark = alt.Chart(with_links(points) if links else points).mark_point(
        filled=True, size=65, clip=True
    )
    return linked(
        mark.encode(
            # Panels share this scale: with the words of one panel alone it would give those of the
            # others wrong shapes.
            shape=category(alt.Shape, "word", SHAPES, legend if words else None),
            opacity=alt.condition("datum.distrusted", alt.value(0.35), alt.value(1)),
            tooltip=tips(hover),
        )
    )


def _published_marks(found: pd.DataFrame) -> alt.Chart:
    """Hollow marks with their source as legend and hover text; the caller adds x and y."""
    legend = alt.Legend(
        title=None, orient="top", symbolType="circle", symbolFillColor="transparent"
    )
    hover = {name: text for name, text in HOVER_PUBLISHED.items() if found[name].notna().any()}
    mark = alt.Chart(found).mark_point(
        shape="circle", filled=False, size=95, strokeWidth=2, opacity=1
    )
    tones = alt.Scale(range=list(TONES))
    made: alt.Chart = mark.encode(
        alt.Stroke("published:N", scale=tones, legend=legend), tooltip=tips(hover)
    )
    return made


def with_rows(found: pd.DataFrame) -> pd.DataFrame:
    """Published points with the label of a `row` of their own, as a forest plot has: `published: …,
    ToMe, AugReg: 1.641×`.
    """
    labels: list[str] = []
    for point in found.to_dict("records"):
        parts = (point["published"], point["label"], point["setting"])
        words = ", ".join(str(part) for part in parts if not pd.isna(part))
        labels.append(f"{words}: {point['speedup']:.3f}×")
    return found.assign(
        row=[label + " " * labels[:place].count(label) for place, label in enumerate(labels)]
    )


def _arm_axis(labels: Mapping[str, str], styles: Mapping[str, ArmStyle]) -> alt.Axis:
    """An axis on the right: the text of every arm, with a tick that is drawn like its line."""

    def look(values: Mapping[str, Any], other: Any) -> dict[str, Any]:
        tests = {name: f"datum.value === {json.dumps(labels[name])}" for name in values}
        found = [{"test": tests[name], "value": value} for name, value in values.items()]
        return {"condition": found, "value": other}

    return alt.Axis(
        orient="right",
        title=None,
        grid=False,
        ticks=True,
        offset=14,
        tickSize=26,
        tickWidth=3,
        tickColor=look({name: style.color for name, style in styles.items()}, GREY),
        tickDash=look({name: style.dash for name, style in styles.items()}, [1, 0]),
        labelLimit=0,
        labelExpr=f"slice(datum.label, {NARROW} ? lastindexof(datum.label, ': ') + 2 : 0)",
        labelPadding=8,
        **scales.CENTRED,
    )
