"""Placement: which rounds of a sweep's comparisons are left, and on which host each curve is
measured or continued.

Points of one curve are measured on one host in one environment. A curve that is complete somewhere
is answered. Else it is continued on the present node that has most of it, or measured completely on
any node.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from orchestrator.plan.sites import NodeRequirement, Site, demand_text
from store.read.answers import Round
from store.rows.placement import Group, Place, PlannedWork, curve_group
from sweeps.model.job import Job, Pair


class PlannedJob(NamedTuple):
    """A job of a sweep, with identities that are slow to compute."""

    job: Job
    rounds: tuple[Round, ...]
    """Of its pairs, in their order."""
    group: str
    """Its `curve_group`."""

    @classmethod
    def of(cls, job: Job) -> Self:
        return cls(
            job,
            tuple((comparison_id, job.round) for comparison_id in job.comparison_ids()),
            curve_group(job),
        )

    @property
    def key(self) -> str:
        return self.group or f"{self.job.kind} {self.job.condition.device}"

    def without(self, settled: Collection[Round]) -> Job | None:
        """The job without the pairs that are settled in its round; `None` if none is left."""
        pairs = [
            Pair(*pair)
            for pair, key in zip(self.job.pairs, self.rounds, strict=True)
            if key not in settled
        ]
        if len(pairs) == len(self.job.pairs):
            return self.job
        return self.job.only(pairs) if pairs else None


class GroupPlan(NamedTuple):
    """What is to be done for a group of jobs."""

    place: Place | None
    """Where the rest is to be measured; `None`: anywhere."""
    answered: set[Round]
    """What is answered there, or in a place that has answered all."""
    settled: set[Round]
    """What is not to be measured now."""


@dataclass(frozen=True)
class Placement:
    """What is known when a sweep is planned."""

    sites: Collection[Site]
    answered: Mapping[Place, set[Round]]
    seen: Collection[str] = ()
    """Environments, beside those of the sites, whose answers count where a place has them all."""
    pins: Mapping[Group, Place] = field(default_factory=dict)
    """Where other dispatchers are measuring groups."""
    again: Collection[str] = ()
    """Comparisons to be measured although they are answered."""
    only: Collection[str] | None = None
    """Comparisons of which one more round is to be measured, and nothing else; `None`: all."""
    tried: Mapping[Place, set[Round]] = field(default_factory=dict)
    """What is not to be measured once more in a place though it is not answered."""

    def left(
        self, jobs: Collection[PlannedJob], demands: Collection[NodeRequirement]
    ) -> tuple[list[PlannedWork], set[str]]:
        """The jobs left, in order, reduced to what is to be measured, and the ids of the
        comparisons that are not answered.

        Every demand needs complete curves of its own; jobs whose answers no machine changes belong
        to the first alone.
        """
        groups: dict[str, list[PlannedJob]] = {}
        for each in jobs:
            groups.setdefault(each.key, []).append(each)
        wanted: list[PlannedWork] = []
        unanswered: set[str] = set()
        for number, demand in enumerate(demands or [{}]):
            plans = {key: self._plan(group, demand) for key, group in groups.items()}
            for each in jobs:
                if number and not each.group:
                    continue
                plan = plans[each.key]
                unanswered |= {key[0] for key in each.rounds if key not in plan.answered}
                settled = plan.settled
                if self.only is not None:
                    settled = {
                        key
                        for key in each.rounds
                        if key in settled or key[1] or key[0] not in self.only
                    }
                if (rest := each.without(settled)) is not None:
                    wanted.append(PlannedWork(rest, demand_text(demand), plan.place))
        return wanted, unanswered

    def _plan(self, group: Collection[PlannedJob], demand: NodeRequirement) -> GroupPlan:
        first = next(iter(group))
        rounds = {key for each in group for key in each.rounds}
        if not first.group:
            return self._group_plan(None, rounds, self.answered.values(), self.tried.values())
        device = first.job.condition.device
        able = [site for site in self.sites if device in site.environments and site.meets(demand)]
        present = list(dict.fromkeys(site.place(device) for site in able))
        place = self.pins.get((first.group, demand_text(demand)))
        if place is None:
            if not any(comparison_id in self.again for comparison_id, _ in rounds):
                unable = {site.host for site in self.sites} - {site.host for site in able}
                environments = {place.environment for place in present} | set(self.seen)
                for known, answered in self.answered.items():
                    if (
                        known.environment in environments
                        and known.host not in unable
                        and rounds <= answered
                    ):
                        return GroupPlan(None, rounds, rounds)
            known_rounds = {
                each: len(rounds & (self._at(each, self.answered) | self._at(each, self.tried)))
                for each in present
            }
            place = max(present, key=known_rounds.__getitem__, default=None)
            if place is None or not known_rounds[place]:
                return GroupPlan(None, set(), set())
        return self._group_plan(
            place, rounds, [self._at(place, self.answered)], [self._at(place, self.tried)]
        )

    def _group_plan(
        self,
        place: Place | None,
        rounds: set[Round],
        answered: Iterable[set[Round]],
        tried: Iterable[set[Round]],
    ) -> GroupPlan:
        done = {key for found in answered for key in rounds & found}
        settled = {key for key in done if key[0] not in self.again} if self.again else done
        return GroupPlan(place, done, settled.union(*(rounds & found for found in tried)))

    @staticmethod
    def _at(place: Place, found: Mapping[Place, set[Round]]) -> set[Round]:
        return found.get(place, set())
