"""A sweep in passes from the command line: a value of every point after the first."""

import sqlite3
from pathlib import Path

import pytest

from tests.orchestrator.commands import SWEEP, in_process

pytestmark = pytest.mark.ray
PASSES = 2
TEXT = SWEEP.replace(
    "pairs: {min: 30, max: 30}, budget: 15s",
    f"pairs: {{min: 9, max: 30}}, budget: 1s, passes: {PASSES}",
)


def figures(folder: Path) -> list[tuple[int, int, int]]:
    """Size, pairs and visits of each speed-up in latency."""
    statement = """
        SELECT s.image_size, s.pairs, COUNT(p.attempt) FROM speedup AS s JOIN comparison_attempt AS p USING (comparison_id)
        WHERE s.metric = 'latency' GROUP BY s.image_size, s.pairs ORDER BY s.image_size
    """
    with sqlite3.connect(folder / "breakeven.db") as connection:
        return connection.execute(statement).fetchall()


@pytest.mark.usefixtures("shared_ray")
def test_passes_from_one_end_to_the_other(tmp_path: Path) -> None:
    """A line for each pass, all visits in the store, nothing left; once more adds as many
    visits.
    """
    (tmp_path / "tiny.yaml").write_text(TEXT)
    ran = in_process("run", "tiny.yaml", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for turn in range(PASSES):
        assert f"pass {turn + 1} of {PASSES}" in ran.stdout
    first = figures(tmp_path)
    assert [(size, visits) for size, _, visits in first] == [
        (size, PASSES) for size in (32, 48, 64)
    ]
    assert all(pairs >= 3 * PASSES for _, pairs, _ in first)
    assert "0 jobs left" in in_process("plan", "tiny.yaml", folder=tmp_path).stdout
    again = in_process("run", "tiny.yaml", "--remeasure", folder=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert [visits for *_, visits in figures(tmp_path)] == [2 * PASSES] * 3
