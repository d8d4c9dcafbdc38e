"""Functions that a worker calls instead of `workers.run:run`, and a survey of a node that claims a
GPU, cheap or faulty.
"""

import ctypes
import itertools
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from sweeps.model.job import Job
from sweeps.model.outcome import (
    WORKER_UNFIT,
    ArmOutcome,
    Environment,
    Failure,
    FailureReason,
    Outcome,
    Samples,
)
from tests.faults import toy
from tests.faults.methods.untidy import DAEMON
from workers.measure.environment import environment_of
from workers.measure.threads import pinned

ENVIRONMENTS = {
    "cpu": environment_of("cpu"),
    "cuda": Environment(device="cuda", device_name="a GPU for placement only"),
}
CALLS = 0


def environments_mixed() -> dict[str, Environment]:
    """A node with libraries of its own, which the variable `LIBRARIES` of its processes names."""
    return {
        "cpu": Environment(
            device="cpu", device_name="Imaginary CPU", facts={"libraries": os.environ["LIBRARIES"]}
        )
    }


def mixed(job: Job) -> Outcome:
    """Like `slow`, on this node; tokens are those of patches of 16 pixels."""
    found, tokens = slow(job), ((job.condition.image_size or 0) // 16) ** 2
    vision = tuple(
        arm.model_copy(update={"tokens": tokens, "gmacs": tokens / 100}) for arm in found.arms
    )
    return found.model_copy(update={"environment": environments_mixed()["cpu"], "arms": vision})


def environments_both() -> dict[str, Environment]:
    """A node that claims to have a GPU, to try placement where there is none."""
    return ENVIRONMENTS


def killed_once() -> dict[str, Environment]:
    """Be killed, the first time; `BREAKEVEN_TEST` names the file that marks it."""
    file = Path(os.environ["BREAKEVEN_TEST"])
    if not file.exists():
        file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return ENVIRONMENTS


def noop(job: Job) -> Outcome:
    """Made-up timings in no time; the metrics show which process answered, its priority, and how
    many jobs it answered before.
    """
    global CALLS  # noqa: PLW0603
    started_at = time.time()
    CALLS += 1
    columns = tuple(range(len(job.arms)))
    known = {
        "gmacs": 1.0,
        "gmacs_overhead": 0.0,
        "parameters": 1,
        "trainable_parameters": 1,
        "batch": 1,
        "tokens": 4,
        "tokens_final": 5,
    }
    return Outcome(
        job=job,
        environment=ENVIRONMENTS[job.condition.device],
        host=platform.node(),
        started_at=started_at,
        ended_at=time.time(),
        arms=tuple(ArmOutcome(arm=index, trace=(), threads=1, **known) for index in columns),
        samples=Samples(
            arms=columns,
            seconds=((0.001,) * len(columns),) * 30,
            order=(columns,) * 30,
            inner=(1,) * len(columns),
            stopped="half_width",
        ),
        system_metrics={
            "pid": os.getpid(),
            "calls": CALLS,
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
        },
        cores=pinned(),
    )


def slow(job: Job) -> Outcome:
    """Like `noop`, but holds the host for a fifth of a second."""
    started_at = time.time()
    time.sleep(0.2)
    return noop(job).model_copy(update={"started_at": started_at, "ended_at": time.time()})


def surroundings(job: Job) -> Outcome:
    """What the worker's environment hides and sets, as flags."""
    names = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "BREAKEVEN_TEST")
    flags = tuple(f"{name}={os.environ.get(name)}" for name in names)
    return noop(job).model_copy(update={"flags": (*flags, f"folder={Path.cwd()}")})


def segfault(job: Job) -> NoReturn:
    """Read address 0."""
    ctypes.string_at(0)
    raise AssertionError("still alive")


def leave(job: Job) -> NoReturn:
    """End the process without a word."""
    os._exit(3)


def hang(job: Job) -> NoReturn:
    """Sleep in C without giving up the interpreter lock, so that no Python code can interrupt
    it.
    """
    ctypes.PyDLL(None).sleep(1000)
    raise AssertionError("this process was not killed")


def raise_exit(job: Job) -> NoReturn:
    """Raise what a careless library raises."""
    raise SystemExit("no licence found")


def hog(job: Job) -> Outcome:
    """Allocate until memory runs out."""
    held = []
    while True:
        held.append(bytearray(50_000_000))


def unfit(job: Job) -> Outcome:
    """An outcome that requires another process for the next job."""
    outcome = noop(job)
    return outcome.model_copy(
        update={"system_metrics": {**outcome.system_metrics, WORKER_UNFIT: 1.0}}
    )


def leave_daemon(job: Job) -> NoReturn:
    """Start a process that leaves its parent, group and session, and be killed."""
    daemon(job)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def daemon(job: Job) -> Outcome:
    """Start a process that leaves its parent, group and session, and hang; `BREAKEVEN_TEST` names
    the file with its number.
    """
    file = Path(os.environ["BREAKEVEN_TEST"])
    subprocess.run([sys.executable, "-c", DAEMON, str(file)], check=True)
    while not file.exists() or not file.read_text().endswith("\n"):
        time.sleep(0.01)
    return noop(job)


def daemon_and_hang(job: Job) -> NoReturn:
    """The same, and hang."""
    daemon(job)
    hang(job)


def chatter(job: Job) -> NoReturn:
    """Print without end, at most 50 MB a second, whatever the disk takes."""
    for line in itertools.count():
        print(line, "x" * 5000, flush=True)
        time.sleep(1e-4)
    raise AssertionError("numbers do not end")


BRIEF = {
    "latency": {"pass_seconds": 0.1},
    "accuracy": {},
    "generation": {"pass_seconds": 0.1, "isolated": False},
    "quality": {},
}
"""Options with which each kind of job ends sooner."""
REPORTED: dict[str, FailureReason] = {
    "out_of_memory": "out_of_memory",
    "unsupported": "unsupported",
}
"""Methods whose arm fails, which a process that goes on reports."""
FAILING = {"segfault": segfault, "leave": leave, "hang": hang, "raise_exit": raise_exit}


def run(job: Job) -> Outcome:
    """Fail as an arm's method names; else answer as the model's name requests, real models by the
    real worker.
    """
    for step in (step for arm in job.arms for step in arm.stack):
        if step.method in FAILING:
            FAILING[step.method](job)
        if step.method in REPORTED:
            answered = noop(job)
            failure = Failure(
                arm=1, reason=REPORTED[step.method], message="as the method is called"
            )
            return answered.model_copy(
                update={"arms": answered.arms[:1], "samples": None, "failures": (failure,)}
            )
    if job.condition.seed == toy.SEED:
        return toy.run(job)
    if job.condition.model in {"noop", "slow"}:
        return noop(job) if job.condition.model == "noop" else slow(job)
    from workers.kinds import timed_job
    from workers.models.share_weights import kept_models
    from workers.run import run as measure

    timed_job.WAIT_S = 0.0  # other tests are never idle
    outcome = measure(job, **BRIEF[job.kind])
    noted = {"pid": os.getpid(), "models_built": kept_models.cache_info().misses}
    return outcome.model_copy(update={"system_metrics": {**outcome.system_metrics, **noted}})
