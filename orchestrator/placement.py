"""Placing: which rounds of a sweep's comparisons are left, and on which place each curve is measured or continued.

Points of one curve are measured on one host in one environment. A curve that is whole somewhere is answered. Else it is continued
on the node of today that has most of it, or measured whole wherever a node takes it up.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from orchestrator.sites import Demand, Site, demand_text
from store.answers import Round
from store.placement import Group, Place, Wanted, curve_group
from sweeps.job import Job, Pair


class Asked(NamedTuple):
    """A job of a sweep, with what is dear to compute of it."""

    job: Job
    rounds: tuple[Round, ...]
    """Of its pairs, in their order."""
    group: str
    """Its `curve_group`."""

    @classmethod
    def of(cls, job: Job) -> Self:
        return cls(job, tuple((comparison_id, job.round) for comparison_id in job.comparison_ids()), curve_group(job))

    @property
    def key(self) -> str:
        return self.group or f"{self.job.kind} {self.job.condition.device}"

    def without(self, settled: Collection[Round]) -> Job | None:
        """The job without the pairs that are settled in its round; `None` if nothing is left of it."""
        pairs = [Pair(*pair) for pair, key in zip(self.job.pairs, self.rounds, strict=True) if key not in settled]
        if len(pairs) == len(self.job.pairs):
            return self.job
        return self.job.only(pairs) if pairs else None


class Choice(NamedTuple):
    """What becomes of a group of jobs."""

    place: Place | None
    """Where the rest is to be measured; `None`: wherever."""
    answered: set[Round]
    """What is answered there, or in a place that has answered all."""
    settled: set[Round]
    """What is not to be measured now."""


@dataclass(frozen=True)
class Placing:
    """What is known when a sweep is planned."""

    sites: Collection[Site]
    at: Mapping[Place, set[Round]]
    """What is answered in each place."""
    seen: Collection[str] = ()
    """Environments, beside those of the sites, whose answers count where a place has them all."""
    pins: Mapping[Group, Place] = field(default_factory=dict)
    """Where other dispatchers are measuring groups."""
    again: Collection[str] = ()
    """Comparisons to be measured although they are answered."""
    tried: Mapping[Place, set[Round]] = field(default_factory=dict)
    """What is not to be measured once more in a place though it is not answered."""

    def left(self, jobs: Collection[Asked], demands: Collection[Demand]) -> tuple[list[Wanted], set[str]]:
        """The jobs left, in order, reduced to what is to be measured, and the ids of the comparisons that are not answered.

        Every demand asks for whole curves of its own; what no machine changes (accuracy, quality) is asked by the first alone.
        """
        groups: dict[str, list[Asked]] = {}
        for asked in jobs:
            groups.setdefault(asked.key, []).append(asked)
        wanted: list[Wanted] = []
        unanswered: set[str] = set()
        for number, demand in enumerate(demands or [{}]):
            choices = {key: self._choose(group, demand) for key, group in groups.items()}
            for asked in jobs:
                if number and not asked.group:
                    continue
                choice = choices[asked.key]
                unanswered |= {key[0] for key in asked.rounds if key not in choice.answered}
                if (rest := asked.without(choice.settled)) is not None:
                    wanted.append(Wanted(rest, demand_text(demand), choice.place))
        return wanted, unanswered

    def _choose(self, group: Collection[Asked], demand: Demand) -> Choice:
        device = next(iter(group)).job.condition.device
        asked = {key for each in group for key in each.rounds}
        if not next(iter(group)).group:
            return self._choice(None, asked, self.at.values(), self.tried.values())
        able = [site for site in self.sites if device in site.environments and site.meets(demand)]
        present = list(dict.fromkeys(site.place(device) for site in able))
        place = self.pins.get((next(iter(group)).group, demand_text(demand)))
        if place is None:
            unable = {site.host for site in self.sites} - {site.host for site in able}
            environments = {place.environment for place in present} | set(self.seen)
            for known, rounds in self.at.items():
                whole = known.environment in environments and known.host not in unable and asked <= rounds
                if whole and not (self.again and any(comparison_id in self.again for comparison_id, _ in asked)):
                    return Choice(None, asked, asked)
            known_by_place = {place: self._known(place, asked) for place in present}
            place = max(known_by_place, key=lambda place: known_by_place[place], default=None)
            if place is None or not known_by_place[place]:
                return Choice(None, set(), set())
        return self._choice(place, asked, [self.at.get(place, set())], [self.tried.get(place, set())])

    def _choice(
        self, place: Place | None, asked: set[Round], answered: Iterable[set[Round]], tried: Iterable[set[Round]]
    ) -> Choice:
        done = {key for rounds in answered for key in asked & rounds}
        settled = {key for key in done if key[0] not in self.again} if self.again else done
        return Choice(place, done, settled.union(*(asked & rounds for rounds in tried)))

    def _known(self, place: Place, asked: set[Round]) -> int:
        """How much of what is asked was measured, or at least tried, in a place."""
        return len((asked & self.at.get(place, set())) | (asked & self.tried.get(place, set())))
