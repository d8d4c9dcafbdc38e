"""Folder: where a Ray of our own keeps its files while it runs."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

SHORT = Path("/tmp")  # noqa: S108 - a socket's path has at most 107 characters, which TMPDIR may use up
PREFIX = "breakeven-"


class Folder:
    """The files of a Ray of our own: gone when it ends, or at our next start if it was killed."""

    def __init__(self) -> None:
        for old in SHORT.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                self._hold(str(old))
                self.remove()
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=SHORT)
        self._hold(self.path)

    def _hold(self, path: str) -> None:
        """Lock the folder until this process ends. Raises `OSError` if another one holds it."""
        self.path, self._file = path, os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._file)
