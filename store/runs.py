"""How runs go: unfinished sweeps by device with the time left, failures by class, and the health of nodes and devices."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Engine, Row, distinct, exists, func, select

from store.queries import find_sweep
from store.tables.lightweight import (
    ATTEMPT,
    CALIBRATION,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    FAILURE,
    JOB,
    SWEEP,
    SWEEP_COMPARISON,
    SWEEP_JOB,
    newest_revision,
)
from store.transactions import reading
from sweeps.flags import FLAGS, split_flags

EXAMPLES_OF_A_CLASS = 5
"""Comparisons that a class of failures names."""


class RunProgress(NamedTuple):
    """The jobs of a sweep on a class of device."""

    sweep: str
    device: str
    waiting: int
    running: int
    ended: int
    """Done, failed, or cancelled."""
    left_s: float | None
    """Seconds until the rest is measured if its jobs take as long as those before: `None` before the first has ended."""
    silent_s: float | None
    """Since a dispatcher last renewed its lease; `None` where none holds one."""


class FailureClass(NamedTuple):
    """Failures of one reason and message in a sweep."""

    reason: str
    message: str
    comparisons: int
    kind: str
    """Of the job that failed last."""
    examples: tuple[str, ...]
    """Some of the comparisons of the newest failure, by id."""
    attempt: int
    """That of the newest."""
    at: float
    """When that ended, in seconds since the epoch."""
    environment: str
    host: str
    detail: str
    """Its traceback or log tail; empty where there is none."""


class Health(NamedTuple):
    """An environment on a host."""

    environment: str
    host: str
    device: str
    device_name: str
    seen_at: float
    """When its newest attempt ended, in seconds since the epoch."""
    attempts: int
    flags: Mapping[str, int]
    """How many attempts have each flag, most first."""
    quarantined: int
    """Attempts that count only where there is no other."""
    calibrated_at: float | None
    """Of the environment's newest calibration, in seconds since the epoch."""
    gflops: float | None
    """The largest measured peak, in 1e9 operations per second."""
    gb_per_s: float | None


def run_progress(engine: Engine, now: float | None = None) -> list[RunProgress]:
    """The sweeps (newest revisions) that have jobs waiting or running, by class of device, newest sweep first."""
    now = time.time() if now is None else now
    of_sweep = SWEEP_JOB.join(SWEEP, SWEEP.c.id == SWEEP_JOB.c.sweep).join(JOB, JOB.c.id == SWEEP_JOB.c.job)
    key = (SWEEP.c.id, SWEEP.c.name, JOB.c.device)
    open_jobs = select(SWEEP_JOB.c.sweep).join(JOB, JOB.c.id == SWEEP_JOB.c.job).where(JOB.c.state.in_(("waiting", "running")))
    unfinished = (newest_revision(SWEEP), SWEEP.c.id.in_(open_jobs))
    states = (
        select(*key, JOB.c.kind, JOB.c.state, func.count().label("jobs"), func.max(JOB.c.renewed_at).label("renewed_at"))
        .select_from(of_sweep)
        .where(*unfinished)
        .group_by(*key, JOB.c.kind, JOB.c.state)
        .order_by(SWEEP.c.submitted_at.desc(), SWEEP.c.id.desc(), JOB.c.device)
    )
    took = (
        select(*key, JOB.c.kind, func.avg(ATTEMPT.c.ended_at - ATTEMPT.c.started_at).label("seconds"))
        .select_from(of_sweep.join(ATTEMPT, ATTEMPT.c.job == JOB.c.id))
        .where(*unfinished, JOB.c.state == "done")
        .group_by(*key, JOB.c.kind)
    )
    with reading(engine) as connection:
        rows = connection.execute(states).all()
        means = {(row.id, row.device, row.kind): row.seconds for row in connection.execute(took)}
    grouped: dict[tuple[int, str, str], list[Row[Any]]] = {}
    for row in rows:
        grouped.setdefault((row.id, row.name, row.device), []).append(row)
    return [_progress(key, jobs, means, now) for key, jobs in grouped.items()]


def _progress(
    key: tuple[int, str, str], rows: Iterable[Row[Any]], means: Mapping[tuple[int, str, str], float], now: float
) -> RunProgress:
    sweep, name, device = key
    counts = {"waiting": 0, "running": 0}
    ended, left, renewed = 0, 0.0, []
    known = [seconds for (of, on, _), seconds in means.items() if (of, on) == (sweep, device)]
    for row in rows:
        if row.state not in counts:
            ended += row.jobs if row.state != "split" else 0
            continue
        counts[row.state] += row.jobs
        if known:
            left += row.jobs * means.get((sweep, device, row.kind), max(known))
        if row.state == "running" and row.renewed_at:
            renewed.append(row.renewed_at)
    rest = left / max(1, counts["running"]) if known and sum(counts.values()) else None
    silent = max(0.0, now - max(renewed)) if renewed else None
    return RunProgress(name, device, counts["waiting"], counts["running"], ended, rest, silent)


def failure_classes(engine: Engine, sweep: str, most: int = 50) -> list[FailureClass]:
    """The failures of comparisons of the newest revision of a sweep that an environment has nothing else of, most frequent first.

    At most so many classes. Raises `StoreError` if there is no such sweep.
    """
    row = find_sweep(engine, sweep)["id"]
    requested = (SWEEP_COMPARISON.c.sweep == row, SWEEP_COMPARISON.c.comparison_id == EFFECT.c.comparison_id)
    # looked up: failures are few beside the comparisons of a large sweep
    of_sweep = exists(select(SWEEP_COMPARISON.c.sweep).where(*requested).correlate(EFFECT))
    number = func.count(distinct(EFFECT.c.comparison_id)).label("comparisons")
    classes = (
        select(FAILURE.c.reason, FAILURE.c.message, number, func.max(FAILURE.c.id).label("newest"))
        .select_from(FAILURE.join(EFFECT, EFFECT.c.failure == FAILURE.c.id))
        .where(of_sweep)
        .group_by(FAILURE.c.reason, FAILURE.c.message)
        .order_by(number.desc(), FAILURE.c.reason, FAILURE.c.message)
        .limit(most)
    )
    listed = []
    with reading(engine) as connection:
        for found in connection.execute(classes).all():
            of = select(FAILURE.c.detail, ATTEMPT.c.id, ATTEMPT.c.ended_at, ATTEMPT.c.environment, ATTEMPT.c.host).join_from(
                FAILURE, ATTEMPT, ATTEMPT.c.id == FAILURE.c.attempt
            )
            newest = connection.execute(of.where(FAILURE.c.id == found.newest)).one()
            named = select(COMPARISON.c.comparison_id, COMPARISON.c.kind).join_from(
                EFFECT, COMPARISON, COMPARISON.c.comparison_id == EFFECT.c.comparison_id
            )
            failed = named.where(EFFECT.c.failure == found.newest).distinct().order_by(COMPARISON.c.comparison_id)
            rows = connection.execute(failed.limit(EXAMPLES_OF_A_CLASS)).all()
            at = (newest.id, newest.ended_at, newest.environment, newest.host, newest.detail)
            listed.append(
                FailureClass(
                    found.reason,
                    found.message,
                    found.comparisons,
                    rows[0].kind,
                    tuple(str(each.comparison_id) for each in rows),
                    *at,
                )
            )
    return listed


def health(engine: Engine) -> list[Health]:
    """Each environment on each host where anything was measured, the one seen last first."""
    of = (ATTEMPT.c.environment, ATTEMPT.c.host)
    seen = select(*of, ATTEMPT.c.flags, func.count().label("attempts"), func.max(ATTEMPT.c.ended_at).label("seen_at"))
    calibrated = select(CALIBRATION.c.environment, func.max(CALIBRATION.c.created_at).label("at")).group_by(
        CALIBRATION.c.environment
    )
    with reading(engine) as connection:
        devices = {row.environment_id: row for row in connection.execute(select(ENVIRONMENT))}
        ages = {row.environment: row.at for row in connection.execute(calibrated)}
        rows = connection.execute(seen.group_by(*of, ATTEMPT.c.flags)).all()
    grouped: dict[tuple[str, str], list[Row[Any]]] = {}
    for row in rows:
        grouped.setdefault((row.environment, row.host), []).append(row)
    found = []
    for (environment, host), parts in grouped.items():
        device = devices[environment]
        peaks = _peaks(engine, environment, host)
        counts: dict[str, int] = {}
        for part in parts:
            for flag in split_flags(part.flags):
                counts[flag] = counts.get(flag, 0) + part.attempts
        quarantined = sum(
            part.attempts for part in parts if any(FLAGS[f].quarantine for f in split_flags(part.flags) if f in FLAGS)
        )
        figures = (max(part.seen_at for part in parts), sum(part.attempts for part in parts))
        flags = dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
        found.append(
            Health(
                environment, host, device.device, device.device_name, *figures, flags, quarantined, ages.get(environment), *peaks
            )
        )
    return sorted(found, key=lambda each: -each.seen_at)


def _peaks(engine: Engine, environment: str, host: str) -> tuple[float | None, float | None]:
    from store.profiles import newest_peaks  # imports the models

    peaks = [peaks for peaks, _ in newest_peaks(engine, environment, host).values()]
    return max((one.gflops for one in peaks), default=None), max((one.gb_per_s for one in peaks), default=None)
