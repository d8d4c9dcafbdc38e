"""Expressions that several views, and the derivation of curves, select by."""

from sqlalchemy import ColumnElement, Float, FromClause, and_, exists, func, or_, select

from store.schema.tables import ARM_COLUMNS, EFFECT

IS_SPEEDUP = and_(EFFECT.c.compared == "ratio", EFFECT.c.effect.is_not(None))
"""Whether a row of `effect_row` holds a measured ratio of times."""


def newest_answer(effect: FromClause) -> ColumnElement[bool]:
    """Whether no newer answer to the question of a row of `effect_row` exists in its environment on
    its host.

    A raised method VERSION or protocol makes the answer of the older comparison_id stale.
    """
    newer = EFFECT.alias("newer")
    later = or_(
        newer.c.measured_at > effect.c.measured_at,
        and_(
            newer.c.measured_at == effect.c.measured_at,
            newer.c.comparison_id > effect.c.comparison_id,
        ),
    )
    same = (newer.c[name] == effect.c[name] for name in ("question_id", "environment", "host"))
    return ~exists(select(newer.c.metric).where(*same, later).correlate_except(newer))


def gmacs_total(table: FromClause) -> ColumnElement[float]:
    """GMACs of an arm, those that its method adds included."""
    return table.c.gmacs + func.coalesce(table.c.gmacs_overhead, 0.0)


def gmacs_saved(effect: FromClause) -> ColumnElement[float]:
    """Share of the baseline's GMACs that the arm saves."""
    return 1 - gmacs_total(effect) / func.nullif(effect.c.gmacs_baseline, 0.0, type_=Float())


CONDITION = tuple(
    name for name in ARM_COLUMNS if name not in {"arm_id", "kind", "device", "condition_id"}
)
"""Columns of an arm and its condition that views have."""
