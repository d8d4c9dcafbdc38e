"""Commands of a lab: their help, wrong input in a line, and a kill in the middle of each transaction.

`run`, `serve` and `import --watch` are killed in `test_queue_commands.py` and `tests/faults/`,
`reanalyse` and `archive` in `tests/store/`.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import COMMANDS
from tests.orchestrator.commands import ROOT, SWEEP, in_process
from tests.webapp.simulated import SIZES, job, outcome, store_outcomes

LAB = (
    *("submit", "serve", "cancel", "pause", "resume", "retry", "logs", "status", "history"),
    *("reanalyse", "archive", "import"),
)
KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from orchestrator.__main__ import main

def commit(connection):
    if connection.get_execution_options().get("writing"):
        os.kill(os.getpid(), signal.SIGKILL)

event.listen(Engine, "commit", commit)
main()
"""
"""The command line, killed where it would commit its first transaction."""
WRONG = (
    ("submit nowhere.yaml", "there is no such file"),
    ("submit bad.yaml", "bad.yaml:1: name: is missing"),
    ("submit tiny.yaml --priority high", "integer"),
    ("retry many", "choose one of them"),
    ("retry nosuch --failed", "no sweep called nosuch"),
    *(
        (f"{command} 99", "has no submission 99")
        for command in ("cancel", "pause", "resume", "logs")
    ),
    *(
        (f"{command} one", "no submission of one")
        for command in ("cancel", "pause", "resume", "logs")
    ),
    *((f"{name} nosuch", "no sweep called nosuch") for name in ("status", "history", "reanalyse")),
    ("history many --since yesterday", "write 2026-11-23"),
    ("history many --metric nosuch", "no measurement of nosuch"),
    ("reanalyse --processes 0", "greater than or equal to 1"),
    ("archive", "Missing option '--before'"),
    ("archive --before yesterday", "%Y-%m-%d"),
    ("archive --before 2026-01-01 --to bad.json", "is a file"),
    ("import nowhere.json", "nowhere.json cannot be read"),
    ("import bad.json", "bad.json, line 1: not an outcome"),
    ("import --watch", "name the files or folders"),
    ("import --watch bad.json", "takes one folder of outcomes"),
    ("import --watch nowhere", "takes one folder of outcomes"),
)
REAL = ROOT / "tests" / "fixtures" / "real_outcomes.jsonl"
NO_STORE = (
    *("cancel 1", "pause 1", "resume 1", "logs 1", "status", "status --watch", "history many"),
    *("reanalyse", "archive --before 2026-01-01"),
)
ANY_STORE = (*NO_STORE, "submit tiny.yaml", "serve --until-empty", "import bad.json")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a sweep and a queue of one, and files that are wrong."""
    tmp_path = tmp_path_factory.mktemp("lab")
    store_outcomes(tmp_path / "s.db", "many", *(outcome(job(size)) for size in SIZES))
    (tmp_path / "tiny.yaml").write_text(SWEEP)
    (tmp_path / "bad.yaml").write_text("schema: 1\n")
    (tmp_path / "bad.json").write_text("{\n")
    (tmp_path / "text.db").write_text("this is no database, but a text of some length" * 100)
    assert in_process("submit", "tiny.yaml", "--db", "s.db", folder=tmp_path).returncode == 0
    return tmp_path


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    """A copy of `filled`."""
    return shutil.copytree(filled, tmp_path / "lab")


def refused(folder: Path, command: str, db: str) -> str:
    """What is printed of a command that must fail, without a traceback; spaces are one."""
    done = in_process(*command.split(), "--db", db, folder=folder)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    box = done.stderr.startswith("Usage")
    assert box or done.stderr.count("\n") == 1
    return " ".join(done.stderr.replace("│", " ").split())


def test_every_command_has_help(tmp_path: Path) -> None:
    assert set(LAB) <= set(COMMANDS)
    for command in LAB:
        done = in_process(command, "--help", folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"breakeven {command}" in done.stdout


def test_wrong_input_is_named(folder: Path) -> None:
    before = content(folder)
    for command, words in WRONG:
        assert words in refused(folder, command, "s.db"), command
    assert content(folder) == before


def test_no_store_and_what_is_none(folder: Path) -> None:
    """Nothing is created for a command that only reads or changes what is there."""
    for command in NO_STORE:
        assert "none.db does not exist" in refused(folder, command, "none.db"), command
    for command in ANY_STORE:
        if command != "import bad.json":
            assert "is not an SQLite database" in refused(folder, command, "text.db"), command
        assert "breakeven: " in refused(folder, command, "no/folder/x.db"), command
    assert not (folder / "none.db").exists()


def content(folder: Path) -> dict[str, list[Any]]:
    """All rows of the store."""
    with sqlite3.connect(folder / "s.db") as store:
        names = [
            name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        found = {name: store.execute(f"SELECT * FROM {name}").fetchall() for name in sorted(names)}
    store.close()
    return found


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ("cancel 1", "submit tiny.yaml --priority 3"),
        ("", "cancel 1"),
        ("pause 1", "resume 1"),
        ("", "reanalyse"),
        ("", "archive --before 2027-01-01"),
        ("", "import new.json"),
    ],
)
def test_a_kill_before_the_commit_changes_nothing(folder: Path, before: str, command: str) -> None:
    """The same command then does what it would have done."""
    (folder / "new.json").write_text(REAL.read_text().partition("\n")[0])
    if before:
        assert in_process(*before.split(), "--db", "s.db", folder=folder).returncode == 0
    stored = content(folder)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *command.split(), "--db", "s.db"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": ""},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert content(folder) == stored
    done = in_process(*command.split(), "--db", "s.db", folder=folder)
    assert done.returncode == 0, done.stderr
    assert command == "reanalyse" or content(folder) != stored
