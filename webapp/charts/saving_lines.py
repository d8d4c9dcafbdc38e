"""Reached, free and promised: the speed-up of an arm along its sizes beside that of a free cut and
that of its MACs.
"""

import altair as alt
import pandas as pd

from webapp.charts.encodings import GREY, with_links
from webapp.charts.scales import ratio_axis, ratio_scale, y_span
from webapp.display.links import POINT_KEY

SAVING_COLORS = {"reached": "#c2500c", "free": "#00795a", "promised": GREY}
"""`reached`: measured; `free`: the same tokens cut for nothing, measured; `promised`: by MACs
alone."""
_DASHES = {"reached": [1, 0], "free": [6, 3], "promised": [1, 4]}


def saving_chart(
    points: pd.DataFrame,
    title: str,
    color_of_arm: str = SAVING_COLORS["reached"],
    height: int = 360,
) -> alt.LayerChart | alt.FacetChart:
    """Up to three lines along `tokens`, both axes logarithmic, speed-ups symmetric around 1.

    `points` are those of one arm: `tokens`, `speedup` with `speedup_low` and `speedup_high`,
    `promised`, and `ceiling` with `ceiling_low` and `ceiling_high`; empty where not known. With
    `comparison_id`, `environment` and `host`, what was reached and promised links to its evidence.
    Raises `ValueError` without a row.
    """
    if points.empty:
        raise ValueError("no speed-up to draw")
    columns = {
        "reached": ("speedup", "speedup_low", "speedup_high"),
        "free": ("ceiling", "ceiling_low", "ceiling_high"),
        "promised": ("promised", "", ""),
    }
    long = pd.concat([_series(points, name, *names) for name, names in columns.items()]).dropna(
        subset=["ratio"]
    )
    shown = [name for name in SAVING_COLORS if name in set(long["series"])]
    span = y_span(long["ratio"], long["low"], long["high"])
    scale = ratio_scale(span)
    ticks = sorted({float(x) for x in points["tokens"]})
    x = alt.X(
        "tokens:Q",
        scale=alt.Scale(type="log", base=2, nice=False, padding=14),
        axis=alt.Axis(values=ticks, title=title, format="d", labelOverlap="greedy"),
    )
    y = alt.Y("ratio:Q", scale=scale, axis=ratio_axis(span, "Speed-up"))
    legend = alt.Legend(title=None, orient="top", symbolType="circle", symbolStrokeWidth=0)
    colors = SAVING_COLORS | {"reached": color_of_arm}
    color = alt.Color(
        "series:N",
        scale=alt.Scale(domain=shown, range=[colors[name] for name in shown]),
        legend=legend,
    )
    dash = alt.StrokeDash(
        "series:N",
        scale=alt.Scale(domain=shown, range=[_DASHES[name] for name in shown]),
        legend=None,
    )
    texts = [
        alt.Tooltip("series:N", title="Speed-up"),
        alt.Tooltip("tokens:Q", title="Tokens", format=",.0f"),
        alt.Tooltip("ratio:Q", title="Speed-up", format=".3f"),
    ]
    rule = (
        alt.Chart(pd.DataFrame({"one": [1.0]}))
        .mark_rule(color=GREY)
        .encode(alt.Y("one:Q", scale=scale))
    )
    known = long.dropna(subset=["low", "high"])
    bars = (
        alt.Chart(known)
        .mark_rule(strokeWidth=1.6)
        .encode(x, alt.Y("low:Q", scale=scale), alt.Y2("high:Q"), color)
    )
    lines = alt.Chart(long).mark_line(strokeWidth=2).encode(x, y, color, dash)
    linked = with_links(long)
    marks = (
        alt.Chart(linked)
        .mark_point(filled=True, size=60, opacity=1)
        .encode(x, y, color, tooltip=texts)
    )
    marks = marks.encode(href="href:N") if "href" in linked else marks
    return alt.layer(rule, lines, *([bars] if len(known) else []), marks).properties(height=height)


def _series(points: pd.DataFrame, name: str, value: str, low: str, high: str) -> pd.DataFrame:
    """One line, with its interval where there is one."""
    ends = {
        end: points[column] if column else float("nan")
        for end, column in (("low", low), ("high", high))
    }
    keys = [key for key in POINT_KEY if key in points]
    own = points[["tokens", *keys]].assign(series=name, ratio=points[value], **ends)
    if name == "free" and keys:
        own = own.assign(comparison_id=points.get("ceiling_id"))
    return own
