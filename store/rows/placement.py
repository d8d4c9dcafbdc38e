"""Placement: on which host, and in which environment, the jobs of a curve are measured; pins keep
them together.
"""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, or_, select, update

from store.rows.transactions import database_time
from store.schema.tables import JOB, SWEEP, SWEEP_JOB
from sweeps.model.condition import Condition
from sweeps.model.identity import canonical, digest_of
from sweeps.model.job import Job
from sweeps.model.kinds import KINDS

Group = tuple[str, str]
"""Jobs that belong on one place: `curve_group` and `resources` of their rows."""


PLACEMENT_COLUMNS: tuple[Any, ...] = (
    *(JOB.c.curve_group, JOB.c.resources, JOB.c.pinned_host),
    *(JOB.c.pinned_environment, JOB.c.pinned_by, JOB.c.renewed_at),
)
"""Of table `job`, that place a job."""


class Place(NamedTuple):
    """Where points can be compared: one host in one environment."""

    environment: str
    host: str


class Capacity(NamedTuple):
    """What a node can run for one class of device."""

    device: str
    place: Place
    resources: Collection[str] = ("",)
    """Demands for labels, as in `job.resources`, that it meets."""


class PlannedWork(NamedTuple):
    """A job to be queued."""

    job: Job
    resources: str = ""
    place: Place | None = None
    """Where the rest of its curve was measured; `None` leaves it to the node that claims the first
    job of its group."""

    @property
    def group(self) -> Group:
        return curve_group(self.job), self.resources


class Pin(NamedTuple):
    """A place that a dispatcher chose for a group."""

    place: Place
    owner: str
    jobs: int = 0
    """Of a sweep, that are waiting or running."""
    renewed_at: float = 0.0


def curve_group(job: Job) -> str:
    """Identity of the jobs whose comparisons can lie on one curve; empty for kinds that have none.

    All that share a `row_mapping.curve_id` share it, as do arms under one condition that are split
    into several jobs, since curves along GMACs saved run from arm to arm.
    """
    return (
        digest_of(f'{{"condition":{on_curve(job.condition)},"kind":"{job.kind}"}}')
        if KINDS[job.kind].timed
        else ""
    )


@lru_cache(maxsize=10_000)
def on_curve(condition: Condition) -> str:
    """What the conditions of all points of a curve share, as canonical JSON."""
    return canonical(condition.without_size())


def placement_columns(
    wanted: PlannedWork, pins: Mapping[Group, Pin], owner: str, now: float
) -> dict[str, Any]:
    """The columns of table `job` that place a job: where another dispatcher pinned its group, else
    where `owner` wants it `now`.
    """
    group, resources = key = wanted.group
    pin = pins.get(key) or (None if wanted.place is None else Pin(wanted.place, owner))
    return {
        "curve_group": group,
        "resources": resources,
        "pinned_host": pin and pin.place.host,
        "pinned_environment": pin and pin.place.environment,
        "pinned_by": pin and pin.owner,
        "renewed_at": None if pin is None else now,
    }


def live_pins(
    connection: Connection, sweep: str, me: str, alive: Callable[[str, float], bool]
) -> dict[Group, Pin]:
    """The places that other live dispatchers than `me` chose for groups of jobs of the sweep of
    that name.
    """
    now, related = database_time(connection), JOB.alias("related")
    renewed_at = (
        select(func.max(related.c.renewed_at))
        .where(or_(related.c.owner == JOB.c.pinned_by, related.c.pinned_by == JOB.c.pinned_by))
        .correlate(JOB)
        .scalar_subquery()
    )
    group = (
        *(JOB.c.curve_group, JOB.c.resources),
        *(JOB.c.pinned_environment, JOB.c.pinned_host, JOB.c.pinned_by),
    )
    rows = connection.execute(
        select(*group, func.count().label("jobs"), renewed_at.label("renewed_at"))
        .join(SWEEP_JOB, SWEEP_JOB.c.job == JOB.c.id)
        .join(SWEEP, SWEEP.c.id == SWEEP_JOB.c.sweep)
        .where(
            SWEEP.c.name == sweep,
            JOB.c.state.in_(("waiting", "running")),
            JOB.c.pinned_by.is_not(None),
            JOB.c.pinned_by != me,
        )
        .group_by(*group)
        .order_by(JOB.c.pinned_by)
    )
    return {
        (row.curve_group, row.resources): Pin(
            Place(row.pinned_environment, row.pinned_host),
            row.pinned_by,
            row.jobs,
            row.renewed_at or 0.0,
        )
        for row in rows
        if alive(row.pinned_by, now - (row.renewed_at or 0.0))
    }


def pin_groups(connection: Connection, sweep: int, claimed: Collection[Row[Any]], pin: Pin) -> None:
    """Keep the rest of the groups that the claimed rows of `job` belong to for the place of
    `pin`.
    """
    for group, resources in {
        (row.curve_group, row.resources)
        for row in claimed
        if row.curve_group and row.pinned_host is None
    }:
        connection.execute(
            update(JOB)
            .where(
                JOB.c.curve_group == group,
                JOB.c.resources == resources,
                JOB.c.state == "waiting",
                JOB.c.pinned_host.is_(None),
                JOB.c.id.in_(select(SWEEP_JOB.c.job).where(SWEEP_JOB.c.sweep == sweep)),
            )
            .values(
                pinned_host=pin.place.host,
                pinned_environment=pin.place.environment,
                pinned_by=pin.owner,
                renewed_at=pin.renewed_at,
            )
        )
