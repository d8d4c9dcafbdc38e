"""A mark of what a store contains, which changes with every commit of any process: the key of
caches of what was read from it.
"""

import sqlite3
from itertools import count
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote

from sqlalchemy import Text, cast, func, select

from store.open.engine import connect_readonly
from store.rows.location import check_exists, display_name, location, reading_mode, sqlite_path
from store.rows.transactions import BUSY_S, explain_errors, reading


class _Watch(NamedTuple):
    """A connection that stays open, because SQLite counts the commits of others for one connection
    alone.
    """

    file: tuple[int, int, str]
    number: int
    connection: sqlite3.Connection


_LOCK = Lock()
_WATCHES: dict[Path, _Watch] = {}
_NUMBERS = count()


def state_mark(url: str | None = None) -> str:
    """Two equal marks of one process mean that nothing was committed to the store between them.

    SQLite: the file (another one at the same path has another mark) and `PRAGMA data_version`. The
    bytes of the files are not read: closing a file drops this process' locks on it. PostgreSQL: the
    snapshot of transactions, which other databases of the server change too. Raises `StoreError` if
    the store is missing or cannot be opened.
    """
    where = location(url)
    path = sqlite_path(where)
    if path is not None:
        with explain_errors(display_name(where)):
            return _sqlite_mark(path)
    engine = connect_readonly(url)
    try:
        if engine.dialect.name != "postgresql":
            return f"{where} {next(_NUMBERS)}"  # a store in memory: nothing is kept
        with reading(engine) as connection:
            snapshot = connection.execute(
                select(cast(func.pg_current_snapshot(), Text))
            ).scalar_one()
            return f"{where} {snapshot}"
    finally:
        engine.dispose()


def _sqlite_mark(path: Path) -> str:
    check_exists(path)
    found = path.stat()
    mode = reading_mode(path)
    file = (found.st_dev, found.st_ino, mode)
    with _LOCK:
        watch = _WATCHES.get(path)
        if watch is None or watch.file != file:
            if watch is not None:
                watch.connection.close()
            opened = sqlite3.connect(
                f"file:{quote(str(path))}?mode={mode}",
                uri=True,
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            watch = _WATCHES[path] = _Watch(file, next(_NUMBERS), opened)
        version = watch.connection.execute("PRAGMA data_version").fetchone()[0]
    return f"{path} {watch.number} {version}"
