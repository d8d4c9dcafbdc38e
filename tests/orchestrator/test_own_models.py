"""Sweeps with models in files on the command line: planned without running them, measured where the
files are not, and measured anew once a file has changed.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from store.open.engine import connect
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import ROOT, breakeven

SWEEP = """\
schema: 1
name: mine
question: Does sorting by halves pay?
defaults: {model: ./sort.py:build, threads: 1}
axes: {length: [64, 1024]}
methods: [{callable: ./halves.py:apply}]
jobs: {latency: {pairs: {min: 3, max: 6}, budget: 200ms, timeout: 1m}}
"""
MODEL = """\
import store
import torch
def build(): return store.ordered
def inputs(length): return torch.rand(length)
"""
FILES = {
    "mine.yaml": SWEEP,
    "sort.py": MODEL,
    "store.py": "import torch\ndef ordered(x): return torch.sort(x).values\n",
    "halves.py": """\
import torch
def apply(ordered):
    def call(x):
        return ordered(torch.cat([ordered(half) for half in x.chunk(2)]))
    return call
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def planned(folder: Path) -> str:
    ended = breakeven("plan", "mine.yaml", folder=folder)
    assert not ended.returncode, ended.stderr
    return ended.stdout


def test_measured_elsewhere_and_anew_once_a_file_has_changed(folder: Path, tmp_path: Path) -> None:
    """A plan names the files; its jobs run in a folder without them; a changed file is named."""
    assert "runs the code in halves.py, sort.py, store.py" in planned(folder)
    wrote = breakeven("plan", "mine.yaml", "--jobs", "jobs", folder=folder)
    assert not wrote.returncode, wrote.stderr
    (tmp_path / "elsewhere").mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "workers.run", str(folder / "jobs"), "--out", "out"],
        cwd=tmp_path / "elsewhere",
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not ran.returncode, ran.stderr
    outcomes = sorted(map(str, (tmp_path / "elsewhere/out").glob("*.json")))
    stored = breakeven("import", *outcomes, folder=folder)
    assert not stored.returncode, stored.stderr
    engine = connect(f"{folder}/breakeven.db")
    points = rows(engine, "SELECT tokens, x_axis, gmacs FROM speedup ORDER BY tokens")
    assert [tuple(row.values()) for row in points] == [(64, "length", None), (1024, "length", None)]
    (payload, *_) = rows(engine, "SELECT payload FROM attempt")
    engine.dispose()
    assert "files" not in json.loads(payload["payload"])["job"]
    (folder / "halves.py").write_text(FILES["halves.py"] + "# changed\n")
    changed = planned(folder)
    assert (
        "2 comparisons measured before, but not with this halves.py:apply is another now" in changed
    )


def test_files_that_are_missing(folder: Path) -> None:
    """One line names what is missing."""
    (folder / "sort.py").unlink()
    ended = breakeven("plan", "mine.yaml", folder=folder)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.endswith(
        "mine.yaml:4: defaults.model: sort.py: cannot be read: No such file or directory"
    )


def test_curves_may_run_along_the_batch_size(folder: Path) -> None:
    """`x_axis: batch_size` is accepted where the sweep varies it, and refused where it does not."""
    text = SWEEP.replace("axes: {length: [64, 1024]}", "axes: {length: [64], batch_size: [1, 2]}")
    (folder / "mine.yaml").write_text(f"{text}x_axis: batch_size\n")
    assert "2 points x 1 arm" in planned(folder)
    (folder / "mine.yaml").write_text(f"{SWEEP}x_axis: batch_size\n")
    assert "unknown axis 'batch_size'" in breakeven("plan", "mine.yaml", folder=folder).stderr
