"""Content hashes: of what a condition only names (checkpoint, recipe of trained weights, data): they show stale answers."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sweeps.geometry.local_llm import content, is_folder
from sweeps.identity import digest
from sweeps.job import NAMED, NAMED_WEIGHTS, NAMING, Arm, Condition
from sweeps.parsing.yaml_reader import Document, KeyPath

Contents = Callable[[Condition], Mapping[str, str]]
"""Hashes of what a condition names besides a checkpoint file; raises `OSError` or `ValueError` where there is none."""


def sha256(path: str) -> str:
    """Of the file at `path`, which counts from the current folder."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass
class Hasher:
    """The hashes of a sweep's conditions; each checkpoint file is read once."""

    document: Document
    content_hash: Callable[[str], str]
    """Hash of a checkpoint file by its path."""
    more: Contents
    known: dict[str, str] = field(default_factory=dict)
    """Of checkpoint files, by path."""
    names: dict[str, str] = field(default_factory=dict)
    """Of what parameters name, by name."""

    def hashes(self, condition: Condition, paths: Mapping[str, KeyPath]) -> dict[str, str]:
        """What belongs in `Job.content_hashes`; `paths` holds the places of the condition's fields. Raises `SweepError`."""
        weights = {} if condition.weights in NAMED_WEIGHTS else {"weights": self._of_file(condition.weights, paths)}
        try:
            if is_folder(condition.model):
                weights = {"model": content(condition.model)}
            return {**weights, **self.more(condition)}
        except (OSError, ValueError) as error:
            name = "data" if condition.data else "weights"
            raise self.document.error(paths.get(name, (name,)), f"cannot be used: {error}") from None

    def named(self, arm: Arm, path: KeyPath) -> dict[str, str]:
        """What the parameters of an arm (written at `path`) name, for `Job.content_hashes`. Raises `SweepError`."""
        if not arm.names():
            return {}
        for step in arm.stack:
            for key in NAMING:
                name = step.params.get(key)
                if not isinstance(name, str) or name in self.names:
                    continue
                try:
                    named = Condition.model_construct(model="", data=name)
                    self.names[name] = self.content_hash(name) if key == "file" else digest(dict(self.more(named)))
                except (OSError, ValueError) as error:
                    why = f"{name}: {error.strerror}" if isinstance(error, OSError) and error.strerror else str(error)
                    raise self.document.error(path, f"{step.method}.{key} cannot be used: {why}") from None
        return {f"{NAMED}{name}": self.names[name] for name in arm.names()}

    def _of_file(self, path: str, paths: Mapping[str, KeyPath]) -> str:
        if path not in self.known:
            try:
                self.known[path] = self.content_hash(path)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                problem = f"the checkpoint {path!r} cannot be read: {reason}; write random, pretrained, or a file's path"
                raise self.document.error(paths["weights"], problem) from None
        return self.known[path]
