"""Temporary folder of our own Ray: where it keeps its files while it runs, and the removal of what
killed runs left.

Everything lies in one parent folder per user, which no other user can write. Only what carries our
marker is ever removed.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from store.rows.owners import has_ended, owner
from workers.measure.descendants import end, writing_below

SOCKET_FOLDER = Path("/tmp")  # noqa: S108 - a socket's path has at most 107 characters, which TMPDIR may use up
_VARIABLE = "RAY_TMPDIR"
LONGEST = 43
"""Characters of a folder's path: Ray appends 64 to name its sockets."""
PREFIX = "ray-"
MARKER = ".breakeven-owner"


class Folder:
    """The files of a Ray of our own: gone when it ends, or at our next start if it was killed."""

    def __init__(self) -> None:
        """Raises `OSError`, whose text names what is wrong with the place, if it cannot be used."""
        parent = _parent()
        for old in parent.glob(f"{PREFIX}*"):
            _remove_if_abandoned(old)
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        try:
            self._file = _mark(Path(self.path))
        except OSError:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def end_processes(self) -> None:
        """Kill the processes that still write here: Ray's agents outlive a raylet or GCS that was
        killed, some for minutes.
        """
        end(writing_below(Path(self.path)))

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            _remove(Path(self.path))
        os.close(self._file)


def _parent() -> Path:
    """The folder of this user, made if it is not there."""
    place = Path(os.environ.get(_VARIABLE) or SOCKET_FOLDER)
    parent = place / f"breakeven-{os.geteuid()}"
    if len(str(parent / f"{PREFIX}12345678")) > LONGEST:
        raise OSError(
            f"{place} is too long a path for the sockets of Ray; name a shorter one with"
            f" {_VARIABLE}"
        )
    with contextlib.suppress(FileExistsError):
        parent.mkdir(mode=0o700)
    found = parent.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise OSError(
            f"{parent} is not a folder of this user; remove it, or name another place with"
            f" {_VARIABLE}"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        parent.chmod(0o700)
    return parent


def _mark(folder: Path) -> int:
    """Put the marker into the folder, which names this process and is locked until it ends. Returns
    the open file.
    """
    unfinished = folder / f"{MARKER}.new"
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.write(file, owner().encode())
    unfinished.rename(folder / MARKER)  # never there without its lock
    return file


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder with our marker whose process is known to have ended, and end the rest of its
    Ray; leave all others.
    """
    with contextlib.suppress(OSError), _locked(folder / MARKER) as text:
        if has_ended(text):
            end(writing_below(folder))
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder of ours, the marker last: where processes of a killed Ray still write, the
    next start removes the rest.
    """
    for entry in folder.iterdir():
        if entry.name == MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    if [entry.name for entry in folder.iterdir()] in ([], [MARKER]):
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(marker: Path) -> Iterator[str]:
    """The text of a marker, which is ours and not locked by another process. Raises `OSError`
    otherwise.
    """
    file = os.open(marker, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if os.fstat(file).st_uid != os.geteuid() or stat.S_ISLNK(marker.parent.lstat().st_mode):
            raise OSError(f"{marker} is not ours")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield os.read(file, 1000).decode(errors="replace")
    finally:
        os.close(file)
