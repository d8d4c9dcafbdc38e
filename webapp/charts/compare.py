"""Charts of speed-ups that are not one: of two sides, of the attempts of one question, and of arms
over days.
"""

from collections.abc import Mapping
from math import inf

import pandas as pd

from sweeps.model.flags import split_flags, wrong
from sweeps.stats.trends import Trend
from sweeps.text.compared import changes_text
from webapp.charts.points import (
    BLUE,
    GREY,
    ORANGE,
    Extra,
    Measure,
    PointsInfo,
    around,
    speed_tips,
    with_links,
)
from webapp.display.arm_style import ArmStyle
from webapp.display.links import POINT_KEY
from webapp.display.texts import typeset

SIDE_COLOURS = {"differs": ORANGE, "the same": BLUE, "not clear": GREY}
SIDE_SHAPES = {
    "first": "circle",
    "second, faster": "triangle-right",
    "second, slower": "triangle-left",
}
SERIES_COLOURS = ("#1a70b8", "#c2500c", "#00795a", "#994691", "#8a7000", "#7c6f64", "#5560c9")
LABEL = {
    "align": {"expr": "datum.late ? 'right' : 'left'"},
    "dx": {"expr": "datum.late ? -5 : 5"},
    "limit": {"expr": "width / 2"},
    "baseline": "top",
}
"""Of what changed: towards the middle of the chart, where there is room."""
SPACING = 0.06
"""Between such labels, as a share of the height."""


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
        legend={"columns": 1, "symbolType": "circle"},
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


def trend_info(trends: Mapping[str, Trend], styles: Mapping[str, ArmStyle]) -> PointsInfo:
    """The measurements of each arm, and between two of them a rule where its speed-up moved, with
    what changed there; `styles` are those of the arms.
    """
    points = []
    for arm, trend in trends.items():
        changes = {change.at: changes_text(change.what) for change in trend.changes}
        before = None
        for each in trend.measurements:
            at, found = pd.Timestamp(each.at), each.found
            points.append(
                {
                    "arm": arm,
                    "at": at,
                    "between": at if before is None else at - (at - before) / 2,
                    "speedup": found.value,
                    "low": found.low if found.half_width < inf else None,
                    "high": found.high if found.half_width < inf else None,
                    "pairs": found.pairs,
                    "flags": each.flags,
                    "hollow": wrong(split_flags(each.flags)),
                    "text": typeset(changes.get(each.at, "")),
                }
            )
            before = at
    rows = pd.DataFrame(points)
    span = around(pd.concat([rows[name] for name in ("speedup", "low", "high")]).dropna())
    moved = rows[rows["text"] != ""]
    moved = moved.assign(at=moved["between"], line=moved.index)
    labels = moved.drop_duplicates(["at", "text"])
    heights = [span.high * (span.low / span.high) ** (SPACING * n) for n in range(len(labels))]
    late = labels["at"] > rows["at"].min() + (rows["at"].max() - rows["at"].min()) / 2
    return PointsInfo(
        rows=rows,
        x=Measure("at", "Measured, UTC", "", "time", form="%-d %b"),
        y=Measure("speedup", "Speed-up, ×", "", "log", ends=("low", "high"), span=span, none=1.0),
        color="arm",
        colors={arm: styles[arm].color for arm in trends},
        joined="arm",
        dashes={arm: styles[arm].dash for arm in trends},
        lines=[
            Extra(pd.concat([moved.assign(speedup=end) for end in span]), {"strokeDash": [3, 3]})
        ],
        texts=[Extra(labels.assign(speedup=heights, late=late), LABEL)],
        legend={"columns": {"expr": "width < 900 ? 1 : 3"}, "symbolType": "stroke"},
        tips={
            "arm": "Arm",
            "at": ("Measured, UTC", "%-d %b %H:%M"),
            **speed_tips(".3f"),
            "pairs": ("Pairs", "d"),
            "flags": "Flags",
            "text": "Changed before",
        },
    )
