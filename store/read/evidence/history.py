"""History of one question: every answer and every attempt, by when, where and with which versions
it was measured.
"""

import json
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, select

from store.derive.effects import stored_pairs, union_flags
from store.derive.payloads import payload_of
from store.derive.sample_store import SampleStore, TimedAttempt, pool_attempts
from store.errors import StoreError
from store.rows.location import display_name
from store.rows.row_mapping import timestamp
from store.rows.transactions import reading
from store.schema.tables import COMPARISON, EFFECT, ENVIRONMENT, named
from store.views.columns import IS_SPEEDUP
from sweeps.model.metrics import METRICS

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
    columns = (
        "metric measured_at comparison_id environment host effect effect_low effect_high n flags"
    )
    answered = (
        select(*named(EFFECT, columns), ENVIRONMENT.c.device_name)
        .join(ENVIRONMENT, ENVIRONMENT.c.environment_id == EFFECT.c.environment)
        .where(
            EFFECT.c.question_id == question_id,
            IS_SPEEDUP,
        )
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
            HistoryPoint(
                *(
                    "answer",
                    row.measured_at,
                    row.comparison_id,
                    row.environment,
                    row.host,
                    row.device_name,
                    None,
                ),
                *(row.effect, row.effect_low, row.effect_high, row.n, row.flags),
            )
            for row in own
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
    spec = METRICS[metric]
    for kind in connection.execute(kinds).scalars().all():
        payload = payload_of(kind)
        if not isinstance(payload, SampleStore):
            continue
        pairs = stored_pairs(connection, ids, environment, kind)
        for row in sorted(
            (row for row in pairs if row.failure is None), key=lambda row: row.ended_at
        )[-MAX_ATTEMPTS:]:
            data = payload.load(connection, row.attempt)
            if spec.series and metric not in data.series:
                continue
            found = pool_attempts(
                [TimedAttempt(row, data, metric if spec.series else None)]
            ).speedup
            known = found.high < inf
            yield HistoryPoint(
                *(
                    "attempt",
                    timestamp(row.ended_at),
                    row.comparison_id,
                    environment,
                    row.host,
                    device,
                    row.attempt,
                ),
                *(
                    found.value,
                    found.low if known else None,
                    found.high if known else None,
                    row.size,
                    union_flags([row]),
                ),
            )


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
