"""What is written into a published folder: only files that changed, without names of hosts and
users, paths and serial numbers of devices; only what an earlier publication wrote is removed.
"""

import getpass
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from platform import node
from typing import Any, NamedTuple

import pandas as pd

from sweeps.errors import UserError

MANIFEST = ".breakeven-publish.json"
LINE = r"(?<=\\[nrt])"
"""A line that begins as `\\n` of JSON."""
PATH = re.compile(
    rf"(?:(?<![\w.</~*@-])|{LINE})(?:file://)?"
    r"(?:(?:/[\w.@+~-]+){2,}/?|~(?:/[\w.@+~-]+)+/?|[A-Za-z]:\\[^\s\"'<>|]+)"
)
"""An absolute path of two names or more, one that begins at a home, or one of Windows."""
SERIAL = re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27,}")
TELLS_NOTHING = re.compile(r"\d+|.?|root|local(host)?|host|node|machine|server|cpu|gpu|cuda|dense")
"""Names that are words of every page too; the columns of hosts have aliases in place of all."""


class PublishError(UserError):
    """Nothing can be published so; the message is one line with what would be right."""


class Changes(NamedTuple):
    """What a publication did to the files of its folder."""

    changed: int
    unchanged: int
    removed: int


class Folder:
    """A folder on its way to its new content: `add` every file, then `write`."""

    def __init__(self, root: Path) -> None:
        """Raises `PublishError` where the path is no folder, or holds the manifest of something
        else.
        """
        self.root, self.files = root, dict[str, bytes]()
        if root.exists() and not root.is_dir():
            raise PublishError(f"{root} is a file; name a folder, or a place where one can be made")
        self.known: dict[str, Any] = {"files": {}, "sweeps": []}
        try:
            self.known |= json.loads((root / MANIFEST).read_text())
        except FileNotFoundError:
            return  # a new folder
        except (OSError, TypeError, ValueError) as problem:
            raise PublishError(f"{root / MANIFEST} cannot be read: {problem}") from None

    def add(self, path: str, content: str | bytes) -> None:
        """A file of the folder, by its path with slashes."""
        self.files[path] = content.encode() if isinstance(content, str) else content

    def write(self, **facts: Any) -> Changes:
        """Write what differs, remove what is no longer published, and keep `facts` in the manifest.

        Raises `PublishError`, before anything is written, where a file would replace one that no
        publication wrote.
        """
        mine: dict[str, str] = self.known["files"]
        digests = {path: sha256(content).hexdigest() for path, content in self.files.items()}
        changed = [path for path in digests if _digest(self.root / path) != digests[path]]
        for path in changed:
            if path not in mine and (self.root / path).exists():
                raise PublishError(
                    f"{self.root / path} was not written by `breakeven publish` and would be"
                    " replaced; move it, or name another folder"
                )
        inside = {path: (self.root / path).resolve() for path in mine.keys() - digests.keys()}
        stale = [
            path
            for path, place in inside.items()
            # the manifest may be of somebody else
            if place.is_file() and place.is_relative_to(self.root.resolve())
        ]
        try:
            # first, so that a publication that is killed still knows its files
            self._keep(mine | digests, {"sweeps": self.known["sweeps"]})
            for path in changed:
                _replace(self.root / path, self.files[path])
            for path in stale:
                (self.root / path).unlink()
                with suppress(OSError):  # it holds something else
                    os.removedirs((self.root / path).parent)
            self._keep(digests, facts)
        except OSError as problem:
            raise PublishError(
                f"{problem.filename or self.root} cannot be written: {problem.strerror}; choose a"
                " folder that is writable, on a disk with room"
            ) from problem
        return Changes(len(changed), len(digests) - len(changed), len(stale))

    def _keep(self, files: dict[str, str], facts: dict[str, Any]) -> None:
        text = json.dumps({**facts, "files": dict(sorted(files.items()))}, indent=1)
        if _digest(self.root / MANIFEST) != sha256(text.encode()).hexdigest():
            _replace(self.root / MANIFEST, text.encode())


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class Redaction:
    """What is replaced: hosts by their aliases, the user who publishes, paths, serial numbers."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        """`aliases` of the hosts of the store."""
        self.hosts = dict(aliases)
        names = {getpass.getuser(): "[user]", node(): "[host]", **aliases}
        short = {name.partition(".")[0]: alias for name, alias in names.items()}
        known = {**short, **names}.items()
        self._names = {each: alias for each, alias in known if not TELLS_NOTHING.fullmatch(each)}
        ordered = sorted(self._names, key=len, reverse=True)
        listed = "|".join(map(re.escape, ordered)) or r"(?!)"
        self._words = re.compile(rf"(?:(?<!\w)|{LINE})(?:{listed})(?!\w)")

    def clean(self, value: Any) -> Any:
        """The value without them: a text, a frame, or a tree of mappings and lists of JSON."""
        if isinstance(value, str):
            found = PATH.sub("[path]", SERIAL.sub(_alias_of_device, value))
            return self._words.sub(lambda name: self._names[name[0]], found)
        if isinstance(value, Mapping):
            known = {key: self.clean(each) for key, each in value.items()}
            return known | {"host": self.hosts.get(value["host"], "")} if "host" in known else known
        if isinstance(value, list | tuple):
            return [self.clean(each) for each in value]
        if isinstance(value, pd.DataFrame):
            if "host" in value:
                value = value.assign(host=value["host"].replace(self.hosts))
            texts = value.select_dtypes(include=["object", "str"])
            return value.assign(**{str(name): list(map(self.clean, texts[name])) for name in texts})
        return value

    @property
    def lines(self) -> list[str]:
        """What is replaced, for the user to read before anything is written."""
        hosts = [f"host {host} → {alias}" for host, alias in self.hosts.items()]
        rest = "this host's and user's name, absolute paths, serial numbers of devices"
        removed = "the readings of monitors (clocks, load, power) are left out"
        return [*hosts, f"replaced everywhere: {rest}", removed]


def _alias_of_device(serial: re.Match[str]) -> str:
    return f"device-{sha256(serial[0].encode()).hexdigest()[:6]}"
