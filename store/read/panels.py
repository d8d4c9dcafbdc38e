"""Panels of a sweep: the conditions under which its points are comparable, counted, and the rows of
one of them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Engine, FromClause, Select, and_, exists, func, select
from sqlalchemy.dialects import sqlite

from store.read.queries import sweep_statement
from store.rows.row_mapping import timestamp
from store.rows.transactions import reading
from store.schema.tables import (
    COMPARISON,
    ENVIRONMENT,
    PANEL,
    PANEL_PROGRESS,
    SWEEP,
    newest_revision,
)
from sweeps.model.kinds import THREAD_FIELDS

if TYPE_CHECKING:
    import pandas as pd

PANEL_COLUMNS = (
    *(
        "model",
        "weights",
        "batch_size",
        "device_name",
        "environment",
        "host",
        *THREAD_FIELDS,
        "seed",
    ),
    *("data", "new_tokens", "decoding", "exclusive", "inputs", "baseline_id"),
)
"""Columns of the views that stay fixed within one panel: points are drawn together where all are
equal."""
ARM_COLUMNS = ("method", "dtype", "attention", "runtime", "kv_cache")
"""Columns of the views that distinguish arms of one panel."""


_AT_ONCE = 5000
"""Names in one statement, which SQLite and PostgreSQL bound."""
RAN = ("threads",)
"""Columns of the views that a comparison has another value of: what was requested."""


def sweep_list(engine: Engine) -> list[dict[str, Any]]:
    """`name`, `question`, `submitted_at` and `measured` of the newest revision of each sweep,
    newest first.

    `measured`: whether any of its comparisons has a figure. Nothing is counted.
    """
    answered = exists(
        select(PANEL_PROGRESS.c.sweep)
        .where(PANEL_PROGRESS.c.sweep == SWEEP.c.id, PANEL_PROGRESS.c.measured > 0)
        .correlate(SWEEP)
    )
    statement = (
        select(SWEEP.c.name, SWEEP.c.question, SWEEP.c.submitted_at, answered.label("measured"))
        .where(newest_revision(SWEEP))
        .order_by(SWEEP.c.submitted_at.desc(), SWEEP.c.id.desc())
    )
    with reading(engine) as connection:
        found = [dict(row._mapping) for row in connection.execute(statement)]
    return [
        row | {"submitted_at": timestamp(row["submitted_at"]), "measured": bool(row["measured"])}
        for row in found
    ]


def panel_counts(engine: Engine, sweep: str) -> "pd.DataFrame":
    """How many `points` of the view `speedup` each panel and kind of arm of a sweep has, by metric,
    and the last `measured_at`.

    A row for each combination found of `metric`, `PANEL_COLUMNS`, `baseline` and `ARM_COLUMNS`.
    """
    import pandas as pd

    own = {
        "environment": PANEL,
        "host": PANEL,
        "threads": PANEL,
        "metric": PANEL,
        "device_name": ENVIRONMENT,
    }
    names = ("metric", *PANEL_COLUMNS, "baseline", *ARM_COLUMNS)
    columns = [own.get(name, COMPARISON).c[name] for name in names]
    statement = (
        select(
            *columns,
            func.sum(PANEL.c.points).label("points"),
            func.max(PANEL.c.measured_at).label("measured_at"),
        )
        .select_from(
            SWEEP.join(PANEL, PANEL.c.sweep == SWEEP.c.id)
            .join(
                PANEL_PROGRESS,
                and_(
                    PANEL_PROGRESS.c.sweep == PANEL.c.sweep,
                    PANEL_PROGRESS.c.panel_id == PANEL.c.panel_id,
                ),
            )
            .join(COMPARISON, COMPARISON.c.comparison_id == PANEL_PROGRESS.c.comparison_id)
            .join(ENVIRONMENT, ENVIRONMENT.c.environment_id == PANEL.c.environment)
        )
        .where(SWEEP.c.name == sweep, newest_revision(SWEEP))
        .group_by(*columns)
    )
    with reading(engine) as connection:
        found = connection.execute(statement)
        return pd.DataFrame.from_records(
            [tuple(row) for row in found], columns=list(found.keys())
        ).astype(object)


def panel_rows(
    engine: Engine,
    sweep: str,
    view: str,
    fixed: Mapping[str, Any],
    chosen: Mapping[str, Sequence[str]],
) -> "pd.DataFrame":
    """The rows of one of `SWEEP_VIEWS` that belong to `sweep` and have these values.

    `fixed` maps columns to their one value (`None`: no value), `chosen` to those that are allowed
    (none: all). Columns that the view lacks do not narrow it.
    """
    import pandas as pd

    with reading(engine) as connection:
        found = connection.execute(_panel_statement(sweep, view, fixed, chosen))
        return pd.DataFrame.from_records(
            [tuple(row) for row in found], columns=list(found.keys()), coerce_float=True
        )


def panel_sql(
    sweep: str, view: str, fixed: Mapping[str, Any], chosen: Mapping[str, Sequence[str]]
) -> str:
    """The query of `panel_rows` as SQL that `breakeven query` runs."""
    statement = _panel_statement(sweep, view, fixed, chosen)
    return str(statement.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))


def _panel_statement(
    sweep: str, view: str, fixed: Mapping[str, Any], chosen: Mapping[str, Sequence[str]]
) -> Select[Any]:
    table = _view(view)

    def equal(source: FromClause) -> list[ColumnElement[bool]]:
        # rows of attempts belong to the panel that was run in them, whatever their view shows of it
        shown = (
            fixed
            if source is COMPARISON and "attempt" in table.c
            else [name for name in fixed if name in table.c]
        )
        names = [
            name for name in shown if name in source.c and (source is table or name not in RAN)
        ]
        return [
            source.c[name].is_(None) if fixed[name] is None else source.c[name] == fixed[name]
            for name in names
        ]

    def allowed(source: FromClause) -> list[ColumnElement[bool]]:
        return [
            source.c[name].in_(values)
            for name, values in chosen.items()
            if values and name in source.c
        ]

    panels = (
        select(PANEL_PROGRESS.c.panel_id)
        .select_from(
            PANEL_PROGRESS.join(SWEEP, SWEEP.c.id == PANEL_PROGRESS.c.sweep).join(
                COMPARISON, COMPARISON.c.comparison_id == PANEL_PROGRESS.c.comparison_id
            )
        )
        .where(
            SWEEP.c.name == sweep, newest_revision(SWEEP), *equal(COMPARISON), *allowed(COMPARISON)
        )
    )
    given = [*equal(table), *allowed(table)]
    return sweep_statement(sweep, view, panels).where(*given)


def _view(name: str) -> Any:
    from store.views.public import TABLES  # which imports the models

    return TABLES[name]
