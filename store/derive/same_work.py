"""Same work: whether an arm runs what its baseline runs, so that processes hardly differ in their ratio."""

from sqlalchemy import ColumnElement, FromClause, and_

from store.row_mapping import ARM_CONDITION

COUNTED = ("gmacs", "gmacs_overhead", "tokens_final", "parameters")


def same_work(baseline: FromClause, arm: FromClause) -> ColumnElement[bool]:
    """Whether two rows of `arm_result` have equal counts under equal conditions: replicates, controls, methods without effect."""
    return and_(*(baseline.c[name].is_not_distinct_from(arm.c[name]) for name in (*COUNTED, *ARM_CONDITION)))
