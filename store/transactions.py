"""Transactions on a store, whose database errors come out as `StoreError` in plain words."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from store.errors import StoreError
from store.location import display_name

BUSY_S = 30.0
"""How long a writer waits for another one; every write transaction is short."""
WRITER_LOCK = 0x427245  # "BrE": the advisory lock that stands for BEGIN IMMEDIATE on PostgreSQL


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection to read from; errors come out as `StoreError`."""
    with explain_errors(display_name(engine.url)), engine.connect() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction, exclusive from its first statement on (`BEGIN IMMEDIATE`); errors come out as `StoreError`."""
    with (
        explain_errors(display_name(engine.url)),
        engine.connect().execution_options(writing=True) as connection,
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(WRITER_LOCK)))
        yield connection


@contextmanager
def explain_errors(where: str) -> Iterator[None]:
    """Turn database errors inside the block into a `StoreError` about the store at `where`."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise StoreError(explain(error, where)) from error


def explain(error: Exception, where: str) -> str:
    """What a database error means, in plain words; `where` names the store."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    message = str(cause).strip().partition("\n")[0]
    for pattern, meaning in {
        "not a database": "is not an SQLite database; name another file with --db, or move it out of the way",
        "malformed": "is damaged (SQLite: database disk image is malformed); restore a backup, or try: sqlite3 FILE .recover",
        "readonly": "cannot be written: the file or its folder is read-only; make it writable or name another store with --db",
        "unable to open": "cannot be opened; SQLite needs a readable file in a folder where it may create files beside it",
        "disk is full": "cannot grow: the disk is full; nothing of this transaction was stored. Free some space and run again",
        "disk i/o error": "cannot be read or written: the disk reports an error (is it full or gone?)",
        "locked": f"was kept locked by another program for {BUSY_S:.0f} s; end that program (an open sqlite3 shell?) and run again",
    }.items():
        if pattern in message.lower():
            return f"{display_name(where)} {meaning}"
    return f"{display_name(where)}: {type(cause).__name__}: {message}"


def set_write_ahead(engine: Engine) -> None:
    """Let readers and the writer work at the same time; stays set in the file. No effect on other databases."""
    if engine.dialect.name != "sqlite":
        return
    deadline = time.monotonic() + BUSY_S
    raw = engine.raw_connection()
    try:
        while True:
            try:
                raw.cursor().execute("PRAGMA journal_mode = WAL")  # SQLAlchemy has no construct for a PRAGMA
            except sqlite3.OperationalError as error:  # SQLite does not wait for the lock here
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return
    finally:
        raw.close()
