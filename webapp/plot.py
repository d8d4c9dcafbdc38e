"""The chart of a sweep as a PNG, SVG, PDF or self-contained HTML file, drawn without a browser and
without the network.
"""

from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Literal, get_args

import altair as alt
import pandas as pd

from webapp import queries
from webapp.charts import curves
from webapp.charts.panels import RUNTIME, bare_model, panel_infos, under_each_runtime
from webapp.charts.points import omit_empty_rows
from webapp.display import texts
from webapp.display.axis_curves import Axis

Axes = Literal["tokens", "gmacs", "gmacs_saved", "both"]
FileFormat = Literal["png", "svg", "pdf", "html"]
Chart = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.HConcatChart
    | alt.VConcatChart
    | alt.ConcatChart
)


class PlotError(ValueError):
    """There is no plot; the message is one line with the reason and what would be right."""


def save_plot(
    name: str,
    out: Path,
    *,
    axes: Axes = "tokens",
    metric: str | None = None,
    url: str | None = None,
    show_flagged: bool = False,
    references: bool = False,
) -> None:
    """Draws the newest revision of sweep `name` into `out`; its extension is the format (PNG at
    twice the size in pixels).

    `both` axes are tokens and GMACs. `metric` is one of the view `speedup` (default: the first that
    the sweep has). `references`: published points of the same models, which the store holds, are
    drawn beside its own.

    Raises `PlotError` for another extension, a sweep without a measurement or a path that cannot be
    written, and `store.errors.StoreError` for an unknown sweep or a store that cannot be read.
    """
    found = [form for form in get_args(FileFormat) if f".{form}" == out.suffix.lower()]
    if not found:
        raise PlotError(
            f"{out}: this extension is not a known format; use .png, .svg, .pdf or .html"
        )
    chart = figure(
        name, axes=axes, metric=metric, url=url, show_flagged=show_flagged, references=references
    )
    content = render_chart(chart, found[0])
    try:
        out.write_bytes(content)
    except OSError as problem:
        raise PlotError(
            f"{out}: cannot be written: {problem.strerror}; choose a folder that exists and is"
            " writable"
        ) from problem


def figure(
    name: str,
    *,
    axes: Axes = "tokens",
    metric: str | None = None,
    url: str | None = None,
    show_flagged: bool = False,
    references: bool = False,
) -> alt.VConcatChart:
    """The chart that `save_plot` saves, for notebooks. Raises as `save_plot` does."""
    with queries.reading(url):
        question = str(queries.find_sweep(name)["question"])
        points, break_evens = queries.labelled_speedups(name)
        if points.empty:
            raise PlotError(
                f"sweep '{name}' has no measurement yet; its progress is shown by: breakeven status"
            )
        known = texts.metrics_in(points["metric"])
        if metric is not None and metric not in known:
            raise PlotError(
                f"sweep '{name}' has no metric '{metric}'; choose one of {', '.join(known)}"
            )
        points = points[points["metric"] == (metric or known[0])]
        published = _published(points, name) if references else None
    wanted: tuple[Axis, ...] = ("tokens", "gmacs") if axes == "both" else (axes,)
    split = under_each_runtime(points), under_each_runtime(break_evens)
    several = split[0]["runtime"].nunique() > 1 and split[0]["tokens"].nunique() > 1
    flags: dict[str, Any] = {"show_flagged": show_flagged, "references": published}
    try:
        views = [
            curves.small_multiples(panel_infos(*split, axis, by=RUNTIME, **flags))
            if several and axis == "tokens"
            else curves.speedup_chart(panel_infos(points, break_evens, axis, **flags))
            for axis in wanted
        ]
    except ValueError as problem:
        hint = "; draw flagged points with: --flagged" if "flagged" in str(problem) else ""
        raise PlotError(f"sweep '{name}': {problem}{hint}") from problem
    return curves.stacked(views, name, question)


def _published(points: pd.DataFrame, name: str) -> pd.DataFrame:
    """The published points of the store. Raises `PlotError` where none is of a model of these
    points.
    """
    found = queries.references()
    if found.empty:
        raise PlotError(
            "the store holds no published point; import some with: breakeven import --reference"
        )
    if not set(found["model"].dropna()) & {bare_model(model) for model in points["model"]}:
        models = ", ".join(sorted(set(found["model"].dropna())))
        raise PlotError(
            f"no published point is of a model of sweep '{name}'; the store holds some of {models}"
        )
    return found


def render_chart(chart: Chart, form: FileFormat) -> bytes:
    """The chart as the bytes of a file, on white; HTML contains all its scripts, so that it opens
    without a network.
    """
    with alt.data_transformers.enable("default", max_rows=None):
        on_white = chart.properties(background="white", padding=20)
        if form in {"png", "pdf"}:
            picture = BytesIO()
            on_white.save(picture, format=form, scale_factor=2 if form == "png" else 1)
            return picture.getvalue()
        omit_empty_rows(on_white)
        text = StringIO()
        on_white.save(text, format=form, inline=form == "html")
        return text.getvalue().encode()
