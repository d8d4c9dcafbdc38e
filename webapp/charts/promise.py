"""Promise chart: the speed-up that MACs promise against the measured one, with the lines on which
all or half of it arrives.
"""

from collections.abc import Mapping
from math import log

import altair as alt
import pandas as pd

from sweeps.model.metrics import INTERVAL
from webapp.charts.encodings import GREY, layered
from webapp.charts.scales import Extent, ratio_ticks
from webapp.display.arm_style import method_colors

PROMISE_HEIGHT = 420
"""Pixels."""
RUNTIME_SHAPES: Mapping[str, str] = {
    "eager": "circle",
    "compile": "square",
    "cudagraph": "triangle-up",
}
LINES: Mapping[str, float] = {"all of the promise": 1.0, "half of it": 0.5, "nothing": 0.0}
"""Lines of equal share: a label, and the share of the promised saving that arrives on it."""
NAME_PX, PLOT_SHARE = 18, 0.7
"""Between the names of two lines; share of the height that axes and legend leave."""
PROMISE_HOVER = {
    "arm": ("Arm", ""),
    "tokens": ("Tokens", ",.0f"),
    "speedup_macs": ("Promised by MACs", ".3f"),
    "speedup": ("Speed-up", ".3f"),
    "interval": (f"{INTERVAL} interval", ""),
    "realised_share": ("Realised share", ".0%"),
    "baseline_ms": ("Baseline, ms", ",.4~r"),
    "arm_ms": ("Arm, ms", ",.4~r"),
    "word": ("Verdict", ""),
    "runtime": ("Runtime", ""),
    "pairs": ("Pairs", "d"),
    "flags": ("Flags", ""),
}
"""Columns of the hover text: title and format."""


def promise_chart(
    points: pd.DataFrame, *, height: int = PROMISE_HEIGHT
) -> alt.LayerChart | alt.FacetChart:
    """Measured against promised speed-up, both logarithmic, a point for each arm and size; colour
    by method, shape by runtime.

    `points` are rows of the view `speedup` by one metric with `speedup_macs` and `realised_share`,
    labelled (`arm`) and worded (`word`, `interval`); those without a promise are left out. A column
    `href`, if there is one, makes points links. Raises `ValueError` where no point has a promise.
    """
    known = points.dropna(subset=["speedup_macs", "speedup"])
    if known.empty:
        raise ValueError("no point to draw: the MACs of these arms are not known")
    xs, ys = (
        _extent(known, "speedup_macs"),
        _extent(known, "speedup", "speedup_low", "speedup_high"),
    )
    title_x, title_y = (
        "Speed-up if time followed the MACs",
        f"Measured speed-up, with its {INTERVAL} interval",
    )
    x, y = (
        alt.X("speedup_macs:Q", scale=_scale(xs), axis=_axis(xs, title_x)),
        alt.Y("speedup:Q", scale=_scale(ys), axis=_axis(ys, title_y)),
    )
    colors = method_colors(known["method"])
    names = [name for name in colors if name in set(known["method"])]
    legend = alt.Legend(
        title=None, orient="top", symbolType="circle", symbolOpacity=1, columns=6, labelLimit=220
    )
    color = alt.Color(
        "method:N",
        scale=alt.Scale(domain=names, range=[colors[name] for name in names]),
        legend=legend,
    )
    runtimes = [name for name in RUNTIME_SHAPES if name in set(known["runtime"])]
    shape = alt.Shape(
        "runtime:N",
        scale=alt.Scale(domain=runtimes, range=[RUNTIME_SHAPES[name] for name in runtimes]),
        legend=alt.Legend(title=None, orient="top") if len(runtimes) > 1 else None,
    )
    intervals = alt.Chart(known.dropna(subset=["speedup_low", "speedup_high"])).mark_rule(
        strokeWidth=1.2, opacity=0.45
    )
    tips = [
        alt.Tooltip(f"{name}:{'Q' if form else 'N'}", title=title, format=form or alt.Undefined)
        for name, (title, form) in PROMISE_HOVER.items()
        if name in known and known[name].replace("", None).notna().any()
    ]
    marks = (
        alt.Chart(known)
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(x, y, color, shape, tooltip=tips)
    )
    if "href" in known:
        marks = marks.encode(href="href:N")
    return layered(
        *_lines(xs, ys, height),
        intervals.encode(
            x,
            alt.Y("speedup_low:Q", scale=_scale(ys), title=title_y),
            alt.Y2("speedup_high:Q"),
            color,
        ),
        marks,
    ).properties(height=height)


def _extent(points: pd.DataFrame, *columns: str) -> Extent:
    """All values and 1, with some room beside them, at the right enough for the names of the
    lines.
    """
    values = pd.concat([points[name].astype(float) for name in columns]).dropna()
    low, high = min(1.0, float(values.min())), max(1.0, float(values.max()))
    room = max((high / low) ** 0.06, 1.02)
    return Extent(low / room, high * room ** (2.5 if columns == ("speedup_macs",) else 1))


def _scale(span: Extent) -> alt.Scale:
    return alt.Scale(type="log", domain=list(span), nice=False)


def _axis(span: Extent, title: str) -> alt.Axis:
    return alt.Axis(
        title=title,
        values=ratio_ticks(span),
        labelExpr="format(datum.value, '.3~r') + '×'",
        gridOpacity=0.3,
    )


def _lines(xs: Extent, ys: Extent, height: int) -> list[alt.Chart]:
    """Each from where it enters the chart to where it leaves it, named at its right end where there
    is room.
    """
    drawn, named = [], list[float]()
    for label, share in LINES.items():
        low, high = xs
        if share:
            low, high = max(low, ys.low ** (1 / share)), min(high, ys.high ** (1 / share))
        if low >= high:
            continue
        at_px = PLOT_SHARE * height * log(high**share / ys.low) / log(ys.high / ys.low)
        room = all(abs(at_px - other) >= NAME_PX for other in named)
        named += [at_px] if room else []
        line = pd.DataFrame(
            {"x": [low, high], "y": [low**share, high**share], "name": ["", label if room else ""]}
        )
        at = {"x": alt.X("x:Q", scale=_scale(xs)), "y": alt.Y("y:Q", scale=_scale(ys))}
        base = alt.Chart(line)
        stroke = {"strokeWidth": 1.4} if share == 1 else {"strokeWidth": 1, "strokeDash": [4, 4]}
        drawn.append(base.mark_line(color=GREY, **stroke).encode(**at))
        drawn.append(
            base.mark_text(color=GREY, align="right", dx=-6, dy=-8, fontSize=11).encode(
                **at, text="name:N"
            )
        )
    return drawn
