"""The chart of a sweep as a PNG, SVG, PDF or self-contained HTML file, drawn without a browser and
without the network.
"""

import re
from collections.abc import Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import altair as alt
import pandas as pd
import vl_convert

from store.rows.location import database_option
from webapp import queries
from webapp.charts import curves
from webapp.charts.panels import (
    PANEL,
    RUNTIME,
    X_COLUMN,
    PanelInfo,
    bare_model,
    panel_infos,
    under_each_runtime,
)
from webapp.charts.papers import caption_lines, draw_paper
from webapp.charts.points import omit_empty_rows
from webapp.display import texts
from webapp.display.paper import Axes, Paper, PaperError

FileFormat = Literal["png", "svg", "pdf", "html"]
Chart = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.HConcatChart
    | alt.VConcatChart
    | alt.ConcatChart
)


PIXELS_PER_INCH = 300
"""Of a PNG for a paper."""


SPLITS = tuple(
    dict.fromkeys((*PANEL, *RUNTIME, "method", "image_size", "prompt_tokens")),
)
"""Columns whose values may have rows or columns of panels."""


class PlotError(PaperError):
    """There is no plot; the message is one line with the reason and what would be right."""


class Drawing(NamedTuple):
    """What a plot shows of a sweep."""

    question: str
    panels: Sequence[Sequence[PanelInfo]]
    """Those along each axis."""


def save_plot(
    name: str,
    out: Path,
    *,
    axes: Axes = "tokens",
    metric: str | None = None,
    url: str | None = None,
    show_flagged: bool = False,
    references: bool = False,
    paper: Paper | None = None,
) -> list[Path]:
    """Draws the newest revision of sweep `name` into `out`; its extension is the format (PNG at
    twice the size in pixels).

    `both` axes are tokens and GMACs. `metric` is one of the view `speedup` (default: the first that
    the sweep has). `references`: published points of the same models, which the store holds, are
    drawn beside its own. With a `paper` the figure alone is drawn, and what its caption needs goes
    into a text file beside it.

    Raises `PlotError` for another extension, a sweep without a measurement or a path that cannot be
    written, `PaperError` for a figure that does not fit its paper, and `store.errors.StoreError`
    for an unknown sweep or a store that cannot be read.
    """
    found = [form for form in get_args(FileFormat) if f".{form}" == out.suffix.lower()]
    if not found:
        raise PlotError(
            f"{out}: this extension is not a known format; use .png, .svg, .pdf or .html"
        )
    form = found[0]
    drawing = find_panels(
        name, axes, metric, url, flagged=show_flagged, references=references, paper=paper
    )
    if paper is None:
        files = {out: render_chart(_stacked(drawing, name), form)}
    else:
        files = _paper_files(out, form, drawing, paper)
    for path, content in files.items():
        try:
            path.write_bytes(content)
        except OSError as problem:
            raise PlotError(
                f"{path}: cannot be written: {problem.strerror}; choose a folder that exists and is"
                " writable"
            ) from problem
    return list(files)


def figure(
    name: str,
    *,
    axes: Axes = "tokens",
    metric: str | None = None,
    url: str | None = None,
    show_flagged: bool = False,
    references: bool = False,
) -> alt.VConcatChart:
    """The chart that `save_plot` saves without a `paper`, for notebooks. Raises as it does."""
    return _stacked(
        find_panels(name, axes, metric, url, flagged=show_flagged, references=references), name
    )


def _stacked(drawing: Drawing, name: str) -> alt.VConcatChart:
    views = [
        curves.small_multiples(infos)
        if RUNTIME[0] in infos[0].panel.about
        else curves.speedup_chart(infos)
        for infos in drawing.panels
    ]
    return curves.stacked(views, name, drawing.question)


def _paper_files(out: Path, form: FileFormat, drawing: Drawing, paper: Paper) -> dict[Path, bytes]:
    """The bytes of the figure and of the text for its caption. Raises `PaperError`."""
    if form == "html":
        raise PlotError(f"{out}: a figure of a stated size is .svg, .pdf or .png")
    infos = [info for along in drawing.panels for info in along]
    svg = draw_paper(infos, paper)
    if form == "svg":
        content = re.sub(r'(width|height)="([\d.]+)"', r'\1="\2pt"', svg, count=2).encode()
    elif form == "pdf":
        content = vl_convert.svg_to_pdf(svg)
    else:
        content = vl_convert.svg_to_png(svg, ppi=PIXELS_PER_INCH)
    caption = "\n".join([*caption_lines(infos, drawing.question), ""])
    return {out: content, out.with_suffix(".txt"): caption.encode()}


def find_panels(
    name: str,
    axes: Axes = "tokens",
    metric: str | None = None,
    url: str | None = None,
    *,
    flagged: bool = False,
    references: bool = False,
    paper: Paper | None = None,
) -> Drawing:
    """The panels of a plot. Raises as `save_plot` does."""
    with queries.reading(url):
        question = str(queries.find_sweep(name)["question"])
        points, break_evens = queries.labelled_speedups(name)
        if points.empty:
            raise PlotError(
                f"sweep '{name}' has no measurement yet; its progress is shown by: breakeven status"
                f"{database_option(url)}"
            )
        known = texts.metrics_in(points["metric"])
        if metric is not None and metric not in known:
            raise PlotError(
                f"sweep '{name}' has no metric '{metric}'; choose one of {', '.join(known)}"
            )
        points = points[points["metric"] == (metric or known[0])]
        published = _published(points, name, url) if references else None
    by = [each for each in (paper.rows, paper.columns) if each] if paper else []
    if unknown := [each for each in by if each not in SPLITS]:
        raise PlotError(f"panels are not by '{unknown[0]}'; choose one of {', '.join(SPLITS)}")
    if paper and paper.xlim and axes == "both":
        raise PlotError("--xlim is of one axis; draw tokens and gmacs into two files")
    split = under_each_runtime(points), under_each_runtime(break_evens)
    several = split[0]["runtime"].nunique() > 1 and split[0]["tokens"].nunique() > 1
    panels: list[list[PanelInfo]] = []
    for axis in ("tokens", "gmacs") if axes == "both" else (axes,):
        alone = several and not by and (axis == "tokens" or paper is not None)
        by_runtime = alone or bool(set(by) & set(RUNTIME))
        rows, places = split if by_runtime else (points, break_evens)
        if paper and paper.xlim:
            rows = rows[rows[X_COLUMN[axis]].between(*paper.xlim)]
        try:
            found = panel_infos(
                *(rows, places, axis),
                show_flagged=flagged,
                references=published,
                by=(*by, *RUNTIME) if by_runtime else by,
            )
            panels.append(list(found))
        except ValueError as problem:
            hint = "; draw flagged points with: --flagged" if "flagged" in str(problem) else ""
            raise PlotError(f"sweep '{name}': {problem}{hint}") from problem
    return Drawing(question, panels)


def _published(points: pd.DataFrame, name: str, url: str | None) -> pd.DataFrame:
    """The published points of the store. Raises `PlotError` where none is of a model of these
    points.
    """
    found = queries.references()
    if found.empty:
        raise PlotError(
            "the store holds no published point; import some with: breakeven import --reference"
            f"{database_option(url)}"
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
        omit_empty_rows(on_white, links=False)
        text = StringIO()
        on_white.save(text, format=form, inline=form == "html")
        return text.getvalue().encode()
