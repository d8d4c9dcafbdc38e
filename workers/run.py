"""Run a job: `run(job) -> Outcome` in this process, or `python -m workers.run job.json`, which
needs neither Ray nor a store.
"""

import argparse
import contextlib
import gc
import importlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

from pydantic import ValidationError

from sweeps.model.job import Job
from sweeps.model.kinds import KINDS
from sweeps.model.outcome import ANSWERING_FAILURES, WORKER_UNFIT, Environment, Outcome
from sweeps.number_format import count
from workers.cache import write_whole
from workers.errors import TimedOut, alarm
from workers.measure.environment import (
    chosen_by,
    commit,
    cores,
    cores_of_threads,
    devices,
    environment_of,
    module_variables,
)
from workers.measure.optional import UNMEASURED, optional_value, take_unmeasured
from workers.measure.threads import (
    pin_main_thread,
    pinned,
    present_policy,
    requested_policy,
    set_policy,
)
from workers.waiting import wait_note

PROCESS = uuid4().hex
"""Identifies this process among all that ever measure."""
INTERRUPTED = 130
"""The exit code after Ctrl-C."""
TRACED = 10
"""Forwards of an arm that runs for an outside profiler, unless another number is requested."""


def run(job: Job, **options: Any) -> Outcome:
    """Run the job in this process; an error of an arm becomes a `Failure` and the other arms are
    measured.

    Raises `LookupError` when the job's device class is not here. `options` go to the kind (see
    `workers.kinds`).
    """
    take_unmeasured()
    environment = environment_of(job.condition.device)
    started = time.time()
    fields: dict[str, Any]
    cleanup = None
    held = pinned()
    try:
        _check_cores(job, held)
        if KINDS[job.kind].timed or "torch" not in sys.modules:
            set_policy(requested_policy(job.condition))
        kind = importlib.import_module(f"workers.kinds.{job.kind}")
        # what there is now is no garbage: looking through it takes 0.1 s at each collection
        gc.freeze()
        pin_main_thread()
        cleanup = importlib.import_module("workers.measure.process_cleanup").ProcessCleanup(job)
        fields = kind.run(job, **options)._asdict()
    except (Exception, TimedOut) as error:
        from workers.kinds.failures import StateChangedError, failure
        from workers.measure.process_state import FLAG

        apart = isinstance(error, StateChangedError)
        context = "the arms are to be measured apart" if apart else "before any arm could run"
        fields = {"failures": (failure(None, error, context),)}
        if isinstance(error, StateChangedError):
            fields |= {
                "suspects": error.arms,
                "notes": error.notes,
                "flags": (FLAG,),
                "system_metrics": {WORKER_UNFIT: 1.0},
            }
    finally:
        # of the job's own objects alone, before those of earlier ones are looked through again
        gc.collect()
        gc.unfreeze()
    outcome = Outcome(
        job=job,
        environment=environment,
        host=platform.node(),
        started_at=started,
        ended_at=time.time(),
        process=PROCESS,
        commit=optional_value("commit", commit, None),
        cores=(
            held
            if job.condition.pinning is None
            else cores_of_threads(job.condition.threads_on(int(cores())))
        ),
        **fields,
    )
    if cleanup is not None:
        outcome = cleanup.finish(outcome)
    times = optional_value("times of waiting threads", chosen_by, None)
    if times and (note := wait_note(times)):
        outcome = outcome.model_copy(update={"notes": (*outcome.notes, note)})
    if notes := take_unmeasured():
        flags = tuple(sorted({*outcome.flags, UNMEASURED}))
        outcome = outcome.model_copy(update={"flags": flags, "notes": (*outcome.notes, *notes)})
    return outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Exit codes: 0 answered, 1 a job was not answered, 2 wrong usage or a bad
    job file, 130 interrupted.
    """
    parser = argparse.ArgumentParser(
        prog="python -m workers.run",
        description=(
            "Run jobs and print each outcome as one line of JSON; nothing else is printed on"
            " standard output."
        ),
        epilog=(
            "Exit codes: 0 answered, 1 a job was not answered, 2 wrong usage or a bad job file, 130"
            " interrupted."
        ),
    )
    parser.add_argument(
        "jobs", nargs="+", type=Path, metavar="JOB", help="job file (JSON), or a folder of *.json"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="file for the outcome of a job file; of several, or of a folder of them, a folder with"
        " a file each, named like the job's",
    )
    parser.add_argument(
        "--arm",
        type=int,
        metavar="N",
        help="run the N-th arm of one job alone, for an outside profiler; nothing is measured",
    )
    parser.add_argument(
        "--forwards",
        type=int,
        default=TRACED,
        metavar="K",
        help=f"with --arm: forwards to trace (default {TRACED})",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress on standard error")
    options = parser.parse_args(arguments)
    done = 0
    jobs: list[tuple[Path, Job]] = []
    os.environ.pop("BREAKEVEN_DB", None)  # methods have no business with the store
    try:
        jobs = _read(options.jobs)
        if options.arm is not None:
            return _trace(jobs, options.arm, options.forwards)
        several = len(jobs) > 1 or any(path.is_dir() for path in options.jobs)
        places = _places(options.out, [path for path, _ in jobs], several=several)
        answered, unfit = True, False
        with _only_outcomes() as stdout:
            for (path, job), place in zip(jobs, places, strict=True):
                if not options.quiet:
                    sys.stderr.write(
                        f"{done + 1} of {len(jobs)}: {path}: {job.kind} of {job.condition.model}\n"
                    )
                outcomes = _run(job, unfit=unfit)
                for outcome in outcomes:
                    unfit |= outcome.process == PROCESS and WORKER_UNFIT in outcome.system_metrics
                    for note in outcome.notes:
                        sys.stderr.write(f"{path}: {note}\n")
                    for failure in outcome.failures:
                        sys.stderr.write(f"{path}: {failure.reason}: {failure.message}\n")
                        answered &= failure.reason in ANSWERING_FAILURES
                line = "".join(outcome.model_dump_json() + "\n" for outcome in outcomes)
                if place is None:
                    stdout.write(line)
                    stdout.flush()
                else:
                    write_whole(place, line)
                done += 1
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        if not options.quiet:
            sys.stderr.write(
                f"interrupted; outcomes of {done} of {count(len(jobs), 'job')} written\n"
            )
        return INTERRUPTED
    return 0 if answered else 1


def _trace(jobs: Sequence[tuple[Path, Job]], arm: int, forwards: int) -> int:
    """Run one arm of the only job for an outside profiler. Raises `UsageError`."""
    if len(jobs) != 1:
        raise UsageError(f"--arm runs an arm of one job, and {len(jobs)} are given")
    path, job = jobs[0]
    if not 0 <= arm < len(job.arms):
        listed = "; ".join(f"{index}: {each}" for index, each in enumerate(job.arms))
        raise UsageError(f"{path}: arm {arm} is none of the job's: {listed}")
    if forwards < 1:
        raise UsageError(f"--forwards {forwards}: at least one forward is needed")
    set_policy(requested_policy(job.condition))
    importlib.import_module("workers.kinds.traced_run").trace_one(path, job, arm, forwards)
    return 0


def _run(job: Job, *, unfit: bool) -> list[Outcome]:
    """The outcomes of a job, in a process of its own where this one is `unfit` or its threads wait
    or are pinned otherwise.

    Of a job one of whose arms changed what the others run on, those of its parts, each measured in
    a new process.
    """
    needed = requested_policy(job.condition)
    other_policy = KINDS[job.kind].timed and "torch" in sys.modules and present_policy() != needed
    if (unfit or other_policy) and (found := _run_apart(job)):
        return found
    with alarm(job.protocol.timeout_s):
        outcome = run(job)
    parts = [_run_apart(part) for part in job.apart(outcome.suspects)] if outcome.suspects else []
    return list(chain(*parts)) if parts and all(parts) else [outcome]


def _run_apart(job: Job) -> list[Outcome]:
    """The outcomes of a job in a new process; none where that gave none."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "workers.run", "/dev/stdin", "--quiet"],
        input=job.model_dump_json(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=module_variables(),
    )
    return [Outcome.model_validate_json(line) for line in done.stdout.splitlines()]


class UsageError(Exception):
    """The command cannot be started; the message is for people."""


def _read(paths: Sequence[Path]) -> list[tuple[Path, Job]]:
    """Every job, checked before the first is run. Raises `UsageError`."""
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not found:
            raise UsageError(f"{path}: the folder holds no job file (*.json)")
        files += found
    present = devices()
    jobs = []
    for path in files:
        try:
            job = Job.model_validate_json(path.read_bytes())
            nowhere = Environment(device=job.condition.device, device_name="")
            # raises for what no store holds, before minutes of measuring
            Outcome(job=job, environment=nowhere, host="", started_at=1, ended_at=1)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the file"
            raise UsageError(
                f"{path}: not a job: {place}: {first['msg']}; `breakeven plan FILE --jobs DIR`"
                " writes job files"
            ) from error
        if job.condition.device not in present:
            raise UsageError(
                f"{path}: the job needs device {job.condition.device}; this machine has"
                f" {', '.join(present)}"
            )
        if job.protocol_version > (newest := KINDS[job.kind].protocol_version):
            raise UsageError(
                f"{path}: not a job: protocol_version: {job.protocol_version}, expected {newest} at"
                " most"
            )
        jobs.append((path, job))
    return jobs


def _places(out: Path | None, paths: Sequence[Path], *, several: bool) -> list[Path | None]:
    """The file for each job's outcome, in a folder if there may be `several`, or `None` for
    standard output. Raises `UsageError`.
    """
    if out is None:
        return [None] * len(paths)
    one_file = not several and not out.is_dir()
    places = [out] if one_file else [out / path.name for path in paths]
    folder = places[0].parent
    if len(set(places)) < len(places):
        raise UsageError(
            f"--out {out}: two job files have the same name, and so would their outcomes"
        )
    if clash := {place.resolve() for place in places} & {path.resolve() for path in paths}:
        raise UsageError(f"--out {out}: {min(clash)} is a job file and would be overwritten")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out {out}: {folder} is no folder to write to: {error.strerror}"
        ) from error
    return list(places)


@contextlib.contextmanager
def _only_outcomes() -> Iterator[TextIO]:
    """Standard output for outcomes alone: what anything else prints there, C libraries included,
    goes to standard error.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with open(kept, "w", encoding="utf-8", closefd=False) as stdout:
            yield stdout
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _check_cores(job: Job, held: tuple[int, ...] | None) -> None:
    """Raises `RuntimeError` where a job on one GPU of several has no cores of its own."""
    if job.occupation == "device" and held is None:
        raise RuntimeError(
            "exclusive: device needs a worker that is pinned to its GPU's cores, as `breakeven run`"
            " starts it"
        )


if __name__ == "__main__":
    sys.exit(main())
