"""SQL that users write: one SELECT, on a connection that can only read, within limits of time, rows and memory."""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from store.engine import connect_readonly
from store.errors import StoreError
from store.location import check_exists, location, reading_mode, sqlite_path
from store.transactions import BUSY_S, explain

VALUE_BYTES = 250_000
"""The longest text or blob that a query may read or make."""
RESULT_BYTES = 64_000_000
MEMORY_BYTES = 512_000_000
"""How much the process may grow during a query: sorting and grouping happen in memory, so that nothing is written anywhere."""
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
"""SQL functions that only compute, and soon end: load_extension is not among them, nor printf and trim, a single call of which
can run for minutes that nothing can interrupt."""
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
    """Run one SELECT on the store at `url` (see `store.location.location`), for at most `seconds`, returning at most `rows`.

    Raises `StoreError` for anything that is not one SELECT, for what takes too long or too much memory, and for SQL errors,
    with the nearest names where a column or view is unknown.
    """
    where = location(url)
    path = sqlite_path(where)
    return _on_server(where, sql, seconds, rows) if path is None else _on_sqlite(path, sql, seconds, rows)


class _Guard:
    """Decides what a statement may do, and for how long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self.memory = _resident() + MEMORY_BYTES
        self.refused = ""

    def allows(self, action: int, _first: str | None, second: str | None, _database: str | None, _source: str | None) -> int:
        if action in READING or (action == sqlite3.SQLITE_FUNCTION and ALLOWED_FUNCTIONS.fullmatch(second or "")):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            self.refused = self.refused or f"the function {second} is not among those that a query may use"
        return sqlite3.SQLITE_DENY

    def stops(self) -> bool:
        """Called every `STEPS` instructions; True interrupts the query."""
        if time.monotonic() > self.deadline:
            self.refused = f"it took longer than {self.seconds:g} s; narrow it down (WHERE, LIMIT) or allow more time"
        elif _resident() > self.memory:
            self.refused = f"it needs more than {MEMORY_BYTES // 1_000_000} MB of memory; narrow it down (WHERE, LIMIT)"
        return bool(self.refused)


def _on_sqlite(path: Path, sql: str, seconds: float, rows: int) -> Result:
    check_exists(path)
    guard = _Guard(seconds)
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={reading_mode(path)}", uri=True, timeout=BUSY_S, isolation_level=None
    )
    with closing(connection), _explain_refusal(guard, path, connection):
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")  # is it a database at all?
        for limit, value in LIMITS.items():
            connection.setlimit(limit, value)
        connection.set_authorizer(guard.allows)
        connection.set_progress_handler(guard.stops, STEPS)
        cursor = connection.execute(sql)
        return _fetch(cursor.description, cursor.fetchmany, rows)


def _on_server(where: str, sql: str, seconds: float, rows: int) -> Result:
    """Any other database: a read-only session, with the server's own time limit, and one statement by the extended protocol."""
    engine = connect_readonly(where)
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.set_config("statement_timeout", str(round(1000 * seconds)), False)))
            raw: Any = connection.connection.cursor()
            raw.execute(sql, prepare=True)  # only one statement can be prepared
            return _fetch(raw.description, raw.fetchmany, rows)
    except (DBAPIError, engine.dialect.loaded_dbapi.Error) as error:
        raise StoreError(f"query refused: {explain(error, where)}") from error
    finally:
        engine.dispose()


def _fetch(description: Sequence[Sequence[Any]] | None, fetch: Callable[[int], Sequence[Any]], limit: int) -> Result:
    if description is None:
        raise StoreError("the query is empty; write one SELECT, such as: SELECT * FROM break_even")
    columns = tuple(str(column[0]) for column in description)
    rows: list[tuple[Any, ...]] = []
    size = 0
    while batch := fetch(min(ROWS_AT_ONCE, limit + 1 - len(rows))):
        for row in batch:
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            if len(rows) == limit or size > RESULT_BYTES:
                return Result(columns, rows, truncated=True)
            rows.append(tuple(row))
    return Result(columns, rows, truncated=False)


@contextmanager
def _explain_refusal(guard: _Guard, path: Path, connection: sqlite3.Connection) -> Iterator[None]:
    """Raise a `StoreError` that explains why a query was refused."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning) as error:
        message = str(error)
        if guard.refused:
            why = guard.refused
        elif "authoriz" in message or "prohibited" in message:
            why = "only reading is allowed here: one SELECT (or WITH … SELECT) over the views and tables"
        elif "one statement" in message:
            why = "one statement at a time"
        elif "too big" in message or "too large" in message:
            why = f"it reads or makes a value longer than {VALUE_BYTES // 1000} kB"
        elif unknown := re.match(r"no such (column|table): (.+)", message):
            why = f"{message}; {_suggest(connection, *unknown.groups())}"
        elif isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            raise StoreError(explain(error, f"sqlite:///{path}")) from error
        else:
            why = message
        raise StoreError(f"query refused: {why}") from error


def _suggest(connection: sqlite3.Connection, kind: str, name: str) -> str:
    """The names like the unknown one."""
    from store.views.public import VIEWS  # imports the table models, which a query does not need

    connection.set_authorizer(None)
    if kind == "table":
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'table')")]
        near = get_close_matches(name, names, n=3)
        return f"did you mean {' or '.join(near)}?" if near else f"the views are {', '.join(VIEWS)}"
    views: dict[str, str] = {}
    for view in VIEWS:
        for row in connection.execute("SELECT name FROM pragma_table_info(?)", [view]):
            views.setdefault(row[0], view)
    near = [f"{column} (of {views[column]})" for column in get_close_matches(name.rpartition(".")[2], views, n=3)]
    return f"did you mean {' or '.join(near)}?" if near else "see the columns of a view with: SELECT * FROM speedup LIMIT 1"


def _resident() -> int:
    """Bytes of memory that the process holds; 0 without /proc, which leaves only the other limits."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
