"""Submission: a sweep and the jobs for what is not answered yet, put into the queue."""

import time
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, bindparam, delete, select, update

from store.rows import placement
from store.rows.owners import is_alive, owner
from store.rows.placement import Pin, PlannedWork, placement_columns
from store.rows.row_mapping import comparison_row, insert_jobs, insert_new, insert_row, link_jobs
from store.rows.transactions import database_time, reading, writing
from store.schema.tables import COMPARISON, JOB, SWEEP, SWEEP_COMPARISON, SWEEP_JOB
from store.write.overlap import Overlap, find_overlap
from sweeps.model.identity import canonical
from sweeps.model.job import Comparison, Job, Protocol

IDS_AT_ONCE = 5000
"""Names in one statement, which SQLite and PostgreSQL bound."""

Requested = Comparison | tuple[Comparison, Mapping[str, str]] | Job
"""A comparison, alone or with its `contents` (see `Comparison.comparison_id`), or all those of a
job."""


class NewSweep(NamedTuple):
    """A sweep as its file defines it."""

    name: str
    text: str
    """The whole file."""
    question: str
    settings: Mapping[str, Any] = MappingProxyType({})
    """Retry and limits."""


def submit_sweep(
    engine: Engine,
    new: NewSweep,
    comparisons: Iterable[Requested],
    jobs: Iterable[Job | PlannedWork],
    since: int | None = None,
) -> int:
    """Store a sweep and queue `jobs`, the plan for whatever of its `comparisons` is not answered
    yet. Returns the sweep's row.

    The text of the newest revision is the same sweep again, another text is a new revision. The
    plan replaces what still waits under this name: such jobs become `cancelled` unless another
    sweep waits for them too. A job that is waiting or running already is shared, not queued again;
    its protocol becomes the stricter of the two. Jobs are pinned where the plan wants them, or
    where another dispatcher that is at work on the sweep has the rest of their group.

    A plan may be older than the store. Pairs that other jobs, such as the parts of one that was
    split, measure at this moment are left to those, which the sweep then waits for too. Pairs that
    were answered after attempt `since` (`overlap.newest_attempt` before the plan was made) are not
    queued either: whoever submits a plan makes a new one afterwards.
    """
    requested = _by_id(comparisons)
    # rows are built before the transaction, in which all others wait
    rows = {
        key: comparison_row(*requested[key], key)
        for key in requested.keys() - _linked_to_text(engine, new)
    }
    with writing(engine) as connection:
        sweep = _sweep_row(connection, new)
        if unlinked := sorted(requested.keys() - _linked(connection, sweep)):
            insert_new(
                connection,
                COMPARISON,
                [rows.get(key) or comparison_row(*requested[key], key) for key in unlinked],
            )
            insert_new(
                connection,
                SWEEP_COMPARISON,
                [{"sweep": sweep, "comparison_id": key} for key in unlinked],
            )
            # imports the models, which a plan submitted again does not need
            from store.derive.break_evens import (
                derive_sweep,
            )
            from store.derive.panels import derive_sweep_panels

            derive_sweep(connection, sweep)
            derive_sweep_panels(connection, sweep)
        pins = placement.live_pins(connection, new.name, owner(), is_alive)
        queued = _queue(connection, jobs, pins, find_overlap(connection, new.name, since))
        _drop_stale_plan(connection, new.name, queued)
        link_jobs(connection, sweep, sorted(queued))
    return sweep


def _by_id(comparisons: Iterable[Requested]) -> dict[str, tuple[Comparison, Mapping[str, str]]]:
    """Each comparison with its contents, by its identity."""
    found: dict[str, tuple[Comparison, Mapping[str, str]]] = {}
    for item in comparisons:
        if isinstance(item, Job):
            pairs = ((comparison, item.content_hashes) for comparison in item.comparisons())
            found.update(zip(item.comparison_ids(), pairs, strict=True))
        else:
            comparison, contents = item if isinstance(item, tuple) else (item, {})
            found[comparison.comparison_id(contents)] = comparison, contents
    return found


def _find(connection: Connection, new: NewSweep) -> tuple[int | None, int]:
    """The row of the sweep if its newest revision has this text, and the newest revision of its
    name, 0 if there is none.
    """
    revisions = select(SWEEP.c.id, SWEEP.c.revision, SWEEP.c.text).where(SWEEP.c.name == new.name)
    newest = connection.execute(revisions.order_by(SWEEP.c.revision.desc()).limit(1)).one_or_none()
    return (
        (None, 0)
        if newest is None
        else (newest.id if newest.text == new.text else None, newest.revision)
    )


def _linked(connection: Connection, sweep: int) -> set[str]:
    linked = select(SWEEP_COMPARISON.c.comparison_id).where(SWEEP_COMPARISON.c.sweep == sweep)
    return set(connection.execute(linked).scalars())


def _linked_to_text(engine: Engine, new: NewSweep) -> set[str]:
    """The comparisons of the sweep of this name and text that are in the store."""
    with reading(engine) as connection:
        sweep, _ = _find(connection, new)
        return set() if sweep is None else _linked(connection, sweep)


def _sweep_row(connection: Connection, new: NewSweep) -> int:
    """The row of the sweep: that of the newest revision if its text is the same, else a new one."""
    sweep, revision = _find(connection, new)
    if sweep is not None:
        return sweep
    row = {
        **new._asdict(),
        "settings": canonical(dict(new.settings)),
        "revision": revision + 1,
        "submitted_at": time.time(),
    }
    return insert_row(connection, SWEEP, row)


def _queue(
    connection: Connection,
    jobs: Iterable[Job | PlannedWork],
    pins: Mapping[placement.Group, Pin],
    overlap: Overlap,
) -> set[int]:
    """The rows of `jobs`: equal ones that are waiting, or are running under a protocol that
    satisfies, else new ones.

    `pins` are the places that other dispatchers chose for groups, `overlap` is what need not be
    queued.
    """
    requested = _merge(jobs)
    active = _active(connection, requested)
    rows, left = set[int](), list[PlannedWork]()
    for key, wanted in requested.items():
        rest, standing = (wanted, set[int]()) if key in active else overlap.rest(wanted)
        rows |= standing
        left += [] if rest is None else [rest]
    if left != list(requested.values()):
        requested = _merge(left)
        active |= _active(connection, requested.keys() - active.keys())
    me, now = owner(), database_time(connection)
    new: list[tuple[Job, dict[str, Any]]] = []
    moved: list[dict[str, Any]] = []
    for key, wanted in requested.items():
        placed = placement_columns(wanted, pins, me, now)
        row = _equal_row(connection, wanted.job, active.get(key, ()))
        if row is None:
            new.append((wanted.job, placed))
            continue
        rows.add(row.id)
        if row.state == "waiting":
            moved.append({**placed, "row": row.id})
    if moved:
        values: dict[str, Any] = {
            column.key: bindparam(column.key) for column in placement.PLACEMENT_COLUMNS
        }
        connection.execute(update(JOB).where(JOB.c.id == bindparam("row")).values(values), moved)
    return rows.union(insert_jobs(connection, new))


def _merge(jobs: Iterable[Job | PlannedWork]) -> dict[tuple[str, str], PlannedWork]:
    """The jobs by identity and demand, equal ones as one under the stricter of their protocols."""
    merged: dict[tuple[str, str], PlannedWork] = {}
    for job in jobs:
        wanted = job if isinstance(job, PlannedWork) else PlannedWork(job)
        key = (wanted.job.job_id, wanted.resources)
        if key in merged:
            wanted = wanted._replace(job=_stricter_job(merged[key].job, wanted.job))
        merged[key] = wanted
    return merged


def _active(
    connection: Connection, keys: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[Row[*tuple[Any, ...]]]]:
    """The rows of waiting and running jobs with these identities and demands."""
    active: dict[tuple[str, str], list[Row[*tuple[Any, ...]]]] = {}
    columns = (JOB.c.id, JOB.c.job_id, JOB.c.resources, JOB.c.state, JOB.c.payload)
    ids = list({job_id for job_id, _ in keys})
    for start in range(0, len(ids), IDS_AT_ONCE):
        equal = JOB.c.job_id.in_(ids[start : start + IDS_AT_ONCE])
        query = (
            select(*columns)
            .where(equal, JOB.c.state.in_(("waiting", "running")))
            .order_by(JOB.c.id)
        )
        for row in connection.execute(query):
            if (row.job_id, row.resources) in keys:
                active.setdefault((row.job_id, row.resources), []).append(row)
    return active


def _equal_row(
    connection: Connection, job: Job, rows: Iterable[Row[*tuple[Any, ...]]]
) -> Row[*tuple[Any, ...]] | None:
    """The first of the rows that can stand for the job, its protocol made as strict where it still
    waits.
    """
    for row in rows:
        queued = Job.model_validate_json(row.payload)
        if queued.protocol.satisfies(job.protocol):
            return row
        if row.state == "waiting":
            payload = _stricter_job(job, queued).model_dump_json()
            connection.execute(update(JOB).where(JOB.c.id == row.id).values(payload=payload))
            return row
    return None


def _stricter_job(one: Job, other: Job) -> Job:
    """`other` under a protocol that satisfies both."""
    return other.model_copy(update={"protocol": stricter(one.protocol, other.protocol)})


def stricter(one: Protocol, other: Protocol) -> Protocol:
    """The protocol that satisfies both."""
    least = {"half_width": min(one.half_width, other.half_width)}
    amounts: dict[str, Any] = {
        "images": _most(one.images, other.images),
        "characters": _most(one.characters, other.characters),
        "tasks": tuple(dict.fromkeys((*(one.tasks or ()), *(other.tasks or ())))) or None,
        "documents": _most(*(protocol.documents for protocol in (one, other) if protocol.tasks)),
    }
    most = {
        name: max(value, getattr(other, name))
        for name, value in one
        if name not in {*least, *amounts}
    }
    return Protocol.model_validate({**least, **most, **amounts})


def _most(*amounts: int | None) -> int | None:
    """The largest; `None` stands for all there is."""
    known = [amount for amount in amounts if amount is not None]
    return max(known, default=None) if len(known) == len(amounts) else None


def _drop_stale_plan(connection: Connection, name: str, wanted: set[int]) -> None:
    """Cancel what waits under this sweep's name and is not in its new plan; unlink what former
    plans left unanswered.
    """
    linked = select(SWEEP_JOB.c.job).join(SWEEP, SWEEP.c.id == SWEEP_JOB.c.sweep)
    planned = (
        select(JOB.c.id, JOB.c.state)
        .where(
            JOB.c.state.in_(("waiting", "failed", "cancelled", "split")),
            JOB.c.id.in_(linked.where(SWEEP.c.name == name)),
            JOB.c.id.not_in(linked.where(SWEEP.c.name != name)),
        )
        .order_by(JOB.c.id)
    )
    stale = [row for row in connection.execute(planned).all() if row.id not in wanted]
    if waiting := [{"row": row.id} for row in stale if row.state == "waiting"]:
        connection.execute(
            update(JOB).where(JOB.c.id == bindparam("row")).values(state="cancelled"), waiting
        )
    if stale:
        connection.execute(
            delete(SWEEP_JOB).where(SWEEP_JOB.c.job == bindparam("row")),
            [{"row": row.id} for row in stale],
        )
