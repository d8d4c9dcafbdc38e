"""The queue: jobs are claimed under a lease, and given back, split, or recovered from owners that died."""

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, Engine, bindparam
from sqlalchemy import text as sql

from store import placement
from store.errors import StoreError
from store.owners import alive, owner
from store.placement import Offer, Place
from store.row_mapping import insert_jobs
from store.tables.states import STATES
from store.transactions import reading, writing
from store.views import public
from sweeps.job import Device, Job, Occupation
from sweeps.outcome import Outcome

if TYPE_CHECKING:
    from store.record import AttemptWriter  # imports NumPy and the table models, which most calls do not need


NEXT = sql(
    """SELECT j.id, j.document, j.attempts FROM job AS j JOIN sweep_job AS l ON l.job = j.id
       WHERE l.sweep = :sweep AND j.state = 'waiting' AND (:device = '' OR j.device = :device)
         AND (:beside = '' OR (:beside = 'shared' AND j.kind IN ('accuracy', 'quality'))
              OR (:beside = 'device' AND j.exclusive = 'device'))
       ORDER BY j.id LIMIT :limit"""
)
NEXT_HERE = sql(
    """SELECT j.id, j.document, j.attempts, j.curve_group, j.resources, j.pinned_host
       FROM job AS j JOIN sweep_job AS l ON l.job = j.id
       WHERE l.sweep = :sweep AND j.state = 'waiting' AND j.device = :device AND j.resources IN :resources
         AND (j.pinned_host IS NULL OR (j.pinned_host = :host AND j.pinned_environment = :environment))
         AND (:beside = '' OR (:beside = 'shared' AND j.kind IN ('accuracy', 'quality'))
              OR (:beside = 'device' AND j.exclusive = 'device'))
       ORDER BY j.id LIMIT :limit"""
).bindparams(bindparam("resources", expanding=True))
LEASE = sql("UPDATE job SET state = 'running', owner = :owner, renewed_at = :now WHERE id = :job")
RENEW = sql("UPDATE job SET renewed_at = :now WHERE state = 'running' AND owner = :owner")
DOCUMENT = sql("SELECT document FROM job WHERE id = :job")
INHERIT = sql("INSERT INTO sweep_job (sweep, job) SELECT sweep, :child FROM sweep_job WHERE job = :parent")
HELD = sql("SELECT owner, max(renewed_at) AS renewed_at FROM job WHERE state = 'running' GROUP BY owner")
TAKE_BACK = sql("UPDATE job SET state = 'waiting', owner = NULL, renewed_at = NULL WHERE state = 'running' AND owner = :owner")
HOLDERS = sql(
    """SELECT j.owner, count(*) AS jobs, max(j.renewed_at) AS renewed_at FROM job AS j JOIN sweep_job AS l ON l.job = j.id
       WHERE l.sweep = :sweep AND j.state = 'running' AND j.owner <> :owner GROUP BY j.owner ORDER BY j.owner"""
)
HELD_ELSEWHERE = sql(
    """SELECT j.document FROM job AS j JOIN sweep_job AS l ON l.job = j.id
       WHERE l.sweep = :sweep AND j.state = 'running' AND j.owner <> :owner ORDER BY j.id"""
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
          FROM sweep_comparison_row AS l LEFT JOIN ({public.ANSWERS}) AS r ON r.comparison_id = l.comparison_id
          WHERE l.sweep = :sweep GROUP BY l.comparison_id) AS answers"""  # noqa: S608 - made of constants
)


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


def claim(
    engine: Engine,
    sweep_id: int,
    *,
    owner: str,
    device: Device | None = None,
    offer: Offer | None = None,
    limit: int = 1,
    beside: Occupation | None = None,
) -> list[QueuedJob]:
    """Take up to `limit` waiting jobs of the sweep and mark them running, oldest first.

    With an `offer` only such as may run there, and what waits of their groups is pinned there, so that no other place
    measures a part of a curve; else those for one class of device, or any. `beside` bounds them to what may run
    beside jobs of that occupation.
    """
    with writing(engine) as connection:
        asked = {"sweep": sweep_id, "limit": limit, "beside": beside or ""}
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
    """Replace a claimed job by `parts`, which wait in its place, to find the arm at fault. Returns their rows.

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
        dead = [row.owner for row in held if not alive(row.owner, row.renewed_at)]
        return sum(connection.execute(TAKE_BACK, {"owner": owner}).rowcount for owner in dead)


def waiting(engine: Engine, sweep_id: int, offers: Collection[Offer]) -> bool:
    """Whether a job of the sweep waits that one of the offers could run."""
    with reading(engine) as connection:
        return placement.claimable(connection, sweep_id, offers)


def demands(engine: Engine, sweep_id: int) -> set[str]:
    """What waiting jobs of the sweep ask of a node's labels, as in `job.resources`."""
    with reading(engine) as connection:
        return placement.demands(connection, sweep_id)


def pins(engine: Engine, name: str) -> dict[placement.Group, Place]:
    """The places that other live dispatchers have chosen for groups of jobs of the sweep called `name`."""
    with reading(engine) as connection:
        return {group: pin.place for group, pin in placement.pins(connection, name, owner(), alive).items()}


def held(engine: Engine, sweep_id: int) -> list[Holder]:
    """The dispatchers, other than this process, that jobs of the sweep are running for, or that have pinned such as wait."""
    now = time.time()
    holders: dict[str, Holder] = {}
    with reading(engine) as connection:
        for row in connection.execute(HOLDERS, {"sweep": sweep_id, "owner": owner()}):
            holders[row.owner] = Holder(row.owner, row.jobs, max(0.0, now - row.renewed_at))
        name = connection.execute(SWEEP_NAME, {"sweep": sweep_id}).scalar_one()
        for pin in placement.pins(connection, name, owner(), alive).values():
            holders.setdefault(pin.owner, Holder(pin.owner, pin.jobs, max(0.0, now - pin.renewed_at)))
    return list(holders.values())


def held_jobs(engine: Engine, sweep_id: int) -> list[Job]:
    """The jobs of the sweep that run for other dispatchers than this process."""
    with reading(engine) as connection:
        rows = connection.execute(HELD_ELSEWHERE, {"sweep": sweep_id, "owner": owner()})
        return [Job.model_validate_json(row.document) for row in rows]


def progress(engine: Engine, sweep_id: int) -> Progress:
    """How far the sweep in row `sweep_id` is."""
    with engine.connect() as connection:
        name = connection.execute(SWEEP_NAME, {"sweep": sweep_id}).scalar_one_or_none()
        if name is None:
            raise StoreError(f"there is no sweep {sweep_id} in the store")
        counts = dict.fromkeys(STATES, 0) | {row.state: row.jobs for row in connection.execute(COUNTS, {"sweep": sweep_id})}
        answers = connection.execute(ANSWERS, {"sweep": sweep_id}).one()
    return Progress(name, counts, answers.comparisons, answers.measured, answers.failed)


def _give_up(connection: Connection, row: int, owner: str, state: str, attempt: "AttemptWriter | None") -> None:
    """End the lease without an answer; an attempt is kept all the same."""
    from store.record import end_lease

    n = end_lease(connection, row, owner, state, attempt)
    if attempt is not None:
        attempt.insert(connection, row, n, "measured")


def _incoming(outcome: Outcome | None) -> "AttemptWriter | None":
    from store.record import AttemptWriter

    return None if outcome is None else AttemptWriter(outcome)
