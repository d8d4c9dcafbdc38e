"""Planning: from a sweep file to the jobs that still have to run here, without importing torch, timm or Ray."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from store.connection import Engine
from store.reading import answered_rounds
from sweeps.catalogue import networks
from sweeps.expansion import Expansion, load
from sweeps.job import Device, Job, Pair, Protocol
from sweeps.outcome import Environment
from workers.measure.memory import PASS_SECONDS
from workers.methods import methods

WARM_UP_SECONDS = 2.0
"""What building, checking and warming up the arms of one small job takes, for the estimate only."""


@dataclass(frozen=True)
class Plan:
    """What a sweep asks, and what of it is left to measure in these environments."""

    expansion: Expansion
    environments: Mapping[Device, Collection[Environment]]
    jobs: tuple[Job, ...]
    """Jobs reduced to the pairs that no environment of their device class has answered."""
    answered: int
    """Distinct comparisons that are answered already."""

    @property
    def at_most_s(self) -> float:
        """Upper estimate of the measuring time in seconds: every job uses its whole budget, one after the other."""
        return sum(WARM_UP_SECONDS + job.protocol.budget_s + len(job.arms) * PASS_SECONDS for job in self.jobs)


def preferred(devices: Iterable[Device]) -> Device:
    """The device class that `auto` stands for: a GPU where there is one."""
    return "cuda" if "cuda" in set(devices) else "cpu"


def read(path: Path | str, *, auto: Device, text: str | None = None) -> Expansion:
    """Expand the sweep file against the methods and models that this installation knows. Raises `SweepError`."""
    return load(path, methods=methods(), networks=networks(), auto=auto, text=text)


def plan(expansion: Expansion, engine: Engine | None, environments: Mapping[Device, Collection[Environment]]) -> Plan:
    """Ask the store what is answered and keep the rest; without a store everything is left."""
    rounds = _rounds(expansion, engine, environments)
    jobs = []
    for job in expansion.jobs:
        left = [
            Pair(*pair)
            for pair, comparison_id in zip(job.pairs, job.comparison_ids(), strict=True)
            if rounds.get(comparison_id, 0) <= job.round
        ]
        if left:
            jobs.append(job if len(left) == len(job.pairs) else job.only(left))
    open_ids = {comparison_id for job in jobs for comparison_id in job.comparison_ids()}
    asked = {comparison_id for job in expansion.jobs for comparison_id in job.comparison_ids()}
    return Plan(expansion, environments, tuple(jobs), len(asked - open_ids))


def _rounds(
    expansion: Expansion, engine: Engine | None, environments: Mapping[Device, Collection[Environment]]
) -> dict[str, int]:
    """For each comparison the rounds on record, precise enough, in the best covered environment of its device class."""
    if engine is None:
        return {}
    asked: dict[Device, dict[str, Protocol]] = {}
    for job in expansion.jobs:
        asked.setdefault(job.condition.device, {}).update(dict.fromkeys(job.comparison_ids(), job.protocol))
    rounds: dict[str, int] = {}
    for device, protocols in asked.items():
        ids = [environment.environment_id for environment in environments.get(device, ())]
        rounds.update(answered_rounds(engine, protocols, ids))
    return rounds


def write_jobs(jobs: Iterable[Job], folder: Path) -> list[Path]:
    """Write each job as JSON for `python -m workers.run`; returns the files, named by position, model and job id."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, job in enumerate(jobs):
        path = folder / f"{number:04d}-{job.condition.model}-{job.condition.image_size}px-{job.job_id}.json"
        path.write_text(job.model_dump_json(indent=1) + "\n")
        paths.append(path)
    return paths
