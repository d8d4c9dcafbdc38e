"""SQL that users write: one SELECT, on a connection that can only read, within limits of time, rows
and memory; what each view holds, and queries to begin with.
"""

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

import psutil
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from store.errors import StoreError
from store.open.engine import connect_readonly, disposing
from store.rows.location import display_name, location, sqlite_path
from store.rows.transactions import store_error
from sweeps.model.flags import FLAGS

VALUE_BYTES = 250_000
"""The longest text or blob that a query may read or make."""
RESULT_BYTES = 64_000_000
MEMORY_BYTES = 512_000_000
"""How much the process may grow during a query: sorting and grouping happen in memory, so that
nothing is written anywhere."""
STEPS = 20_000
"""SQLite instructions between two looks at the clock: about a millisecond."""
ROWS_AT_ONCE = 100

ALLOWED_FUNCTIONS = re.compile(
    r"abs|acos|asin|atan|atan2|avg|cast|ceil|ceiling|changes|char|coalesce|concat|concat_ws|cos|count|"
    r"cume_dist|date|datetime|degrees|dense_rank|exp|first_value|floor|glob|group_concat|hex|ifnull|iif|instr|"
    r"json|json_array|json_array_length|json_each|json_extract|json_group_array|json_group_object|json_object|"
    r"json_quote|json_tree|json_type|json_valid|julianday|lag|last_value|lead|length|like|ln|log|log10|log2|"
    r"lower|max|min|mod|nth_value|ntile|nullif|percent_rank|pi|pow|power|quote|radians|random|randomblob|"
    r"rank|replace|round|row_number|sign|sin|sqrt|strftime|string_agg|substr|substring|sum|tan|time|timediff|"
    r"total|trunc|typeof|unhex|unicode|unixepoch|upper|zeroblob|->>?",
    re.IGNORECASE,
)
"""SQL functions that only compute, and soon end: load_extension is not among them, nor printf and
trim, a single call of which can run for minutes that nothing can interrupt."""
READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
}


class Result(NamedTuple):
    """What a query found."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool
    """More rows exist than were requested, or than fit."""


def run_query(url: str | None, sql: str, *, seconds: float = 10.0, rows: int = 10_000) -> Result:
    """Run one SELECT to its end: the rows of `open_query`, collected. Raises `StoreError` as that
    does.
    """
    with open_query(url, sql, seconds=seconds, rows=rows) as stream:
        found = list(stream)
        return Result(stream.columns, found, bool(stream.limit))


@contextmanager
def open_query(
    url: str | None, sql: str, *, seconds: float = 10.0, rows: int = 10_000
) -> Iterator["RowStream"]:
    """Run one SELECT on the store at `url` (see `store.rows.location.location`): its rows as they
    are found, at most `rows`.

    It may take `seconds`, with what is done between two rows, but without waiting there (such as
    for the reader of a pipe). Raises `StoreError`, at the start or between rows, for anything that
    is not one SELECT, for what takes too long or too much memory, and for SQL errors, with the
    nearest names where a column or view is unknown.
    """
    where = location(url)
    guard = _Guard(seconds)
    with (_on_server if sqlite_path(where) is None else _on_sqlite)(where, sql, guard) as cursor:
        if cursor.description is None:
            raise StoreError(
                "the query is empty; write one SELECT, such as: SELECT * FROM break_even"
            )
        yield RowStream(cursor, rows, guard)


class RowStream:
    """The rows of a running query, to be read once; none is kept."""

    def __init__(self, cursor: Any, most: int, guard: "_Guard") -> None:
        self.columns: tuple[str, ...] = tuple(str(column[0]) for column in cursor.description)
        self.returned = 0
        self.limit: Literal["", "rows", "bytes"] = ""
        """Which limit ended it although there are more rows: the requested number, or
        `RESULT_BYTES` of text and blobs."""
        self._cursor, self._most, self._guard = cursor, most, guard

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        size = 0
        for row in self._cursor:
            size += sum([len(value) for value in row if isinstance(value, str | bytes)])
            if self.returned == self._most or size > RESULT_BYTES:
                self.limit = "rows" if self.returned == self._most else "bytes"
                return
            self.returned += 1
            began, busy = time.monotonic(), time.thread_time()
            yield tuple(row)
            self._guard.deadline += max(0.0, time.monotonic() - began - (time.thread_time() - busy))


class _Guard:
    """Decides what a statement may do, and for how long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self.process = psutil.Process()
        self.memory = self.process.memory_info().rss + MEMORY_BYTES
        self.refused = ""

    def allows(
        self,
        action: int,
        _first: str | None,
        second: str | None,
        _database: str | None,
        _source: str | None,
    ) -> int:
        if action in READING or (
            action == sqlite3.SQLITE_FUNCTION and ALLOWED_FUNCTIONS.fullmatch(second or "")
        ):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            self.refused = (
                self.refused or f"the function {second} is not among those that a query may use"
            )
        return sqlite3.SQLITE_DENY

    def stops(self) -> bool:
        """Called every `STEPS` instructions; True interrupts the query."""
        if time.monotonic() > self.deadline:
            self.refused = (
                f"it took longer than {self.seconds:g} s; narrow it down (WHERE, LIMIT) or allow"
                " more time"
            )
        elif self.process.memory_info().rss > self.memory:
            self.refused = (
                f"it needs more than {MEMORY_BYTES // 1_000_000} MB of memory; narrow it down"
                " (WHERE, LIMIT)"
            )
        return bool(self.refused)


@contextmanager
def _on_sqlite(where: str, sql: str, guard: _Guard) -> Iterator[Any]:
    with (
        disposing(connect_readonly(where)) as engine,
        closing(engine.raw_connection()) as pooled,
    ):
        connection: Any = pooled.driver_connection
        connection.execute("PRAGMA temp_store = MEMORY")
        for limit, value in LIMITS.items():
            connection.setlimit(limit, value)
        connection.set_authorizer(guard.allows)
        connection.set_progress_handler(guard.stops, STEPS)
        with _explain_refusal(guard, where, connection):
            yield connection.execute(sql)


@contextmanager
def _on_server(where: str, sql: str, guard: _Guard) -> Iterator[Any]:
    """Any other database: a read-only session, with the server's own time limit, and one statement
    by the extended protocol.

    A cursor of the server's: the rows are fetched in groups of `ROWS_AT_ONCE`.
    """
    engine = connect_readonly(where)
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(
                    select(
                        func.set_config(
                            "statement_timeout", str(round(1000 * guard.seconds)), False
                        )
                    )
                )
            raw: Any = connection.connection.cursor(name="breakeven_query")
            with raw:
                raw.itersize = ROWS_AT_ONCE
                raw.execute(sql)
                yield raw
    except (DBAPIError, engine.dialect.loaded_dbapi.Error) as error:
        # 42601: no statement that a cursor can read
        only = (
            "; only reading is allowed here: one SELECT (or WITH … SELECT)"
            if getattr(error, "sqlstate", "") == "42601"
            else ""
        )
        raise StoreError(
            f"query refused: {store_error(error, display_name(where))}{only}"
        ) from error
    finally:
        engine.dispose()


@contextmanager
def _explain_refusal(guard: _Guard, where: str, connection: sqlite3.Connection) -> Iterator[None]:
    """Raise a `StoreError` that explains why a query was refused."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
        message = str(error)
        if guard.refused:
            why = guard.refused
        elif "authoriz" in message or "prohibited" in message:
            why = (
                "only reading is allowed here: one SELECT (or WITH … SELECT) over the views and"
                " tables"
            )
        elif "one statement" in message:
            why = "one statement at a time"
        elif "too big" in message or "too large" in message:
            why = f"it reads or makes a value longer than {VALUE_BYTES // 1000} kB"
        elif unknown := re.match(r"no such (column|table): (.+)", message):
            why = f"{message}; {_suggest(connection, *unknown.groups())}"
        elif not isinstance(error, sqlite3.OperationalError | sqlite3.Warning):
            raise store_error(error, display_name(where)) from error
        else:
            why = message
        raise StoreError(f"query refused: {why}") from error


def _suggest(connection: sqlite3.Connection, kind: str, name: str) -> str:
    """The names like the unknown one."""
    from store.views.public import VIEWS  # imports the table models, which a query does not need

    connection.set_authorizer(None)
    if kind == "table":
        names = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('view', 'table')"
            )
        ]
        near = get_close_matches(name, names, n=3)
        return f"did you mean {' or '.join(near)}?" if near else f"the views are {', '.join(VIEWS)}"
    views: dict[str, str] = {}
    for view in VIEWS:
        with suppress(sqlite3.Error):  # of a damaged store
            for row in connection.execute("SELECT name FROM pragma_table_info(?)", [view]):
                views.setdefault(row[0], view)
    near = [
        f"{column} (of {views[column]})"
        for column in get_close_matches(name.rpartition(".")[2], views, n=3)
    ]
    return (
        f"did you mean {' or '.join(near)}?"
        if near
        else "see the columns of a view with: SELECT * FROM speedup LIMIT 1"
    )


ONE_ROW_PER: Mapping[str, str] = {
    "speedup": "question, metric, environment and host",
    "break_even": "sweep, curve, metric, environment, host, axis and crossing",
    "effect": "question, metric, environment and host",
    "accuracy": "question and environment",
    "quality": "question and environment",
    "sweep_comparison": "sweep and comparison",
    "cost_model": "sweep, curve along tokens, metric, environment and host",
    "arm": "arm, condition, kind of job, environment and host",
    "generation": "arm, condition of generation, environment and host",
    "profile": "profile of an arm (or an imported file), phase and class of time",
    "kernel": "kernel, copy or operator of a profile",
    "failures": "comparison without a measurement, and failure",
    "metric": "attempt, arm and metric",
    "execution": "attempt",
    "reference": "row of a published table",
}
"""By view what it has a row for."""
_NOT_WRONG = "".join(
    f"\n    AND flags NOT LIKE '%{name}%'" for name, flag in FLAGS.items() if flag.wrong
)
EXAMPLES: Mapping[str, str] = {
    "Speed-ups of a sweep": (
        """SELECT arm_label, model, batch_size, tokens, speedup, speedup_low, speedup_high, verdict
FROM speedup JOIN sweep_comparison USING (comparison_id)
WHERE sweep = '{sweep}'
ORDER BY model, batch_size, arm_label, tokens"""
    ),
    "Where it pays": (
        """SELECT model, batch_size, arm_label, verdict, x, x_low, x_high, why
FROM break_even
WHERE sweep = '{sweep}' AND axis = 'tokens'
ORDER BY model, batch_size, arm_label"""
    ),
    "How much of the promise arrives": """WITH shares AS (
  SELECT method, model, batch_size, runtime, device_name, metric, realised_share,
    row_number() OVER (alike ORDER BY realised_share) AS place,
    count(*) OVER alike AS points
  FROM speedup JOIN sweep_comparison USING (comparison_id)
  WHERE sweep = '{sweep}' AND realised_share IS NOT NULL{right}
  WINDOW alike AS (PARTITION BY method, model, batch_size, runtime, device_name, metric)
)
SELECT method, model, batch_size, runtime, device_name, metric, points,
  round(CAST(avg(realised_share) AS numeric), 2) AS median
FROM shares
WHERE 2 * place BETWEEN points AND points + 2
GROUP BY method, model, batch_size, runtime, device_name, metric, points
ORDER BY median DESC""".replace("{right}", _NOT_WRONG),
    "Accuracy beside speed": (
        """SELECT a.method, a.params, a.top1, a.top1_drop, s.speedup, s.batch_size, a.gmacs_total
FROM accuracy AS a JOIN speedup AS s USING (arm_id, model, weights, image_size)
ORDER BY s.speedup DESC"""
    ),
    "Failures by reason": (
        """SELECT reason, message, count(*) AS comparisons, max(at) AS newest
FROM failures
GROUP BY reason, message
ORDER BY comparisons DESC"""
    ),
    "Attempts that were quarantined": (
        """SELECT attempt, host, device_name, quarantine, flags,
  datetime(ended_at, 'unixepoch') AS ended
FROM execution
WHERE quarantine IS NOT NULL
ORDER BY ended_at DESC"""
    ),
    "Columns of a view": "SELECT * FROM speedup LIMIT 1",
}
"""Queries by title; `{sweep}` stands for the name of a sweep, with its quotes doubled."""
