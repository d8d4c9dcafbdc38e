"""Charts: pure functions from data frames to `alt.Chart`, used alike by the app, `breakeven plot` and notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from store.host_labels import places
from webapp import arm_style, texts
from webapp.axis_curves import SAVED, SIZE, along
from webapp.charts.encodings import GREY, hue, marks, names
from webapp.charts.forest_plot import ladder
from webapp.charts.scales import Axis, Span, ratio_axis, ratio_scale, x_axis, x_scale, x_span, y_span

X_COLUMN: Mapping[Axis, str] = {"tokens": "tokens", "gmacs": "gmacs_baseline", "gmacs_saved": SAVED}
PANEL = (
    *("model", "weights", "batch_size", "device_name", "environment", "host", "threads", "seed", "data", "new_tokens", "decoding"),
    *("exclusive", "against"),
)
"""Columns that stay fixed within one panel, and along the MACs saved the size too; every combination found gets a panel."""

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
    def spoken(self) -> bool:
        """Whether it is of a language model."""
        return bool(self.points["prompt_tokens"].notna().any())

    @property
    def work(self) -> str | None:
        """What a language model is timed at."""
        metric = str(self.points["metric"].iloc[0])
        return texts.WORK.get(metric, metric) if self.spoken else None


def panels(points: pd.DataFrame, break_evens: pd.DataFrame, axis: Axis = "tokens") -> Iterator[Panel]:
    """The panels of some points along an axis, see `along`, in reading order."""
    columns = (*PANEL, *SIZE) if axis == SAVED else PANEL
    against = sorted(points["against"].unique(), key=lambda name: (not name.startswith("dense"), name))
    ordered = points.assign(against=pd.Categorical(points["against"], against))
    for fixed, grouped in ordered.groupby(list(columns), dropna=False, sort=True, observed=True):
        about = dict(zip(columns, fixed, strict=True))
        own = points.loc[grouped.index]
        yield Panel(about, own, break_evens[_belongs(break_evens, about) & break_evens["arm"].isin(own["arm"])])


def flagged(points: pd.DataFrame) -> pd.Series:
    """Which rows carry a reason for distrust."""
    return points["flags"].fillna("").ne("")


def speedup_chart(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis = "tokens",
    *,
    show_flagged: bool = False,
    styles: Mapping[str, arm_style.Style] | None = None,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> alt.VConcatChart:
    """Speed-up along an axis, one panel per model and condition, with the break-even of every arm in a strip below it.

    `points` holds rows of the view `speedup` by one metric and `break_evens` rows of the view `break_even`, with all columns.
    Speed-ups lie on a logarithmic axis symmetric around 1; x is logarithmic to base 2, but for the share of MACs saved. `width`
    and `height` (pixels) are those of one panel's curves. `styles` fixes the look of arms (default: `arms.styles` of these points).
    Raises `ValueError` if there is no point to draw, or if there are several metrics.
    """
    if points["metric"].nunique() > 1:
        raise ValueError(f"several metrics cannot share a chart; choose one of {', '.join(texts.metrics(points['metric']))}")
    points, break_evens = along(*arm_style.named(points, break_evens), axis)
    if points.empty:
        unknown = "the MACs of what was timed are not known"
        why = "no parameter takes three values or more at one size" if axis == SAVED else unknown
        raise ValueError(f"no point to draw: {why}")
    styles = styles or arm_style.styles(points)
    distrusted = flagged(points)
    shown = points if show_flagged else points[~distrusted]
    hidden = points[distrusted & (not show_flagged)]
    if shown.empty:
        raise ValueError(f"no point to draw: {len(points)} measured, {len(hidden)} of them flagged and hidden")
    concluded = [texts.speed(point) for point in shown.to_dict("records")]
    shown = shown.assign(
        x=shown[X_COLUMN[axis]].astype(float),
        theory=shown["gmacs_baseline"] / (shown["gmacs"] + shown["gmacs_method"]),
        distrusted=distrusted[shown.index],
        estimate=[found.estimate for found in concluded],
        interval=[found.interval for found in concluded],
        word=[found.word for found in concluded],
    )
    spans = x_span(shown["x"], axis), y_span(*(shown[column] for column in ("speedup", "speedup_low", "speedup_high", "theory")))
    known = places(points)
    views = []
    for panel in panels(shown, break_evens, axis):
        place = known[panel.about["environment"], panel.about["host"]]
        title = _title(panel, axis, hidden=int(_belongs(hidden, panel.about).sum()), place=place)
        look = {name: style for name, style in styles.items() if name in set(panel.points["arm"])}
        if panel.single(axis):
            rows = ladder(panel.points, spans[1], look, _measure(panel, axis))
            views.append(rows.properties(title=title, width=width, height=ROW * len(look)))
            continue
        curves = _curves(panel, axis, spans, look).properties(title=title, width=width, height=height)
        strip = _strip(panel, axis, spans[0], look).properties(width=width, height=ROW * len(look))
        views.append(alt.vconcat(curves, strip, spacing=30, bounds="flush").resolve_legend(shape="independent"))
    return _finished(alt.vconcat(*views, spacing=48))


def stacked(charts: Sequence[alt.VConcatChart], title: str, subtitle: str = "") -> alt.VConcatChart:
    """Several results of `speedup_chart` one below the other, under one title."""
    views = [panel for chart in charts for panel in chart.vconcat]
    heading = alt.TitleParams(title, subtitle=subtitle or alt.Undefined, fontSize=20, subtitleFontSize=14, offset=24)
    return _finished(alt.vconcat(*views, spacing=48, title=heading))


def _finished(chart: alt.VConcatChart) -> alt.VConcatChart:
    """The chart with the house's typography; set once, at the top level, where Vega-Lite wants it."""
    done: alt.VConcatChart = (
        chart.resolve_legend(shape="independent")
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=12, titleFontSize=12, titleFontWeight="normal", titlePadding=10, domain=False, gridOpacity=0.3
        )
        .configure_title(
            fontSize=16, subtitleFontSize=12, subtitleColor=GREY, anchor="start", frame="group", offset=16, subtitlePadding=6
        )
        .configure_legend(labelFontSize=12, symbolSize=70, columnPadding=18, offset=12)
    )
    return done


def _curves(
    panel: Panel, axis: Axis, spans: tuple[Span, Span], look: Mapping[str, arm_style.Style]
) -> alt.LayerChart | alt.FacetChart:
    points = panel.points
    title = _measure(panel)
    x = alt.X("x:Q", scale=x_scale(spans[0], axis), axis=x_axis(axis, points["x"], bare=True))
    y = alt.Y("speedup:Q", scale=ratio_scale(spans[1]), axis=ratio_axis(spans[1], title))
    colour = hue(look)
    dash = alt.StrokeDash("arm:N", scale=alt.Scale(domain=list(look), range=[style.dash for style in look.values()]), legend=None)
    floor = float(points["floor"].max())
    band = alt.Chart(pd.DataFrame({"floor_low": [1 / (1 + floor)], "floor_high": [1 + floor]}))
    theory = alt.Chart(points.dropna(subset=["theory"])).mark_line(
        strokeWidth=1.4, strokeDash=[1, 4], strokeCap="round", opacity=0.75
    )
    intervals = alt.Chart(points.dropna(subset=["speedup_low", "speedup_high"])).mark_errorbar(ticks={"size": 7}, thickness=1.3)
    crossings = alt.Chart(panel.break_evens.dropna(subset=["x"])[["arm", "x"]])
    return alt.layer(
        band.mark_rect(color=GREY, opacity=0.25).encode(y=alt.Y("floor_low:Q"), y2="floor_high:Q"),
        band.mark_rule(color=GREY, strokeWidth=1.2).encode(y=alt.YDatum(1)),
        theory.encode(x, alt.Y("theory:Q"), colour),
        alt.Chart(points).mark_line(strokeWidth=2).encode(x, y, colour, dash),
        intervals.encode(x, alt.Y("speedup_low:Q", title=title), alt.Y2("speedup_high:Q"), colour),
        crossings.mark_point(shape="diamond", filled=True, size=90, opacity=1).encode(x, alt.YDatum(1), colour),
        marks(points).encode(x, y, colour),
    )


def _strip(panel: Panel, axis: Axis, span: Span, look: Mapping[str, arm_style.Style]) -> alt.LayerChart | alt.FacetChart:
    """One row per arm: break-evens as diamonds on their intervals, and beside them the arm's line and verdict in words.

    The words are the labels of an axis on the right, its ticks are drawn like the lines: together they are the chart's legend.
    """
    found, x = panel.break_evens, panel.points["x"]
    reach = panel.points.groupby("arm")["x"].max()
    words = {
        name: f"{name}: {texts.short(found[found['arm'] == name], axis, float(reach[name]), spoken=panel.spoken)}" for name in look
    }
    crossings = found.dropna(subset=["x"])
    crossings = crossings.assign(row=crossings["arm"].map(words))
    row = alt.Y("row:N", scale=alt.Scale(domain=list(words.values())), axis=names(words, look))
    bars = alt.Chart(crossings.dropna(subset=["x_low", "x_high"])).mark_rule(strokeWidth=5, opacity=0.45, strokeCap="round")
    heading = alt.TitleParams("Break-even, with its interval", fontSize=12, fontWeight="normal", color=GREY, offset=6)
    return alt.layer(
        bars.encode(alt.X("x_low:Q", scale=x_scale(span, axis)), alt.X2("x_high:Q"), row, hue(look)),
        alt.Chart(crossings)
        .mark_point(shape="diamond", filled=True, size=90, opacity=1)
        .encode(alt.X("x:Q", scale=x_scale(span, axis), axis=x_axis(axis, x, work=panel.work)), row, hue(look)),
        title=heading,
    )


def _measure(panel: Panel, axis: Axis | None = None) -> str:
    """What is drawn, and where along `axis` all of it lies."""
    metric = str(panel.points["metric"].iloc[0])
    what = "Speed-up" if metric == "latency" else f"Speed-up: {texts.METRIC.get(metric, metric)}"
    if axis is None:
        return what
    return f"{what}, at {texts.place(float(panel.points[X_COLUMN[axis]].iloc[0]), axis, spoken=panel.spoken)}"


def _title(panel: Panel, axis: Axis, hidden: int, place: str) -> alt.TitleParams:
    about, points = panel.about, panel.points
    words = [
        str(about["device_name"]),
        *([place] if place else []),
        *(["one GPU of several"] if about["exclusive"] == "device" else []),
        *(word for column in ("dtype", "attention", "runtime") for word in sorted(set(points[column]))),
    ]
    words += [f"{word} cache" for word in sorted(set(points["kv_cache"].dropna()))]
    words.append(f"batch {about['batch_size']}")
    if not pd.isna(about["new_tokens"]):
        words.append(f"{about['new_tokens']:.0f} new tokens of {about['data']}, {about['decoding']}")
    for column, unit in (("image_size", "px"), ("prompt_tokens", "tokens of the prompt")):
        if not pd.isna(about.get(column)):
            words.append(f"{about[column]:.0f} {unit}")
    if points["device"].iloc[0] == "cpu":
        words.append(texts.counted(int(about["threads"]), "thread"))
    words.append("random weights" if about["weights"] == "random" else f"weights: {about['weights']}")
    macs = f" of {panel.work}" if panel.work else ""
    line = f" {'Upright' if panel.single(axis) else 'Dotted'}: if time followed the MACs{macs}."
    line = line if points["theory"].notna().any() else ""
    note = f"Bars: 95 % interval.{line} Grey: noise floor, ±{100 * points['floor'].max():.2g} %."
    if hidden:
        note += f" {texts.counted(hidden, 'flagged point')} hidden."
    return alt.TitleParams(f"{about['model']}, against {about['against']}", subtitle=[" · ".join(words), note])


def _belongs(frame: pd.DataFrame, about: Mapping[str, Any]) -> pd.Series:
    """Which rows lie in the panel; missing values equal each other."""
    kept = pd.Series(data=True, index=frame.index)
    for column, value in about.items():
        kept &= frame[column].isna() if pd.isna(value) else frame[column] == value
    return kept
