"""Descendants: the processes that a process started, directly or through others, and how all of them are ended (Linux)."""

import contextlib
import ctypes
import os
import signal
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36
END_S = 5.0
"""Killed processes are waited for at most so long; one in uninterruptible sleep ends later."""
PERMANENT = ("torch/_inductor/compile_worker", "multiprocessing.resource_tracker", "loky.backend.resource_tracker")
"""Parts of command lines of processes that libraries keep for later jobs: torch's compile workers, Python's resource trackers."""


class Process(NamedTuple):
    """A running process; one process number can be used again, the start time distinguishes them."""

    pid: int
    parent: int
    name: str
    started: int
    """Ticks since boot."""
    zombie: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none leaves the tree by `setsid` and a double fork.

    See man 2 prctl, PR_SET_CHILD_SUBREAPER; needs no privilege.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def has_children() -> bool:
    """Whether this process has a child at all, zombies included; takes a microsecond."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants(ancestor: int) -> list[Process]:
    """All descendants of the process, parents before their children; none where there is no /proc."""
    by_parent: dict[int, list[Process]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if (process := _read(folder)) is not None:
            by_parent.setdefault(process.parent, []).append(process)
    found, following = [], [ancestor]
    while following:
        children = by_parent.get(following.pop(), [])
        found += children
        following += [child.pid for child in children]
    return found


def lives(process: Process) -> bool:
    """Whether it still runs; one that ended and was not collected by its parent does not."""
    now = _read(Path(f"/proc/{process.pid}"))
    return now is not None and not now.zombie and now.started == process.started


def writing_below(folder: Path) -> list[Process]:
    """The other processes of this user that have a file below `folder` open for writing; none where there is no /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours to look into
            ours = entry.stat().st_uid == os.geteuid() and int(entry.name) != os.getpid()
            if ours and any(_writes(opened, folder) for opened in (entry / "fd").iterdir()):
                found += [process for process in [_read(entry)] if process is not None]
    return found


def _writes(opened: Path, folder: Path) -> bool:
    """Whether a link in /proc/PID/fd, whose mode is that of the open file (man 5 proc_pid_fd), is to a file to write there."""
    try:
        return bool(opened.lstat().st_mode & stat.S_IWUSR) and opened.readlink().is_relative_to(folder)
    except FileNotFoundError:  # closed meanwhile
        return False


def left_running() -> list[Process]:
    """The living descendants of this process, without those that libraries keep (`PERMANENT`) and what these started."""
    if not has_children():
        return []
    found: list[Process] = []
    kept: set[int] = set()
    for process in descendants(os.getpid()):
        if process.parent in kept or any(part in _command(process.pid) for part in PERMANENT):
            kept.add(process.pid)
        elif not process.zombie:
            found.append(process)
    return found


def end(processes: Iterable[Process]) -> None:
    """Kill the processes and whatever they start meanwhile, and wait until they are gone, `END_S` at most."""
    pending = {process.pid: process for process in processes}
    deadline = time.monotonic() + END_S
    while pending and time.monotonic() < deadline:
        for process in list(pending.values()):
            for each in (process, *descendants(process.pid)):
                pending[each.pid] = each
                if _read(Path(f"/proc/{each.pid}")) is not None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(each.pid, signal.SIGKILL)
        for pid, process in list(pending.items()):
            with contextlib.suppress(ChildProcessError):  # another process' child, or reaped by whoever started it
                os.waitpid(pid, os.WNOHANG)
            if not lives(process):
                del pending[pid]
        if pending:
            time.sleep(0.005)


def end_all() -> None:
    """Kill every descendant of this process, which must have called `adopt_orphans`, until none is left, `END_S` at most."""
    deadline = time.monotonic() + END_S
    while has_children() and time.monotonic() < deadline:
        for process in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.002)


def _read(folder: Path) -> Process | None:
    """The process of a folder in /proc (man 5 proc_pid_stat); `None` if it has ended."""
    try:
        head, _, tail = (folder / "stat").read_text(errors="replace").rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return None
    pid, _, name = head.partition(" (")
    fields = tail.split()
    return Process(int(pid), int(fields[1]), name, int(fields[19]), fields[0] in "ZX")


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
