"""Rows of figures with their intervals: one point for each arm, along one axis."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from webapp.charts.encodings import GREY
from webapp.charts.row_labels import row_axis, row_step, wrapped
from webapp.charts.scales import Extent, ratio_axis


def interval_chart(
    rows: pd.DataFrame,
    title: str,
    *,
    none: float | None = None,
    floor: float = 0.0,
    colors: Mapping[str, str] | None = None,
    form: str = ".3~g",
    tooltip: Sequence[alt.Tooltip] = (),
    selection: alt.Parameter | None = None,
) -> alt.LayerChart | alt.FacetChart:
    """A row for each `label` in the order of `rows`, with `value`, and `low` and `high` where an
    interval is known.

    A rule stands at `none`, the value of no difference, with a band of `floor` beside it:
    differences that count as none. `colors` maps labels to colours. Ratios (a `none` of 1) have a
    logarithmic axis. Raises `ValueError` without a value.
    """
    drawn = rows.dropna(subset=["value"])
    if drawn.empty:
        raise ValueError("nothing was measured of it")
    labels = list(dict.fromkeys(drawn["label"]))
    drawn = drawn.assign(
        row=drawn["label"].map(wrapped),
        color=[(colors or {}).get(name, "#1a70b8") for name in drawn["label"]],
    )
    ratio = none == 1
    scale = alt.Scale(type="log" if ratio else "linear", zero=False, nice=not ratio, padding=12)
    ends_of = pd.concat([drawn[name].astype(float) for name in ("value", "low", "high")]).dropna()
    axis = (
        ratio_axis(Extent(min(1.0, ends_of.min()), max(1.0, ends_of.max())), title)
        if ratio
        else alt.Axis(title=title, format=form, labelOverlap="greedy", tickCount=8)
    )
    y, color = row_axis(labels), alt.Color("color:N", scale=None)
    x = alt.X("value:Q", scale=scale, axis=axis)
    texts = list(tooltip) or [
        alt.Tooltip("label:N", title="Arm"),
        alt.Tooltip("value:Q", title=title, format=form),
        alt.Tooltip("low:Q", title="at least", format=form),
        alt.Tooltip("high:Q", title="at most", format=form),
    ]
    layers: list[alt.Chart] = []
    if none is not None:
        ends = (none / (1 + floor), none * (1 + floor)) if ratio else (none - floor, none + floor)
        band = alt.Chart(pd.DataFrame({"from": [ends[0]], "to": [ends[1]], "none": [none]}))
        layers += (
            [
                band.mark_rect(color=GREY, opacity=0.22).encode(
                    alt.X("from:Q", scale=scale), alt.X2("to:Q")
                )
            ]
            if floor
            else []
        )
        layers.append(band.mark_rule(color=GREY).encode(alt.X("none:Q", scale=scale)))
    known = drawn.dropna(subset=["low", "high"])
    if len(known):
        bar = alt.Chart(known).mark_rule(strokeWidth=3, opacity=0.45, strokeCap="round")
        layers.append(bar.encode(alt.X("low:Q", scale=scale), alt.X2("high:Q"), y, color))
    mark = (
        alt.Chart(drawn)
        .mark_point(size=75, filled=True, opacity=1)
        .encode(x, y, color, tooltip=texts)
    )
    layers.append(mark if selection is None else mark.add_params(selection))
    return alt.layer(*layers).properties(height=row_step(labels))
