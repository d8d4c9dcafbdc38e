"""Standings: what the store holds of comparisons that may be measured again, and how long they were
measured so far.
"""

from collections.abc import Collection
from math import inf, log
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Engine, bindparam, func, select

from store.derive.break_evens import at_level
from store.rows.placement import Place
from store.rows.transactions import batches, reading
from store.schema.tables import (
    ATTEMPT,
    EFFECT,
    PAIR,
    SWEEP,
    SWEEP_COMPARISON,
    SWEEP_JOB,
    named,
)
from sweeps.model.flags import split_flags, wrong
from sweeps.stats.curve import Point

_FIGURES = (
    "comparison_id environment host metric tokens gmacs_baseline gmacs gmacs_overhead "
    "effect effect_low effect_high effect_se effect_freedom n rounds verdict flags "
    "failure"
)
_COLUMNS = named(EFFECT, _FIGURES)


class CurrentEffect(NamedTuple):
    """One metric of a comparison at one place."""

    comparison_id: str
    place: Place
    metric: str
    tokens: int | None
    """Size of the work; `None` of a failure."""
    effect: Any
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
        """It as a point of a curve at `x`, by intervals at `alpha` where that is given; without
        `work`, no model is fitted.
        """
        row, flags = self.effect, split_flags(self.effect.flags)
        macs = None if row.gmacs is None else row.gmacs + (row.gmacs_overhead or 0.0)
        low, high, verdict = at_level(row, alpha)
        return Point(
            x=x,
            speedup=row.effect,
            low=low,
            high=high,
            se=row.effect_se,
            verdict=verdict,
            pairs=row.n,
            gmacs_baseline=row.gmacs_baseline if work else None,
            gmacs=macs if work else None,
            comparison_id=self.comparison_id,
            wrong=wrong(flags),
            no_op="no_effect" in flags,
        )


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
            for ids in batches(sorted(comparison_ids))
            for row in connection.execute(found.where(EFFECT.c.comparison_id.in_(ids)))
        ]


def linked(engine: Engine, sweep: str) -> set[str]:
    """The comparisons that any revision of the sweep of that name requested."""
    ids = select(SWEEP_COMPARISON.c.comparison_id).join_from(SWEEP_COMPARISON, SWEEP)
    with reading(engine) as connection:
        return set(connection.execute(ids.where(SWEEP.c.name == sweep)).scalars())


def measured_s(engine: Engine, sweep: str, environment_ids: Collection[str]) -> float:
    """How long the jobs of the sweep of that name were measured in some environments, all attempts
    together, in seconds.
    """
    jobs = select(SWEEP_JOB.c.job).join_from(SWEEP_JOB, SWEEP).where(SWEEP.c.name == sweep)
    return _total_s(engine, ATTEMPT.c.job.in_(jobs), environment_ids)


def first_run_s(
    engine: Engine, comparison_ids: Collection[str], environment_ids: Collection[str]
) -> float:
    """How long the first attempts at the comparisons took in some environments, in seconds."""
    first = select(func.min(PAIR.c.attempt)).where(
        PAIR.c.comparison_id.in_(bindparam("ids", expanding=True))
    )
    first = first.group_by(PAIR.c.comparison_id)
    with reading(engine) as connection:
        attempts = {
            row
            for ids in batches(sorted(comparison_ids))
            for row in connection.execute(first, {"ids": ids}).scalars()
        }
    return sum(
        _total_s(engine, ATTEMPT.c.id.in_(ids), environment_ids)
        for ids in batches(sorted(attempts))
    )


def _total_s(
    engine: Engine, attempts: ColumnElement[bool], environment_ids: Collection[str]
) -> float:
    total = select(func.sum(ATTEMPT.c.ended_at - ATTEMPT.c.started_at))
    with reading(engine) as connection:
        here = ATTEMPT.c.environment.in_(sorted(environment_ids))
        return float(connection.execute(total.where(attempts, here)).scalar() or 0.0)
