"""Map of corruptions and severities: how much accuracy an arm loses on each, beside its baseline on
the same images.
"""

import altair as alt
import pandas as pd

from webapp.charts.row_labels import plain_rows

CELL = 34
"""Pixels of a row."""


def corruption_chart(rows: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Cells by `corruption` and `severity`, coloured by `top1_drop` in points (above 0: the arm
    loses), blank where not measured.

    `rows` are those of one arm in the view `accuracy`, with `word` (the verdict). Raises
    `ValueError` without a corruption.
    """
    drawn = rows.dropna(subset=["corruption", "severity", "top1_drop"])
    if drawn.empty:
        raise ValueError("accuracy on corrupted images was not measured")
    most = max(float(drawn["top1_drop"].abs().max()), 0.1)
    drawn = drawn.assign(strong=drawn["top1_drop"].abs() > 0.6 * most)
    names = sorted(drawn["corruption"].unique())
    x = alt.X("severity:O", title="Severity", axis=alt.Axis(labelAngle=0, orient="top", format="d"))
    y = alt.Y("corruption:N", sort=names, title=None, axis=plain_rows(labelLimit=0))
    color = alt.Color(
        "top1_drop:Q",
        scale=alt.Scale(scheme="blueorange", domain=[-most, most], domainMid=0),
        legend=alt.Legend(
            title="Top-1 lost, points", orient="top", gradientLength=180, format="+.2~f"
        ),
    )
    texts = [
        alt.Tooltip("corruption:N", title="Corruption"),
        alt.Tooltip("severity:O", title="Severity"),
        alt.Tooltip("top1_baseline:Q", title="Baseline, %", format=".2f"),
        alt.Tooltip("top1:Q", title="Arm, %", format=".2f"),
        alt.Tooltip("top1_drop:Q", title="Lost, points", format="+.2f"),
        alt.Tooltip("top1_drop_low:Q", title="at least", format="+.2f"),
        alt.Tooltip("top1_drop_high:Q", title="at most", format="+.2f"),
        alt.Tooltip("word:N", title="Verdict"),
        alt.Tooltip("images:Q", title="Images", format=",.0f"),
    ]
    cells = alt.Chart(drawn).mark_rect(cornerRadius=2).encode(x, y, color, tooltip=texts)
    numbers = (
        alt.Chart(drawn)
        .mark_text(fontSize=12)
        .encode(
            x,
            y,
            alt.Text("top1_drop:Q", format="+.1f"),
            color=alt.condition("datum.strong", alt.value("#ffffff"), alt.value("#1c2024")),
        )
    )
    return alt.layer(cells, numbers).properties(height=alt.Step(CELL))
