"""Runs that go on after the first pass: a search killed in the middle, pairs added to what is
unclear, a time that binds.
"""

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.commands import ROOT, in_process

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("shared_ray")]

SWEEP = """\
schema: 1
name: refined
question: From where on does it pay?
defaults: {device: cpu, model: deit_tiny_patch16_224, seed: 64}
methods:
  - {method: topk, keep_rate: [0.5, 0.7], layers: {list: [3, 6, 9]}}
"""
JOBS = "jobs: {latency: {pairs: {min: 30, max: 100}, half_width: 0.02, budget: 1s, timeout: 60s}}\n"
SEARCH = (
    "search: {axis: image_size, bracket: [32, 224], stop: {factor: 1.4}, max_points: 6, budget:"
    " 10m}\n"
)
GRID = "axes: {image_size: [112, 128, 144]}\n"


def run(folder: Path, *more: str, code: int = 0) -> str:
    done = in_process("run", "sweep.yaml", "--db", "store.db", *more, folder=folder)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def table(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(folder / "store.db")) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.slow
def test_a_search_killed_in_the_middle_goes_on_and_ends(tmp_path: Path) -> None:
    """What it had measured counts; it ends with intervals around 64 tokens, few places, its level,
    and nothing left to do.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP + SEARCH + JOBS)
    command = [sys.executable, "-m", "tests.faults.toy", "run", str(tmp_path / "sweep.yaml")]
    command += ["--db", str(tmp_path / "store.db")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ends = (line for line in process.stdout if line.startswith("["))
        for _ in range(3):
            next(ends)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    before = table(tmp_path, "SELECT id, job_id FROM attempt")

    shown = run(tmp_path)

    assert f"{2 * len({job for _, job in before})} of 8 comparisons are answered" in shown
    assert "so far: topk keep_rate=0.5: " in shown
    of_time = "axis = 'tokens' AND metric = 'latency'"
    rows = table(
        tmp_path,
        f"SELECT verdict, x_low, x_high, points, point_alpha FROM break_even WHERE {of_time}",
    )
    assert len(rows) == 2
    for verdict, low, high, points, alpha in rows:
        assert (verdict, alpha) == ("crossing", 0.01 / 6)
        assert low <= 64 <= high
        assert points <= 6
    planned = in_process("plan", "sweep.yaml", "--db", "store.db", folder=tmp_path).stdout
    assert "0 jobs left" in planned
    assert "search along image_size: 25 feasible places from 32 to 224" in planned
    attempts = table(tmp_path, "SELECT count(*) FROM attempt")
    assert "starting Ray" not in run(tmp_path)
    assert table(tmp_path, "SELECT count(*) FROM attempt") == attempts
    grid = SWEEP.replace("refined", "grid") + "axes: {image_size: [32, 224]}\n" + JOBS
    (tmp_path / "sweep.yaml").write_text(grid)
    planned = in_process("plan", "sweep.yaml", "--db", "store.db", folder=tmp_path).stdout
    assert "4 of 4 comparisons are answered" in planned, "its questions are those of a grid"


@pytest.mark.slow
def test_pairs_are_added_to_what_is_unclear_alone(tmp_path: Path) -> None:
    """A limit below the least time of a job measures nothing. Without a request nothing is
    repeated; with `--refine` what is unclear until it is precise, and nothing else.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP + GRID + JOBS)
    shown = run(tmp_path, "--time", "1s", code=1)
    assert table(tmp_path, "SELECT count(*) FROM attempt") == [(0,)]
    assert "6 comparisons are not answered" in " ".join(shown.split())
    run(tmp_path)
    measured = (
        "SELECT comparison_id, verdict, pairs, ln(speedup_high / speedup_low) / 2 FROM speedup"
    )
    first = {
        key: (pairs, verdict == "unclear" and half_width > 0.02)
        for key, verdict, pairs, half_width in table(tmp_path, measured)
    }
    assert any(wanting for _, wanting in first.values())
    assert "starting Ray" not in run(tmp_path)

    assert "measuring for" in run(tmp_path, "--refine", "--time", "2m")

    for key, verdict, pairs, half_width in table(tmp_path, measured):
        before, wanting = first[key]
        assert pairs > before if wanting else pairs == before
        assert verdict != "unclear" or half_width <= 0.02
    assert "starting Ray" not in run(tmp_path, "--refine")


@pytest.mark.slow
def test_sizes_are_added_inside_a_bracket(tmp_path: Path) -> None:
    """Between 7 x 7 and 9 x 9 patches, `--refine` measures rectangles too, which stay points of the
    curve.
    """
    grid = SWEEP.replace("topk", "random").replace(", layers: {list: [3, 6, 9]}", "")
    (tmp_path / "sweep.yaml").write_text(grid + GRID + JOBS)
    run(tmp_path)
    bracket = (
        "SELECT x_low, x_high, points, points_missing FROM break_even WHERE axis = 'tokens' AND"
        " metric = 'latency'"
    )
    assert {row[:2] for row in table(tmp_path, bracket)} == {(49, 81)}
    planned = in_process("plan", "sweep.yaml", "--db", "store.db", folder=tmp_path).stdout
    assert "`--refine` adds inside a bracket first: " in planned
    assert " px (56 tokens)" in planned or " px (72 tokens)" in planned

    run(tmp_path, "--refine", "--time", "2m")

    sizes = table(tmp_path, "SELECT DISTINCT image_shape, tokens FROM speedup ORDER BY tokens")
    assert {("112x128", 56), ("128x144", 72)} <= set(sizes)
    for low, high, points, missing in table(tmp_path, bracket):
        assert (low >= 49, high <= 81, high / low < 1.65, points, missing) == (
            True,
            True,
            True,
            5,
            0,
        )
    assert (
        "10 of 10 comparisons are answered"
        in in_process("plan", "sweep.yaml", "--db", "store.db", folder=tmp_path).stdout
    )
