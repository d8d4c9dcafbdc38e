"""Charts of the page Promise: the speed-up that MACs promise against the measured one, and a map of
from how many tokens on an arm pays.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import get_args

import altair as alt
import pandas as pd

from sweeps.model.condition import Runtime
from sweeps.model.metrics import INTERVAL
from sweeps.text.curves import BreakEvenCell, CellKind
from webapp.charts.points import (
    Extra,
    Layers,
    Measure,
    PointsInfo,
    around,
    column_tips,
    layered,
    placed_texts,
    tips,
)
from webapp.charts.scales import Extent, row_axis, row_step
from webapp.display.arm_style import arm_styles, method_colors

PROMISE_HEIGHT = 420
"""Pixels."""
_SHAPES = (
    *("circle", "square", "triangle-up", "triangle-right"),
    *("diamond", "cross", "triangle-down", "wedge"),
)
RUNTIME_SHAPES = dict(zip(get_args(Runtime), _SHAPES, strict=True))
SHARES: Mapping[str, float] = {"all of the promise": 1.0, "half of it": 0.5, "nothing": 0.0}
"""Lines of equal share: a label, and the share of the promised saving that arrives on it."""
NAME_PX, PLOT_SHARE = 18, 0.7
"""Between the names of two lines; share of the height that axes and legend leave."""
PROMISE_HOVER = (
    *("arm", "tokens", "speedup_macs", "speedup", "interval", "realised_share"),
    *("word", "flags"),
)
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


def promise_info(points: pd.DataFrame) -> PointsInfo:
    """Measured against promised speed-up, both logarithmic, a point for each arm and size, which
    its tokens label and a line joins to those of the same arm; colour by method, shape by runtime.

    `points` are rows of the view `speedup` by one metric with `speedup_macs` and `realised_share`,
    labelled (`arm`) and worded (`word`, `interval`); those without a promise are left out. A column
    `href`, if there is one, makes points links. Raises `ValueError` where no point has a promise.
    """
    known = points.dropna(subset=["speedup_macs", "speedup"])
    if known.empty:
        raise ValueError("no point to draw: the MACs of these arms are not known")
    ends = [known[name].astype(float) for name in ("speedup", "speedup_low", "speedup_high")]
    one = pd.Series([1.0])
    ys = around(pd.concat([*ends, one]).dropna())
    xs = around(pd.concat([known["speedup_macs"].astype(float), one]))
    most = max(1.0, float(known["speedup_macs"].max()))
    xs = xs._replace(high=xs.high * (xs.high / most) ** 1.5)  # for the names of the lines
    runtimes = [name for name in RUNTIME_SHAPES if name in set(known["runtime"])]
    legend = {"symbolType": "circle", "symbolOpacity": 1, "columns": 6}
    lines, names = _share_lines(xs, ys)
    named = known.assign(text=[f"{tokens:,.0f}" for tokens in known["tokens"]])
    title = f"Measured speed-up, with its {INTERVAL} interval"
    axes = (
        Measure("speedup_macs", "Speed-up if time followed the MACs", "", "ratio", span=xs),
        Measure("speedup", title, "", "ratio", span=ys),
    )
    sizes = placed_texts(named.sort_values("tokens", ascending=False), axes, PROMISE_HEIGHT, dy=0)
    return PointsInfo(
        rows=known,
        x=axes[0],
        y=axes[1],
        color="method",
        colors=method_colors(known["method"]),
        shape="runtime",
        shapes={name: RUNTIME_SHAPES[name] for name in runtimes} if len(runtimes) > 1 else {},
        lines=lines,
        texts=[*names, *sizes],
        joined="arm",
        dashes={arm: style.dash for arm, style in arm_styles(known).items()},
        order="tokens",
        legend=legend,
        tips=column_tips(known, PROMISE_HOVER),
        height=PROMISE_HEIGHT,
    )


def _share_lines(xs: Extent, ys: Extent) -> tuple[list[Extra], list[Extra]]:
    """Lines from where each enters the chart to where it leaves it, and their names at the right
    ends where there is room.
    """
    lines, names, named = [], [], list[float]()
    for label, share in SHARES.items():
        low, high = xs
        if share:
            low, high = max(low, ys.low ** (1 / share)), min(high, ys.high ** (1 / share))
        if low >= high:
            continue
        line = pd.DataFrame({"speedup_macs": [low, high], "speedup": [low**share, high**share]})
        dashed = {"strokeWidth": 1, "strokeDash": [4, 4]}
        lines.append(Extra(line, {"strokeWidth": 1.4} if share == 1 else dashed))
        at_px = PLOT_SHARE * PROMISE_HEIGHT * log(high**share / ys.low) / log(ys.high / ys.low)
        if all(abs(at_px - other) >= NAME_PX for other in named):
            named.append(at_px)
            look = {"align": "right", "dx": -6, "dy": -8}
            names.append(Extra(line.iloc[1:].assign(text=label), look))
    return lines, names


def break_even_map(
    cells: pd.DataFrame, columns: Sequence[str], rows: Sequence[str], titles: tuple[str, str]
) -> Layers:
    """Cells at `column` and `row` with `text`, the darker the fewer tokens it takes; the `reason`
    is hover text.

    `cells` are those of the page's `map_frame`; `columns` and `rows` are all values of the axes in
    their order, `titles` names the axes. Raises `ValueError` where there is no cell.
    """
    if cells.empty:
        raise ValueError("no break-even along the tokens: each curve needs several sizes")
    top = alt.Axis(
        orient="top", labelAngle=0, labelLimit=170, domain=False, ticks=False, grid=False
    )
    x = alt.X("column:N", sort=list(columns), title=titles[0], axis=top)
    hover = {
        "column": titles[0],
        "row": titles[1],
        "label": "Arm",
        "sentence": "Break-even",
        "reason": "Reason",
    }
    base = alt.Chart(cells).encode(x, row_axis(alt.Y, rows, "row"), tooltip=tips(hover))
    boxes = base.mark_rect(cornerRadius=3, strokeWidth=3, stroke="transparent")
    ink = alt.Color("ink:N", scale=None)
    return layered(
        boxes.encode(alt.Fill("fill:N", scale=None)),
        base.mark_text(fontSize=12).encode(ink, text="text:N"),
        height=row_step(rows),
        view=alt.ViewBackground(stroke=None),
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
    low, high = span
    share = log(max(cell.place or low, low) / low) / log(high / low) if high > low else 0.0
    ends = zip(EARLY, LATE, strict=True)
    return "#" + "".join(f"{round(early + share * (late - early)):02x}" for early, late in ends)


def _ink(fill: str) -> str:
    """Of the text on a cell; on a transparent one a grey that both themes can show."""
    if len(fill) > 7:
        return "#808591"
    red, green, blue = (int(fill[at : at + 2], 16) for at in (1, 3, 5))
    return LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else DARK
