"""Worker process: runs one job at a time and sends back its outcome; started by
`orchestrator.host.worker_supervisor`. Its parent is a reaper, which ends everything that the worker
started, however the worker or its supervisor ends.

A process that calls `setsid` and forks twice leaves its group and its parent. It cannot leave the
subtree of a process that adopts orphans (man 2 prctl, PR_SET_CHILD_SUBREAPER), and the reaper
outlives both the worker and the supervisor.
"""

import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
from pydantic_core import to_json

from sweeps.model.job import Job
from sweeps.model.kinds import KINDS
from sweeps.model.outcome import WORKER_UNFIT, Environment, Outcome
from workers.measure.descendants import adopt_orphans, end_all
from workers.measure.threads import Share, pin, requested_policy, set_policy

PR_SET_PDEATHSIG = 1
LOG_BYTES = 4_000_000
"""A log longer than this is cut to its last `KEPT_BYTES`, so that endless output does not fill the
disk."""
KEPT_BYTES = 16_000
LOOK_S, HURRIED_S = 1.0, 0.02
"""How often the length of the log is looked at; the second while it grows fast."""


def fork_worker(lifeline: int) -> None:
    """Return in a new process, the worker. This process stays behind as its reaper and ends after
    it, with the same status.

    It ends the worker and all that the worker started when the other end of the pipe `lifeline` is
    closed. Its standard output is the log, which it keeps short. Must be called before this process
    has a second thread. Does nothing outside Linux.
    """
    if sys.platform != "linux":
        return
    adopt_orphans()
    reaper = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.close(lifeline)
        adopt_orphans()  # so that the worker finds at the end of a job what the job started
        _die_with(reaper)
        return
    _close_all_but({0, 1, 2, lifeline})
    _watch(worker, lifeline)


def _watch(worker: int, lifeline: int) -> None:
    """Wait for the end of the worker or of the supervisor, end all descendants, and exit as the
    worker did.
    """
    # it may end itself by the worker's signal, and is not what crashed
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGUSR1, lambda *_: os.kill(worker, signal.SIGUSR1))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ended = os.pidfd_open(worker)
    watched = select.poll()
    watched.register(ended, select.POLLIN)
    watched.register(lifeline, select.POLLIN)
    size = 0
    pause_s = LOOK_S
    while not watched.poll(pause_s * 1000):
        before, size = size, os.fstat(1).st_size
        pause_s = HURRIED_S if size - before > LOG_BYTES // 100 else LOOK_S
        if size > LOG_BYTES:
            size = _shorten(size)
    done, status = os.waitpid(worker, os.WNOHANG)
    end_all()
    if done:
        _exit_like(os.waitstatus_to_exitcode(status))
    os._exit(1)


def _shorten(size: int) -> int:
    """Cut the log to its end. Every writer appends, so what is written meanwhile follows."""
    end = os.pread(1, KEPT_BYTES, size - KEPT_BYTES)
    os.ftruncate(1, 0)
    note = f"[{size - len(end)} bytes of output removed]\n".encode()
    os.write(1, note + end)
    return len(note) + len(end)


def _exit_like(code: int) -> None:
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _close_all_but(kept: set[int]) -> None:
    """Close what the worker alone should hold, so that its supervisor sees the worker's end of the
    pipe close.
    """
    for name in [path.name for path in Path("/proc/self/fd").iterdir()]:
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # the folder's own descriptor


ENTRY = "workers.run:run"
"""Turns a `Job` into an `Outcome`."""
READY, OUTCOME, LAST_OUTCOME, ERROR = b"R", b"O", b"L", b"E"
"""First byte of a message: imports are done, an outcome, an outcome after which the worker must be
replaced, a traceback."""


def local_environments() -> dict[str, Environment]:
    """The device classes of this machine and their fingerprints; imports no torch."""
    from workers.measure import environment

    return {device: environment.environment_of(device) for device in environment.devices()}


def load_entry(entry: str) -> Callable[[Job], Outcome]:
    """The entry, after all modules that its jobs need are imported: starting torch is no part of a
    job's time.
    """
    if entry == ENTRY:
        for kind in KINDS:
            importlib.import_module(f"workers.kinds.{kind}")
    found: Callable[[Job], Outcome] = pkgutil.resolve_name(entry)
    return found


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
