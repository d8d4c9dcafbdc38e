"""Figures for papers: panels with shared axes at a stated width, texts of one stated size, nothing
but the figure; what a caption needs is text beside it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import product
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from sweeps.number_format import count
from sweeps.text.curves import break_even_headline
from webapp.charts import scales
from webapp.charts.curves import ROW, configured, curve_layers, end_names, row_layers
from webapp.charts.panels import PanelInfo, limit_words, panel_value, rows_by_arm
from webapp.charts.points import Layers, layered
from webapp.charts.scales import Extent
from webapp.display.axis_curves import size_of
from webapp.display.paper import INCH, Paper, PaperError

TEXT = 12
"""Pixels of all texts of a drawing, which is then scaled to the size requested."""
ROOMY, NARROWEST = 190, 90
"""Pixels of the width of a figure for each panel beside another, and of a panel at first."""
FLATNESS = 0.5
"""Height of a panel in parts of the width that the figure has for each, unless stated."""
LETTER, KEY = 7.5, 50
"""Pixels of a letter and of the line before it in a legend."""
TURNS, LEAST = 8, (40, 24)
"""Drawings until the figure is as wide as requested; least width and height of a panel."""
MARKS = (
    "Marks: triangles up are faster, triangles down slower, squares the same; hollow ones are"
    " probable or unclear, upright crosses have too few pairs, slanted ones are out of"
    " memory. Areas: intervals. Bars on the axis: break-evens, between measured points; diamonds:"
    " their likeliest places."
)


def draw_paper(infos: Sequence[PanelInfo], paper: Paper) -> str:
    """The figure as SVG whose width is that of the paper in points: a grid of the panels by its
    rows and columns, or as many beside each other as have room.

    Raises `PaperError` where the width is too small for the panels, the font is unknown, or
    several panels belong to one place of the grid.
    """
    _require_font(paper.font)
    cells, across = _grid(_with_same_arms(infos, paper), paper)
    scale = paper.font_size / TEXT  # points of a pixel of the drawing
    goal = paper.width / scale
    wide = max(NARROWEST, goal / across - ROOMY / 3)
    tall = (paper.height or 0) / scale
    down = len(cells) // across
    high = tall / down or FLATNESS * goal / across
    for turn in range(TURNS):
        if tall or not turn:  # else only widths differ
            drawn = _compose(cells, across, high, paper)
        for panel in drawn["vconcat"][0]["concat"]:
            panel["width"] = wide
            for layer in panel["layer"]:
                if layer["mark"].get("limit"):
                    layer["mark"]["limit"] = wide
        svg = vl_convert.vegalite_to_svg(drawn)
        width, height = map(float, re.findall(r'(?:width|height)="([\d.]+)"', svg)[:2])
        missing = goal - width, tall and tall - height
        # several panels are whole pixels
        fits = 0 <= missing[0] < across and 0 <= missing[1] < down
        if fits or wide < LEAST[0] or high < LEAST[1]:
            break
        wide += (missing[0] - across / 2) / across
        high += tall and (missing[1] - down / 2) / down
    if not fits:
        place = f"{paper.width / INCH:.3g}in" + (f" x {tall * scale / INCH:.3g}in" if tall else "")
        raise PaperError(
            f"{count(across, 'panel')} beside each other and their texts do not fit into {place} at"
            f" {paper.font_size:g} pt; use a larger --width or --height, a smaller --font-size,"
            " fewer --columns or --legend bottom"
        )
    size = (paper.width, (tall or height) * scale)
    box = " ".join(f"{each / scale:g}" for each in size)
    head = f'width="{size[0]:g}" height="{size[1]:g}" viewBox="0 0 {box}">'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return re.sub(r'width="[\d.]+" height="[\d.]+" viewBox="[^"]*">', head + ground, svg, count=1)


def caption_lines(infos: Sequence[PanelInfo], question: str) -> Iterator[str]:
    """What a caption needs and the figure does not say: the question, the condition of each panel,
    the break-evens of its arms, and the meaning of marks.
    """
    yield question
    for info in infos:
        yield f"{info.title}: {'. '.join([info.condition, *limit_words(info.panel.points)])}."
        unit = size_of(info.panel.points).token_unit
        for arm, claims in rows_by_arm(info.panel.break_evens).items():
            if arm in info.styles:
                yield f"  {arm}: {break_even_headline(claims, unit)}"
    yield MARKS


def _require_font(fonts: str) -> None:
    """Raises `PaperError` where none of these fonts is installed: texts would be missing."""
    text, none = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><text y="15"'
        f' font-family="{escape(fonts)}">{letters}</text></svg>'
        for letters in ("Ag", "")
    )
    if vl_convert.svg_to_png(text) == vl_convert.svg_to_png(none):
        raise PaperError(
            f"the font {fonts} is not installed here; name another, or several such as 'Times,"
            " serif', of which the first that is installed is used"
        )


def _with_same_arms(infos: Sequence[PanelInfo], paper: Paper) -> list[PanelInfo]:
    """The panels, each with the arms, colours and limits that all have, for one legend."""
    styles = {arm: style for info in infos for arm, style in info.styles.items()}
    coloured = list(dict.fromkeys(arm for info in infos for arm in info.coloured))
    return [
        replace(
            info,
            styles={arm: styles[arm] for arm in info.styles} if info.single else styles,
            coloured=coloured,
            spans=(
                Extent(*(paper.xlim or info.spans[0])),
                Extent(*(paper.ylim or info.spans[1])),
            ),
        )
        for info in infos
    ]


Cells = list[PanelInfo | None]


def _grid(infos: Sequence[PanelInfo], paper: Paper) -> tuple[Cells, int]:
    """The panels in reading order with `None` for empty places, and how many are in a row.

    The same panel along several axes lies beside itself where there is room, else below.
    """
    stated = paper.rows or paper.columns
    places: dict[tuple[str, str, str], PanelInfo] = {}
    for info in infos:
        column = _value(info, paper.columns) if stated else str(info.panel.about)
        other = places.setdefault((_value(info, paper.rows), column, info.axis), info)
        if other is not info:
            raise PaperError(_conflict(info.panel.about, other.panel.about))
    down, along, axes = (list(dict.fromkeys(each)) for each in zip(*places, strict=True))
    room = 1 if infos[0].single else max(1, int(paper.width * TEXT / paper.font_size // ROOMY))
    beside = len(axes) if room >= len(axes) * (len(along) if stated else 1) else 1
    order = sorted(product(along, axes), key=lambda each: beside == 1 and axes.index(each[1]))
    across = beside * (len(along) if stated else min(room // beside, len(along)))
    cells: Cells = [places.get((row, *each)) for row in down for each in order]
    return [*cells, *[None] * (-len(cells) % across)], across


def _value(info: PanelInfo, name: str) -> str:
    return panel_value(info.panel, name) if name else ""


def _conflict(own: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    names = ", ".join(name for name in own if str(own[name]) != str(other[name]))
    return (
        f"several panels belong to one place of the figure: they also differ in {names}; choose"
        " --rows and --columns among these"
    )


def _compose(cells: Cells, across: int, height: float, paper: Paper) -> dict[str, Any]:
    """The specification of the grid of panels: titles of axes at its left and its foot alone."""
    known = [info for info in cells if info is not None]
    roomy = paper.width * TEXT / paper.font_size > ROOMY * 2
    legend = paper.legend or ("labels" if roomy and len(known) == 1 else "bottom")
    differing = [
        name
        for name in known[0].panel.about
        if len({str(info.panel.about[name]) for info in known}) > 1
    ]
    names = [name for name in (paper.rows, paper.columns) if name] or differing
    look: dict[str, Any] | None = None
    if legend in {"right", "bottom"}:
        longest = max(map(len, known[0].styles))
        room = paper.width * TEXT / paper.font_size // (longest * LETTER + KEY)
        look = {"orient": legend, "labelLimit": 0, "values": known[0].coloured}
        look |= {"symbolType": "stroke", "symbolSize": 500, "symbolStrokeWidth": 2.2}
        look |= {"symbolOpacity": 1, "symbolFillColor": "transparent", "rowPadding": 0}
        look |= {"columns": max(1, int(room)) if legend == "bottom" else 1}
    charts = [
        _panel_chart(
            info,
            height,
            legend=look,
            names=legend == "labels",
            left=not any(cells[place - place % across : place]),
            foot=_is_lowest(cells, place, across),
            title=[] if info is None else [_value(info, name) for name in names],
        )
        for place, info in enumerate(cells)
    ]
    whole = configured(alt.vconcat(title=paper.title or alt.Undefined))
    whole.padding = {"left": 0, "right": 0, "top": 2, "bottom": 5}
    spec: dict[str, Any] = whole.to_dict(validate=False)
    spec["config"] |= {"font": paper.font, "aria": False}  # which is a third of the file
    spec["config"]["title"] |= {"fontSize": TEXT, "fontWeight": "normal", "offset": 4}
    # Altair would copy panels beside each other several times
    inner = {"top_level": False, "datasets": spec.setdefault("datasets", {})}
    panels = [chart.to_dict(validate=False, context=inner) for chart in charts]
    spec["resolve"]["scale"] = same = {"color": "shared", "strokeDash": "shared"}
    resolve = {"scale": {**same, "shape": "shared"}}
    grid = {"concat": panels, "columns": across, "spacing": 12, "resolve": resolve}
    return {**spec, "vconcat": [grid]}


def _is_lowest(cells: Cells, place: int, across: int) -> bool:
    """Whether no panel along the same axis lies below."""
    below = [info for info in cells[place + across :: across] if info is not None]
    info = cells[place]
    return info is None or not any(each.axis == info.axis for each in below)


def _panel_chart(
    info: PanelInfo | None,
    height: float,
    *,
    legend: Mapping[str, Any] | None,
    names: bool,
    left: bool,
    foot: bool,
    title: Sequence[str],
) -> Layers:
    if info is None:
        nothing = alt.Chart(pd.DataFrame({"x": []})).mark_point()
        return layered(nothing, height=height)
    words = pd.DataFrame({"text": [" · ".join(filter(None, title))]})
    # a limit becomes the width of the panel, which `draw_paper` finds; rows have none
    above = alt.Chart(words).mark_text(
        align="left", baseline="bottom", fontSize=TEXT, limit=0 if info.single else TEXT
    )
    place = alt.X(value=0), alt.Y(value=-6)
    heading = [above.encode(*place, alt.Text("text:N"))] if any(title) else []
    if info.single:
        rows = row_layers(info, words=False, height=ROW * len(info.styles))
        rows.layer += heading
        return rows
    along = scales.x_title(info.axis, info.panel.points, info.panel.metric.work, hint="")
    info = info if left else replace(info, measure=None)
    curves = curve_layers(info, height, title=along if foot else None, words=False, legend=legend)
    labels = end_names(info, height, bold=False) if names else ()
    return layered(*curves, *labels, *heading, height=height)
