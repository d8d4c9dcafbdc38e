"""Charts of one comparison as pure functions: its pairs in time order with readings beside them,
its attempts, and its times.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from sweeps.model.metrics import INTERVAL
from webapp.charts.encodings import BLUE, GREY
from webapp.charts.row_labels import plain_rows
from webapp.charts.scales import Extent, log_axis, ratio_axis, ratio_scale

ORANGE = "#cf7c28"
PAIR_MARGIN = 58
"""Pixels left of every chart along pairs, so that they lie below each other."""
PAIRS_HEIGHT, READING_HEIGHT, TIMES_HEIGHT, ROW_HEIGHT, ROWS_BESIDE = 400, 104, 300, 28, 130
"""Pixels with axes, legend and title, as a page counts them; `ROWS_BESIDE` is what these take
beside rows."""


class PairFrames(NamedTuple):
    """What the chart of pairs draws."""

    pairs: pd.DataFrame
    """`number`, `attempt`, `round`, `ratio`, `outlying`, `baseline_ms`, `arm_ms`."""
    running: pd.DataFrame
    """`number`, `attempt`, `speedup`, `low`, `high`: NaN where there is no interval yet."""
    floor: float

    @property
    def starts(self) -> pd.DataFrame:
        """`number` and `label` of the first pair of each attempt."""
        first = self.pairs.groupby("attempt", sort=False)["number"].min().reset_index()
        return first.assign(label=[f"attempt {attempt}" for attempt in first["attempt"]])

    @property
    def x(self) -> alt.Scale:
        return alt.Scale(domain=[0, int(self.pairs["number"].max()) + 1], nice=False)

    @property
    def span(self) -> Extent:
        """Of the ratios: the middle 98 % of pairs, the last interval and no difference."""
        last = self.running.iloc[-1]
        ends = [
            *self.pairs["ratio"].quantile([0.01, 0.99]),
            last["speedup"],
            last["low"],
            last["high"],
        ]
        known = [end for end in ends if pd.notna(end) and end > 0]
        low, high = min(*known, 1 / (1 + 2 * self.floor)), max(*known, 1 + 2 * self.floor)
        room = (high / low) ** 0.06
        return Extent(low / room, high * room)


def pair_chart(frames: PairFrames) -> alt.LayerChart:
    """The ratio of each pair in time order, and the pooled speed-up with its interval as pairs were
    added.

    Pairs beyond the axis are drawn at its edge as triangles that point outwards, with their ratio
    as hover text: none is left out.
    """
    span = frames.span
    scale, inside = ratio_scale(span), frames.pairs["ratio"].between(*span)
    shown = frames.pairs.assign(
        drawn=frames.pairs["ratio"].clip(*span),
        place=inside.map({True: "inside", False: ""}).where(
            inside, (frames.pairs["ratio"] > 1).map({True: "above", False: "below"})
        ),
        kind=frames.pairs["outlying"].map({True: "far outside the others", False: "pair"}),
    )
    x = alt.X(
        "number:Q",
        scale=frames.x,
        axis=alt.Axis(title="Pairs in the order of time", grid=False, format="d"),
    )
    y_axis = ratio_axis(span, "")
    y_axis.title = None
    y_axis.minExtent = y_axis.maxExtent = PAIR_MARGIN
    band = alt.Chart(
        pd.DataFrame({"floor_low": [1 / (1 + frames.floor)], "floor_high": [1 + frames.floor]})
    )
    running = frames.running.assign(
        low_drawn=frames.running["low"].clip(*span), high_drawn=frames.running["high"].clip(*span)
    )
    dots = alt.Chart(shown).mark_point(filled=True, size=22)
    hover = [
        alt.Tooltip("attempt:Q", title="Attempt"),
        alt.Tooltip("round:Q", title="Round"),
        alt.Tooltip("ratio:Q", title="Baseline over arm", format=".4f"),
        alt.Tooltip("baseline_ms:Q", title="Baseline, ms", format=",.4~r"),
        alt.Tooltip("arm_ms:Q", title="Arm, ms", format=",.4~r"),
    ]
    colour = alt.Scale(domain=["pair", "far outside the others"], range=[GREY, ORANGE])
    shapes = alt.Scale(
        domain=["inside", "above", "below"], range=["circle", "triangle-up", "triangle-down"]
    )
    line_hover = [
        alt.Tooltip("number:Q", title="Pairs"),
        alt.Tooltip("speedup:Q", title="Speed-up", format=".4f"),
        alt.Tooltip("low:Q", title=f"{INTERVAL} from", format=".4f"),
        alt.Tooltip("high:Q", title="to", format=".4f"),
    ]
    starts = alt.Chart(frames.starts)
    return _layered(
        PAIRS_HEIGHT,
        band.mark_rect(color=GREY, opacity=0.2).encode(
            alt.Y("floor_low:Q", scale=scale), alt.Y2("floor_high:Q")
        ),
        band.mark_rule(color=GREY, strokeWidth=1.2).encode(alt.YDatum(1, scale=scale)),
        dots.encode(
            x,
            alt.Y("drawn:Q", scale=scale, axis=y_axis),
            color=alt.Color(
                "kind:N",
                scale=colour,
                legend=alt.Legend(title=None, orient="top", symbolType="circle"),
            ),
            shape=alt.Shape("place:N", scale=shapes, legend=None),
            opacity=alt.value(0.75),
            tooltip=hover,
        ),
        alt.Chart(running.dropna(subset=["low", "high"]))
        .mark_area(color=BLUE, opacity=0.22, clip=True)
        .encode(
            x, alt.Y("low_drawn:Q", scale=scale), alt.Y2("high_drawn:Q"), alt.Detail("attempt:N")
        ),
        alt.Chart(running)
        .mark_line(
            color=BLUE,
            strokeWidth=2.2,
            clip=True,
            point={"size": 18, "filled": True, "color": BLUE},
        )
        .encode(x, alt.Y("speedup:Q", scale=scale), alt.Detail("attempt:N"), tooltip=line_hover),
        *([_boundaries(starts, frames.x)] if len(frames.starts) > 1 else []),
        *([_boundary_labels(starts, frames.x)] if len(frames.starts) > 1 else []),
        title=_heading("Time of the baseline over that of the arm: above 1 the arm is faster"),
    )


def reading_chart(rows: pd.DataFrame, title: str, frames: PairFrames) -> alt.LayerChart:
    """One reading of the machine below the pairs: rows with `number`, `attempt` and `value`, on the
    same x axis.
    """
    x = alt.X(
        "number:Q", scale=frames.x, axis=alt.Axis(title=None, labels=False, ticks=False, grid=False)
    )
    low, high = float(rows["value"].min()), float(rows["value"].max())
    room = max(0.12 * (high - low), 0.02 * abs(high), 1e-3)
    scale = alt.Scale(
        domain=[max(low - room, 0.0) if low >= 0 else low - room, high + room],
        nice=False,
        zero=False,
    )
    axis = alt.Axis(
        title=None, tickCount=3, minExtent=PAIR_MARGIN, maxExtent=PAIR_MARGIN, format=".3~g"
    )
    y = alt.Y("value:Q", scale=scale, axis=axis)
    hover = [
        alt.Tooltip("attempt:Q", title="Attempt"),
        alt.Tooltip("number:Q", title="Pairs by then"),
        alt.Tooltip("value:Q", title=title, format=".4~r"),
    ]
    chart = alt.Chart(rows)
    starts = alt.Chart(frames.starts)
    return _layered(
        READING_HEIGHT,
        chart.mark_line(color=GREY, strokeWidth=1.6, interpolate="step-before").encode(
            x, y, alt.Detail("attempt:N")
        ),
        chart.mark_point(color=GREY, filled=True, size=12).encode(x, y, tooltip=hover),
        *([_boundaries(starts, frames.x)] if len(frames.starts) > 1 else []),
        title=_heading(title),
    )


def attempt_chart(rows: pd.DataFrame, floor: float) -> alt.LayerChart:
    """A row for each attempt, each baseline against itself, and the pooled speed-up: `row`,
    `speedup`, `low`, `high` and `kind`.

    `kind` is `arm`, `baseline against itself` or `pooled`; rows without an interval have NaN there.
    """
    ends = pd.concat([rows["speedup"], rows["low"], rows["high"]]).astype(float).dropna()
    most = max(1 + 2 * floor, *(max(end, 1 / end) for end in ends if end > 0)) ** 1.08
    span = Extent(1 / min(most, 8.0), min(most, 8.0))
    scale = ratio_scale(span)
    order: Sequence[str] = list(dict.fromkeys(rows["row"]))
    y = alt.Y("row:N", sort=order, axis=plain_rows(title=None))
    kinds = alt.Scale(
        domain=["arm", "baseline against itself", "pooled"], range=[BLUE, GREY, ORANGE]
    )
    colour = alt.Color(
        "kind:N", scale=kinds, legend=alt.Legend(title=None, orient="top", symbolType="circle")
    )
    band = alt.Chart(pd.DataFrame({"floor_low": [1 / (1 + floor)], "floor_high": [1 + floor]}))
    hover = [
        alt.Tooltip("row:N", title="Of"),
        alt.Tooltip("speedup:Q", title="Speed-up", format=".4f"),
        alt.Tooltip("low:Q", title=f"{INTERVAL} from", format=".4f"),
        alt.Tooltip("high:Q", title="to", format=".4f"),
    ]
    bounded = alt.Chart(rows.dropna(subset=["low", "high"]))
    return _layered(
        ROW_HEIGHT * len(order) + ROWS_BESIDE,
        band.mark_rect(color=GREY, opacity=0.2).encode(
            alt.X("floor_low:Q", scale=scale), alt.X2("floor_high:Q")
        ),
        band.mark_rule(color=GREY, strokeWidth=1.2).encode(alt.XDatum(1, scale=scale)),
        bounded.mark_rule(strokeWidth=3, opacity=0.5, strokeCap="round", clip=True).encode(
            alt.X("low:Q", scale=scale), alt.X2("high:Q"), y, colour
        ),
        alt.Chart(rows)
        .mark_point(filled=True, size=60, clip=True)
        .encode(
            alt.X("speedup:Q", scale=scale, axis=ratio_axis(span, "Speed-up")),
            y,
            colour,
            tooltip=hover,
        ),
    )


def time_chart(times: pd.DataFrame) -> alt.LayerChart:
    """The distribution of the two arms' times: the share of times, `share`, that are at most `ms`,
    for each `side`.

    The longest 1 % may lie beyond the axis.
    """
    reach = float(times.groupby("side")["ms"].quantile(0.99).max()) * 1.05
    scale = alt.Scale(type="log", domain=[float(times["ms"].min()) * 0.98, reach], nice=False)
    x = alt.X(
        "ms:Q",
        scale=scale,
        axis=log_axis(float(times["ms"].min()) * 0.98, reach, "Time of a forward, ms", grid=False),
    )
    y_axis = alt.Axis(
        title="Share of times at most so long",
        format=".0%",
        minExtent=PAIR_MARGIN,
        maxExtent=PAIR_MARGIN,
        tickCount=5,
    )
    sides = alt.Scale(domain=["baseline", "arm"], range=[GREY, BLUE])
    colour = alt.Color(
        "side:N", scale=sides, legend=alt.Legend(title=None, orient="top", symbolType="stroke")
    )
    medians = times.groupby("side", as_index=False)["ms"].median()
    return _layered(
        TIMES_HEIGHT,
        alt.Chart(times)
        .mark_line(interpolate="step-after", strokeWidth=2, clip=True)
        .encode(x, alt.Y("share:Q", axis=y_axis, scale=alt.Scale(domain=[0, 1])), colour),
        alt.Chart(medians)
        .mark_rule(strokeDash=[4, 3], clip=True)
        .encode(
            x,
            colour,
            tooltip=[
                alt.Tooltip("side:N", title="Median of"),
                alt.Tooltip("ms:Q", title="ms", format=".4~r"),
            ],
        ),
    )


def _heading(text: str) -> alt.TitleParams:
    return alt.TitleParams(text, anchor="start", fontSize=12, fontWeight="normal", offset=4)


def _layered(height: int, *layers: alt.Chart, **properties: Any) -> alt.LayerChart:
    made: Any = alt.layer(*layers).properties(height=height, **properties)
    found: alt.LayerChart = made
    return found


def _boundaries(starts: alt.Chart, scale: alt.Scale) -> alt.Chart:
    """A line where each attempt begins."""
    made: alt.Chart = starts.mark_rule(color=GREY, strokeDash=[3, 3], strokeWidth=1).encode(
        alt.X("number:Q", scale=scale)
    )
    return made


def _boundary_labels(starts: alt.Chart, scale: alt.Scale) -> alt.Chart:
    text = starts.mark_text(align="left", baseline="top", dx=3, dy=2, fontSize=10, color=GREY)
    made: alt.Chart = text.encode(
        alt.X("number:Q", scale=scale), y=alt.value(0), text=alt.Text("label:N")
    )
    return made
