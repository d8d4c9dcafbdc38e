"""Charts of two sides: the speed-ups of one against those of the other, and the history of one
question.
"""

import pandas as pd

from sweeps.model.metrics import INTERVAL
from webapp.charts.points import (
    BLUE,
    GREY,
    ORANGE,
    Extra,
    Measure,
    PointsInfo,
    around,
    with_links,
)

SIDE_COLOURS = {"differs": ORANGE, "the same": BLUE, "not clear": GREY}
SERIES_COLOURS = ("#1a70b8", "#c2500c", "#00795a", "#994691", "#8a7000", "#7c6f64", "#5560c9")


def side_info(rows: pd.DataFrame) -> PointsInfo:
    """Both speed-ups of each question with their intervals; on the diagonal they are equal.

    `rows` have `a`, `a_low`, `a_high`, `b`, `b_low`, `b_high`, `label`, `group` (a key of
    `SIDE_COLOURS`), `finding`, and `comparison_id`, `environment` and `host` of the second side, to
    which a point leads.
    """
    ends = [rows[name] for name in ("a", "a_low", "a_high", "b", "b_low", "b_high")]
    span = around(pd.concat([*ends, pd.Series([0.95, 1.05])]).astype(float).dropna())
    diagonal = pd.DataFrame({"a": list(span), "b": list(span)})
    return PointsInfo(
        rows=with_links(rows),
        x=Measure("a", "Speed-up, first side", "", "ratio", span=span, none=1.0),
        y=Measure("b", "Speed-up, second side", "", "ratio", span=span, none=1.0),
        color="group",
        colors=SIDE_COLOURS,
        legend={"symbolType": "circle"},
        lines=[Extra(diagonal, {"strokeDash": [5, 4]})],
        tips={
            "label": "Of",
            "a": ("First side", ".3f"),
            "b": ("Second side", ".3f"),
            "finding": "Finding",
        },
        height=520,
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
            "at": ("Measured, UTC", "%Y-%m-%d %H:%M"),
            "speedup": ("Speed-up", ".4f"),
            "low": (f"{INTERVAL} from", ".4f"),
            "high": ("to", ".4f"),
            "pairs": ("Pairs", "d"),
            "flags": "Flags",
        },
        height=420,
    )
