"""How runs go: unfinished sweeps by device with the time left, failures by class, and the health of
nodes and devices.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, case, distinct, exists, func, select

from store.read.queries import find_sweep
from store.rows.owners import LEASE_S
from store.rows.profiles import best_peaks
from store.rows.transactions import database_time, fetch_values, reading, retried
from store.schema.tables import (
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
    named,
    newest_revision,
)
from sweeps.analysis.job_estimate import EndedJob, OpenJob, estimated_seconds, time_left
from sweeps.model.flags import quarantine_reasons, split_flags
from sweeps.model.job import Job
from sweeps.text.condition_text import job_label

CONDITION_OF_FAILURE = "method params model image_size image_shape prompt_tokens batch_size runtime"
EXAMPLES_OF_A_CLASS = 5
"""Comparisons that a class of failures names."""
VISITS_SHOWN = 3
"""Lines of the log of a sweep."""
ATTEMPTS_COUNTED = 100
"""The newest attempts of a sweep on a class of device, whose durations those of its other jobs are
taken from."""
ESTIMATES_KEPT = 100_000
_ESTIMATES: dict[bytes, float] = {}

_OF_SWEEP = SWEEP_JOB.join(SWEEP).join(JOB)
_OPEN = JOB.c.state.in_(("waiting", "running"))
_ENDED = ("done", "failed", "cancelled")


def last_recorded_attempt(engine: Engine) -> int:
    """The number of the attempt that was recorded last; 0 in a store without one."""
    return int(fetch_values(engine, select(func.max(ATTEMPT.c.id)))[0] or 0)


class LogLine(NamedTuple):
    """An attempt as a line of a log."""

    ended_at: float
    """Seconds since the epoch."""
    seconds: float
    job: str
    """In the words of the terminal."""
    flags: str


class RunProgress(NamedTuple):
    """The jobs of a sweep on a class of device."""

    sweep: str
    device: str
    waiting: int
    running: int
    ended: int
    """Done, failed, or cancelled."""
    left_s: float | None
    """Seconds until the rest is measured, by `sweeps.analysis.job_estimate`: `None` before the
    first has ended."""
    heard_at: float | None
    """When a dispatcher last renewed its lease, in seconds since the epoch; `None` where none holds
    one."""
    owner: str
    """The dispatcher that holds its jobs, `host:pid:start`; empty where none does."""
    began_at: float | None
    """When the jobs that run were begun, by the end of the newest attempt."""
    visits: tuple[LogLine, ...]
    """The newest ones, oldest first."""

    def silent_s(self, now: float) -> float | None:
        """Seconds since the last sign of its dispatcher, which grow while nothing is committed;
        `None` where none holds a job.
        """
        return None if self.heard_at is None else max(0.0, now - self.heard_at)

    def stale(self, now: float) -> bool:
        """Whether jobs count as running whose dispatcher gives no sign any more."""
        return self.heard_at is not None and now - self.heard_at > LEASE_S


class FailureClass(NamedTuple):
    """Failures of one reason and message in a sweep."""

    reason: str
    message: str
    comparisons: int
    kind: str
    """Of the job that failed last."""
    examples: tuple[Mapping[str, Any], ...]
    """Some of the comparisons of the newest failure: `comparison_id`, and the columns of arm and
    condition in `CONDITION_OF_FAILURE`."""
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
    """The sweeps (newest revisions) that have jobs waiting or running, by class of device, newest
    sweep first.
    """
    key = (SWEEP.c.id, SWEEP.c.name, JOB.c.device)
    unfinished = (
        newest_revision(SWEEP),
        SWEEP.c.id.in_(select(SWEEP_JOB.c.sweep).join(JOB).where(_OPEN)),
    )
    ended = func.sum(case((JOB.c.state.in_(_ENDED), 1), else_=0)).label("ended")
    groups = (
        select(*key, ended, func.sum(case((_OPEN, 1), else_=0)).label("open"))
        .select_from(_OF_SWEEP)
        .where(*unfinished)
        .group_by(*key, SWEEP.c.submitted_at)
        .order_by(SWEEP.c.submitted_at.desc(), SWEEP.c.id.desc(), JOB.c.device)
    )
    with reading(engine) as connection:
        now = database_time(connection) if now is None else now
        return [_progress(connection, row, now) for row in connection.execute(groups).all()]


@retried
def seconds_left(
    engine: Engine, sweep: int, *, starting: int = 0, now: float | None = None
) -> float | None:
    """Seconds until all jobs of a sweep's row are measured: those of the class of device that takes
    longest.

    As many more as `starting` begin at once. `None` where that is not known of each yet; see
    `sweeps.analysis.job_estimate`.
    """
    devices = (
        select(JOB.c.device).select_from(_OF_SWEEP).where(SWEEP.c.id == sweep, _OPEN).distinct()
    )
    with reading(engine) as connection:
        of = [(sweep, device) for device in connection.execute(devices).scalars().all()]
        jobs = [(_open_jobs(connection, *each), _attempts(connection, *each)) for each in of]
        now = database_time(connection) if now is None else now
    known = [_left(*each, now, starting) for each in jobs]
    found = [seconds for seconds in known if seconds is not None]
    return max(found) if found and len(found) == len(known) else None


def _progress(connection: Connection, group: Row[*tuple[Any, ...]], now: float) -> RunProgress:
    jobs = _open_jobs(connection, group.id, group.device)
    running = [job for job in jobs if job.state == "running"]
    renewed = (job for job in running if job.renewed_at)
    newest = max(renewed, key=lambda job: float(job.renewed_at), default=None)
    attempts = _attempts(connection, group.id, group.device)
    return RunProgress(
        group.name,
        group.device,
        len(jobs) - len(running),
        len(running),
        group.ended,
        _left(jobs, attempts, now),
        newest and newest.renewed_at,
        (newest and newest.owner) or "",
        _began(running, attempts) if running else None,
        tuple(
            LogLine(
                each.ended_at,
                each.ended_at - each.started_at,
                job_label(Job.model_validate_json(each.payload)),
                each.flags,
            )
            for each in reversed(attempts[:VISITS_SHOWN])
        ),
    )


def _open_jobs(connection: Connection, sweep: int, device: str) -> Sequence[Any]:
    columns = named(JOB, "kind state payload queued_at renewed_at owner")
    jobs = (
        select(*columns)
        .select_from(_OF_SWEEP)
        .where(SWEEP.c.id == sweep, JOB.c.device == device, _OPEN)
    )
    return connection.execute(jobs).all()


def _attempts(connection: Connection, sweep: int, device: str) -> Sequence[Any]:
    """The newest attempts first."""
    attempts = (
        select(*named(JOB, "kind state payload"), *named(ATTEMPT, "started_at ended_at flags"))
        .select_from(_OF_SWEEP.join(ATTEMPT))
        .where(SWEEP.c.id == sweep, JOB.c.device == device)
        .order_by(ATTEMPT.c.ended_at.desc())
        .limit(ATTEMPTS_COUNTED)
    )
    return connection.execute(attempts).all()


def _left(
    jobs: Sequence[Any], attempts: Sequence[Any], now: float, starting: int = 0
) -> float | None:
    """By `time_left`."""
    if not attempts:
        return None
    ended = [
        EndedJob(row.kind, _estimate(row.payload), row.ended_at - row.started_at)
        for row in attempts
        if row.state == "done"
    ]
    rest = [OpenJob(row.kind, _estimate(row.payload), row.state == "running") for row in jobs]
    began = _began([row for row in jobs if row.state == "running"], attempts)
    return time_left(ended, rest, since_s=max(0.0, now - began), starting=starting)


def _began(running: Sequence[Any], attempts: Sequence[Any]) -> float:
    """When the newest attempt ended, or the running jobs were queued after that."""
    ended = [float(each.ended_at) for each in attempts[:1]]
    return max([*ended, *(float(job.queued_at) for job in running)])


def _estimate(payload: str) -> float:
    """The estimate of a job in the queue; kept by the digest of its text, which takes a hundredth
    of reading it.
    """
    digest = sha1(payload.encode(), usedforsecurity=False).digest()
    if digest not in _ESTIMATES:
        if len(_ESTIMATES) >= ESTIMATES_KEPT:
            _ESTIMATES.clear()
        _ESTIMATES[digest] = estimated_seconds(Job.model_validate_json(payload))
    return _ESTIMATES[digest]


@retried
def failure_classes(engine: Engine, sweep: str, most: int = 50) -> list[FailureClass]:
    """The failures of comparisons of the newest revision of a sweep that an environment has nothing
    else of, most frequent first.

    At most so many classes. Raises `StoreError` if there is no such sweep.
    """
    row = find_sweep(engine, sweep)["id"]
    requested = (
        SWEEP_COMPARISON.c.sweep == row,
        SWEEP_COMPARISON.c.comparison_id == EFFECT.c.comparison_id,
    )
    # looked up: failures are few beside the comparisons of a large sweep
    of_sweep = exists(select(SWEEP_COMPARISON.c.sweep).where(*requested).correlate(EFFECT))
    number = func.count(distinct(EFFECT.c.comparison_id)).label("comparisons")
    classes = (
        select(FAILURE.c.reason, FAILURE.c.message, number, func.max(FAILURE.c.id).label("newest"))
        .select_from(FAILURE.join(EFFECT))
        .where(of_sweep)
        .group_by(FAILURE.c.reason, FAILURE.c.message)
        .order_by(number.desc(), FAILURE.c.reason, FAILURE.c.message)
        .limit(most)
    )
    listed = []
    with reading(engine) as connection:
        for found in connection.execute(classes).all():
            of = select(*named(ATTEMPT, "id ended_at environment host"), FAILURE.c.detail)
            newest = connection.execute(
                of.join_from(FAILURE, ATTEMPT).where(FAILURE.c.id == found.newest)
            ).one()
            columns = named(COMPARISON, f"comparison_id kind {CONDITION_OF_FAILURE}")
            failed = (
                select(*columns)
                .join_from(EFFECT, COMPARISON)
                .where(EFFECT.c.failure == found.newest)
                .distinct()
                .order_by(COMPARISON.c.comparison_id)
            )
            rows = connection.execute(failed.limit(EXAMPLES_OF_A_CLASS)).all()
            listed.append(
                FailureClass(
                    found.reason,
                    found.message,
                    found.comparisons,
                    rows[0].kind,
                    tuple(dict(each._mapping) for each in rows),
                    *tuple(newest),
                )
            )
    return listed


def health(engine: Engine) -> list[Health]:
    """Each environment on each host where anything was measured, the one seen last first."""
    of = (ATTEMPT.c.environment, ATTEMPT.c.host)
    seen = select(
        *of,
        ATTEMPT.c.flags,
        func.count().label("attempts"),
        func.max(ATTEMPT.c.ended_at).label("seen_at"),
    )
    calibrated = select(
        CALIBRATION.c.environment, func.max(CALIBRATION.c.created_at).label("at")
    ).group_by(CALIBRATION.c.environment)
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
        peaks = [peaks for peaks, _ in best_peaks(engine, environment, host).values()]
        counts, quarantined = Counter[str](), 0
        for part in parts:
            raised = split_flags(part.flags)
            counts.update(dict.fromkeys(raised, part.attempts))
            quarantined += part.attempts if quarantine_reasons(raised) else 0
        figures = (max(part.seen_at for part in parts), sum(part.attempts for part in parts))
        flags = dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
        found.append(
            Health(
                environment,
                host,
                device.device,
                device.device_name,
                *figures,
                flags,
                quarantined,
                ages.get(environment),
                max((each.gflops for each in peaks), default=None),
                max((each.gb_per_s for each in peaks), default=None),
            )
        )
    return sorted(found, key=lambda each: -each.seen_at)
