"""Derived rows: the break-even points of the curves that effects lie on, computed by
`sweeps.stats`.

They are derived in the transaction that records an outcome, so no reader ever sees a point without
its curve.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, distinct, func, select

from store.derive.cost_models import cost_model_row
from store.derive.curve_points import SIZE_AXES, curve_of
from store.derive.savings_curves import (
    ALONG_FIELDS,
    REQUESTED,
    LineCurve,
    curves,
    missing_work,
    points_by_line,
)
from store.rows.row_mapping import insert_into
from store.schema.tables import BREAK_EVEN, COMPARISON, COST_MODEL, EFFECT, SWEEP, SWEEP_COMPARISON
from store.views.columns import gmacs_total, newest_answer
from sweeps.stats.curves.breakeven import break_even
from sweeps.stats.curves.curve import AMOUNT_WORDS, Curve, describe_curve
from sweeps.stats.timing import ANALYSIS_VERSION

BATCH = 1000
"""Comparisons that one statement may name; databases allow some ten thousand."""
_LINKED = COMPARISON.join(
    SWEEP_COMPARISON, SWEEP_COMPARISON.c.comparison_id == COMPARISON.c.comparison_id
)
_HERE = EFFECT.c.environment == bindparam("environment")
_CURVES = select(COMPARISON.c.curve_id).where(
    COMPARISON.c.comparison_id.in_(bindparam("comparisons", expanding=True))
)

ANSWERED = (
    select(EFFECT.c.environment, func.min(COMPARISON.c.comparison_id).label("comparison_id"))
    .select_from(_LINKED.join(EFFECT, EFFECT.c.comparison_id == COMPARISON.c.comparison_id))
    .where(SWEEP_COMPARISON.c.sweep == bindparam("sweep"))
    .group_by(EFFECT.c.environment, COMPARISON.c.curve_id)
    .order_by(EFFECT.c.environment)
)
POINTS = (
    select(
        *(
            SWEEP_COMPARISON.c.sweep,
            COMPARISON.c.curve_id,
            COMPARISON.c.image_size,
            EFFECT.c.gmacs_baseline.label("gmacs"),
        ),
        *(
            EFFECT.c[name]
            for name in (
                "metric",
                "host",
                "comparison_id",
                "tokens",
                "threads",
                "effect",
                "effect_low",
                "effect_high",
            )
        ),
        *(
            EFFECT.c[name]
            for name in (
                "effect_se",
                "effect_freedom",
                "rounds",
                "seconds",
                "compared",
                "n",
                "verdict",
                "flags",
            )
        ),
        *(EFFECT.c[name] for name in ("floor", "unit", "baseline_value")),
        *(EFFECT.c.gmacs_baseline, gmacs_total(EFFECT).label("gmacs_arm")),
    )
    .select_from(_LINKED.join(EFFECT, EFFECT.c.comparison_id == COMPARISON.c.comparison_id))
    .where(
        COMPARISON.c.curve_id.in_(_CURVES),
        _HERE,
        EFFECT.c.compared.in_(("ratio", "amount")),
        EFFECT.c.effect.is_not(None),
    )
    .where(newest_answer(EFFECT))
    .order_by(
        SWEEP_COMPARISON.c.sweep,
        COMPARISON.c.curve_id,
        EFFECT.c.metric,
        EFFECT.c.host,
        EFFECT.c.measured_at,
        EFFECT.c.comparison_id,
    )
)
_FORGET = delete(BREAK_EVEN).where(
    BREAK_EVEN.c.curve_id.in_(_CURVES), BREAK_EVEN.c.environment == bindparam("environment")
)
_FORGET_COSTS = delete(COST_MODEL).where(
    COST_MODEL.c.curve_id.in_(_CURVES), COST_MODEL.c.environment == bindparam("environment")
)
_FORGET_LINES = delete(BREAK_EVEN).where(
    BREAK_EVEN.c.curve_id.in_(bindparam("curves", expanding=True)),
    BREAK_EVEN.c.environment == bindparam("environment"),
)


def _missing() -> Select[Any]:
    """How many questions of a sweep on each curve have no answer on each host that has some."""
    own = COMPARISON.alias("own")
    hosts = (
        select(own.c.curve_id, EFFECT.c.host)
        .select_from(own.join(EFFECT, EFFECT.c.comparison_id == own.c.comparison_id))
        .where(own.c.curve_id.in_(_CURVES), _HERE)
        .distinct()
        .subquery("hosts")
    )
    answer = EFFECT.alias("answer")
    found = select(answer.c.metric).where(
        answer.c.question_id == COMPARISON.c.question_id,
        answer.c.environment == bindparam("environment"),
        answer.c.host == hosts.c.host,
    )
    return (
        select(
            SWEEP_COMPARISON.c.sweep,
            COMPARISON.c.curve_id,
            hosts.c.host,
            func.count(distinct(COMPARISON.c.question_id)).label("missing"),
        )
        .select_from(_LINKED.join(hosts, hosts.c.curve_id == COMPARISON.c.curve_id))
        .where(~found.correlate(COMPARISON, hosts).exists())
        .group_by(SWEEP_COMPARISON.c.sweep, COMPARISON.c.curve_id, hosts.c.host)
    )


MISSING = _missing()
LEVELS = select(SWEEP.c.id, SWEEP.c.settings).where(SWEEP.c.settings.contains('"point_alpha"'))
"""Sweeps whose curves have a level of their own, because their points were chosen one after the
other."""


def derive_break_evens(
    connection: Connection, comparisons: Sequence[str], environment: str
) -> None:
    """Derive the break-evens of the curves that `comparisons` lie on, in every sweep that has
    points on them.

    Each host has a curve of its own, of the points measured there alone, with the number of points
    that it lacks.
    """
    of = {"comparisons": list(comparisons), "environment": environment}
    rows, costs = [], []
    missing = {
        (row.sweep, row.curve_id, row.host): row.missing for row in connection.execute(MISSING, of)
    }
    found: list[Row[Any]] = list(connection.execute(POINTS, of))
    levels = {
        row.id: level
        for row in connection.execute(LEVELS)
        if (level := json.loads(row.settings).get("point_alpha"))
    }
    for (sweep, curve_id, metric, host), group in groupby(
        found, key=lambda row: (row.sweep, row.curve_id, row.metric, row.host)
    ):
        points = list(group)
        same = {
            "sweep": sweep,
            "curve_id": curve_id,
            "environment": environment,
            "host": host,
            "metric": metric,
        }
        same |= {"threads": points[-1].threads}
        lacks = {
            "points_missing": missing.get((sweep, curve_id, host), 0),
            "varied_parameter": None,
        }
        rows += [
            {**row, **same, **lacks}
            for axis in SIZE_AXES
            for row in break_even_rows(points, axis, levels.get(sweep))
        ]
        costs += [{**row, **same} for row in cost_model_row(points)]
    connection.execute(_FORGET, of)
    connection.execute(_FORGET_COSTS, of)
    along = points_by_line(connection.execute(ALONG_FIELDS, of).all(), set(comparisons))
    of_lines = sorted({line.curve_id(metric) for line, metric, _ in along})
    connection.execute(_FORGET_LINES, {"curves": of_lines, "environment": environment})
    line_curves = list(curves(along))
    work = missing_work(connection.execute(REQUESTED, of)) if line_curves else {}
    for curve in line_curves:
        missed = work.get((curve.line, curve.points[0].host), 0)
        rows += _line_rows(curve, environment, missed, levels.get(curve.line.sweep))
    if rows:
        connection.execute(insert_into(BREAK_EVEN), rows)
    if costs:
        connection.execute(insert_into(COST_MODEL), costs)


def derive_sweep(connection: Connection, sweep: int) -> None:
    """Derive the break-evens of a newly submitted sweep, some of whose questions may be answered
    already.
    """
    found = connection.execute(ANSWERED, {"sweep": sweep}).all()
    for environment, rows in groupby(found, key=lambda row: str(row.environment)):
        comparisons = [row.comparison_id for row in rows]
        for start in range(0, len(comparisons), BATCH):
            derive_break_evens(connection, comparisons[start : start + BATCH], environment)


def _line_rows(
    curve: LineCurve, environment: str, missing: int, alpha: float | None
) -> Iterator[dict[str, Any]]:
    line, last = curve.line, curve.points[-1]
    same = {
        "sweep": last.sweep,
        "curve_id": line.curve_id(last.metric),
        "environment": environment,
        "host": last.host,
    }
    same |= {"metric": last.metric, "threads": last.ran_threads, "points_missing": missing}
    varied = None if line.is_field else line.varied_parameter
    for row in break_even_rows(curve.points, curve.axis, alpha, curve.places, varied):
        yield {**row, **same, "varied_parameter": varied}


def break_even_rows(
    rows: Sequence[Row[Any]],
    axis: str,
    alpha: float | None = None,
    places: Sequence[float | None] | None = None,
    varied: str | None = None,
) -> list[dict[str, Any]]:
    """The derived columns of one curve along `axis`: one row for each crossing, or one with the
    reason why there is none.

    Points count by their intervals at `alpha`, or by those stored where it is `None`.
    """
    curve = curve_of(rows, axis, alpha, places)
    if not curve.points:
        return []
    found = break_even(curve)
    common = {
        "axis": axis,
        "comparison_id": rows[-1].comparison_id,
        **{
            name: getattr(found, name)
            for name in ("verdict", "points", "x_first", "x_last", "worst_loss", "largest_gain")
        },
        "why": _why(rows, curve, varied),
        "point_alpha": alpha,
        "floor": max(row.floor for row in rows),
        "analysis_version": ANALYSIS_VERSION,
    }
    nowhere: dict[str, Any] = dict.fromkeys(("x", "x_low", "x_high", "direction", "grid_limited"))
    crossings: list[dict[str, Any]] = [
        {
            "x": at.x,
            "x_low": at.low,
            "x_high": at.high,
            **{name: getattr(at, name) for name in ("direction", "grid_limited")},
        }
        for at in found.crossings
    ]
    return [
        {**common, **place, "crossing": number}
        for number, place in enumerate(crossings or [nowhere])
    ]


def _why(rows: Sequence[Row[Any]], curve: Curve, varied: str | None) -> str:
    if rows[-1].compared == "ratio":
        return describe_curve(curve, varied)
    once = any(row.effect_low is None for row in rows)
    note = (
        f" Read once, without an interval: {rows[-1].floor:.0%} counts as no difference."
        if once
        else ""
    )
    return describe_curve(curve, varied, AMOUNT_WORDS) + note
