"""Compares the figures of charts drawn by this checkout with those drawn by another one, from copies of one database.

    python -m tests.webapp.same_figures CHECKOUT DATABASE

CHECKOUT is a clone at the last commit before the renames, with its own `.venv`. Every sweep is drawn by each metric along each axis
with flagged points; the copy of this checkout is migrated first. The exit code is 0 if all figures are equal, else 1.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from store.engine import connect

POINT = ("model", "method", "metric", "host", "environment", "comparison_id", "x", "speedup", "speedup_low", "speedup_high")
POINT_AFTER = (
    "theory",
    "baseline_ms",
    "gmacs_baseline",
    "gmacs",
    "pairs",
    "rounds",
    "floor",
    "flags",
    "word",
    "estimate",
    "interval",
)
RENAMED = {"arm_ms": "method_ms", "gmacs_overhead": "gmacs_method"}

DRAW = f"""
import json, sys
OLD = sys.argv[2] == "old"
if OLD:
    from webapp import charts as curves, frames
    read = lambda sweep: (frames.points(sweep, sys.argv[1]), frames.break_evens(sweep, sys.argv[1]))
    sweeps = frames.sweeps(sys.argv[1])["sweep"]
else:
    from webapp import queries
    from webapp.charts import curves
    read = lambda sweep: queries.labelled_speedups(sweep, sys.argv[1])
    sweeps = queries.sweeps(sys.argv[1])["sweep"]
renamed, figures = {RENAMED!r}, {{}}
for sweep in sorted(sweeps):
    points, break_evens = read(sweep)
    for metric in sorted(set(points["metric"])):
        for axis in ("tokens", "gmacs", "gmacs_saved"):
            try:
                chart = curves.speedup_chart(points[points["metric"] == metric], break_evens, axis, show_flagged=True)
            except ValueError as problem:
                figures[f"{{sweep}} {{metric}} {{axis}}"] = ["nothing to draw"]
                continue
            rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows]
            drawn = [[row[name] for name in {(*POINT, *POINT_AFTER)!r}] + [row[old if OLD else new] for new, old in renamed.items()]
                     for row in rows if "word" in row]
            crossings = [[row[name] for name in ("method", "metric", "x", "x_low", "x_high", "direction")]
                         for row in rows if "x_low" in row]
            figures[f"{{sweep}} {{metric}} {{axis}}"] = sorted({{json.dumps(row) for row in drawn + crossings}})
print(json.dumps(figures))
"""


def figures(checkout: Path, python: str, database: Path, names: str) -> dict[str, list[str]]:
    """The numbers and words of every chart: for each point and crossing a row as JSON."""
    command = [python, "-W", "ignore", "-c", DRAW, str(database), names]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)}
    )
    found: dict[str, list[str]] = json.loads(ended.stdout)
    return found


def main() -> int:
    checkout, database = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        old, new = (Path(shutil.copy(database, Path(folder) / name)) for name in ("old.db", "new.db"))
        connect(str(new)).dispose()  # migrates it
        before = figures(checkout, str(checkout / ".venv/bin/python"), old, "old")
        after = figures(Path(__file__).parents[2], sys.executable, new, "new")
    different = [name for name in before if before[name] != after.get(name)]
    for name in different:
        only = set(before[name]) ^ set(after.get(name, []))
        print(f"{name}: {len(only)} rows differ", *sorted(only)[:4], sep="\n  ")
    print(f"{len(before)} charts, {sum(map(len, before.values()))} points and crossings: {len(different)} charts differ")
    return 1 if different or not before or before.keys() != after.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
