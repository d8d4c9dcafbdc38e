"""Acceptance of a machine in ten minutes: `python -m tests.gpu.accept --out DIR` on a bare GPU box.

Runs the tests that need a GPU and every shipped sweep of the device at reduced size, each job in a
process of its own. Needs neither Ray, a database nor a network: torch, timm, pydantic, NumPy,
SciPy, PyYAML and nvidia-ml-py; transformers for language models; pytest for the tests. Writes
`outcomes/*.json` (for `breakeven import`), `logs/`, `summary.json` and `summary.md`. A part that
fails does not stop the rest. Exit code: 0 if everything passed, 1 if something failed or was not
reached in time, 2 for wrong usage.
"""

import argparse
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
TESTS = (
    "test_compiled_decode.py",
    "test_pages.py",
    "test_kernels.py",
    "test_sparse_matvec.py",
    "test_environment.py",
    "test_vision.py",
)
"""Files of `tests/workers` with tests that behave otherwise, or run at all, only where there is a
GPU."""
TESTS_SHARE = 0.35
"""So much of the time the tests may take at most."""
MIN_S = 5.0
"""With less time left no job is started."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.accept", description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for outcomes, logs and the summary"
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--minutes", type=float, default=10.0, help="limit for everything")
    parser.add_argument("--sweeps", nargs="+", metavar="NAME", help="only these sweeps")
    parser.add_argument(
        "--tests", nargs="*", metavar="FILE", help="these test files instead of those for a GPU"
    )
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    requested = parser.parse_args(arguments)
    if requested.job:
        _answer(requested.job, requested.out)
        return 0
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
    files = (
        [*(ROOT / "tests" / "workers" / name for name in TESTS), ROOT / "tests/gpu/test_parity.py"]
        if requested.tests is None
        else requested.tests
    )
    found = accept(
        requested.out,
        requested.device,
        requested.minutes,
        requested.sweeps,
        [str(file) for file in files],
    )
    return 0 if found["passed"] else 1


def accept(
    out: Path, device: Any, minutes: float, sweeps: Sequence[str] | None, tests: Sequence[str]
) -> dict[str, Any]:
    """Run everything, write the summary and return it."""
    from tests.gpu import summary
    from workers.measure.environment import commit, environment_of

    began = time.monotonic()
    ends = began + 60 * minutes
    (out / "outcomes").mkdir(parents=True, exist_ok=True)
    (out / "logs").mkdir(exist_ok=True)
    found: dict[str, Any] = {
        "environment": environment_of(device).model_dump(),
        "commit": commit(),
        "minutes": minutes,
    }
    found["tests"] = _tests(out, tests, TESTS_SHARE * 60 * minutes)
    jobs, problems = _jobs(device, sweeps)
    found["jobs"] = [_measured(out, sweep, number, job, ends) for sweep, number, job in jobs]
    found["problems"] = problems + summary.problems_of(found["jobs"])
    found["problems"] += [f"test {name} failed" for name in found["tests"]["failed_tests"]]
    if found["tests"]["problem"]:
        found["problems"].append(found["tests"]["problem"])
    found["passed"], found["seconds"] = not found["problems"], time.monotonic() - began
    (out / "summary.json").write_text(json.dumps(found, indent=1) + "\n")
    (out / "summary.md").write_text(summary.page(found))
    _say(
        f"{'passed' if found['passed'] else 'not passed'} after {found['seconds']:.0f} s; see"
        f" {out / 'summary.md'}"
    )
    return found


def _tests(out: Path, files: Sequence[str], limit_s: float) -> dict[str, Any]:
    """The summary that pytest prints of the test files."""
    from tests.gpu.summary import tests_of

    nothing = {
        "passed": 0,
        "failed": 0,
        "skipped": 0,
        "failed_tests": [],
        "note": "",
        "problem": "",
    }
    if not files:
        return {**nothing, "note": "no tests were requested"}
    if importlib.util.find_spec("pytest") is None:
        return {**nothing, "note": "pytest is not installed: the tests were not run"}
    report = out / "tests.xml"
    report.unlink(missing_ok=True)
    _say(f"tests: {', '.join(Path(file).name for file in files)}")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=--import-mode=importlib",
        "-m",
        "not slow",
        f"--junitxml={report.resolve()}",
        *files,
    ]
    code = _run(command, out / "logs" / "tests.log", limit_s)
    counted = {**nothing, **tests_of(report)} if report.exists() else nothing
    problem = (
        "" if code == 0 or counted["failed"] else f"pytest ended with {code}: see logs/tests.log"
    )
    return {
        **counted,
        "problem": f"the tests took longer than {limit_s:.0f} s" if code is None else problem,
    }


def _jobs(
    device: Any, wanted: Sequence[str] | None
) -> tuple[list[tuple[str, int, Any]], list[str]]:
    """The jobs in the order in which they run, every sweep's first before any second; and what
    cannot be planned.
    """
    from sweeps.language.yaml_reader import SweepError
    from tests.gpu import reduced

    queues, problems = [], []
    paths = {path.stem: path for path in sorted(reduced.SWEEPS.glob("*.yaml"))}
    problems += [f"there is no sweep {name}" for name in wanted or () if name not in paths]
    for name, path in paths.items():
        if wanted and name not in wanted:
            continue
        try:
            jobs = reduced.reduced(reduced.planned(path, device), device)
        except SweepError as error:
            problems.append(f"{name} cannot be planned: {error}")
            continue
        queues.append([(name, number, job) for number, job in enumerate(jobs)])
    turns = itertools.zip_longest(*queues)
    return [entry for turn in turns for entry in turn if entry is not None], problems


def _measured(out: Path, sweep: str, number: int, job: Any, ends: float) -> dict[str, Any]:
    """Run one job in a process of its own, and say what came of it."""
    from sweeps.model.outcome import Outcome
    from tests.gpu.summary import points_of

    condition = job.condition
    size = (
        f"{condition.image_size} px"
        if condition.image_size
        else f"{condition.prompt_tokens} tokens"
    )
    name = (
        f"{condition.model} {size} batch {condition.batch_size} {condition.dtype}"
        f" {condition.runtime} {job.kind}"
    )
    result: dict[str, Any] = {
        "sweep": sweep,
        "name": name,
        "points": [],
        "flags": [],
        "notes": [],
        "problem": "",
        "seconds": 0.0,
    }
    left_s = ends - time.monotonic()
    if left_s < MIN_S:
        return {**result, "problem": "not reached in time"}
    began = time.monotonic()
    stem = f"{sweep}-{number}"
    place, target = out / "logs" / f"{stem}.job.json", out / "outcomes" / f"{stem}.json"
    target.unlink(missing_ok=True)
    place.write_text(job.model_dump_json())
    command = [
        sys.executable,
        "-m",
        "tests.gpu.accept",
        "--job",
        str(place.resolve()),
        "--out",
        str(target.resolve()),
    ]
    code = _run(command, out / "logs" / f"{stem}.log", left_s)
    result["seconds"] = time.monotonic() - began
    if target.exists():
        outcome = Outcome.model_validate_json(target.read_bytes())
        result |= {
            "points": points_of(outcome),
            "flags": list(outcome.flags),
            "notes": list(outcome.notes),
        }
    elif code is None:
        result["problem"] = f"no outcome after {result['seconds']:.0f} s"
    else:
        result["problem"] = f"the process ended with {code}: see logs/{stem}.log"
    _say(
        f"{sweep}: {name}: {result['problem'] or str(len(result['points'])) + ' comparisons'},"
        f" {result['seconds']:.0f} s"
    )
    return result


def _answer(place: Path, target: Path) -> None:
    """In a process of its own: run the job with short passes, and write its outcome whole or not at
    all.
    """
    from sweeps.model.job import Job
    from workers.errors import alarm
    from workers.run import run

    brief: dict[str, dict[str, Any]] = {
        "latency": {"pass_seconds": 0.3},
        "generation": {"pass_seconds": 0.3, "isolated": False},
    }
    job = Job.model_validate_json(place.read_bytes())
    with alarm(job.protocol.timeout_s):
        outcome = run(job, **brief.get(job.kind, {}))
    part = target.with_suffix(".part")
    part.write_text(outcome.model_dump_json() + "\n")
    part.replace(target)


def _run(command: Sequence[str], log: Path, limit_s: float) -> int | None:
    """The exit code of the command, whose output goes to `log`; `None` if it was killed, with all
    of its group, at the limit.
    """
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
