"""Break-even map: for every pair of values of two axes from how many tokens on an arm pays, as a
cell with words and a colour.
"""

from collections.abc import Mapping, Sequence
from math import log

import altair as alt
import pandas as pd

from sweeps.text.curves import BreakEvenCell, CellKind
from webapp.charts.row_labels import plain_rows

ROW = 30
"""Pixels of a row."""
HEADER = 64
"""Pixels above the rows: Streamlit counts the axis to the height of a chart."""
EARLY, LATE = (0x1A, 0x70, 0xB8), (0xC9, 0xDF, 0xF2)
"""From the fewest tokens to the most."""
UNKNOWN = "#8085911f"
FILLS: Mapping[CellKind, str] = {
    "limited": "#c573bb",
    "never": "#e39a5c",
    "none": "#9aa1ac",
    "unclear": UNKNOWN,
    "differs": UNKNOWN,
}
"""Of cells without a place."""
DARK, LIGHT = "#10131a", "#ffffff"


def break_even_map(
    cells: pd.DataFrame, columns: Sequence[str], rows: Sequence[str], titles: tuple[str, str]
) -> alt.LayerChart | alt.FacetChart:
    """Cells at `column` and `row` with `text`, the darker the fewer tokens it takes; the `reason`
    is hover text.

    `cells` are those of `map_frame`; `columns` and `rows` are all values of the axes in their
    order, `titles` names the axes. A column `href`, if there is one, makes cells links. Raises
    `ValueError` where there is no cell.
    """
    if cells.empty:
        raise ValueError("no break-even along the tokens: each curve needs several sizes")
    top = alt.Axis(
        orient="top", labelAngle=0, labelLimit=170, domain=False, ticks=False, grid=False
    )
    x = alt.X("column:N", sort=list(columns), title=titles[0], axis=top)
    y = alt.Y("row:N", sort=list(rows), title=None, axis=plain_rows(labelOverlap=False))
    named = {
        "column": titles[0],
        "row": titles[1],
        "label": "Arm",
        "sentence": "Break-even",
        "reason": "Reason",
    }
    tips = [alt.Tooltip(f"{name}:N", title=title) for name, title in named.items() if name in cells]
    base = alt.Chart(cells).encode(x, y, tooltip=tips)
    if "href" in cells:
        base = base.encode(href="href:N")
    boxes = base.mark_rect(cornerRadius=3, strokeWidth=3, stroke="transparent").encode(
        fill=alt.Fill("fill:N", scale=None)
    )
    texts = base.mark_text(fontSize=12).encode(text="text:N", color=alt.Color("ink:N", scale=None))
    return alt.layer(boxes, texts).properties(
        height=ROW * len(rows) + HEADER, view=alt.ViewBackground(stroke=None)
    )


def with_colors(cells: pd.DataFrame, found: Sequence[BreakEvenCell]) -> pd.DataFrame:
    """`cells` with `text`, `sentence`, `fill` and `ink` (of the text) of the cells `found`, row by
    row.
    """
    places = [max(cell.place, 1.0) for cell in found if cell.kind == "pays" and cell.place]
    span = (min(places), max(places)) if places else (1.0, 1.0)
    fills = [_fill(cell, span) for cell in found]
    return cells.assign(
        text=[cell.text for cell in found],
        sentence=[cell.sentence for cell in found],
        fill=fills,
        ink=[_ink(fill) for fill in fills],
    )


def _fill(cell: BreakEvenCell, span: tuple[float, float]) -> str:
    if cell.kind != "pays":
        return FILLS[cell.kind]
    share = (
        log(max(cell.place or span[0], span[0]) / span[0]) / log(span[1] / span[0])
        if span[1] > span[0]
        else 0.0
    )
    return "#" + "".join(
        f"{round(early + share * (late - early)):02x}"
        for early, late in zip(EARLY, LATE, strict=True)
    )


def _ink(fill: str) -> str:
    """Of the text on a cell; on a transparent one a grey that both themes can show."""
    if len(fill) > 7:
        return "#808591"
    red, green, blue = (int(fill[at : at + 2], 16) for at in (1, 3, 5))
    return LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else DARK
