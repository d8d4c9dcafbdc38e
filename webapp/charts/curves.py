"""Speed-up charts as pure functions from data frames to `alt.Chart`, for the app, `breakeven plot`
and notebooks.
"""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal, NamedTuple

import altair as alt
import pandas as pd

from store.read.curves import label_hosts
from sweeps.model.flags import split_flags, wrong
from sweeps.model.kinds import THREAD_FIELDS
from sweeps.model.metrics import INTERVAL, METRICS, MetricSpec
from sweeps.number_format import count
from sweeps.text.curves import BREAK_EVEN_NOTE, axis_place
from webapp.charts import scales
from webapp.charts.break_even_strip import break_even_strip
from webapp.charts.emphasis import emphasised_arms, ranked_arms
from webapp.charts.encodings import GREY
from webapp.charts.forest_plot import forest_plot
from webapp.charts.published import NOTE_PUBLISHED, of_panel, published_points
from webapp.charts.speed_lines import Look, speed_lines
from webapp.display import texts
from webapp.display.arm_style import ArmStyle, arm_styles, label_arms
from webapp.display.axis_curves import SIZES, Axis, curves_along, size_of

X_COLUMN: Mapping[Axis, str] = {
    "tokens": "tokens",
    "gmacs": "gmacs_baseline",
    "gmacs_saved": "gmacs_saved",
}
PANEL = (
    *(
        "model",
        "weights",
        "batch_size",
        "device_name",
        "environment",
        "host",
        *THREAD_FIELDS,
        "seed",
    ),
    *("data", "new_tokens", "decoding", "exclusive", "against"),
)
"""Columns that stay fixed within one panel, and along the MACs saved the size too; every
combination found gets a panel."""

Layers = alt.LayerChart | alt.FacetChart
WIDTH, HEIGHT, ROW = 620, 330, 24
"""Pixels: width and height of a panel's curves, height of a row where there is one size."""
MAX_IN_STRIP = 12
"""Arms that the strip names and whose points are drawn, the best ones; of the others there are
lines."""


class Panel(NamedTuple):
    """What is drawn together: the points of one model and condition, and the break-evens that
    belong to them.
    """

    about: dict[str, Any]
    """The columns of `PANEL`."""
    points: pd.DataFrame
    break_evens: pd.DataFrame

    def single(self, axis: Axis) -> bool:
        """Whether all of its points lie at one place along the axis: no curve, and no
        break-even.
        """
        return bool(self.points[X_COLUMN[axis]].nunique() == 1)

    @property
    def title(self) -> str:
        return f"{self.about['model']}, against {self.about['against']}"

    @property
    def metric(self) -> MetricSpec:
        return METRICS[self.points["metric"].iloc[0]]


def curve_panels(
    points: pd.DataFrame, break_evens: pd.DataFrame, axis: Axis = "tokens", by: str | None = None
) -> Iterator[Panel]:
    """The panels of some points along an axis, as `curves_along` returns them, in reading order;
    `by` splits them further.
    """
    columns = (*PANEL, *SIZES) if axis == "gmacs_saved" else PANEL
    columns = (*columns, by) if by is not None and by not in columns else columns
    against = sorted(
        points["against"].unique(), key=lambda name: (not name.startswith("dense"), name)
    )
    ordered = points.assign(against=pd.Categorical(points["against"], against))
    for fixed, grouped in ordered.groupby(list(columns), dropna=False, sort=True, observed=True):
        about = dict(zip(columns, fixed, strict=True))
        own = points.loc[grouped.index]
        yield Panel(
            about,
            own,
            break_evens[_belongs(break_evens, about) & break_evens["arm"].isin(own["arm"])],
        )


def flagged(points: pd.DataFrame) -> pd.Series:
    """Which rows have a flag that marks them as wrong; noisy ones have wider intervals."""
    return points["flags"].fillna("").map(lambda flags: wrong(split_flags(flags))).astype(bool)


def curve_axes(points: pd.DataFrame, break_evens: pd.DataFrame) -> list[Axis]:
    """The axes along which some points have curves, the first to be shown at the front."""
    saved: list[Axis] = ["gmacs_saved"] if (break_evens["axis"] == "gmacs_saved").any() else []
    sizes = [
        axis
        for axis, column in X_COLUMN.items()
        if axis != "gmacs_saved" and points[column].nunique() > 1
    ]
    return [*sizes, *saved] if sizes else [*saved, "tokens"]


class PanelView(NamedTuple):
    """One panel ready to be drawn: what it shows in words, and its two parts that share an axis."""

    panel: Panel
    title: str
    condition: str
    notes: list[str]
    """How to read the chart."""
    curves: Layers
    strip: Layers | None
    """`None` for a panel with one size: its curves are rows with words already."""


def panel_views(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis = "tokens",
    *,
    show_flagged: bool = False,
    styles: Mapping[str, ArmStyle] | None = None,
    references: pd.DataFrame | None = None,
    links: bool = False,
    selected: str | None = None,
    by: str | None = None,
    width: int | Literal["container"] = WIDTH,
    height: int = HEIGHT,
) -> Iterator[PanelView]:
    """The parts of `speedup_chart`, one view for each panel; `by` is a column of arms that splits
    panels further.

    Raises `ValueError` as `speedup_chart` does, at the first panel.
    """
    if points["metric"].nunique() > 1:
        raise ValueError(
            "a chart shows one metric, not several; choose one of"
            f" {', '.join(texts.metrics_in(points['metric']))}"
        )
    points, break_evens = curves_along(*label_arms(points, break_evens), axis)
    if points.empty:
        why = (
            "no parameter takes three values or more at one size"
            if axis == "gmacs_saved"
            else "the MACs are not known"
        )
        raise ValueError(f"no point to draw: {why}")
    styles = styles or arm_styles(points)
    distrusted = flagged(points)
    shown = points if show_flagged else points[~distrusted]
    hidden = points[distrusted & (not show_flagged)]
    if shown.empty:
        raise ValueError(
            f"no point to draw: {len(points)} measured, {len(hidden)} of them flagged and hidden"
        )
    shown = shown.assign(
        x=shown[X_COLUMN[axis]].astype(float),
        theory=shown["gmacs_baseline"] / shown["gmacs_total"],
        distrusted=distrusted[shown.index],
    )
    open_ends = texts.undecided(shown)  # no interval that anything follows from
    shown = shown.assign(
        **{name: shown[name].mask(open_ends) for name in ("speedup_low", "speedup_high")}
    )
    published = published_points(references, shown, axis)
    ratios = [
        *(shown[column] for column in ("speedup", "speedup_low", "speedup_high", "theory")),
        published["speedup"],
    ]
    spans = (
        scales.x_span(pd.concat([shown["x"], published["x"].astype(float)]), axis),
        scales.y_span(*ratios),
    )
    names = label_hosts(points)
    for panel in curve_panels(shown, break_evens, axis, by):
        beside = of_panel(published, panel.about)
        notes = _notes(panel, axis, int(_belongs(hidden, panel.about).sum()), len(beside))
        words = panel.title, condition_words(panel, axis, names), notes
        ranked = ranked_arms(panel.points, panel.break_evens)
        own = {arm: styles[arm] for arm in ranked}
        if panel.single(axis):
            place = axis_place(
                float(panel.points["x"].iloc[0]), axis, size_of(panel.points).token_unit
            )
            beside = beside[beside["x"] == panel.points["x"].iloc[0]]
            rows = forest_plot(
                _worded(panel.points),
                spans[1],
                own,
                f"{_measure(panel)}, at {place}",
                beside,
                links=links,
            )
            yield PanelView(
                panel, *words, _sized(rows, width, ROW * (len(own) + len(beside))), None
            )
            continue
        methods = dict(zip(panel.points["arm"], panel.points["method"], strict=True))
        coloured = emphasised_arms(ranked, methods, selected)
        named = list(dict.fromkeys([*coloured, *ranked]))[: max(MAX_IN_STRIP, len(coloured))]
        named = [arm for arm in ranked if arm in named]
        look = Look(
            {arm: own[arm] for arm in named}, coloured, coloured[0] if len(coloured) == 1 else None
        )
        drawn = speed_lines(
            *(panel.points, panel.break_evens, axis, spans),
            marked=_worded(panel.points[panel.points["arm"].isin(named)]),
            look=look,
            title=_measure(panel),
            published=beside,
            links=links,
            height=height,
        )
        strip = break_even_strip(
            *(panel.points, panel.break_evens, axis, spans[0]), look=look, work=panel.metric.work
        )
        if more := len(ranked) - len(named):
            words[2].append(
                f"The {len(named)} best of {len(ranked)} arms have points and names; {more} more"
                " are grey lines."
            )
        yield PanelView(panel, *words, _sized(drawn, width, height), _sized(strip, width))


def speedup_chart(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis = "tokens",
    *,
    show_flagged: bool = False,
    styles: Mapping[str, ArmStyle] | None = None,
    references: pd.DataFrame | None = None,
    selected: str | None = None,
    by: str | None = None,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> alt.VConcatChart:
    """Speed-up along an axis, one panel per model and condition, with the break-even of every arm
    in a strip below it.

    `points` holds rows of the view `speedup` by one metric and `break_evens` rows of the view
    `break_even`, with all columns. Speed-ups lie on a logarithmic axis symmetric around 1; x is
    logarithmic to base 2, but for the share of MACs saved. `width` and `height` (pixels) are those
    of one panel's curves. `styles` are those of the arms (default: `arm_styles` of these points).
    `references` are rows of the view `reference`: those of a panel's model and batch are drawn as
    hollow marks, no more. `selected` is the label of the one arm in colour, with what its MACs
    promise; else a few arms are all in colour, and of many the best of each method. Raises
    `ValueError` if there is no point to draw, or if there are several metrics.
    """
    views: list[Any] = []
    found = panel_views(
        *(points, break_evens, axis),
        show_flagged=show_flagged,
        styles=styles,
        references=references,
        selected=selected,
        by=by,
        width=width,
        height=height,
    )
    for view in found:
        title = alt.TitleParams(
            view.title,
            subtitle=[line for text in (view.condition, *view.notes) for line in wrap(text, 110)],
        )
        if view.strip is None:
            views.append(view.curves.properties(title=title))
            continue
        both = alt.vconcat(
            view.curves.properties(title=title), view.strip, spacing=30, bounds="flush"
        )
        views.append(_apart(both))
    return _configured(alt.vconcat(*views, spacing=48))


def stacked(charts: Sequence[alt.VConcatChart], title: str, subtitle: str = "") -> alt.VConcatChart:
    """Several results of `speedup_chart` one below the other, under one title."""
    views = [panel for chart in charts for panel in chart.vconcat]
    heading = alt.TitleParams(
        title, subtitle=subtitle or alt.Undefined, fontSize=20, subtitleFontSize=14, offset=24
    )
    return _configured(alt.vconcat(*views, spacing=48, title=heading))


def _configured(chart: alt.VConcatChart) -> alt.VConcatChart:
    """The chart with fonts, rules and legends, which Vega-Lite takes at the top level only."""
    axis = {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "gridOpacity": 0.3,
    }
    title = {
        "fontSize": 16,
        "subtitleFontSize": 12,
        "subtitleColor": GREY,
        "anchor": "start",
        "frame": "group",
        "offset": 16,
    }
    legend = {"labelFontSize": 12, "symbolSize": 70, "columnPadding": 18, "offset": 12}
    config = {
        "view": {"stroke": None},
        "axis": {"domain": False} | axis,
        "title": {"subtitlePadding": 6} | title,
        "legend": legend,
    }
    configured: alt.VConcatChart = _apart(chart).properties(config=alt.Config.from_dict(config))
    return configured


def _apart(chart: alt.VConcatChart) -> alt.VConcatChart:
    """The chart whose parts have legends and arms of their own: an arm in colour in one panel may
    be grey in another.
    """
    legends: alt.VConcatChart = chart.resolve_legend(shape="independent", stroke="independent")
    scales_apart: alt.VConcatChart = legends.resolve_scale(
        color="independent", strokeDash="independent"
    )
    return scales_apart


def _sized(chart: Layers, width: int | Literal["container"], height: int | None = None) -> Layers:
    """The chart with a width; one that fits its container keeps the height of its drawing."""
    more: dict[str, Any] = (
        {"autosize": alt.AutoSizeParams(type="fit-x", contains="padding")}
        if width == "container"
        else {}
    )
    sized: Layers = chart.properties(
        width=width, **({} if height is None else {"height": height}), **more
    )
    return sized


def _worded(points: pd.DataFrame) -> pd.DataFrame:
    """Points with what their marks and hover texts need in words."""
    return texts.explained(texts.with_words(points))


def _measure(panel: Panel) -> str:
    return f"Speed-up: {panel.metric.label}"


def condition_words(panel: Panel, axis: Axis, hosts: Mapping[tuple[str, str], str]) -> str:
    """What is fixed in a panel besides model and baseline; `hosts` are those of
    `store.read.curves.label_hosts`.
    """
    about, points = panel.about, panel.points
    host = hosts[about["environment"], about["host"]]
    words = [
        str(about["device_name"]),
        *([host] if host else []),
        *(["one GPU of several"] if about["exclusive"] == "device" else []),
        *(
            word
            for column in ("dtype", "attention", "runtime")
            for word in sorted(set(points[column]))
        ),
    ]
    words += [f"{word} cache" for word in sorted(set(points["kv_cache"].dropna()))]
    words.append(f"batch {about['batch_size']}")
    if not pd.isna(about["new_tokens"]):
        words.append(
            f"{about['new_tokens']:.0f} new tokens of {about['data']}, {about['decoding']}"
        )
    sizes = {column: about.get(column) for column in SIZES}
    if panel.single(axis):
        sizes = {column: points[column].iloc[0] for column in SIZES}
    words += [
        f"{value:.0f} {SIZES[column].unit}" for column, value in sizes.items() if not pd.isna(value)
    ]
    if points["device"].iloc[0] == "cpu":
        words.append(count(int(about["threads"]), "thread"))
    words += (
        [f"threads wait: {about['wait_policy']}"] if isinstance(about["wait_policy"], str) else []
    )
    words += ["threads pinned"] if about["pinning"] == "cores" else []
    words.append(
        "random weights" if about["weights"] == "random" else f"weights: {about['weights']}"
    )
    return " · ".join(words)


def _notes(panel: Panel, axis: Axis, hidden: int, published: int) -> list[str]:
    """How to read the chart, and what it does not show."""
    points = panel.points
    note = (
        f"Bars: {INTERVAL} interval."
        if panel.single(axis)
        else f"Shaded around a line: {INTERVAL} interval."
    )
    if points["theory"].notna().any():
        mark = "Ticks" if panel.single(axis) else "Dotted, for one arm in colour"
        note += f" {mark}: if time followed the MACs of {panel.metric.work}."
    note += f" Grey: the same, within ±{100 * points['floor'].max():.2g} %."
    note += f" {NOTE_PUBLISHED}" if published else ""
    if hidden:
        note += f" {count(hidden, 'flagged point')} hidden."
    curves = [] if panel.single(axis) else [BREAK_EVEN_NOTE]
    return [note, *curves]


def _belongs(frame: pd.DataFrame, about: Mapping[str, Any]) -> pd.Series:
    """Which rows lie in the panel; missing values equal each other."""
    kept = pd.Series(data=True, index=frame.index)
    for column, value in about.items():
        kept &= frame[column].isna() if pd.isna(value) else frame[column] == value
    return kept
