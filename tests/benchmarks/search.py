"""Search against grid on this machine: `python -m tests.benchmarks.search`, about 5 minutes on two
quiet cores.

The quickstart's sizes are measured as a grid, then searched until the intervals of the break-evens
are as narrow as the grid's, each in a store of its own. Printed for each arm: what is claimed and
how wide; and what both took in pairs and seconds.
"""

import argparse
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
HEAD = """\
schema: 1
name: {name}
question: From how many tokens on does TopK pay?
defaults: {{model: deit_tiny_patch16_224, device: cpu}}
methods:
  - {{method: topk, keep_rate: [0.5, 0.7], layers: {{list: [3, 6, 9]}}}}
jobs: {{latency: {{pairs: {{min: 30, max: 2000}}, half_width: 0.01, budget: {budget}s, timeout: 5m}}}}
"""
GRID = "axes: {image_size: [32, 48, 64, 96, 128, 160, 192, 224]}\n"
SEARCH = (
    "search: {{axis: image_size, bracket: [32, 224], stop: {{factor: {factor:.3f}}}, max_points: 8,"
    " budget: {limit}s}}\n"
)
LEAST, MOST = 4.0, 196.0
"""Tokens at the ends of the range."""


class Claim(NamedTuple):
    """What a curve ends with."""

    arm: str
    verdict: str
    low: float | None
    high: float | None

    @property
    def factor(self) -> float:
        """Upper over lower end of the interval; the range's own end where one is not known, and 1
        without a break-even.
        """
        return (
            1.0
            if self.verdict in ("always", "never", "same", "no_effect")
            else (self.high or MOST) / (self.low or LEAST)
        )


class Effort(NamedTuple):
    """What a sweep took."""

    claims: list[Claim]
    pairs: int
    """Of all comparisons."""
    seconds: float
    """Spans of its jobs."""
    jobs: int


def measured(folder: Path, name: str, text: str) -> Effort:
    """Run a sweep in a store of its own."""
    (folder / f"{name}.yaml").write_text(text)
    store = folder / f"{name}.db"
    command = [
        sys.executable,
        "-m",
        "orchestrator",
        "run",
        str(folder / f"{name}.yaml"),
        "--db",
        str(store),
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    with contextlib.closing(sqlite3.connect(store)) as connection:
        of_time = "axis = 'tokens' AND metric = 'latency'"
        curves = (
            f"SELECT params, verdict, x_low, x_high FROM break_even WHERE {of_time} ORDER BY"
            " params, x_low"
        )
        claims = [Claim(*row) for row in connection.execute(curves)]
        (pairs,) = connection.execute("SELECT sum(pairs) FROM speedup").fetchone()
        jobs, seconds = connection.execute(
            "SELECT count(*), sum(ended_at - started_at) FROM attempt"
        ).fetchone()
    return Effort(claims, pairs, seconds, jobs)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument(
        "--budget", type=float, default=9.0, help="seconds of timing for each job (default: 9)"
    )
    budget = arguments.parse_args().budget
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        grid = measured(folder, "grid", HEAD.format(name="grid", budget=budget) + GRID)
        answered = [claim.factor for claim in grid.claims if claim.verdict != "unclear"]
        factor = max(1.05, *answered) if answered else 1.5
        section = SEARCH.format(factor=factor, limit=round(1.2 * grid.seconds))
        search = measured(folder, "search", HEAD.format(name="search", budget=budget / 3) + section)
    for name, effort in (("grid", grid), (f"search to a factor of {factor:.2f}", search)):
        print(f"{name}: {effort.pairs} pairs, {effort.seconds:.0f} s in {effort.jobs} jobs")
        for claim in effort.claims:
            print(
                f"  {claim.arm}: {claim.verdict} {claim.low} to {claim.high} tokens, factor"
                f" {claim.factor:.2f}"
            )
    print(
        f"search / grid: {search.pairs / grid.pairs:.2f} of the pairs,"
        f" {search.seconds / grid.seconds:.2f} of the time"
    )


if __name__ == "__main__":
    main()
