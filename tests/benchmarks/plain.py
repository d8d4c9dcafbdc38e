"""What the tool itself costs: the unmodified DeiT-tiny in a job, in the process of a sweep, against
a plain script with torch's defaults and as many threads.

From the project's folder, on a quiet machine: `uv run python -m tests.benchmarks.plain` (four
minutes), or `--short` (one). Processes take turns in random order, and are made anew between
parts. A second script runs as many copies of the model in turn as a job does: what that takes more
is the price of cold caches, and no fault of threads, collector or timer.
"""

import argparse
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from orchestrator.host.worker_supervisor import WorkerConfig, WorkerFailure, WorkerSupervisor
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Job, Pair, Protocol
from sweeps.model.outcome import Outcome
from workers.measure.environment import PROJECT, cores, spin_turns

MODEL, SIZES = "deit_tiny_patch16_224", (32, 96, 224)
COLUMNS = 3
"""Of a job with one arm: two of its baseline, and the arm."""
SECONDS = 1.0
PARTS, VISITS = 3, 5
TOLERANCE = 0.03
OPENMP = ("OMP_", "GOMP_", "KMP_", "BREAKEVEN_")
SCRIPT = f"""
import sys, time, timm, torch
from statistics import median
threads, copies = map(int, sys.argv[1:])
torch.set_num_threads(threads)
models = {{}}
for size in {SIZES}:
    made = [timm.create_model("{MODEL}", img_size=size).eval() for _ in range(copies)]
    models[size] = made, torch.randn(1, 3, size, size)
with torch.inference_mode():
    print("ready", flush=True)
    for line in sys.stdin:
        size, seconds = line.split()
        made, x = models[int(size)]
        for model in made * 6:
            model(x)
        times, end = [], time.perf_counter() + float(seconds)
        while time.perf_counter() < end:
            for model in made:
                start = time.perf_counter()
                model(x)
                times.append(time.perf_counter() - start)
        print(median(times), flush=True)
"""


class Script:
    """A plain script that times forwards on demand, with no variable of OpenMP or of ours."""

    def __init__(self, threads: int, copies: int) -> None:
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith(OPENMP)
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(threads), str(copies)],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def forward_s(self, size: int, visit: int) -> float:
        """Median seconds of a forward."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{size} {SECONDS}\n")
        self._process.stdin.flush()
        return float(self._line())

    def stop(self) -> None:
        self._process.communicate()


class Sweep:
    """The worker of a sweep, which is sent one visit of a job at a time."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._supervisor = WorkerSupervisor("cpu", WorkerConfig(folder=str(PROJECT)))
        self.contended = 0

    def forward_s(self, size: int, visit: int) -> float:
        """Median seconds of a forward, of all three columns: they run one and the same model."""
        job = Job(
            condition=Condition(model=MODEL, image_size=size, threads=self._threads),
            arms=(DENSE, DENSE.model_copy(update={"replicate": 1})),
            pairs=(Pair(0, 1),),
            protocol=Protocol(
                pairs_min=3, pairs_max=1000, half_width=1e-6, budget_s=SECONDS, passes=VISITS
            ),
            round=visit,
        )
        answer = self._supervisor.run(job.model_dump_json(), 300.0)
        assert not isinstance(answer, WorkerFailure), answer
        outcome = Outcome.model_validate_json(answer)
        if outcome.samples is None:
            raise RuntimeError(str(outcome.failures))
        self.contended += "contended" in outcome.flags
        return statistics.median(time for row in outcome.samples.seconds for time in row)

    def stop(self) -> None:
        self._supervisor.stop()


class Ratio(NamedTuple):
    """Of the times of two processes: the geometric mean over visits, and twice its standard error
    as a share.
    """

    value: float
    error: float

    def within(self, tolerance: float) -> str:
        """Whether it is closer to 1 than that, as far as the error shows."""
        distance = abs(math.log(self.value))
        if distance + self.error <= tolerance:
            return "yes"
        return "no" if distance - self.error > tolerance else "not clear"


def ratio(times: Sequence[float], of_plain: Sequence[float]) -> Ratio:
    logs = [math.log(a / b) for a, b in zip(times, of_plain, strict=True)]
    return Ratio(math.exp(statistics.mean(logs)), 2 * statistics.stdev(logs) / len(logs) ** 0.5)


def measure(
    threads: int, parts: int, visits: int
) -> tuple[dict[tuple[str, int], list[float]], int]:
    """Seconds of a forward at each visit by process and size, and how many visits of the job were
    contended.
    """
    times: dict[tuple[str, int], list[float]] = {}
    contended = 0
    for _ in range(parts):
        sweep = Sweep(threads)
        processes: dict[str, Any] = {
            "plain": Script(threads, 1),
            "copies": Script(threads, COLUMNS),
            "job": sweep,
        }
        for visit in range(visits):
            for size in SIZES:
                for name in random.sample(list(processes), len(processes)):
                    seconds = processes[name].forward_s(size, visit)
                    times.setdefault((name, size), []).append(seconds)
        for process in processes.values():
            process.stop()
        contended += sweep.contended
    return times, contended


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when no ratio of the job to the script is clearly beyond the tolerance."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.plain")
    parser.add_argument("--short", action="store_true", help="one part of four visits")
    parser.add_argument("--threads", type=int, default=min(8, int(cores())))
    options = parser.parse_args(arguments)
    parts, visits = (1, 4) if options.short else (PARTS, VISITS)
    started, before = time.perf_counter(), os.getloadavg()[0]
    turns = spin_turns()
    times, contended = measure(options.threads, parts, visits)
    print(
        f"{options.threads} threads, {turns} turns, load average {before:.2f} to"
        f" {os.getloadavg()[0]:.2f} on {cores():g} cores, {contended} of"
        f" {parts * visits * len(SIZES)} visits contended, {time.perf_counter() - started:.0f} s"
    )
    print(f"{'px':>4} {'plain ms':>9} {'job / plain':>16} {'copies / plain':>16}  within 3 %")
    passed = True
    for size in SIZES:
        plain = times["plain", size]
        job, copies = (ratio(times[name, size], plain) for name in ("job", "copies"))
        within = job.within(TOLERANCE)
        passed &= within != "no"
        cells = " ".join(f"{each.value:8.3f} ±{each.error:6.1%}" for each in (job, copies))
        print(f"{size:>4} {1e3 * statistics.median(plain):9.2f} {cells}  {within}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
