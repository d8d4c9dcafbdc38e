"""Bars of images that only one of two arms classifies correctly, which McNemar's test compares."""

import altair as alt
import pandas as pd

from webapp.charts.encodings import GREY
from webapp.charts.row_labels import row_axis, row_step, wrapped

_SIDES = {
    "only_baseline_correct": "only the baseline is right",
    "only_arm_correct": "only the arm is right",
}
_COLORS = ("#c2500c", "#00795a")


def disagreement_chart(rows: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Bars to the left for images that only the baseline has right, to the right for those that
    only the arm has.

    `rows` are those of the view `accuracy` with a `label` each: `only_baseline_correct`,
    `only_arm_correct`, `images`, `mcnemar_p`. Raises `ValueError` where none is known.
    """
    known = rows.dropna(subset=list(_SIDES))
    if known.empty:
        raise ValueError("no images that only one of both classifies correctly were counted")
    labels = list(dict.fromkeys(known["label"]))
    parts = [
        known.assign(side=text, number=known[name], shown=known[name] * (-1 if n == 0 else 1))
        for n, (name, text) in enumerate(_SIDES.items())
    ]
    drawn = pd.concat(parts).assign(row=lambda frame: frame["label"].map(wrapped))
    color = alt.Color(
        "side:N",
        scale=alt.Scale(domain=list(_SIDES.values()), range=list(_COLORS)),
        legend=alt.Legend(title=None, orient="top"),
    )
    x = alt.X(
        "shown:Q",
        axis=alt.Axis(
            title="Images", labelExpr="format(abs(datum.value), ',')", tickMinStep=1, tickCount=8
        ),
    )
    texts = [
        alt.Tooltip("label:N", title="Arm"),
        alt.Tooltip("side:N", title="Images"),
        alt.Tooltip("number:Q", title="Number", format=",.0f"),
        alt.Tooltip("images:Q", title="of", format=",.0f"),
        alt.Tooltip("mcnemar_p:Q", title="McNemar's exact p", format=".2~g"),
    ]
    bars = alt.Chart(drawn).mark_bar(height=16).encode(x, row_axis(labels), color, tooltip=texts)
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=GREY).encode(alt.X("zero:Q"))
    return alt.layer(bars, zero).properties(height=row_step(labels))
