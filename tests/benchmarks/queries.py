"""Seconds that queries take on a big store: what pages read, and `breakeven query` with the
documented statements.

Run from the project's folder, on a quiet machine: uv run python -m tests.benchmarks.queries STORE
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store.open.engine import connect_readonly
from store.read import queries, runs
from tests.benchmarks.query_table import REFERENCE, cost
from tests.fixtures.documented_sql import statements

PLAIN = "SELECT * FROM speedup LIMIT 1000"
PLAIN_S, DOCUMENTED_S = 1.0, 2.0
"""Limits on 100 000 comparisons, the start of the command included."""
SECONDS = "60"
"""So long may a statement take here: the command's own limit is 10 s."""


def timed(name: str, read: Callable[[], Any]) -> Any:
    """Print the seconds of the first and of the second call; returns what it found."""
    took = []
    for _ in range(2):
        began = time.perf_counter()
        found = read()
        took.append(time.perf_counter() - began)
    print(f"{name:44} {took[0]:7.3f} {took[1]:7.3f} s  {len(found):7} rows", flush=True)
    return found


def pages(url: str) -> None:
    """What pages read, of the largest panel of the largest sweep."""
    engine = connect_readonly(url)
    sweeps = timed("sweeps with their counts", lambda: queries.sweep_summaries(engine))
    name = max(sweeps, key=lambda row: row["comparisons"])["name"]
    timed("progress", lambda: runs.run_progress(engine))
    timed("failures by class", lambda: runs.failure_classes(engine, name))
    timed("nodes and devices", lambda: runs.health(engine))
    counts = timed("panels of the largest sweep", lambda: queries.panel_counts(engine, [name]))
    largest = counts.sort_values("points").iloc[-1]
    fixed = {column: largest[column] for column in (*queries.PANEL_COLUMNS, "metric")}
    for view in queries.SWEEP_VIEWS:
        timed(
            f"its largest panel in {view}",
            lambda view=view: queries.panel_rows(engine, name, view, fixed, {}),
        )
    engine.dispose()


def main(url: str) -> None:
    print(f"{url}; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    pages(url)
    print(f"{'seconds of processes':44} {'wall':>7} {'CPU':>7}")
    bare = cost(["-c", REFERENCE])
    print(f"{'(imports)':44} {bare.wall:7.2f} {bare.cpu:7.2f}")
    for sql in (PLAIN, *statements()):
        found = cost(
            [
                "-m",
                "orchestrator",
                "query",
                sql,
                "--db",
                url,
                "--format",
                "csv",
                "--seconds",
                SECONDS,
            ]
        )
        limit = PLAIN_S if sql == PLAIN else DOCUMENTED_S
        words = " ".join(sql.split())
        print(
            f"{words[:44]:44} {found.wall:7.2f} {found.cpu:7.2f}  {found.lines - 1:7} rows, at most"
            f" {limit:g} s",
            flush=True,
        )


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
