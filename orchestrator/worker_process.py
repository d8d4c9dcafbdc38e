"""Worker: a warm process that runs one job at a time and the keeper that starts, watches and replaces it.

The keeper learns from the kernel how a worker ended (signal, exit status, out of memory), which Ray does not tell.
Neither knows Ray: `orchestrator.ray_cluster` places keepers on the nodes.
"""

import contextlib
import faulthandler
import fcntl
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic_core import to_json

from orchestrator import package_version
from orchestrator.host_lock import host_lock, waits_for
from orchestrator.reaper import fork_worker
from sweeps.job import KINDS, TIMING, Device, Job
from sweeps.outcome import WORKER_UNFIT, Environment
from workers.measure.pinning import Share, pin, share

START_UP_S = 300.0
"""Importing torch from a cold network disk takes minutes; it does not count as the job's time."""
LOG_TAIL_BYTES = 8000
STOP_S = 10.0
"""A reaper that has not ended everything after this long is killed."""

FaultKind = Literal["crash", "timeout", "out_of_memory", "node_died", "error"]


class Fault(NamedTuple):
    """Why a job came back without an outcome: one line for people, and the traceback or the end of the worker's log."""

    kind: FaultKind
    message: str
    detail: str = ""
    started_at: float = 0.0
    """Seconds since the epoch, UTC: from when and until when the job had the host; both 0 where it is not known."""
    ended_at: float = 0.0


class Setting(NamedTuple):
    """What every worker of a cluster shares with the dispatcher that started it."""

    entry: str = "workers.run:run"
    """`module:function` that turns a `Job` into an `Outcome`."""
    survey: str = "orchestrator.worker_process:survey"
    """`module:function` that tells the environments a node offers."""
    folder: str = "."
    """Current folder, so that relative paths of checkpoints mean what they meant to the user."""
    path: tuple[str, ...] = ()
    """Import path beyond the installation's own."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables of ours (`BREAKEVEN_…`)."""
    memory_bytes: int | None = None
    """Memory that a CPU worker may allocate; `None` means nine tenths of the machine's."""


class NodeInfo(NamedTuple):
    """What a node says of itself."""

    host: str
    environments: dict[Device, Environment]
    packages: tuple[str, ...] = ()
    """Versions of our code there: of the process that starts workers, and of the workers themselves."""


def survey() -> dict[Device, Environment]:
    """The device classes of this machine and their fingerprints; imports no torch."""
    from workers.measure import environment

    return {device: environment.fingerprint(device) for device in environment.devices()}


def load(name: str) -> Callable[..., Any]:
    """The function that `module:function` names. Raises `ValueError`, `ImportError` or `AttributeError`."""
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise ValueError(f"{name!r} does not name a function; write it as module:function, such as workers.run:run")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def prepare(entry: str) -> Callable[[Job], Any]:
    """The entry, once all is imported that its jobs need: starting torch is no part of a job's time."""
    if entry == Setting().entry:
        for kind in KINDS:
            importlib.import_module(f"workers.kinds.{kind}")
    return load(entry)


class WorkerSupervisor:
    """Keeps one warm worker for one device class: starts it, hands it jobs, and replaces it alone when it crashes or hangs."""

    def __init__(self, device: Device, setting: Setting) -> None:
        self._device, self._setting = device, setting
        self._worker: subprocess.Popen[bytes] | None = None
        self._unfit = False
        """Whether the worker must not get another job."""
        self._ready = False
        """Whether the worker has imported what its jobs need, so that all further time is the job's."""
        self._waiting_since: float | None = None
        self._share: Share | None = None
        """What the worker is pinned to."""
        self._wanted: Share | None = None
        """What the worker of the present job must be pinned to."""

    def survey(self) -> NodeInfo:
        for place in reversed(self._setting.path):
            if place not in sys.path:
                sys.path.append(place)
        folder = self._setting.folder if Path(self._setting.folder).is_dir() else None
        of_workers = package_version.version_of_workers(variables("cpu", self._setting, os.environ), folder)
        return NodeInfo(socket.gethostname(), load(self._setting.survey)(), (package_version.version(), of_workers))

    def run(self, job: str, timeout_s: float, *, fresh: bool = False, gpus: int = 1) -> str | Fault:
        """The outcome of `job`, both as JSON, or why there is none; `timeout_s` begins once the host is ours and the worker up.

        `gpus` counts the GPUs of this node.
        """
        asked = json.loads(job)
        on_device = asked["kind"] in TIMING and asked["condition"].get("exclusive") == "device"
        try:
            self._wanted = share(gpus) if on_device else None
        except ValueError as error:
            return Fault("error", str(error))
        self._waiting_since = time.time()
        with host_lock(asked["kind"], gpu=self._wanted and self._wanted.gpu):
            self._waiting_since = None
            started_at = time.time()
            if fresh or self._wanted != self._share:
                self.stop()
            if self._worker is None or self._worker.poll() is not None:
                self._start()
            self._log.seek(0)
            self._log.truncate()  # the worker shares this file and its position, so the log is that of one job
            result = self._converse(job, timeout_s)
            if isinstance(result, str):
                if self._unfit:
                    self.stop()
                return result
            ended_at = time.time()
            log_end = self.stop()
            return result._replace(started_at=started_at, ended_at=ended_at, detail=log_end or result.detail)

    def waiting(self) -> str | None:
        """What a job in `run` waits for, if it does; may be called from another thread."""
        since = self._waiting_since
        return None if since is None else waits_for(since, gpu=self._wanted and self._wanted.gpu)

    def _converse(self, job: str, timeout_s: float) -> str | Fault:
        limit_s, doing = (timeout_s, "running") if self._ready else (START_UP_S, "starting up")
        try:
            self._pipe.send_bytes(job.encode())
            while True:
                if not (events := dict(self._watched.poll(limit_s * 1000))):
                    return self._overdue(doing, limit_s)
                answered = self._pipe.fileno() in events or self._pipe.poll()  # it may have answered just before it ended
                message = self._pipe.recv_bytes() if answered else b""
                match message[:1]:
                    case b"R":
                        self._ready = True
                        limit_s, doing = timeout_s, "running"
                    case b"O" | b"L":
                        self._unfit = message[:1] == b"L"
                        return message[1:].decode()
                    case b"E":
                        text = message[1:].decode()
                        return Fault("error", f"the worker raised {text.strip().splitlines()[-1]}", text)
                    case _:
                        return self._died(doing)
        except (EOFError, OSError):
            return self._died(doing)

    def stop(self) -> str:
        """Kill the worker and whatever it started; the next job gets a new one. Returns the end of its log."""
        log_end = ""
        if self._worker is not None:
            os.close(self._lifeline)  # the reaper now ends the worker and all its descendants, and then itself
            try:
                self._worker.wait(STOP_S if sys.platform == "linux" else 0)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._worker.pid, signal.SIGKILL)
                self._worker.wait()
            self._pipe.close()
            if isinstance(self._ended, int):
                os.close(self._ended)
            log_end = self._tail()  # not before: the reaper may be cutting the log
            self._log.close()
            self._worker = None
        return log_end

    def _start(self) -> None:
        self.stop()
        self._pipe, theirs = Pipe()
        held, self._lifeline = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        fcntl.fcntl(self._log, fcntl.F_SETFL, os.O_APPEND)  # so that it can be cut while the worker writes
        self._unfit = self._ready = False
        self._killed_before = _oom_kills()
        limit = self._setting.memory_bytes if self._device == "cpu" else None
        self._share = self._wanted
        bounds = json.dumps({"memory": limit or 0, "share": self._share})
        arguments = (theirs.fileno(), held, self._setting.entry, self._device, bounds)
        command = [sys.executable, "-m", "orchestrator.worker_process", *map(str, arguments)]
        try:
            with theirs:
                self._worker = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=(theirs.fileno(), held),
                    env=variables(self._device, self._setting, os.environ),
                    cwd=self._setting.folder if Path(self._setting.folder).is_dir() else None,
                    start_new_session=True,
                )
        finally:
            os.close(held)
        # The pipe alone would not tell of a death while something that the worker forked holds its other end.
        self._ended: int | Connection = os.pidfd_open(self._worker.pid) if hasattr(os, "pidfd_open") else self._pipe
        self._watched = select.poll()
        self._watched.register(self._pipe, select.POLLIN)
        self._watched.register(self._ended, select.POLLIN)

    def _overdue(self, doing: str, limit_s: float) -> Fault:
        assert self._worker is not None
        with contextlib.suppress(ProcessLookupError):
            self._worker.send_signal(signal.SIGUSR1)  # writes every thread's stack to the log, even of one that hangs in C
            time.sleep(0.3)
        return Fault("timeout", f"killed after {limit_s:g} s of {doing} without a result")

    def _died(self, doing: str) -> Fault:
        assert self._worker is not None
        code = self._worker.wait()
        if code >= 0:
            return Fault("crash", f"the worker left with exit status {code} while {doing}")
        if -code == signal.SIGKILL and _oom_kills() > self._killed_before:
            return Fault("out_of_memory", f"the machine's memory ran out while {doing}, and the kernel killed the worker")
        return Fault("crash", f"the worker died of {signal.Signals(-code).name} while {doing}")

    def _tail(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_TAIL_BYTES))
        return self._log.read().decode(errors="replace")


def variables(device: Device, setting: Setting, inherited: Mapping[str, str]) -> dict[str, str]:
    """A worker's environment: ours, without what Ray adds to its own processes, and without a GPU in sight of CPU jobs."""
    kept = {key: value for key, value in inherited.items() if not key.startswith("RAY_") and key != "OMP_NUM_THREADS"}
    kept |= dict(setting.variables)
    if setting.path:
        kept["PYTHONPATH"] = os.pathsep.join(setting.path)
    if device == "cpu":
        kept["CUDA_VISIBLE_DEVICES"] = ""
    return kept


def main(handle: str, lifeline: str, entry: str, device: str, bounds: str) -> None:
    """The worker's own loop: jobs come in as JSON, outcomes go out as JSON, until the keeper closes the pipe."""
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
                if run is None:
                    run = prepare(entry)
                    pipe.send_bytes(b"R")
                outcome = run(Job.model_validate_json(job))
                reply = b"L" if outcome.system_metrics.get(WORKER_UNFIT) else b"O"
                reply += to_json(outcome, inf_nan_mode="constants")
            except BaseException:  # even SystemExit of a method must reach the keeper
                reply = b"E" + traceback.format_exc().encode()
            pipe.send_bytes(reply)


def _limit_memory(limit: int) -> None:
    """Let an allocation beyond the machine's memory fail inside the job, where it is an answer, instead of stopping the machine."""
    if sys.platform == "linux":
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = limit or total * 9 // 10
        resource.setrlimit(resource.RLIMIT_DATA, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _oom_kills() -> int:
    """Processes that the kernel has killed for want of memory since boot; 0 where it does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
