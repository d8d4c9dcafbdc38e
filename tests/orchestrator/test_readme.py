"""The example of a method in docs/methods.md, dropped in as a new file and run from one end to the
other.
"""

import json
import re
from pathlib import Path

import pytest

from tests.orchestrator.commands import ROOT, SWEEP, breakeven

pytestmark = pytest.mark.ray


@pytest.mark.slow
def test_a_new_file_is_a_method(tmp_path: Path) -> None:
    """The file of docs/methods.md is planned, run by a worker, checked against its promise, and
    reported.
    """
    section = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "stride.py").write_text(code[1])
    sweep = SWEEP.replace(
        "{method: topk, keep_rate: 0.5}", "{method: stride, layer: [2, 4]}"
    ).replace("[32, 48, 64]", "[64]")
    (tmp_path / "sweep.yaml").write_text(sweep)

    done = breakeven("run", "sweep.yaml", folder=tmp_path, BREAKEVEN_METHODS=str(folder))
    assert done.returncode == 0, done.stderr
    columns = (
        "params, tokens, tokens_final, speedup IS NOT NULL AS measured, gmacs < gmacs_baseline AS"
        " cheaper, flags"
    )
    shown = breakeven(
        "query",
        f"SELECT {columns} FROM speedup ORDER BY params",
        "--format",
        "json",
        folder=tmp_path,
    )
    rows = json.loads(shown.stdout)
    assert [
        (row["params"], row["tokens"], row["tokens_final"], row["measured"], row["cheaper"])
        for row in rows
    ] == [({"layer": 2}, 16, 9, 1, 1), ({"layer": 4}, 16, 9, 1, 1)]
    assert not any("token_trace_mismatch" in row["flags"] for row in rows)
    assert "stride layer=4" in done.stdout
