"""The strip below the curves: one row for each arm with its break-even in words, and as a place
with its interval.
"""

from collections.abc import Sequence
from textwrap import wrap

import altair as alt
import pandas as pd

from sweeps.number_format import is_missing
from sweeps.text.curves import describe_break_even
from webapp.charts import scales
from webapp.charts.emphasis import rows_by_arm
from webapp.charts.encodings import GREY, layered
from webapp.charts.scales import Extent
from webapp.charts.speed_lines import PLACES, Look, bound_texts, break_even_marks, margins
from webapp.display.axis_curves import Axis, size_of

LETTERS = 78
"""Of a line of words; longer ones wrap."""
WORDS_PX, BAR_PX, GAP_PX = 15, 26, 9
"""Height of a line of words, of the bar below them, and of the gap where there is no place to
draw."""
HEADING = (
    "Break-even between measured points (bar) and its likeliest place; arrows: at most, or at least"
)


def strip_rows(
    points: pd.DataFrame, break_evens: pd.DataFrame, arms: Sequence[str]
) -> pd.DataFrame:
    """A row for each arm: its `words`, such as `topk keep_rate=0.7: pays from 36 tokens on (30 to
    41)`, in lines, and its places.

    These are pixels from the top: `sample_y` of its line, `words_y`, `bar_y`, and `end`, where the
    next arm begins.
    """
    unit = size_of(points).token_unit
    rows, top, known = [], 0.0, rows_by_arm(break_evens)
    for arm in arms:
        own = known.get(arm, [])
        text = f"{arm}: {describe_break_even(own, unit, brief=True)}"
        lines = wrap(text, LETTERS, break_long_words=True) or [text]
        bar = top + WORDS_PX * len(lines)
        places = {
            "sample_y": top + WORDS_PX / 2,
            "words_y": top,
            "bar_y": bar + 9,
            "end": bar
            + (
                BAR_PX
                if any(not is_missing(x) for row in own for x in (row.x, row.x_low, row.x_high))
                else GAP_PX
            ),
        }
        rows.append({"arm": arm, "words": "\n".join(lines), **places})
        top = places["end"]
    return pd.DataFrame(rows)


def break_even_strip(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis,
    span: Extent,
    *,
    look: Look,
    work: str | None,
) -> alt.LayerChart | alt.FacetChart:
    """The strip: words in the colour of the arm behind its line, and below them the interval on the
    axis of the curves.
    """
    arms = list(look.styles)
    rows = strip_rows(points, break_evens, arms)
    height = float(rows["end"].max())
    found = break_evens.loc[break_evens["arm"].isin(arms), ["arm", *PLACES, "why"]].merge(
        rows[["arm", "words", "bar_y"]], on="arm"
    )
    down = alt.Scale(domain=[0, height], reverse=True, nice=False, zero=False)
    bar = alt.Y("bar_y:Q", scale=down, axis=None)
    scale, title = scales.x_scale(span, axis), scales.x_title(axis, points, work)
    place = alt.X("x:Q", scale=scale, axis=scales.x_axis(axis, points["x"], title))
    tips = [alt.Tooltip("words:N", title="Break-even"), alt.Tooltip("why:N", title="Because")]
    bars = alt.Chart(found.dropna(subset=["x_low", "x_high"])).mark_rule(
        strokeWidth=5, opacity=0.45, strokeCap="round"
    )
    samples = alt.Chart(rows).mark_rule(strokeWidth=3)
    words = alt.Chart(rows).mark_text(
        align="left", baseline="top", dx=30, lineBreak="\n", fontSize=12, lineHeight=WORDS_PX
    )
    heading = alt.TitleParams(
        HEADING, fontSize=12, fontWeight="normal", color=GREY, offset=6, anchor="start"
    )
    return layered(
        bars.encode(
            alt.X("x_low:Q", scale=scale), alt.X2("x_high:Q"), bar, look.color, tooltip=tips
        ),
        *(mark.encode(place, bar, look.color, tooltip=tips) for mark in break_even_marks(found)),
        *(mark.encode(place, bar, look.color) for mark in bound_texts(found, axis)),
        words.encode(
            alt.X(value=0),
            alt.Y("words_y:Q", scale=down, axis=None),
            look.color,
            text=alt.Text("words:N"),
        ),
        samples.encode(
            *(
                alt.X(value=0),
                alt.X2(value=22),
                alt.Y("sample_y:Q", scale=down, axis=None),
                look.color,
            ),
            look.dash,
        ),
        *margins(look.coloured),
        title=heading,
    ).properties(height=round(height))
