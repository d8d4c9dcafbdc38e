"""Worker process: runs one job at a time and sends back its outcome; started by
`orchestrator.host.worker_supervisor`.
"""

import contextlib
import faulthandler
import importlib
import json
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import psutil
from pydantic_core import to_json

from orchestrator.host.reaper import fork_worker
from sweeps.model.job import Job
from sweeps.model.kinds import KINDS
from sweeps.model.outcome import WORKER_UNFIT, Environment
from workers.measure.threads import Share, pin, requested_policy, set_policy

ENTRY = "workers.run:run"
"""Turns a `Job` into an `Outcome`."""
READY, OUTCOME, LAST_OUTCOME, ERROR = b"R", b"O", b"L", b"E"
"""First byte of a message: imports are done, an outcome, an outcome after which the worker must be
replaced, a traceback."""


def local_environments() -> dict[str, Environment]:
    """The device classes of this machine and their fingerprints; imports no torch."""
    from workers.measure import environment

    return {device: environment.environment_of(device) for device in environment.devices()}


def load_function(name: str) -> Callable[..., Any]:
    """The function that `module:function` names. Raises `ValueError`, `ImportError` or
    `AttributeError`.
    """
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise ValueError(
            f"{name!r} does not name a function; write it as module:function, such as"
            " workers.run:run"
        )
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def load_entry(entry: str) -> Callable[[Job], Any]:
    """The entry, after all modules that its jobs need are imported: starting torch is no part of a
    job's time.
    """
    if entry == ENTRY:
        for kind in KINDS:
            importlib.import_module(f"workers.kinds.{kind}")
    return load_function(entry)


def serve_jobs(handle: str, lifeline: str, entry: str, device: str, bounds: str) -> None:
    """The loop of the worker: receives jobs and sends outcomes as JSON, until the supervisor closes
    the pipe.
    """
    fork_worker(int(lifeline))
    bound = json.loads(bounds)
    if bound["share"] is not None:
        pin(Share(*bound["share"]))
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    if device == "cpu":
        _limit_memory(bound["memory"])
    pipe, run = Connection(int(handle)), None
    with contextlib.suppress(EOFError):
        while True:
            job = pipe.recv_bytes()
            try:
                parsed = Job.model_validate_json(job)
                if run is None:
                    set_policy(requested_policy(parsed.condition))
                    run = load_entry(entry)
                    pipe.send_bytes(READY)
                outcome = run(parsed)
                reply = LAST_OUTCOME if outcome.system_metrics.get(WORKER_UNFIT) else OUTCOME
                reply += to_json(outcome, inf_nan_mode="constants")
            except BaseException:  # even SystemExit of a method must reach the supervisor
                reply = ERROR + traceback.format_exc().encode()
            pipe.send_bytes(reply)


def _limit_memory(limit: int) -> None:
    """Let an allocation beyond the machine's memory fail inside the job, where it is an answer,
    instead of stopping the machine.
    """
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = limit or psutil.virtual_memory().total * 9 // 10
        resource.setrlimit(
            resource.RLIMIT_DATA,
            (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard),
        )


if __name__ == "__main__":
    serve_jobs(*sys.argv[1:])
