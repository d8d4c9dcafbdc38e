"""The scripts in examples/ run as they stand on a small store."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.orchestrator.commands import ROOT, breakeven


def test_query_store(
    filled: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The example prints a row for each arm and the break-evens, and writes the chart as HTML that
    needs no network.
    """
    out, script = tmp_path / "chart.html", str(ROOT / "examples" / "query_store.py")
    monkeypatch.setattr(sys, "argv", [script, filled, "quickstart", str(out)])
    runpy.run_path(script, run_name="__main__")
    printed, errors = capsys.readouterr()
    assert errors == ""
    table, _, crossings = printed.partition("verdict")
    assert ["topk keep_rate=0.7" in table, "tome r_ratio=0.02" in table] == [True, True]
    assert "crossing" in crossings
    assert "vegaEmbed" in out.read_text()


def test_serve_timm(filled: str, tmp_path: Path) -> None:
    """The server applies a measured policy: an arm where it is faster, the model as it is for a
    batch that was not measured.
    """
    chosen = ("policy.json", "--model", "deit_tiny_patch16_224", "--db", filled)
    exported = breakeven("export-policy", *chosen, folder=tmp_path)
    assert (exported.returncode, exported.stderr) == (0, "")
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "serve_timm.py"), "policy.json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert sum(int(line.split(" x ")[0]) for line in lines) == 7 + 1, (
        "seven sizes without a wrong flag, and one other batch"
    )
    assert any(
        "topk keep_rate=0.5" in line and "as fast as the unmodified model at" in line
        for line in lines
    )
    assert any(
        " x unmodified: batch " in line and "was not measured; measured batches: " in line
        for line in lines
    )
