"""Where a store is: paths and URLs, how they are displayed, and whether SQLite can work there."""

import os
import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import psutil
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from store.errors import NoStoreError, StoreError

DEFAULT_STORE = "breakeven.db"
STORE_VARIABLE = "BREAKEVEN_DB"
NETWORK_FILE_SYSTEMS = frozenset(
    (
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.ceph",
        "fuse.glusterfs",
        "fuse.sshfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    )
)
"""There the shared memory that SQLite's write-ahead log needs does not work between machines."""


def location(url: str | None) -> str:
    """The SQLAlchemy URL of a store: `url`, else $BREAKEVEN_DB, else `breakeven.db` in the current
    folder.

    A value without `://` is the path of an SQLite file.
    """
    url = url or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE
    if url.startswith("postgres://"):
        url = url.replace("postgres", "postgresql", 1)
    return url if "://" in url else f"sqlite:///{Path(url).expanduser().absolute()}"


def sqlite_path(url: str) -> Path | None:
    """The file behind an SQLite URL; `None` for SQLite in memory and for other databases. `url`
    comes from `location`.
    """
    if not url.startswith("sqlite"):
        return None
    # not make_url: a file name may contain `?`, `%` and `#`
    name = url.partition("://")[2].removeprefix("/")
    return None if name in ("", ":memory:") else Path(name)


@lru_cache(maxsize=100)
def display_name(where: str | URL) -> str:
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
    if "@" in (url.host or ""):  # what precedes it is a part of the password
        url = url.set(host=str(url.host).rpartition("@")[2])
    secret = {name for name in url.query if "pass" in name.lower() and "file" not in name.lower()}
    return url.set(
        query={name: "hidden" if name in secret else value for name, value in url.query.items()}
    ).render_as_string()


def database_option(url: str | None) -> str:
    """` --db STORE`, as a command needs it in this folder and in that of the store; empty for this
    folder's default store and for a URL with a password.
    """
    given = url or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE
    if "://" in given:
        shown = given if sqlite_path(given) else display_name(given)
        return f" --db {shlex.quote(given)}" if shown == given else ""
    path = Path(given).expanduser().absolute()
    shown = path.name if path.parent == Path.cwd() else str(path)
    return "" if shown == DEFAULT_STORE else f" --db {shlex.quote(shown)}"


def reading_mode(path: Path) -> str:
    """The value of `?mode=` in the SQLite URI with which the file at `path` can be read.

    A file with a write-ahead log is read with the help of files beside it, which cannot be created
    on a read-only file system. There is no writer there, so if no log is left the file alone is the
    whole store; else raises `StoreError`.
    """
    if os.access(path.parent, os.W_OK):
        return "ro"
    log = path.with_name(f"{path.name}-wal")
    if not log.is_file() or log.stat().st_size == 0:
        return "ro&immutable=1"
    if not path.with_name(f"{path.name}-shm").exists():
        raise StoreError(
            f"{path} cannot be read where it is: its newest rows are in {log.name}, and SQLite"
            " needs to write into the folder to read them; copy both files to a folder that you"
            " can write to, and name the copy with --db"
        )
    return "ro"


def check_exists(path: Path) -> None:
    """Raise `StoreError` unless there is a file at `path`, `NoStoreError` where nothing is."""
    if not path.is_file():
        folder = path.is_dir()
        wrong = "is a folder, not a store" if folder else "does not exist"
        raise (StoreError if folder else NoStoreError)(
            f"{path} {wrong}; name a store with --db, or run a sweep first: breakeven run"
            f" quickstart{'' if folder else database_option(str(path))}"
        )


def check_place(path: Path) -> None:
    """Raise `StoreError` unless an SQLite file at `path` can be a store that is written to."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder; the store is a file, such as {path / DEFAULT_STORE}")
    if not path.parent.is_dir():
        raise StoreError(
            f"{path}: the folder {path.parent} does not exist; create it or name another store with"
            " --db"
        )
    mounts = {mount.mountpoint: mount.fstype for mount in psutil.disk_partitions(all=True)}
    if kind := network_file_system(path.resolve(), mounts):
        raise StoreError(
            f"{path} lies on a network file system ({kind}), where SQLite's write-ahead log is"
            " unsafe; use a local disk, or a PostgreSQL URL: --db postgresql://user@host/name"
        )


def network_file_system(path: Path, mounts: Mapping[str, str]) -> str | None:
    """The type of the network file system that contains `path` (absolute), or `None`; `mounts` has
    the type by folder.
    """
    folders = [folder for folder in mounts if path.is_relative_to(folder)]
    kind = mounts[max(folders, key=len)] if folders else None
    return kind if kind in NETWORK_FILE_SYSTEMS else None
