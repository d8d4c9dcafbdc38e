"""Charts of one comparison: its pairs in time order with readings below them, its attempts and its
times.
"""

from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from webapp.charts.points import (
    BLUE,
    GREY,
    ORANGE,
    Layers,
    Measure,
    PointsInfo,
    category,
    layered,
    no_difference,
    speed_tips,
    tips,
)
from webapp.charts.scales import Extent, log_axis, ratio_axis, ratio_scale

MARGIN: dict[str, Any] = {"minExtent": 58, "maxExtent": 58}
"""Pixels left of every chart along pairs, so that they lie below each other."""
ATTEMPT_COLORS = {"arm": BLUE, "baseline against itself": GREY, "pooled": ORANGE}


class PairFrames(NamedTuple):
    """What the chart of pairs draws."""

    pairs: pd.DataFrame
    """`number`, `attempt`, `round`, `ratio`, `outlying`, `baseline_ms`, `arm_ms`."""
    running: pd.DataFrame
    """`number`, `attempt`, `speedup`, `low`, `high`: NaN where there is no interval yet."""
    floor: float

    @property
    def x(self) -> alt.Scale:
        return alt.Scale(domain=[0, int(self.pairs["number"].max()) + 1], nice=False)

    @property
    def span(self) -> Extent:
        """Of the ratios: the middle 98 % of pairs, the last interval and no difference."""
        last = self.running.iloc[-1]
        known = [
            end
            for end in (
                *self.pairs["ratio"].quantile([0.01, 0.99]),
                *(last[name] for name in ("speedup", "low", "high")),
            )
            if end > 0
        ]
        low, high = min(*known, 1 / (1 + 2 * self.floor)), max(*known, 1 + 2 * self.floor)
        room = (high / low) ** 0.06
        return Extent(low / room, high * room)

    @property
    def drawn(self) -> pd.DataFrame:
        """The pairs as they are drawn: those beyond the axis at its edge, `above` or `below`."""
        ratio, kinds = self.pairs["ratio"], {True: "far outside the others", False: "pair"}
        return self.pairs.assign(
            drawn=ratio.clip(*self.span),
            place=pd.cut(
                ratio,
                [-float("inf"), *self.span, float("inf")],
                labels=["below", "inside", "above"],
            ).astype(str),
            kind=self.pairs["outlying"].map(kinds),
        )

    @property
    def starts(self) -> list[alt.Chart]:
        """Lines where attempts begin, and their names; none for one attempt."""
        first = self.pairs.groupby("attempt", sort=False)["number"].min().reset_index()
        if len(first) < 2:
            return []
        base = alt.Chart(first.assign(label="attempt " + first["attempt"].astype(str)))
        base = base.encode(alt.X("number:Q", scale=self.x))
        text = base.mark_text(align="left", baseline="top", dx=3, dy=2, fontSize=12, color=GREY)
        return [
            base.mark_rule(color=GREY, strokeDash=[3, 3], strokeWidth=1),
            text.encode(y=alt.value(0), text="label:N"),
        ]


def pair_chart(frames: PairFrames) -> Layers:
    """The ratio of each pair in time order, and the pooled speed-up with its interval as pairs were
    added.

    Pairs beyond the axis are drawn at its edge as triangles that point outwards, with their ratio
    as hover text: none is left out.
    """
    span = frames.span
    running = frames.running.assign(
        low_drawn=frames.running["low"].clip(*span), high_drawn=frames.running["high"].clip(*span)
    )
    title = "Pairs in the order of time"
    x = alt.X("number:Q", scale=frames.x, axis=alt.Axis(title=title, grid=False, format="d"))
    y_axis = ratio_axis(span, "")
    y_axis.title = None
    y_axis.minExtent = y_axis.maxExtent = MARGIN["minExtent"]
    y = alt.Y("drawn:Q", scale=ratio_scale(span), axis=y_axis)
    kinds = {"pair": GREY, "far outside the others": ORANGE}
    shapes = {"inside": "circle", "above": "triangle-up", "below": "triangle-down"}
    dots = alt.Chart(frames.drawn).mark_point(filled=True, size=22, opacity=0.75)
    hover = {
        "attempt": ("Attempt", "d"),
        "round": ("Round", "d"),
        "ratio": ("Baseline over arm", ".4f"),
        "baseline_ms": ("Baseline, ms", ",.4~r"),
        "arm_ms": ("Arm, ms", ",.4~r"),
    }
    line_hover = {
        "number": ("Pairs", "d"),
        **speed_tips(".4f"),
    }
    known = running.dropna(subset=["low", "high"])
    point = {"size": 18, "filled": True, "color": BLUE}
    line = alt.Chart(running).mark_line(color=BLUE, strokeWidth=2.2, clip=True, point=point)
    area = alt.Chart(known).mark_area(color=BLUE, opacity=0.22, clip=True)
    scale, detail = ratio_scale(span), alt.Detail("attempt:N")
    return _layered(
        400,
        "Time of the baseline over that of the arm: above 1 the arm is faster",
        *no_difference(y, frames.floor),
        dots.encode(
            *(x, y, category(alt.Color, "kind", kinds, {"symbolType": "circle"})),
            category(alt.Shape, "place", shapes),
            tooltip=tips(hover),
        ),
        area.encode(x, alt.Y("low_drawn:Q", scale=scale), alt.Y2("high_drawn:Q"), detail),
        line.encode(x, alt.Y("speedup:Q", scale=scale), detail, tooltip=tips(line_hover)),
        *frames.starts,
    )


def reading_chart(rows: pd.DataFrame, title: str, frames: PairFrames) -> Layers:
    """One reading of the machine below the pairs: rows with `number`, `attempt` and `value`, on the
    same x axis.
    """
    bare = alt.Axis(title=None, labels=False, ticks=False, grid=False)
    low, high = float(rows["value"].min()), float(rows["value"].max())
    room = max(0.12 * (high - low), 0.02 * abs(high), 1e-3)
    domain = [max(low - room, 0.0) if low >= 0 else low - room, high + room]
    axis = alt.Axis(title=None, tickCount=3, format=".3~g", **MARGIN)
    y = alt.Y("value:Q", scale=alt.Scale(domain=domain, nice=False, zero=False), axis=axis)
    chart = alt.Chart(rows).encode(alt.X("number:Q", scale=frames.x, axis=bare), y)
    line = chart.mark_line(color=GREY, strokeWidth=1.6, interpolate="step-before")
    hover = {
        "attempt": ("Attempt", "d"),
        "number": ("Pairs by then", "d"),
        "value": (title, ".4~r"),
    }
    return _layered(
        104,
        title,
        line.encode(alt.Detail("attempt:N")),
        chart.mark_point(color=GREY, filled=True, size=12).encode(tooltip=tips(hover)),
        *frames.starts[:1],
    )


def attempt_info(rows: pd.DataFrame, floor: float) -> PointsInfo:
    """A row for each attempt, each baseline against itself, and the pooled speed-up: `row`,
    `speedup`, `low`, `high` and `kind`.

    `kind` is one of `ATTEMPT_COLORS`; rows without an interval have NaN there.
    """
    ends = pd.concat([rows["speedup"], rows["low"], rows["high"]]).astype(float).dropna()
    most = max(1 + 2 * floor, *(max(end, 1 / end) for end in ends if end > 0)) ** 1.08
    span, known = Extent(1 / min(most, 8.0), min(most, 8.0)), ("low", "high")
    return PointsInfo(
        rows=rows,
        x=Measure("speedup", "Speed-up", "", "ratio", ends=known, span=span, none=1.0, floor=floor),
        y=Measure("row", "", "", "rows"),
        color="kind",
        colors=ATTEMPT_COLORS,
        legend={"symbolType": "circle"},
        tips={
            "row": "Of",
            **speed_tips(".4f"),
        },
    )


def time_chart(times: pd.DataFrame, title: str) -> Layers:
    """The distribution of the two arms' times: the share of times, `share`, that are at most `ms`,
    for each `side`; `title` is that of the times.

    The longest 1 % may lie beyond the axis.
    """
    reach = float(times.groupby("side")["ms"].quantile(0.99).max()) * 1.05
    span = Extent(float(times["ms"].min()) * 0.98, reach)
    axis = log_axis(*span, title, grid=False)
    x = alt.X("ms:Q", scale=alt.Scale(type="log", domain=list(span), nice=False), axis=axis)
    share = "Share of times at most so long"
    y_axis = alt.Axis(title=share, format=".0%", tickCount=5, **MARGIN)
    y = alt.Y("share:Q", axis=y_axis, scale=alt.Scale(domain=[0, 1]))
    sides = {"baseline": GREY, "arm": BLUE}
    color = category(alt.Color, "side", sides, {"symbolType": "stroke"})
    medians = alt.Chart(times.groupby("side", as_index=False)["ms"].median())
    lines = alt.Chart(times).mark_line(interpolate="step-after", strokeWidth=2, clip=True)
    hover = tips({"side": "Median of", "ms": ("ms", ".4~r")})
    return _layered(
        300,
        "",
        lines.encode(x, y, color),
        medians.mark_rule(strokeDash=[4, 3], clip=True).encode(x, color, tooltip=hover),
    )


def _layered(height: int, title: str, *layers: alt.Chart) -> Layers:
    look: dict[str, Any] = {"anchor": "start", "fontSize": 12, "fontWeight": "normal", "offset": 4}
    heading = {"title": alt.TitleParams(title, **look)} if title else {}
    return layered(*layers, height=height, **heading)
