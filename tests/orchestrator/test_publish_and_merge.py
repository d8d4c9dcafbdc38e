"""`breakeven publish` and `breakeven merge` as a user calls them: output, one line for each error,
exit codes.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sweeps.model.outcome import Outcome
from tests.orchestrator.commands import ROOT, breakeven
from tests.webapp.simulated import SIZES, job, outcome, store_outcomes


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    """A folder with the stores `a.db` and `b.db`, which have one attempt in common."""
    measured = (ROOT / "sweeps" / "references" / "quickstart_gpu_h100.jsonl").read_text()
    small, middle, large, *_ = map(Outcome.model_validate_json, measured.splitlines()[::4])
    store_outcomes(tmp_path / "a.db", "one", small, middle)
    store_outcomes(tmp_path / "b.db", "one", middle, large)
    return tmp_path


def test_merge_tells_what_came(stores: Path) -> None:
    """And what was here; the other store stays as it is."""
    before = (stores / "b.db").read_bytes()
    done = breakeven("merge", "b.db", "--db", "a.db", folder=stores)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "sweep one came",
        "1 attempt came from b.db, 1 already here",
    ]
    again = breakeven("merge", "b.db", "--db", "a.db", folder=stores)
    assert again.stdout.splitlines() == [
        "sweep one was here already",
        "0 attempts came from b.db, 2 already here",
    ]
    assert (stores / "b.db").read_bytes() == before
    report = breakeven("report", "one", "--db", "a.db", folder=stores)
    assert re.search(r"\b16\b.*\b49\b.*\b196\b", report.stdout)


@pytest.mark.parametrize(
    ("command", "right"),
    [
        (("merge", "missing.db", "--db", "a.db"), "missing.db does not exist; name the store"),
        (("merge", "a.db", "--db", "./a.db"), "a.db is the store itself; name another one"),
        (("publish", "site", "--db", "a.db", "--address", "notaurl"), "'notaurl' is no URL"),
        (("publish", "text.db", "--db", "a.db"), "is a file; name a folder"),
        (("publish", "site", "--sweep", "ones", "--db", "a.db"), "did you mean one?"),
        (("publish", "/proc/none/site", "--db", "a.db"), "choose a folder that is writable"),
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


def test_an_interruption_ends_it(stores: Path) -> None:
    """With exit code 130 and without a traceback; the same command then does the rest."""
    many = [outcome(job(size, "deit_small_patch16_224")) for size in SIZES]
    store_outcomes(stores / "a.db", "many", *many)
    command = ["publish", "site", "--db", "a.db"]
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *command],
        cwd=stores,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("host simulated")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert process.returncode == 130
    assert breakeven(*command, folder=stores).returncode == 0
