"""Stand-alone program that runs what is compared in a process of its own: commands, or functions of
the user's files. It needs the standard library alone (Python 3.9 or newer), so that the interpreter
of another environment can run it and a user's `import store` finds the user's module.

Each line of standard input is a request, a JSON object; each line of standard output is the reply
to one. When the pipe of requests closes, everything that was started here is ended, also what
called `setsid` and forked twice.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypedDict

PR_SET_CHILD_SUBREAPER = 36
F_SETPIPE_SZ = 1031
PIPE_BYTES = 2**20
"""Of a command's output, so that it seldom waits for the reader."""
HEAD_BYTES = 4096
"""Of the output of a command whose text is returned."""
TAIL_BYTES = 2000
"""Of what it wrote on standard error."""
SAMPLE_MS = 5
"""Between two readings of the memory of a command's processes."""
SAMPLE_SHARE = 4
"""That time at least, in multiples of what a reading takes."""
KILL_S = 5.0
PAGE = resource.getpagesize()


OutputReader = Callable[[bytes], object]
Serve = Callable[[int], Iterator[object]]


class Execution(TypedDict):
    """One or several executions of a command; seconds are of all together."""

    wall: float
    user: float
    system: float
    largest: int
    """Bytes of resident memory of its largest process, this one's own at least (man 2 execve keeps
    the peak of who started it)."""
    code: int
    """Exit code, or minus the signal."""
    late: bool
    """It was ended because it took longer than the time limit."""
    errors: str
    """The end of what it wrote on standard error."""


class Observation(Execution):
    """One execution that is not timed."""

    digest: str
    """Of all of standard output."""
    bytes: int
    head: str
    peak: int | None
    """Bytes of resident memory of the command and its descendants at once, shared pages counted in
    each; `None` where it ended too soon and this process is larger."""
    left: int
    """Processes that still run after its end."""


def main() -> None:
    """Serve requests for the role that the command line names."""
    requests, replies = os.dup(0), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    adopt_descendants()
    serve: Serve = _commands
    if sys.argv[1] == "functions":
        _stay_behind(requests, replies.fileno())
        # its own folder may be first on the path, which is the user's from now on
        here = str(Path(__file__).parent)
        sys.path.insert(0, here)
        serve = importlib.import_module("measured_functions").serve_functions
        sys.path[:] = [entry for entry in sys.path if entry != here]
        del sys.modules["measured_functions"]
    try:
        for reply in serve(requests):
            line = {"reply": reply, "cpu_s": used_cpu_s(), "threads_s": thread_seconds()}
            replies.write(json.dumps(line) + "\n")
            replies.flush()
    except BrokenPipeError:  # nobody waits for replies any more
        os.close(replies.fileno())
    finally:
        end_descendants()


def _stay_behind(requests: int, replies: int) -> None:
    """Return in a new process. This one waits for its end, or that of the pipe of requests, and
    then ends everything that was started there.
    """
    worker = os.fork()
    if worker == 0:
        return
    os.close(replies)  # which ends with the worker
    watched = select.poll()
    watched.register(os.pidfd_open(worker), select.POLLIN)
    watched.register(requests, 0)
    watched.poll()
    ended, status = os.waitpid(worker, os.WNOHANG)
    end_descendants()
    code = os.waitstatus_to_exitcode(status) if ended else 1
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # this one did not crash
        with contextlib.suppress(OSError):  # SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def adopt_descendants() -> None:
    """Become the parent of every descendant whose own parent ends (man 2 prctl)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_descendants() -> None:
    """Kill every descendant until none is left, `KILL_S` at most; a killed one's children become
    this process's own.
    """
    deadline = time.monotonic() + KILL_S
    while time.monotonic() < deadline:
        for pid in process_tree(os.getpid()).keys() - {os.getpid()}:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def used_cpu_s() -> float:
    """CPU time of this process and those that ended below it, in seconds."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in usages)


def thread_seconds() -> dict[int, float]:
    """CPU time of the other threads that Python started here, by their number in the kernel."""
    found: dict[int, float] = {}
    if "threading" not in sys.modules:  # which takes memory
        return found
    import threading

    for thread in {*threading.enumerate()} - {threading.main_thread()}:
        with contextlib.suppress(OSError):  # it has ended
            stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
            ticks = map(int, stat.rpartition(")")[2].split()[11:13])
            found[thread.native_id or 0] = sum(ticks) / os.sysconf("SC_CLK_TCK")
    return found


def process_tree(root: int) -> dict[int, int]:
    """Pages of resident memory of a process and its running descendants, by process id."""
    parents, pages = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        # it has ended
        with contextlib.suppress(OSError):
            # the name in brackets may hold spaces and brackets
            state, parent, *rest = (folder / "stat").read_text().rpartition(")")[2].split()
            if state != "Z":
                parents[int(folder.name)], pages[int(folder.name)] = int(parent), int(rest[19])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: pages[pid] for pid in found if pid in pages}


class CommandRequest(TypedDict):
    """What to execute: a program's path, then its arguments from the name on."""

    command: list[str]
    prepare: list[str] | None
    """Runs before each execution and is not timed."""
    inner: int
    """How often, one after another."""
    observe: bool
    """Read the output and memory, and time nothing."""
    limit_s: float
    """For each execution."""


class Limits(NamedTuple):
    """When an execution is ended from outside."""

    requests: int
    """The pipe whose end ends it."""
    deadline: float
    """A reading of `time.perf_counter()`."""


def _commands(requests: int) -> Iterator[object]:
    """The reply to each request, of which each is a `CommandRequest`."""
    for line in os.fdopen(requests, encoding="utf-8"):
        try:
            yield _repeat(json.loads(line), requests)
        except OSError as error:
            yield {"failed": error.strerror}


def _repeat(request: CommandRequest, requests: int) -> Execution | dict[str, str]:
    """The sum over all executions, until one fails."""
    run = observe if request["observe"] else execute
    total: Execution | None = None
    for _ in range(request["inner"]):
        limits = Limits(requests, time.perf_counter() + request["limit_s"])
        if request["prepare"] is not None:
            prepared = execute(request["prepare"], limits)
            if prepared["code"]:
                how = failure(prepared["code"], prepared["errors"])
                return {"failed": f"its --prepare fails with {how}"}
        taken = run(request["command"], limits)
        if total is not None:
            taken["wall"] += total["wall"]
            taken["user"] += total["user"]
            taken["system"] += total["system"]
        total = taken
        if taken["code"]:
            break
    assert total is not None
    return total


def execute(
    command: list[str],
    limits: Limits,
    take: OutputReader = lambda _: None,
    sample: Callable[[int], object] | None = None,
) -> Execution:
    """Run a program with its arguments until it ends; `take` receives its standard output in
    pieces, `sample` its process id every few milliseconds. Raises `OSError`.
    """
    tail = b""

    def keep(data: bytes) -> None:
        nonlocal tail
        tail = (tail + data)[-TAIL_BYTES:]

    (output, output_end), (errors, errors_end) = _pipe(), _pipe()
    readers = {output: take, errors: keep}
    try:
        started = time.perf_counter()
        pid = os.posix_spawn(
            command[0],
            command[1:],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, output_end, 1),
                (os.POSIX_SPAWN_DUP2, errors_end, 2),
            ],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
        os.close(output_end)
        os.close(errors_end)
        late = _follow(pid, limits, readers, sample)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - started
        if late:
            end_descendants()
        for file, reader in readers.items():
            for data in _rest(file):
                reader(data)
    finally:
        os.close(output)
        os.close(errors)
    return {
        "wall": wall,
        "user": usage.ru_utime,
        "system": usage.ru_stime,
        "largest": usage.ru_maxrss * 1024,
        "code": os.waitstatus_to_exitcode(status),
        "late": late,
        "errors": tail.decode(errors="replace"),
    }


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with contextlib.suppress(OSError):
        fcntl.fcntl(reading, F_SETPIPE_SZ, PIPE_BYTES)
    return reading, writing


def _follow(
    pid: int,
    limits: Limits,
    readers: dict[int, OutputReader],
    sample: Callable[[int], object] | None,
) -> bool:
    """Read what a process writes until it ends, or is killed at the time limit: whether it was."""
    ended, watched = os.pidfd_open(pid), select.poll()
    for file in (ended, *readers):
        watched.register(file, select.POLLIN)
    watched.register(limits.requests, 0)
    looked = 0.0
    try:
        while True:
            left_ms = max(0.0, limits.deadline - time.perf_counter()) * 1000
            ready = [file for file, _ in watched.poll(SAMPLE_MS if sample else left_ms)]
            if ended in ready:
                return False
            if limits.requests in ready:
                end_descendants()
                os._exit(1)
            if time.perf_counter() >= limits.deadline:
                os.kill(pid, signal.SIGKILL)
                return True
            if sample and time.perf_counter() >= looked:
                began = time.perf_counter()
                sample(pid)
                took = time.perf_counter() - began
                looked = time.perf_counter() + max(SAMPLE_MS / 1000, SAMPLE_SHARE * took)
            for file in readers.keys() & ready:
                if data := _read(file):
                    readers[file](data)
                else:
                    watched.unregister(file)
    finally:
        os.close(ended)


def _rest(pipe: int) -> Iterator[bytes]:
    """What was written before the end; a process that goes on writing is not followed."""
    taken = 0
    while taken < PIPE_BYTES and (data := _read(pipe)):
        taken += len(data)
        yield data


def _read(pipe: int) -> bytes:
    """Empty at the end, and where nothing waits."""
    try:
        return os.read(pipe, PIPE_BYTES)
    except BlockingIOError:
        return b""


def observe(command: list[str], limits: Limits) -> Observation:
    """Run a program once, with its output hashed and its memory read meanwhile."""
    from _blake2 import blake2b  # hashlib loads OpenSSL: 4 MB that would be a peak's lower bound

    digest, size, head, peak = blake2b(), 0, b"", 0

    def take(data: bytes) -> None:
        nonlocal size, head
        digest.update(data)
        size += len(data)
        head += data[: HEAD_BYTES - len(head)]

    def sample(pid: int) -> None:
        nonlocal peak
        peak = max(peak, sum(process_tree(pid).values()) * PAGE)

    taken = execute(command, limits, take, sample)
    if taken["largest"] > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024:
        peak = max(peak, taken["largest"])
    return {
        **taken,
        "digest": digest.hexdigest(),
        "bytes": size,
        "head": head.decode(errors="replace"),
        "peak": peak or None,
        "left": len(process_tree(os.getpid())) - 1,
    }


def failure(code: int, errors: str = "") -> str:
    """An exit code, or minus a signal, and the last line that was written on standard error."""
    how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
    return ": ".join([how, *errors.strip().splitlines()[-1:]])


if __name__ == "__main__":
    main()
