"""A real regression: of two commits of a small repository one slows a function by 5 %, and one
renames a variable. How often `breakeven compare --revision` finds which.

Run from the project's folder, on a quiet machine (an hour):
uv run python -m tests.benchmarks.regressions
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

WORK = """\
def step():
    total = 0
    for number in range({count}):
        total += number & 3
    return total > 0
"""
COUNT = 20_000
"""Turns of the loop."""
REGRESSION, MARGIN = 0.05, "2.5%"
EXPECTED = {"slower": 1, "renamed": 0}
"""Exit code for each branch."""
UNDECIDED = 3
RUNS = 10


def make_repository(folder: Path, regression: float) -> None:
    """Branches `main`, `slower` by this share, and `renamed`."""
    versions = {
        "main": WORK.format(count=COUNT),
        "slower": WORK.format(count=round(COUNT * (1 + regression))),
        "renamed": WORK.format(count=COUNT).replace("number", "index"),
    }
    _git(folder, "init", "--quiet", "--initial-branch", "main")
    for branch, source in versions.items():
        if branch != "main":
            _git(folder, "checkout", "--quiet", "-b", branch, "main")
        (folder / "bench.py").write_text(source)
        _git(folder, "add", "-A")
        _git(folder, "commit", "--quiet", "-m", branch)


def exit_codes(folder: Path, branch: str, runs: int, time: str, margin: str) -> Counter[int]:
    """How often each exit code came of a comparison of a branch with `main`."""
    root = Path(__file__).parents[2]
    command = [
        *(sys.executable, "-m", "orchestrator", "compare", "--time", time, "--margin", margin),
        *("--revision", "main", "--revision", branch, "--", "bench.py:step"),
    ]
    return Counter(
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            check=False,
        ).returncode
        for _ in range(runs)
    )


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def main(runs: int, time: str) -> None:
    print("| commit | exit code 1 (slower) | 0 (not slower) | 3 (not decided) | expected |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        make_repository(Path(name), REGRESSION)
        for branch, expected in EXPECTED.items():
            codes = exit_codes(Path(name), branch, runs, time, MARGIN)
            cells = (branch, codes[1], codes[0], codes[UNDECIDED], expected)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else RUNS, "3m")
