"""Acceptance of a GPU machine in ten minutes: `python -m tests.gpu.accept --out DIR --minutes N`.

In this order: parity of the kernels, compiling in parallel, the reports' table, a language sweep,
the quickstart in two visits, profiles. Needs neither Ray, a database nor a network: torch, timm,
pydantic, NumPy, SciPy, PyYAML and nvidia-ml-py; transformers for language models; pytest for the
tests. Writes `outcomes.jsonl` (for `breakeven import`), to which each outcome is appended as its
job ends, so that a cut loses one job; `logs/`, `summary.json` and `summary.md`. `--done FILE`
continues an earlier run: what its outcomes answer is not measured again, and parity is left out. A
part that fails does not stop the rest. Exit code: 0 if everything passed, 1 if something failed or
was not reached in time, 2 for wrong usage.
"""

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.gpu import phases, summary
from tests.gpu.phases import PHASES, Planned

ROOT = Path(__file__).parents[2]
NEEDED = {
    "torch": "torch",
    "timm": "timm",
    "pydantic": "pydantic",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "yaml": "PyYAML",
}
NEEDED |= {"pynvml": "nvidia-ml-py"}
TESTS = ("tests/gpu/test_parity.py",)
PARITY_S, COMPILING_S, WHOLE_S = 60.0, 120.0, 540.0
"""Limits of the first two parts, out of so many seconds for all; those of the others are in
`phases`."""
MIN_S = 8.0
"""With less time left no part is started."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.accept", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for outcomes, logs and the summary")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--minutes", type=float, default=9.0, help="limit for everything")
    parser.add_argument("--done", type=Path, help="outcomes of an earlier run")
    parser.add_argument("--sweeps", nargs="+", metavar="NAME", help="only these, at reduced size")
    parser.add_argument("--tests", nargs="*", metavar="FILE", help="in place of the parity tests")
    parser.add_argument("--compile", nargs=2, metavar=("JOB", "ARM"), help=argparse.SUPPRESS)
    requested = parser.parse_args(arguments)
    if requested.compile:
        phases.compile_arm(Path(requested.compile[0]), int(requested.compile[1]))
        return 0
    if requested.out is None:
        parser.error("--out DIR is needed")
    if missing := [
        name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None
    ]:
        sys.stderr.write(f"not installed: {', '.join(missing)}\n")
        return 2
    from workers.measure.environment import devices

    if requested.device not in devices():
        sys.stderr.write(
            f"no {requested.device} device can be used here; there is {', '.join(devices())}\n"
        )
        return 2
    tests = TESTS if requested.tests is None and requested.done is None else requested.tests or ()
    run = Acceptance(requested.out, requested.device, 60 * requested.minutes, requested.done)
    return 0 if run.accept(requested.sweeps, tests)["passed"] else 1


class Acceptance:
    """One run: its folder, its clock, and what it found."""

    def __init__(self, out: Path, device: Any, limit_s: float, done: Path | None) -> None:
        self.out, self.device, self.limit_s = out, device, limit_s
        self.began = time.monotonic()
        self.outcomes = out / "outcomes.jsonl"
        self.times: dict[str, float] = {}
        self.problems: list[str] = []
        (out / "logs").mkdir(parents=True, exist_ok=True)
        self.outcomes.touch()
        self.answered = phases.answers(phases.read_outcomes(done))

    def accept(self, sweeps: Sequence[str] | None, tests: Sequence[str]) -> dict[str, Any]:
        """Run everything, write the summary and return it."""
        from workers.measure.environment import commit, environment_of

        share = self.limit_s / WHOLE_S
        with self._timed("parity"):
            tested = self._tests(tests, PARITY_S * share)
        planned, problems = phases.planned_parts(self.device, sweeps)
        self.problems += problems
        left = {
            name: [part for one in jobs if (part := phases.left_part(one, self.answered))]
            for name, jobs in planned.items()
        }
        with self._timed("compiling"):
            ready = self._compile(
                [one for jobs in left.values() for one in jobs], COMPILING_S * share
            )
        measured = []
        for phase in PHASES if sweeps is None else (phases.REQUESTED,):
            jobs = [
                job for one in left.get(phase.name, ()) if (job := phases.ready_part(one, ready))
            ]
            with self._timed(phase.name):
                measured += self._measure(phase.name, jobs, phase.seconds * share)
        environment = environment_of(self.device)
        found = summary.summarise(measured, self.times, tested, self.problems)
        found |= {
            "environment": environment.model_dump(),
            "commit": commit(),
            "minutes": self.limit_s / 60,
            "seconds": time.monotonic() - self.began,
        }
        summary.write(self.out, found)
        _say(
            f"{'passed' if found['passed'] else 'not passed'} after {found['seconds']:.0f} s; see"
            f" {self.out / 'summary.md'}"
        )
        return found

    def _left_s(self) -> float:
        return self.limit_s - (time.monotonic() - self.began)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.times[part] = time.monotonic() - start

    def _tests(self, files: Sequence[str], limit_s: float) -> dict[str, Any]:
        """The summary that pytest prints of the test files."""
        if not files:
            return summary.no_tests("no tests were requested")
        if importlib.util.find_spec("pytest") is None:
            return summary.no_tests("pytest is not installed: the tests were not run")
        report = self.out / "tests.xml"
        report.unlink(missing_ok=True)
        _say(f"tests: {', '.join(Path(file).name for file in files)}")
        options = ("-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
        command = [sys.executable, "-m", "pytest", *options, "-m", "not slow"]
        command += [f"--junitxml={report.resolve()}", *files]
        code = run_command(command, self.out / "logs" / "tests.log", limit_s)
        counted = summary.tests_of(report) if report.exists() else summary.no_tests("")
        if code is None:
            self.problems.append(f"the tests took longer than {limit_s:.0f} s")
        elif code and not counted["failed"]:
            self.problems.append(f"pytest ended with {code}: see logs/tests.log")
        self.problems += [f"test {name} failed" for name in counted["failed_tests"]]
        return counted

    def _compile(self, jobs: Sequence[Planned], limit_s: float) -> set[tuple[str, int]]:
        """Compile all arms that a compiled runtime needs, side by side, into the compiler's cache;
        those that were ready in time, as job and arm.
        """
        waiting = [(one, arm) for one in jobs for arm in phases.compiled_arms(one.job)]
        ends = time.monotonic() + min(limit_s, self._left_s())
        running: dict[Any, tuple[Planned, int]] = {}
        ready: set[tuple[str, int]] = set()
        most = max(1, (os.cpu_count() or 2) - 2)
        while (waiting or running) and time.monotonic() < ends:
            while waiting and len(running) < most:
                one, arm = waiting.pop(0)
                place = self._written(one)
                command = [
                    sys.executable,
                    "-m",
                    "tests.gpu.accept",
                    "--compile",
                    str(place),
                    str(arm),
                ]
                log = (self.out / "logs" / f"compile-{place.stem}-{arm}.log").open("wb")
                process = subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=ROOT, start_new_session=True
                )
                running[process] = (one, arm)
            for process in [process for process in running if process.poll() is not None]:
                one, arm = running.pop(process)
                if process.returncode == 0:
                    ready.add((one.job.job_id, arm))
                else:
                    self.problems.append(f"{one.name}: arm {arm} was not compiled: see logs/")
            time.sleep(0.2)
        for process in running:
            kill(process)
        if late := len(waiting) + len(running):
            self.problems.append(f"{late} arms were not compiled in time")
        return ready

    def _written(self, one: Planned) -> Path:
        place = self.out / "logs" / f"{one.stem}.job.json"
        place.write_text(one.job.model_dump_json())
        return place.resolve()

    def _measure(self, phase: str, jobs: Sequence[Planned], limit_s: float) -> list[dict[str, Any]]:
        """Run the jobs in one process, a new one where that ends early, and say what came of
        each.
        """
        ends = time.monotonic() + limit_s
        start, answered, crashes = self.outcomes.stat().st_size, 0, []
        while answered + len(crashes) < len(jobs):
            left_s = min(ends - time.monotonic(), self._left_s())
            if left_s < MIN_S:
                break
            rest = jobs[answered + len(crashes) :]
            _say(f"{phase}: {len(rest)} jobs, at most {left_s:.0f} s")
            command = [
                sys.executable,
                "-m",
                "workers.run",
                *(str(self._written(one)) for one in rest),
            ]
            log = self.out / "logs" / f"{phase}-{len(crashes)}.log"
            code = run_command(command, log, left_s, self.outcomes)
            phases.cut_partial_line(self.outcomes)
            done = len(phases.read_outcomes(self.outcomes, start))
            if code is None or done == len(jobs) - len(crashes):
                answered = done
                break
            crashes.append(jobs[done + len(crashes)])
            answered = done
        outcomes = {
            outcome.job.job_id: outcome for outcome in phases.read_outcomes(self.outcomes, start)
        }
        return [
            summary.job_summary(
                one.sweep,
                one.name,
                outcomes.get(one.job.job_id),
                f"the process ended: see logs/{phase}-*.log" if one in crashes else "",
            )
            for one in jobs
        ]


def run_command(
    command: Sequence[str], log: Path, limit_s: float, append: Path | None = None
) -> int | None:
    """The exit code of the command, whose output goes to `log`, or its standard output to the end
    of `append`; `None` if it was killed, with all of its group, at the limit.
    """
    with log.open("wb") as file, (append or Path(os.devnull)).open("ab") as outcomes:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file if append is None else outcomes,
            stderr=file,
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            kill(process)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process, with all of its group, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
