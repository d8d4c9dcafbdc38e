"""The one writer of outcomes: an attempt with all that was said about it, and what follows from it, in one transaction."""

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic_core import to_json
from sqlalchemy import Connection, Engine, String, bindparam, text

from store.derive import speedup
from store.derive.pair_status import fates
from store.derive.quality import JUDGES
from store.errors import StoreError
from store.row_mapping import (
    comparison_row,
    environment_row,
    finite,
    insert_into,
    insert_new,
    insert_row,
    spoken_row,
)
from store.sample_codec import pack, pack_series, timings
from store.tables import planned, results
from store.transactions import writing
from sweeps import aliases
from sweeps.identity import canonical
from sweeps.job import Job
from sweeps.outcome import ANSWERS, ArmOutcome, Failure, Outcome
from sweeps.stats.timing import load_distributions

Source = Literal["measured", "imported"]

KNOWN = text("SELECT id FROM attempt WHERE digest = :digest")
END_LEASE = text(
    """UPDATE job SET state = :state, owner = NULL, renewed_at = NULL, attempts = attempts + :executed
       WHERE id = :job AND state = 'running' AND owner = :owner
         AND NOT EXISTS (SELECT 1 FROM attempt WHERE digest = :digest) RETURNING job_id, attempts"""
)
HOLDER = text("SELECT state, owner FROM job WHERE id = :job")
STORED = text("SELECT comparison_id FROM comparison WHERE comparison_id IN :comparisons").bindparams(
    bindparam("comparisons", expanding=True)
)
IMPORTED_BEFORE = text("SELECT count(*) FROM attempt WHERE job_id = :job_id AND job IS NULL")
ANSWERED_PAIRS = text(
    """SELECT DISTINCT t.environment, p.comparison_id
       FROM pairing AS p JOIN attempt AS t ON t.id = p.attempt
       WHERE :sweep IS NULL OR p.comparison_id IN (SELECT comparison_id FROM sweep_comparison WHERE sweep = :sweep)
       ORDER BY t.environment, p.comparison_id"""
).bindparams(bindparam("sweep", type_=String()))


class LeaseError(StoreError):
    """The owner no longer holds the job: another dispatcher took it over, or somebody cancelled it."""


def record(engine: Engine, row: int | None, owner: str | None, outcome: Outcome) -> bool:
    """Store an outcome with all that follows from it, and end the job in `row`, in one transaction.

    The job becomes `done`, or `failed` if one of its questions is still not answered. `row` None stores an outcome that was
    measured elsewhere. Returns False, changing nothing, if this very outcome is stored already. Raises `LeaseError` if `owner`
    does not hold the job's lease, and `StoreError` if the outcome contradicts itself.
    """
    load_distributions()  # before the transaction, in which all others wait
    attempt = AttemptWriter(outcome)
    with writing(engine) as connection:
        if row is None:
            if attempt.known(connection):
                return False
            attempt.record_imported(connection)
            return True
        try:
            n = end_lease(connection, row, owner, "done" if attempt.answered else "failed", attempt)
        except LeaseError:
            if attempt.known(connection):
                return False
            raise
        key = attempt.insert(connection, row, n, "measured")
        if attempt.fates:
            attempt.answer(connection, key)
    return True


def record_imported(engine: Engine, outcomes: Iterable[Outcome]) -> int:
    """Store outcomes that were measured elsewhere, all of them or, if one contradicts itself, none. Returns how many were new."""
    attempts = [AttemptWriter(outcome) for outcome in outcomes]
    fresh = 0
    with writing(engine) as connection:
        for attempt in attempts:
            if not attempt.known(connection):
                attempt.record_imported(connection)
                fresh += 1
    return fresh


def reanalyse(engine: Engine, sweep: str | None = None) -> int:
    """Rebuild all derived rows (or those of the sweep of that name) from raw samples. Returns how many comparisons it concerned."""
    with engine.connect() as connection:
        found = connection.execute(ANSWERED_PAIRS, {"sweep": sweep}).all()
    by_environment: dict[str, list[str]] = {}
    for row in found:
        by_environment.setdefault(row.environment, []).append(row.comparison_id)
    for environment, comparisons in by_environment.items():
        batches = [comparisons[start : start + speedup.BATCH] for start in range(0, len(comparisons), speedup.BATCH)]
        judged = (judge.derive for judge in JUDGES.values())
        for derive in (speedup.derive_speedups, *judged, speedup.derive_break_evens):  # no curve may mix points of two analyses
            for batch in batches:
                with writing(engine) as connection:
                    derive(connection, batch, environment)
    return len(found)


def end_lease(connection: Connection, row: int, owner: str | None, state: str, attempt: "AttemptWriter | None") -> int:
    """Move the job in `row` on to `state` and take it from `owner`. Returns how often it was executed, `attempt` included.

    Raises, which undoes the transaction, `LeaseError` if `owner` does not hold the lease or the attempt is stored already, and
    `StoreError` if the attempt is of another job.
    """
    asked = {"job": row, "owner": owner, "state": state, "executed": int(attempt is not None)}
    asked["digest"] = "" if attempt is None else attempt.digest
    ended = connection.execute(END_LEASE, asked).one_or_none()
    if ended is None:
        found = connection.execute(HOLDER, {"job": row}).one_or_none()
        now = "does not exist" if found is None else f"is held by {found.owner}" if found.owner else f"is {found.state}"
        raise LeaseError(f"job {row} {now}; it is no longer running for {owner}, whose result is not stored")
    if attempt is not None and ended.job_id != attempt.job_id:
        raise StoreError(f"job {row} has the identity {ended.job_id}, the outcome is of {attempt.job_id}: it is not stored")
    return int(ended.attempts)


class AttemptWriter:
    """An outcome on its way into the store: everything that can be computed before the transaction begins."""

    def __init__(self, outcome: Outcome) -> None:
        """Raises `StoreError` if the outcome contradicts itself."""
        self.outcome = outcome
        self.job = outcome.job
        self.job_id = self.job.job_id
        self.environment = environment_row(outcome.environment)
        # NaN and infinity stay what they are here; a model's own JSON would make them null
        payload = aliases.without_younger(outcome.model_dump(exclude={"samples", "predictions", "text_scores"}))
        self.document = to_json(payload, inf_nan_mode="constants").decode()
        try:
            said = [(judge, judge.of(outcome)) for judge in JUDGES.values()]
            self.said = [(judge.kept, judge.pack(whole)) for judge, whole in said if whole is not None]
            self.timings = None if outcome.samples is None else timings(outcome.samples)
            self.samples = None if outcome.samples is None else pack(outcome.samples)
            self.series = [] if outcome.samples is None else pack_series(outcome.samples)
        except ValueError as error:
            raise StoreError(f"the outcome of job {self.job_id} is not stored: {error}") from error
        content = hashlib.sha256(to_json(aliases.former(payload), inf_nan_mode="constants"))
        kept = (self.samples or {}, *self.series, *(columns for _, columns in self.said))
        for value in (value for columns in kept for value in columns.values()):
            content.update(value if isinstance(value, bytes) else str(value).encode())
        self.digest = content.hexdigest()
        self.fates = tuple(fates(outcome, self.timings))
        self.comparison_ids = self.job.comparison_ids()

    @property
    def answered(self) -> bool:
        if self.fates:
            return all(fate.answered for fate in self.fates)
        return all(failure.reason in ANSWERS for failure in self.outcome.failures)

    def known(self, connection: Connection) -> bool:
        return connection.execute(KNOWN, {"digest": self.digest}).first() is not None

    def record_imported(self, connection: Connection) -> None:
        """Insert the attempt as measured elsewhere, and let it answer."""
        before = connection.execute(IMPORTED_BEFORE, {"job_id": self.job_id}).scalar_one()
        key = self.insert(connection, None, before + 1, "imported")
        if self.fates:
            self.answer(connection, key)

    def insert(self, connection: Connection, row: int | None, n: int, source: Source) -> int:
        """Insert the attempt, the `n`-th of its job, with what was said of its arms. Returns its row; `answer` makes it count."""
        outcome = self.outcome
        insert_new(connection, planned.Environment, [self.environment])
        columns = {
            "digest": self.digest,
            "job": row,
            "job_id": self.job_id,
            "n": n,
            "round": self.job.round,
            "environment": self.environment["environment_id"],
            "host": outcome.host,
            "started_at": outcome.started_at,
            "ended_at": outcome.ended_at,
            "project_commit": outcome.commit,
            "source": source,
            "flags": ",".join(outcome.flags),
            "protocol": canonical(self.job.protocol),
            "readings": to_json(outcome.system_metrics, inf_nan_mode="constants").decode(),
            "document": self.document,
        }
        attempt = insert_row(connection, results.Attempt, columns)
        if self.samples is not None:
            connection.execute(insert_into(results.Sample), {**self.samples, "attempt": attempt})
        if self.series:
            connection.execute(insert_into(results.SampleSeries), [{**each, "attempt": attempt} for each in self.series])
        for table, kept in self.said:
            connection.execute(insert_into(table), {**kept, "attempt": attempt})
        if outcome.arms:
            connection.execute(insert_into(results.MeasuredArm), [_arm_row(self.job, arm, attempt) for arm in outcome.arms])
            if self.job.kind == "generation":
                spoken = [{**spoken_row(self.job, arm.arm), "attempt": attempt} for arm in outcome.arms]
                connection.execute(insert_into(results.SpokenArm), spoken)
        metrics = list(_metric_rows(outcome, attempt))
        if metrics:
            connection.execute(insert_into(results.Metric), metrics)
        self.failures = {
            failure: insert_row(connection, results.Failure, _failure_row(failure, attempt)) for failure in outcome.failures
        }
        return attempt

    def answer(self, connection: Connection, attempt: int) -> None:
        """Let the inserted attempt answer the job's questions, and bring up to date what is derived from the answers."""
        stored = set(connection.execute(STORED, {"comparisons": self.comparison_ids}).scalars())
        requested = zip(self.comparison_ids, self.job.comparisons(), strict=True)
        new = [
            comparison_row(comparison, self.job.content_hashes)
            for comparison_id, comparison in requested
            if comparison_id not in stored
        ]
        insert_new(connection, planned.Comparison, new)
        rows = {}
        for comparison_id, (pair, failure) in zip(self.comparison_ids, self.fates, strict=True):
            if failure is not None and failure not in self.failures:
                self.failures[failure] = insert_row(connection, results.Failure, _failure_row(failure, attempt))
            why = None if failure is None else self.failures[failure]
            rows[comparison_id] = {"comparison_id": comparison_id, "attempt": attempt, **pair._asdict(), "failure": why}
        connection.execute(insert_into(results.Pairing), list(rows.values()))
        environment = self.environment["environment_id"]
        if (judge := JUDGES.get(self.job.kind)) is not None:
            said = judge.of(self.outcome)
            judge.derive(connection, self.comparison_ids, environment, {} if said is None else {attempt: said})
            return
        known = {} if self.timings is None else {attempt: self.timings}
        speedup.derive_speedups(connection, self.comparison_ids, environment, known, {self.job.kind})
        speedup.derive_break_evens(connection, self.comparison_ids, environment)


def _failure_row(failure: Failure, attempt: int) -> dict[str, Any]:
    return {**failure.model_dump(), "attempt": attempt}


def _arm_row(job: Job, arm: ArmOutcome, attempt: int) -> dict[str, Any]:
    return {
        "attempt": attempt,
        "arm": arm.arm,
        "arm_id": job.arms[arm.arm].arm_id,
        "gmacs": arm.gmacs,
        "gmacs_method": arm.gmacs_overhead,
        "parameters": arm.parameters,
        "trainable_parameters": arm.trainable_parameters,
        "batch": arm.batch,
        "tokens": arm.tokens,
        "tokens_final": arm.tokens_final,
        "threads": arm.threads,
        "flags": ",".join(arm.flags),
        "route": arm.route,
    }


def _metric_rows(outcome: Outcome, attempt: int) -> Iterator[dict[str, Any]]:
    for arm in outcome.arms:
        for metric in {metric.name: metric for metric in arm.metrics}.values():
            if math.isfinite(metric.value):
                bounds = {"low": finite(metric.low), "high": finite(metric.high), "n": metric.n}
                key = {"attempt": attempt, "arm": arm.arm, "metric": metric.name}
                yield {**key, "value": metric.value, "unit": metric.unit, **bounds}
