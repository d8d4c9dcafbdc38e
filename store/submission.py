"""Plans: a sweep and the jobs for what is not answered yet, put into the queue."""

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Engine, Row, bindparam
from sqlalchemy import text as sql

from store import placement
from store.overlap import Overlap, overlap
from store.owners import alive, owner
from store.placement import Pin, Wanted
from store.row_mapping import INSERT_COMPARISON, LINK_JOB, comparison_row, insert_jobs, insert_many
from store.transactions import reading, writing
from sweeps.identity import canonical
from sweeps.job import Comparison, Job
from sweeps.protocol import Protocol

BATCH = 5000
"""Names in one statement, which SQLite and PostgreSQL bound."""

Asked = Comparison | tuple[Comparison, Mapping[str, str]] | Job
"""A comparison, alone or with its `contents` (see `Comparison.comparison_id`), or all those of a job."""

LINKED = sql("SELECT comparison_id FROM sweep_comparison_row WHERE sweep = :sweep")
LINK_COMPARISON = sql("INSERT INTO sweep_comparison_row (sweep, comparison_id) VALUES (:sweep, :comparison) ON CONFLICT DO NOTHING")
NEWEST = sql("SELECT id, revision, text FROM sweep WHERE name = :name ORDER BY revision DESC LIMIT 1")
INSERT_SWEEP = sql(
    """INSERT INTO sweep (name, revision, text, question, settings, submitted_at)
       VALUES (:name, :revision, :text, :question, :settings, :now) RETURNING id"""
)
CANCEL = sql("UPDATE job SET state = 'cancelled' WHERE id = :job")
ACTIVE = sql(
    """SELECT id, job_id, resources, state, document FROM job
       WHERE job_id IN :job_ids AND state IN ('waiting', 'running') ORDER BY id"""
).bindparams(bindparam("job_ids", expanding=True))
TIGHTEN = sql("UPDATE job SET document = :document WHERE id = :job")
PLANNED = sql(
    """SELECT DISTINCT j.id, j.state FROM job AS j JOIN sweep_job AS l ON l.job = j.id JOIN sweep AS s ON s.id = l.sweep
       WHERE s.name = :name AND j.state IN ('waiting', 'failed', 'cancelled', 'split')
         AND NOT EXISTS (SELECT 1 FROM sweep_job AS k JOIN sweep AS t ON t.id = k.sweep WHERE k.job = j.id AND t.name <> :name)"""
)
UNLINK = sql("DELETE FROM sweep_job WHERE job = :job")


def submit(  # noqa: PLR0917 - the parts of a sweep, in the order of its file
    engine: Engine,
    name: str,
    text: str,
    question: str,
    comparisons: Iterable[Asked],
    jobs: Iterable[Job | Wanted],
    settings: Mapping[str, Any] | None = None,
    since: int | None = None,
) -> int:
    """Store a sweep and queue `jobs`, the plan for whatever of its `comparisons` is not answered yet. Returns the sweep's row.

    The text of the newest revision is the same sweep again, another text is a new revision. The plan replaces what still
    waits under this name: such jobs become `cancelled` unless another sweep waits for them too. A job that is waiting or running
    already is shared, not queued again; its protocol becomes the stricter of the two. Jobs are pinned where the plan wants them,
    or where another dispatcher that is at work on the sweep has the rest of their group.

    A plan may be older than the store. Pairs that other jobs, such as the parts of one that was split, measure at this moment
    are left to those, which the sweep then waits for too. Pairs that were answered after attempt `since`
    (`overlap.newest_attempt` before the plan was made) are not queued either: whoever submits a plan makes a new one afterwards.
    """
    asked = _asked(comparisons)
    # rows are made before the transaction, in which all others wait
    rows = {key: _row(key, asked) for key in asked.keys() - _linked(engine, name, text)}
    with writing(engine) as connection:
        sweep = _sweep(connection, name, text, question, canonical(settings or {}))
        fresh = sorted(asked.keys() - set(connection.execute(LINKED, {"sweep": sweep}).scalars()))
        if fresh:
            insert_many(connection, INSERT_COMPARISON, [rows.get(key) or _row(key, asked) for key in fresh])
            insert_many(connection, LINK_COMPARISON, [{"sweep": sweep, "comparison": key} for key in fresh])
            _derive(connection, sweep)
        taken = placement.pins(connection, name, owner(), alive)
        wanted = _queued(connection, jobs, taken, overlap(connection, name, since))
        _drop_stale_plan(connection, name, wanted)
        if wanted:
            connection.execute(LINK_JOB, [{"sweep": sweep, "job": row} for row in sorted(wanted)])
    return sweep


def _derive(connection: Connection, sweep: int) -> None:
    from store.derive.speedup import derive_sweep

    derive_sweep(connection, sweep)


def _asked(comparisons: Iterable[Asked]) -> dict[str, tuple[Comparison, Mapping[str, str]]]:
    """Each comparison with its contents, by its identity."""
    found: dict[str, tuple[Comparison, Mapping[str, str]]] = {}
    for item in comparisons:
        if isinstance(item, Job):
            found.update(
                zip(item.comparison_ids(), ((comparison, item.contents) for comparison in item.comparisons()), strict=True)
            )
        else:
            comparison, contents = item if isinstance(item, tuple) else (item, {})
            found[comparison.comparison_id(contents)] = comparison, contents
    return found


def _row(key: str, asked: Mapping[str, tuple[Comparison, Mapping[str, str]]]) -> dict[str, Any]:
    return comparison_row(*asked[key], key)


def _linked(engine: Engine, name: str, text: str) -> set[str]:
    """The comparisons of the sweep of this name and text that are in the store."""
    with reading(engine) as connection:
        newest = connection.execute(NEWEST, {"name": name}).one_or_none()
        if newest is None or newest.text != text:
            return set()
        return set(connection.execute(LINKED, {"sweep": newest.id}).scalars())


def _sweep(connection: Connection, name: str, text: str, question: str, settings: str) -> int:
    """The row of the sweep: that of the newest revision if its text is the same, else a new one."""
    newest = connection.execute(NEWEST, {"name": name}).one_or_none()
    if newest is not None and newest.text == text:
        return int(newest.id)
    revision = 1 if newest is None else newest.revision + 1
    row = {"name": name, "revision": revision, "text": text, "question": question, "settings": settings, "now": time.time()}
    return int(connection.execute(INSERT_SWEEP, row).scalar_one())


def _queued(
    connection: Connection, jobs: Iterable[Job | Wanted], taken: Mapping[placement.Group, Pin], others: Overlap
) -> set[int]:
    """The rows of `jobs`: equal ones that are waiting, or are running under a protocol that will do, else new ones.

    `taken` holds the places that other dispatchers chose for groups, `others` what need not be queued.
    """
    me = owner()
    asked = _merged(jobs)
    active = _active(connection, asked)
    held, kept = set[int](), list[Wanted]()
    for key, wanted in asked.items():
        left, rows = (wanted, set[int]()) if key in active else others.rest(wanted)
        held |= rows
        kept += [] if left is None else [left]
    if kept != list(asked.values()):
        asked = _merged(kept)
        active |= _active(connection, asked.keys() - active.keys())
    placed = {key: placement.columns(wanted, taken, me) for key, wanted in asked.items()}
    shared = {key: _shared(connection, asked[key].job, rows) for key, rows in active.items()}
    waiting = [
        {**placed[key], "job": row.id}
        for key, rows in active.items()
        for row in rows
        if row.state == "waiting" and shared[key] == row.id
    ]
    if waiting:
        connection.execute(placement.PLACE_JOB, waiting)
    fresh = [(wanted.job, placed[key]) for key, wanted in asked.items() if shared.get(key) is None]
    return held.union(insert_jobs(connection, fresh), (row for row in shared.values() if row is not None))


def _merged(jobs: Iterable[Job | Wanted]) -> dict[tuple[str, str], Wanted]:
    """The jobs by identity and demand, equal ones as one under the stricter of their protocols."""
    asked: dict[tuple[str, str], Wanted] = {}
    for job in jobs:
        wanted = job if isinstance(job, Wanted) else Wanted(job)
        key = (wanted.job.job_id, wanted.resources)
        there = asked.get(key)
        both = wanted.job if there is None else _with(wanted.job, stricter(there.job.protocol, wanted.job.protocol))
        asked[key] = wanted._replace(job=both)
    return asked


def _active(connection: Connection, asked: Collection[tuple[str, str]]) -> dict[tuple[str, str], list[Row[Any]]]:
    """The rows of waiting and running jobs that equal one of those `asked` for."""
    active: dict[tuple[str, str], list[Row[Any]]] = {}
    ids = list({job_id for job_id, _ in asked})
    for start in range(0, len(ids), BATCH):
        for row in connection.execute(ACTIVE, {"job_ids": ids[start : start + BATCH]}):
            if (row.job_id, row.resources) in asked:
                active.setdefault((row.job_id, row.resources), []).append(row)
    return active


def _shared(connection: Connection, job: Job, rows: Iterable[Row[Any]]) -> int | None:
    """The first of the rows that can stand for the job, its protocol made as strict where it still waits."""
    for row in rows:
        there = Job.model_validate_json(row.document)
        if there.protocol.satisfies(job.protocol):
            return int(row.id)
        if row.state == "waiting":
            both = _with(there, stricter(there.protocol, job.protocol))
            connection.execute(TIGHTEN, {"job": row.id, "document": both.model_dump_json()})
            return int(row.id)
    return None


def _with(job: Job, protocol: Protocol) -> Job:
    return job.model_copy(update={"protocol": protocol})


def stricter(one: Protocol, other: Protocol) -> Protocol:
    """The protocol that satisfies both."""
    least = {"half_width": min(one.half_width, other.half_width)}
    amounts: dict[str, Any] = {
        "images": _most(one.images, other.images),
        "characters": _most(one.characters, other.characters),
        "tasks": tuple(dict.fromkeys((*(one.tasks or ()), *(other.tasks or ())))) or None,
        "documents": _most(*(protocol.documents for protocol in (one, other) if protocol.tasks)),
    }
    most = {name: max(value, getattr(other, name)) for name, value in one if name not in {*least, *amounts}}
    return Protocol.model_validate({**least, **most, **amounts})


def _most(*amounts: int | None) -> int | None:
    """The largest; `None` stands for all there is."""
    known = [amount for amount in amounts if amount is not None]
    return max(known, default=None) if len(known) == len(amounts) else None


def _drop_stale_plan(connection: Connection, name: str, wanted: set[int]) -> None:
    """Cancel what waits under this sweep's name and is not in its new plan; let go of what former plans left unanswered."""
    stale = [row for row in connection.execute(PLANNED, {"name": name}).all() if row.id not in wanted]
    if waiting := [{"job": row.id} for row in stale if row.state == "waiting"]:
        connection.execute(CANCEL, waiting)
    if stale:
        connection.execute(UNLINK, [{"job": row.id} for row in stale])
