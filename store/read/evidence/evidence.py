"""Evidence of one comparison, found by words or the beginning of its id: its answers, every attempt
with its raw times and readings, how they are pooled, and where from.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, Select, and_, or_, select

from store.derive.effects import stored_pairs
from store.derive.payloads import payload_of
from store.derive.sample_store import SampleStore, TimedAttempt, pool_attempts, stored_verdict
from store.errors import StoreError
from store.rows.location import display_name
from store.rows.placement import Place
from store.rows.samples import stored_samples, unpack_order
from store.rows.transactions import reading
from store.schema.tables import (
    ATTEMPT,
    CALIBRATION,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    FAILURE,
    IS_SPEEDUP,
    SWEEP,
    SWEEP_COMPARISON,
    named,
)
from sweeps.model.job import Comparison, Protocol
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS, MetricSpec, rates
from sweeps.model.outcome import Failure
from sweeps.stats.pooling import Verdict
from sweeps.stats.visits import Pooling

NEAREST = 8
"""Ids that are named where one is unknown."""
_METRICS = tuple(METRICS)
_SIZES = ("image_size", "prompt_tokens")
MAX_FOUND = 40
"""Answers that a search lists."""
MAX_SEARCHED = 400
"""Comparisons among which it takes the newest answers, so that a large store is not sorted."""


def similar_comparisons(engine: Engine, words: str) -> list[dict[str, Any]]:
    """Up to `MAX_FOUND` answers, newest first, whose ids begin with `words` or whose model, method,
    parameters or size hold each.

    A parameter may be written as labels have it, `keep_rate=0.5`. Without words any answers.

    Mappings with the columns of `effect_row`, by the first metric of the kind that there is, with
    `device_name`, and with `kind`, `model`, `method`, `params`, `baseline`, `image_size`,
    `image_shape` and `prompt_tokens`.
    """
    each = []
    for word in words.split():
        columns = named(COMPARISON, "model method params kind dtype runtime image_shape")
        begins = [
            COMPARISON.c[name].startswith(word, autoescape=True)
            for name in ("comparison_id", "question_id")
        ]
        holds = [column.icontains(word, autoescape=True) for column in columns]
        name, _, value = word.partition("=")
        stated = (
            [COMPARISON.c.params.icontains(f'"{name}":{value}', autoescape=True)] if value else []
        )
        sizes = (
            [COMPARISON.c[column] == int(word) for column in _SIZES]
            if word.isascii() and word.isdigit() and len(word) < 8
            else []
        )
        each.append(or_(*begins, *holds, *stated, *sizes))
    matching = select(COMPARISON.c.comparison_id).where(*each).limit(MAX_SEARCHED)
    with reading(engine) as connection:
        ids = connection.execute(matching).scalars().all()
        rows = _listed().where(COMPARISON.c.comparison_id.in_(ids)).limit(MAX_SEARCHED)
        found = [dict(row._mapping) for row in connection.execute(rows)]
    answers: dict[Any, dict[str, Any]] = {}
    for row in sorted(found, key=lambda row: _METRICS.index(row["metric"])):
        answers.setdefault((row["comparison_id"], row["environment"], row["host"]), row)
    newest = sorted(answers.values(), key=lambda row: str(row["measured_at"]), reverse=True)
    return newest[:MAX_FOUND]


def _listed() -> Select[Any]:
    of_comparison = named(
        COMPARISON,
        "kind model method params baseline image_size image_shape prompt_tokens axis_values",
    )
    rows = select(EFFECT, *of_comparison, ENVIRONMENT.c.device_name)
    return rows.select_from(EFFECT.join(COMPARISON).join(ENVIRONMENT)).order_by(
        EFFECT.c.measured_at.desc(), EFFECT.c.comparison_id
    )


def unknown_comparison(connection: Connection, where: str, comparison_id: str) -> str:
    """What is wrong with an id that the store called `where` lacks, with those that begin like
    it.
    """
    ids = COMPARISON.c.comparison_id
    near: list[str] = []
    for length in range(len(comparison_id) - 1, 1, -1):
        begins = ids.startswith(comparison_id[:length], autoescape=True)
        near = list(
            connection.execute(select(ids).where(begins).order_by(ids).limit(NEAREST)).scalars()
        )
        if near:
            break
    hint = f"; nearest: {', '.join(near)}" if near else ""
    same = select(ids).where(COMPARISON.c.question_id == comparison_id).order_by(ids).limit(NEAREST)
    if answering := list(connection.execute(same).scalars()):
        hint = f"; it is a question id, answered by comparison {', '.join(answering)}"
    return f"{where} contains no comparison {comparison_id}{hint}"


class StoredAttempt(NamedTuple):
    """What one execution of a job has of a comparison."""

    attempt: int
    job_id: str
    n: int
    """1 for the first execution of the job."""
    round: int
    process: str | None
    commit: str | None
    source: str
    started_at: float
    """Seconds since the epoch, as `ended_at`."""
    ended_at: float
    protocol: Protocol
    flags: str
    """Of the job, of the baseline and of the arm, joined by commas each."""
    baseline_flags: str
    arm_flags: str
    notes: tuple[str, ...]
    readings: Mapping[str, float]
    """By the names of `sweeps.model.metrics.SYSTEM_METRICS`."""
    series: Mapping[str, Sequence[float | None]]
    """Readings between rounds by the names of `sweeps.model.metrics.RATES`, columns of equal
    length; `rounds` done then."""
    arms: Mapping[str, Mapping[str, Any]]
    """`baseline` and `arm`: fields of `sweeps.model.outcome.ArmOutcome`; empty for one that did not
    run."""
    failure: Failure | None
    pairs: int | None
    used: bool
    """Whether the answer rests on it."""
    stopped: str | None
    """Why timing ended."""
    order: tuple[tuple[int, ...], ...]
    """For each round the columns in the order they ran; empty where nothing was timed."""


class TimedPairs(NamedTuple):
    """The speed-up by one metric, worked out from the attempts that it rests on."""

    metric: MetricSpec
    attempts: tuple[TimedAttempt, ...]
    pooling: Pooling
    verdict: Verdict


class RequestedBy(NamedTuple):
    """A revision of a sweep that requests the comparison."""

    name: str
    revision: int
    text: str


class NullEffect(NamedTuple):
    """A stored speed-up of equal arms at the same place."""

    comparison_id: str
    metric: str
    speedup: float
    low: float | None
    high: float | None
    verdict: str


class PointEvidence(NamedTuple):
    """All that the store holds of one comparison at one place."""

    comparison_id: str
    question_id: str
    comparison: Comparison
    content_hashes: Mapping[str, str]
    place: Place
    device_name: str
    facts: Mapping[str, str]
    """Of the environment."""
    effects: tuple[Mapping[str, Any], ...]
    """Rows of `effect_row` at this place, one for each metric."""
    elsewhere: tuple[Mapping[str, Any], ...]
    """The other places that answer it, newest first: `environment`, `host`, `device_name`,
    `measured_at`."""
    attempts: tuple[StoredAttempt, ...]
    """Oldest first."""
    timed: tuple[TimedPairs, ...]
    """By metric; empty where nothing was timed in rounds."""
    calibrations: Mapping[str, Mapping[str, Any]]
    """Those that the attempts carry, by their id: the columns of the table."""
    nulls: tuple[NullEffect, ...]
    """Equal arms that were measured in the same environment on the same host."""
    requested_by: tuple[RequestedBy, ...]
    """Newest revision first."""

    @property
    def failed(self) -> bool:
        return bool(self.effects) and all(row["failure"] is not None for row in self.effects)


def point_evidence(
    engine: Engine, comparison_id: str, environment: str | None = None, host: str | None = None
) -> PointEvidence:
    """What is stored of a comparison at the newest place that answers it, or in the given
    environment and on the given host.

    An answer that does not depend on the machine has the host ``""``. Raises `StoreError` that
    names the nearest ids where none is stored, or where it was not measured at that place.
    """
    with reading(engine) as connection:
        stored = connection.execute(
            select(COMPARISON).where(COMPARISON.c.comparison_id == comparison_id)
        ).one_or_none()
        if stored is None:
            raise StoreError(
                unknown_comparison(connection, display_name(engine.url), comparison_id)
            )
        rows = [dict(row._mapping) for row in connection.execute(_answers(comparison_id))]
        here = [
            row
            for row in rows
            if environment in (None, row["environment"]) and host in (None, row["host"])
        ]
        if not here:
            raise StoreError(_not_here(rows, comparison_id, environment, host))
        place = Place(here[0]["environment"], here[0]["host"])
        effects = [row for row in rows if (row["environment"], row["host"]) == place]
        kind = KINDS[stored.kind]
        payload = payload_of(kind.name)
        pairs = [
            pair
            for pair in stored_pairs(connection, [comparison_id], place.environment, kind.name)
            if not place.host or pair.host == place.host
        ]
        used = payload.used(pairs)
        timed = _timed(connection, payload, used) if isinstance(payload, SampleStore) else ()
        carried = sorted({pair.calibration_id for pair in used if pair.calibration_id})
        calibrations = connection.execute(
            select(CALIBRATION).where(CALIBRATION.c.calibration_id.in_(carried))
        ).all()
        return PointEvidence(
            comparison_id,
            stored.question_id,
            Comparison.model_validate_json(stored.payload),
            json.loads(stored.content_hashes),
            place,
            effects[0]["device_name"],
            json.loads(effects[0]["facts"]),
            tuple(effects),
            _others(rows, place),
            tuple(_attempt(connection, pair, pair in used) for pair in pairs),
            timed,
            {row.calibration_id: dict(row._mapping) for row in calibrations},
            _nulls(connection, place, comparison_id),
            tuple(RequestedBy(*row) for row in connection.execute(_requested(comparison_id))),
        )


def _answers(comparison_id: str) -> Select[Any]:
    source = EFFECT.join(ENVIRONMENT)
    rows = select(EFFECT, ENVIRONMENT.c.device_name, ENVIRONMENT.c.facts).select_from(source)
    order = (EFFECT.c.measured_at.desc(), EFFECT.c.environment, EFFECT.c.host, EFFECT.c.metric)
    return rows.where(EFFECT.c.comparison_id == comparison_id).order_by(*order)


def _others(rows: Sequence[Mapping[str, Any]], place: Place) -> tuple[Mapping[str, Any], ...]:
    kept = ("environment", "host", "device_name", "measured_at")
    found = {(row["environment"], row["host"]): row for row in reversed(rows)}
    found.pop(place, None)
    others = sorted(found.values(), key=lambda row: str(row["measured_at"]), reverse=True)
    return tuple({name: row[name] for name in kept} for row in others)


def _requested(comparison_id: str) -> Select[Any]:
    linked = SWEEP.join(SWEEP_COMPARISON)
    rows = select(*named(SWEEP, "name revision text")).select_from(linked)
    return rows.where(SWEEP_COMPARISON.c.comparison_id == comparison_id).order_by(
        SWEEP.c.submitted_at.desc(), SWEEP.c.id.desc()
    )


def _timed(
    connection: Connection, payload: SampleStore, used: Sequence[Any]
) -> tuple[TimedPairs, ...]:
    found = []
    for spec, timed in payload.timed(used, cache(partial(payload.load, connection))):
        if timed:
            pooling = pool_attempts(timed)
            verdict = stored_verdict(used, pooling.speedup)
            found.append(TimedPairs(spec, tuple(timed), pooling, verdict))
    return tuple(found)


def _attempt(connection: Connection, pair: Row[Any], used: bool) -> StoredAttempt:
    row = connection.execute(select(ATTEMPT).where(ATTEMPT.c.id == pair.attempt)).one()
    outcome = json.loads(row.payload)
    failure = None
    if pair.failure is not None:
        found = connection.execute(select(FAILURE).where(FAILURE.c.id == pair.failure)).one()
        failure = Failure(
            arm=found.arm, reason=found.reason, message=found.message, detail=found.detail
        )
    sample, _ = stored_samples(connection, pair.attempt) or (None, ())
    ran = {each["arm"]: each for each in outcome["arms"]}
    return StoredAttempt(
        attempt=pair.attempt,
        job_id=row.job_id,
        n=row.n,
        round=row.round,
        process=row.process,
        commit=row.project_commit,
        source=row.source,
        started_at=row.started_at,
        ended_at=row.ended_at,
        protocol=Protocol.model_validate_json(row.protocol),
        flags=row.flags,
        baseline_flags=pair.baseline_flags or "",
        arm_flags=pair.arm_flags or "",
        notes=tuple(outcome["notes"]),
        readings=json.loads(row.system_metrics),
        series=rates(outcome["system_series"] or {}),
        arms={"baseline": ran.get(pair.baseline, {}), "arm": ran.get(pair.arm, {})},
        failure=failure,
        pairs=None if sample is None else sample.rounds,
        used=used,
        stopped=None if sample is None else sample.stopped,
        order=() if sample is None else unpack_order(sample),
    )


def _nulls(connection: Connection, place: Place, comparison_id: str) -> tuple[NullEffect, ...]:
    """Unmodified models against themselves under one condition: `baseline` would name a difference
    in brackets.
    """
    figures = "comparison_id metric effect effect_low effect_high verdict"
    equal = and_(
        COMPARISON.c.method == "dense",
        COMPARISON.c.baseline == "dense",
        COMPARISON.c.comparison_id != comparison_id,
    )
    here = (EFFECT.c.environment == place.environment, EFFECT.c.host == place.host)
    rows = (
        select(*named(EFFECT, figures))
        .join(COMPARISON, COMPARISON.c.comparison_id == EFFECT.c.comparison_id)
        .where(equal, *here, IS_SPEEDUP)
        .order_by(EFFECT.c.comparison_id, EFFECT.c.metric)
    )
    return tuple(NullEffect(*row) for row in connection.execute(rows))


def _not_here(
    rows: Sequence[Mapping[str, Any]], comparison_id: str, environment: str | None, host: str | None
) -> str:
    if not rows:
        return (
            f"comparison {comparison_id} is requested, but has no answer yet: no attempt at it has"
            " ended"
        )
    wanted = " ".join(
        [f"in environment {environment}"] * bool(environment) + [f"on host {host}"] * bool(host)
    )
    places = sorted({f"{row['environment']} on host {row['host'] or '(any)'}" for row in rows})
    return (
        f"comparison {comparison_id} has no answer {wanted}; it has one in environment"
        f" {', '.join(places)}"
    )
