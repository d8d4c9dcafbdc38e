"""Schema versions: from nothing, again, by a later migration, and from another version whose tables
differ.
"""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, Column, Engine, Index, MetaData, String, Table, text

from store.errors import StoreError
from store.open import migration
from store.open.engine import connect, connect_readonly, disposing
from store.read.user_sql import run_query
from store.schema import tables
from store.schema.tables import model_metadata
from store.views import fingerprint
from store.write import record
from tests.orchestrator.commands import in_process
from tests.store.conftest import a_job, an_outcome, table

NEXT = '''"""A later version, which adds a column."""
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table("sweep") as batch:
        batch.add_column(sa.Column("colour", sa.String(), nullable=True))
'''
BROKEN = f"{NEXT}    raise RuntimeError\n"
OTHER = {
    "other tables": "CREATE VIEW store_fingerprint AS SELECT 'some' AS views, 'other' AS tables",
    "another schema": "UPDATE alembic_version SET version_num = '0011'",
}
"""What makes a store one of another version, once its fingerprints are gone."""


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@pytest.fixture
def later(tmp_path: Path) -> Callable[[str], Path]:
    """A folder of migrations with a later version, by its text."""

    def made(text: str) -> Path:
        scripts = tmp_path / "migrations"
        shutil.copytree(migration.SCRIPTS, scripts, dirs_exist_ok=True)
        (scripts / "versions" / "0002_colour.py").write_text(text)
        return scripts

    return made


def test_tables_are_those_of_the_models(engine: Engine, path: Path) -> None:
    """Exactly the tables, columns, indexes and CHECK constraints of the models, written ahead, with
    foreign keys checked; connecting again changes nothing.
    """
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), model_metadata()) == []
        pragmas = [
            connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "synchronous")
        ]
    assert pragmas == ["wal", 1, 1]
    statements = table(engine, "SELECT sql FROM sqlite_master WHERE type = 'table'")
    created = " ".join(sql for (sql,) in statements)
    checks = [
        f"CONSTRAINT {check.name} CHECK ({check.sqltext})"
        for model in model_metadata().tables.values()
        for check in model.constraints
        if isinstance(check, CheckConstraint)
    ]
    assert len(checks) > 20
    assert [check for check in checks if check not in created] == []
    before = dump(path)
    connect(str(path)).dispose()
    assert dump(path) == before


def test_statements_use_the_tables_of_the_models() -> None:
    """What is read from the source of the models has their tables, all with the same columns in the
    same order, of the same types.
    """
    read = {of.name: of for of in vars(tables).values() if isinstance(of, Table)}
    models = model_metadata().tables
    assert read.keys() == models.keys()
    for name, model in models.items():
        assert read[name].c.keys() == model.c.keys()
        for column in model.c:
            own = str(read[name].c[column.name].type)  # INTEGER for BIGINT too
            assert own.startswith(str(column.type).removeprefix("BIG"))


def test_schema_is_the_newest_migration() -> None:
    """The schema that is read from file names, which spares importing Alembic, is that of the
    newest migration.
    """
    config = Config()
    config.set_main_option("script_location", str(migration.SCRIPTS))
    assert ScriptDirectory.from_config(config).get_current_head() == migration.SCHEMA


@pytest.mark.parametrize("change", OTHER)
def test_a_store_of_another_version_is_refused(engine: Engine, path: Path, change: str) -> None:
    """It is neither read nor changed by any command, and one line names the file and what to do
    with it.
    """
    with engine.begin() as connection:
        connection.execute(text(f"DROP VIEW {fingerprint.NAME}"))
        connection.execute(text(OTHER[change]))
    engine.dispose()
    before = dump(path)
    for opening in (connect, connect_readonly, lambda url: run_query(url, "SELECT 1")):
        with pytest.raises(StoreError, match=f"{path} .* another version.*--db") as refused:
            opening(str(path))
        assert "\n" not in str(refused.value)
    for command in (["status"], ["reanalyse"]):
        done = in_process(*command, folder=path.parent, BREAKEVEN_DB=str(path))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), command
    assert dump(path) == before


def test_the_fingerprint_of_tables_follows_columns_checks_and_indexes() -> None:
    """It stays for the same tables, and is another one with a column, a CHECK or an index more."""

    def made(*more: Any) -> str:
        metadata = MetaData()
        Table("sweep", metadata, Column("name", String()), *more)
        return fingerprint.tables_fingerprint(metadata)

    column, check = Column("colour", String()), CheckConstraint("name <> ''")
    more: tuple[Any, ...] = ((), (column,), (check,), (Index("ix_name", "name"),))
    assert len({made(*each) for each in more}) == 4
    assert made() == made()


def test_a_later_version_keeps_everything(
    engine: Engine, path: Path, later: Callable[[str], Path]
) -> None:
    """Rows and views of a store survive a migration of its tables, and nothing is left to do; one
    that fails, however often, leaves the store as it was.
    """
    record.record(engine, None, None, an_outcome(a_job()))
    before = dump(path)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            migration.migrate(engine, scripts=later(BROKEN))
    assert dump(path) == before
    for _ in range(2):
        migration.migrate(engine, scripts=later(NEXT))
        with engine.connect() as connection:
            assert migration.version(connection) == "0002"
        assert table(engine, "SELECT count(colour), count(*) FROM sweep") == [(0, 0)]
        assert table(engine, "SELECT count(*) FROM speedup") == [(1,)]


def test_processes_may_create_at_once(path: Path) -> None:
    """Several processes that meet at a missing store all get the same one."""
    program = f"from store.open.engine import connect; connect({str(path)!r})"
    command = [sys.executable, "-c", program]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1].decode() for process in processes] == [""] * 3
    with disposing(connect_readonly(str(path))) as engine:
        assert table(engine, "SELECT count(*) FROM alembic_version") == [(1,)]
