"""The queue: sweeps are submitted, jobs are claimed under a lease, and given back, split, or recovered from the dead."""

import os
import socket
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, bindparam
from sqlalchemy import text as sql

from store import placement, views
from store.connection import StoreError, explained, shown, writing
from store.describing import INSERT_COMPARISON, LINK_JOB, comparison_row, insert_jobs, insert_many
from store.placement import Offer, Pin, Place, Wanted
from store.states import STATES
from sweeps.identity import canonical
from sweeps.job import Comparison, Device, Job, Protocol
from sweeps.outcome import Outcome

if TYPE_CHECKING:
    from store.recording import Incoming  # imports NumPy and the table models, which most calls do not need

LEASE_S = 60.0
"""A running job whose owner on another host has not renewed its lease for so long is taken back."""

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
NEXT = sql(
    """SELECT j.id, j.document, j.attempts FROM job AS j JOIN sweep_job AS l ON l.job = j.id
       WHERE l.sweep = :sweep AND j.state = 'waiting' AND (:device = '' OR j.device = :device)
         AND (:timing = 1 OR j.kind IN ('accuracy', 'quality'))
       ORDER BY j.id LIMIT :limit"""
)
NEXT_HERE = sql(
    """SELECT j.id, j.document, j.attempts, j.curve_group, j.resources, j.pinned_host
       FROM job AS j JOIN sweep_job AS l ON l.job = j.id
       WHERE l.sweep = :sweep AND j.state = 'waiting' AND j.device = :device AND j.resources IN :resources
         AND (j.pinned_host IS NULL OR (j.pinned_host = :host AND j.pinned_environment = :environment))
         AND (:timing = 1 OR j.kind IN ('accuracy', 'quality'))
       ORDER BY j.id LIMIT :limit"""
).bindparams(bindparam("resources", expanding=True))
LEASE = sql("UPDATE job SET state = 'running', owner = :owner, renewed_at = :now WHERE id = :job")
RENEW = sql("UPDATE job SET renewed_at = :now WHERE state = 'running' AND owner = :owner")
CANCEL = sql("UPDATE job SET state = 'cancelled' WHERE id = :job")
DOCUMENT = sql("SELECT document FROM job WHERE id = :job")
INHERIT = sql("INSERT INTO sweep_job (sweep, job) SELECT sweep, :child FROM sweep_job WHERE job = :parent")
HELD = sql("SELECT owner, max(renewed_at) AS renewed_at FROM job WHERE state = 'running' GROUP BY owner")
TAKE_BACK = sql("UPDATE job SET state = 'waiting', owner = NULL, renewed_at = NULL WHERE state = 'running' AND owner = :owner")
HOLDERS = sql(
    """SELECT j.owner, count(*) AS jobs, max(j.renewed_at) AS renewed_at FROM job AS j JOIN sweep_job AS l ON l.job = j.id
       WHERE l.sweep = :sweep AND j.state = 'running' AND j.owner <> :owner GROUP BY j.owner ORDER BY j.owner"""
)
SWEEP_NAME = sql("SELECT name FROM sweep WHERE id = :sweep")
COUNTS = sql(
    """SELECT j.state, count(*) AS jobs FROM job AS j JOIN sweep_job AS l ON l.job = j.id
       WHERE l.sweep = :sweep GROUP BY j.state"""
)
ANSWERS = sql(
    f"""SELECT count(*) AS comparisons, coalesce(sum(measured), 0) AS measured, coalesce(sum(failed), 0) AS failed FROM (
          SELECT coalesce(max(r.measured), 0) AS measured,
                 CASE WHEN max(r.measured) = 0 AND max(r.failure) IS NOT NULL THEN 1 ELSE 0 END AS failed
          FROM sweep_comparison_row AS l LEFT JOIN ({views.ANSWERS}) AS r ON r.comparison_id = l.comparison_id
          WHERE l.sweep = :sweep GROUP BY l.comparison_id) AS answers"""  # noqa: S608 - made of constants
)
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


class QueuedJob(NamedTuple):
    """A job in the queue."""

    row: int
    job: Job
    attempts: int
    """Executions recorded so far."""
    sweep: int


class Holder(NamedTuple):
    """Another dispatcher that measures jobs of a sweep."""

    owner: str
    jobs: int
    silent_s: float
    """Since it last renewed its lease."""

    def __str__(self) -> str:
        host, pid, _ = self.owner.rsplit(":", 2)
        jobs = "1 job is" if self.jobs == 1 else f"{self.jobs} jobs are"
        return f"{jobs} being measured by process {pid} on {host} (last heard of {self.silent_s:.0f} s ago)"


class Progress(NamedTuple):
    """How far a sweep is."""

    sweep: str
    counts: dict[str, int]
    """Jobs by state, every state included."""
    comparisons: int
    measured: int
    """Comparisons with an answer that is no failure, in whatever environment."""
    failed: int
    """Comparisons with nothing but failures."""

    @property
    def unfinished(self) -> int:
        """Jobs that are waiting or running."""
        return self.counts["waiting"] + self.counts["running"]


def submit(  # noqa: PLR0917 - the parts of a sweep, in the order of its file
    engine: Engine,
    name: str,
    text: str,
    question: str,
    comparisons: Iterable[Asked],
    jobs: Iterable[Job | Wanted],
    settings: Mapping[str, Any] | None = None,
) -> int:
    """Store a sweep and queue `jobs`, the plan for whatever of its `comparisons` is not answered yet. Returns the sweep's row.

    The text of the newest revision is the same sweep again, another text is a new revision. The plan replaces what still
    waits under this name: such jobs become `cancelled` unless another sweep waits for them too. A job that is waiting or running
    already is shared, not queued again; its protocol becomes the stricter of the two. Jobs are pinned where the plan wants them,
    or where another dispatcher that is at work on the sweep has the rest of their group.
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
        wanted = _queued(connection, jobs, placement.pins(connection, name, owner(), _alive))
        _drop_stale_plan(connection, name, wanted)
        if wanted:
            connection.execute(LINK_JOB, [{"sweep": sweep, "job": row} for row in sorted(wanted)])
    return sweep


def owner() -> str:
    """This process as an owner of leases: `host:pid:start`, where `start` tells it from a later process with the same pid."""
    return f"{_host()}:{os.getpid()}:{_started(os.getpid())}"


def claim(
    engine: Engine,
    sweep_id: int,
    *,
    owner: str,
    device: Device | None = None,
    offer: Offer | None = None,
    limit: int = 1,
    timing: bool = True,
) -> list[QueuedJob]:
    """Take up to `limit` waiting jobs of the sweep and mark them running, oldest first.

    With an `offer` only such as may run there, and what waits of their groups is pinned there, so that no other place
    measures a part of a curve; else those for one class of device, or any. Without `timing` none that times anything.
    """
    with writing(engine) as connection:
        asked = {"sweep": sweep_id, "limit": limit, "timing": int(timing)}
        if offer is None:
            found = connection.execute(NEXT, {**asked, "device": device or ""}).all()
        else:
            here = {"device": offer.device, "resources": list(offer.resources), **offer.place._asdict()}
            found = connection.execute(NEXT_HERE, {**asked, **here}).all()
            placement.pin_groups(connection, sweep_id, found, offer.place, owner)
        if found:
            now = time.time()
            connection.execute(LEASE, [{"job": row.id, "owner": owner, "now": now} for row in found])
    return [QueuedJob(row.id, Job.model_validate_json(row.document), row.attempts, sweep_id) for row in found]


def renew(engine: Engine, owner: str) -> int:
    """Show that `owner` is alive, so that its leases and pins hold. Returns how many leases it holds."""
    with writing(engine) as connection:
        connection.execute(placement.RENEW_PINS, {"owner": owner, "now": time.time()})
        return int(connection.execute(RENEW, {"owner": owner, "now": time.time()}).rowcount)


def release(engine: Engine, row: int, owner: str, outcome: Outcome | None = None) -> None:
    """Give a claimed job back to the queue; an `outcome` is kept as an attempt that answers nothing, because it is tried again.

    Raises `LeaseError` if `owner` does not hold the lease.
    """
    attempt = _incoming(outcome)
    with writing(engine) as connection:
        _give_up(connection, row, owner, "waiting", attempt)


def split(engine: Engine, row: int, owner: str, parts: Sequence[Job], outcome: Outcome | None = None) -> list[int]:
    """Replace a claimed job by `parts`, which wait in its place, to find the guilty arm. Returns their rows.

    An `outcome` is kept as an attempt of the whole that answers nothing. Raises `LeaseError` if `owner` does not hold the
    lease, and `StoreError` if the parts do not ask exactly what the whole asks.
    """
    attempt = _incoming(outcome)
    with writing(engine) as connection:
        _give_up(connection, row, owner, "split", attempt)
        whole = Job.model_validate_json(connection.execute(DOCUMENT, {"job": row}).scalar_one())
        if sorted(whole.comparison_ids()) != sorted(asked for part in parts for asked in part.comparison_ids()):
            raise StoreError(
                f"job {row} cannot be split: the {len(parts)} parts must ask each of its {len(whole.pairs)} questions once"
            )
        placed = connection.execute(placement.PLACE_OF, {"job": row}).one()._asdict()
        children = insert_jobs(connection, [(part, placed) for part in parts], parent=row)
        for child in children:
            connection.execute(INHERIT, {"parent": row, "child": child})
    return children


def recover(engine: Engine) -> int:
    """Put running jobs whose owner is dead back to waiting. Returns how many.

    An owner on this host is dead if no such process runs; one elsewhere if its lease was not renewed for `LEASE_S`.
    """
    with writing(engine) as connection:
        held = connection.execute(HELD).all()
        dead = [row.owner for row in held if not _alive(row.owner, row.renewed_at)]
        return sum(connection.execute(TAKE_BACK, {"owner": owner}).rowcount for owner in dead)


def waiting(engine: Engine, sweep_id: int, offers: Collection[Offer]) -> bool:
    """Whether a job of the sweep waits that one of the offers could run."""
    with explained(shown(engine.url)), engine.connect() as connection:
        return placement.claimable(connection, sweep_id, offers)


def demands(engine: Engine, sweep_id: int) -> set[str]:
    """What waiting jobs of the sweep ask of a node's labels, as in `job.resources`."""
    with explained(shown(engine.url)), engine.connect() as connection:
        return placement.demands(connection, sweep_id)


def pins(engine: Engine, name: str) -> dict[placement.Group, Place]:
    """The places that other live dispatchers have chosen for groups of jobs of the sweep called `name`."""
    with explained(shown(engine.url)), engine.connect() as connection:
        return {group: pin.place for group, pin in placement.pins(connection, name, owner(), _alive).items()}


def held(engine: Engine, sweep_id: int) -> list[Holder]:
    """The dispatchers, other than this process, that jobs of the sweep are running for, or that have pinned such as wait."""
    now = time.time()
    holders: dict[str, Holder] = {}
    with explained(shown(engine.url)), engine.connect() as connection:
        for row in connection.execute(HOLDERS, {"sweep": sweep_id, "owner": owner()}):
            holders[row.owner] = Holder(row.owner, row.jobs, max(0.0, now - row.renewed_at))
        name = connection.execute(SWEEP_NAME, {"sweep": sweep_id}).scalar_one()
        for pin in placement.pins(connection, name, owner(), _alive).values():
            holders.setdefault(pin.owner, Holder(pin.owner, pin.jobs, max(0.0, now - pin.renewed_at)))
    return list(holders.values())


def progress(engine: Engine, sweep_id: int) -> Progress:
    """How far the sweep in row `sweep_id` is."""
    with engine.connect() as connection:
        name = connection.execute(SWEEP_NAME, {"sweep": sweep_id}).scalar_one_or_none()
        if name is None:
            raise StoreError(f"there is no sweep {sweep_id} in the store")
        counts = dict.fromkeys(STATES, 0) | {row.state: row.jobs for row in connection.execute(COUNTS, {"sweep": sweep_id})}
        answers = connection.execute(ANSWERS, {"sweep": sweep_id}).one()
    return Progress(name, counts, answers.comparisons, answers.measured, answers.failed)


def _give_up(connection: Connection, row: int, owner: str, state: str, attempt: "Incoming | None") -> None:
    """End the lease without an answer; an attempt is kept all the same."""
    from store.recording import end_lease

    n = end_lease(connection, row, owner, state, attempt)
    if attempt is not None:
        attempt.insert(connection, row, n, "measured")


def _incoming(outcome: Outcome | None) -> "Incoming | None":
    from store.recording import Incoming

    return None if outcome is None else Incoming(outcome)


def _derive(connection: Connection, sweep: int) -> None:
    from store.analysis import derive_sweep

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
    with explained(shown(engine.url)), engine.connect() as connection:
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


def _queued(connection: Connection, jobs: Iterable[Job | Wanted], taken: Mapping[placement.Group, Pin]) -> set[int]:
    """The rows of `jobs`: equal ones that are waiting, or are running under a protocol that will do, else new ones.

    `taken` holds the places that other dispatchers chose for groups.
    """
    me = owner()
    asked: dict[tuple[str, str], Wanted] = {}
    for job in jobs:
        wanted = job if isinstance(job, Wanted) else Wanted(job)
        key = (wanted.job.job_id, wanted.resources)
        there = asked.get(key)
        both = wanted.job if there is None else _with(wanted.job, stricter(there.job.protocol, wanted.job.protocol))
        asked[key] = wanted._replace(job=both)
    active: dict[tuple[str, str], list[Row[Any]]] = {}
    ids = list({job_id for job_id, _ in asked})
    for start in range(0, len(ids), BATCH):
        for row in connection.execute(ACTIVE, {"job_ids": ids[start : start + BATCH]}):
            if (row.job_id, row.resources) in asked:
                active.setdefault((row.job_id, row.resources), []).append(row)
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
    return {row for row in shared.values() if row is not None}.union(insert_jobs(connection, fresh))


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
    told = [amount for amount in amounts if amount is not None]
    return max(told, default=None) if len(told) == len(amounts) else None


def _drop_stale_plan(connection: Connection, name: str, wanted: set[int]) -> None:
    """Cancel what waits under this sweep's name and is not in its new plan; let go of what former plans left unanswered."""
    stale = [row for row in connection.execute(PLANNED, {"name": name}).all() if row.id not in wanted]
    if waiting := [{"job": row.id} for row in stale if row.state == "waiting"]:
        connection.execute(CANCEL, waiting)
    if stale:
        connection.execute(UNLINK, [{"job": row.id} for row in stale])


def ended(owner: str) -> bool:
    """Whether the process that `owner` names is known to have ended: it ran on this host, and does no more."""
    host, _, process = owner.partition(":")
    pid, _, started = process.partition(":")
    return host == _host() and pid.isdecimal() and _started(int(pid)) != started


def _alive(owner: str, renewed_at: float) -> bool:
    if owner.partition(":")[0] != _host():
        return time.time() - renewed_at <= LEASE_S
    return not ended(owner)


def _host() -> str:
    """The host's name, and where process ids are private to a container its name space: a pid means something only there."""
    try:
        space = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{space}"


def _started(pid: int) -> str:
    """When the process began (clock ticks since boot, from /proc); empty if it has ended, even if nobody has reaped it.

    Elsewhere than Linux only that it runs.
    """
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in {"Z", "X"} else rest[18]
    except OSError:
        pass
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "running"
