"""Charts of two sides: how the speed-up of each question changed, and the history of one
question.
"""

import pandas as pd

from webapp.charts.points import (
    BLUE,
    GREY,
    ORANGE,
    Extra,
    Measure,
    PointsInfo,
    speed_tips,
    with_links,
)
from webapp.display.links import POINT_KEY

SIDE_COLOURS = {"differs": ORANGE, "the same": BLUE, "not clear": GREY}
SIDE_SHAPES = {
    "first": "circle",
    "second, faster": "triangle-right",
    "second, slower": "triangle-left",
}
SERIES_COLOURS = ("#1a70b8", "#c2500c", "#00795a", "#994691", "#8a7000", "#7c6f64", "#5560c9")


def side_info(rows: pd.DataFrame) -> PointsInfo:
    """An arrow for each question, one below the other in the order of `rows`: from the speed-up of
    the first side (a dot) to that of the second, with the interval of each.

    `rows` have `a`, `a_low`, `a_high`, `b`, `b_low`, `b_high`, `label`, `group` (a key of
    `SIDE_COLOURS`), `finding`, and `comparison_id`, `environment` and `host` of each side with the
    endings `_a` and `_b`, to which its point leads.
    """
    sides = []
    first, faster, slower = SIDE_SHAPES
    arrows = [faster if b >= a else slower for a, b in zip(rows["a"], rows["b"], strict=True)]
    for side, mark in (("a", [first] * len(rows)), ("b", arrows)):
        names = {side: "speedup", f"{side}_low": "low", f"{side}_high": "high"}
        names |= {f"{key}_{side}": key for key in POINT_KEY}
        own = rows[["label", "group", "finding", *names]].rename(columns=names)
        sides.append(own.assign(mark=mark))
    long = pd.concat(sides, ignore_index=True)
    long["area"] = long["mark"].map({first: 70}).fillna(170)
    lines = long[["speedup", "label", "group"]].assign(line=long["label"])
    return PointsInfo(
        rows=with_links(long),
        x=Measure("speedup", "Speed-up", "", "ratio", ends=("low", "high"), none=1.0),
        y=Measure("label", "", "", "rows"),
        color="group",
        colors=SIDE_COLOURS,
        shape="mark",
        shapes=SIDE_SHAPES,
        legend={"symbolType": "circle", "symbolOpacity": 1},
        lines=[Extra(lines, {"strokeWidth": 2})],
        tips={
            "label": "Of",
            "mark": "Side",
            **speed_tips(".3f"),
            "finding": "Finding",
        },
    )


def history_info(points: pd.DataFrame, floor: float) -> PointsInfo:
    """Answers and attempts of one question by when they were measured, with intervals.

    `points` have `at` (UTC), `speedup`, `low`, `high`, `what` (`answer` or `attempt`), `series`
    (place and version), `pairs`, `flags`, `comparison_id`, `environment` and `host`.
    """
    series = dict.fromkeys(points["series"])
    colours = {
        name: SERIES_COLOURS[place % len(SERIES_COLOURS)] for place, name in enumerate(series)
    }
    ends = ("low", "high")
    return PointsInfo(
        rows=with_links(points.assign(area=points["what"].map({"answer": 110, "attempt": 36}))),
        x=Measure("at", "Measured, UTC", "", "time"),
        y=Measure("speedup", "Speed-up", "", "ratio", ends=ends, none=1.0, floor=floor),
        color="series",
        colors=colours,
        shape="what",
        shapes={"answer": "diamond", "attempt": "circle"},
        legend={"columns": 1, "labelLimit": 700, "symbolType": "circle"},
        tips={
            "what": "Of",
            "series": "Where",
            "at": ("Measured, UTC", "%-d %b %H:%M"),
            **speed_tips(".4f"),
            "pairs": ("Pairs", "d"),
            "flags": "Flags",
        },
        height=420,
    )
