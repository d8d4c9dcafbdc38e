"""Forest plot: one row per arm with its speed-up and interval, for a panel with a single size."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from webapp.charts.encodings import GREY, arm_axis, arm_color, clickable, layered, point_marks
from webapp.charts.published import published_marks, with_rows
from webapp.charts.scales import Extent, ratio_axis, ratio_scale
from webapp.display.arm_style import ArmStyle


def forest_plot(
    points: pd.DataFrame,
    span: Extent,
    styles: Mapping[str, ArmStyle],
    title: str,
    published: pd.DataFrame,
    *,
    links: bool = False,
) -> alt.LayerChart | alt.FacetChart:
    """The points of a panel, one for each arm, along an axis of speed-ups with this range and
    title; below them published ones.
    """
    labels = {
        arm: f"{arm}: {estimate}"
        for arm, estimate in zip(points["arm"], points["estimate"], strict=True)
    }
    points = points.assign(row=points["arm"].map(labels))
    floor = float(points["floor"].max())
    scale = ratio_scale(span)
    x = alt.X("speedup:Q", scale=scale, axis=ratio_axis(span, title))
    published = with_rows(published)
    rows = [*(labels[name] for name in styles), *published["row"]]
    row = alt.Y("row:N", scale=alt.Scale(domain=rows), axis=arm_axis(labels, styles))
    band = alt.Chart(pd.DataFrame({"floor_low": [1 / (1 + floor)], "floor_high": [1 + floor]}))
    theory = alt.Chart(points.dropna(subset=["theory"])).mark_tick(
        thickness=1.6, size=18, orient="vertical", opacity=0.75
    )
    intervals = alt.Chart(points.dropna(subset=["speedup_low", "speedup_high"]))
    return layered(
        band.mark_rect(color=GREY, opacity=0.25).encode(
            alt.X("floor_low:Q", scale=scale), alt.X2("floor_high:Q")
        ),
        band.mark_rule(color=GREY, strokeWidth=1.2).encode(alt.XDatum(1, scale=scale)),
        theory.encode(alt.X("theory:Q", scale=scale), row, arm_color(styles)),
        intervals.mark_rule(strokeWidth=3, opacity=0.45, strokeCap="round").encode(
            alt.X("speedup_low:Q", scale=scale), alt.X2("speedup_high:Q"), row, arm_color(styles)
        ),
        (clickable(point_marks(points)) if links else point_marks(points)).encode(
            x, row, arm_color(styles)
        ),
        *([published_marks(published).encode(x, row)] if len(published) else []),
    )
