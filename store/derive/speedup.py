"""Derived rows: speed-ups from raw samples, break-evens from speed-ups, computed by `sweeps` and only stored here.

They are brought up to date inside the transaction that records an outcome, so no reader ever sees a point without its curve.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, bindparam, text

from store.derive.savings_curves import ASKED_WORK, FORGET_SAVED, SAME_WORK, SAVED, SavedCurve, curves, missing_work
from store.row_mapping import insert_into, timestamp
from store.sample_codec import Timings, unpack
from store.tables import derived
from store.views.public import NEWEST
from sweeps.stats.breakeven import break_even
from sweeps.stats.curve import Curve, Point
from sweeps.stats.timing import ANALYSIS_VERSION, DEFAULT_FLOOR, median, pooled_speedup, verdict

METRICS: Mapping[str, tuple[str | None, ...]] = {"latency": (None,), "generation": ("ttft", "tpot", "time_per_char")}
"""What each timed kind of job is judged by: the whole run alone (`None`, called `latency`), or the series of its samples."""
BATCH = 200
"""Comparisons that one statement may name; databases allow some ten thousand."""
AXES = ("tokens", "gmacs")
"""Axes along which the image size moves; `savings.py` has the other one."""
FIGURES: tuple[str, ...] = tuple(derived.Speedup.model_fields)

STAGES = ("ttft", "tpot")
"""Metrics that time a part of a run, whose MACs are metrics of the arm: of the first token, and of each further one."""


def _of_stages() -> str:
    """Columns `gmacs_baseline_ttft`, `gmacs_ttft`, `gmacs_overhead_ttft` and so on; NULL for what has no stages."""
    read = "(SELECT m.value FROM metric_row AS m WHERE m.attempt = p.attempt AND m.arm = p.{0} AND m.metric = '{1}_{2}') AS {3}_{2}"
    figures = (("baseline", "gmacs", "gmacs_baseline"), ("arm", "gmacs", "gmacs"), ("arm", "gmacs_overhead", "gmacs_method"))
    return ", ".join(read.format(side, metric, stage, name) for stage in STAGES for side, metric, name in figures)


PAIRINGS = text(
    f"""SELECT p.comparison_id, c.question_id, p.attempt, p.baseline, p.arm, p.failure, t.flags, t.ended_at, t.source, t.host,
         t.round, t.protocol, (SELECT s.rounds FROM sample AS s WHERE s.attempt = t.id) AS pairs,
         b.flags AS baseline_flags, b.tokens AS baseline_tokens, b.gmacs AS gmacs_baseline,
         a.flags AS arm_flags, a.tokens, a.tokens_final, a.gmacs, a.gmacs_method, a.threads, c.prompt_tokens,
         b.route AS baseline_route, a.route,
         {_of_stages()}
       FROM pairing AS p
       JOIN comparison AS c ON c.comparison_id = p.comparison_id
       JOIN attempt AS t ON t.id = p.attempt
       LEFT JOIN measured_arm AS b ON b.attempt = p.attempt AND b.arm = p.baseline
       LEFT JOIN measured_arm AS a ON a.attempt = p.attempt AND a.arm = p.arm
       WHERE p.comparison_id IN :comparisons AND t.environment = :environment AND c.kind = :kind
       ORDER BY p.comparison_id, t.ended_at, t.id"""  # noqa: S608 - made of constants
).bindparams(bindparam("comparisons", expanding=True))

SAMPLES = text("SELECT * FROM sample WHERE attempt = :attempt")
SERIES = text("SELECT metric, seconds FROM sample_series WHERE attempt = :attempt")

FORGET_SPEEDUP = text("DELETE FROM speedup_row WHERE comparison_id = :comparison AND environment = :environment")

ANSWERED = text(
    """SELECT r.environment, min(c.comparison_id) AS comparison_id
       FROM sweep_comparison_row AS l
       JOIN comparison AS c ON c.comparison_id = l.comparison_id
       JOIN speedup_row AS r ON r.comparison_id = l.comparison_id
       WHERE l.sweep = :sweep GROUP BY r.environment, c.curve_id ORDER BY r.environment"""
)

CURVES = "SELECT curve_id FROM comparison WHERE comparison_id IN :comparisons"

POINTS = text(
    f"""SELECT l.sweep, c.curve_id, r.metric, r.host, r.comparison_id, r.tokens, r.gmacs_baseline AS gmacs, r.threads,
          r.speedup, r.speedup_low, r.speedup_high, r.pairs, r.verdict, r.flags, r.floor
        FROM comparison AS c
        JOIN sweep_comparison_row AS l ON l.comparison_id = c.comparison_id
        JOIN speedup_row AS r ON r.comparison_id = c.comparison_id
        WHERE c.curve_id IN ({CURVES}) AND r.environment = :environment AND r.speedup IS NOT NULL AND {NEWEST}
        ORDER BY l.sweep, c.curve_id, r.metric, r.host, r.measured_at, r.comparison_id"""  # noqa: S608 - made of constants
).bindparams(bindparam("comparisons", expanding=True))

MISSING = text(
    f"""SELECT l.sweep, c.curve_id, h.host, count(DISTINCT c.question_id) AS missing
        FROM comparison AS c
        JOIN sweep_comparison_row AS l ON l.comparison_id = c.comparison_id
        JOIN (SELECT DISTINCT d.curve_id, r.host FROM comparison AS d JOIN speedup_row AS r ON r.comparison_id = d.comparison_id
              WHERE d.curve_id IN ({CURVES}) AND r.environment = :environment) AS h ON h.curve_id = c.curve_id
        WHERE NOT EXISTS (SELECT 1 FROM speedup_row AS r
          WHERE r.question_id = c.question_id AND r.environment = :environment AND r.host = h.host)
        GROUP BY l.sweep, c.curve_id, h.host"""  # noqa: S608 - made of constants
).bindparams(bindparam("comparisons", expanding=True))

FORGET_BREAK_EVENS = text(
    f"""DELETE FROM break_even_row
        WHERE axis <> '{SAVED}' AND curve_id IN ({CURVES}) AND environment = :environment"""  # noqa: S608 - made of constants
).bindparams(bindparam("comparisons", expanding=True))


def derive_speedups(
    connection: Connection,
    comparisons: Sequence[str],
    environment: str,
    known: Mapping[int, Timings] | None = None,
    kinds: Collection[str] = tuple(METRICS),
) -> None:
    """Bring the speed-ups of `comparisons` in `environment` up to date, one for each host that measured there.

    `known` holds timings that need not be read again; `kinds` are those of the comparisons, as far as the caller knows them.
    """
    at_hand = dict(known or {})

    def timings(attempt: int) -> Timings:
        if attempt not in at_hand:
            of = {"attempt": attempt}
            at_hand[attempt] = unpack(connection.execute(SAMPLES, of).one(), connection.execute(SERIES, of))
        return at_hand[attempt]

    rows = []
    for kind in METRICS.keys() & kinds:
        asked = {"comparisons": list(comparisons), "environment": environment, "kind": kind}
        places: dict[tuple[str, str], list[Row[Any]]] = {}
        for pairing in connection.execute(PAIRINGS, asked):
            places.setdefault((pairing.comparison_id, pairing.host), []).append(pairing)
        for (comparison_id, host), pairings in places.items():
            same = {"comparison_id": comparison_id, "environment": environment, "host": host}
            found = (_speedup(pairings, timings, metric) for metric in METRICS[kind])
            rows += [{**row, **same} for row in found if row is not None]
    if rows:
        connection.execute(FORGET_SPEEDUP, [{"comparison": row["comparison_id"], "environment": environment} for row in rows])
        connection.execute(insert_into(derived.Speedup), rows)


def derive_break_evens(connection: Connection, comparisons: Sequence[str], environment: str) -> None:
    """Bring the break-evens of the curves that `comparisons` lie on up to date, in every sweep that asks for points on them.

    Each host has a curve of its own, of the points measured there alone, with the number of points that it lacks.
    """
    asked = {"comparisons": list(comparisons), "environment": environment}
    rows = []
    lacking = {(row.sweep, row.curve_id, row.host): row.missing for row in connection.execute(MISSING, asked)}
    found = connection.execute(POINTS, asked).all()
    for (sweep, curve_id, metric, host), group in groupby(found, key=lambda row: (row.sweep, row.curve_id, row.metric, row.host)):
        points = list(group)
        same = {"sweep": sweep, "curve_id": curve_id, "environment": environment, "host": host, "metric": metric, "varies": None}
        same |= {"threads": points[-1].threads, "points_missing": lacking.get((sweep, curve_id, host), 0)}
        rows += [{**row, **same} for axis in AXES for row in break_even_rows(points, axis)]
    connection.execute(FORGET_BREAK_EVENS, asked)
    saved = list(curves(connection.execute(SAME_WORK, asked).all()))
    work = missing_work(connection.execute(ASKED_WORK, asked)) if saved else {}
    rows += [row for curve in saved for row in _saved(curve, environment, work.get((curve.line, curve.points[0].host), 0))]
    connection.execute(FORGET_SAVED, asked)
    if rows:
        connection.execute(insert_into(derived.BreakEven), rows)


def _saved(curve: SavedCurve, environment: str, missing: int) -> Iterator[dict[str, Any]]:
    last = curve.points[-1]
    same = {"sweep": last.sweep, "curve_id": curve.curve_id, "environment": environment, "host": last.host, "metric": last.metric}
    same |= {"threads": last.ran_threads, "points_missing": missing}
    for row in break_even_rows(curve.points, SAVED):
        yield {**row, **same, "varies": curve.varies}


def derive_sweep(connection: Connection, sweep: int) -> None:
    """Bring the break-evens of a newly submitted sweep up to date: what it asks may be answered already."""
    found = connection.execute(ANSWERED, {"sweep": sweep}).all()
    for environment, rows in groupby(found, key=lambda row: str(row.environment)):
        comparisons = [row.comparison_id for row in rows]
        for start in range(0, len(comparisons), BATCH):
            derive_break_evens(connection, comparisons[start : start + BATCH], environment)


def _speedup(pairings: Sequence[Row[Any]], timings: Callable[[int], Timings], metric: str | None) -> dict[str, Any] | None:
    """The derived columns of one comparison by one metric: its attempts on one host pooled, as far as `pooled` lets them.

    `None` if it was measured, but not by this metric (one new token has no time per output token after the first).
    """
    used = pooled(pairings)
    if metric is not None and any(metric not in timings(row.attempt).series for row in used):
        return None
    last = (used or pairings)[-1]
    answer: dict[str, Any] = {
        **dict.fromkeys(FIGURES),
        **stamp(last, used or pairings),
        "metric": metric or "latency",
        "analysis_version": ANALYSIS_VERSION,
        "floor": DEFAULT_FLOOR,
        "flags": union(flags for row in used for flags in (row.flags, row.baseline_flags, row.arm_flags)),
    }
    if not used:
        return {**answer, "failure": last.failure}
    rounds = [(timings(row.attempt).of(row.baseline, metric), timings(row.attempt).of(row.arm, metric)) for row in used]
    estimate = pooled_speedup(rounds)
    stage = f"_{metric}" if metric in STAGES else ""
    on_device = [times for row in used if (times := timings(row.attempt).on_device(row.arm)) is not None and metric is None]
    return {
        **answer,
        "threads": last.threads,
        "tokens": last.prompt_tokens or (last.tokens if last.baseline_tokens is None else last.baseline_tokens),
        "tokens_final": last.tokens_final,
        **{name: getattr(last, f"{name}{stage}") for name in ("gmacs_baseline", "gmacs", "gmacs_method")},
        "baseline_ms": 1e3 * median(np.concatenate([baseline for baseline, _ in rounds])).value,
        "method_ms": 1e3 * median(np.concatenate([arm for _, arm in rounds])).value,
        "device_ms": 1e3 * median(np.concatenate(on_device)).value if on_device else None,
        "speedup": estimate.value,
        "speedup_low": estimate.low or None,  # 0 and infinity stand for too few pairs
        "speedup_high": estimate.high if math.isfinite(estimate.high) else None,
        "pairs": estimate.n,
        "rounds": len(rounds),
        "verdict": "insufficient" if _short(used) else verdict(estimate, DEFAULT_FLOOR),
        "route": last.route,
    }


def break_even_rows(rows: Sequence[Row[Any]], axis: str) -> list[dict[str, Any]]:
    """The derived columns of one curve along `axis`: one row for each crossing, or one that says why there is none."""
    points = {
        float(x): Point(
            x=x,
            speedup=row.speedup,
            low=row.speedup_low,
            high=row.speedup_high,
            pairs=row.pairs,
            comparison_id=row.comparison_id,
            flagged=bool(row.flags),
            insufficient=row.verdict == "insufficient",
        )
        for row in rows  # oldest first: of two points at one x the newer one stays
        if (x := getattr(row, axis)) is not None and (x or axis == SAVED)
    }
    if not points:
        return []
    floor = max(row.floor for row in rows)
    found = break_even(Curve(axis=axis, points=tuple(points.values())), floor)
    common = {
        "axis": axis,
        "comparison_id": rows[-1].comparison_id,
        "verdict": found.verdict,
        "points": found.points,
        "why": found.why,
        "floor": floor,
        "analysis_version": ANALYSIS_VERSION,
    }
    nowhere: dict[str, Any] = dict.fromkeys(("x", "x_low", "x_high", "direction", "grid_limited"))
    crossings: list[dict[str, Any]] = [
        {"x": at.x, "x_low": at.low, "x_high": at.high, "direction": at.direction, "grid_limited": at.grid_limited}
        for at in found.crossings
    ]
    return [{**common, **place, "crossing": number} for number, place in enumerate(crossings or [nowhere])]


def trusted(pairings: Sequence[Row[Any]]) -> list[Row[Any]]:
    """The rows of `PAIRINGS` to judge a comparison by: those measured without a flag; all measured ones if there are no others."""
    measured = [row for row in pairings if row.failure is None]
    return [row for row in measured if not (row.flags or row.baseline_flags or row.arm_flags)] or measured


def pooled(pairings: Sequence[Row[Any]]) -> list[Row[Any]]:
    """The timed rows of `PAIRINGS`, oldest first, whose two arms ran with the same implementations as in the newest of them.

    Those without a flag if they hold the pairs asked for, else all.
    """
    used = _of_one_route(trusted(pairings))
    return _of_one_route([row for row in pairings if row.failure is None]) if _short(used) else used


def _of_one_route(rows: list[Row[Any]]) -> list[Row[Any]]:
    return [row for row in rows if (row.baseline_route, row.route) == (rows[-1].baseline_route, rows[-1].route)]


def _short(measured: Sequence[Row[Any]]) -> bool:
    """Whether some round has fewer pairs than the newest attempt was asked for."""
    pairs: dict[int, int] = {}
    for row in measured:
        pairs[row.round] = pairs.get(row.round, 0) + row.pairs
    return any(reached < json.loads(measured[-1].protocol)["pairs_min"] for reached in pairs.values())


def stamp(last: Row[Any], used: Sequence[Row[Any]]) -> dict[str, Any]:
    """Which question a derived row answers, when the `last` attempt ended, and whether any of those `used` was measured here."""
    return {
        "question_id": last.question_id,
        "measured_at": timestamp(last.ended_at),
        "source": "measured" if any(row.source == "measured" for row in used) else last.source,
    }


def union(flags: Iterable[str | None]) -> str:
    """All reasons in some lists joined by commas, as such a list."""
    return ",".join(sorted({flag for joined in flags if joined for flag in joined.split(",")}))
