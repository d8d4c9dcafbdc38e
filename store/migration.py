"""Schema versions: telling a store of ours from anything else, and bringing it up to date."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, inspect, select

from store.errors import EmptyStoreError, StoreError
from store.location import display_name
from store.transactions import set_write_ahead, writing
from store.views.fingerprint import is_current

FORMER_SCHEMAS = ("0002", "0003", "0004", "0005", "0006", "0007", "0008")
"""Those of development versions, which `migrations/former_schemas.py` rebuilds."""
SCRIPTS = Path(__file__).parent / "migrations"


def newest(scripts: Path) -> str:
    """The newest schema of a folder of migrations, from the names of their files."""
    return max(path.name for path in (scripts / "versions").glob("[0-9]*.py")).partition("_")[0]


SCHEMA = newest(SCRIPTS)
OURS = frozenset({"alembic_version", "attempt", "comparison", "sweep"})
"""Tables that every version of the store has."""
_VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def migrate(engine: Engine, path: Path | None, *, scripts: Path = SCRIPTS) -> None:
    """Create an empty store's schema, or upgrade an older one after a backup of the SQLite file at `path`.

    Raises `StoreError` for a database that is not ours or is newer than this program. `scripts` is the folder of migrations.
    """
    schema = newest(scripts)
    with engine.connect() as connection:
        found = version(connection)
        current = found == schema and is_current(connection)
    if found not in {None, schema}:
        _check_known(str(found), scripts, engine)
        if path is not None:
            back_up(path, str(found))
    set_write_ahead(engine)
    if current:
        return
    from store.views import public  # imports the models, which a store with current views does not need

    with writing(engine) as connection:
        now = version(connection)  # another process may have been faster
        public.drop_views(connection)  # SQLite cannot change a table that a view reads
        if now is None or now in FORMER_SCHEMAS:
            _create(connection, former=now is not None)
        elif now != schema:
            _upgrade(connection, scripts)
        public.create_views(connection)


def check_current(engine: Engine) -> None:
    """Raise `StoreError` unless the database is a store of this program's version, `EmptyStoreError` if it holds nothing."""
    with engine.connect() as connection:
        found = version(connection)
    if found is None:
        raise EmptyStoreError(f"{display_name(engine.url)} is empty; run a sweep first: breakeven run sweeps/quickstart.yaml")
    if found != SCHEMA:
        _check_known(found, SCRIPTS, engine)
        raise StoreError(
            f"{display_name(engine.url)} has the older schema {found}; any command that writes updates it: breakeven run"
        )


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
    """Copy the SQLite file at `path` beside itself, whole even while others write. Returns the copy's path."""
    copy = path.with_name(f"{path.name}.schema-{found}.{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.backup")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def _check_known(found: str, scripts: Path, engine: Engine) -> None:
    if found in FORMER_SCHEMAS or any((scripts / "versions").glob(f"{found}_*.py")):
        return
    if found < FORMER_SCHEMAS[0]:
        raise StoreError(
            f"{display_name(engine.url)} has the schema {found} of a development version, older than the oldest that is updated "
            f"({FORMER_SCHEMAS[0]}); name another store with --db"
        )
    raise StoreError(
        f"{display_name(engine.url)} was written by a newer Breakeven (schema {found}, this program knows {SCHEMA}); "
        "update Breakeven, or name another store with --db"
    )


def _create(connection: Connection, *, former: bool) -> None:
    """Create the tables of the models, with the rows of a `former` schema where there are some."""
    from store.migrations.former_schemas import rebuild
    from store.tables.planned import METADATA

    if former:
        rebuild(connection)
    else:
        METADATA.create_all(connection)
    _VERSION.create(connection)
    connection.execute(_VERSION.insert().values(version_num=SCHEMA))


def _upgrade(connection: Connection, scripts: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
