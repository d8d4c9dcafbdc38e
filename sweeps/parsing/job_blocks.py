"""Block: all that a sweep compares under one condition of one kind of job, and its split into jobs."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeps.job import Arm, Condition, Job, Kind, Overrides, Pair, condition_fields
from sweeps.protocol import Protocol


def of_kind(kind: Kind, condition: Condition) -> Condition:
    """`condition` with the fields that an answer of this kind does not depend on at their defaults, so that equal ones merge.

    A severity without a corruption has no meaning either.
    """
    values: dict[str, Any] = {name: getattr(condition, name) for name in condition_fields(kind)}
    if values.get("corruption") is None:
        values.pop("severity", None)
    return Condition.model_construct(**values)


def overrides_of_kind(kind: Kind, overrides: Overrides, condition: Condition) -> Overrides:
    """`overrides` less those that the kind does not depend on, and those that only repeat `condition`."""
    kept = {name: value if name in condition_fields(kind) else None for name, value in overrides}
    return Overrides(**kept).without_repeats(condition)


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
        return max(1, math.ceil(len(self.arms) / (limit - len(self.baselines)))) if self.pairs else 0

    def jobs(self, protocol: Protocol, limit: int) -> Iterator[Job]:
        """The block as jobs of at most `limit` arms, each with all baselines."""
        room = limit - len(self.baselines)
        names = list(self.arms)
        for start in range(0, max(1, len(names)), room):
            keys = [*self.baselines, *names[start : start + room]]
            place = {key: index for index, key in enumerate(keys)}
            # a baseline that is also an arm belongs to the first part
            chosen = [(b, a) for b, a in self.pairs if a in place and (a not in self.baselines or start == 0)]
            yield Job(
                kind=self.kind,
                condition=self.condition,
                arms=tuple(self.baselines.get(key) or self.arms[key] for key in keys),
                pairs=tuple(Pair(place[b], place[a]) for b, a in chosen),
                protocol=protocol,
                content_hashes=dict(self.content_hashes),
            )


def first_round(blocks: Iterable[Block], protocols: Mapping[Kind, Protocol], limit: int) -> list[Job]:
    """The jobs of `blocks`, kind after kind in the order of `protocols`, each of at most `limit` arms."""
    known = list(blocks)
    return [
        job
        for kind, protocol in protocols.items()
        for block in known
        if block.kind == kind and block.pairs
        for job in block.jobs(protocol, limit)
    ]


def later_rounds(first: Sequence[Job]) -> Iterator[Job]:
    """The jobs of the first round again, as often as their protocols request, round after round."""
    for turn in range(1, max((job.protocol.rounds for job in first), default=1)):
        for job in first:
            if turn < job.protocol.rounds:
                yield job.model_copy(update={"round": turn})
