"""Derived rows: the break-even points of the curves that effects lie on, computed by
`sweeps.stats`.

They are derived in the transaction that imports outcomes, or soon after that which records one
(`store.write.record.derive_pending`).
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf, log
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, distinct, func, select

from store.derive.sample_store import Spread, compute_here
from store.derive.savings_curves import (
    ALONG_FIELDS,
    REQUESTED,
    LineCurve,
    curves,
    missing_work,
    points_by_line,
)
from store.rows.row_mapping import finite, insert_into
from store.rows.transactions import batches
from store.schema.tables import (
    BREAK_EVEN,
    COMPARISON,
    COST_MODEL,
    COSTS,
    EFFECT,
    SWEEP,
    SWEEP_COMPARISON,
    gmacs_total,
    named,
    newest_answer,
)
from sweeps.model.flags import split_flags, wrong
from sweeps.stats.curve import Curve, Point, break_even, fit_points, launch_work_of, predicted
from sweeps.stats.pooling import SpeedUp, Verdict
from sweeps.stats.timing import ANALYSIS_VERSION
from sweeps.text.curves import AMOUNT_WORDS, describe_curve, points_left_out

SIZE_AXES = ("tokens", "gmacs", "image_size")
"""Axes along which the image size or the prompt's length varies, on a scale without zero."""


_Derived = tuple[str, dict[str, Any]]
"""A table, and a row of it less the environment."""


def curve_of(
    rows: Sequence[Row[Any]],
    axis: str,
    alpha: float | None = None,
    places: Sequence[float | None] | None = None,
) -> Curve:
    """The curve of rows, oldest first, at `places`, or by default their column `axis`; without
    those whose x is not known.

    Points have their intervals at the level `alpha`, or those stored where it is `None`.
    """
    # of two at one x the newer stays
    points = {
        float(x): effect_point(row, x, alpha)
        for row, x in zip(rows, places or [getattr(row, axis) for row in rows], strict=True)
        if x is not None and (x or axis not in SIZE_AXES)
    }
    return Curve(axis=axis, points=tuple(points.values()))


def effect_point(row: Row[Any], x: float, alpha: float | None, *, work: bool = True) -> Point:
    """A row of `effect_row` as a point of a curve at `x`, its interval at the level `alpha`, or the
    stored one where that is `None`; without `work`, no model is fitted to it.
    """
    low, high, verdict = _interval(row, alpha)
    flags = split_flags(row.flags)
    return Point(
        x=x,
        speedup=row.effect,
        low=low,
        high=high,
        verdict=verdict,
        se=row.effect_se,
        pairs=row.n,
        gmacs_baseline=row.gmacs_baseline if work else None,
        gmacs=row.gmacs_arm if work else None,
        comparison_id=row.comparison_id,
        wrong=wrong(flags),
        no_op="no_effect" in flags,
    )


def _interval(row: Row[Any], alpha: float | None) -> tuple[float | None, float | None, Verdict]:
    """Ends and verdict of a point; around an amount that was read once, and has a verdict, lies the
    floor.
    """
    undecided = row.verdict in ("insufficient", "quarantined")
    if row.compared == "amount" and row.effect_low is None and not undecided:
        return row.effect / (1 + row.floor), row.effect * (1 + row.floor), row.verdict
    if alpha is None or row.effect_se is None or not row.effect_freedom:
        return row.effect_low, row.effect_high, row.verdict
    found = SpeedUp(log(row.effect), row.effect_se, row.effect_freedom, row.n, alpha)
    ends = (found.low, found.high) if found.half_width < inf else (None, None)
    return *ends, row.verdict if undecided else found.verdict()


_SECONDS = {"ms": 1e-3, "s": 1.0}
"""Units of the metrics that launch + work is a model of: times."""


def count_tokens(points: Sequence[Point]) -> list[Point]:
    """Points whose work is their tokens, for curves where the MACs are not known."""
    return [
        point.model_copy(update={"gmacs": point.x, "gmacs_baseline": point.x}) for point in points
    ]


def cost_model_row(rows: Sequence[Row[Any]]) -> Iterator[dict[str, Any]]:
    """The derived columns of the cost model of one curve of times along tokens, if it has a
    point.
    """
    if rows[-1].unit not in _SECONDS:
        return
    curve = curve_of(rows, "tokens")
    points = [point for point in curve.usable() if not point.no_op]
    if not points:
        return
    unit = "GMAC" if all(point.gmacs and point.gmacs_baseline for point in points) else "token"
    if unit == "token":
        points = count_tokens(points)
    found = fit_points(points)
    seconds = {row.comparison_id: row.baseline_value * _SECONDS[row.unit] for row in rows}
    columns = {
        "comparison_id": rows[-1].comparison_id,
        "points": len(points),
        "work_unit": unit,
        "verdict": "undetermined" if found is None else "fits" if found.adequate else "misfit",
        "misfit_p": None if found is None else found.misfit_p,
        "analysis_version": ANALYSIS_VERSION,
        **dict.fromkeys(f"{name}{end}" for name in COSTS for end in ("", "_low", "_high")),
        **dict.fromkeys(f"predicted_x{end}" for end in ("", "_low", "_high")),
    }
    if None not in [point.se for point in points]:
        costs = launch_work_of(points, seconds)
        for name, cost in zip(COSTS, costs[:4] if costs else (), strict=False):
            columns |= {
                name: finite(cost.value),
                f"{name}_low": finite(cost.low),
                f"{name}_high": finite(cost.high),
            }
    if found is not None and (place := predicted(found, points)) is not None:
        columns |= {
            "predicted_x": place.x,
            "predicted_x_low": place.low,
            "predicted_x_high": place.high,
        }
    yield columns


BATCH = 1000
"""Comparisons that one statement may name; databases allow some ten thousand."""
CURVE_ORDER = (COMPARISON.c.panel_id, COMPARISON.c.curve_id)
"""What comparisons are ordered by, so that the points of a curve come together."""
_LINKED = COMPARISON.join(SWEEP_COMPARISON)
_HERE = EFFECT.c.environment == bindparam("environment")
_CURVES = select(COMPARISON.c.curve_id).where(
    COMPARISON.c.comparison_id.in_(bindparam("comparisons", expanding=True))
)

ANSWERED = (
    select(EFFECT.c.environment, func.min(COMPARISON.c.comparison_id).label("comparison_id"))
    .select_from(_LINKED.join(EFFECT))
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
            COMPARISON.c.x_axis,
            EFFECT.c.gmacs_baseline.label("gmacs"),
        ),
        *named(EFFECT, "metric host comparison_id tokens threads effect effect_low effect_high"),
        *named(EFFECT, "effect_se effect_freedom compared n verdict flags"),
        *named(EFFECT, "floor unit baseline_value"),
        *(EFFECT.c.gmacs_baseline, gmacs_total(EFFECT).label("gmacs_arm")),
    )
    .select_from(_LINKED.join(EFFECT))
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
    connection: Connection,
    comparisons: Sequence[str],
    environment: str,
    *,
    spread: Spread = compute_here,
) -> None:
    """Derive the break-evens of the curves that `comparisons` lie on, in every sweep that has
    points on them.

    Each host has a curve of its own, of the points measured there alone, with the number of points
    that it lacks.
    """
    of = {"comparisons": list(comparisons), "environment": environment}
    missing = {
        (row.sweep, row.curve_id, row.host): row.missing for row in connection.execute(MISSING, of)
    }
    levels = {
        row.id: level
        for row in connection.execute(LEVELS)
        if (level := json.loads(row.settings).get("point_alpha"))
    }
    found: list[Row[Any]] = list(connection.execute(POINTS, of))
    grouped = groupby(found, key=lambda row: (row.sweep, row.curve_id, row.metric, row.host))
    of_sizes = [
        (list(points), missing.get((sweep, curve_id, host), 0), levels.get(sweep))
        for (sweep, curve_id, _, host), points in grouped
    ]
    along = points_by_line(connection.execute(ALONG_FIELDS, of).all(), set(comparisons))
    line_curves = list(curves(along))
    work = missing_work(connection.execute(REQUESTED, of)) if line_curves else {}
    of_lines = [
        (
            curve,
            work.get((curve.line, curve.points[0].host), 0),
            levels.get(curve.line.sweep),
        )
        for curve in line_curves
    ]
    derived = [
        *spread(_compute_size_curves, connection, of_sizes),
        *spread(_compute_line_curves, connection, of_lines),
    ]
    connection.execute(_FORGET, of)
    connection.execute(_FORGET_COSTS, of)
    lines = sorted({line.curve_id(metric) for line, metric, _ in along})
    connection.execute(_FORGET_LINES, {"curves": lines, "environment": environment})
    for table in (BREAK_EVEN, COST_MODEL):
        rows = [{**row, "environment": environment} for kept, row in derived if kept == table.name]
        if rows:
            connection.execute(insert_into(table), rows)


def _compute_size_curves(
    _connection: Connection, tasks: Sequence[tuple[list[Row[Any]], int, float | None]]
) -> list[_Derived]:
    """The rows of curves along sizes, from the rows of `POINTS` of each, the number of points that
    it lacks, and the level of its points.
    """
    derived = []
    for points, missing, level in tasks:
        last = points[-1]
        same = {name: getattr(last, name) for name in ("sweep", "curve_id", "host", "metric")}
        same |= {"threads": last.threads}
        lacks = {"points_missing": missing, "varied_parameter": None}
        derived += [
            (BREAK_EVEN.name, {**row, **same, **lacks})
            for axis in SIZE_AXES
            for row in break_even_rows(points, axis, level)
        ]
        derived += [(COST_MODEL.name, {**row, **same}) for row in cost_model_row(points)]
    return derived


def derive_sweep(connection: Connection, sweep: int) -> None:
    """Derive the break-evens of a newly submitted sweep, some of whose questions may be answered
    already.
    """
    found = connection.execute(ANSWERED, {"sweep": sweep}).all()
    for environment, rows in groupby(found, key=lambda row: str(row.environment)):
        comparisons = [row.comparison_id for row in rows]
        for batch in batches(comparisons, BATCH):
            derive_break_evens(connection, batch, environment)


def _compute_line_curves(
    _connection: Connection, tasks: Sequence[tuple[LineCurve, int, float | None]]
) -> list[_Derived]:
    """The rows of curves at a fixed size, each with the number of points that it lacks and the
    level of its points.
    """
    derived = []
    for curve, missing, level in tasks:
        line, last = curve.line, curve.points[-1]
        varied = None if line.is_field else line.varied_parameter
        same = {
            "sweep": last.sweep,
            "curve_id": line.curve_id(last.metric),
            "host": last.host,
            "metric": last.metric,
            "threads": last.ran_threads,
            "points_missing": missing,
            "varied_parameter": varied,
        }
        derived += [
            (BREAK_EVEN.name, {**row, **same})
            for row in break_even_rows(curve.points, curve.axis, level, curve.places, varied)
        ]
    return derived


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
        "left_out": points_left_out(curve),
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
    x_axis = rows[-1].x_axis
    if rows[-1].compared == "ratio":
        return describe_curve(curve, varied, x_axis=x_axis)
    once = any(row.effect_low is None for row in rows)
    note = (
        f" Read once, without an interval: {rows[-1].floor:.0%} counts as no difference."
        if once
        else ""
    )
    return describe_curve(curve, varied, AMOUNT_WORDS, x_axis=x_axis) + note
