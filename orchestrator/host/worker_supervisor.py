"""Worker supervisor: starts, watches and replaces one worker process on a node.

It learns from the kernel how a worker ended (signal, exit status, out of memory), which Ray does
not report. It knows nothing of Ray: `orchestrator.cluster` places supervisors on nodes.
"""

import contextlib
import fcntl
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple

from orchestrator.host import package_version, worker_process
from orchestrator.host.host_lock import host_lock, waits_for
from orchestrator.host.worker_process import ENTRY
from sweeps.model.condition import Device
from sweeps.model.job import Job
from sweeps.model.outcome import Environment
from workers.measure.threads import Share, ThreadPolicy, requested_policy, share_of_gpu

MAX_MS = 2**31 - 1
"""Milliseconds that `poll` takes; later the time-out is checked no more."""
START_UP_S = 300.0
"""Importing torch from a cold network disk takes minutes; it does not count as the job's time."""
LOG_TAIL_BYTES = 8000
HIDDEN = ("OMP_NUM_THREADS", "BREAKEVEN_DB")
"""Variables that a worker does not inherit: jobs set their threads, and methods have no business
with the store."""
STOP_S = 10.0
"""A reaper that has not ended everything after this long is killed."""


class WorkerFailure(NamedTuple):
    """Why a job came back without an outcome."""

    kind: Literal["crash", "timeout", "out_of_memory", "node_died", "error"]
    message: str
    """One line for people."""
    detail: str = ""
    """The traceback, or the end of the worker's log."""
    started_at: float = 0.0
    """Seconds since the epoch, UTC: from when and until when the job had the host; both 0 where it
    is not known."""
    ended_at: float = 0.0


class WorkerConfig(NamedTuple):
    """What every worker of a cluster shares with the dispatcher that started it."""

    entry: str = ENTRY
    """`module:function` that turns a `Job` into an `Outcome`."""
    environments: str = "orchestrator.host.worker_process:local_environments"
    """`module:function` that returns the environments that a node offers, by device class."""
    folder: str = "."
    """Current folder, so that relative paths of checkpoints mean the same as in the sweep file."""
    path: tuple[str, ...] = ()
    """Import path beyond that of the installation."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables of ours (`BREAKEVEN_…`)."""
    memory_bytes: int | None = None
    """Memory that a CPU worker may allocate; `None` means nine tenths of the machine's."""


class NodeInfo(NamedTuple):
    """What a node reports about itself."""

    host: str
    environments: dict[Device, Environment]
    packages: tuple[str, ...] = ()
    """Versions of our code there: of the process that starts workers, and of the workers
    themselves."""


class WorkerSupervisor:
    """Keeps one warm worker for one device class: starts it, sends it jobs, and replaces it when it
    crashes or hangs.
    """

    def __init__(self, device: Device, config: WorkerConfig) -> None:
        self._device, self._config = device, config
        self._worker: subprocess.Popen[bytes] | None = None
        self._unfit = False
        """Whether the worker must not get another job."""
        self._ready = False
        """Whether the worker has imported what its jobs need, so that all further time is the
        job's."""
        self._waiting_since: float | None = None
        self._share: Share | None = None
        """What the worker is pinned to."""
        self._wanted: Share | None = None
        """What the worker of the present job must be pinned to."""
        self._policy = ThreadPolicy()
        """How the threads of the worker wait, and whether they are pinned; it sets that itself, by
        its first job."""

    def node_info(self) -> NodeInfo:
        """Host, environments and versions of our code on this node."""
        for place in reversed(self._config.path):
            if place not in sys.path:
                sys.path.append(place)
        folder = self._config.folder if Path(self._config.folder).is_dir() else None
        of_workers = package_version.version_of_workers(
            variables("cpu", self._config, os.environ), folder
        )
        return NodeInfo(
            socket.gethostname(),
            pkgutil.resolve_name(self._config.environments)(),
            (package_version.source_version(), of_workers),
        )

    def run(
        self, job: str, timeout_s: float, *, fresh: bool = False, gpus: int = 1
    ) -> str | WorkerFailure:
        """The outcome of `job`, both as JSON, or why there is none; `timeout_s` begins when the job
        has the host and a worker.

        `gpus` counts the GPUs of this node.
        """
        parsed = Job.model_validate_json(job)
        try:
            self._wanted = share_of_gpu(gpus) if parsed.occupation == "device" else None
        except ValueError as error:
            return WorkerFailure("error", str(error))
        self._waiting_since = time.time()
        policy = requested_policy(parsed.condition)
        with host_lock(parsed.kind, gpu=self._wanted and self._wanted.gpu):
            self._waiting_since = None
            started_at = time.time()
            if fresh or (self._wanted, policy) != (self._share, self._policy):
                self.stop()
            if self._worker is None or self._worker.poll() is not None:
                self._start()
                self._policy = policy
            self._log.seek(0)
            # the worker shares this file and its position, so the log is that of one job
            self._log.truncate()
            result = self._converse(job, timeout_s)
            if isinstance(result, str):
                if self._unfit:
                    self.stop()
                return result
            ended_at = time.time()
            log_end = self.stop()
            return result._replace(
                started_at=started_at, ended_at=ended_at, detail=log_end or result.detail
            )

    def waiting(self) -> str | None:
        """What a job in `run` waits for, if it does; may be called from another thread."""
        since = self._waiting_since
        return None if since is None else waits_for(since, gpu=self._wanted and self._wanted.gpu)

    def _converse(self, job: str, timeout_s: float) -> str | WorkerFailure:
        limit_s, doing = (timeout_s, "running") if self._ready else (START_UP_S, "starting up")
        try:
            self._pipe.send_bytes(job.encode())
            while True:
                if not (events := dict(self._watched.poll(min(1000 * limit_s, MAX_MS)))):
                    return self._overdue(doing, limit_s)
                # it may have answered just before it ended
                answered = self._pipe.fileno() in events or self._pipe.poll()
                message = self._pipe.recv_bytes() if answered else b""
                match message[:1]:
                    case worker_process.READY:
                        self._ready = True
                        limit_s, doing = timeout_s, "running"
                    case worker_process.OUTCOME | worker_process.LAST_OUTCOME:
                        self._unfit = message[:1] == worker_process.LAST_OUTCOME
                        return message[1:].decode()
                    case worker_process.ERROR:
                        text = message[1:].decode()
                        return WorkerFailure(
                            "error", f"the worker raised {text.strip().splitlines()[-1]}", text
                        )
                    case _:
                        return self._died(doing)
        except (EOFError, OSError):
            return self._died(doing)

    def stop(self) -> str:
        """Kill the worker and all that it started; the next job gets a new one. Returns the end of
        its log.
        """
        log_end = ""
        if self._worker is not None:
            # the reaper now ends the worker and all its descendants, and then itself
            os.close(self._lifeline)
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
        # so that it can be cut while the worker writes
        fcntl.fcntl(self._log, fcntl.F_SETFL, os.O_APPEND)
        self._unfit = self._ready = False
        self._killed_before = _oom_kills()
        limit = self._config.memory_bytes if self._device == "cpu" else None
        self._share = self._wanted
        bounds = json.dumps({"memory": limit or 0, "share": self._share})
        arguments = (theirs.fileno(), held, self._config.entry, self._device, bounds)
        command = [
            sys.executable,
            "-P",
            "-m",
            "orchestrator.host.worker_process",
            *map(str, arguments),
        ]
        try:
            with theirs:
                self._worker = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=(theirs.fileno(), held),
                    env=variables(self._device, self._config, os.environ),
                    cwd=self._config.folder if Path(self._config.folder).is_dir() else None,
                    start_new_session=True,
                )
        finally:
            os.close(held)
        # The pipe alone would not show a death while something that the worker forked holds its
        # other end.
        self._ended: int | Connection = (
            os.pidfd_open(self._worker.pid) if hasattr(os, "pidfd_open") else self._pipe
        )
        self._watched = select.poll()
        self._watched.register(self._pipe, select.POLLIN)
        self._watched.register(self._ended, select.POLLIN)

    def _overdue(self, doing: str, limit_s: float) -> WorkerFailure:
        assert self._worker is not None
        with contextlib.suppress(ProcessLookupError):
            # writes every thread's stack to the log, even of one that hangs in C
            self._worker.send_signal(signal.SIGUSR1)
            time.sleep(0.3)
        return WorkerFailure("timeout", f"killed after {limit_s:g} s of {doing} without a result")

    def _died(self, doing: str) -> WorkerFailure:
        assert self._worker is not None
        code = self._worker.wait()
        if code >= 0:
            return WorkerFailure("crash", f"the worker left with exit status {code} while {doing}")
        if -code == signal.SIGKILL and _oom_kills() > self._killed_before:
            return WorkerFailure(
                "out_of_memory",
                f"the machine's memory ran out while {doing}, and the kernel killed the worker",
            )
        return WorkerFailure(
            "crash", f"the worker died of {signal.Signals(-code).name} while {doing}"
        )

    def _tail(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_TAIL_BYTES))
        return self._log.read().decode(errors="replace")


def variables(device: Device, config: WorkerConfig, inherited: Mapping[str, str]) -> dict[str, str]:
    """A worker's environment: ours, without what Ray adds to its own processes, without the store,
    and a GPU only for its jobs.
    """
    kept = {
        key: value
        for key, value in inherited.items()
        if not key.startswith("RAY_") and key not in HIDDEN
    }
    kept |= dict(config.variables)
    if config.path:
        kept["PYTHONPATH"] = os.pathsep.join(config.path)
    if device == "cpu":
        kept["CUDA_VISIBLE_DEVICES"] = ""
    return kept


def _oom_kills() -> int:
    """Processes that the kernel has killed because memory ran out since boot; 0 where it does not
    report them.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0
