"""The speed-ups of arms over days, as a value: their intervals, and rules where one moved."""

from collections.abc import Mapping
from math import inf

import pandas as pd

from sweeps.model.flags import split_flags, wrong
from sweeps.stats.trends import Trend
from sweeps.text.compared import changes_text
from webapp.charts.points import Extra, Measure, PointsInfo, around, speed_tips
from webapp.display.arm_style import ArmStyle
from webapp.display.texts import typeset

LABEL = {
    "align": {"expr": "datum.late ? 'right' : 'left'"},
    "dx": {"expr": "datum.late ? -5 : 5"},
    "limit": {"expr": "width / 2"},
    "baseline": "top",
}
"""Of what changed: towards the middle of the chart, where there is room."""
SPACING = 0.06
"""Between such labels, as a share of the height."""


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
        legend={"columns": {"expr": "width < 600 ? 1 : 3"}, "symbolType": "stroke"},
        tips={
            "arm": "Arm",
            "at": ("Measured, UTC", "%-d %b %H:%M"),
            **speed_tips(".3f"),
            "pairs": ("Pairs", "d"),
            "flags": "Flags",
            "text": "Changed before",
        },
    )
