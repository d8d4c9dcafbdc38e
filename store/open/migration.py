"""Schema versions: distinguishing a store of ours from anything else, and bringing it up to
date.
"""

from pathlib import Path

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, inspect, select

from store.errors import EmptyStoreError, StoreError
from store.rows.location import database_option, display_name
from store.rows.transactions import set_write_ahead, writing
from store.schema.tables import model_metadata
from store.views.fingerprint import stored_fingerprints, tables_fingerprint, views_fingerprint

SCRIPTS = Path(__file__).parents[1] / "migrations"


def newest(scripts: Path) -> str:
    """The newest schema of a folder of migrations, from the names of their files."""
    return max(path.name for path in (scripts / "versions").glob("[0-9]*.py")).partition("_")[0]


SCHEMA = newest(SCRIPTS)
OURS = frozenset({"alembic_version", "attempt", "comparison", "sweep"})
"""Tables that every version of the store has."""
_VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def migrate(engine: Engine, *, scripts: Path = SCRIPTS) -> None:
    """Create the schema of an empty store, or run the migrations; make the views anew.

    All in one transaction. Raises `StoreError` for a database that is not ours, and for tables of
    another version without a migration from them. `scripts` is the folder of migrations.
    """
    schema = newest(scripts)
    with engine.connect() as connection:
        current = _is_current(connection, version(connection), scripts)
    set_write_ahead(engine)
    if current:
        return
    # makes all views, which a store with current ones does not need
    from store.views import public

    with writing(engine) as connection:
        found = version(connection)  # another process may have been faster
        if _is_current(connection, found, scripts):
            return
        public.drop_views(connection)  # SQLite cannot change a table that a view reads
        if found is None:
            _create(connection, schema)
        elif found != schema:
            _upgrade(connection, scripts)
        public.create_views(connection)


def views_are_current(engine: Engine) -> bool:
    """Whether the views of a store are those of this program.

    Raises `StoreError` unless the tables are those of this program, `EmptyStoreError` for a
    database that holds nothing.
    """
    with engine.connect() as connection:
        found = version(connection)
        if found is None:
            raise EmptyStoreError(
                f"{display_name(engine.url)} is empty; run a sweep first: breakeven run quickstart"
                f"{database_option(display_name(engine.url))}"
            )
        current = _is_current(connection, found, SCRIPTS)
    if found != SCHEMA:
        raise StoreError(
            f"{display_name(engine.url)} has the older schema {found}; this updates it: breakeven"
            f" reanalyse{database_option(display_name(engine.url))}"
        )
    return current


def version(connection: Connection) -> str | None:
    """The schema version; `None` for an empty database. Raises `StoreError` for one that holds
    something else.
    """
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return None
    if not tables >= OURS:
        found = ", ".join(sorted(tables)[:5])
        raise StoreError(
            f"{display_name(connection.engine.url)} belongs to another program (tables: {found});"
            " name another store with --db"
        )
    return str(connection.execute(select(_VERSION.c.version_num)).scalar_one())


def _is_current(connection: Connection, found: str | None, scripts: Path) -> bool:
    """Whether nothing is to be done to a store of the schema `found`. Raises `StoreError` if
    nothing can be done.
    """
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
        f"{display_name(connection.engine.url)} was written by another version of Breakeven, whose"
        f" tables differ (schema {found}); that version alone reads it, and nothing converts it;"
        " measure anew into another store: breakeven run quickstart --db new.db"
    )


def _create(connection: Connection, schema: str) -> None:
    """Create the tables of the models."""
    model_metadata().create_all(connection)
    _VERSION.create(connection)
    connection.execute(_VERSION.insert().values(version_num=schema))


def _upgrade(connection: Connection, scripts: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
