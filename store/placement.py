"""Placement: on which host, and in which environment, the jobs of a curve are measured; pins keep them together."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row
from sqlalchemy import text as sql

from sweeps.identity import digest
from sweeps.job import Job

TIMED = ("latency", "generation")
"""Kinds whose comparisons are points of curves; what the others find does not depend on the machine."""

PIN_GROUP = sql(
    """UPDATE job SET pinned_host = :host, pinned_environment = :environment, pinned_by = :owner, renewed_at = :now
       WHERE curve_group = :curve_group AND resources = :resources AND state = 'waiting' AND pinned_host IS NULL
         AND id IN (SELECT job FROM sweep_job WHERE sweep = :sweep)"""
)
PLACE_JOB = sql(
    """UPDATE job SET curve_group = :curve_group, resources = :resources, pinned_host = :pinned_host,
         pinned_environment = :pinned_environment, pinned_by = :pinned_by, renewed_at = :renewed_at
       WHERE id = :job AND state = 'waiting'"""
)
PLACE_OF = sql("SELECT curve_group, resources, pinned_host, pinned_environment, pinned_by, renewed_at FROM job WHERE id = :job")
RENEW_PINS = sql("UPDATE job SET renewed_at = :now WHERE state = 'waiting' AND pinned_by = :owner")
PINS = sql(
    """SELECT j.curve_group, j.resources, j.pinned_environment, j.pinned_host, j.pinned_by, count(*) AS jobs,
         (SELECT max(k.renewed_at) FROM job AS k WHERE k.owner = j.pinned_by OR k.pinned_by = j.pinned_by) AS renewed_at
       FROM job AS j JOIN sweep_job AS l ON l.job = j.id JOIN sweep AS s ON s.id = l.sweep
       WHERE s.name = :name AND j.state IN ('waiting', 'running') AND j.pinned_by IS NOT NULL AND j.pinned_by <> :owner
       GROUP BY j.curve_group, j.resources, j.pinned_environment, j.pinned_host, j.pinned_by ORDER BY j.pinned_by"""
)
WAITING = sql(
    """SELECT DISTINCT j.device, j.resources, j.pinned_environment, j.pinned_host
       FROM job AS j JOIN sweep_job AS l ON l.job = j.id WHERE l.sweep = :sweep AND j.state = 'waiting'"""
)

Group = tuple[str, str]
"""Jobs that belong on one place: `curve_group` and `resources` of their rows."""


class Place(NamedTuple):
    """Where points can be compared: one host in one environment."""

    environment: str
    host: str


class Offer(NamedTuple):
    """What a node can run for one class of device."""

    device: str
    place: Place
    resources: Collection[str] = ("",)
    """Demands for labels, as in `job.resources`, that it meets."""


class Wanted(NamedTuple):
    """A job to be queued."""

    job: Job
    resources: str = ""
    place: Place | None = None
    """Where the rest of its curve was measured; `None` leaves it to the node that claims the first job of its group."""

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

    All that share a `describing.curve_id` share it, as do arms under one condition that are split into several jobs, since
    curves along GMACs saved run from arm to arm.
    """
    if job.kind not in TIMED:
        return ""
    condition = job.condition.model_dump(mode="json", exclude={"image_size", "prompt_tokens"})
    return digest({"kind": job.kind, "condition": condition})


def columns(wanted: Wanted, taken: Mapping[Group, Pin], me: str) -> dict[str, Any]:
    """The columns of table `job` that place it: where another dispatcher has its group, or else where it is wanted, for `me`."""
    group, resources = key = wanted.group
    pin = taken.get(key) or (None if wanted.place is None else Pin(wanted.place, me))
    return {
        "curve_group": group,
        "resources": resources,
        "pinned_host": pin and pin.place.host,
        "pinned_environment": pin and pin.place.environment,
        "pinned_by": pin and pin.owner,
        "renewed_at": None if pin is None else time.time(),
    }


def pins(connection: Connection, name: str, me: str, alive: Callable[[str, float], bool]) -> dict[Group, Pin]:
    """The places that other dispatchers, which are at work on the sweep called `name`, chose for groups of jobs."""
    found: dict[Group, Pin] = {}
    for row in connection.execute(PINS, {"name": name, "owner": me}):
        place, renewed_at = Place(row.pinned_environment, row.pinned_host), row.renewed_at or 0.0
        if alive(row.pinned_by, renewed_at):
            found[row.curve_group, row.resources] = Pin(place, row.pinned_by, row.jobs, renewed_at)
    return found


def pin_groups(connection: Connection, sweep: int, claimed: Collection[Row[Any]], place: Place, owner: str) -> None:
    """Keep the rest of the groups that the claimed rows of `job` belong to for `place`."""
    for group, resources in {(row.curve_group, row.resources) for row in claimed if row.curve_group and row.pinned_host is None}:
        asked = {"curve_group": group, "resources": resources, "sweep": sweep, "owner": owner, "now": time.time()}
        connection.execute(PIN_GROUP, {**asked, **place._asdict()})


def claimable(connection: Connection, sweep: int, offers: Collection[Offer]) -> bool:
    """Whether a job of the sweep waits that one of the offers could run."""
    return any(_takes(offer, row) for row in connection.execute(WAITING, {"sweep": sweep}).all() for offer in offers)


def demands(connection: Connection, sweep: int) -> set[str]:
    """What waiting jobs of the sweep ask of a node's labels, as in `job.resources`."""
    return {row.resources for row in connection.execute(WAITING, {"sweep": sweep})}


def _takes(offer: Offer, row: Row[Any]) -> bool:
    pinned = row.pinned_host is not None and Place(row.pinned_environment, row.pinned_host) != offer.place
    return row.device == offer.device and row.resources in offer.resources and not pinned
