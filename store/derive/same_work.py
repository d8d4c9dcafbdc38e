"""Same work: `Outcome.same_work` in SQL."""

from sqlalchemy import ColumnElement, FromClause, and_

from store.rows.row_mapping import ARM_CONDITION
from sweeps.model.outcome import SAME_COUNTS


def same_work(baseline: FromClause, arm: FromClause) -> ColumnElement[bool]:
    """Whether two rows of `arm_result` have equal counts under equal conditions: replicates,
    controls, methods without effect.
    """
    return and_(
        *(
            baseline.c[name].is_not_distinct_from(arm.c[name])
            for name in (*SAME_COUNTS, *ARM_CONDITION)
        )
    )
