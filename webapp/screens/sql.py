"""Page: a read-only console for SQL, with the views beside it; the query is part of the address."""

from typing import Any

import pandas as pd
import streamlit as st

from store.errors import StoreError
from store.read.user_sql import Result, run_query
from store.views.view_docs import EXAMPLES, ONE_ROW_PER
from sweeps.number_format import count
from webapp import queries
from webapp.display import plain
from webapp.queries.result_frame import frame_of, parquet

SECONDS, ROWS = 10.0, 10_000  # limits of a query; a text below would be shown on the page
_EMPTY = "Your own"


def result_of(sql: str) -> Result:
    """The result, kept until the store changes; raises `StoreError`."""
    return queries.kept(lambda _: run_query(None, sql, seconds=SECONDS, rows=ROWS), "sql", sql)


def show_result(sql: str) -> None:
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
        st.download_button(
            "CSV",
            lambda: frame.to_csv(index=False).encode(),
            "query.csv",
            "text/csv",
            on_click="ignore",
        )
        mime = "application/vnd.apache.parquet"
        st.download_button(
            "Parquet", lambda: parquet(frame), "query.parquet", mime, on_click="ignore"
        )


def views() -> None:
    """What the chosen view has a row for, and its columns."""
    view = str(st.selectbox("View", list(ONE_ROW_PER), key="view"))
    plain.sentence(f"One row per {ONE_ROW_PER[view]}. Its columns:")
    plain.sentence(", ".join(queries.columns_of(view)), "muted")


def fill() -> None:
    """Put the chosen example into the field."""
    sql = EXAMPLES.get(st.session_state["example"])
    if sql is not None:
        measured = [row["name"] for row in queries.measured_sweeps() if row["measured"]]
        sweep = st.session_state.get("sweep") or next(iter(measured), "")
        st.session_state["sql"] = sql.replace("{sweep}", str(sweep).replace("'", "''"))


plain.heading("SQL")
plain.sentence(
    f"One SELECT over the views of this store. It can only read, for at most {SECONDS:g} s and"
    f" {ROWS:,} rows. The address of this page holds the query: keep or send it as a link.",
    "muted",
)
_console, _beside = st.columns([3, 1], gap="large")
with _console:
    st.selectbox(
        "Queries to begin with", [_EMPTY, *EXAMPLES], key="example", on_change=fill, width=320
    )
    _sql = st.text_area(
        "Query",
        key="sql",
        bind="query-params",
        height=200,
        placeholder=EXAMPLES["Columns of a view"],
    )
    st.button("Run", type="primary", help="Ctrl+Enter in the field does the same")
    if _sql and _sql.strip():
        show_result(_sql)
with _beside:
    views()
