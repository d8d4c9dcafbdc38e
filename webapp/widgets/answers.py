"""What a panel answers: the curve of each arm, the best of them in a headline; and the same of all
sweeps at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from store.read import queries as stored
from sweeps.analysis.labels import GAINS, Finding
from sweeps.analysis.rows import ClaimRow
from sweeps.number_format import seconds_at
from sweeps.text.curves import CurveAnswer, answer_of_curve, answer_of_points, headline_of_curves
from webapp.charts import panels
from webapp.charts.panels import X_COLUMN, Panel, flagged
from webapp.display import texts
from webapp.display.arm_style import arm_styles, label_arms
from webapp.display.axis_curves import Axis, curves_along
from webapp.display.texts import PointRow
from webapp.queries import kept
from webapp.widgets.filters import plan_choices
from workers.methods import purpose


class PanelAnswers(NamedTuple):
    """What sentence and cards of a panel are made from, read once for both."""

    panel: Panel
    axis: Axis
    points: Mapping[str, list[PointRow]]
    """Those of each arm that no flag marks as wrong, or all where each is; arms best first, points
    in order along the axis."""
    rows: Mapping[str, list[ClaimRow]]
    """By arm."""
    curves: Mapping[str, CurveAnswer]
    """What the curve of each arm claims; empty for a panel with one size."""

    @property
    def counted(self) -> list[PointRow]:
        return [row for own in self.points.values() for row in own]


def answers_of_panel(panel: Panel, axis: Axis) -> PanelAnswers:
    right = panel.points[~flagged(panel.points)]
    counted = pd.concat([right, panel.points[~panel.points["arm"].isin(right["arm"])]])
    ordered = counted.sort_values(X_COLUMN[axis], kind="stable")
    points: dict[str, list[PointRow]] = {
        arm: [] for arm in panels.ranked_arms(panel.points, panel.break_evens)
    }
    for row in texts.point_rows(ordered):
        points[row.arm].append(row)
    rows = panels.rows_by_arm(panel.break_evens)
    known = PanelAnswers(panel, axis, points, rows, {})
    return known if panel.single(axis) else known._replace(curves=_curves(known))


def _curves(known: PanelAnswers) -> dict[str, CurveAnswer]:
    """What the curve of each arm claims, best first."""
    found = {}
    for arm, (first, *_) in known.points.items():
        for_use, rows = purpose(first.method) == "optimisation", known.rows.get(arm, [])
        found[arm] = answer_of_curve(first.method, arm, rows, for_use=for_use)
    return found


def best_arm(known: PanelAnswers) -> str:
    """The best arm in about twelve words."""
    if known.curves:
        return headline_of_curves(list(known.curves.values()))
    winners = [row for row in known.counted if gains(row)]
    best = max(winners, key=lambda row: row.speedup_low or 0.0, default=None)
    if best is None:
        return answer_of_points(len(known.counted), "").removesuffix(".")
    return f"{best.arm} {texts.single_point(best)}"


def place_of(row: PointRow, axis: Axis) -> float:
    places = {"tokens": row.tokens, "gmacs": row.gmacs_baseline, "gmacs_saved": row.gmacs_saved}
    return float(places[axis] or 0.0)


def gains(row: PointRow) -> bool:
    return texts.speed(row).finding in GAINS - {Finding.SMALL_GAIN}


class Overview(NamedTuple):
    """A sweep in a line: what the page Answer shows of it first."""

    headline: str
    measured_at: float
    """Of its newest answer, in seconds since the epoch."""
    axis: Axis
    curves: Sequence[tuple[str, Sequence[tuple[float, float | None]]]]
    """Of each arm its colour and its speed-ups along the axis, as far as they are known."""


@kept
def overviews(engine: Any, names: tuple[str, ...]) -> dict[str, Overview]:
    """Those of these sweeps that have a speed-up, read by one query for each view."""
    counts = stored.panel_counts(engine, names)
    scopes = {
        str(name): plan_choices(str(name), own, {}).scope
        for name, own in counts.groupby("sweep", sort=False)
    }
    last = counts.groupby("sweep")["measured_at"].max()
    if not scopes:
        return {}
    wanted = [(name, scope.conditions) for name, scope in scopes.items()]
    points, break_evens = (
        stored.rows_of_panels(engine, wanted, view) for view in ("speedup", "break_even")
    )
    found = {}
    for name in scopes:
        own = label_arms(*(rows[rows["of_sweep"] == name] for rows in (points, break_evens)))
        axis = panels.curve_axes(*own)[0]
        drawn = curves_along(*own, axis)
        known = answers_of_panel(next(panels.curve_panels(*drawn, axis)), axis)
        styles = arm_styles(drawn[0])
        lines = [(styles[arm].color, speeds(rows, axis)) for arm, rows in known.points.items()]
        found[name] = Overview(best_arm(known), seconds_at(last[name]), axis, lines)
    return found


def speeds(rows: Sequence[PointRow], axis: Axis) -> list[tuple[float, float | None]]:
    """The places of points, each with its speed-up where that is known."""
    return [
        (place_of(row, axis), None if row.verdict in texts.UNDECIDED else row.speedup)
        for row in rows
    ]
