"""The scripts in examples/ run as they stand on a small store."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_query_store(filled: str, tmp_path: Path) -> None:
    """The example prints a row for each arm and the break-evens, and writes the chart as HTML that needs no network."""
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
