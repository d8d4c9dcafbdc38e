"""Encodings that curves and forest plots share: points with their hover text, colours of arms, and
the labels at the right.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import pandas as pd

from webapp.display.arm_style import ArmStyle
from webapp.display.columns import COLUMNS
from webapp.display.links import POINT_KEY, point_link

SHAPES: Mapping[str, str] = {
    "faster": "triangle-up",
    "probably faster": "M0,-0.87L-1,0.87L1,0.87ZM0,-0.29L0.5,0.58L-0.5,0.58Z",
    "same": "square",
    "within floor": "M-1,-0.4L1,-0.4L1,0.4L-1,0.4Z",
    "slower": "triangle-down",
    "probably slower": "M0,0.87L-1,-0.87L1,-0.87ZM0,0.29L0.5,-0.58L-0.5,-0.58Z",
    "unclear": (
        "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0ZM-0.55,0A0.55,0.55,0,1,0,0.55,0A0.55,0.55,0,1,0,-0.55,0Z"
    ),
    "too few pairs": "cross",
    "quarantined": "M-0.9,-1L-0.3,-1L-0.3,1L-0.9,1ZM0.3,-1L0.9,-1L0.9,1L0.3,1Z",
    "no interval": (
        "M-1,-0.6L-0.6,-1L0,-0.4L0.6,-1L1,-0.6L0.4,0L1,0.6L0.6,1L0,0.4L-0.6,1L-1,0.6L-0.4,0Z"
    ),
}
"""Shapes of the words of `sweeps.analysis.labels`; hollow ones (not clear) are outlines, so that
the legend has them too."""
MAIN_WORDS = frozenset({"faster", "same", "slower", "unclear"})
"""Words that the legend shows even if no point has them."""

HOVER = (
    *("arm", "against", "params", "image_size", "image_shape", "prompt_tokens", "tokens"),
    *("baseline_ms", "arm_ms", "estimate", "interval"),
    *("word", "reason", "medians", "pairs", "rounds", "theory", "realised_share", "flags"),
    *("tokens_final", "new_tokens", "kv_cache", "gmacs_baseline", "gmacs", "gmacs_overhead"),
)
"""Columns of the hover text of a point; those without a value are left out."""

LINKED = "Open the evidence of this point"
"""What a clickable mark is called for assistive technology."""
NO_TOOLTIP = alt.TooltipValue(None)
GREY = "#808591"
BLUE = "#3f7fbf"
"""Of rules, notes and the noise floor: legible on white and on black."""


def arm_color(styles: Mapping[str, ArmStyle]) -> alt.Color:
    """The colour of an arm; the labels at the right are its legend."""
    return alt.Color(
        "arm:N",
        scale=alt.Scale(domain=list(styles), range=[style.color for style in styles.values()]),
        legend=None,
    )


def point_marks(points: pd.DataFrame) -> alt.Chart:
    """The points with all their columns as hover text; the caller adds x, y and colour."""
    words = MAIN_WORDS | set(points["word"])
    entries = [word for word in SHAPES if word in words]
    legend = alt.Legend(
        title=None, orient="top", symbolFillColor=GREY, symbolStrokeWidth=0, values=entries
    )
    # Panels share this scale: with the words of one panel alone it would give those of the others
    # wrong shapes.
    shapes = alt.Scale(domain=list(SHAPES), range=list(SHAPES.values()))
    known = [
        name for name in HOVER if name in points and points[name].replace("", None).notna().any()
    ]
    # they are the same
    known = [name for name in known if name != "tokens" or "prompt_tokens" not in known]
    made: alt.Chart = (
        alt.Chart(points)
        .mark_point(filled=True, size=65)
        .encode(
            shape=alt.Shape("word:N", scale=shapes, legend=legend),
            opacity=alt.condition("datum.distrusted", alt.value(0.35), alt.value(1)),
            tooltip=[_tooltip(name) for name in known],
        )
    )
    return made


def clickable(mark: alt.Chart) -> alt.Chart:
    """The mark, each of whose points is a link to its evidence (`/point?id=…`); for charts of the
    app.

    A link works in layered, concatenated and faceted charts alike, opens in a new tab on request,
    and Back returns to the address with all choices. The mark's own data frame has the columns
    `comparison_id`, `environment` and `host`. Raises `TypeError` for a mark without a data frame of
    its own.
    """
    rows = mark.data
    if not isinstance(rows, pd.DataFrame):
        raise TypeError("a clickable mark needs a data frame of its own")
    linked: alt.Chart = mark.properties(data=with_links(rows))
    made: alt.Chart = linked.encode(
        href=alt.Href("href:N"), description=alt.DescriptionValue(LINKED)
    )
    return made


def with_links(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `href`, the address of the evidence of each that has a `comparison_id` (the
    newest where no host is known).
    """
    if "comparison_id" not in rows:
        return rows
    places = rows.reindex(columns=list(POINT_KEY)).astype(object)
    known = places.where(places.notna(), None).itertuples(index=False)
    return rows.assign(href=["" if place[0] is None else point_link(*place) for place in known])


def layered(*marks: alt.Chart, **properties: Any) -> alt.LayerChart | alt.FacetChart:
    """Marks above each other; those without a hover text of their own show none, instead of all
    their columns.
    """
    silent = [mark if has_tooltip(mark) else mark.encode(tooltip=NO_TOOLTIP) for mark in marks]
    return alt.layer(*silent, **properties)


def not_empty(*marks: alt.Chart) -> Iterator[alt.Chart]:
    """The marks whose own data frame has rows; others only make a chart slow, unless their axes are
    wanted.
    """
    return (mark for mark in marks if not (isinstance(mark.data, pd.DataFrame) and mark.data.empty))


def has_tooltip(mark: alt.Chart) -> bool:
    """Whether a mark has a hover text of its own."""
    encoding = mark.encoding
    return encoding is not alt.Undefined and encoding.tooltip is not alt.Undefined


def _tooltip(name: str) -> alt.Tooltip:
    column = COLUMNS[name]
    kind = "Q" if column.chart_format else "N"
    return alt.Tooltip(
        f"{name}:{kind}", title=column.title, format=column.chart_format or alt.Undefined
    )


def arm_axis(texts: Mapping[str, str], styles: Mapping[str, ArmStyle]) -> alt.Axis:
    """An axis on the right: the text of every arm, with a tick that is drawn like its line."""
    tests = [
        (f"datum.value === {json.dumps(texts[name])}", style) for name, style in styles.items()
    ]
    return alt.Axis(
        orient="right",
        title=None,
        grid=False,
        ticks=True,
        labelFlush=False,
        labelBaseline="middle",
        offset=14,
        tickSize=26,
        tickWidth=3,
        tickColor={
            "condition": [{"test": test, "value": style.color} for test, style in tests],
            "value": GREY,
        },
        tickDash={
            "condition": [{"test": test, "value": style.dash} for test, style in tests],
            "value": [1, 0],
        },
        labelLimit=0,
        labelPadding=8,
    )
