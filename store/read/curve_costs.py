"""Cost models of stored curves: what they predict, and costs of an arm relative to its baseline's,
from the fit of both.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from store.read.current_effects import load_effects
from store.rows.frames import rows_of
from sweeps.stats.curves.launch_work import RelativeCosts, launch_work_of
from sweeps.text.curve_labels import describe_cost_model, token_unit

if TYPE_CHECKING:
    import pandas as pd

CurveKey = tuple[str, str, str, str]
"""Curve, environment, host, metric."""
KEY_OF_CURVE = ("curve_id", "environment", "host", "metric")
MAX_CURVES_FITTED = 100
"""Curves of one report whose relative costs are computed."""


def curve_costs(
    engine: Engine, cost_models: "pd.DataFrame", points: "pd.DataFrame"
) -> Mapping[CurveKey, RelativeCosts]:
    """Of each curve in rows of the view `cost_model` whose fit describes its points, by
    `KEY_OF_CURVE`; at most so many curves.

    `points` are rows of the view `speedup`, among which those of the curves are looked for. Points
    that a flag marks as wrong, and those where the method removes nothing, are no part of a fit.
    """
    shown = cost_models[cost_models["verdict"] == "fits"].head(MAX_CURVES_FITTED)
    return dict(_fitted(engine, shown, points)) if len(shown) else {}


def _fitted(
    engine: Engine, cost_models: "pd.DataFrame", points: "pd.DataFrame"
) -> Iterator[tuple[CurveKey, RelativeCosts]]:
    own = points[points["curve_id"].isin(cost_models["curve_id"])]
    known = load_effects(engine, set(own["comparison_id"]), set(own["environment"]))
    by_place = {
        (each.comparison_id, *each.place, each.metric): each for each in known if not each.failed
    }
    for row in rows_of(cost_models):
        key: CurveKey = (row.curve_id, row.environment, row.host, row.metric)
        same = own[(own[list(KEY_OF_CURVE)] == list(key)).all(axis=1)]
        found: list[Any] = [
            by_place.get((each, row.environment, row.host, row.metric))
            for each in same["comparison_id"]
        ]
        measured = [
            each.point(float(each.tokens)) for each in found if each is not None and each.tokens
        ]
        used = [
            point
            for point in measured
            if not point.wrong and not point.no_op and point.se is not None
        ]
        if row.work_unit == "token":
            used = [
                point.model_copy(update={"gmacs": point.x, "gmacs_baseline": point.x})
                for point in used
            ]
        seconds = dict(zip(same["comparison_id"], 1e-3 * same["baseline_ms"], strict=True))
        if (costs := launch_work_of(used, seconds)) is not None:
            yield key, costs.ratios


def predicted_break_evens(
    cost_models: "pd.DataFrame", curves: "pd.DataFrame"
) -> Iterator[tuple[Any, str]]:
    """Rows of the view `cost_model` of these `curves` (rows of `break_even`), each with what its
    model predicts in words.
    """
    same = list(KEY_OF_CURVE)
    known = {tuple(key) for key in curves[same].itertuples(index=False)}
    for row in cost_models.itertuples():
        if tuple(getattr(row, name) for name in same) in known and (
            text := describe_cost_model(row, token_unit(row))
        ):
            yield row, text
