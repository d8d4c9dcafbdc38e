"""Schema versions: from nothing, again, from an older one, and from a newer one."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, TableClause, inspect, text

from store import migration, record
from store.engine import connect, connect_readonly
from store.errors import StoreError
from store.tables import lightweight
from store.tables.planned import METADATA
from tests.store.conftest import older

NEXT = '''"""A later version, which adds a column."""
import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    with op.batch_alter_table("sweep") as batch:
        batch.add_column(sa.Column("colour", sa.String(), nullable=True))
'''


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@pytest.fixture(params=["new", "0002", "0005", "0006", "0007", "0008", "0009"])
def opened(request: pytest.FixtureRequest, path: Path) -> Iterator[Engine]:
    """A new store, and stores that are rebuilt or upgraded from an older schema."""
    if request.param != "new":
        older(path, request.param)
    engine = connect(str(path))
    yield engine
    engine.dispose()


def test_tables_are_those_of_the_models(opened: Engine) -> None:
    """Exactly the tables, columns and indexes of the models."""
    with opened.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_checks_are_those_of_the_models(opened: Engine) -> None:
    """Every CHECK constraint of the models, which Alembic does not compare."""
    with opened.connect() as connection:
        created = " ".join(connection.execute(text("SELECT sql FROM sqlite_master WHERE type = 'table'")).scalars())
    checks = {
        str(check.name): str(check.sqltext)
        for table in METADATA.tables.values()
        for check in table.constraints
        if hasattr(check, "sqltext")
    }
    assert len(checks) > 20
    missing = [name for name, condition in checks.items() if f"CONSTRAINT {name} CHECK ({condition})" not in created]
    assert missing == []


def test_lightweight_tables_have_columns_of_the_models(engine: Engine) -> None:
    """What is read without the models has the names of their tables, and of views, and no other columns."""
    tables = [value for value in vars(lightweight).values() if isinstance(value, TableClause)]
    assert len(tables) > 10
    there = inspect(engine)
    for table in tables:
        assert set(table.c.keys()) <= {column["name"] for column in there.get_columns(table.name)}, table.name


def test_schema_is_the_newest_migration() -> None:
    """The schema that is read from file names, which spares importing Alembic, is that of the newest migration."""
    config = Config()
    config.set_main_option("script_location", str(migration.SCRIPTS))
    assert ScriptDirectory.from_config(config).get_current_head() == migration.SCHEMA


def test_connecting_again_changes_nothing(engine: Engine, path: Path) -> None:
    """Migration is idempotent, and makes no backup where there is nothing to do."""
    before = dump(path)
    connect(str(path)).dispose()
    assert dump(path) == before
    assert not list(path.parent.glob("*.backup"))


def test_newer_schema_is_refused(engine: Engine, path: Path) -> None:
    """A store of a newer program is neither read nor changed, and the message states what to do."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    before = dump(path)
    for opening in (connect, connect_readonly):
        with pytest.raises(StoreError, match=r"written by a newer Breakeven \(schema 9999.*update Breakeven"):
            opening(str(path))
    assert dump(path) == before


def test_a_schema_that_is_too_old_is_refused(engine: Engine, path: Path) -> None:
    """A store of the first development version is neither read nor changed, and the message states what to do."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    before = dump(path)
    for opening in (connect, connect_readonly):
        with pytest.raises(
            StoreError, match=r"schema 0001 of a development version.*oldest that is updated \(0002\); name another"
        ):
            opening(str(path))
    assert dump(path) == before


def test_upgrade_keeps_everything_and_a_backup(
    engine: Engine, path: Path, tmp_path: Path, make_job: Callable[..., Any], make_outcome: Callable[..., Any]
) -> None:
    """An older store is copied beside itself before it is upgraded; its rows and views survive."""
    record.record(engine, None, None, make_outcome(make_job()))
    before = dump(path)
    scripts = tmp_path / "migrations"
    shutil.copytree(migration.SCRIPTS, scripts)
    (scripts / "versions" / "0012_colour.py").write_text(NEXT)
    migration.migrate(engine, path, scripts=scripts)
    with engine.connect() as connection:
        assert migration.version(connection) == "0012"
        assert connection.execute(text("SELECT count(colour), count(*) FROM sweep")).one() == (0, 0)
        assert connection.execute(text("SELECT count(*) FROM speedup")).scalar() == 1
    (backup,) = path.parent.glob("breakeven.db.schema-0011.*.backup")
    assert dump(backup) == before


def test_processes_may_create_at_once(path: Path) -> None:
    """Several processes that meet at a missing store all get the same one."""
    program = f"from store.engine import connect; connect({str(path)!r})"
    processes = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1].decode() for process in processes] == [""] * 3
    with connect_readonly(str(path)).connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
