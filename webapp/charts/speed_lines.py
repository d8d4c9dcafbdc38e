"""The curves of a panel: noise floor, rule at 1, intervals as areas, lines with their ends named,
crossings as bands, points.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor
from typing import NamedTuple

import altair as alt
import pandas as pd

from sweeps.number_format import WHOLE, axis_value
from webapp.charts import scales
from webapp.charts.emphasis import line_ends, short_label
from webapp.charts.encodings import GREY, HOVER, clickable, layered, not_empty, point_marks
from webapp.charts.published import published_marks
from webapp.charts.scales import Extent
from webapp.display import texts
from webapp.display.arm_style import ArmStyle
from webapp.display.axis_curves import Axis
from webapp.display.links import POINT_KEY

LEFT = 72
"""Pixels left of the drawing in the curves and in the strip, so that both have the same axis below
each other."""
PROMISED = ("arm", "x", "theory", "gmacs_baseline", "gmacs_total")
DRAWN_COLUMNS = (
    *POINT_KEY,
    *HOVER,
    "batch_size",
    "x",
    "speedup",
    "speedup_low",
    "speedup_high",
    "distrusted",
)
"""Columns of points that are drawn; the others would only make a page with many of them slow."""
PLACES = ("x", "x_low", "x_high")
"""Columns of the view `break_even`: where a curve crosses 1, or what bounds the place."""


class Look(NamedTuple):
    """How the arms of a panel are drawn."""

    styles: Mapping[str, ArmStyle]
    """Of the arms of the panel that have points and names, best first; others are grey lines."""
    coloured: Sequence[str]
    selected: str | None
    """The one arm whose theory and break-even are drawn through the whole height."""

    @property
    def color(self) -> alt.Color:
        """Colours of the arms: all but the coloured ones are grey."""
        colors = [
            style.color if arm in self.coloured else GREY for arm, style in self.styles.items()
        ]
        return alt.Color(
            "arm:N", scale=alt.Scale(domain=list(self.styles), range=colors), legend=None
        )

    @property
    def dash(self) -> alt.StrokeDash:
        """Dashes of the arms."""
        dashes = alt.Scale(
            domain=list(self.styles), range=[style.dash for style in self.styles.values()]
        )
        return alt.StrokeDash("arm:N", scale=dashes, legend=None)


def speed_lines(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis,
    spans: tuple[Extent, Extent],
    *,
    marked: pd.DataFrame,
    look: Look,
    title: str,
    published: pd.DataFrame,
    links: bool,
    height: int,
) -> alt.LayerChart | alt.FacetChart:
    """The layers; `points` have `x`, `theory` and `distrusted`, those `marked` also their words.

    `links`: marks are links. No line runs through a point whose verdict is open.
    """
    x = alt.X("x:Q", scale=scales.x_scale(spans[0], axis), axis=scales.x_axis(axis, points["x"]))
    y = alt.Y(
        "speedup:Q", scale=scales.ratio_scale(spans[1]), axis=scales.ratio_axis(spans[1], title)
    )
    color, dash = look.color, look.dash
    # a line ends there
    known = points.assign(speedup=points["speedup"].mask(texts.undecided(points)))
    drawn = known[["arm", "x", "speedup", "speedup_low", "speedup_high"]]
    in_colour, named = points["arm"].isin(look.coloured), points["arm"].isin(look.styles)
    coloured, grey, unnamed = drawn[in_colour], drawn[named & ~in_colour], drawn[~named]
    found = break_evens.loc[break_evens["arm"].isin(look.coloured), ["arm", "axis", *PLACES]]
    floor_share = float(points["floor"].max())
    band = alt.Chart(
        pd.DataFrame({"floor_low": [1 / (1 + floor_share)], "floor_high": [1 + floor_share]})
    )
    bounded = coloured.dropna(subset=["speedup_low", "speedup_high"])
    promised = alt.Chart(
        points.loc[points["arm"] == look.selected, list(PROMISED)].dropna(subset=["theory"])
    )
    theory = promised.mark_line(strokeWidth=1.6, strokeDash=[1, 4], strokeCap="round", opacity=0.9)
    marks = point_marks(marked[[name for name in DRAWN_COLUMNS if name in marked]])
    ends = alt.Chart(line_ends(points, look.coloured, spans[1], height))
    low, high = alt.Y("speedup_low:Q", title=title), alt.Y2("speedup_high:Q")
    marks_of_panel = not_empty(
        band.mark_rect(color=GREY, opacity=0.25).encode(
            y=alt.Y("floor_low:Q"), y2=alt.Y2("floor_high:Q")
        ),
        band.mark_rule(color=GREY, strokeWidth=1.2).encode(y=alt.YDatum(1)),
        *crossing_bands(
            found[found["arm"] == look.selected], scales.x_scale(spans[0], axis), color
        ),
        theory.encode(x, alt.Y("theory:Q"), color),
        alt.Chart(unnamed)
        .mark_line(strokeWidth=1.2, opacity=0.5, color=GREY)
        .encode(x, y, alt.Detail("arm:N")),
        alt.Chart(grey).mark_line(strokeWidth=1.2, opacity=0.5).encode(x, y, color, dash),
        alt.Chart(bounded).mark_area(opacity=0.13, line=False).encode(x, low, high, color),
        alt.Chart(coloured).mark_line(strokeWidth=2.2).encode(x, y, color, dash),
        alt.Chart(bounded)
        .mark_errorbar(ticks={"size": 5}, thickness=1)
        .encode(x, low, high, color),
        *(mark.encode(x, alt.YDatum(1), color) for mark in break_even_marks(found)),
        (clickable(marks) if links else marks).encode(x, y, color),
        *([published_marks(published).encode(x, y)] if len(published) else []),
        ends.mark_text(align="left", dx=8, fontSize=12, fontWeight=600).encode(
            alt.X(value="width"), alt.Y("place:Q"), color, text=alt.Text("label:N")
        ),
        *margins(look.coloured),
    )
    return layered(*marks_of_panel)


def margins(coloured: Sequence[str]) -> Iterator[alt.Chart]:
    """Invisible texts that give the curves and the strip the same room beside the drawing."""
    longest = max((short_label(arm) for arm in coloured), key=len, default="")
    one = alt.Chart(pd.DataFrame({"margin": [longest]}))
    top = alt.Y(value=0)
    yield one.mark_text(align="left", dx=8, fontSize=12, fontWeight=600, opacity=0).encode(
        alt.X(value="width"), top, text=alt.Text("margin:N")
    )
    yield one.mark_text(align="left", dx=-LEFT, fontSize=12, opacity=0, text=".").encode(
        alt.X(value=0), top
    )


def crossing_bands(found: pd.DataFrame, scale: alt.Scale, color: alt.Color) -> Iterator[alt.Chart]:
    """The interval of a break-even through the whole height; without the scale of the curves it
    would put zero on their axis.
    """
    bands = found.dropna(subset=["x_low", "x_high"])
    if len(bands):
        yield (
            alt.Chart(bands)
            .mark_rect(opacity=0.16, clip=True)
            .encode(alt.X("x_low:Q", scale=scale), alt.X2("x_high:Q"), color)
        )


def break_even_marks(found: pd.DataFrame) -> Iterator[alt.Chart]:
    """Break-evens to be drawn at their `x`: likeliest places as diamonds, a bound as an arrow to
    where the break-even lies.
    """
    bounds = found[found["x"].isna() & (found["x_low"].isna() | found["x_high"].isna())]
    shapes = {
        "diamond": (found, "x"),
        "triangle-left": (bounds, "x_high"),
        "triangle-right": (bounds, "x_low"),
    }
    for shape, (rows, column) in shapes.items():
        known = rows.dropna(subset=[column])
        yield alt.Chart(known.assign(x=known[column])).mark_point(
            shape=shape, filled=True, size=90, opacity=1
        )


def bound_texts(found: pd.DataFrame, axis: Axis) -> Iterator[alt.Chart]:
    """One-sided bounds in words, right of their arrows: `≤ 36`; for the strip, where each arm has a
    row of its own.
    """
    one_sided = found[found["x"].isna() & (found["x_low"].isna() ^ found["x_high"].isna())]
    for column, sign, outward in (("x_high", "≤", ceil), ("x_low", "≥", floor)):
        known = one_sided.dropna(subset=[column])
        values = [float(outward(value)) if axis in WHOLE else value for value in known[column]]
        words = [f"{sign} {axis_value(value, axis)}" for value in values]
        if len(known):
            rows = alt.Chart(known.assign(x=known[column], bound=words))
            yield rows.mark_text(
                dx=10, align="left", baseline="middle", fontSize=12, fontWeight=600
            ).encode(alt.Text("bound:N"))
