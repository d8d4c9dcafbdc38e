"""Connections to the store: where it is, how it is opened, and what its errors mean in plain words."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

__all__ = [
    "EmptyStoreError",
    "Engine",  # for the type annotations of those who may not import SQLAlchemy
    "StoreError",
    "check_exists",
    "connect",
    "connect_readonly",
    "explain",
    "explained",
    "location",
    "network_file_system",
    "reading_mode",
    "set_write_ahead",
    "shown",
    "sqlite_path",
    "writing",
]

DEFAULT = "breakeven.db"
VARIABLE = "BREAKEVEN_DB"
BUSY_S = 30.0
"""How long a writer waits for another one; every write transaction is short."""
NETWORK_FILE_SYSTEMS = frozenset(
    ("afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre", "nfs", "nfs4", "smb3", "smbfs")
)
"""There the shared memory that SQLite's write-ahead log needs does not work between machines."""
WRITER_LOCK = 0x427245  # "BrE": the advisory lock that stands for BEGIN IMMEDIATE on PostgreSQL


class StoreError(Exception):
    """What went wrong with the store and what would be right, in a line."""


class EmptyStoreError(StoreError):
    """A database without tables: a new one, or a store that another process is about to create."""


def location(url: str | None) -> str:
    """The SQLAlchemy URL of a store: `url`, else $BREAKEVEN_DB, else `breakeven.db` in the current folder.

    Whatever has no `://` is the path of an SQLite file.
    """
    asked = url or os.environ.get(VARIABLE) or DEFAULT
    if asked.startswith("postgres://"):
        asked = asked.replace("postgres", "postgresql", 1)
    return asked if "://" in asked else f"sqlite:///{Path(asked).expanduser().absolute()}"


def sqlite_path(url: str) -> Path | None:
    """The file behind an SQLite URL; `None` for SQLite in memory and for other databases. `url` comes from `location`."""
    if not url.startswith("sqlite"):
        return None
    name = url.partition("://")[2].removeprefix("/")  # not make_url: a file name may hold `?`, `%` and `#`
    return None if name in ("", ":memory:") else Path(name)


def connect(url: str | None = None) -> Engine:
    """Open the store for writing; create it or bring its schema up to date first (an SQLite file is backed up before).

    Raises `StoreError` for what is not a store, a store of a newer program, and places that cannot be written.
    """
    from store.migration import prepare

    where = location(url)
    path = sqlite_path(where)
    if path is not None:
        _check_place(path)
    engine = _engine(where, mode="rwc")
    with explained(where):
        prepare(engine, path)
    return engine


def connect_readonly(url: str | None = None) -> Engine:
    """Open the store for reading alone. Raises `StoreError` if it is missing or cannot be read by this program."""
    from store.migration import check_current

    where = location(url)
    path = sqlite_path(where)
    if path is not None:
        check_exists(path)
    engine = _engine(where, mode="ro" if path is None else reading_mode(path))
    with explained(where):
        check_current(engine)
    return engine


def reading_mode(path: Path) -> str:
    """What `?mode=` of the SQLite file at `path` must be to read it.

    A file with a write-ahead log is read with the help of files beside it, which cannot be made on a read-only file system.
    There nobody writes, so if no log is left the file alone is the whole store.
    """
    log = path.with_name(f"{path.name}-wal")
    try:
        pending = log.stat().st_size > 0
    except OSError:
        pending = False
    return "ro" if pending or os.access(path.parent, os.W_OK) else "ro&immutable=1"


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction, alone from its first statement on (`BEGIN IMMEDIATE`); errors come out as `StoreError`."""
    with explained(shown(engine.url)), engine.connect().execution_options(writing=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": WRITER_LOCK})
        yield connection


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn database errors inside the block into a `StoreError` about the store at `where`."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise StoreError(explain(error, where)) from error


def explain(error: Exception, where: str) -> str:
    """What a database error means, in plain words; `where` names the store."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    said = str(cause).strip().partition("\n")[0]
    for sign, meaning in {
        "not a database": "is not an SQLite database; name another file with --db, or move it out of the way",
        "malformed": "is damaged (SQLite says: database disk image is malformed); restore a backup, or try: sqlite3 FILE .recover",
        "readonly": "cannot be written: the file or its folder is read-only; make it writable or name another store with --db",
        "unable to open": "cannot be opened; SQLite needs a readable file in a folder where it may create files beside it",
        "disk is full": "cannot grow: the disk is full; nothing of this transaction was stored. Free some space and run again",
        "disk i/o error": "cannot be read or written: the disk reports an error (is it full or gone?)",
        "locked": f"was kept locked by another program for {BUSY_S:.0f} s; end that program (an open sqlite3 shell?) and run again",
    }.items():
        if sign in said.lower():
            return f"{shown(where)} {meaning}"
    return f"{shown(where)}: {type(cause).__name__}: {said}"


def network_file_system(path: Path, mounts: str) -> str | None:
    """The type of the network file system that holds `path` (absolute), or `None`; `mounts` is the text of /proc/mounts."""
    best, kind = "", None
    for line in mounts.splitlines():
        _, folder, name, *_ = line.split(" ")
        folder = folder.replace("\\040", " ")
        if path.is_relative_to(folder) and len(folder) >= len(best):
            best, kind = folder, name
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def check_exists(path: Path) -> None:
    """Raise `StoreError` unless there is a file at `path`."""
    if not path.is_file():
        wrong = "is a folder, not a store" if path.is_dir() else "does not exist"
        raise StoreError(f"{path} {wrong}; run a sweep first: breakeven run sweeps/quickstart.yaml, or name a store with --db")


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder; the store is a file, such as {path / DEFAULT}")
    if not path.parent.is_dir():
        raise StoreError(f"{path}: the folder {path.parent} does not exist; create it or name another store with --db")
    mounts = Path("/proc/mounts")
    kind = network_file_system(path.resolve(), mounts.read_text()) if mounts.exists() else None
    if kind:
        raise StoreError(
            f"{path} lies on a network file system ({kind}), where SQLite's write-ahead log is unsafe; "
            "use a local disk, or a PostgreSQL URL: --db postgresql://user@host/name"
        )


def _engine(where: str, mode: str) -> Engine:
    """An engine that begins its own transactions: reading ones deferred, writing ones immediate."""
    try:
        if not where.startswith("sqlite"):
            _check_host(make_url(where))
            engine = create_engine(where, connect_args={"options": "-c default_transaction_read_only=on"} if mode == "ro" else {})
            engine.dialect.import_dbapi()
            return engine
    except (ArgumentError, ImportError, ValueError) as error:
        why = "its port is no number" if "invalid literal for int" in str(error) else error
        raise StoreError(f"{shown(where)} is no usable database URL: {why}") from None
    path = sqlite_path(where)
    opened = partial(
        sqlite3.connect,
        ":memory:" if path is None else f"file:{quote(str(path))}?mode={mode}",
        uri=path is not None,
        timeout=BUSY_S,
        isolation_level=None,  # the driver begins nothing by itself, see `_begin`
        check_same_thread=False,
    )
    engine = create_engine("sqlite://", creator=opened, poolclass=StaticPool if path is None else QueuePool)
    engine.url = make_url("sqlite://").set(database=str(path) if path else None)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _check_host(url: URL) -> None:
    """Raise `ArgumentError` for a host that is the rest of a password."""
    if "@" in (url.host or ""):
        raise ArgumentError("a password that holds @ is written with %40 in its place")


def _set_pragmas(connection: sqlite3.Connection, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    # NORMAL: a commit survives the death of any process; after a power cut the last commits may be missing, the file is whole,
    # and the jobs concerned are simply waiting again. FULL would cost a disk flush for every outcome.
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin(connection: Connection) -> None:
    # A deferred transaction that turns to writing fails at once when another one wrote meanwhile, however long it might wait.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writing") else "BEGIN")


def set_write_ahead(engine: Engine) -> None:
    """Let readers and the writer work at the same time; stays set in the file. No effect on other databases."""
    if engine.dialect.name != "sqlite":
        return
    deadline = time.monotonic() + BUSY_S
    raw = engine.raw_connection()
    try:
        while True:
            try:
                raw.cursor().execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:  # SQLite does not wait for the lock here
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return
    finally:
        raw.close()


@lru_cache(maxsize=100)
def shown(where: str | URL) -> str:
    """The store's place for messages: a path for SQLite, a URL without its passwords for others."""
    if isinstance(where, str) and where.startswith("sqlite"):
        return str(sqlite_path(where) or "the store in memory")
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        scheme, _, rest = str(where).partition("://")
        return f"{scheme}://…{rest.rpartition('@')[2].partition('?')[0]}"
    if url.drivername == "sqlite":
        return url.database or "the store in memory"
    if "@" in (url.host or ""):  # what stands before it is a part of the password
        url = url.set(host=str(url.host).rpartition("@")[2])
    secret = {name for name in url.query if "pass" in name.lower() and "file" not in name.lower()}
    return url.set(query={name: "hidden" if name in secret else value for name, value in url.query.items()}).render_as_string()
