"""Which arms of a panel stand out in colour, in which order arms are named, and what their lines
are called at the right.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from store.rows.frames import rows_of
from sweeps.analysis.rows import ClaimRow
from sweeps.text.curves import merit_of
from webapp.charts.scales import Extent
from webapp.display.texts import undecided
from workers.methods import purpose

ALL_COLOURED = 6
"""Arms that are all drawn in colour; of more the best of each method."""
MAX_COLOURED = 7
SHORT = 26
"""Letters of a label beside the end of a line; the strip has all of it."""
LINE_PX = 15
"""Pixels between two such labels."""


def ranked_arms(points: pd.DataFrame, break_evens: pd.DataFrame) -> list[str]:
    """The arms of some points, best first: by their curve along the axis of `break_evens`, then by
    the highest interval.

    Controls, which are not for use, come last.
    """
    control = {
        arm: purpose(method) != "optimisation"
        for arm, method in zip(points["arm"], points["method"], strict=True)
    }
    merits = {arm: merit_of(rows) for arm, rows in rows_by_arm(break_evens).items()}
    low = points["speedup_low"].fillna(points["speedup"]).mask(undecided(points))
    gains: dict[Any, float] = (
        points.assign(low=low).groupby("arm", sort=True)["low"].max().fillna(0.0).to_dict()
    )
    return sorted(
        map(str, gains),
        key=lambda arm: (
            control[arm],
            *(-value for value in merits.get(arm, (0, 0.0))),
            -gains[arm],
            arm,
        ),
    )


def rows_by_arm(break_evens: pd.DataFrame) -> dict[str, list[ClaimRow]]:
    """The rows of the view `break_even` of each arm."""
    found: dict[str, list[ClaimRow]] = {}
    for arm, row in zip(break_evens["arm"], rows_of(break_evens, ClaimRow), strict=True):
        found.setdefault(str(arm), []).append(row)
    return found


def emphasised_arms(
    ranked: Sequence[str], methods: Mapping[str, str], selected: str | None = None
) -> list[str]:
    """The arms in colour: the selected one, all of a few, or the best of each of the `methods` of
    the arms.
    """
    if selected in ranked:
        return [str(selected)]
    if len(ranked) <= ALL_COLOURED:
        return list(ranked)
    best: dict[str, str] = {}
    for arm in ranked:
        best.setdefault(methods[arm], arm)
    return list(best.values())[:MAX_COLOURED]


def short_label(arm: str) -> str:
    """A label for the end of a line."""
    return arm if len(arm) <= SHORT else f"{arm[: SHORT - 1]}…"


def line_ends(points: pd.DataFrame, arms: Sequence[str], span: Extent, height: int) -> pd.DataFrame:
    """A row for each of the arms with its `label` and the `place` of it on the axis of speed-ups,
    apart enough to be read.
    """
    room = math.log(span.high / span.low) * LINE_PX / height
    last = points.sort_values("x").groupby("arm")["speedup"].last()
    rows: list[dict[str, Any]] = sorted(
        ({"arm": arm, "at": math.log(last[arm])} for arm in arms), key=lambda row: row["at"]
    )
    for _ in range(50):  # neighbours that overlap move apart by the same distance
        for below, above in pairwise(rows):
            if (missing := room - (above["at"] - below["at"])) > 1e-9:
                below["at"] -= missing / 2
                above["at"] += missing / 2
    low, high = math.log(span.low), math.log(span.high)
    places = [math.exp(min(max(row["at"], low), high)) for row in rows]
    return pd.DataFrame(
        {
            "arm": [row["arm"] for row in rows],
            "place": places,
            "label": [short_label(row["arm"]) for row in rows],
        }
    )
