"""Charts of two sides: the speed-ups of one against those of the other, and the history of one
question.
"""

from typing import Any

import altair as alt
import pandas as pd

from sweeps.model.metrics import INTERVAL
from webapp.charts.encodings import BLUE, GREY, clickable
from webapp.charts.pair_series import ORANGE
from webapp.charts.scales import Extent, ratio_axis, ratio_scale

SIDE_COLOURS = {"differs": ORANGE, "the same": BLUE, "not clear": GREY}
SERIES_COLOURS = ("#1a70b8", "#c2500c", "#00795a", "#994691", "#8a7000", "#7c6f64", "#5560c9")
SIDE_HEIGHT, HISTORY_HEIGHT = 520, 420


def side_chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Both speed-ups of each question with their intervals; on the diagonal they are equal.

    `rows` have `a`, `a_low`, `a_high`, `b`, `b_low`, `b_high`, `label`, `group` (a key of
    `SIDE_COLOURS`), `finding`, and `comparison_id`, `environment` and `host` of the second side, to
    which a point leads.
    """
    ends = (
        pd.concat([rows[name] for name in ("a", "a_low", "a_high", "b", "b_low", "b_high")])
        .astype(float)
        .dropna()
    )
    room = (max(ends.max(), 1.05) / min(ends.min(), 0.95)) ** 0.04
    span = Extent(min(ends.min(), 0.95) / room, max(ends.max(), 1.05) * room)
    scale = ratio_scale(span)
    colour = alt.Color(
        "group:N",
        scale=alt.Scale(domain=list(SIDE_COLOURS), range=list(SIDE_COLOURS.values())),
        legend=alt.Legend(title=None, orient="top", symbolType="circle"),
    )
    ends_of = pd.DataFrame({"x": list(span), "y": list(span)})
    middle = pd.DataFrame({"one": [1.0]})
    hover = [
        alt.Tooltip("label:N", title="Of"),
        alt.Tooltip("a:Q", title="First side", format=".3f"),
        alt.Tooltip("b:Q", title="Second side", format=".3f"),
        alt.Tooltip("finding:N", title="Finding"),
    ]
    wide = alt.Chart(rows.dropna(subset=["a_low", "a_high"]))
    tall = alt.Chart(rows.dropna(subset=["b_low", "b_high"]))
    x = alt.X("a:Q", scale=scale, axis=ratio_axis(span, "Speed-up, first side"))
    y = alt.Y("b:Q", scale=scale, axis=ratio_axis(span, "Speed-up, second side"))
    made: Any = alt.layer(
        alt.Chart(middle).mark_rule(color=GREY, opacity=0.6).encode(alt.X("one:Q", scale=scale)),
        alt.Chart(middle).mark_rule(color=GREY, opacity=0.6).encode(alt.Y("one:Q", scale=scale)),
        alt.Chart(ends_of)
        .mark_line(color=GREY, strokeDash=[5, 4])
        .encode(alt.X("x:Q", scale=scale), alt.Y("y:Q", scale=scale)),
        wide.mark_rule(opacity=0.4, strokeWidth=1.5).encode(
            alt.X("a_low:Q", scale=scale), alt.X2("a_high:Q"), y, colour
        ),
        tall.mark_rule(opacity=0.4, strokeWidth=1.5).encode(
            x, alt.Y("b_low:Q", scale=scale), alt.Y2("b_high:Q"), colour
        ),
        clickable(alt.Chart(rows).mark_point(filled=True, size=60)).encode(
            x, y, colour, tooltip=hover
        ),
    ).properties(height=SIDE_HEIGHT)
    found: alt.LayerChart = made
    return found


def history_chart(points: pd.DataFrame, floor: float) -> alt.LayerChart:
    """Answers and attempts of one question by when they were measured, with intervals.

    `points` have `at` (UTC), `speedup`, `low`, `high`, `what` (`answer` or `attempt`), `series`
    (place and version), `pairs`, `flags`, `comparison_id`, `environment` and `host`.
    """
    ends = pd.concat([points["speedup"], points["low"], points["high"]]).astype(float).dropna()
    low, high = min(ends.min(), 1 / (1 + 2 * floor)), max(ends.max(), 1 + 2 * floor)
    room = (high / low) ** 0.06
    span = Extent(low / room, high * room)
    scale = ratio_scale(span)
    series = list(dict.fromkeys(points["series"]))
    colours = [SERIES_COLOURS[place % len(SERIES_COLOURS)] for place in range(len(series))]
    legend = alt.Legend(title=None, orient="top", columns=1, labelLimit=700, symbolType="circle")
    colour = alt.Color("series:N", scale=alt.Scale(domain=series, range=colours), legend=legend)
    kinds = alt.Scale(domain=["answer", "attempt"], range=["diamond", "circle"])
    shape = alt.Shape(
        "what:N",
        scale=kinds,
        legend=alt.Legend(title=None, orient="top", symbolFillColor=GREY, symbolStrokeWidth=0),
    )
    x = alt.X(
        "at:T",
        axis=alt.Axis(title="Measured, UTC", labelOverlap="greedy", grid=False),
        scale=alt.Scale(type="utc", padding=24),
    )
    y = alt.Y("speedup:Q", scale=scale, axis=ratio_axis(span, "Speed-up"))
    hover = [
        alt.Tooltip("what:N", title="Of"),
        alt.Tooltip("series:N", title="Where"),
        alt.Tooltip("at:T", title="Measured, UTC", format="%Y-%m-%d %H:%M"),
        alt.Tooltip("speedup:Q", title="Speed-up", format=".4f"),
        alt.Tooltip("low:Q", title=f"{INTERVAL} from", format=".4f"),
        alt.Tooltip("high:Q", title="to", format=".4f"),
        alt.Tooltip("pairs:Q", title="Pairs"),
        alt.Tooltip("flags:N", title="Flags"),
    ]
    band = alt.Chart(pd.DataFrame({"floor_low": [1 / (1 + floor)], "floor_high": [1 + floor]}))
    thick = alt.condition("datum.what === 'answer'", alt.value(3.0), alt.value(1.2))
    bounded = alt.Chart(points.dropna(subset=["low", "high"]))
    made: Any = alt.layer(
        band.mark_rect(color=GREY, opacity=0.2).encode(
            alt.Y("floor_low:Q", scale=scale), alt.Y2("floor_high:Q")
        ),
        band.mark_rule(color=GREY, strokeWidth=1.2).encode(alt.YDatum(1, scale=scale)),
        bounded.mark_rule(opacity=0.5).encode(
            x, alt.Y("low:Q", scale=scale), alt.Y2("high:Q"), colour, size=thick
        ),
        clickable(alt.Chart(points).mark_point(filled=True)).encode(
            *(x, y, colour, shape),
            size=alt.condition("datum.what === 'answer'", alt.value(110), alt.value(36)),
            tooltip=hover,
        ),
    ).properties(height=HISTORY_HEIGHT)
    found: alt.LayerChart = made
    return found
