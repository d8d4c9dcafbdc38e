"""The one writer of outcomes: an attempt with all of its data, and what is derived from it, in one
transaction.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic_core import to_json
from sqlalchemy import Connection, Engine, Integer, bindparam, delete, exists, func, select, update

from store.derive.break_evens import BATCH, CURVE_ORDER, derive_break_evens
from store.derive.effects import derive_effects
from store.derive.panels import derive_panels
from store.derive.payloads import STORES, pair_statuses, payload_of
from store.derive.sample_store import Spread, compute_here
from store.errors import StoreError
from store.rows.profiles import record_peaks
from store.rows.row_mapping import (
    arm_columns,
    comparison_row,
    environment_row,
    finite,
    insert_into,
    insert_new,
    insert_row,
)
from store.rows.transactions import batches, retried, writing
from store.schema.tables import (
    ARM_RESULT,
    ATTEMPT,
    COMPARISON,
    ENVIRONMENT,
    FAILURE,
    JOB,
    METRIC,
    PAIR,
    PENDING,
)
from store.write.analysis_pool import spread_over
from store.write.calibrations import newest_calibration
from sweeps.model.flags import COUNTS_UNCHECKED
from sweeps.model.identity import canonical
from sweeps.model.job import Job
from sweeps.model.kinds import KINDS
from sweeps.model.outcome import ANSWERING_FAILURES, ArmOutcome, Failure, Outcome
from sweeps.stats.timing import load_distributions

Source = Literal["measured", "imported"]

KNOWN = select(ATTEMPT.c.id).where(ATTEMPT.c.digest == bindparam("digest"))
END_LEASE = (
    update(JOB)
    .values(
        state=bindparam("new_state"),
        owner=None,
        renewed_at=None,
        attempts=JOB.c.attempts + bindparam("executed", type_=Integer()),
    )
    .where(
        JOB.c.id == bindparam("row"),
        JOB.c.state == "running",
        JOB.c.owner == bindparam("holder"),
        ~exists(KNOWN),
    )
    .returning(JOB.c.job_id, JOB.c.attempts)
)
JOB_OWNER = select(JOB.c.state, JOB.c.owner).where(JOB.c.id == bindparam("row"))
DEFERRED = select(PENDING).where(PENDING.c.analysis == "")
STORED = select(COMPARISON.c.comparison_id).where(
    COMPARISON.c.comparison_id.in_(bindparam("comparisons", expanding=True))
)
IMPORTED_BEFORE = select(func.count()).where(
    ATTEMPT.c.job_id == bindparam("job_id"), ATTEMPT.c.job.is_(None)
)


class LeaseError(StoreError):
    """The owner no longer holds the job: another dispatcher took it over, or it was cancelled."""


@retried
def record(
    engine: Engine, row: int | None, owner: str | None, outcome: Outcome, *, defer: bool = False
) -> bool:
    """Store an outcome with all that follows from it, and end the job in `row`, in one transaction.

    The job becomes `done`, or `failed` if one of its questions is still not answered. `row` None
    stores an outcome that was measured elsewhere. Returns False, changing nothing, if this very
    outcome is stored already. With `defer` curves and counts of panels are left to
    `derive_pending`. Raises `LeaseError` if `owner` does not hold the job's lease, and `StoreError`
    if the outcome contradicts itself.
    """
    if row is None:
        return record_imported(engine, [outcome]) == 1
    load_distributions()  # before the transaction, in which all others wait
    attempt = AttemptWriter(outcome)
    with writing(engine) as connection:
        try:
            n = end_lease(connection, row, owner, "done" if attempt.answered else "failed", attempt)
        except LeaseError:
            if attempt.known(connection):
                return False
            raise
        attempt.answer(connection, attempt.insert(connection, row, n, "measured"))
        touched = _derive_effects(connection, [attempt])
        if not defer:
            _derive_curves(connection, touched)
        else:
            for environment, comparisons in touched.items():
                listed = json.dumps(sorted(comparisons))
                left = {"analysis": "", "stage": "curves", "environment": environment}
                connection.execute(insert_into(PENDING), {**left, "comparisons": listed})
    return True


@retried
def derive_pending(engine: Engine) -> None:
    """Derive the curves and panels of what was recorded with `defer`."""
    load_distributions()
    touched: dict[str, set[str]] = {}
    with writing(engine) as connection:
        rows = connection.execute(DEFERRED).all()
        for row in rows:
            touched.setdefault(row.environment, set()).update(json.loads(row.comparisons))
        _derive_curves(connection, touched)
        connection.execute(delete(PENDING).where(PENDING.c.id.in_([row.id for row in rows])))


def record_imported(
    engine: Engine, outcomes: Iterable[Outcome], then: Callable[[Connection], None] | None = None
) -> int:
    """Store outcomes that were measured elsewhere, all of them or, if one contradicts itself, none.
    Returns how many were new.

    `then` stores what is imported with them, in the same transaction. Curves are derived once, when
    all their points are there.
    """
    load_distributions()
    attempts = [AttemptWriter(outcome) for outcome in outcomes]
    compared = sum(len(attempt.comparison_ids) for attempt in attempts)
    with spread_over(engine, compared) as spread, writing(engine) as connection:
        new = []
        for attempt in attempts:
            if not attempt.known(connection):
                before = connection.execute(
                    IMPORTED_BEFORE, {"job_id": attempt.job_id}
                ).scalar_one()
                attempt.answer(connection, attempt.insert(connection, None, before + 1, "imported"))
                new.append(attempt)
        _derive_curves(connection, _derive_effects(connection, new), spread)
        if then is not None:
            then(connection)
    return len(new)


def _derive_effects(
    connection: Connection, attempts: Sequence["AttemptWriter"]
) -> dict[str, set[str]]:
    """Derive what follows from attempts that were stored, once for all of them, less the curves.
    Returns the comparisons by environment.
    """
    groups: dict[tuple[str, str], list[AttemptWriter]] = {}
    for attempt in attempts:
        groups.setdefault((attempt.environment_id, attempt.job.kind), []).append(attempt)
    touched: dict[str, set[str]] = {}
    for (environment, kind), group in groups.items():
        known = {each.row: each.data for each in group if each.data is not None}
        comparisons = {key for each in group if each.statuses for key in each.comparison_ids}
        for part in _by_curve(connection, comparisons):
            derive_effects(connection, part, environment, known, {kind})
        touched.setdefault(environment, set()).update(comparisons)
    return touched


def _derive_curves(
    connection: Connection, touched: Mapping[str, Collection[str]], spread: Spread = compute_here
) -> None:
    """Derive the curves that comparisons lie on, by environment, and count their panels."""
    for environment, comparisons in touched.items():
        for part in _by_curve(connection, comparisons):
            derive_break_evens(connection, part, environment, spread=spread)
        derive_panels(connection, comparisons)


def _by_curve(connection: Connection, comparisons: Collection[str]) -> Iterator[list[str]]:
    """The comparisons in batches, those of one curve together where possible."""
    if len(comparisons) <= BATCH:
        yield sorted(comparisons)
        return
    known = select(*CURVE_ORDER, COMPARISON.c.comparison_id)
    found: list[tuple[str, ...]] = []
    for batch in batches(sorted(comparisons), BATCH):
        found += map(tuple, connection.execute(known.where(COMPARISON.c.comparison_id.in_(batch))))
    for batch in batches([comparison for *_, comparison in sorted(found)], BATCH):
        yield batch


def end_lease(
    connection: Connection, row: int, owner: str | None, state: str, attempt: "AttemptWriter | None"
) -> int:
    """Move the job in `row` on to `state` and take it from `owner`. Returns how often it was
    executed, `attempt` included.

    Raises, which undoes the transaction, `LeaseError` if `owner` does not hold the lease or the
    attempt is stored already, and `StoreError` if the attempt is of another job.
    """
    values = {"row": row, "holder": owner, "new_state": state, "executed": int(attempt is not None)}
    ended = connection.execute(
        END_LEASE, {**values, "digest": "" if attempt is None else attempt.digest}
    ).one_or_none()
    if ended is None:
        found = connection.execute(JOB_OWNER, {"row": row}).one_or_none()
        now = "does not exist"
        if found is not None:
            now = f"is held by {found.owner}" if found.owner else f"is {found.state}"
        raise LeaseError(
            f"job {row} {now}; it is no longer running for {owner}, whose result is not stored"
        )
    if attempt is not None and ended.job_id != attempt.job_id:
        raise StoreError(
            f"job {row} has the identity {ended.job_id}, the outcome is of {attempt.job_id}: it is"
            " not stored"
        )
    return int(ended.attempts)


class AttemptWriter:
    """An outcome on its way into the store: everything that can be computed before the transaction
    begins.
    """

    def __init__(self, outcome: Outcome) -> None:
        """Raises `StoreError` if the outcome contradicts itself."""
        self.outcome = outcome
        self.job = outcome.job
        self.kind = KINDS[self.job.kind]
        self.job_id = self.job.job_id
        self.environment = environment_row(outcome.environment)
        self.environment_id = str(self.environment["environment_id"])
        # NaN and infinity stay what they are here; a model's own JSON would make them null
        raw = dict.fromkeys(("samples", "predictions", "text_scores", "profiles"), True)
        # code of the user stays with the user
        data = outcome.model_dump(exclude={**raw, "job": {"files"}})
        self.payload = to_json(data, inf_nan_mode="constants").decode()
        try:
            self.data = payload_of(self.job.kind).read(outcome)
            self.raw = [row for store in STORES.values() for row in store(self.kind).rows(outcome)]
        except ValueError as error:
            raise StoreError(f"the outcome of job {self.job_id} is not stored: {error}") from error
        # what is known where it is imported makes no other outcome of it
        flags = [flag for flag in outcome.flags if flag != COUNTS_UNCHECKED]
        content = hashlib.sha256(to_json({**data, "flags": flags}, inf_nan_mode="constants"))
        for value in (value for _, columns in self.raw for value in columns.values()):
            content.update(value if isinstance(value, bytes) else str(value).encode())
        self.digest = content.hexdigest()
        self.statuses = tuple(pair_statuses(outcome, self.data))
        self.comparison_ids = self.job.comparison_ids()

    @property
    def answered(self) -> bool:
        if self.statuses:
            return all(status.answered for status in self.statuses)
        return all(failure.reason in ANSWERING_FAILURES for failure in self.outcome.failures)

    def known(self, connection: Connection) -> bool:
        return connection.execute(KNOWN, {"digest": self.digest}).first() is not None

    def insert(self, connection: Connection, row: int | None, n: int, source: Source) -> int:
        """Insert the attempt, the `n`-th of its job, with the data of its arms. Returns its row;
        `answer` makes it count.
        """
        outcome = self.outcome
        insert_new(connection, ENVIRONMENT, [self.environment])
        columns = {
            "digest": self.digest,
            "job": row,
            "job_id": self.job_id,
            "n": n,
            "round": self.job.round,
            "environment": self.environment_id,
            "host": outcome.host,
            "process": outcome.process,
            "calibration_id": newest_calibration(connection, outcome, self.environment_id),
            "started_at": outcome.started_at,
            "ended_at": outcome.ended_at,
            "project_commit": outcome.commit,
            "source": source,
            "flags": ",".join(outcome.flags),
            "protocol": canonical(self.job.protocol),
            "system_metrics": to_json(outcome.system_metrics, inf_nan_mode="constants").decode(),
            "payload": self.payload,
        }
        attempt = insert_row(connection, ATTEMPT, columns)
        for table, raw in self.raw:
            connection.execute(insert_into(table), {**raw, "attempt": attempt})
        if outcome.arms:
            connection.execute(
                insert_into(ARM_RESULT), [_arm_row(self.job, arm, attempt) for arm in outcome.arms]
            )
        record_peaks(connection, self.environment, outcome.host, outcome.peaks, attempt)
        metrics = list(_metric_rows(outcome, attempt))
        if metrics:
            connection.execute(insert_into(METRIC), metrics)
        self.failures = {
            failure: insert_row(connection, FAILURE, _failure_row(failure, attempt))
            for failure in outcome.failures
        }
        return attempt

    def answer(self, connection: Connection, attempt: int) -> None:
        """Let the inserted attempt answer the job's questions; what follows is still to be
        derived.
        """
        self.row = attempt
        if not self.statuses:
            return
        stored = set(connection.execute(STORED, {"comparisons": self.comparison_ids}).scalars())
        requested = zip(self.comparison_ids, self.job.comparisons(), strict=True)
        new = [
            comparison_row(comparison, self.job.content_hashes)
            for comparison_id, comparison in requested
            if comparison_id not in stored
        ]
        insert_new(connection, COMPARISON, new)
        rows = {}
        for comparison_id, (pair, failure) in zip(self.comparison_ids, self.statuses, strict=True):
            if failure is not None and failure not in self.failures:
                self.failures[failure] = insert_row(
                    connection, FAILURE, _failure_row(failure, attempt)
                )
            why = None if failure is None else self.failures[failure]
            rows[comparison_id] = {
                "comparison_id": comparison_id,
                "attempt": attempt,
                **pair._asdict(),
                "failure": why,
            }
        connection.execute(insert_into(PAIR), list(rows.values()))


def _failure_row(failure: Failure, attempt: int) -> dict[str, Any]:
    return {**failure.model_dump(), "attempt": attempt}


def _arm_row(job: Job, arm: ArmOutcome, attempt: int) -> dict[str, Any]:
    counted = {name: getattr(arm, name) for name in ArmOutcome.model_fields if name in ARM_RESULT.c}
    return {
        **counted,
        **arm_columns(job, arm.arm),
        "attempt": attempt,
        "flags": ",".join(arm.flags),
    }


def _metric_rows(outcome: Outcome, attempt: int) -> Iterator[dict[str, Any]]:
    for arm in outcome.arms:
        for metric in {metric.name: metric for metric in arm.metrics}.values():
            if math.isfinite(metric.value):
                bounds = {"low": finite(metric.low), "high": finite(metric.high), "n": metric.n}
                key = {"attempt": attempt, "arm": arm.arm, "metric": metric.name}
                yield {**key, "value": metric.value, "unit": metric.unit, **bounds}
