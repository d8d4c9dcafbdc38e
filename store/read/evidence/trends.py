"""The measurements of each question of a sweep in order of time: what one day, revision and
environment have of it, pooled.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf, log
from typing import Any

from sqlalchemy import Connection, Engine, Row, Select, func, select

from store.derive.effects import stored_pairs
from store.derive.payloads import payload_of
from store.derive.sample_store import StoredPair, quarantined
from store.errors import StoreError
from store.read.evidence.compare_queries import DAY_S
from store.read.queries import find_sweep
from store.rows.row_mapping import timestamp
from store.rows.transactions import batches, reading
from store.schema.tables import (
    ATTEMPT,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    PAIR,
    SWEEP_COMPARISON,
    named,
)
from sweeps.analysis.trends import Trend, TrendPoint
from sweeps.model.job import Comparison
from sweeps.stats.pooling import SpeedUp


def sweep_trends(engine: Engine, name: str, metric: str | None = None) -> list[Trend]:
    """The trend of each comparison that the newest revision of a sweep asks for, by a metric of
    which standard errors are known (default: the first there is); on each host and device apart.

    Raises `StoreError` for an unknown sweep, and for a metric without a measurement.
    """
    answers = (
        select(*named(EFFECT, "comparison_id question_id environment metric"), COMPARISON.c.kind)
        .add_columns(*named(COMPARISON, "payload content_hashes"))
        .add_columns(*named(ENVIRONMENT, "device_name facts"))
        .select_from(EFFECT.join(COMPARISON).join(ENVIRONMENT))
        .where(EFFECT.c.question_id.in_(_questions(engine, name)), EFFECT.c.effect_se.is_not(None))
        .distinct()
    )
    with reading(engine) as connection:
        rows = connection.execute(answers).all()
        metrics = list(dict.fromkeys(row.metric for row in rows))
        shown = metric or (metrics[0] if metrics else "speed-up")
        if shown not in metrics:
            known = f"; choose one of {', '.join(metrics)}" if metrics else ""
            raise StoreError(f"sweep '{name}' has no measurement of {shown}{known}")
        found: dict[tuple[str, str, str], list[TrendPoint]] = {}
        own = sorted(
            (row for row in rows if row.metric == shown),
            key=lambda row: (row.environment, row.kind),
        )
        for (environment, kind), group in groupby(own, lambda row: (row.environment, row.kind)):
            for row, host, each in _measurements(connection, list(group), environment, kind, shown):
                found.setdefault((row.question_id, host, row.device_name), []).append(each)
    return [
        Trend(*key, shown, sorted(each, key=lambda one: one.at), len(found))
        for key, each in sorted(found.items())
    ]


def measured_days(engine: Engine, name: str) -> int:
    """Days between the oldest and the newest attempt at the questions of a sweep, rounded."""
    ended = ATTEMPT.c.ended_at
    span = (
        select(func.max(ended) - func.min(ended))
        .select_from(PAIR.join(ATTEMPT).join(COMPARISON))
        .where(COMPARISON.c.question_id.in_(_questions(engine, name)))
    )
    with reading(engine) as connection:
        return round((connection.execute(span).scalar() or 0) / DAY_S)


def _questions(engine: Engine, name: str) -> Select[Any]:
    """Those of the newest revision of a sweep. Raises `StoreError` for an unknown one."""
    return (
        select(COMPARISON.c.question_id)
        .join(SWEEP_COMPARISON, SWEEP_COMPARISON.c.comparison_id == COMPARISON.c.comparison_id)
        .where(SWEEP_COMPARISON.c.sweep == find_sweep(engine, name)["id"])
    )


def _measurements(
    connection: Connection, rows: Sequence[Row[Any]], environment: str, kind: str, metric: str
) -> Iterator[tuple[Row[Any], str, TrendPoint]]:
    """Of comparisons of one kind in one environment, each measurement with its row and host."""
    payload, by_id = payload_of(kind), {row.comparison_id: row for row in rows}
    for ids in batches(by_id, 500):
        pairs = stored_pairs(connection, ids, environment, kind)
        commits = _commits(connection, {pair.attempt for pair in pairs})

        def place(pair: StoredPair, commits: dict[int, str] = commits) -> tuple[str, ...]:
            day = timestamp(pair.ended_at)[:10]
            return pair.comparison_id, pair.host, day, commits[pair.attempt]

        for (comparison, host, _, commit), group in groupby(sorted(pairs, key=place), place):
            used = payload.used(list(group))
            if not used or quarantined(used):
                continue
            compared = payload.compare(used, lambda attempt: payload.load(connection, attempt))
            for spec, figures in compared:
                if spec.name == metric and 0 < (figures["effect_se"] or inf) < inf:
                    row = by_id[comparison]
                    versions = {"commit": commit} | _versions(row)
                    speed = SpeedUp(
                        log(figures["effect"]),
                        *(figures[each] for each in ("effect_se", "effect_freedom", "n")),
                    )
                    at = timestamp(used[-1].ended_at)
                    yield row, host, TrendPoint(at, speed, figures["flags"], versions)


def _commits(connection: Connection, attempts: set[int]) -> dict[int, str]:
    columns = select(*named(ATTEMPT, "id project_commit"))
    return {
        row.id: row.project_commit or "unknown"
        for ids in batches(attempts)
        for row in connection.execute(columns.where(ATTEMPT.c.id.in_(ids)))
    }


def _versions(row: Row[Any]) -> dict[str, str]:
    """Facts of the environment, versions of the methods and hashes of the contents."""
    asked = Comparison.model_validate_json(row.payload)
    versions = (*asked.baseline.versions, *asked.arm.versions)
    contents = json.loads(row.content_hashes)
    return {
        **{name: str(value) for name, value in json.loads(row.facts).items()},
        **{name: f"version {number}" for name, number in versions},
        **{name: str(digest)[:8] for name, digest in contents.items()},
    }
