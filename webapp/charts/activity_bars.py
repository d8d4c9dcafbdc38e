"""Bars of kernels or operators by how much longer or shorter they run in an arm than in its
baseline.
"""

import altair as alt
import pandas as pd

from webapp.charts.encodings import GREY
from webapp.charts.row_labels import plain_rows

MAX_ACTIVITIES = 12
"""Bars of one chart: the largest differences."""
NAME_LETTERS = 44
"""Characters of a name beside its bar; hover text and table have all of it."""
SLOWER_COLOR, FASTER_COLOR = "#c2500c", "#00795a"


def activity_chart(differences: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """The largest differences of time per forward, longer ones first.

    `differences` has a row for each kernel or operator: `name`, `baseline_ms`, `arm_ms`,
    `difference_ms`, `baseline_count`, `arm_count` (runs in a forward; 0 where it does not run).
    Raises `ValueError` without a row.
    """
    if differences.empty:
        raise ValueError("no kernel or operator to draw")
    largest = differences.loc[
        differences["difference_ms"]
        .abs()
        .sort_values(ascending=False, kind="stable")
        .index[:MAX_ACTIVITIES]
    ]
    drawn = largest.sort_values("difference_ms", ascending=False, kind="stable")
    drawn = drawn.assign(
        row=_distinct_names(list(drawn["name"])), longer=drawn["difference_ms"] > 0
    )
    y = alt.Y("row:N", sort=list(drawn["row"]), title=None, axis=plain_rows(labelLimit=320))
    x = alt.X(
        "difference_ms:Q",
        title="Arm less baseline, time of one forward, ms",
        axis=alt.Axis(tickCount=8),
    )
    color = alt.Color(
        "longer:N",
        scale=alt.Scale(domain=[True, False], range=[SLOWER_COLOR, FASTER_COLOR]),
        legend=None,
    )
    texts = [
        alt.Tooltip("name:N", title="Name"),
        alt.Tooltip("baseline_ms:Q", title="Baseline, ms", format=".3~g"),
        alt.Tooltip("arm_ms:Q", title="Arm, ms", format=".3~g"),
        alt.Tooltip("difference_ms:Q", title="Difference, ms", format="+.3~g"),
        alt.Tooltip("baseline_count:Q", title="Runs, baseline", format=",.0f"),
        alt.Tooltip("arm_count:Q", title="Runs, arm", format=",.0f"),
    ]
    bars = alt.Chart(drawn).mark_bar(height=16).encode(x, y, color, tooltip=texts)
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=GREY).encode(alt.X("zero:Q"))
    return alt.layer(bars, zero).properties(height=alt.Step(24))


def _distinct_names(names: list[str]) -> list[str]:
    """Names as short as they may be beside a bar; those that become equal get a number."""
    found: list[str] = []
    for name in names:
        short = name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 12]}…{name[-11:]}"
        found.append(short if short not in found else f"{short} ({found.count(short) + 1})")
    return found
