"""Lines along the length of the prompt: one figure of language models, an arm each."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from webapp.charts.encodings import arm_color
from webapp.charts.scales import round_ticks
from webapp.display.arm_style import ArmStyle


def length_chart(
    rows: pd.DataFrame,
    title: str,
    styles: Mapping[str, ArmStyle],
    *,
    better: str = "",
    height: int = 360,
) -> alt.LayerChart | alt.FacetChart:
    """`value` against `prompt_tokens`, both axes logarithmic, a line for each `arm` that `styles`
    names.

    `rows` have `arm`, `prompt_tokens`, `value`, and `flags`. `better` is `lower` or `higher`.
    Raises `ValueError` without a value.
    """
    drawn = rows.dropna(subset=["value", "prompt_tokens"])
    drawn = drawn[drawn["value"] > 0]
    if drawn.empty:
        raise ValueError("it was not measured")
    named = {name: style for name, style in styles.items() if name in set(drawn["arm"])}
    note = {"lower": " (less is better)", "higher": " (more is better)"}.get(better, "")
    ticks = sorted({float(x) for x in drawn["prompt_tokens"]})
    heights = round_ticks(drawn["value"].min(), drawn["value"].max())
    x = alt.X(
        "prompt_tokens:Q",
        scale=alt.Scale(type="log", base=2, nice=False, padding=16),
        axis=alt.Axis(
            values=ticks, title="Tokens of the prompt", format="d", labelOverlap="greedy"
        ),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", nice=False, padding=16),
        axis=alt.Axis(title=f"{title}{note}", values=heights, format="~s", labelOverlap="greedy"),
    )
    color = arm_color(named)
    dash = alt.StrokeDash(
        "arm:N",
        scale=alt.Scale(domain=list(named), range=[style.dash for style in named.values()]),
        legend=None,
    )
    texts = [
        alt.Tooltip("arm:N", title="Arm"),
        alt.Tooltip("prompt_tokens:Q", title="Tokens of the prompt", format=",.0f"),
        alt.Tooltip("value:Q", title=title, format=",.4~r"),
        alt.Tooltip("flags:N", title="Flags"),
    ]
    lines = alt.Chart(drawn).mark_line(strokeWidth=2).encode(x, y, color, dash)
    marks = (
        alt.Chart(drawn)
        .mark_point(filled=True, size=65, opacity=1)
        .encode(x, y, color, tooltip=texts)
    )
    return alt.layer(lines, marks).properties(height=height)
