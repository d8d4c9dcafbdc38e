"""Derived rows: speed-ups from raw samples, break-evens from speed-ups, computed by `sweeps` and only stored here.

They are brought up to date inside the transaction that records an outcome, so no reader ever sees a point without its curve.
"""

import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, bindparam, delete, insert, text

from store import tables
from store.describing import timestamp
from store.views import NEWEST
from sweeps.breakeven import break_even
from sweeps.curve import Curve, Point
from sweeps.outcome import Samples
from sweeps.statistics import ANALYSIS_VERSION, DEFAULT_FLOOR, Estimate, median, pooled_speedup, verdict

METRIC = "latency"
FIGURES = tuple(tables.Speedup.model_fields)

PAIRINGS = text(
    """SELECT p.comparison_id, c.question_id, p.attempt, p.baseline, p.arm, p.failure, t.flags, t.ended_at, t.source,
         b.flags AS baseline_flags, b.tokens AS baseline_tokens, b.gmacs AS gmacs_baseline,
         a.flags AS arm_flags, a.tokens, a.tokens_final, a.gmacs, a.gmacs_method, a.threads
       FROM pairing AS p
       JOIN comparison AS c ON c.comparison_id = p.comparison_id
       JOIN attempt AS t ON t.id = p.attempt
       LEFT JOIN measured_arm AS b ON b.attempt = p.attempt AND b.arm = p.baseline
       LEFT JOIN measured_arm AS a ON a.attempt = p.attempt AND a.arm = p.arm
       WHERE p.comparison_id IN :comparisons AND t.environment = :environment
       ORDER BY p.comparison_id, t.ended_at, t.id"""
).bindparams(bindparam("comparisons", expanding=True))

SAMPLES = text("SELECT * FROM sample WHERE attempt = :attempt")

POINTS = text(
    f"""SELECT l.sweep, c.curve_id, r.comparison_id, r.measured_at, r.tokens, r.gmacs_baseline AS gmacs, r.threads,
          r.speedup, r.speedup_low, r.speedup_high, r.pairs, r.flags, r.floor
        FROM comparison AS c
        JOIN sweep_comparison_row AS l ON l.comparison_id = c.comparison_id
        JOIN speedup_row AS r ON r.comparison_id = c.comparison_id
        WHERE c.curve_id IN :curves AND r.environment = :environment AND r.speedup IS NOT NULL AND {NEWEST}
        ORDER BY l.sweep, c.curve_id, r.measured_at, r.comparison_id"""  # noqa: S608 - constants only
).bindparams(bindparam("curves", expanding=True))

CURVES = text("SELECT DISTINCT curve_id FROM comparison WHERE comparison_id IN :comparisons").bindparams(
    bindparam("comparisons", expanding=True)
)

ANSWERED_CURVES = text(
    """SELECT DISTINCT r.environment, c.curve_id
       FROM sweep_comparison_row AS l
       JOIN comparison AS c ON c.comparison_id = l.comparison_id
       JOIN speedup_row AS r ON r.comparison_id = l.comparison_id
       WHERE l.sweep = :sweep ORDER BY r.environment, c.curve_id"""
)


class Timings(NamedTuple):
    """Raw samples of one attempt, arrays of shape [rounds, columns], seconds per forward."""

    arms: list[int]
    """Index of the arm in each column."""
    seconds: NDArray[np.float64]
    device_seconds: NDArray[np.float64] | None

    def of(self, arm: int) -> NDArray[np.float64]:
        """The wall times of an arm, shape [rounds]."""
        column: NDArray[np.float64] = self.seconds[:, self.arms.index(arm)]
        return column


def pack(samples: Samples) -> dict[str, Any]:
    """The columns of `sample`. Raises `ValueError` for samples that are not rectangular, see `sweeps.outcome.Samples`."""
    columns = len(samples.arms)
    seconds = _rectangle(samples.seconds, columns, "seconds")
    device = None if samples.device_seconds is None else _rectangle(samples.device_seconds, columns, "device_seconds")
    order = _rectangle(samples.order, columns, "order").astype("<i4")
    if len(order) != len(seconds) or (device is not None and len(device) != len(seconds)):
        raise ValueError(f"samples: seconds has {len(seconds)} rounds, but order or device_seconds has another number")
    return {
        "rounds": len(seconds),
        "columns": columns,
        "arms": json.dumps(samples.arms),
        "inner": json.dumps(samples.inner),
        "stopped": samples.stopped,
        "seconds": _squeeze(seconds),
        "device_seconds": None if device is None else _squeeze(device),
        "run_order": _squeeze(order),
    }


def unpack(row: Row[Any] | Any) -> Timings:
    """The timings in a row of `sample`."""
    shape = (row.rounds, row.columns)
    device = None if row.device_seconds is None else np.frombuffer(zlib.decompress(row.device_seconds), "<f8").reshape(shape)
    return Timings(json.loads(row.arms), np.frombuffer(zlib.decompress(row.seconds), "<f8").reshape(shape), device)


def derive(connection: Connection, comparisons: Sequence[str], environment: str) -> None:
    """Bring the speed-ups of `comparisons` in `environment` up to date, and the break-evens of the curves they lie on."""
    if not comparisons:
        return

    @cache
    def timings(attempt: int) -> Timings:
        return unpack(connection.execute(SAMPLES, {"attempt": attempt}).one())

    found = connection.execute(PAIRINGS, {"comparisons": list(comparisons), "environment": environment}).all()
    rows = []
    for comparison_id, pairings in groupby(found, key=lambda pairing: pairing.comparison_id):
        answer = _answer(list(pairings), timings)
        rows.append(dict.fromkeys(FIGURES) | answer | {"comparison_id": comparison_id, "environment": environment})
    mine = (tables.Speedup.comparison_id, tables.Speedup.environment)
    _replace(connection, tables.Speedup, mine, rows)
    curves = connection.execute(CURVES, {"comparisons": list(comparisons)}).scalars().all()
    derive_break_evens(connection, curves, environment)


def derive_sweep(connection: Connection, sweep: int) -> None:
    """Bring the break-evens of a sweep up to date: it may ask what others have answered before."""
    found = connection.execute(ANSWERED_CURVES, {"sweep": sweep}).all()
    for environment, rows in groupby(found, key=lambda row: str(row.environment)):
        derive_break_evens(connection, [row.curve_id for row in rows], environment)


def derive_break_evens(connection: Connection, curves: Sequence[str], environment: str) -> None:
    """Bring the break-evens of `curves` in `environment` up to date, in every sweep that asks for points of them."""
    found = connection.execute(POINTS, {"curves": list(curves), "environment": environment}).all()
    rows = []
    for (sweep, curve_id), points in groupby(found, key=lambda point: (point.sweep, point.curve_id)):
        of_curve = list(points)
        for axis in ("tokens", "gmacs"):
            for row in _break_even(of_curve, axis):
                rows.append(row | {"sweep": sweep, "curve_id": curve_id, "environment": environment})
    for curve in curves:
        old = (tables.BreakEven.curve_id == curve, tables.BreakEven.environment == environment)
        connection.execute(delete(tables.BreakEven).where(*old))
    if rows:
        connection.execute(insert(tables.BreakEven), rows)


def usable(estimate: Estimate) -> tuple[float | None, float | None]:
    """The interval as columns: 0 and infinity, which stand for too few pairs, become NULL."""
    return estimate.low or None, estimate.high if math.isfinite(estimate.high) else None
