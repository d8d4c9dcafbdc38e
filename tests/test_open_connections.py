"""Tests of a module that leaves a connection to a database open fail, on every Python."""

import os
import re
import subprocess
import sys
from pathlib import Path

LEAKS = """
import gc, sqlite3
from contextlib import closing
import pytest
from sqlalchemy import create_engine, text
from store.open.engine import close_watches, connect, disposing, state_mark
from tests.store import postgresql

def test_of_the_driver(tmp_path):
    sqlite3.connect(tmp_path / "a.db")
    gc.collect()

def test_of_a_store(tmp_path):
    connect(str(tmp_path / "b.db"))

def test_in_memory():
    create_engine("sqlite://").connect().execute(text("SELECT 1")).scalar()

@pytest.mark.skipif(postgresql.programs() is None, reason="PostgreSQL is not installed")
def test_of_a_server():
    with postgresql.serving(postgresql.programs()) as folder:
        connect(postgresql.database(folder, "kept"))

def test_of_a_mark(tmp_path):
    connect(str(tmp_path / "c.db")).dispose()
    state_mark(str(tmp_path / "c.db"))
"""
CLOSED = """
def test_all_closed(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("SELECT 1")
    with disposing(connect(str(tmp_path / "b.db"))):
        state_mark(str(tmp_path / "b.db"))
    close_watches()
"""


def test_what_is_left_open_fails(tmp_path: Path) -> None:
    """Each test that leaves a connection is named with its line, also where garbage collection has
    closed it; a module that closes all of them passes.
    """
    imports, _, _ = LEAKS.partition("def ")
    (tmp_path / "test_leaks.py").write_text(LEAKS)
    (tmp_path / "test_closed.py").write_text(imports + CLOSED)
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-p", "tests.open_connections", "-n", "0"]
    run = subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", ".", "test_closed.py", "test_leaks.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = re.findall(
        r"^E +test_leaks\.py::(\w+) \(call\): .*test_leaks\.py:(\d+)", run.stdout, re.M
    )
    tests = re.findall(r"^def (\w+)", LEAKS, re.M)
    if "1 skipped" in run.stdout:
        tests.remove("test_of_a_server")
    assert [name for name, _ in lines] == tests, run.stdout
    assert re.search(rf"^=+ {len(tests) + 1} passed,.* 1 error in", run.stdout, re.M), run.stdout
