"""Standings: what the store holds of comparisons that may be measured again, and how long they were
measured so far.
"""

from collections.abc import Collection
from math import inf, log
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Engine, Row, func, select

from store.derive.break_evens import effect_point
from store.rows.placement import Place
from store.rows.transactions import batches, fetch_values, reading, retried, rows_in
from store.schema.tables import (
    ATTEMPT,
    COMPARISON,
    EFFECT,
    PAIR,
    SWEEP,
    SWEEP_COMPARISON,
    SWEEP_JOB,
    gmacs_total,
    named,
)
from sweeps.model.flags import split_flags
from sweeps.stats.curve import Point

_COLUMNS = (
    *named(EFFECT, "comparison_id environment host metric tokens compared gmacs_baseline"),
    gmacs_total(EFFECT).label("gmacs_arm"),
    *named(EFFECT, "effect effect_low effect_high effect_se effect_freedom n rounds verdict flags"),
)


class CurrentEffect(NamedTuple):
    """One metric of a comparison at one place."""

    comparison_id: str
    place: Place
    metric: str
    tokens: int | None
    """Size of the work; `None` of a failure."""
    effect: Row[Any]
    """The row of `effect_row`."""

    @property
    def failed(self) -> bool:
        """Whether no attempt measured it."""
        return self.effect.effect is None

    @property
    def half_width(self) -> float:
        """Of the interval of the log speed-up."""
        row = self.effect
        return (
            log(row.effect_high / row.effect_low) / 2 if row.effect_low and row.effect_high else inf
        )

    @property
    def undecided(self) -> bool:
        """Whether more pairs could give a verdict that it lacks."""
        return self.effect.verdict in (
            "unclear",
            "insufficient",
        ) and "no_effect" not in split_flags(self.effect.flags)

    def point(self, x: float, alpha: float | None = None, *, work: bool = True) -> Point:
        """It as a point of a curve at `x`, see `effect_point`."""
        return effect_point(self.effect, x, alpha, work=work)


@retried
def load_effects(
    engine: Engine, comparison_ids: Collection[str], environment_ids: Collection[str]
) -> list[CurrentEffect]:
    """What is known of the speed-ups of comparisons in some environments: one for each place and
    metric.
    """
    found = select(*_COLUMNS).where(
        EFFECT.c.environment.in_(sorted(environment_ids)), EFFECT.c.compared == "ratio"
    )
    with reading(engine) as connection:
        return [
            CurrentEffect(
                row.comparison_id, Place(row.environment, row.host), row.metric, row.tokens, row
            )
            for row in rows_in(connection, found, EFFECT.c.comparison_id, sorted(comparison_ids))
        ]


def linked(engine: Engine, sweep: str) -> set[str]:
    """The comparisons that any revision of the sweep of that name requested."""
    ids = select(SWEEP_COMPARISON.c.comparison_id).join_from(SWEEP_COMPARISON, SWEEP)
    return set(fetch_values(engine, ids.where(SWEEP.c.name == sweep)))


def measured_s(engine: Engine, sweep: str, environment_ids: Collection[str]) -> float:
    """How long the jobs of the sweep of that name were measured in some environments, all attempts
    together, in seconds.
    """
    jobs = select(SWEEP_JOB.c.job).join_from(SWEEP_JOB, SWEEP).where(SWEEP.c.name == sweep)
    return _total_s(engine, ATTEMPT.c.job.in_(jobs), environment_ids)


@retried
def first_run_s(
    engine: Engine, comparison_ids: Collection[str], environment_ids: Collection[str]
) -> float:
    """How long the first attempts at the comparisons took in some environments, in seconds."""
    first = select(func.min(PAIR.c.attempt).label("attempt")).group_by(PAIR.c.comparison_id)
    with reading(engine) as connection:
        rows = rows_in(connection, first, PAIR.c.comparison_id, sorted(comparison_ids))
        attempts = {row.attempt for row in rows}
    return sum(
        _total_s(engine, ATTEMPT.c.id.in_(ids), environment_ids)
        for ids in batches(sorted(attempts))
    )


def measured_gmacs_per_second(engine: Engine, environment_ids: Collection[str]) -> float | None:
    """What the unmodified model reached in some environments at the most work that was measured
    there; `None` where nothing was.
    """
    gmacs = EFFECT.c.gmacs_baseline * COMPARISON.c.batch_size
    rates = (
        select(1e3 * gmacs / EFFECT.c.baseline_value)
        .join_from(EFFECT, COMPARISON)
        .where(
            EFFECT.c.environment.in_(sorted(environment_ids)),
            EFFECT.c.metric == "latency",
            gmacs > 0,
            EFFECT.c.baseline_value > 0,
        )
        .order_by(gmacs.desc(), EFFECT.c.comparison_id)
    )
    return next(iter(fetch_values(engine, rates.limit(1))), None)


def _total_s(
    engine: Engine, attempts: ColumnElement[bool], environment_ids: Collection[str]
) -> float:
    here = ATTEMPT.c.environment.in_(sorted(environment_ids))
    total = select(func.sum(ATTEMPT.c.ended_at - ATTEMPT.c.started_at)).where(attempts, here)
    return float(fetch_values(engine, total)[0] or 0.0)
