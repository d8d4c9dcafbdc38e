"""`breakeven publish` and `breakeven merge` as a user calls them: output, one line for each error,
exit codes.
"""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.orchestrator.commands import ROOT, breakeven
from tests.webapp.simulated import SIZES, job, outcome, store_outcomes

ATTEMPTS = "SELECT count(*) FROM attempt"


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    """A folder with the stores `a.db` and `b.db`, which have one attempt in common."""
    store_outcomes(tmp_path / "a.db", "one", outcome(job(64)), outcome(job(96)))
    store_outcomes(tmp_path / "b.db", "one", outcome(job(96)), outcome(job(128)))
    return tmp_path


def test_merge_tells_what_came(stores: Path) -> None:
    """And what was here; the other store stays as it is."""
    before = (stores / "b.db").read_bytes()
    done = breakeven("merge", "b.db", "--db", "a.db", folder=stores)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "sweep one came",
        "1 attempt came from b.db, 1 were here already",
    ]
    again = breakeven("merge", "b.db", "--db", "a.db", folder=stores)
    assert again.stdout.splitlines() == [
        "sweep one was here already",
        "0 attempts came from b.db, 2 were here already",
    ]
    assert (stores / "b.db").read_bytes() == before
    report = breakeven("report", "one", "--db", "a.db", folder=stores)
    assert re.search(r"\b16\b.*\b36\b.*\b64\b", report.stdout)


def test_a_store_is_merged_into_itself(stores: Path) -> None:
    """Which changes nothing."""
    done = breakeven("merge", "a.db", "--db", "a.db", folder=stores)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "0 attempts came from a.db, 2 were here already"


@pytest.mark.parametrize(
    ("command", "right"),
    [
        (("merge", "missing.db", "--db", "a.db"), "missing.db"),
        (("merge", "text.db", "--db", "a.db"), "not an SQLite database"),
        (("publish", "text.db", "--db", "a.db"), "is a file; name a folder"),
        (("publish", "site", "--sweep", "ones", "--db", "a.db"), "did you mean one?"),
        (("publish", "site", "--db", "missing.db"), "missing.db"),
        (("publish", "site", "--samples", "some", "--db", "a.db"), "--samples"),
        (("publish", "/proc/none/site", "--db", "a.db"), "choose a folder that is writable"),
        (("publish",), "DIR"),
    ],
)
def test_what_is_wrong_is_said(stores: Path, command: tuple[str, ...], right: str) -> None:
    """On standard error, with exit code 2; nothing is written."""
    (stores / "text.db").write_text("a text, no database, and long enough to be read as one\n" * 9)
    done = breakeven(*command, folder=stores)
    assert done.returncode == 2
    assert right in done.stderr
    assert "Traceback" not in done.stderr
    if done.stderr.startswith("breakeven:"):
        assert done.stderr.count("\n") == 1
    assert not (stores / "site").exists()


def test_publish_says_what_it_did(stores: Path) -> None:
    """What is taken out first, then the numbers of files."""
    done = breakeven("publish", "site", "--db", "a.db", folder=stores)
    assert (done.returncode, done.stderr) == (0, "")
    first, *_, last = done.stdout.splitlines()
    assert re.fullmatch(r"host simulated → machine-[0-9a-f]{6}", first)
    assert re.fullmatch(r"site: [1-9]\d* files changed, 0 unchanged, 0 removed", last)
    again = breakeven("publish", "site", "--db", "a.db", folder=stores)
    assert re.fullmatch(
        r"site: 0 files changed, \d+ unchanged, 0 removed", again.stdout.splitlines()[-1]
    )


@pytest.mark.parametrize("command", [["publish", "site"], ["merge", "b.db"]])
def test_an_interruption_ends_it(stores: Path, command: list[str]) -> None:
    """With exit code 130 and without a traceback; the same command then does the rest."""
    many = [
        outcome(job(size, "deit_small_patch16_224", batch))
        for size in SIZES
        for batch in range(1, 17)
    ]
    if command[0] == "merge":
        store_outcomes(stores / "a.db", "many", *many[::2])
        store_outcomes(stores / "b.db", "many", *many)
    else:
        store_outcomes(stores / "a.db", "many", *many[::16])
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *command, "--db", "a.db"],
        cwd=stores,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    if command[0] == "publish":
        assert process.stdout.readline().startswith("host simulated")
    else:
        mine = sqlite3.connect(stores / "a.db")
        (before,) = mine.execute(ATTEMPTS).fetchone()
        while mine.execute(ATTEMPTS).fetchone() == (before,):
            assert process.poll() is None
            time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert process.returncode == 130
    done = breakeven(*command, "--db", "a.db", folder=stores)
    assert done.returncode == 0
