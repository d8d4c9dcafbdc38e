"""Schema versions: from nothing, again, from an older one, and from a newer one."""

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
from sqlalchemy import Engine, text

from store import migration, record
from store.answers import answers
from store.engine import connect, connect_readonly
from store.errors import StoreError
from store.tables.planned import METADATA
from sweeps.protocol import Protocol

NEXT = '''"""A later version, which adds a column."""
import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    with op.batch_alter_table("sweep") as batch:
        batch.add_column(sa.Column("colour", sa.String(), nullable=True))
'''


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_migrations_build_the_tables(engine: Engine) -> None:
    """The migrations lead to exactly the tables, columns and indexes of tables.py."""
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_checks_are_those_of_the_tables(engine: Engine) -> None:
    """The migrations also create every CHECK constraint of tables.py, which Alembic does not compare."""
    with engine.connect() as connection:
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


def test_schema_is_the_newest_migration() -> None:
    """The constant that spares importing Alembic names the newest migration."""
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
    """A store of a newer program is neither read nor changed, and the message says what to do."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    before = dump(path)
    for opening in (connect, connect_readonly):
        with pytest.raises(StoreError, match=r"written by a newer Breakeven \(schema 9999.*update Breakeven"):
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
    (scripts / "versions" / "0006_colour.py").write_text(NEXT)
    migration.prepare(engine, path, scripts=scripts, schema="0006")
    with engine.connect() as connection:
        assert migration.version(connection) == "0006"
        assert connection.execute(text("SELECT count(colour), count(*) FROM sweep")).one() == (0, 0)
        assert connection.execute(text("SELECT count(*) FROM speedup")).scalar() == 1
    (backup,) = path.parent.glob("breakeven.db.schema-0005.*.backup")
    assert dump(backup) == before


ADDED = {
    "0001": {"evaluation", "accuracy_row", "sample_series", "scores", "spoken_arm", "quality_row"},
    "0002": {"sample_series", "scores", "spoken_arm", "quality_row"},
}
PLACED: dict[str, tuple[Any, ...]] = {
    "job": ("", "", None, None, None, None),
    "measured_arm": (None,),
    "speedup_row": ("here", None),
}
YOUNGER = {"comparison": {"0001": (None,) * 10, "0002": (None,) * 7}} | {
    name: dict.fromkeys(("0001", "0002"), values) for name, values in PLACED.items()
}
"""What the columns that a table gained since hold in older rows."""


@pytest.mark.parametrize(("schema", "views", "asked"), [("0001", 3, 4), ("0002", 5, 9)])
def test_an_older_store_is_upgraded_without_loss(path: Path, schema: str, views: int, asked: int) -> None:
    """What an older version stored stays row by row, with a backup beside it, and its answers still count as answers."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / f"version_{int(schema)}.sql").read_text())
    before = contents(path)
    curves = selected(
        path, "SELECT curve_id, axis, crossing, verdict, x, why FROM break_even_row ORDER BY curve_id, axis, crossing"
    )
    engine = connect(str(path))
    after = contents(path)
    assert {name for name in after if name not in before} == ADDED[schema]
    for name, rows in before.items():
        younger = YOUNGER.get(name, {}).get(schema, ())
        if name != "break_even_row":
            assert after[name] == ([("0005",)] if name == "alembic_version" else [(*row, *younger) for row in rows])
    assert len(before["comparison"]) == asked
    (backup,) = path.parent.glob(f"breakeven.db.schema-{schema}.*.backup")
    assert contents(backup) == before
    again = "SELECT curve_id, axis, crossing, verdict, x, why FROM break_even_row WHERE metric = 'latency' ORDER BY 1, 2, 3"
    assert selected(path, again) == curves
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM speedup")).scalar() == views
        assert connection.execute(text("SELECT reason, kind FROM failures")).all() == [("out_of_memory", "latency")]
        shown = connection.execute(text("SELECT * FROM break_even ORDER BY curve_id, axis, x")).all()
        ids = {id_: Protocol() for id_ in connection.execute(text("SELECT comparison_id FROM comparison")).scalars()}
        environments = connection.execute(text("SELECT environment_id FROM environment")).scalars().all()
    assert {found[0] for found in answers(engine, ids, environments).answered} == set(ids)
    assert record.reanalyse(engine) == asked
    with engine.connect() as connection:
        assert connection.execute(text("SELECT * FROM break_even ORDER BY curve_id, axis, x")).all() == shown
    assert selected(path, "PRAGMA foreign_key_check") == []
    engine.dispose()


HOSTS = """
UPDATE attempt SET host = 'first', started_at = started_at - 60, ended_at = ended_at - 60 WHERE id = 1;
INSERT INTO attempt SELECT 9, digest || '9', job, job_id, n, round, environment, 'second', started_at, ended_at + 60,
  project_commit, source, flags, protocol, readings, document FROM attempt WHERE id = 1;
INSERT INTO sample SELECT 9, rounds, columns, arms, inner, stopped, seconds, device_seconds, run_order
  FROM sample WHERE attempt = 1;
INSERT INTO measured_arm SELECT 9, arm, arm_id, gmacs, gmacs_method, parameters, trainable_parameters, batch, tokens,
  tokens_final, threads, flags FROM measured_arm WHERE attempt = 1;
INSERT INTO pairing SELECT comparison_id, 9, baseline, arm, failure FROM pairing WHERE attempt = 1;
"""


def test_rows_of_an_older_store_belong_to_the_newest_host(path: Path) -> None:
    """A pair that two hosts measured is shown as of the newer, its curve lacks the other's point; reanalysis separates them."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / "version_2.sql").read_text() + HOSTS)
    engine = connect(str(path))
    rows = "SELECT host, count(*), sum(pairs) FROM speedup_row WHERE speedup IS NOT NULL GROUP BY host ORDER BY host"
    missing = "SELECT DISTINCT points_missing FROM break_even_row WHERE points = 2 AND axis = 'tokens'"
    assert [(host, count) for host, count, _ in selected(path, rows)] == [("here", 2), ("second", 3)]
    assert selected(path, missing) == [(1,)]
    record.reanalyse(engine)
    assert [(host, count) for host, count, _ in selected(path, rows)] == [("first", 3), ("here", 2), ("second", 3)]
    assert selected(path, "SELECT DISTINCT points FROM break_even_row WHERE points > 1") == []
    engine.dispose()


def selected(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a query finds."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_an_outcome_of_schema_1_is_known_again(path: Path, make_job: Callable[..., Any], make_outcome: Callable[..., Any]) -> None:
    """Importing once more what the first version imported changes nothing, though nouns have gained fields since."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / "version_1.sql").read_text())
    engine = connect(str(path))
    outcome = make_outcome(make_job(64, keep_rates=(0.3, 0.5)), speedups=(0.8, 0.9), pairs=30)
    assert not record.record(engine, None, None, outcome)
    assert record.record(engine, None, None, outcome.model_copy(update={"host": "elsewhere"}))
    engine.dispose()


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall() for name in names}


def test_processes_may_create_at_once(path: Path) -> None:
    """Several processes that meet at a missing store all get the same one."""
    program = f"from store.engine import connect; connect({str(path)!r})"
    processes = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1].decode() for process in processes] == [""] * 3
    with connect_readonly(str(path)).connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
