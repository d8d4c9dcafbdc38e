"""The scripts in examples/ run as they stand on a small store."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_query_store(filled: str, tmp_path: Path) -> None:
    """The example prints a row for each arm and the break-evens, and writes the chart as HTML that
    needs no network.
    """
    out = tmp_path / "chart.html"
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "query_store.py"), filled, "quickstart", str(out)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    table, _, crossings = ended.stdout.partition("verdict")
    assert ["topk keep_rate=0.7" in table, "tome r_ratio=0.02" in table] == [True, True]
    assert "crossing" in crossings
    assert "vegaEmbed" in out.read_text()


def test_serve_timm(filled: str, tmp_path: Path) -> None:
    """The server applies a measured policy: an arm where it is faster, the model as it is for a
    batch that was not measured.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environment,
        )

    exported = run(
        "-m",
        "orchestrator",
        "export-policy",
        "policy.json",
        "--model",
        "deit_tiny_patch16_224",
        "--db",
        filled,
    )
    assert (exported.returncode, exported.stderr) == (0, "")
    ended = run(str(ROOT / "examples" / "serve_timm.py"), "policy.json")
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
