"""Speed-up charts as pure functions from data frames to `alt.Chart`, for the app, `breakeven plot` and notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from store.host_labels import label_hosts
from sweeps.curve_labels import axis_place, describe_break_even
from sweeps.flags import split_flags, wrong
from sweeps.kinds import THREAD_FIELDS
from sweeps.metrics import METRICS, MetricSpec
from sweeps.number_format import count
from webapp import texts
from webapp.arm_style import ArmStyle, arm_styles, label_arms
from webapp.axis_curves import SIZES, Axis, curves_along, size_of
from webapp.charts import scales
from webapp.charts.encodings import GREY, arm_axis, arm_color, clickable, point_marks
from webapp.charts.forest_plot import forest_plot
from webapp.charts.process_band import process_band
from webapp.charts.published import NOTE_PUBLISHED, of_panel, published_marks, published_points
from webapp.charts.scales import Extent

X_COLUMN: Mapping[Axis, str] = {"tokens": "tokens", "gmacs": "gmacs_baseline", "gmacs_saved": "gmacs_saved"}
PANEL = (
    *("model", "weights", "batch_size", "device_name", "environment", "host", *THREAD_FIELDS, "seed"),
    *("data", "new_tokens", "decoding", "exclusive", "against"),
)
"""Columns that stay fixed within one panel, and along the MACs saved the size too; every combination found gets a panel."""

PLACES = ("x", "x_low", "x_high")
"""Columns of the view `break_even`: where a curve crosses 1, or what bounds the place."""

Layers = alt.LayerChart | alt.FacetChart
WIDTH, HEIGHT, ROW = 620, 330, 24
"""Pixels: width and height of a panel's curves, height of one row of its strip."""


class Panel(NamedTuple):
    """What is drawn together: the points of one model and condition, and the break-evens that belong to them."""

    about: dict[str, Any]
    """The columns of `PANEL`."""
    points: pd.DataFrame
    break_evens: pd.DataFrame

    def single(self, axis: Axis) -> bool:
        """Whether all of its points lie at one place along the axis: no curve, and no break-even."""
        return bool(self.points[X_COLUMN[axis]].nunique() == 1)

    @property
    def metric(self) -> MetricSpec:
        return METRICS[self.points["metric"].iloc[0]]


def curve_panels(points: pd.DataFrame, break_evens: pd.DataFrame, axis: Axis = "tokens") -> Iterator[Panel]:
    """The panels of some points along an axis, as `curves_along` returns them, in reading order."""
    columns = (*PANEL, *SIZES) if axis == "gmacs_saved" else PANEL
    against = sorted(points["against"].unique(), key=lambda name: (not name.startswith("dense"), name))
    ordered = points.assign(against=pd.Categorical(points["against"], against))
    for fixed, grouped in ordered.groupby(list(columns), dropna=False, sort=True, observed=True):
        about = dict(zip(columns, fixed, strict=True))
        own = points.loc[grouped.index]
        yield Panel(about, own, break_evens[_belongs(break_evens, about) & break_evens["arm"].isin(own["arm"])])


def flagged(points: pd.DataFrame) -> pd.Series:
    """Which rows have a flag that marks them as wrong; noisy ones have wider intervals."""
    return points["flags"].fillna("").map(lambda flags: wrong(split_flags(flags))).astype(bool)


def speedup_chart(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis = "tokens",
    *,
    show_flagged: bool = False,
    styles: Mapping[str, ArmStyle] | None = None,
    references: pd.DataFrame | None = None,
    links: bool = False,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> alt.VConcatChart:
    """Speed-up along an axis, one panel per model and condition, with the break-even of every arm in a strip below it.

    `points` holds rows of the view `speedup` by one metric and `break_evens` rows of the view `break_even`, with all columns.
    Speed-ups lie on a logarithmic axis symmetric around 1; x is logarithmic to base 2, but for the share of MACs saved. `width`
    and `height` (pixels) are those of one panel's curves. `styles` are those of the arms (default: `arm_styles` of these points).
    `references` are rows of the view `reference`: those of a panel's model and batch are drawn as hollow marks, no more.
    `links`: points lead to their evidence, in the app.
    Raises `ValueError` if there is no point to draw, or if there are several metrics.
    """
    if points["metric"].nunique() > 1:
        raise ValueError(f"a chart shows one metric, not several; choose one of {', '.join(texts.metrics_in(points['metric']))}")
    points, break_evens = curves_along(*label_arms(points, break_evens), axis)
    if points.empty:
        why = "no parameter takes three values or more at one size" if axis == "gmacs_saved" else "the MACs are not known"
        raise ValueError(f"no point to draw: {why}")
    styles = styles or arm_styles(points)
    distrusted = flagged(points)
    shown = points if show_flagged else points[~distrusted]
    hidden = points[distrusted & (not show_flagged)]
    if shown.empty:
        raise ValueError(f"no point to draw: {len(points)} measured, {len(hidden)} of them flagged and hidden")
    shown = texts.with_words(shown).assign(
        x=shown[X_COLUMN[axis]].astype(float),
        theory=shown["gmacs_baseline"] / shown["gmacs_total"],
        distrusted=distrusted[shown.index],
    )
    published = published_points(references, shown, axis)
    ratios = [*(shown[column] for column in ("speedup", "speedup_low", "speedup_high", "theory")), published["speedup"]]
    spans = scales.x_span(pd.concat([shown["x"], published["x"].astype(float)]), axis), scales.y_span(*ratios)
    names = label_hosts(points)
    views = []
    for panel in curve_panels(shown, break_evens, axis):
        host = names[panel.about["environment"], panel.about["host"]]
        beside = of_panel(published, panel.about)
        title = _title(panel, axis, hidden=int(_belongs(hidden, panel.about).sum()), host=host, published=len(beside))
        own = {name: style for name, style in styles.items() if name in set(panel.points["arm"])}
        if panel.single(axis):
            place = axis_place(float(panel.points["x"].iloc[0]), axis, size_of(panel.points).token_unit)
            beside = beside[beside["x"] == panel.points["x"].iloc[0]]
            rows = forest_plot(panel.points, spans[1], own, f"{_measure(panel)}, at {place}", beside, links=links)
            views.append(rows.properties(title=title, width=width, height=ROW * (len(own) + len(beside))))
            continue
        curves = _curves(panel, axis, spans, own, beside, links=links).properties(title=title, width=width, height=height)
        strip = _strip(panel, axis, spans[0], own).properties(width=width, height=ROW * len(own))
        views.append(
            alt.vconcat(curves, strip, spacing=30, bounds="flush").resolve_legend(shape="independent", stroke="independent")
        )
    return _configured(alt.vconcat(*views, spacing=48))


def stacked(charts: Sequence[alt.VConcatChart], title: str, subtitle: str = "") -> alt.VConcatChart:
    """Several results of `speedup_chart` one below the other, under one title."""
    views = [panel for chart in charts for panel in chart.vconcat]
    heading = alt.TitleParams(title, subtitle=subtitle or alt.Undefined, fontSize=20, subtitleFontSize=14, offset=24)
    return _configured(alt.vconcat(*views, spacing=48, title=heading))


def _configured(chart: alt.VConcatChart) -> alt.VConcatChart:
    """The chart with fonts, rules and legends, which Vega-Lite takes at the top level only."""
    axis = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 10, "gridOpacity": 0.3}
    title = {"fontSize": 16, "subtitleFontSize": 12, "subtitleColor": GREY, "anchor": "start", "frame": "group", "offset": 16}
    legend = {"labelFontSize": 12, "symbolSize": 70, "columnPadding": 18, "offset": 12}
    config = {"view": {"stroke": None}, "axis": {"domain": False} | axis, "title": {"subtitlePadding": 6} | title, "legend": legend}
    configured: alt.VConcatChart = chart.resolve_legend(shape="independent", stroke="independent").properties(
        config=alt.Config.from_dict(config)
    )
    return configured


def _curves(
    panel: Panel, axis: Axis, spans: tuple[Extent, Extent], styles: Mapping[str, ArmStyle], beside: pd.DataFrame, *, links: bool
) -> Layers:
    points, title = panel.points, _measure(panel)
    x = alt.X("x:Q", scale=scales.x_scale(spans[0], axis), axis=scales.x_axis(axis, points["x"]))
    y = alt.Y("speedup:Q", scale=scales.ratio_scale(spans[1]), axis=scales.ratio_axis(spans[1], title))
    colour = arm_color(styles)
    dashes = alt.Scale(domain=list(styles), range=[style.dash for style in styles.values()])
    floor = float(points["floor"].max())
    band = alt.Chart(pd.DataFrame({"floor_low": [1 / (1 + floor)], "floor_high": [1 + floor]}))
    processes = process_band(points)
    promised = alt.Chart(points.dropna(subset=["theory"]))
    theory = promised.mark_line(strokeWidth=1.4, strokeDash=[1, 4], strokeCap="round", opacity=0.75)
    intervals = alt.Chart(points.dropna(subset=["speedup_low", "speedup_high"])).mark_errorbar(ticks={"size": 7}, thickness=1.3)
    return alt.layer(
        band.mark_rect(color=GREY, opacity=0.25).encode(y=alt.Y("floor_low:Q"), y2="floor_high:Q"),
        band.mark_rule(color=GREY, strokeWidth=1.2).encode(y=alt.YDatum(1)),
        *([processes.chart().encode(y=alt.Y("process_low:Q"), y2="process_high:Q")] if processes else []),
        theory.encode(x, alt.Y("theory:Q"), colour),
        alt.Chart(points).mark_line(strokeWidth=2).encode(x, y, colour, alt.StrokeDash("arm:N", scale=dashes, legend=None)),
        intervals.encode(x, alt.Y("speedup_low:Q", title=title), alt.Y2("speedup_high:Q"), colour),
        *(mark.encode(x, alt.YDatum(1), colour) for mark in _break_even_marks(panel.break_evens[["arm", *PLACES]])),
        (clickable(point_marks(points)) if links else point_marks(points)).encode(x, y, colour),
        *([published_marks(beside).encode(x, y)] if len(beside) else []),
    )


def _strip(panel: Panel, axis: Axis, span: Extent, styles: Mapping[str, ArmStyle]) -> Layers:
    """One row per arm: break-evens as diamonds on their intervals, bounds as arrows, and beside them the arm's line and verdict.

    The words are the labels of an axis on the right, its ticks are drawn like the lines: together they are the chart's legend.
    """
    found, x, token_unit = panel.break_evens, panel.points["x"], size_of(panel.points).token_unit
    measured = panel.points.groupby("arm")["x"].agg(["min", "max"])
    labels = {}
    for name in styles:
        low, high = map(float, measured.loc[name])
        rows = list(found[found["arm"] == name].itertuples())
        labels[name] = f"{name}: {describe_break_even(rows, token_unit, (low, high), brief=True)}"
    found = found.assign(row=found["arm"].map(labels))
    row = alt.Y("row:N", scale=alt.Scale(domain=list(labels.values())), axis=arm_axis(labels, styles))
    bars = alt.Chart(found.dropna(subset=["x_low", "x_high"])).mark_rule(strokeWidth=5, opacity=0.45, strokeCap="round")
    scale, title = scales.x_scale(span, axis), scales.x_title(axis, panel.points, panel.metric.work)
    place = alt.X("x:Q", scale=scale, axis=scales.x_axis(axis, x, title))
    heading = alt.TitleParams(
        "Break-even with its interval; arrows: at most, or at least", fontSize=12, fontWeight="normal", color=GREY, offset=6
    )
    return alt.layer(
        bars.encode(alt.X("x_low:Q", scale=scale), alt.X2("x_high:Q"), row, arm_color(styles)),
        *(mark.encode(place, row, arm_color(styles)) for mark in _break_even_marks(found)),
        title=heading,
    )


def _break_even_marks(found: pd.DataFrame) -> Iterator[alt.Chart]:
    """Break-evens to be drawn at their `x`: places as diamonds, a bound as an arrow to where the break-even lies; others not."""
    bounds = found[found["x"].isna() & (found["x_low"].isna() | found["x_high"].isna())]
    shapes = {"diamond": (found, "x"), "triangle-left": (bounds, "x_high"), "triangle-right": (bounds, "x_low")}
    for shape, (rows, column) in shapes.items():
        known = rows.dropna(subset=[column])
        yield alt.Chart(known.assign(x=known[column])).mark_point(shape=shape, filled=True, size=90, opacity=1)


def _measure(panel: Panel) -> str:
    return f"Speed-up: {panel.metric.label}"


def _title(panel: Panel, axis: Axis, hidden: int, host: str, published: int) -> alt.TitleParams:
    """Model and baseline, and below them the condition and how to read the chart."""
    about, points = panel.about, panel.points
    words = [
        str(about["device_name"]),
        *([host] if host else []),
        *(["one GPU of several"] if about["exclusive"] == "device" else []),
        *(word for column in ("dtype", "attention", "runtime") for word in sorted(set(points[column]))),
    ]
    words += [f"{word} cache" for word in sorted(set(points["kv_cache"].dropna()))]
    words.append(f"batch {about['batch_size']}")
    if not pd.isna(about["new_tokens"]):
        words.append(f"{about['new_tokens']:.0f} new tokens of {about['data']}, {about['decoding']}")
    words += [f"{about[column]:.0f} {size.unit}" for column, size in SIZES.items() if not pd.isna(about.get(column))]
    if points["device"].iloc[0] == "cpu":
        words.append(count(int(about["threads"]), "thread"))
    words += [f"threads wait: {about['wait_policy']}"] if isinstance(about["wait_policy"], str) else []
    words += ["threads pinned"] if about["pinning"] == "cores" else []
    words.append("random weights" if about["weights"] == "random" else f"weights: {about['weights']}")
    note = "Bars: 99 % interval."
    if points["theory"].notna().any():
        mark = "Ticks" if panel.single(axis) else "Dotted"
        note += f" {mark}: if time followed the MACs of {panel.metric.work}."
    note += f" Grey: the same, within ±{100 * points['floor'].max():.2g} %."
    note += f" {NOTE_PUBLISHED}" if published else ""
    if hidden:
        note += f" {count(hidden, 'flagged point')} hidden."
    processes = process_band(points)
    lines = [" · ".join(words), note, *([processes.note] if processes else [])]
    return alt.TitleParams(f"{about['model']}, against {about['against']}", subtitle=lines)


def _belongs(frame: pd.DataFrame, about: Mapping[str, Any]) -> pd.Series:
    """Which rows lie in the panel; missing values equal each other."""
    kept = pd.Series(data=True, index=frame.index)
    for column, value in about.items():
        kept &= frame[column].isna() if pd.isna(value) else frame[column] == value
    return kept
