"""History: every answer and attempt of one question, and the measurements of each question of a
sweep in order of time, one for a day, revision and environment.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from math import inf, log
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, Select, func, select

from store.derive.effects import compare_groups, stored_pairs, union_flags
from store.derive.payloads import payload_of
from store.derive.sample_store import (
    SampleStore,
    StoredPair,
    pool_attempts,
    quarantined,
)
from store.errors import StoreError
from store.read.evidence.side_by_side import DAY_S
from store.read.queries import find_sweep
from store.rows.location import display_name
from store.rows.row_mapping import timestamp
from store.rows.transactions import batches, fetch_values, reading
from store.schema.tables import (
    ATTEMPT,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    IS_SPEEDUP,
    PAIR,
    SWEEP_COMPARISON,
    named,
)
from sweeps.model.job import Comparison
from sweeps.model.metrics import METRICS
from sweeps.stats.pooling import SpeedUp
from sweeps.stats.trends import Trend, TrendPoint

MAX_ATTEMPTS = 100
"""Attempts that are drawn, the newest ones."""


class HistoryPoint(NamedTuple):
    """A speed-up at some time."""

    what: str
    """`answer`: all attempts of a version at a place pooled, at the time of the newest; `attempt`:
    one of them alone."""
    at: str
    """ISO 8601, UTC."""
    comparison_id: str
    environment: str
    host: str
    device_name: str
    attempt: int | None
    speedup: float
    low: float | None
    """Ends of the interval; `None` where there are too few pairs."""
    high: float | None
    pairs: int
    flags: str


class QuestionHistory(NamedTuple):
    """All that a store holds of one question by one metric."""

    question_id: str
    metric: str
    metrics: tuple[str, ...]
    """All metrics by which it was answered."""
    points: list[HistoryPoint]
    """Oldest first."""
    versions: Mapping[str, str]
    """By comparison id what distinguishes it: the versions of its methods and its contents."""
    left_out: int
    """Older attempts beyond `MAX_ATTEMPTS`."""


def question_history(
    engine: Engine, question_id: str, metric: str | None = None
) -> QuestionHistory:
    """Every answer and attempt of the question by a metric that is compared as a ratio (default:
    the first there is).

    Raises `StoreError` for a question or metric without a measured answer.
    """
    # in the order of `HistoryPoint`
    columns = (
        "metric measured_at comparison_id environment host effect effect_low effect_high n flags"
    )
    answered = (
        select(*named(EFFECT, columns), ENVIRONMENT.c.device_name)
        .select_from(EFFECT.join(ENVIRONMENT))
        .where(EFFECT.c.question_id == question_id, IS_SPEEDUP)
        .order_by(EFFECT.c.measured_at, EFFECT.c.comparison_id)
    )
    with reading(engine) as connection:
        rows = connection.execute(answered).all()
        metrics = tuple(name for name in METRICS if name in {row.metric for row in rows})
        shown = metric or (metrics[0] if metrics else "")
        if shown not in metrics:
            by = f" by {metric}; it has answers by {', '.join(metrics)}" if metrics else ""
            raise StoreError(
                f"{display_name(engine.url)} contains no measured answer to question"
                f" {question_id}{by}"
            )
        own = [row for row in rows if row.metric == shown]
        points = [
            HistoryPoint("answer", *row[1:5], row.device_name, None, *row[5:10]) for row in own
        ]
        devices = {row.environment: row.device_name for row in own}
        ids = sorted({row.comparison_id for row in own})
        attempts = [
            each
            for environment in devices
            for each in _attempts(connection, ids, environment, devices[environment], shown)
        ]
        attempts.sort(key=lambda point: point.at)
        kept = attempts[-MAX_ATTEMPTS:]
        points = sorted([*points, *kept], key=lambda point: (point.at, point.what))
        stored = select(*named(COMPARISON, "comparison_id payload content_hashes"))
        versions = {
            row.comparison_id: _version(row)
            for row in connection.execute(stored.where(COMPARISON.c.comparison_id.in_(ids)))
        }
        return QuestionHistory(
            question_id, shown, metrics, points, versions, len(attempts) - len(kept)
        )


def _attempts(
    connection: Connection, ids: list[str], environment: str, device: str, metric: str
) -> Iterator[HistoryPoint]:
    kinds = select(COMPARISON.c.kind).where(COMPARISON.c.comparison_id.in_(ids)).distinct()
    for kind in connection.execute(kinds).scalars().all():
        payload = payload_of(kind)
        if not isinstance(payload, SampleStore):
            continue
        pairs = stored_pairs(connection, ids, environment, kind)
        measured = sorted(
            (row for row in pairs if row.failure is None), key=lambda row: row.ended_at
        )
        for row in measured[-MAX_ATTEMPTS:]:
            load = cache(partial(payload.load, connection))
            timed = {spec.name: attempts for spec, attempts in payload.timed([row], load)}
            if metric not in timed:
                continue
            found = pool_attempts(timed[metric]).speedup
            known = found.high < inf
            interval = (found.low, found.high) if known else (None, None)
            place = (row.comparison_id, environment, row.host, device, row.attempt)
            figures = (found.value, *interval, row.size, union_flags([row]))
            yield HistoryPoint("attempt", timestamp(row.ended_at), *place, *figures)


def _version(row: Row[Any]) -> str:
    payload = json.loads(row.payload)
    steps = [step for side in ("baseline", "arm") for step in payload[side]["stack"]]
    methods = (
        ", ".join(
            dict.fromkeys(f"{step['method']} version {step.get('version', 1)}" for step in steps)
        )
        or "no method"
    )
    hashes = json.loads(row.content_hashes)
    contents = "".join(f"; {name} {str(digest)[:8]}" for name, digest in sorted(hashes.items()))
    return f"{methods}{contents}"


def sweep_trends(
    engine: Engine,
    name: str,
    metric: str | None = None,
    questions: Collection[str] | None = None,
) -> list[Trend]:
    """The trend of each comparison that the newest revision of a sweep asks for, by a metric of
    which standard errors are known (default: the first there is); on each host and device apart.

    `questions`: those to read, each of which counts as one of all trends of the sweep. Raises
    `StoreError` for an unknown sweep, and for a metric without a measurement.
    """
    asked = EFFECT.c.question_id.in_(_questions(engine, name)), EFFECT.c.effect_se.is_not(None)
    wanted = () if questions is None else (EFFECT.c.question_id.in_(questions),)
    answers = (
        select(*named(EFFECT, "comparison_id question_id environment metric"), COMPARISON.c.kind)
        .add_columns(*named(COMPARISON, "payload content_hashes"))
        .add_columns(*named(ENVIRONMENT, "device_name facts"))
        .select_from(EFFECT.join(COMPARISON).join(ENVIRONMENT))
        .where(*asked, *wanted)
        .distinct()
    )
    series = select(*named(EFFECT, "question_id host"), ENVIRONMENT.c.device_name).distinct()
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
        all_of = series.join(ENVIRONMENT).where(*asked, EFFECT.c.metric == shown).subquery()
        number = connection.scalar(select(func.count()).select_from(all_of)) or 1
    return [
        Trend(*key, shown, sorted(each, key=lambda one: one.at), number)
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
    return round((fetch_values(engine, span)[0] or 0) / DAY_S)


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
    by_id = {row.comparison_id: row for row in rows}
    for ids in batches(by_id, 500):
        pairs = stored_pairs(connection, ids, environment, kind)
        for place, used, spec, figures in compare_groups(connection, pairs, kind, _measurement):
            if spec.name != metric or quarantined(used):
                continue
            if 0 < (figures["effect_se"] or inf) < inf:
                comparison, host, _, commit = place
                row = by_id[comparison]
                speed = SpeedUp(
                    log(figures["effect"]),
                    *(figures[each] for each in ("effect_se", "effect_freedom", "n")),
                )
                at, versions = timestamp(used[-1].ended_at), {"commit": commit} | _versions(row)
                yield row, host, TrendPoint(at, speed, figures["flags"], versions)


def _measurement(pair: StoredPair) -> tuple[str, ...]:
    """What one day, revision and host have of a comparison."""
    day, commit = timestamp(pair.ended_at)[:10], pair.project_commit or "unknown"
    return pair.comparison_id, pair.host, day, commit


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
