"""Data sets by name, in a fixed order: digits, a folder of class folders, a Hugging Face data set
on disk, texts; and hashes of their content, those of unchanged files from a cache. Imports no
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

from pydantic import TypeAdapter

from sweeps.geometry.vit_catalogue import classes
from sweeps.model.condition import NAMED_WEIGHTS, Condition
from sweeps.model.identity import digest
from workers.cache import cache_folder, write_whole
from workers.data import text
from workers.data.images import (
    DIGITS_SPLIT,
    Images,
    files,
    held_out_digits,
    huggingface,
    imagefolder,
)
from workers.errors import DataError

FOLDER, HUGGINGFACE, DIGITS = "imagefolder:", "huggingface:", "digits"
Observer = Callable[[int, int], None]
"""Called with the bytes hashed so far and the bytes to be hashed, those of files that are not in
the cache."""
_KEPT = TypeAdapter(dict[str, tuple[int, int, int, int, str]])
"""By name of a file: its size, modification and status change in nanoseconds, and inode, which
identify its state; and its SHA-256."""
SETTLED_NS = 2_000_000_000
"""A file that changed so recently may change again within one tick of the file system's clock, so
its hash is not kept."""
REPORT_S = 2.0
THREADS = 8
CHUNK = 2**20


def images(data: str) -> Images:
    """The images that `Condition.data` names. Raises `DataError`, and `OSError` for a path that is
    not on this machine.
    """
    if data == DIGITS:
        return held_out_digits()
    for prefix, read in ((FOLDER, imagefolder), (HUGGINGFACE, huggingface)):
        if data.startswith(prefix):
            return read(data.removeprefix(prefix))
    raise DataError(
        f"{data!r} is not a data set; write {DIGITS}, {FOLDER}PATH or {HUGGINGFACE}PATH"
    )


def data_hash(condition: Condition, observer: Observer | None = None) -> dict[str, str]:
    """The content of `condition.data` as a hash for `Job.content_hashes`: of the names and contents
    of all files, or of the text.

    `observer` is called every two seconds while files are read. Raises `DataError`, and `OSError`
    for a path that is not on this machine.
    """
    data = condition.data
    if data is None:
        return {}
    if text.is_text(data):
        return {"data": text.text_hash(data)}
    if data == DIGITS:
        return {"data": digest({"data": DIGITS, "split": DIGITS_SPLIT})}
    path, _, _ = data.removeprefix(FOLDER).removeprefix(HUGGINGFACE).partition("#")
    return {"data": digest([list(pair) for pair in content_hashes(path, observer).items()])}


def check_head(condition: Condition) -> None:
    """Raise `DataError` where the classes of `condition.data` are not those of the model's head and
    no class map relates them.

    Opens no image, and accepts what only the worker can check: checkpoints other than safetensors,
    data of Hugging Face.
    """
    data, head = condition.data, _head(condition)
    if head is None or data is None or not (data == DIGITS or data.startswith(FOLDER)):
        return
    if head == 0:
        raise DataError(
            f"{condition.model} has no classes: with these weights timm builds it without a head"
        )
    found = images(data)
    if found.class_map is not None or len(found.classes) == head:
        return
    if data == DIGITS:
        raise DataError(
            f"digits has 10 classes, the head of {condition.model} has {head}: write digits_vit_64,"
            " or a checkpoint of 10 outputs"
        )
    found.outputs(head)


def _head(condition: Condition) -> int | None:
    """The outputs of the condition's model, where they can be known without torch."""
    if condition.weights in NAMED_WEIGHTS:
        return classes(condition.model)
    file = Path(condition.weights)
    return head_outputs(file) if file.suffix == ".safetensors" and file.is_file() else None


def head_outputs(file: Path) -> int | None:
    """The outputs of the head in a safetensors checkpoint, from its header; `None` where there is
    no `head.weight`.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as opened:
            shape = opened.get_slice("head.weight").get_shape()
    except (OSError, SafetensorError):
        return None
    return int(shape[0]) if len(shape) == 2 else None


def content_hashes(path: str, observer: Observer | None = None) -> dict[str, str]:
    """SHA-256 of every file below a folder (or of the one file) by name, in order of name; hidden
    files are left out.

    Only files that are new or whose size, times or inode changed are read. Hashes are kept also
    after an interruption; a cache that is damaged or cannot be written costs only time. `observer`
    is called every two seconds. Raises `OSError`.
    """
    root = Path(path)
    places = {name: root if root.is_file() else root / name for name in files(path)}
    # One cache for each data set, so that none grows with what is no longer used.
    store = cache_folder() / "hashes" / f"{digest({'root': str(root.resolve())})}.json"
    try:
        known = _KEPT.validate_json(store.read_bytes())
    except (OSError, ValueError):
        known = {}
    states = {name: place.stat() for name, place in places.items()}
    stamps = {
        name: (one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino)
        for name, one in states.items()
    }
    found = {name: known[name][4] for name in places if known.get(name, ())[:4] == stamps[name]}
    changed = {name: place for name, place in places.items() if name not in found}
    if changed:
        try:
            total = sum(stamps[name][0] for name in changed)
            # one by one: an interruption keeps those before it
            found.update(_hashed(changed, total, observer))
        finally:
            settled = time.time_ns() - SETTLED_NS
            keep = {
                name: (*stamps[name], sha256)
                for name, sha256 in found.items()
                if max(stamps[name][1:3]) < settled
            }
            # a home that cannot be written, or a full disk: the next listing reads the files again
            with contextlib.suppress(OSError):
                store.parent.mkdir(parents=True, exist_ok=True)
                write_whole(store, json.dumps(keep))
    return {name: found[name] for name in places}


def _hashed(
    places: Mapping[str, Path], total: int, observer: Observer | None
) -> Iterator[tuple[str, str]]:
    """Name and hash of each file, in order, read by a few threads."""
    read, lock, reported = 0, threading.Lock(), time.monotonic()

    def sha256(file: Path) -> str:
        nonlocal read
        found = hashlib.sha256()
        with file.open("rb") as opened:
            while chunk := opened.read(CHUNK):
                found.update(chunk)
                with lock:
                    read += len(chunk)
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
                        observer(read, total)
                yield name, future.result()
