"""Submission: a sweep and the jobs for what is not answered yet, put into the queue, without what
other jobs measure; labels of arms.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, and_, bindparam, delete, func, or_, select, update

from store.read.answers import Round
from store.rows import placement
from store.rows.owners import is_alive, owner
from store.rows.placement import Pin, PlannedWork, placement_columns
from store.rows.row_mapping import comparison_row, insert_jobs, insert_new, insert_row, link_jobs
from store.rows.transactions import (
    database_time,
    fetch,
    fetch_values,
    reading,
    retried,
    rows_in,
    writing,
)
from store.schema.tables import (
    ARM_LABEL,
    ATTEMPT,
    COMPARISON,
    FAILURE,
    JOB,
    PAIR,
    SWEEP,
    SWEEP_COMPARISON,
    SWEEP_JOB,
    named,
)
from sweeps.model.identity import canonical
from sweeps.model.job import Comparison, Job, Protocol
from sweeps.model.outcome import ANSWERING_FAILURES


@retried
def store_arm_labels(engine: Engine, labels: Mapping[str, str]) -> None:
    """Store the label of each `arm_id`; nothing is written where they are stored already."""
    known = {row.arm_id: row.label for row in fetch(engine, select(ARM_LABEL))}
    changed = {arm: label for arm, label in labels.items() if known.get(arm) != label}
    if not changed:
        return
    with writing(engine) as connection:
        connection.execute(
            delete(ARM_LABEL).where(ARM_LABEL.c.arm_id == bindparam("arm")),
            [{"arm": arm} for arm in changed],
        )
        insert_new(
            connection,
            ARM_LABEL,
            [{"arm_id": arm, "label": label} for arm, label in changed.items()],
        )


def label_stored_arms(engine: Engine, label: Callable[[str, str], str]) -> None:
    """Store the label of every arm in the store, made by `label` from its method and its canonical
    parameters.
    """
    arms = select(COMPARISON.c.arm_id, COMPARISON.c.method, COMPARISON.c.params).distinct()
    labels = {row.arm_id: label(row.method, row.params) for row in fetch(engine, arms)}
    store_arm_labels(engine, labels)


class Holding(NamedTuple):
    """A job in the queue that measures a round of a comparison."""

    row: int
    resources: str
    protocol: Protocol


class Overlap(NamedTuple):
    """What need not be queued for a plan."""

    answered: set[Round]
    held: Mapping[Round, list[Holding]]

    def rest(self, wanted: PlannedWork) -> tuple[PlannedWork | None, set[int]]:
        """`wanted` without what need not be queued, `None` if nothing is left, and the rows of the
        jobs that stand for it.
        """
        job = wanted.job
        if not (self.answered or self.held) or not job.pairs:
            return wanted, set()
        left, rows = [], set[int]()
        for pair, comparison_id in zip(job.pairs, job.comparison_ids(), strict=True):
            key = (comparison_id, job.round)
            holder = next(
                (each for each in self.held.get(key, ()) if _stands_for(each, wanted)), None
            )
            if holder is not None:
                rows.add(holder.row)
            elif key not in self.answered:
                left.append(pair)
        if len(left) == len(job.pairs):
            return wanted, rows
        return (wanted._replace(job=job.only(left)) if left else None), rows


def newest_attempt(engine: Engine) -> int:
    """The newest execution in the store, to be read before a plan is made; 0 if there is none."""
    return fetch_values(engine, select(func.max(ATTEMPT.c.id)))[0] or 0


def find_overlap(connection: Connection, sweep: str, since: int | None) -> Overlap:
    """What a plan for the sweep of that name need not queue; `since` is the newest attempt that the
    plan took into account.

    Without `since` nothing counts as answered meanwhile. Attempts are numbered in the order in
    which they are stored, because there is one writer at a time.
    """
    answered = set[Round]()
    if since is not None:
        recorded = connection.execute(
            select(PAIR.c.comparison_id, ATTEMPT.c.round, FAILURE.c.reason)
            .join(ATTEMPT, ATTEMPT.c.id == PAIR.c.attempt)
            .outerjoin(FAILURE, FAILURE.c.id == PAIR.c.failure)
            .where(ATTEMPT.c.id > since)
        )
        answered = {
            (row.comparison_id, row.round)
            for row in recorded
            if row.reason is None or row.reason in ANSWERING_FAILURES
        }
    # A new plan does not replace these. Of jobs that wait only parts of split ones can overlap it
    # by its age.
    linked_elsewhere = (
        select(SWEEP_JOB.c.job)
        .join(SWEEP)
        .where(SWEEP_JOB.c.job == JOB.c.id, SWEEP.c.name != sweep)
    )
    part = and_(JOB.c.state == "waiting", JOB.c.parent.is_not(None), linked_elsewhere.exists())
    jobs = connection.execute(
        select(JOB.c.id, JOB.c.resources, JOB.c.payload)
        .where(or_(JOB.c.state == "running", part))
        .order_by(JOB.c.id)
    )
    held: dict[Round, list[Holding]] = defaultdict(list)
    for row in jobs:
        job = Job.model_validate_json(row.payload)
        for comparison_id in job.comparison_ids():
            held[comparison_id, job.round].append(Holding(row.id, row.resources, job.protocol))
    return Overlap(answered, held)


def _stands_for(holding: Holding, wanted: PlannedWork) -> bool:
    return holding.resources == wanted.resources and holding.protocol.satisfies(wanted.job.protocol)


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


@retried
def submit_sweep(
    engine: Engine,
    new: NewSweep,
    comparisons: Collection[Requested],
    jobs: Collection[Job | PlannedWork],
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
        if unlinked := sorted(requested.keys() - linked_comparisons(connection, sweep)):
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
            # imports NumPy and SciPy, which a plan submitted again does not need
            from store.derive.break_evens import derive_sweep
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
    if newest is None:
        return None, 0
    return newest.id if newest.text == new.text else None, newest.revision


def linked_comparisons(connection: Connection, sweep: int) -> set[str]:
    """The comparisons of the sweep in that row."""
    linked = select(SWEEP_COMPARISON.c.comparison_id).where(SWEEP_COMPARISON.c.sweep == sweep)
    return set(connection.execute(linked).scalars())


@retried
def _linked_to_text(engine: Engine, new: NewSweep) -> set[str]:
    """The comparisons of the sweep of this name and text that are in the store."""
    with reading(engine) as connection:
        sweep, _ = _find(connection, new)
        return set() if sweep is None else linked_comparisons(connection, sweep)


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
    of = JOB.c.state.in_(("waiting", "running"))
    jobs = select(*named(JOB, "id job_id resources state payload")).where(of).order_by(JOB.c.id)
    for row in rows_in(connection, jobs, JOB.c.job_id, {job_id for job_id, _ in keys}):
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
    linked = select(SWEEP_JOB.c.job).join(SWEEP)
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
    cancelled = update(JOB).where(JOB.c.id == bindparam("row")).values(state="cancelled")
    if waiting := [{"row": row.id} for row in stale if row.state == "waiting"]:
        connection.execute(cancelled, waiting)
    unlinked = delete(SWEEP_JOB).where(SWEEP_JOB.c.job == bindparam("row"))
    if stale:
        connection.execute(unlinked, [{"row": row.id} for row in stale])
