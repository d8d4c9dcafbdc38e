"""Overlap: which pairs of a new plan other jobs measure at this moment, or have been answered since
the plan was made.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, Engine, and_, func, or_, select

from store.read.answers import Round
from store.rows.placement import PlannedWork
from store.rows.transactions import reading
from store.schema.tables import ATTEMPT, FAILURE, JOB, PAIR, SWEEP, SWEEP_JOB
from sweeps.model.job import Job, Protocol
from sweeps.model.outcome import ANSWERING_FAILURES


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
    with reading(engine) as connection:
        return connection.execute(select(func.max(ATTEMPT.c.id))).scalar_one() or 0


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
        .join(SWEEP, SWEEP.c.id == SWEEP_JOB.c.sweep)
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
