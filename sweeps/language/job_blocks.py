"""Block: all that a sweep compares under one condition of one kind of job, its split into jobs, and
the hashes that it needs.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sweeps.errors import WeightsError
from sweeps.geometry.local_llm import content, is_folder
from sweeps.language.yaml_reader import Document, KeyPath
from sweeps.model.condition import NAMED_WEIGHTS, Condition, Kind
from sweeps.model.identity import digest
from sweeps.model.job import NAMED, NAMING, Arm, Job, Pair
from sweeps.model.kinds import KINDS
from sweeps.model.protocol import Protocol

Contents = Callable[[Condition], Mapping[str, str]]
"""Hashes of what a condition names besides a checkpoint file; raises `OSError` or `ValueError`
where there is none."""


@dataclass
class Block:
    """All that is compared under one condition."""

    kind: Kind
    condition: Condition
    content_hashes: dict[str, str]
    baselines: dict[str, Arm] = field(default_factory=dict)
    arms: dict[str, Arm] = field(default_factory=dict)
    """Arms that are no baseline."""
    pairs: dict[tuple[str, str], None] = field(default_factory=dict)
    """(baseline, arm) by their identities, in order."""

    def parts(self, limit: int) -> int:
        """How many jobs `jobs` gives."""
        return (
            max(1, math.ceil(len(self.arms) / (limit - len(self.baselines)))) if self.pairs else 0
        )

    def jobs(self, protocol: Protocol, limit: int) -> Iterator[Job]:
        """The block as jobs of at most `limit` arms, each with all baselines."""
        room = limit - len(self.baselines)
        names = list(self.arms)
        for part in range(self.parts(limit)):
            keys = [*self.baselines, *names[part * room : (part + 1) * room]]
            place = {key: index for index, key in enumerate(keys)}
            # a baseline that is also an arm belongs to the first part
            chosen = [
                (b, a)
                for b, a in self.pairs
                if a in place and (a not in self.baselines or part == 0)
            ]
            yield Job(
                kind=self.kind,
                condition=self.condition,
                arms=tuple(self.baselines.get(key) or self.arms[key] for key in keys),
                pairs=tuple(Pair(place[b], place[a]) for b, a in chosen),
                protocol=protocol,
                content_hashes=dict(self.content_hashes),
                protocol_version=KINDS[self.kind].protocol_version,
            )


def sha256(path: str) -> str:
    """Of the file at `path`, which counts from the current folder."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass
class Hasher:
    """Hashes of what a sweep only names (checkpoint, recipe of trained weights, data), by which
    stale answers are known.
    """

    document: Document
    content_hash: Callable[[str], str]
    """Hash of a file by its path."""
    more: Contents
    names: dict[str, str] = field(default_factory=dict)
    """Of what parameters name, by name."""

    def hashes(self, condition: Condition, paths: Mapping[str, KeyPath]) -> dict[str, str]:
        """What belongs in `Job.content_hashes`; `paths` holds the places of the condition's fields.
        Raises `SweepError`.
        """
        own = {}
        if condition.weights not in NAMED_WEIGHTS:
            try:
                own["weights"] = self.content_hash(condition.weights)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                problem = f"the checkpoint {condition.weights!r} cannot be read: {reason}"
                right = "write random, pretrained, or a file's path"
                raise self.document.error(paths["weights"], f"{problem}; {right}") from None
        try:
            if is_folder(condition.model):
                own = {"model": content(condition.model)}
            return {**own, **self.more(condition)}
        except (OSError, ValueError) as error:
            name = "weights" if isinstance(error, WeightsError) or not condition.data else "data"
            raise self.document.error(
                paths.get(name, (name,)), f"cannot be used: {error}"
            ) from None

    def named(self, arm: Arm, path: KeyPath) -> dict[str, str]:
        """What the parameters of an arm (written at `path`) name, for `Job.content_hashes`. Raises
        `SweepError`.
        """
        unknown = [
            (step.method, key, name)
            for step in (arm.stack if arm.names else ())
            for key in NAMING
            if isinstance(name := step.params.get(key), str) and name not in self.names
        ]
        for method, key, name in unknown:
            try:
                data = Condition.model_construct(model="", data=name)
                self.names[name] = (
                    self.content_hash(name) if key == "file" else digest(dict(self.more(data)))
                )
            except (OSError, ValueError) as error:
                why = (
                    f"{name}: {error.strerror}"
                    if isinstance(error, OSError) and error.strerror
                    else str(error)
                )
                raise self.document.error(path, f"{method}.{key} cannot be used: {why}") from None
        return {f"{NAMED}{name}": self.names[name] for name in arm.names}
