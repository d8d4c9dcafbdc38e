"""Engines: a store opened for writing or for reading alone, and a mark of what it contains."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Text,
    cast,
    create_engine,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool, StaticPool

from store.errors import StoreError
from store.open.migration import migrate, views_are_current
from store.rows.location import (
    check_exists,
    check_place,
    display_name,
    location,
    reading_mode,
    sqlite_path,
)
from store.rows.transactions import BUSY_S, explain_errors, reading

__all__ = [
    "Engine",  # for the type annotations of those who may not import SQLAlchemy
    "connect",
    "connect_readonly",
    "disposing",
]


@contextmanager
def disposing(engine: Engine) -> Iterator[Engine]:
    """The engine, whose connections are closed when the block ends."""
    try:
        yield engine
    finally:
        engine.dispose()


def connect(url: str | None = None) -> Engine:
    """Open the store for writing; create it or bring its schema up to date first.

    Raises `StoreError` for what is not a store, a store of a newer program, and places that cannot
    be written.
    """
    where = location(url)
    path = sqlite_path(where)
    if path is not None:
        check_place(path)
    engine = (
        _server_engine(where) if not where.startswith("sqlite") else _sqlite_engine(path, "rwc")
    )
    try:
        with explain_errors(display_name(where)):
            migrate(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def connect_readonly(url: str | None = None) -> Engine:
    """Open the store for reading alone. Raises `StoreError` if it is missing or cannot be read by
    this program.

    Views that other declarations made are hidden by temporary ones of today, and stay in the store
    as they are.
    """
    where = location(url)
    path = sqlite_path(where)
    if path is not None:
        check_exists(path)
    if where.startswith("sqlite"):
        engine = _sqlite_engine(path, "ro" if path is None else reading_mode(path))
    else:
        engine = _server_engine(where, options="-c default_transaction_read_only=on")
    try:
        with explain_errors(display_name(where)):
            if not views_are_current(engine):
                engine.dispose()  # its connection has no views of today
                event.listen(engine, "connect", partial(_add_views, engine))
    except BaseException:
        engine.dispose()
        raise
    return engine


def _add_views(engine: Engine, connection: Any, _record: Any) -> None:
    """Create the views of today as temporary ones of the connection."""
    # makes all views, which a store with current ones does not need
    from store.views.public import creations

    made = [
        str(statement.compile(dialect=engine.dialect)) for statement in creations(temporary=True)
    ]
    if engine.dialect.name == "sqlite":
        connection.executescript(";".join(["PRAGMA temp_store = MEMORY", *made]))
        return
    connection.autocommit = True
    for sql in ("BEGIN READ WRITE", *made, "COMMIT"):
        connection.execute(sql, ())  # with parameters, be they none, %% stands for %
    connection.autocommit = False


def _server_engine(where: str, **connect_args: str) -> Engine:
    try:
        engine = create_engine(_server_url(where), connect_args=connect_args, pool_pre_ping=True)
        engine.dialect.import_dbapi()
    except (ArgumentError, ImportError, ValueError) as error:
        why = "its port is no number" if "invalid literal for int" in str(error) else error
        raise StoreError(f"{display_name(where)} is no usable database URL: {why}") from None
    return engine


def _server_url(where: str) -> URL:
    url = make_url(where)
    if "@" in (url.host or ""):
        raise ArgumentError("a password that contains @ is written with %40 in its place")
    return url


def _sqlite_engine(path: Path | None, mode: str) -> Engine:
    """An engine that begins its own transactions: reading ones deferred, writing ones immediate."""
    opened = partial(
        sqlite3.connect,
        ":memory:" if path is None else f"file:{quote(str(path))}?mode={mode}",
        uri=path is not None,
        timeout=BUSY_S,
        isolation_level=None,  # the driver begins no transaction, see `_begin`
        check_same_thread=False,
    )
    engine = create_engine(
        "sqlite://", creator=opened, poolclass=StaticPool if path is None else QueuePool
    )
    engine.url = make_url("sqlite://").set(database=str(path) if path else None)
    event.listen(engine, "connect", partial(_set_pragmas, path))
    event.listen(engine, "begin", _begin)
    return engine


def _set_pragmas(path: Path | None, connection: sqlite3.Connection, record: Any) -> None:
    if path is not None:
        record.info["file"] = path.stat()
    connection.execute("PRAGMA foreign_keys = ON")
    # NORMAL: a commit survives the death of any process; after a power cut the last commits may be
    # missing, the file is whole,
    # and the jobs concerned are simply waiting again. FULL would cost a disk flush for every
    # outcome.
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin(connection: Connection) -> None:
    # A deferred transaction that turns to writing fails at once when another one wrote meanwhile,
    # however long it might wait.
    connection.exec_driver_sql(
        "BEGIN IMMEDIATE" if connection.get_execution_options().get("writing") else "BEGIN"
    )


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
    with disposing(connect_readonly(url)) as engine:
        if engine.dialect.name != "postgresql":
            return f"{where} {next(_NUMBERS)}"  # a store in memory: nothing is kept
        with reading(engine) as connection:
            snapshot = connection.execute(
                select(cast(func.pg_current_snapshot(), Text))
            ).scalar_one()
            return f"{where} {snapshot}"


def close_watches() -> None:
    """Close the connections that marks were read from; later marks differ from those before."""
    with _LOCK:
        while _WATCHES:
            _WATCHES.popitem()[1].connection.close()


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
