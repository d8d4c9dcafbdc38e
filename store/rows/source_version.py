"""Source version: which code of ours lies in a folder, for the provenance of what is written."""

import functools
import hashlib
import importlib.metadata
from pathlib import Path

OUR_PACKAGES = ("orchestrator", "store", "sweeps", "webapp", "workers")
_SOURCES = frozenset({".py", ".cpp", ".cu", ".h"})


@functools.cache
def version_of(root: Path) -> str:
    """Version and hash of the source below a folder: `0.1.0 (source 5f2c90ab)`."""
    found = hashlib.sha256()
    for folder in OUR_PACKAGES:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _SOURCES and path.is_file():
                found.update(
                    f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes() + b"\0"
                )
    try:
        number = importlib.metadata.version("breakeven")
    except importlib.metadata.PackageNotFoundError:
        number = "not installed"
    return f"{number} (source {found.hexdigest()[:8]})"
