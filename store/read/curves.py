"""What is read beside the points of curves: break-evens along the tokens, predictions and relative
costs of cost models, ceilings, limits of memory, labels of hosts.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, select

from store.derive.break_evens import count_tokens
from store.read.current_effects import load_effects
from store.read.queries import ARM_COLUMNS, PANEL_COLUMNS
from store.rows.frames import read_frame, rows_of, typed_rows
from store.rows.placement import Place
from store.schema.tables import BREAK_EVEN, named
from store.views.public import TABLES
from sweeps.analysis.memory_limits import curve_key, memory_limits
from sweeps.analysis.rows import (
    BreakEvenRow,
    ClaimRow,
    CostModelRow,
    CurveRow,
    FailureRow,
    SpeedupRow,
)
from sweeps.model.flags import split_flags, wrong
from sweeps.stats.cost_model import RelativeCosts
from sweeps.stats.curve import launch_work_of
from sweeps.text.condition_text import limit_place
from sweeps.text.curves import describe_cost_model, token_unit

if TYPE_CHECKING:
    import pandas as pd

CEILING_COLUMNS = ("ceiling", "ceiling_low", "ceiling_high", "ceiling_id")
_CONDITION = (
    "metric",
    "model",
    "weights",
    "batch_size",
    "dtype",
    "attention",
    "runtime",
    "threads",
    "wait_policy",
    "pinning",
    "spare_cores",
    "exclusive",
    "inputs",
    "baseline_id",
    "environment",
    "host",
)
"""Equal for points that a ceiling bounds, where they have these columns."""
_NO_BOUND = ("insufficient", "quarantined")
_TOKENS = ("tokens", "tokens_final", "gmacs")
"""GMACs of the network and tokens at the end follow from the tokens of each block, and are equal
where these are."""


def with_ceilings(points: "pd.DataFrame", is_ceiling: Callable[[str], bool]) -> "pd.DataFrame":
    """Points with `ceiling`: the speed-up of an arm that reaches the same tokens by cutting under
    the same condition, if any.

    `ceiling_low` and `ceiling_high` are the ends of its interval, `ceiling_id` its comparison.
    `points` are rows of the view `speedup`; `is_ceiling` is whether a method only cuts. An answer
    from which nothing follows (too few pairs, a slowed machine, a flag) has its comparison and no
    numbers.
    """
    import pandas as pd  # imported late: a command that prints no points does not need it

    same = [name for name in (*_CONDITION, *_TOKENS) if name in points]
    keys = list(
        points[same]
        .astype(object)
        .where(points[same].notna(), None)
        .itertuples(index=False, name=None)
    )
    ends = ["speedup", "speedup_low", "speedup_high", "comparison_id"]
    judged = points.reindex(columns=["verdict", "flags"]).itertuples(index=False, name=None)
    counted = [
        verdict not in _NO_BOUND and not wrong(split_flags(flags)) for verdict, flags in judged
    ]
    figures = points.reindex(columns=ends[:3]).where(
        pd.DataFrame(dict.fromkeys(ends[:3], counted), index=points.index)
    )
    values = figures.assign(comparison_id=points.get("comparison_id")).itertuples(
        index=False, name=None
    )
    cut = points["method"].map(is_ceiling).astype(bool)
    known = {
        key: value for key, value, only_cuts in zip(keys, values, cut, strict=True) if only_cuts
    }
    found = [known.get(key, (None,) * len(ends)) for key in keys]
    ceilings = pd.DataFrame(found, index=points.index, columns=list(CEILING_COLUMNS), dtype=object)
    return pd.concat([points, ceilings.astype(dict.fromkeys(CEILING_COLUMNS[:3], float))], axis=1)


CurveKey = tuple[str, str, str, str]
"""Curve, environment, host, metric."""
KEY_OF_CURVE = ("curve_id", "environment", "host", "metric")
MAX_CURVES_FITTED = 100
"""Curves of one report whose relative costs are computed."""


def with_limits(points: "pd.DataFrame", failures: "pd.DataFrame") -> "pd.DataFrame":
    """Rows of the view `speedup` with where their arm ran out of memory, if it did: `limit` in
    words, and its place on each axis.
    """
    full = rows_of(failures[failures["reason"] == "out_of_memory"], FailureRow)
    if not full:
        return points
    rows = rows_of(points, SpeedupRow)
    found = memory_limits(full, rows)
    limits: Any = [found.get(curve_key(row)) for row in rows]
    return points.assign(
        limit=[each and f"does not fit {limit_place(each)}" for each in limits],
        limit_tokens=[each and each.tokens for each in limits],
        limit_gmacs=[each and each.gmacs for each in limits],
    )


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
    own = rows_of(points[points["curve_id"].isin(cost_models["curve_id"])], SpeedupRow)
    known = load_effects(
        engine, {row.comparison_id for row in own}, {row.environment for row in own}
    )
    by_place = {
        (each.comparison_id, *each.place, each.metric): each for each in known if not each.failed
    }
    for model in rows_of(cost_models, CostModelRow):
        key = _curve_key(model)
        same = [row for row in own if _curve_key(row) == key]
        found = [by_place.get((row.comparison_id, *key[1:])) for row in same]
        measured = [each.point(each.tokens) for each in found if each is not None and each.tokens]
        used = [
            point
            for point in measured
            if not point.wrong and not point.no_op and point.se is not None
        ]
        if model.work_unit == "token":
            used = count_tokens(used)
        seconds = {row.comparison_id: 1e-3 * (row.baseline_ms or 0.0) for row in same}
        if (costs := launch_work_of(used, seconds)) is not None:
            yield key, costs.ratios


def _curve_key(row: SpeedupRow | CurveRow) -> CurveKey:
    return row.curve_id, row.environment, row.host, row.metric


def predicted_break_evens(
    cost_models: "pd.DataFrame", curves: "pd.DataFrame"
) -> Iterator[tuple[CostModelRow, str]]:
    """Rows of the view `cost_model` of these `curves` (rows of `break_even`), each with what its
    model predicts in words.
    """
    known = {_curve_key(row) for row in rows_of(curves, BreakEvenRow)}
    for row in rows_of(cost_models, CostModelRow):
        text = describe_cost_model(row, token_unit(row)) if _curve_key(row) in known else ""
        if text:
            yield row, text


CONDITION_COLUMNS = (*PANEL_COLUMNS, "baseline", *ARM_COLUMNS, "params")
"""Of the view `break_even`, by which its curves differ."""
_FIGURES = (
    "curve_id metric axis varied_parameter verdict x x_low x_high direction grid_limited "
    "points points_missing why prompt_tokens x_first x_last worst_loss largest_gain"
)


def token_break_evens(engine: Engine, sweep: str, metric: str) -> "pd.DataFrame":
    """Rows of the view `break_even` along the tokens by one metric, with the columns of conditions
    and what words need.
    """
    view = TABLES["break_even"]
    columns = (*named(view, CONDITION_COLUMNS), *named(view, _FIGURES))
    rows = select(*columns).where(
        view.c.sweep == sweep, view.c.metric == metric, view.c.axis == "tokens"
    )
    return read_frame(engine, rows.order_by(view.c.method, view.c.params, view.c.x))


@dataclass(frozen=True, kw_only=True)
class _Claim(ClaimRow):
    """A row of `break_even_row`."""

    curve_id: str
    environment: str
    sweep: int


def claims_of_curves(
    engine: Engine, curves: Collection[str], metric: str
) -> dict[tuple[str, Place], tuple[ClaimRow, ...]]:
    """Break-evens along the tokens by one metric, by curve and place.

    Of several sweeps that have a curve the one with most points on it, among equals the newest.
    """
    rows = select(BREAK_EVEN).where(BREAK_EVEN.c.metric == metric, BREAK_EVEN.c.axis == "tokens")
    found: dict[tuple[str, Place], dict[int, list[_Claim]]] = {}
    ordered = rows.order_by(BREAK_EVEN.c.crossing)
    for row in typed_rows(engine, ordered, BREAK_EVEN.c.curve_id, curves, _Claim):
        here = found.setdefault((row.curve_id, Place(row.environment, row.host)), {})
        here.setdefault(row.sweep, []).append(row)
    return {
        key: tuple(max(own.items(), key=lambda each: (each[1][0].points, each[0]))[1])
        for key, own in found.items()
    }


def label_hosts(points: "pd.DataFrame") -> "dict[tuple[str, str], str]":
    """The label of each place in frames with the columns `environment` and `host`; empty where
    there is only one.

    The host is named, and the environment where a host has several.
    """
    distinct = points[["environment", "host"]].drop_duplicates()
    if len(distinct) < 2:
        return dict.fromkeys(distinct.itertuples(index=False, name=None), "")
    several = distinct["host"].value_counts()
    return {
        (environment, host): f"host {host}"
        + (f", environment {environment[:8]}" if several[host] > 1 else "")
        for environment, host in distinct.itertuples(index=False)
    }
