"""Descendants: the processes that a process started, directly or through others, and their end."""

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

PR_SET_CHILD_SUBREAPER = 36
END_S = 5.0
"""Killed processes are waited for at most so long; one in uninterruptible sleep ends later."""
WAIT_S = 0.01
"""Between two attempts to kill what killed processes started meanwhile."""
PERMANENT = (
    "torch/_inductor/compile_worker",
    "multiprocessing.resource_tracker",
    "loky.backend.resource_tracker",
)
"""Parts of command lines of processes that libraries keep for later jobs: torch's compile workers,
Python's resource trackers."""


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none leaves the tree by
    `setsid` and a double fork.

    See man 2 prctl, PR_SET_CHILD_SUBREAPER, which psutil does not offer; needs no privilege.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def has_children() -> bool:
    """Whether this process has a child at all, zombies included.

    Takes a microsecond, where psutil reads all processes of the machine (3 ms for a hundred).
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def is_running(process: psutil.Process) -> bool:
    """Whether it still runs; one that ended and was not collected by its parent does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def running_descendants() -> dict[psutil.Process, str]:
    """The running descendants of this process with their names.

    Without those that libraries keep (`PERMANENT`) and what these started.
    """
    found: dict[psutil.Process, str] = {}
    kept: set[int] = set()
    # parents first
    for process in psutil.Process().children(recursive=True) if has_children() else ():
        # it has ended; a zombie has no command line
        with contextlib.suppress(psutil.NoSuchProcess):
            command = " ".join(process.cmdline())
            if process.ppid() in kept or any(part in command for part in PERMANENT):
                kept.add(process.pid)
            else:
                found[process] = process.name()
    return found


def writing_below(folder: Path) -> list[psutil.Process]:
    """The other processes of this user that have a file below `folder` open for writing."""
    found = []
    for process in psutil.process_iter():
        # it has ended, or its files are not shown to this user
        with contextlib.suppress(psutil.Error):
            own = process.uids().effective == os.geteuid() and process.pid != os.getpid()
            if own and any(
                set(file.mode) & set("wa+") and Path(file.path).is_relative_to(folder)
                for file in process.open_files()
            ):
                found.append(process)
    return found


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill the processes and whatever they start meanwhile, and wait until they are gone, `END_S`
    at most.
    """
    pending, deadline = set(processes), time.monotonic() + END_S
    while pending and time.monotonic() < deadline:
        for process in list(pending):
            with contextlib.suppress(psutil.NoSuchProcess):
                pending.update(process.children(recursive=True))
        for process in pending:
            with contextlib.suppress(psutil.Error):  # it has ended, or belongs to another user
                process.kill()
        _, left = psutil.wait_procs(pending, timeout=WAIT_S)
        # not zombies of a parent that runs on
        pending = {process for process in left if is_running(process)}


def end_all() -> None:
    """Kill every descendant of this process, which must have called `adopt_orphans`, until none is
    left, `END_S` at most.
    """
    deadline = time.monotonic() + END_S
    while has_children() and time.monotonic() < deadline:
        end(psutil.Process().children(recursive=True))
