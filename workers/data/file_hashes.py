"""Content hashes of the files of a data set; those of unchanged files come from a cache. Imports no
torch.
"""

import contextlib
import hashlib
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from sweeps.model.identity import digest

Observer = Callable[[int, int], None]
"""Called with the bytes hashed so far and the bytes to be hashed, those of files that are not in
the cache."""
Stamp = tuple[int, int, int, int]
"""Identifies the state of a file: size, modification and status change in nanoseconds, inode."""
CACHE_FORMAT = 1
SETTLED_NS = 2_000_000_000
"""A file that changed so recently may change again within one tick of the file system's clock, so
its hash is not kept."""
REPORT_S = 2.0
THREADS = 8
CHUNK = 2**20


def content_hashes(path: str, observer: Observer | None = None) -> dict[str, str]:
    """SHA-256 of every file below a folder (or of the one file) by name, in order of name; hidden
    files are left out.

    Only files that are new or whose size, times or inode changed are read. Hashes are kept also
    after an interruption; a cache that is damaged or cannot be written costs only time. `observer`
    is called every two seconds. Raises `OSError`.
    """
    from workers.cache import cache_folder
    from workers.data.imagefolder import files

    root = Path(path)
    names = [name for name, _ in files(path)]
    places = {name: root if root.is_file() else root / name for name in names}
    # One cache for each data set, so that none grows with what is no longer used.
    store = cache_folder() / "hashes" / f"{digest({'root': str(root.resolve())})}.json"
    known = _read(store)
    states = {name: place.stat() for name, place in places.items()}
    stamps = {
        name: (one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino)
        for name, one in states.items()
    }
    found = {
        name: known[name][1] for name in names if name in known and known[name][0] == stamps[name]
    }
    changed = [name for name in names if name not in found]
    if changed:
        try:
            sizes = {name: stamps[name][0] for name in changed}
            hashed = _hashed({name: places[name] for name in changed}, sizes, observer)
            found.update(hashed)  # one by one: an interruption keeps those before it
        finally:
            settled = time.time_ns() - SETTLED_NS
            keep = {
                name: (stamps[name], sha256)
                for name, sha256 in found.items()
                if max(stamps[name][1:3]) < settled
            }
            if keep != known:
                _write(store, keep)
    return {name: found[name] for name in names}


def _hashed(
    places: Mapping[str, Path], sizes: Mapping[str, int], observer: Observer | None
) -> Iterator[tuple[str, str]]:
    """Name and hash of each file, in order, read by a few threads."""
    total, read = sum(sizes[name] for name in places), [0]
    lock, reported = threading.Lock(), time.monotonic()

    def sha256(file: Path) -> str:
        found = hashlib.sha256()
        with file.open("rb") as opened:
            while chunk := opened.read(CHUNK):
                found.update(chunk)
                with lock:
                    read[0] += len(chunk)
        return found.hexdigest()

    todo = iter(places.items())
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        # an interrupt waits for the files of one part only
        while part := list(itertools.islice(todo, 16 * THREADS)):
            futures = [pool.submit(sha256, place) for _, place in part]
            for (name, _), future in zip(part, futures, strict=True):
                waiting = True
                while waiting:
                    waiting = bool(wait((future,), timeout=REPORT_S).not_done)
                    if observer is not None and time.monotonic() - reported >= REPORT_S:
                        reported = time.monotonic()
                        observer(read[0], total)
                yield name, future.result()


def _read(file: Path) -> dict[str, tuple[Stamp, str]]:
    """The kept hashes; none where the file is missing, damaged or of another format."""
    found: dict[str, tuple[Stamp, str]] = {}
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["format"] == CACHE_FORMAT:
            for name, (size, modified, changed, inode, sha256) in document["files"].items():
                found[name] = (int(size), int(modified), int(changed), int(inode)), str(sha256)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return found


def _write(file: Path, rows: Mapping[str, tuple[Stamp, str]]) -> None:
    """Replace the cache as a whole; of processes that write at the same time the last one stays."""
    part = file.with_name(f".{os.getpid()}-{time.monotonic_ns()}-{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(
            json.dumps(
                {
                    "format": CACHE_FORMAT,
                    "files": {name: [*stamp, own] for name, (stamp, own) in rows.items()},
                }
            )
        )
        part.replace(file)
    except (
        OSError
    ):  # a home that cannot be written, or a full disk: the next listing reads the files again
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
