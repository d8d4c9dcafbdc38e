"""Bars of where the wall of a forward goes: classes of time of baseline and arm, and by how much
each class differs.
"""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from webapp.charts.encodings import GREY
from webapp.charts.row_labels import plain_rows

CLASS_COLORS = {
    "device": "#1a70b8",
    "operators": "#1a70b8",
    "launch": "#c2500c",
    "host": "#994691",
    "Python, dispatch": "#994691",
    "waits": "#8a7000",
    "idle": "#808591",
}
"""By the names of `store.read.profiling.CLASSES_OF_TIME`: contrast 3 or more on white
and on the dark theme."""
BAR_ROW = 30
"""Pixels of a bar with its room."""


def wall_chart(parts: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Stacked bars, one for each `place` and `side`, in the order of the rows.

    `parts` has a row for each class of time: `place` (such as `224 px`), `side` (`baseline` or
    `arm`), `time_class` (a name of `CLASS_COLORS`), `ms`, and `wall_ms` (the sum). Raises
    `ValueError` without a row.
    """
    if parts.empty:
        raise ValueError("no profile to draw")
    classes = _classes(parts["time_class"])
    drawn = parts.assign(
        row=parts["place"] + ", " + parts["side"], order=parts["time_class"].map(classes.index)
    )
    rows = list(dict.fromkeys(drawn["row"]))
    y = alt.Y("row:N", sort=rows, title=None, axis=plain_rows())
    texts = [
        alt.Tooltip("row:N", title="Forward"),
        alt.Tooltip("time_class:N", title="Class of time"),
        alt.Tooltip("ms:Q", title="ms", format=".3~g"),
        alt.Tooltip("wall_ms:Q", title="Wall time, ms", format=".3~g"),
    ]
    bars = (
        alt.Chart(drawn)
        .mark_bar(height=18)
        .encode(
            alt.X(
                "ms:Q",
                stack="zero",
                title="Wall time of one forward without a profiler, ms",
                axis=alt.Axis(tickCount=8),
            ),
            y,
            _class_color(classes),
            alt.Order("order:Q"),
            tooltip=texts,
        )
    )
    ends = drawn.drop_duplicates("row")
    totals = (
        alt.Chart(ends)
        .mark_text(align="left", dx=5, color=GREY)
        .encode(alt.X("wall_ms:Q"), y, alt.Text("wall_ms:Q", format=".3~g"))
    )
    return alt.layer(bars, totals).properties(height=alt.Step(BAR_ROW))


def difference_chart(differences: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Bars of how much longer (above 0) or shorter each class of time is in the arm than in its
    baseline.

    `differences` has a row for each `place` and `time_class`: `ms`, and `ms_low` and `ms_high`
    where an interval is known. Raises `ValueError` without a row.
    """
    if differences.empty:
        raise ValueError("no pair of profiles to draw")
    classes = _classes(differences["time_class"])
    drawn = differences.assign(row=differences["place"] + ", " + differences["time_class"])
    rows = list(dict.fromkeys(drawn["row"]))
    y = alt.Y("row:N", sort=rows, title=None, axis=plain_rows())
    x = alt.X(
        "ms:Q", title="Arm less baseline, wall time of one forward, ms", axis=alt.Axis(tickCount=8)
    )
    known = drawn.dropna(subset=["ms_low", "ms_high"])
    texts = [
        alt.Tooltip("row:N", title="Class of time"),
        alt.Tooltip("ms:Q", title="Arm less baseline, ms", format="+.3~g"),
        *(
            [
                alt.Tooltip("ms_low:Q", title="at least", format="+.3~g"),
                alt.Tooltip("ms_high:Q", title="at most", format="+.3~g"),
            ]
            if len(known)
            else []
        ),
    ]
    bars = alt.Chart(drawn).mark_bar(height=14).encode(x, y, _class_color(classes), tooltip=texts)
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=GREY).encode(alt.X("zero:Q"))
    interval = (
        alt.Chart(known)
        .mark_rule(strokeWidth=2, color=GREY)
        .encode(alt.X("ms_low:Q"), alt.X2("ms_high:Q"), y)
    )
    return alt.layer(zero, bars, *([interval] if len(known) else [])).properties(
        height=alt.Step(24)
    )


def _classes(names: "pd.Series[str]") -> Sequence[str]:
    """The classes that are drawn, in the order of `CLASS_COLORS`."""
    found = set(names)
    return [name for name in CLASS_COLORS if name in found]


def _class_color(classes: Sequence[str]) -> alt.Color:
    scale = alt.Scale(domain=list(classes), range=[CLASS_COLORS[name] for name in classes])
    return alt.Color("time_class:N", scale=scale, legend=alt.Legend(title=None, orient="top"))
