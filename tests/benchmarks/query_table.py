"""What `breakeven query` takes to print 10 000 speed-ups in each format: seconds of CPU and wall
time, beside a bare interpreter.

Run from the project's folder, on a quiet machine: uv run python -m tests.benchmarks.query_table
"""

import contextlib
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.webapp import simulated

ROWS = 10_000
LIMIT_S = 5.0
"""For the table, which is what people see first."""
FORMATS = ("table", "markdown", "csv", "json")
REFERENCE = "import sqlalchemy, pydantic"


class Cost(NamedTuple):
    """Of one process, in seconds, and the lines that it printed."""

    wall: float
    cpu: float
    lines: int


def fill(path: Path) -> None:
    """A store with `ROWS` speed-ups: those of one simulated job, copied under new identities."""
    simulated.store_sweep(str(path), "quickstart", [simulated.job(64)], simulated.outcome)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        count = connection.execute("SELECT count(*) FROM effect_row").fetchone()[0]
        for table, renamed in (
            ("comparison", {"comparison_id", "question_id"}),
            ("effect_row", {"comparison_id", "question_id"}),
        ):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            copied = ", ".join(
                f"r.{name} || '-' || n.i" if name in renamed else f"r.{name}" for name in columns
            )
            connection.execute(
                f"""INSERT INTO {table} ({", ".join(columns)})
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS // count})
                    SELECT {copied} FROM {table} AS r CROSS JOIN n LIMIT {ROWS - count}"""
            )
        assert connection.execute("SELECT count(*) FROM speedup").fetchone()[0] == ROWS


def cost(arguments: list[str]) -> Cost:
    """Run Python with these arguments. Raises `CalledProcessError` if it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": "."},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.perf_counter() - began, cpu, done.stdout.count(b"\n"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        fill(path)
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print(f"{'format':10} {'wall s':>8} {'CPU s':>8} {'lines':>8}")
        bare = cost(["-c", REFERENCE])
        print(f"{'(imports)':10} {bare.wall:8.2f} {bare.cpu:8.2f} {'-':>8}  {REFERENCE}")
        for form in FORMATS:
            query = [
                "-m",
                "orchestrator",
                "query",
                "SELECT * FROM speedup",
                "--db",
                str(path),
                "--format",
                form,
            ]
            found = cost(query)
            mark = f"  at most {LIMIT_S:g} s wanted" if form == "table" else ""
            print(f"{form:10} {found.wall:8.2f} {found.cpu:8.2f} {found.lines:8}{mark}")


if __name__ == "__main__":
    main()
