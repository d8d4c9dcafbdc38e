"""False alarms and detections of `breakeven compare`, hyperfine, pytest-benchmark and pyperf: equal
functions, two that differ by 3 %, equal ones with 4 MB of data each, and equal ones that jitter
unequally, with 15 s for each comparison, on a quiet machine and next to a process that keeps a core
busy. Tools that compare commands run the same functions by `python -S`.

What each tool calls a difference: ours its verdict with a margin of 1 %; hyperfine gives no
verdict, so Welch's t test at 5 % of its times, as its own script does; pytest-benchmark
`--benchmark-compare-fail=mean:2%`, which takes whole per cent; pyperf `compare_to`, which tests at
5 %.

Run from the project's folder, on a quiet machine (two hours; `apt-get install hyperfine`); a number
after it repeats each comparison so often, and `alone` leaves the busy core out:
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
LOOP = """\
def f():
    total = 0
    for number in range({turns}):
        total += number & 3
    return total > 0
"""
DATA = """\
values = bytearray(4 << 20)
def f(): return values.count(1)
"""
WAIT = """\
import random, time
def f():
    end = time.perf_counter() + 2e-3 * (1 + {sd} * random.gauss(0, 1))
    while time.perf_counter() < end: pass
"""
MAIN = """
if __name__ == "__main__":
    for _ in range(20): f()
"""
CASES = {
    "equal": (LOOP.format(turns=40_000), LOOP.format(turns=40_000)),
    "4 MB each": (DATA, DATA),
    "jitter 1 and 5 %": (WAIT.format(sd=0.01), WAIT.format(sd=0.05)),
    "3 % more": (LOOP.format(turns=40_000), LOOP.format(turns=41_200)),
}
"""The text of the baseline and of the arm."""
SIDES = "base", "arm"


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


def our_commands(folder: Path) -> str:
    return ours(folder, "--command", *_commands())


def our_functions(folder: Path) -> str:
    return ours(folder, "base.py:f", "arm.py:f", "--no-check")


def hyperfine(folder: Path) -> str:
    """Welch's t test of as many runs as fit into the time."""
    commands = _commands()
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


def pytest_benchmark(folder: Path) -> str:
    """Two runs, the second of which fails where its mean is larger by more than the threshold."""
    shutil.rmtree(folder / ".benchmarks", ignore_errors=True)
    options = (f"--benchmark-max-time={SECONDS / 2}", "--benchmark-min-rounds=5", "-q")
    for side, more in zip(
        SIDES,
        (("--benchmark-autosave",), ("--benchmark-compare", "--benchmark-compare-fail=mean:2%")),
        strict=True,
    ):
        (folder / "test_work.py").write_text(
            f"from {side} import f\ndef test_loop(benchmark): benchmark(f)\n"
        )
        command = [*EXTERNAL, "pytest", *options, *more, "test_work.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if "Performance has regressed" in done.stdout + done.stderr:
        return "slower"
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return "undecided"


def pyperf(folder: Path) -> str:
    """`compare_to` of two files, each of a dozen processes."""
    for name in SIDES:
        (folder / f"{name}.json").unlink(missing_ok=True)
        options = ("--processes", f"{SECONDS}", "--values", "3", "--min-time", "0.1")
        _run(
            folder,
            *(*EXTERNAL, "python", "-m", "pyperf", "timeit", *options, "--quiet"),
            *("--name", "loop", "-s", f"import {name}", f"{name}.f()", "-o", f"{name}.json"),
        )
    printed = _run(
        folder, *EXTERNAL, "python", "-m", "pyperf", "compare_to", "base.json", "arm.json"
    )
    return next((word for word in ("slower", "faster") if word in printed), "undecided")


def _commands() -> list[str]:
    return [f"{sys.executable} -S {side}.py" for side in SIDES]


def _run(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


TOOLS: dict[str, Callable[[Path], str]] = {
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


def compared(compare: Callable[[Path], str], sides: tuple[str, str]) -> str:
    """The verdict of a tool on two functions, in a folder of their own."""
    with tempfile.TemporaryDirectory() as name:
        for side, text in zip(SIDES, sides, strict=True):
            (Path(name) / f"{side}.py").write_text(text + MAIN)
        return compare(Path(name))


def main(repeats: int, *, alone: bool) -> None:
    print(f"{repeats} comparisons each, {SECONDS} s; {os.cpu_count()} CPUs; slower / faster\n")
    print(f"| machine | tool | {' | '.join(CASES)} |\n|---|---|{'---|' * len(CASES)}")
    missing = [] if shutil.which("hyperfine") else ["hyperfine"]
    machines = {"nothing beside": contextlib.nullcontext, "a busy core": busy_core}
    for machine, load in list(machines.items())[: 1 if alone else 2]:
        for tool, compare in TOOLS.items():
            if tool in missing:
                continue
            with load():
                verdicts = [
                    [compared(compare, sides) for _ in range(repeats)] for sides in CASES.values()
                ]
            cells = [f"{each.count('slower')} / {each.count('faster')}" for each in verdicts]
            print(f"| {machine} | {tool} | {' | '.join(cells)} |", flush=True)
    if missing:
        print("\nNot measured, since it is not installed: hyperfine")


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each.isdigit()]
    main(numbers[0] if numbers else REPEATS, alone="alone" in sys.argv)
