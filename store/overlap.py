"""Overlap: which pairs of a new plan other jobs measure at this moment, or have been answered since the plan was made."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, Engine
from sqlalchemy import text as sql

from store.placement import Wanted
from store.transactions import reading
from sweeps.job import Job
from sweeps.outcome import ANSWERS
from sweeps.protocol import Protocol

NEWEST_ATTEMPT = sql("SELECT coalesce(max(id), 0) FROM attempt")
RECORDED = sql(
    """SELECT p.comparison_id, t.round, f.reason FROM attempt AS t JOIN pairing AS p ON p.attempt = t.id
         LEFT JOIN failure AS f ON f.id = p.failure WHERE t.id > :since"""
)
HELD = sql(
    """SELECT j.id, j.job_id, j.resources, j.document FROM job AS j
       WHERE j.state = 'running' OR (j.state = 'waiting' AND j.parent IS NOT NULL AND EXISTS (
         SELECT 1 FROM sweep_job AS l JOIN sweep AS s ON s.id = l.sweep WHERE l.job = j.id AND s.name <> :name)) ORDER BY j.id"""
)
"""Jobs that a new plan for a sweep does not replace. Of those that wait only parts of split ones can overlap it by its age."""

Round = tuple[str, int]


class Holding(NamedTuple):
    """A job in the queue that measures a round of a comparison."""

    row: int
    resources: str
    protocol: Protocol


class Overlap(NamedTuple):
    """What need not be queued for a plan."""

    answered: set[Round]
    held: Mapping[Round, list[Holding]]

    def rest(self, wanted: Wanted) -> tuple[Wanted | None, set[int]]:
        """`wanted` without what need not be queued, `None` if nothing is left, and the rows of the jobs that stand for it."""
        job = wanted.job
        if not (self.answered or self.held) or not job.pairs:
            return wanted, set()
        left, rows = [], set[int]()
        for pair, comparison_id in zip(job.pairs, job.comparison_ids(), strict=True):
            key = (comparison_id, job.round)
            holder = next((each for each in self.held.get(key, ()) if _stands_for(each, wanted)), None)
            if holder is not None:
                rows.add(holder.row)
            elif key not in self.answered:
                left.append(pair)
        if len(left) == len(job.pairs):
            return wanted, rows
        return (wanted._replace(job=job.only(left)) if left else None), rows


def newest_attempt(engine: Engine) -> int:
    """The newest execution in the store, to be asked for before a plan is made; 0 if there is none."""
    with reading(engine) as connection:
        return int(connection.execute(NEWEST_ATTEMPT).scalar_one())


def overlap(connection: Connection, name: str, since: int | None) -> Overlap:
    """What a plan for the sweep called `name` need not queue; `since` is the newest attempt that the plan took into account.

    Without `since` nothing counts as answered meanwhile. Attempts are numbered in the order in which they are stored, because
    there is one writer at a time.
    """
    answered = set[Round]()
    for row in () if since is None else connection.execute(RECORDED, {"since": since}):
        if row.reason is None or row.reason in ANSWERS:
            answered.add((row.comparison_id, row.round))
    held: dict[Round, list[Holding]] = defaultdict(list)
    for row in connection.execute(HELD, {"name": name}):
        job = Job.model_validate_json(row.document)
        for comparison_id in job.comparison_ids():
            held[comparison_id, job.round].append(Holding(row.id, row.resources, job.protocol))
    return Overlap(answered, held)


def _stands_for(holding: Holding, wanted: Wanted) -> bool:
    return holding.resources == wanted.resources and holding.protocol.satisfies(wanted.job.protocol)
