"""Host lock: a timing job has its host alone among all jobs of all stores and users; other jobs share it among themselves.

The kernel gives a lock back however its holder ends (man 2 flock). Readers would let a waiting writer starve, so all pass a second
lock first, the gate: whoever waits for the host holds it, a timing job alone, others together. Those that wait behind a timing
job enter before the next timing job.
"""

import contextlib
import fcntl
import functools
import getpass
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sweeps.job import Kind

PLACE = Path("/tmp")  # noqa: S108 - TMPDIR may differ between two users of one host, who must meet here
LOCK, GATE, HOLDERS = "breakeven.lock", "breakeven.gate", "breakeven.holders"
TIMING: frozenset[Kind] = frozenset({"latency", "generation"})
"""Kinds of jobs whose answer other work on the host would change."""


class Holder(NamedTuple):
    """A job that has the host, alone or together with others."""

    kind: str
    user: str
    pid: int
    since: float
    """Seconds since the epoch, UTC."""

    def __str__(self) -> str:
        article = "an" if self.kind[:1] in "aeiou" else "a"
        return f"{article} {self.kind} job of {self.user} (process {self.pid}, since {_clock(self.since)})"


@contextlib.contextmanager
def host_lock(kind: Kind, place: Path = PLACE) -> Iterator[None]:
    """Hold the host for a job of `kind`: timing alone, others shared."""
    mode = fcntl.LOCK_EX if kind in TIMING else fcntl.LOCK_SH
    with contextlib.ExitStack() as stack:
        gate = stack.enter_context(_opened(place / GATE))
        host = stack.enter_context(_opened(place / LOCK))
        fcntl.flock(gate, mode)
        fcntl.flock(host, mode)
        fcntl.flock(gate, fcntl.LOCK_UN)
        with _published(kind, place):
            yield


def host_taken(kind: Kind = "latency", place: Path = PLACE) -> bool:
    """Whether a job of `kind` that started now would have to wait."""
    mode = fcntl.LOCK_EX if kind in TIMING else fcntl.LOCK_SH
    with _opened(place / GATE) as gate, _opened(place / LOCK) as host:
        return not (_at_once(gate, mode) and _at_once(host, mode))


def holders(place: Path = PLACE) -> list[Holder]:
    """The jobs that have the host, longest first; a file whose writer has ended, however it did, is none."""
    found = []
    for path in (place / HOLDERS).glob("*.json"):
        with contextlib.suppress(OSError, ValueError, TypeError), _opened(path, create=False) as file:
            if _at_once(file, fcntl.LOCK_SH):
                path.unlink()  # not ours to remove if another user wrote it
            else:
                found.append(Holder(**json.loads(path.read_text())))
    return sorted(found, key=lambda holder: holder.since)


def waits_for(since: float, place: Path = PLACE) -> str:
    """What a job that waits since `since` (seconds since the epoch) waits for, in one line."""
    before = ", ".join(map(str, holders(place))) or "another job, which has not begun yet"
    return f"waiting since {_clock(since)} ({time.time() - since:.0f} s) for {before}"


@contextlib.contextmanager
def _published(kind: Kind, place: Path) -> Iterator[None]:
    """Let others know who has the host, in a file that is locked as long as that holds."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # who cannot write there holds the host all the same
            path = _folder(place) / f"{os.getpid()}-{threading.get_ident()}.json"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
            file = stack.enter_context(os.fdopen(handle, "w"))
            stack.callback(path.unlink, missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_EX)
            json.dump(Holder(kind, _user(), os.getpid(), time.time())._asdict(), file)
            file.flush()
        yield


def _folder(place: Path) -> Path:
    folder = place / HOLDERS
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)
    return folder


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


@functools.cache
def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return str(os.getuid())


@contextlib.contextmanager
def _opened(path: Path, *, create: bool = True) -> Iterator[int]:
    if create:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644))
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)  # another user's file can be locked, though not written
    try:
        yield file
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)  # a process forked by a method may still hold the open file
        os.close(file)


def _at_once(file: int, mode: int) -> bool:
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
