"""A small search with the real workers, from the sweep file to the report, and what it leaves for
the next command.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.orchestrator.commands import in_process

pytestmark = pytest.mark.ray

SWEEP = """\
schema: 1
name: small
question: From how many tokens on does it pay?
defaults: {threads: 1, model: deit_tiny_patch16_224}
methods:
  - {method: topk, keep_rate: 0.5}
search: {axis: image_size, bracket: [32, 96], stop: {factor: 2}, max_points: 4, budget: 40s}
jobs:
  latency: {pairs: {min: 30, max: 200}, budget: 2s, timeout: 1m}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("shared_ray")
def test_a_search_of_a_real_model_ends_in_a_claim_and_is_not_repeated(tmp_path: Path) -> None:
    """Within its budget, on feasible sizes, at the level of four places; the next run starts
    nothing, the plan has nothing left.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    first = in_process("run", "sweep.yaml", folder=tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "search along image_size: 9 feasible places from 32 to 96" in " ".join(
        first.stdout.split()
    )
    assert "so far: topk keep_rate=0.5: " in first.stdout
    with closing(sqlite3.connect(tmp_path / "breakeven.db")) as store:
        sizes = {size for (size,) in store.execute("SELECT image_size FROM speedup")}
        (spent_s,) = store.execute("SELECT sum(ended_at - started_at) FROM attempt").fetchone()
        levels = {level for (level,) in store.execute("SELECT point_alpha FROM break_even")}
    assert {32, 96} <= sizes
    assert all(32 <= size <= 96 for size in sizes)
    assert len(sizes) <= 4
    assert spent_s < 40 + 10  # the last job may take longer than its estimate, beside other tests
    assert levels == {0.01 / 4}
    plan = in_process("plan", "sweep.yaml", folder=tmp_path).stdout
    assert "0 jobs left" in plan
