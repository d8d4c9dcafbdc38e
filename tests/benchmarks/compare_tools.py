"""False alarms and detections of `breakeven compare`, hyperfine, pytest-benchmark and pyperf: two
equal commands (functions, for the tools that time these) and two that differ by 3 %, with 15 s
for each comparison, on a quiet machine and next to a process that keeps a core busy.

What each tool calls a difference: ours its verdict with a margin of 1 %; hyperfine gives no
verdict, so Welch's t test at 5 % of its times, as its own script does; pytest-benchmark
`--benchmark-compare-fail=mean:2%`, which takes whole per cent; pyperf `compare_to`, which tests at
5 %.

Run from the project's folder, on a quiet machine (an hour; `apt-get install hyperfine`); a number
after it repeats each comparison so often:
uv run python -m tests.benchmarks.compare_tools
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from scipy import stats

ROOT = Path(__file__).parents[2]
SECONDS = 15
REPEATS = 10
TURNS = {"equal": (40_000, 40_000), "3 % more": (40_000, 41_200)}
"""Of a loop, of the baseline and of the arm."""
SIGNIFICANT = 0.05
EXTERNAL = (
    "uv",
    "run",
    "--quiet",
    "--no-project",
    "--with",
    "pytest-benchmark",
    "--with",
    "pyperf",
)
WORK = """\
def loop(turns):
    total = 0
    for number in range(turns):
        total += number & 3
    return total > 0

def base(): return loop({0})
def arm(): return loop({1})
"""


def shell_loop(turns: int) -> str:
    """A command whose work is exact: `turns` additions by /bin/sh."""
    return f"sh -c 'i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done'"


def ours(folder: Path, *arguments: str) -> str:
    """The verdict of a comparison."""
    command = [sys.executable, "-m", "orchestrator", "compare", *arguments]
    options = ["--time", f"{SECONDS}s", "--margin", "1%", "--format", "json"]
    done = subprocess.run(
        [*command, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    (place,) = json.loads(done.stdout)["places"]
    return str(place["arms"][0]["verdict"])


def our_commands(folder: Path, turns: tuple[int, int]) -> str:
    base, arm = map(shell_loop, turns)
    return ours(folder, "--command", base, f"{arm} ")


def our_functions(folder: Path, turns: tuple[int, int]) -> str:
    (folder / "work.py").write_text(WORK.format(*turns))
    return ours(folder, "work.py:base", "work.py:arm")


def hyperfine(folder: Path, turns: tuple[int, int]) -> str:
    """Welch's t test of as many runs as fit into the time."""
    commands = [shell_loop(each) for each in turns]
    _run(folder, "hyperfine", "-N", "--runs", "5", "--export-json", "once.json", commands[0])
    (first,) = json.loads((folder / "once.json").read_text())["results"]
    runs = max(10, int(SECONDS / 2 / first["mean"]))
    options = ("-N", "--warmup", "3", "--runs", f"{runs}", "--export-json", "both.json")
    _run(folder, "hyperfine", *options, *commands)
    base, arm = (
        each["times"] for each in json.loads((folder / "both.json").read_text())["results"]
    )
    test = stats.ttest_ind(base, arm, equal_var=False)
    if test.pvalue >= SIGNIFICANT:
        return "undecided"
    return "slower" if test.statistic < 0 else "faster"


def pytest_benchmark(folder: Path, turns: tuple[int, int]) -> str:
    """Two runs, the second of which fails where its mean is larger by more than the threshold."""
    shutil.rmtree(folder / ".benchmarks", ignore_errors=True)
    options = (f"--benchmark-max-time={SECONDS / 2}", "--benchmark-min-rounds=5", "-q")
    for each, more in zip(
        turns,
        (("--benchmark-autosave",), ("--benchmark-compare", "--benchmark-compare-fail=mean:2%")),
        strict=True,
    ):
        (folder / "test_work.py").write_text(
            f"{WORK.format(each, each)}\ndef test_loop(benchmark): benchmark(base)\n"
        )
        command = [*EXTERNAL, "pytest", *options, *more, "test_work.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if "Performance has regressed" in done.stdout + done.stderr:
        return "slower"
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return "undecided"


def pyperf(folder: Path, turns: tuple[int, int]) -> str:
    """`compare_to` of two files, each of a dozen processes."""
    (folder / "work.py").write_text(WORK.format(*turns))
    for name in ("base", "arm"):
        (folder / f"{name}.json").unlink(missing_ok=True)
        options = ("--processes", f"{SECONDS}", "--values", "3", "--min-time", "0.1")
        _run(
            folder,
            *(*EXTERNAL, "python", "-m", "pyperf", "timeit", *options, "--quiet"),
            *("--name", "loop", "-s", "import work", f"work.{name}()", "-o", f"{name}.json"),
        )
    said = _run(folder, *EXTERNAL, "python", "-m", "pyperf", "compare_to", "base.json", "arm.json")
    return next((word for word in ("slower", "faster") if word in said), "undecided")


def _run(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


TOOLS: dict[str, Callable[[Path, tuple[int, int]], str]] = {
    "breakeven compare, commands": our_commands,
    "breakeven compare, functions": our_functions,
    "hyperfine": hyperfine,
    "pytest-benchmark": pytest_benchmark,
    "pyperf": pyperf,
}


@contextlib.contextmanager
def busy_core() -> Iterator[None]:
    """A process that computes all the time."""
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def main(repeats: int) -> None:
    print(f"{repeats} comparisons each, {SECONDS} s; {os.cpu_count()} CPUs\n")
    print("| machine | tool | equal: called different | 3 % more: called slower | faster |")
    print("|---|---|---|---|---|")
    missing = [] if shutil.which("hyperfine") else ["hyperfine"]
    with tempfile.TemporaryDirectory() as name:
        for machine, load in (("quiet", contextlib.nullcontext), ("a busy core", busy_core)):
            for tool, compare in TOOLS.items():
                if tool in missing:
                    continue
                with load():
                    found = {
                        case: [compare(Path(name), turns) for _ in range(repeats)]
                        for case, turns in TURNS.items()
                    }
                alarms = sum(each in {"slower", "faster"} for each in found["equal"])
                slower, faster = (found["3 % more"].count(each) for each in ("slower", "faster"))
                print(f"| {machine} | {tool} | {alarms} | {slower} | {faster} |", flush=True)
    if missing:
        print("\nNot measured, since it is not installed: hyperfine")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else REPEATS)
