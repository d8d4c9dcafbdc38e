"""Transactions on a store, whose database errors come out as `StoreError` in plain words."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from os.path import samestat
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Executable, Row, Select, func, select
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from store.errors import ServerAwayError, StoreError, StoreOutageError
from store.rows.location import display_name

_T = TypeVar("_T")
_Given = ParamSpec("_Given")
BUSY_S = 30.0
"""How long a writer waits for another one; every write transaction is short."""
RECONNECT_S = 60.0
"""How long a server that was reached before may be away, such as while it restarts."""
WRITER_LOCK = 0x427245  # "BrE": the advisory lock that stands for BEGIN IMMEDIATE on PostgreSQL


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection to read from; errors come out as `StoreError`."""
    with explain_errors(display_name(engine.url)), _connected(engine) as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction, exclusive from its first statement on (`BEGIN IMMEDIATE`); errors come
    out as `StoreError`.
    """
    with (
        explain_errors(display_name(engine.url)),
        _connected(engine).execution_options(writing=True) as connection,
        connection.begin(),
    ):
        check_same_file(engine, connection)
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(WRITER_LOCK)))
        yield connection


def check_same_file(engine: Engine, connection: Connection) -> None:
    """Raise `StoreOutageError` where the file that a connection has open is no longer at its path:
    what is written to it would be lost.
    """
    path, opened = Path(engine.url.database or ""), connection.info.get("file")
    if opened and not (path.exists() and samestat(path.stat(), opened)):
        raise StoreOutageError(
            f"{display_name(engine.url)} was deleted, moved or replaced while this program had it"
            " open: nothing more is stored; put it back, and the same command goes on, or run again"
            " into a new store"
        )


def retried(transaction: Callable[_Given, _T]) -> Callable[_Given, _T]:
    """The function, which is called again for `RECONNECT_S` where the server goes away meanwhile,
    such as one that restarts in the middle of its transaction.
    """

    @wraps(transaction)
    def until_done(*given: _Given.args, **named: _Given.kwargs) -> _T:
        until = time.monotonic() + RECONNECT_S
        while True:
            try:
                return transaction(*given, **named)
            except ServerAwayError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.5)

    return until_done


def database_time(connection: Connection) -> float:
    """Seconds since the epoch by the database's clock, which all hosts that share a store read
    alike.
    """
    return float(connection.execute(_CLOCKS[connection.dialect.name]).scalar_one())


_CLOCKS = {
    "postgresql": select(func.extract("epoch", func.clock_timestamp())),
    "sqlite": select((func.julianday("now") - 2440587.5) * 86400),
}


@retried
def fetch(engine: Engine, statement: Executable) -> Sequence[Row[*tuple[Any, ...]]]:
    """The rows that a statement selects, read in a transaction of their own."""
    with reading(engine) as connection:
        return connection.execute(statement).all()


@retried
def fetch_values(engine: Engine, statement: Executable) -> Sequence[Any]:
    """The first column of the rows that a statement selects."""
    with reading(engine) as connection:
        return connection.execute(statement).scalars().all()


def rows_in(
    connection: Connection, statement: Select[Any], column: ColumnElement[Any], ids: Iterable[Any]
) -> Iterator[Row[Any]]:
    """The rows of a statement whose `column` is one of the ids, however many these are."""
    for batch in batches(ids):
        yield from connection.execute(statement.where(column.in_(batch)))


def batches(ids: Iterable[_T], size: int = 5000) -> Iterator[list[_T]]:
    """The ids, as many at a time as one statement may name."""
    listed = list(ids)
    return (listed[start : start + size] for start in range(0, len(listed), size))


def _connected(engine: Engine) -> Connection:
    """A connection; a server that does not take any is tried again for `RECONNECT_S`."""
    until = time.monotonic() + RECONNECT_S
    while True:
        try:
            return engine.connect()
        except OperationalError as error:
            if not _is_away(error) or time.monotonic() > until:
                raise
        time.sleep(0.5)


@contextmanager
def explain_errors(where: str) -> Iterator[None]:
    """Turn database errors inside the block into a `StoreError` about the store with the displayed
    name `where`.
    """
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError) as error:
        raise store_error(error, where) from error


DAMAGED = (
    "is damaged (SQLite: database disk image is malformed); restore a backup, or try: sqlite3 FILE"
    " .recover"
)
LASTING = {
    "not a database": (
        "is not an SQLite database; name another file with --db, or move it out of the way"
    ),
    "malformed": DAMAGED,
    "could not decode": DAMAGED,
    "readonly": (
        "cannot be written: the file or its folder is read-only; make it writable or name another"
        " store with --db"
    ),
    "unable to open": (
        "cannot be opened; SQLite needs a readable file in a folder where it may create files"
        " beside it"
    ),
}
"""By a part of SQLite's message what it means."""
PASSING = {
    "disk is full": (
        "cannot grow: the disk is full; nothing of this transaction was stored. Free some space and"
        " run again"
    ),
    "disk i/o error": "cannot be read or written: the disk reports an error (is it full or gone?)",
    "locked": (
        f"was kept locked by another program for {BUSY_S:.0f} s; end that program (an open sqlite3"
        " shell?) and run again"
    ),
}
"""Those that may pass."""


def store_error(error: Exception, where: str) -> StoreError:
    """A database error in plain words; `where` is the displayed name of the store."""
    if isinstance(error, UnicodeDecodeError):  # a text of an SQLite file that is none
        return StoreError(f"{where} {DAMAGED}")
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    message = str(cause).strip().partition("\n")[0]
    for meanings, kind in ((LASTING, StoreError), (PASSING, StoreOutageError)):
        for pattern, meaning in meanings.items():
            if pattern in message.lower():
                return kind(f"{where} {meaning}")
    if isinstance(error, OperationalError) and _is_away(error):
        return ServerAwayError(
            f"{where} does not answer: {type(cause).__name__}: {message}; once it is back the same"
            " command goes on"
        )
    return StoreError(f"{where}: {type(cause).__name__}: {message}")


def _is_away(error: OperationalError) -> bool:
    """Whether a server did not answer or ended the connection; one that refuses a user or a name is
    there.
    """
    state, message = getattr(error.orig, "sqlstate", ""), str(error.orig)
    if state is None:  # without a connection
        return "FATAL" not in message or any(
            word in message for word in ("starting up", "shutting down", "recovery", "too many")
        )
    return state.startswith(("08", "57P"))


def set_write_ahead(engine: Engine) -> None:
    """Let readers and the writer work at the same time; stays set in the file. No effect on other
    databases.
    """
    if engine.dialect.name != "sqlite":
        return
    deadline = time.monotonic() + BUSY_S
    raw = engine.raw_connection()
    try:
        while True:
            try:
                # SQLAlchemy has no construct for a PRAGMA
                raw.cursor().execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:  # SQLite does not wait for the lock here
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return
    finally:
        raw.close()
