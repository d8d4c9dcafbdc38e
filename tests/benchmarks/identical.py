"""Identical functions called different by `breakeven compare`: two files with the same text, each
with data of its own, alone and next to an arm that fills the caches between them (carry-over), and
closures in Python.

Run from the project's folder (two minutes for each repetition of all cases):
uv run python -m tests.benchmarks.identical --repeats 5
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import breakeven
from tests.benchmarks.null import busy_neighbour
from workers.measure.environment import PROJECT

MEGABYTE = 2**20
SECONDS, MARGIN = 20.0, 0.01


class Row(NamedTuple):
    """The identical arm in one comparison."""

    case: str
    verdict: str
    ratio: float
    low: float | None
    high: float | None


def write_file(file: Path, size: int) -> str:
    """A file whose function `f` sums an array of its own of so many MB; returns `FILE:f`."""
    numbers = size * MEGABYTE // 8
    file.write_text(
        f"import numpy\nvalues = numpy.random.default_rng(0).standard_normal({numbers})\n"
        "def f(): return values.sum()\n"
    )
    return f"{file}:f"


def compare_files(case: str, sizes: Sequence[int]) -> Row:
    """The second of some files against the first one; both hold as many MB."""
    with tempfile.TemporaryDirectory() as folder:
        arms = [write_file(Path(folder) / f"f{index}.py", size) for index, size in enumerate(sizes)]
        command = [sys.executable, "-m", "orchestrator", "compare", *arms, "--no-check"]
        options = ["--time", f"{SECONDS:g}s", "--margin", f"{MARGIN}", "--format", "json"]
        done = subprocess.run(
            [*command, *options], cwd=PROJECT, capture_output=True, text=True, check=False
        )
    if not done.stdout:
        raise RuntimeError(done.stderr)
    arm = json.loads(done.stdout)["places"][0]["arms"][0]
    return Row(case, arm["verdict"], arm["ratio"], arm["low"], arm["high"])


def compare_closures(case: str, size: int) -> Row:
    """Two closures over arrays of so many MB each, in this process."""

    def summing() -> Callable[[], Any]:
        values = np.random.default_rng(0).standard_normal(size * MEGABYTE // 8)
        return lambda: float(values.sum())

    arm = breakeven.compare({"a": summing(), "b": summing()}, time=SECONDS, margin=MARGIN).only
    return Row(case, arm.verdict, arm.ratio, arm.low, arm.high)


def measured() -> Iterator[Row]:
    """Each case once."""
    yield compare_files("files, 4 MB each", [4, 4])
    yield compare_files("files, 4 MB each, next to 40 MB", [4, 4, 40])
    yield compare_files("files, 40 MB each, next to 4 MB", [40, 40, 4])
    for size in (1, 4):
        yield compare_closures(f"closures, {size} MB each", size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 where no identical arm is called faster or slower."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.identical")
    parser.add_argument("--repeats", type=int, default=1, help="comparisons of each case")
    parser.add_argument("--busy", action="store_true", help="beside a busy core")
    options = parser.parse_args(arguments)
    verdicts: Counter[tuple[str, str]] = Counter()
    with busy_neighbour() if options.busy else contextlib.nullcontext():
        for _ in range(options.repeats):
            for row in measured():
                verdicts[row.case, row.verdict] += 1
                interval = f"[{row.low or 0:.4f}, {row.high or 0:.4f}]"
                print(f"{row.case:<34} {row.ratio:.4f} {interval} {row.verdict}", flush=True)
    for (case, verdict), number in sorted(verdicts.items()):
        print(f"{case:<34} {verdict:<10} {number} of {options.repeats}")
    return int(any(verdict in ("faster", "slower") for _, verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
