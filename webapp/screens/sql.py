"""Page: a read-only console for SQL, with the views beside it; the query is part of the address."""

import io
from typing import Any

import pandas as pd
import streamlit as st

from store.errors import StoreError
from store.read.user_sql import EXAMPLES, ONE_ROW_PER, Result, run_query
from store.views.public import TABLES
from sweeps.number_format import count
from webapp import queries
from webapp.display import plain
from webapp.queries import kept
from webapp.widgets import address

SECONDS, ROWS = 10.0, 10_000  # limits of a query
_EMPTY = "Your own"


def frame_of(result: Result) -> pd.DataFrame:
    """The rows as a table: blobs by their length, columns of one name numbered, columns of several
    types as text.
    """
    names: list[str] = []
    for name in result.columns:
        alike = sum(known == name or known.startswith(f"{name} (") for known in names)
        names.append(f"{name} ({alike + 1})" if alike else name)
    rows = [
        [f"{len(value):,} bytes" if isinstance(value, bytes) else value for value in row]
        for row in result.rows
    ]
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    for name, values in columns.items():
        kinds = {type(value) for value in values} - {type(None)}
        if len(kinds) > 1 and not kinds <= {int, float}:
            columns[name] = [None if value is None else str(value) for value in values]
    return pd.DataFrame(columns, columns=names)


def parquet(frame: pd.DataFrame) -> bytes:
    """The table as a Parquet file."""
    into = io.BytesIO()
    frame.to_parquet(into, index=False)
    return into.getvalue()


@kept
def result_of(_engine: Any, sql: str) -> Result:
    """The result, kept until the store changes; raises `StoreError`."""
    return run_query(None, sql, seconds=SECONDS, rows=ROWS)


def _show_result(sql: str) -> None:
    """The result of a query as a table to look at and to keep, or why there is none."""
    try:
        result = result_of(sql)
    except StoreError as problem:
        plain.sentence(str(problem))
        return
    frame = frame_of(result)
    cut = (
        "; there are more, which `breakeven query` with --rows returns" if result.truncated else ""
    )
    plain.sentence(
        f"{count(len(frame), 'row')}, {count(len(frame.columns), 'column')}{cut}", "muted"
    )
    texts: dict[Any, Any] = {
        name: st.column_config.TextColumn(str(name))
        for name in frame
        if not pd.api.types.is_numeric_dtype(frame[name])
    }
    st.dataframe(frame, column_config=texts, hide_index=True, placeholder="NULL")
    with st.container(horizontal=True):
        plain.download("CSV", lambda: frame.to_csv(index=False).encode(), "query.csv", "text/csv")
        mime = "application/vnd.apache.parquet"
        plain.download("Parquet", lambda: parquet(frame), "query.parquet", mime)


def _views() -> None:
    """What the chosen view has a row for, and its columns."""
    view = str(st.selectbox("View", list(ONE_ROW_PER), key="view"))
    plain.sentence(f"One row per {ONE_ROW_PER[view]}. Its columns:")
    plain.sentence(", ".join(column.name for column in TABLES[view].c), "muted")


def _fill() -> None:
    """Put the chosen example into the field."""
    sql = EXAMPLES.get(st.session_state["example"])
    if sql is not None:
        measured = [row["name"] for row in queries.measured_sweeps() if row["measured"]]
        sweep = next(iter([*address.asked("sweep"), *measured]), "")
        address.put("sql", sql.replace("{sweep}", sweep.replace("'", "''")))


def _show() -> None:
    plain.heading("SQL")
    plain.sentence(
        f"One SELECT over the views of this store. It can only read, for at most {SECONDS:g} s and"
        f" {ROWS:,} rows. The address of this page holds the query: keep or send it as a link.",
        "muted",
    )
    console, beside = st.columns([3, 1], gap="large")
    with console:
        examples = [_EMPTY, *EXAMPLES]
        st.selectbox("Queries to begin with", examples, key="example", on_change=_fill, width=320)
        sql = "".join(address.asked("sql"))
        st.text_area(
            "Query",
            height=200,
            placeholder=EXAMPLES["Columns of a view"],
            **address.widget("sql", sql, ""),
        )
        st.button("Run", help="Ctrl+Enter in the field does the same")
        if sql.strip():
            _show_result(sql)
    with beside:
        _views()


if __name__ == "__main__":
    _show()
