"""The cache of artifacts that jobs need: made on demand, and kept under the hash of what they are
made from.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

CACHE_VARIABLE = "BREAKEVEN_CACHE"


def cache_folder() -> Path:
    """$BREAKEVEN_CACHE, or `~/.cache/breakeven`."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "breakeven")


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The file or folder `name` of the cache, made by `make` if it is not there: whole or not at
    all, once for all processes.
    """
    file = cache_folder() / name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_name(f"{name}.lock")):
            if not file.exists():
                # of a process that was killed, because this one holds the lock
                for left in file.parent.glob(f".*-{name}"):
                    _remove(left)
                part = file.with_name(f".{os.getpid()}-{name}")
                try:
                    make(part)
                    part.replace(file)
                finally:
                    _remove(part)
    return file


def write_whole(file: Path, text: str) -> None:
    """Write a file, whole or not at all; of processes that write at the same time the last one
    stays.
    """
    part = file.with_name(f".{os.getpid()}-{time.monotonic_ns()}-{file.name}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _remove(part: Path) -> None:
    """Remove a file or a folder if it is there."""
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)
