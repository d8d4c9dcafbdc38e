"""Pareto chart: two figures of each arm against each other, with their intervals, and the arms that
no other surpasses named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import log
from typing import Any

import pandas as pd

from webapp.charts.points import GREY, ONE_COLOR, Extra, Measure, PointsInfo
from webapp.charts.scales import Extent

PARETO_HEIGHT = 400
"""Pixels."""
ALL_NAMED = 12
"""Points of which also those that others surpass are named, where there is room."""
NAMED_WIDTH = 640
"""Pixels that labels may assume: they are placed before the width of the chart is known."""
ROOM, LETTER = 15.0, 6.6
"""Pixels: height of a label, and width of one of its letters."""


def pareto_info(
    points: pd.DataFrame,
    x: Measure,
    y: Measure,
    *,
    colors: Mapping[str, str],
) -> PointsInfo:
    """A point for each row at `x` and `y` with thin rules for the intervals of both.

    `points` has the columns of both measures (numbers; rows that lack one of the two are left out),
    `arm` (names the point) and `front` (bool: no other surpasses it, which the caller decides,
    since it takes intervals and more than two figures to know). Points of the front are filled and
    named beside the mark, where the names have room; the others are hollow and grey, and of many
    named in the hover text alone. `colors` maps an arm to its colour, others have one for all. A
    column `href`, if there is one, makes points links. Raises `ValueError` where no row has both
    figures.
    """
    drawn = points.dropna(subset=[x.column, y.column])
    if drawn.empty:
        raise ValueError(f"no arm has both: {x.title}; {y.title}")
    front = drawn["front"].astype(bool)
    drawn = drawn.assign(
        color=[
            colors.get(arm, ONE_COLOR) if best else GREY
            for arm, best in zip(drawn["arm"], front, strict=True)
        ],
        hollow=~front,
        text=drawn["arm"],
    )
    others = drawn[~front] if len(drawn) <= ALL_NAMED else drawn.iloc[:0]
    axes = [replace(measure, span=measure.extent(drawn)) for measure in (x, y)]
    return PointsInfo(
        rows=drawn,
        x=axes[0],
        y=axes[1],
        tips={"arm": "Arm"} | {each.column: (each.title, ".4~g") for each in axes},
        texts=list(placed_texts(pd.concat([drawn[front], others]), axes, PARETO_HEIGHT)),
        height=PARETO_HEIGHT,
    )


def placed_texts(
    chosen: pd.DataFrame, axes: Sequence[Measure], height: int, **look: Any
) -> Iterator[Extra]:
    """The values of `text` that have room beside their marks: to the right of it, and to the left;
    `axes` are x and y with their spans, `height` is that of the chart in pixels.
    """
    x, y = axes
    taken: list[tuple[float, float, float]] = []
    sides: dict[str, list[int]] = {"left": [], "right": []}
    for place, row in enumerate(chosen.to_dict("records")):
        across = _share(row[x.column], x) * NAMED_WIDTH
        up = _share(row[y.column], y) * height
        length = LETTER * min(len(row["text"]), 64) + 9
        spans = {"left": (across, across + length), "right": (across - length, across)}
        for side in sorted(spans, key=lambda name: (name == "left") != (across < NAMED_WIDTH / 2)):
            start, end = spans[side]
            inside = start >= 0 and end <= NAMED_WIDTH
            if inside and all(
                abs(up - other) > ROOM or end < left or start > right
                for left, right, other in taken
            ):
                taken.append((start, end, up))
                sides[side].append(place)
                break
    for side, places in sides.items():
        beside = {"align": side, "dx": 9 if side == "left" else -9, "dy": -9, "limit": 420}
        if places:
            yield Extra(chosen.iloc[places], beside | look)


def _share(value: float, measure: Measure) -> float:
    """Where a value lies on its axis, from 0 to 1."""
    low, high = measure.span or Extent(0.0, 1.0)
    if measure.scale == "linear":
        return (value - low) / (high - low)
    return log(value / low) / log(high / low)
