"""Schema versions: distinguishing a store of ours from anything else, and bringing it up to date."""

import filecmp
import glob
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, inspect, select

from store.errors import EmptyStoreError, StoreError
from store.location import display_name
from store.transactions import set_write_ahead, writing
from store.views.fingerprint import stored_fingerprints, tables_fingerprint, views_fingerprint

SCRIPTS = Path(__file__).parent / "migrations"


def newest(scripts: Path) -> str:
    """The newest schema of a folder of migrations, from the names of their files."""
    return max(path.name for path in (scripts / "versions").glob("[0-9]*.py")).partition("_")[0]


SCHEMA = newest(SCRIPTS)
OURS = frozenset({"alembic_version", "attempt", "comparison", "sweep"})
"""Tables that every version of the store has."""
_VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def migrate(engine: Engine, path: Path | None, *, scripts: Path = SCRIPTS) -> None:
    """Create an empty store's schema, upgrade an older one after a backup of the SQLite file at `path`, make its views anew.

    Raises `StoreError` for a database that is not ours, and for tables of another version than this program's and no migration
    from them. `scripts` is the folder of migrations.
    """
    schema = newest(scripts)
    with engine.connect() as connection:
        current = _is_current(connection, version(connection), scripts)
    set_write_ahead(engine)
    if current:
        return
    from store.views import public  # imports the models, which a store with current views does not need

    with writing(engine) as connection:
        found = version(connection)  # another process may have been faster
        if _is_current(connection, found, scripts):
            return
        backup = back_up(path, found) if path is not None and found not in {None, schema} else None
        try:
            public.drop_views(connection)  # SQLite cannot change a table that a view reads
            if found is None:
                _create(connection, schema)
            elif found != schema:
                _upgrade(connection, scripts)
            public.create_views(connection)
        except BaseException:
            if backup is not None:
                backup.unlink()  # the store stays as it was
            raise


def views_are_current(engine: Engine) -> bool:
    """Whether the views of a store are those of this program.

    Raises `StoreError` unless the tables are those of this program, `EmptyStoreError` for a database that holds nothing.
    """
    with engine.connect() as connection:
        found = version(connection)
        if found is None:
            raise EmptyStoreError(f"{display_name(engine.url)} is empty; run a sweep first: breakeven run quickstart")
        current = _is_current(connection, found, SCRIPTS)
    if found != SCHEMA:
        raise StoreError(
            f"{display_name(engine.url)} has the older schema {found}; any command that writes updates it: breakeven run"
        )
    return current


def version(connection: Connection) -> str | None:
    """The schema version; `None` for an empty database. Raises `StoreError` for one that holds something else."""
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return None
    if not tables >= OURS:
        found = ", ".join(sorted(tables)[:5])
        raise StoreError(
            f"{display_name(connection.engine.url)} belongs to another program (tables: {found}); name another store with --db"
        )
    return str(connection.execute(select(_VERSION.c.version_num)).scalar_one())


def back_up(path: Path, found: str) -> Path:
    """Copy the SQLite file at `path` into its folder, whole even while others write. Returns the copy's path.

    The copy has its name once it is whole. One that an upgrade left which was killed is replaced by it.
    """
    name = f"{path.name}.schema-{found}"
    part = path.with_name(f"{name}.backup.part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    for other in path.parent.glob(f"{glob.escape(name)}.*.backup"):
        if filecmp.cmp(part, other, shallow=False):
            other.unlink()
    return part.rename(path.with_name(f"{name}.{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.backup"))


def _is_current(connection: Connection, found: str | None, scripts: Path) -> bool:
    """Whether nothing is to be done to a store of the schema `found`. Raises `StoreError` if nothing can be done."""
    if found is None:
        return False
    carried = stored_fingerprints(connection)
    if found == newest(scripts) and carried is not None:
        if carried.views == views_fingerprint():
            return True
        if carried.tables == tables_fingerprint():
            return False
    elif carried is not None and any((scripts / "versions").glob(f"{found}_*.py")):
        return False
    raise StoreError(
        f"{display_name(connection.engine.url)} was written by another version of Breakeven, whose tables differ (schema {found}); "
        "keep it for that version, and name another store with --db"
    )


def _create(connection: Connection, schema: str) -> None:
    """Create the tables of the models."""
    from store.tables.planned import METADATA

    METADATA.create_all(connection)
    _VERSION.create(connection)
    connection.execute(_VERSION.insert().values(version_num=schema))


def _upgrade(connection: Connection, scripts: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
