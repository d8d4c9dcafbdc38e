"""Derived rows: the panels of each sweep with their counts, so that no page reads a whole sweep to
offer its choices.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Insert,
    Select,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
)

from store.rows.transactions import batches
from store.schema.tables import (
    COMPARISON,
    EFFECT,
    IS_SPEEDUP,
    PANEL,
    PANEL_PROGRESS,
    SWEEP_COMPARISON,
    newest_answer,
)

_LINKED = SWEEP_COMPARISON.join(COMPARISON)
_TOUCHED = (
    select(COMPARISON.c.panel_id)
    .where(COMPARISON.c.comparison_id.in_(bindparam("comparisons", expanding=True)))
    .distinct()
)


def derive_panels(connection: Connection, comparisons: Iterable[str]) -> None:
    """Count again the panels, in every sweep, that these comparisons belong to."""
    panels = sorted(
        {
            str(panel)
            for batch in batches(comparisons, 500)
            for panel in connection.execute(_TOUCHED, {"comparisons": batch}).scalars()
        }
    )
    for batch in batches(panels, 500):
        for statement in _counts_of_panels():
            connection.execute(statement, {"panels": batch})


def derive_sweep_panels(connection: Connection, sweep: int) -> None:
    """Count all panels of a newly submitted sweep."""
    for table in (PANEL, PANEL_PROGRESS):
        connection.execute(delete(table).where(table.c.sweep == sweep))
    for statement in _insertions(SWEEP_COMPARISON.c.sweep == sweep):
        connection.execute(statement)


def derive_all_panels(connection: Connection) -> None:
    """Count all panels of all sweeps."""
    for table in (PANEL, PANEL_PROGRESS):
        connection.execute(delete(table))
    for statement in _insertions(SWEEP_COMPARISON.c.sweep.is_not(None)):
        connection.execute(statement)


@lru_cache(maxsize=1)
def _counts_of_panels() -> tuple[Delete | Insert, ...]:
    """What counts `panels` again; made once, since that takes longer than to execute it."""
    given: ColumnElement[str] = bindparam("panels", expanding=True)
    deleted = [
        delete(table).where(table.c.panel_id.in_(given)) for table in (PANEL, PANEL_PROGRESS)
    ]
    return (*deleted, *_insertions(COMPARISON.c.panel_id.in_(given)))


def _insertions(which: ColumnElement[bool]) -> Iterator[Insert]:
    for table, statement in ((PANEL_PROGRESS, _progress(which)), (PANEL, _points().where(which))):
        names = [column.name for column in statement.selected_columns]
        yield insert(table).from_select(names, statement)


_RANK = case(
    (EFFECT.c.failure.is_not(None), 4),
    (EFFECT.c.verdict.in_(("insufficient", "quarantined")), 3),
    (EFFECT.c.verdict == "unclear", 2),
    else_=1,
) + case((EFFECT.c.compared == "ratio", 0), else_=5)
"""The lowest of a comparison says how far it is: memory and energy count where no time does."""


def _progress(which: ColumnElement[bool]) -> Select[Any]:
    """Counts of comparisons by sweep and panel: all, those with an answer anywhere, and those with
    nothing but failures.
    """
    rank = select(func.min(_RANK)).where(EFFECT.c.comparison_id == COMPARISON.c.comparison_id)
    each = (
        select(
            *(SWEEP_COMPARISON.c.sweep, COMPARISON.c.panel_id, COMPARISON.c.comparison_id),
            (rank.correlate(COMPARISON).scalar_subquery() % 5).label("rank"),
        )
        .select_from(_LINKED)
        .where(which)
        .subquery()
    )
    counted = {
        "measured": each.c.rank < 4,
        "unclear": each.c.rank == 2,
        "insufficient": each.c.rank == 3,
        "failures": each.c.rank == 4,
    }
    return select(
        *(each.c.sweep, each.c.panel_id, func.min(each.c.comparison_id).label("comparison_id")),
        func.count().label("comparisons"),
        *(func.sum(case((holds, 1), else_=0)).label(name) for name, holds in counted.items()),
    ).group_by(each.c.sweep, each.c.panel_id)


def _points() -> Select[Any]:
    """The rows of the view `speedup` by sweep, panel, environment, host and metric, counted."""
    faster = case((EFFECT.c.verdict == "faster", EFFECT.c.effect))
    key = (
        SWEEP_COMPARISON.c.sweep,
        COMPARISON.c.panel_id,
        EFFECT.c.environment,
        EFFECT.c.host,
        EFFECT.c.metric,
    )
    return (
        select(
            *key,
            func.max(EFFECT.c.threads).label("threads"),
            func.count().label("points"),
            func.max(EFFECT.c.measured_at).label("measured_at"),
            func.max(faster).label("best"),
        )
        .select_from(_LINKED.join(EFFECT))
        .where(IS_SPEEDUP, newest_answer(EFFECT))
        .group_by(*key)
    )
