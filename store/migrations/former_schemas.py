"""Stores of the schemas before 0009: their rows are copied by name into the tables of today, and derived rows computed again."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, MetaData, Table, bindparam, func, literal, null, select
from sqlalchemy.schema import CreateTableAs

from store.derive.break_evens import derive_break_evens
from store.derive.effects import derive_effects
from store.derive.panels import derive_all_panels
from store.panel_ids import panel_id
from store.quality_ids import quality_ids
from store.record import comparisons_by_environment
from store.row_mapping import arm_columns
from store.tables.planned import METADATA
from sweeps.aliases import FORMER_FLAGS, FORMER_METRICS, VALUES
from sweeps.job import Job

TABLES = {"image_predictions": "evaluation", "text_scores": "scores", "comparison_attempt": "pairing"}
"""Former names of tables that are copied."""
COLUMNS = {
    "payload": "document",
    "content_hashes": "contents",
    "system_metrics": "readings",
    "gmacs_overhead": "gmacs_method",
}
"""Former names of columns."""
ADDED = {"curve_group": "", "resources": ""}
"""Columns that older tables lack and that are not NULL."""
COMPUTED = ("effect_row", "break_even_row", "cost_model_row")
"""Tables whose rows follow from others."""


def rebuild(connection: Connection) -> None:
    """Replace the tables of a schema before 0009 by those of today, with all their rows."""
    former = MetaData()
    former.reflect(connection)
    copies: dict[str, Table] = {}
    for table in former.sorted_tables:  # a copy has no constraints, whose names the new tables need
        copy = CreateTableAs(select(table), f"former_{table.name}")
        connection.execute(copy)
        copies[table.name] = copy.table
    former.drop_all(connection)
    METADATA.create_all(connection)
    for table in METADATA.sorted_tables:
        source = copies.get(table.name, copies.get(TABLES.get(table.name, "")))
        if source is not None and table.name not in COMPUTED:
            values = {column.name: _value(source, column.name) for column in table.c}
            found = select(*(value.label(name) for name, value in values.items()))
            connection.execute(table.insert().from_select(list(values), found.select_from(source)))
    tables = METADATA.tables
    if "measured_arm" in copies:  # before 0006
        attempt = copies["attempt"]
        for row in connection.execute(select(attempt.c.id, attempt.c.document)).all():
            if arms := list(_arm_rows(connection, copies["measured_arm"], row.id, row.document)):
                connection.execute(tables["arm_result"].insert(), arms)
        _rename_values(connection, tables)
        _add_quality_ids(connection, tables["comparison"])
    _add_panel_ids(connection, tables["comparison"])
    for copied in copies.values():
        copied.drop(connection)
    if connection.dialect.name == "postgresql":  # its sequences do not notice rows that have their numbers already
        for table in tables.values():
            if "id" in table.c:
                sequence = func.pg_get_serial_sequence(table.name, "id")
                connection.execute(select(func.setval(sequence, func.max(table.c.id))))
    batches = list(comparisons_by_environment(connection))
    for derive in (derive_effects, derive_break_evens):
        for environment, comparisons in batches:
            derive(connection, comparisons, environment)
    derive_all_panels(connection)


def _value(source: FromClause, name: str) -> ColumnElement[Any]:
    """What a former table holds for a column of today."""
    for known in (name, COLUMNS.get(name, name)):
        if known in source.c:
            return source.c[known]
    return literal(ADDED[name]) if name in ADDED else null()


def _arm_rows(connection: Connection, measured: FromClause, attempt: int, document: str) -> Iterator[dict[str, Any]]:
    """Rows of `arm_result` with the condition of each arm, which former schemas kept for language models alone."""
    arms = connection.execute(select(measured).where(measured.c.attempt == attempt)).mappings().all()
    job = Job.model_validate(json.loads(document)["job"]) if arms else None
    names = {former: name for name, former in COLUMNS.items()}
    for arm in arms:
        assert job is not None
        yield {"route": None, **arm_columns(job, arm["arm"]), **{names.get(name, name): value for name, value in arm.items()}}


def _rename_values(connection: Connection, tables: Mapping[str, Table]) -> None:
    """Values of conditions, flags and names of metrics in the columns that hold them; payloads keep the names of their time."""
    comparison = tables["comparison"]
    for column in ("attention", "decoding"):
        for new, old in VALUES[column].items():
            connection.execute(comparison.update().where(comparison.c[column] == old).values({column: new}))
    for new, old in VALUES["attention"].items():
        _replace(connection, comparison.c.params, f'"attention":"{old}"', f'"attention":"{new}"')
        _replace(connection, comparison.c.baseline, f"attention={old}", f"attention={new}")
    for new, old in FORMER_FLAGS.items():
        for table in ("attempt", "arm_result"):
            _replace(connection, tables[table].c.flags, old, new)
    metric = tables["metric_row"]
    for new, old in FORMER_METRICS.items():
        connection.execute(metric.update().where(metric.c.metric == old).values(metric=new))


def _replace(connection: Connection, column: Any, old: str, new: str) -> None:
    changed = {column.name: func.replace(column, old, new)}
    connection.execute(column.table.update().where(column.contains(old)).values(changed))


def _add_quality_ids(connection: Connection, comparison: Table) -> None:
    rows = connection.execute(select(comparison)).mappings()
    _update(connection, comparison, [{"key": row["comparison_id"], **quality_ids(row, row["baseline"])} for row in rows])


def _add_panel_ids(connection: Connection, comparison: Table) -> None:
    rows = connection.execute(select(comparison)).mappings()
    _update(connection, comparison, [{"key": row["comparison_id"], "panel_id": panel_id(row)} for row in rows])


def _update(connection: Connection, comparison: Table, found: list[dict[str, Any]]) -> None:
    """Change the columns, other than `key`, of the comparisons of these identities."""
    if found:
        values: dict[str, Any] = {name: bindparam(name) for name in found[0] if name != "key"}
        connection.execute(comparison.update().where(comparison.c.comparison_id == bindparam("key")).values(values), found)
