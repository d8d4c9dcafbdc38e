"""Merge: what another store measured, and the sweeps that request it, brought into this one."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, Select, Table, bindparam, select

from store.derive.break_evens import derive_sweep
from store.derive.panels import derive_sweep_panels
from store.derive.payloads import PredictionStore, TextScoreStore
from store.errors import StoreError
from store.rows.profiles import load_profiles
from store.rows.row_mapping import insert_new, insert_row
from store.rows.samples import restore_samples, stored_samples
from store.rows.transactions import batches, reading, writing
from store.schema.tables import (
    ARM_LABEL,
    ATTEMPT,
    CALIBRATION,
    COMPARISON,
    ENVIRONMENT,
    KERNEL,
    PREDICTIONS,
    PROFILE,
    PROFILE_TIME,
    REFERENCE,
    SWEEP,
    SWEEP_COMPARISON,
    TEXT_SCORES,
    newest_revision,
)
from store.write.record import record_imported
from store.write.submission import linked_comparisons
from sweeps.errors import UserError
from sweeps.model.outcome import Outcome
from sweeps.number_format import count

ALIKE = (ENVIRONMENT, COMPARISON, CALIBRATION, ARM_LABEL, REFERENCE, PROFILE, PROFILE_TIME, KERNEL)
"""Tables whose keys are the same in every store, in the order in which they refer to each other;
profiles of attempts come with these."""
TOGETHER = 1000
"""Rows that are copied at a time."""
MERGED_AT_ONCE = 20
"""Attempts in one transaction, whose curves are derived once."""
MAX_REFUSALS = 20
"""Attempts that are refused one by one."""


class MergedSweep(NamedTuple):
    """A sweep of the other store: its name there and here, and whether it brought something."""

    name: str
    here: str
    new: bool


class Merged(NamedTuple):
    """What came from the other store."""

    sweeps: list[MergedSweep]
    attempts: int
    known: int
    """Attempts that were here already."""


def merge_stores(
    engine: Engine, other: Engine, check: Callable[[Outcome], Outcome] = lambda outcome: outcome
) -> Merged:
    """Bring what `other` measured into the store of `engine`: newest revisions of sweeps first,
    then some attempts in each transaction, with all that is derived from them.

    Twice changes nothing; after an interruption the rest comes with the next call. Queued jobs stay
    where they are.

    A sweep whose name stands for another text here comes as `NAME-` and the beginning of the digest
    of its text.

    check: returns an outcome, perhaps with flags, or raises `UserError` for one that cannot be.
    Raises `StoreError` with a line for each attempt that is damaged or cannot be, once all others
    came.
    """
    with reading(other) as source:
        with writing(engine) as connection:
            for table in ALIKE:
                _copy(source, connection, table)
            sweeps = [_sweep(source, connection, row) for row in source.execute(_SWEEPS).all()]
        attempts, all_of_them, refusals = 0, source.execute(_ATTEMPTS).all(), list[str]()
        for part in batches(all_of_them, MERGED_AT_ONCE):
            digests = {"digests": [digest for digest, _ in part]}
            with reading(engine) as connection:
                there = set(connection.execute(_HERE, digests).scalars())
            missing: list[Outcome] = []
            for digest, row in part:
                if digest not in there:
                    try:
                        missing.append(check(stored_outcome(source, row)))
                    except (UserError, ValueError) as error:
                        refusals.append(f"attempt {row} of the other store is damaged: {error}")
            attempts += record_imported(engine, missing)
    if refusals:
        refused = (
            f"{len(refusals)} of {count(len(all_of_them), 'attempt')} refused, the others came"
        )
        raise StoreError("\n".join(refusals[:MAX_REFUSALS]) + f" ({refused})")
    known = len(all_of_them) - attempts
    return Merged(sweeps, attempts, known)


_SWEEPS = select(SWEEP).where(newest_revision(SWEEP)).order_by(SWEEP.c.id)
_HERE = select(ATTEMPT.c.digest).where(ATTEMPT.c.digest.in_(bindparam("digests", expanding=True)))
_ATTEMPTS = select(ATTEMPT.c.digest, ATTEMPT.c.id).order_by(ATTEMPT.c.id)


def _copy(source: Connection, connection: Connection, table: Table) -> None:
    """The rows of a table that are not here."""
    rows: Select[Any] = select(table)
    if "attempt" in table.c:
        rows = rows.where(table.c.attempt.is_(None))
    for part in source.execute(rows).partitions(TOGETHER):
        insert_new(connection, table, [dict(row._mapping) for row in part])


def _sweep(source: Connection, connection: Connection, row: Row[Any]) -> MergedSweep:
    """A sweep and what it requests; its claims are derived where something is new."""
    name = row.name
    revisions = select(SWEEP.c.id, SWEEP.c.text).order_by(SWEEP.c.revision.desc())
    newest = connection.execute(revisions.where(SWEEP.c.name == name)).first()
    if newest is not None and newest.text != row.text:
        name = f"{name}-{sha256(row.text.encode()).hexdigest()[:6]}"
        newest = connection.execute(revisions.where(SWEEP.c.name == name)).first()
    columns = {**row._mapping, "name": name, "revision": 1}
    del columns["id"]
    here = insert_row(connection, SWEEP, columns) if newest is None else newest.id
    known = linked_comparisons(connection, here)
    if missing := sorted(linked_comparisons(source, row.id) - known):
        insert_new(
            connection,
            SWEEP_COMPARISON,
            [{"sweep": here, "comparison_id": comparison_id} for comparison_id in missing],
        )
        derive_sweep(connection, here)
        derive_sweep_panels(connection, here)
    return MergedSweep(row.name, name, bool(missing) or newest is None)


def stored_outcome(connection: Connection, attempt: int) -> Outcome:
    """The outcome that an attempt was recorded from."""

    def rows(table: Table) -> Any:
        return connection.execute(select(table).where(table.c.attempt == attempt))

    payload = connection.execute(
        select(ATTEMPT.c.payload).where(ATTEMPT.c.id == attempt)
    ).scalar_one()
    raw: dict[str, Any] = {"profiles": load_profiles(connection, attempt) or None}
    if (samples := stored_samples(connection, attempt)) is not None:
        raw["samples"] = restore_samples(*samples)
    for row in rows(PREDICTIONS):
        raw["predictions"] = PredictionStore.unpack(row.payload)
    for row in rows(TEXT_SCORES):
        raw["text_scores"] = TextScoreStore.unpack(row.payload)
    return Outcome.model_validate_json(payload).model_copy(update=raw)
