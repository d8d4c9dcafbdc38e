"""Equal functions called different by `breakeven compare`: two files with the same text, each with
data of its own, alone and next to an arm that fills the caches between them (carry-over), closures
in Python, and functions that wait equally long in the mean and jitter unequally.

Run from the project's folder (20 s for each repetition of each case):
uv run python -m tests.benchmarks.identical --repeats 5
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import breakeven
from tests.benchmarks.null import busy_neighbour
from workers.measure.environment import PROJECT

MEGABYTE = 2**20
SECONDS, MARGIN = 20.0, 0.01


class Row(NamedTuple):
    """The equal arm in one comparison."""

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


def write_wait(file: Path, sd: float) -> str:
    """A file whose function `f` waits for 2 ms in the mean, with this relative standard
    deviation.
    """
    file.write_text(
        "import numpy, time\nrng = numpy.random.default_rng()\ndef f():\n"
        f"    end = time.perf_counter() + 2e-3 * (1 + {sd} * rng.standard_normal())\n"
        "    while time.perf_counter() < end: pass\n"
    )
    return f"{file}:f"


def compare_files(
    case: str, values: Sequence[float], write: Callable[[Path, Any], str] = write_file
) -> Row:
    """The second of some files against the first one."""
    with tempfile.TemporaryDirectory() as folder:
        arms = [write(Path(folder) / f"f{index}.py", value) for index, value in enumerate(values)]
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


CASES: Mapping[str, Callable[[str], Row]] = {
    "files, 4 MB each": lambda case: compare_files(case, [4, 4]),
    "files, 4 MB each, next to 40 MB": lambda case: compare_files(case, [4, 4, 40]),
    "files, 40 MB each, next to 4 MB": lambda case: compare_files(case, [40, 40, 4]),
    "closures, 1 MB each": lambda case: compare_closures(case, 1),
    "closures, 4 MB each": lambda case: compare_closures(case, 4),
    "waits, sd 1 and 5 %": lambda case: compare_files(case, [0.01, 0.05], write_wait),
    "waits, sd 5 and 1 %": lambda case: compare_files(case, [0.05, 0.01], write_wait),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 where no equal arm is called faster or slower."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.identical")
    parser.add_argument("--repeats", type=int, default=1, help="comparisons of each case")
    parser.add_argument("--case", default="", help="only cases whose names begin so")
    parser.add_argument("--busy", action="store_true", help="beside a busy core")
    options = parser.parse_args(arguments)
    verdicts: Counter[tuple[str, str]] = Counter()
    with busy_neighbour() if options.busy else contextlib.nullcontext():
        for _ in range(options.repeats):
            for row in (CASES[case](case) for case in CASES if case.startswith(options.case)):
                verdicts[row.case, row.verdict] += 1
                interval = f"[{row.low or 0:.4f}, {row.high or 0:.4f}]"
                print(f"{row.case:<34} {row.ratio:.4f} {interval} {row.verdict}", flush=True)
    for (case, verdict), number in sorted(verdicts.items()):
        print(f"{case:<34} {verdict:<10} {number} of {options.repeats}")
    return int(any(verdict in ("faster", "slower") for _, verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
