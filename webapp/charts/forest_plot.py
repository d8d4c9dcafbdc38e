"""Ladder: one row per arm with its speed-up, for a panel with a single size, where curves would be points on one line."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from webapp import arm_style
from webapp.charts.encodings import GREY, hue, marks, names
from webapp.charts.scales import Span, ratio_axis, ratio_scale


def ladder(points: pd.DataFrame, span: Span, look: Mapping[str, arm_style.Style], title: str) -> alt.LayerChart | alt.FacetChart:
    """The points of a panel, one for each arm, along the speed-up; `title` is that of this axis, `span` its range."""
    words = {arm: f"{arm}: {estimate}" for arm, estimate in zip(points["arm"], points["estimate"], strict=True)}
    points = points.assign(row=points["arm"].map(words))
    floor = float(points["floor"].max())
    scale = ratio_scale(span)
    x = alt.X("speedup:Q", scale=scale, axis=ratio_axis(span, title))
    row = alt.Y("row:N", scale=alt.Scale(domain=[words[name] for name in look]), axis=names(words, look))
    band = alt.Chart(pd.DataFrame({"floor_low": [1 / (1 + floor)], "floor_high": [1 + floor]}))
    theory = alt.Chart(points.dropna(subset=["theory"])).mark_tick(thickness=1.6, size=18, orient="vertical", opacity=0.75)
    intervals = alt.Chart(points.dropna(subset=["speedup_low", "speedup_high"]))
    return alt.layer(
        band.mark_rect(color=GREY, opacity=0.25).encode(alt.X("floor_low:Q", scale=scale), alt.X2("floor_high:Q")),
        band.mark_rule(color=GREY, strokeWidth=1.2).encode(alt.XDatum(1, scale=scale)),
        theory.encode(alt.X("theory:Q", scale=scale), row, hue(look)),
        intervals.mark_rule(strokeWidth=3, opacity=0.45, strokeCap="round").encode(
            alt.X("speedup_low:Q", scale=scale), alt.X2("speedup_high:Q"), row, hue(look)
        ),
        marks(points).encode(x, row, hue(look)),
    )
