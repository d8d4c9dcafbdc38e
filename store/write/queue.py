"""The queue: jobs are claimed under a lease, and given back, split, or recovered from owners that
died.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    Connection,
    Engine,
    Row,
    Select,
    and_,
    bindparam,
    func,
    or_,
    select,
    update,
)

from store.errors import StoreError
from store.open.engine import connect, connect_readonly, disposing
from store.rows import placement
from store.rows.owners import is_alive, owner
from store.rows.placement import Capacity, Place
from store.rows.row_mapping import insert_jobs, link_jobs
from store.rows.transactions import database_time, fetch, fetch_values, reading, retried, writing
from store.schema.tables import JOB, PANEL_PROGRESS, PENDING, STATES, SWEEP, SWEEP_JOB, named
from sweeps.model.condition import Device
from sweeps.model.job import Job, Occupation
from sweeps.model.kinds import KINDS
from sweeps.model.outcome import Outcome

if TYPE_CHECKING:
    # imports NumPy and SciPy, which most calls do not need
    from store.write.record import (
        AttemptWriter,
    )

RUNNING, WAITING = JOB.c.state == "running", JOB.c.state == "waiting"


class QueuedJob(NamedTuple):
    """A job in the queue."""

    row: int
    job: Job
    attempts: int
    """Executions recorded so far."""
    sweep: int


class LeaseHolder(NamedTuple):
    """Another dispatcher that measures jobs of a sweep."""

    owner: str
    jobs: int
    silent_s: float
    """Since it last renewed its lease."""

    def __str__(self) -> str:
        host, pid, _ = self.owner.rsplit(":", 2)
        jobs = "1 job is" if self.jobs == 1 else f"{self.jobs} jobs are"
        return (
            f"{jobs} being measured by process {pid} on {host} (last heard of {self.silent_s:.0f} s"
            " ago)"
        )


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


@retried
def claim(
    engine: Engine,
    sweep_id: int,
    *,
    owner: str,
    offer: Capacity | None = None,
    limit: int = 1,
    beside: Occupation | None = None,
) -> list[QueuedJob]:
    """Take up to `limit` waiting jobs of the sweep and mark them running, oldest first.

    With an `offer` only such as may run there, and what waits of their groups is pinned there, so
    that no other place measures a part of a curve. `beside` bounds them to what may run beside jobs
    of that occupation.
    """
    of: dict[str, Any] = {"sweep": sweep_id, "most": limit}
    if offer is not None:
        of |= {**offer.place._asdict(), "device": offer.device, "resources": list(offer.resources)}
    with writing(engine) as connection:
        found = connection.execute(_claimable(beside, offered=offer is not None), of).all()
        now = database_time(connection)
        if offer is not None:
            placement.pin_groups(
                connection, sweep_id, found, placement.Pin(offer.place, owner, renewed_at=now)
            )
        if found:
            rows = [row.id for row in found]
            connection.execute(_LEASE, {"rows": rows, "holder": owner, "now": now})
    return [
        QueuedJob(row.id, Job.model_validate_json(row.payload), row.attempts, sweep_id)
        for row in found
    ]


@lru_cache(maxsize=8)
def _claimable(beside: Occupation | None, *, offered: bool) -> Select[Any]:
    """What `claim` may take; made once, since that takes longer than to execute it."""
    query = _jobs_of(bindparam("sweep")).where(WAITING).order_by(JOB.c.id).limit(bindparam("most"))
    if beside == "shared":
        query = query.where(JOB.c.kind.not_in([kind for kind, spec in KINDS.items() if spec.timed]))
    elif beside == "device":
        query = query.where(JOB.c.exclusive == "device")
    if offered:
        here = and_(
            JOB.c.pinned_host == bindparam("host"),
            JOB.c.pinned_environment == bindparam("environment"),
        )
        query = query.where(
            JOB.c.device == bindparam("device"),
            JOB.c.resources.in_(bindparam("resources", expanding=True)),
            or_(JOB.c.pinned_host.is_(None), here),
        )
    return query


_LEASE = (
    update(JOB)
    .where(JOB.c.id.in_(bindparam("rows", expanding=True)))
    .values(state="running", owner=bindparam("holder"), renewed_at=bindparam("now"))
)


@retried
def renew(engine: Engine, owner: str) -> int:
    """Show that `owner` is alive, so that its leases and pins hold. Returns how many leases it
    holds.
    """
    with writing(engine) as connection:
        now = update(JOB).values(renewed_at=database_time(connection))
        connection.execute(now.where(WAITING, JOB.c.pinned_by == owner))
        return connection.execute(now.where(RUNNING, JOB.c.owner == owner)).rowcount


@retried
def release(engine: Engine, row: int, owner: str, outcome: Outcome | None = None) -> None:
    """Give a claimed job back to the queue; an `outcome` is kept as an attempt that answers
    nothing, because it is tried again.

    Raises `LeaseError` if `owner` does not hold the lease.
    """
    attempt = _attempt(outcome)
    with writing(engine) as connection:
        _give_up(connection, row, owner, "waiting", attempt)


@retried
def split(
    engine: Engine, row: int, owner: str, parts: Sequence[Job], outcome: Outcome | None = None
) -> list[int]:
    """Replace a claimed job by `parts`, which wait in its place, to isolate the failing arm.
    Returns their rows.

    An `outcome` is kept as an attempt of the whole that answers nothing. Raises `LeaseError` if
    `owner` does not hold the lease, and `StoreError` if the parts do not request exactly the
    comparisons of the whole.
    """
    attempt = _attempt(outcome)
    with writing(engine) as connection:
        _give_up(connection, row, owner, "split", attempt)
        found = connection.execute(
            select(JOB.c.payload, *placement.PLACEMENT_COLUMNS).where(JOB.c.id == row)
        ).one()
        whole = Job.model_validate_json(found.payload)
        if sorted(whole.comparison_ids()) != sorted(
            comparison_id for part in parts for comparison_id in part.comparison_ids()
        ):
            raise StoreError(
                f"job {row} cannot be split: the {len(parts)} parts must request each of its"
                f" {len(whole.pairs)} comparisons once"
            )
        placed = {column.key: getattr(found, column.key) for column in placement.PLACEMENT_COLUMNS}
        children = insert_jobs(connection, [(part, placed) for part in parts], parent=row)
        linked = select(SWEEP_JOB.c.sweep).where(SWEEP_JOB.c.job == row)
        for sweep in connection.execute(linked).scalars().all():
            link_jobs(connection, sweep, children)
    return children


@retried
def recover(engine: Engine) -> int:
    """Put running jobs whose owner is dead back to waiting. Returns how many.

    An owner on this host is dead if no such process runs; one elsewhere if its lease was not
    renewed for `LEASE_S`.
    """
    leases = select(JOB.c.owner, func.max(JOB.c.renewed_at).label("renewed_at")).where(RUNNING)
    with writing(engine) as connection:
        held = connection.execute(leases.group_by(JOB.c.owner)).all()
        now = database_time(connection)
        dead = [row.owner for row in held if not is_alive(row.owner, now - row.renewed_at)]
        orphaned = update(JOB).where(RUNNING, JOB.c.owner.in_(dead))
        again = orphaned.values(state="waiting", owner=None, renewed_at=None)
        return connection.execute(again).rowcount if dead else 0


def lacks_curves(engine: Engine) -> bool:
    """Whether outcomes were recorded whose curves are still to be derived."""
    left = select(PENDING.c.id).where(PENDING.c.analysis == "").limit(1)
    return bool(fetch_values(engine, left))


def derive_left_over(engine: Engine) -> None:
    """Derive the curves of outcomes that were recorded without, by this or a killed dispatcher."""
    if lacks_curves(engine):
        from store.write.record import derive_pending

        derive_pending(engine)


def derive_before_reading(db: str | None) -> str | None:
    """The store itself, once the curves that a killed dispatcher left are derived; one that cannot
    be read is left to whoever opens it.
    """
    try:
        with disposing(connect_readonly(db)) as engine:
            lacking = lacks_curves(engine)
    except StoreError:
        return db
    if lacking:
        with disposing(connect(db)) as engine:
            derive_left_over(engine)
    return db


def waiting(engine: Engine, sweep_id: int, offers: Collection[Capacity]) -> bool:
    """Whether a job of the sweep waits that one of the offers could run."""
    rows = _waiting(engine, sweep_id)
    return any(
        (row.device == offer.device and row.resources in offer.resources)
        and (row.pinned_host is None or (row.pinned_environment, row.pinned_host) == offer.place)
        for row in rows
        for offer in offers
    )


def waiting_devices(engine: Engine, sweep_id: int) -> set[Device]:
    """The classes of device that waiting jobs of the sweep need."""
    return {row.device for row in _waiting(engine, sweep_id)}


def demands(engine: Engine, sweep_id: int) -> set[str]:
    """The labels that waiting jobs of the sweep demand of a node, as in `job.resources`."""
    return {row.resources for row in _waiting(engine, sweep_id)}


@retried
def pins(engine: Engine, name: str) -> dict[placement.Group, Place]:
    """The places that other live dispatchers have chosen for groups of jobs of the sweep called
    `name`.
    """
    with reading(engine) as connection:
        return {
            group: pin.place
            for group, pin in placement.live_pins(connection, name, owner(), is_alive).items()
        }


@retried
def held(engine: Engine, sweep_id: int) -> list[LeaseHolder]:
    """The dispatchers, other than this process, that jobs of the sweep are running for, or that
    have pinned such as wait.
    """
    me = owner()
    leases = (
        select(
            JOB.c.owner, func.count().label("jobs"), func.max(JOB.c.renewed_at).label("renewed_at")
        )
        .join(SWEEP_JOB)
        .where(SWEEP_JOB.c.sweep == sweep_id, RUNNING, JOB.c.owner != me)
        .group_by(JOB.c.owner)
        .order_by(JOB.c.owner)
    )
    holders: dict[str, LeaseHolder] = {}
    with reading(engine) as connection:
        now = database_time(connection)
        for row in connection.execute(leases):
            holders[row.owner] = LeaseHolder(row.owner, row.jobs, max(0.0, now - row.renewed_at))
        for pin in placement.live_pins(
            connection, _sweep_name(connection, sweep_id), me, is_alive
        ).values():
            holders.setdefault(
                pin.owner, LeaseHolder(pin.owner, pin.jobs, max(0.0, now - pin.renewed_at))
            )
    return list(holders.values())


def held_jobs(engine: Engine, sweep_id: int) -> list[Job]:
    """The jobs of the sweep that run for other dispatchers than this process."""
    query = _jobs_of(sweep_id).where(RUNNING, JOB.c.owner != owner()).order_by(JOB.c.id)
    return [Job.model_validate_json(row.payload) for row in fetch(engine, query)]


@retried
def progress(engine: Engine, sweep_id: int) -> Progress:
    """How far the sweep in row `sweep_id` is. Raises `StoreError` if there is none."""
    states = (
        select(JOB.c.state, func.count().label("jobs"))
        .join(SWEEP_JOB)
        .where(SWEEP_JOB.c.sweep == sweep_id)
        .group_by(JOB.c.state)
    )
    counted = named(PANEL_PROGRESS, "comparisons measured failures")
    totals = select(*(func.coalesce(func.sum(each), 0) for each in counted)).where(
        PANEL_PROGRESS.c.sweep == sweep_id
    )
    with reading(engine) as connection:
        name = _sweep_name(connection, sweep_id)
        counts = dict.fromkeys(STATES, 0) | {
            row.state: row.jobs for row in connection.execute(states)
        }
        return Progress(name, counts, *connection.execute(totals).one())


def _jobs_of(sweep_id: int | BindParameter[int]) -> Select[*tuple[Any, ...]]:
    return (
        select(JOB.c.id, JOB.c.payload, JOB.c.attempts, *placement.PLACEMENT_COLUMNS)
        .join(SWEEP_JOB)
        .where(SWEEP_JOB.c.sweep == sweep_id)
    )


def _waiting(engine: Engine, sweep_id: int) -> Sequence[Row[*tuple[Any, ...]]]:
    """The distinct devices, demands and pins of the sweep's waiting jobs."""
    columns = named(JOB, "device resources pinned_environment pinned_host")
    return fetch(engine, _jobs_of(sweep_id).with_only_columns(*columns).where(WAITING).distinct())


def _sweep_name(connection: Connection, sweep_id: int) -> str:
    name = connection.execute(
        select(SWEEP.c.name).where(SWEEP.c.id == sweep_id)
    ).scalar_one_or_none()
    if name is None:
        raise StoreError(f"there is no sweep {sweep_id} in the store")
    return str(name)


def _give_up(
    connection: Connection, row: int, owner: str, state: str, attempt: "AttemptWriter | None"
) -> None:
    """End the lease without an answer; an attempt is kept all the same."""
    from store.write.record import end_lease

    n = end_lease(connection, row, owner, state, attempt)
    if attempt is not None:
        attempt.insert(connection, row, n, "measured")


def _attempt(outcome: Outcome | None) -> "AttemptWriter | None":
    from store.write.record import AttemptWriter

    return None if outcome is None else AttemptWriter(outcome)
