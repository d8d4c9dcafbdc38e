"""Host lock: a timing job has its host alone among the jobs of all stores and users; other jobs
share it.

Timing jobs with `exclusive: device` share it too, each with one GPU alone.

The kernel releases a lock however its holder ends (man 2 flock). Readers would starve a waiting
writer, so all jobs pass a second lock first, the gate: a job that waits for the host holds it, a
timing job exclusively, others shared. Jobs that wait behind a timing job enter before the next
timing job. Both groups that share the host hold it shared, and each holds a lock of its own, which
must be free when a job of the other group enters.
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

from sweeps.model.condition import Kind
from sweeps.model.job import Occupation
from sweeps.model.kinds import KINDS

PLACE = Path(os.environ.get("BREAKEVEN_HOST_LOCKS", "/tmp"))  # noqa: S108 - TMPDIR may differ between two users, who must meet here
"""Where the locks are; the variable is for tests, which need not wait for what runs on this
host."""
LOCK, GATE, HOLDERS = "breakeven.lock", "breakeven.gate", "breakeven.holders"
GROUPS: dict[Occupation, str] = {"shared": "breakeven.shared", "device": "breakeven.devices"}
"""The lock of each group of jobs that share the host."""
GPU = "breakeven.gpu-"
"""What the locks of single GPUs are called, with the GPU's index."""


class Holder(NamedTuple):
    """A job that has the host, alone or together with others."""

    kind: str
    user: str
    pid: int
    since: float
    """Seconds since the epoch, UTC."""
    gpu: int | None = None
    """The GPU that it has, if it has not the whole host."""

    def __str__(self) -> str:
        article = "an" if self.kind[:1] in "aeiou" else "a"
        place = "" if self.gpu is None else f" on GPU {self.gpu}"
        return (
            f"{article} {self.kind} job of {self.user}{place} (process {self.pid}, since"
            f" {_clock(self.since)})"
        )


@contextlib.contextmanager
def host_lock(kind: Kind, place: Path = PLACE, gpu: int | None = None) -> Iterator[None]:
    """Hold the host for a job of `kind`: timing alone, or with the GPU of this index beside those
    of others; other jobs shared.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.ExitStack() as entry:
            for step in _steps(kind, place, gpu):
                fcntl.flock(
                    (stack if step.kept else entry).enter_context(_opened(step.path)), step.mode
                )
        with _published(kind, place, gpu):
            yield


def host_taken(kind: Kind = "latency", place: Path = PLACE, gpu: int | None = None) -> bool:
    """Whether a job of `kind` that starts now has to wait."""
    with contextlib.ExitStack() as stack:
        return not all(
            _at_once(stack.enter_context(_opened(step.path)), step.mode)
            for step in _steps(kind, place, gpu)
        )


def holders(place: Path = PLACE) -> list[Holder]:
    """The jobs that have the host, longest first; a file whose writer has ended, however it did, is
    none.
    """
    found = []
    for path in (place / HOLDERS).glob("*.json"):
        with (
            contextlib.suppress(OSError, ValueError, TypeError),
            _opened(path, create=False) as file,
        ):
            if _at_once(file, fcntl.LOCK_SH):
                path.unlink()  # not ours to remove if another user wrote it
            else:
                found.append(Holder(**json.loads(path.read_text())))
    return sorted(found, key=lambda holder: holder.since)


def waits_for(since: float, place: Path = PLACE, gpu: int | None = None) -> str:
    """What a job waits for in one line: since `since` (seconds since the epoch), for the host or
    the GPU of this index.
    """
    there = [holder for holder in holders(place) if gpu is None or holder.gpu in (None, gpu)]
    before = ", ".join(map(str, there)) or "another job, which has not begun yet"
    return f"waiting since {_clock(since)} ({time.time() - since:.0f} s) for {before}"


class _Step(NamedTuple):
    """A lock that is acquired before the job starts."""

    path: Path
    mode: int
    kept: bool = True
    """Or released once the job has entered."""


def _steps(kind: Kind, place: Path, gpu: int | None) -> Iterator[_Step]:
    """What is locked, in order. The GPU comes before the gate, where no job may wait for a single
    GPU.
    """
    own: Occupation = "shared" if not KINDS[kind].timed else "node" if gpu is None else "device"
    if own == "device":
        yield _Step(place / f"{GPU}{gpu}", fcntl.LOCK_EX)
    yield _Step(place / GATE, fcntl.LOCK_SH if own == "shared" else fcntl.LOCK_EX, kept=False)
    yield _Step(place / LOCK, fcntl.LOCK_EX if own == "node" else fcntl.LOCK_SH)
    if own in GROUPS:
        (other,) = GROUPS.keys() - {own}
        yield _Step(place / GROUPS[other], fcntl.LOCK_EX, kept=False)
        yield _Step(place / GROUPS[own], fcntl.LOCK_SH)


@contextlib.contextmanager
def _published(kind: Kind, place: Path, gpu: int | None) -> Iterator[None]:
    """Name this job as a holder of the host in a file, which is locked as long as the job has the
    host.
    """
    with contextlib.ExitStack() as stack:
        # a job that cannot write there holds the host nevertheless
        with contextlib.suppress(OSError):
            path = _folder(place) / f"{os.getpid()}-{threading.get_ident()}.json"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
            file = stack.enter_context(os.fdopen(handle, "w"))
            stack.callback(path.unlink, missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_EX)
            holder = Holder(kind, _user(), os.getpid(), time.time(), gpu)
            json.dump(
                {key: value for key, value in holder._asdict().items() if value is not None}, file
            )
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
    # another user's file can be locked, though not written
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        yield file
    finally:
        # a process forked by a method may still hold the open file
        fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def _at_once(file: int, mode: int) -> bool:
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
