"""Planning: from a sweep file to the jobs that still have to run here, without importing torch, timm or Ray."""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.estimate import at_most
from orchestrator.gc_pause import uncollected
from orchestrator.placement import Asked, Placing
from orchestrator.preview import Preview, as_list, table
from orchestrator.sites import Site, by_device, require
from store import queue
from store.answers import Round
from store.answers import answers as known_answers
from store.engine import Engine
from store.overlap import newest_attempt
from store.placement import Place, Wanted
from sweeps.geometry.vit_catalogue import networks
from sweeps.job import Condition, Device, Job
from sweeps.number_format import count, duration
from sweeps.outcome import Environment
from sweeps.parsing.expand import Expansion, load
from sweeps.protocol import Protocol
from workers.data import check_head, listing
from workers.data.corruptions import CORRUPTIONS
from workers.methods import every
from workers.training.recipes import recipe_hash


@dataclass(frozen=True)
class Plan:
    """What a sweep asks, and what of it is left to measure in these environments."""

    expansion: Expansion
    sites: Collection[Site]
    wanted: tuple[Wanted, ...]
    """Jobs reduced to the pairs that are not answered where their curve is measured."""
    answered: int
    """Distinct comparisons that are answered already."""
    asked: int
    """Distinct comparisons in all."""
    insufficient: Mapping[str, int] = field(default_factory=dict)
    """Comparisons that are not answered because too few pairs were measured, and how many there are."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Comparisons that are not answered because they failed for a reason that is no answer, and its message."""
    since: int | None = None
    """The newest attempt in the store before it was asked; `None` without a store."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(wanted.job for wanted in self.wanted)

    @property
    def environments(self) -> Mapping[Device, Collection[Environment]]:
        """The environments that the sites offer."""
        return by_device(self.sites)

    @property
    def at_most_s(self) -> float:
        """Upper estimate of the measuring time in seconds, one job after the other, see `orchestrator/estimate.py`."""
        return at_most(self.jobs)


def preferred(devices: Iterable[Device]) -> Device:
    """The device class that `auto` stands for: a GPU where there is one."""
    return "cuda" if "cuda" in set(devices) else "cpu"


@uncollected()
def read(path: Path | str, *, auto: Device, text: str | None = None) -> Expansion:
    """Expand the sweep file against the methods and models that this installation knows. Raises `SweepError`."""
    fitting: set[tuple[str, str, str | None]] = set()
    listings: dict[str | None, Mapping[str, str]] = {}  # a folder of many images is listed once

    def contents(condition: Condition) -> Mapping[str, str]:
        if condition.data not in listings:
            listings[condition.data] = listing(condition, _hashing(condition.data))
        if (asked := (condition.model, condition.weights, condition.data)) not in fitting:
            check_head(condition)
            fitting.add(asked)
        return {**recipe_hash(condition), **listings[condition.data]}

    return load(
        path,
        methods=every(),
        networks=networks(),
        auto=auto,
        text=text,
        contents=contents,
        corruptions=tuple(CORRUPTIONS),
    )


def _hashing(data: str | None) -> Callable[[int, int], None]:
    """Shows on standard error how far the files of `data` have been read; the first time, all of them are."""

    def show(read: int, total: int) -> None:
        sys.stderr.write(f"hashing {data}: {read / 1e6:.0f} of {total / 1e6:.0f} MB; unchanged files are not read again\n")
        sys.stderr.flush()

    return show


def demand(expansion: Expansion, sites: Collection[Site], *, devices: bool = True) -> None:
    """Refuse at once what no site can run, or only absent labels. Raises `InfeasibleError` that names the device or label."""
    asked: set[Device] = {job.condition.device for job in expansion.jobs} if devices else set()
    require(asked, expansion.sweep.demands, sites)


@uncollected()
def plan(
    expansion: Expansion,
    engine: Engine | None,
    sites: Collection[Site],
    *,
    again: Collection[str] = (),
    tried: Mapping[Place, set[Round]] | None = None,
    seen: Collection[str] = (),
) -> Plan:
    """Ask the store what is answered and keep the rest; without a store everything is left.

    `again` holds ids of comparisons that are left although they are answered; `tried` rounds that are not left in a place
    although they are not answered; `seen` environments, beside those of the sites, whose whole curves count.
    """
    jobs = [Asked.of(job) for job in expansion.jobs]
    protocols: dict[Device, dict[str, Protocol]] = {}
    for asked in jobs:
        protocols.setdefault(asked.job.condition.device, {}).update((key, asked.job.protocol) for key, _ in asked.rounds)
    at: dict[Place, set[Round]] = {}
    insufficient: dict[str, int] = {}
    errors: dict[str, str] = {}
    since = None if engine is None else newest_attempt(engine)
    pins = {} if engine is None else queue.pins(engine, expansion.sweep.name)
    if engine is not None:
        offered, elsewhere = by_device(sites), {*seen, *(place.environment for place in pins.values())}
        for device, of_device in protocols.items():
            here = {environment.environment_id for environment in offered.get(device, ())}
            found = known_answers(engine, of_device, here | elsewhere)
            for place, rounds in found.at.items():
                at.setdefault(place, set()).update(rounds)
            errors |= found.errors
            for (comparison_id, _), pairs in found.pairs.items():
                insufficient[comparison_id] = min(pairs, insufficient.get(comparison_id, pairs))
    wanted, open_ids = Placing(sites, at, seen, pins, again, tried or {}).left(jobs, expansion.sweep.demands)
    everything = {comparison_id for of_device in protocols.values() for comparison_id in of_device}
    return Plan(expansion, sites, tuple(wanted), len(everything - open_ids), len(everything), insufficient, errors, since)


def write_jobs(jobs: Iterable[Job], folder: Path) -> list[Path]:
    """Write each job as JSON for `python -m workers.run`; returns the files, named by position, model, size and job id."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, job in enumerate(jobs):
        path = folder / f"{number:04d}-{_named(job)}-{job.job_id}.json"
        path.write_text(job.model_dump_json(indent=1) + "\n")
        paths.append(path)
    return paths


def _named(job: Job) -> str:
    """Model and size of a job as part of a file's name."""
    condition = job.condition
    model = re.sub(r"[^A-Za-z0-9._-]+", "_", condition.model).strip("._") or "model"
    if condition.image_size is not None:
        return f"{model}-{condition.image_size}px"
    size = "" if condition.prompt_tokens is None else f"-{condition.prompt_tokens}+{condition.new_tokens}tokens"
    return f"{model}-{job.kind}{size}"


def answers(plan: Plan) -> str:
    """How many comparisons are answered, in words."""
    return f"{plan.answered} of {plan.asked} comparisons are answered"


def _repeats(plan: Plan) -> str:
    """How many of the answered comparisons are to be measured again."""
    left = {comparison_id for job in plan.jobs for comparison_id in job.comparison_ids()}
    repeated = len(left) - (plan.asked - plan.answered)
    return f", {repeated} of them to be measured again" if repeated > 0 else ""


def describe(plan: Plan, shown: Preview | None = None) -> str:
    """The plan in a few lines for people, and with a preview its arms."""
    expansion = plan.expansion
    arms = {job.arms[pair[1]].arm_id for job in expansion.jobs for pair in job.pairs}
    lines = [
        f"{expansion.sweep.name}: {expansion.sweep.question}",
        f"{count(expansion.points, 'point')} x {count(len(arms), 'arm')}, {count(plan.asked, 'comparison')} "
        f"in {count(len(expansion.jobs), 'job')}"
        + (f", {expansion.excluded} excluded" if expansion.excluded else "")
        + (f", {expansion.duplicates} asked twice" if expansion.duplicates else ""),
        f"{answers(plan)} in this environment{_repeats(plan)}; {count(len(plan.jobs), 'job')} left"
        + (f", at most {duration(plan.at_most_s)} on an idle machine" if plan.jobs else ""),
    ]
    return "\n".join([*lines, *(table(shown) if shown else ())])


def as_dict(plan: Plan, shown: Preview) -> dict[str, Any]:
    """The plan as plain data, for `breakeven plan --format json`."""
    return {
        "name": plan.expansion.sweep.name,
        "question": plan.expansion.sweep.question,
        "points": plan.expansion.points,
        "jobs": len(plan.expansion.jobs),
        "comparisons": plan.asked,
        "excluded": plan.expansion.excluded,
        "duplicates": plan.expansion.duplicates,
        "answered": plan.answered,
        "jobs_left": [job.job_id for job in plan.jobs],
        "at_most_s": round(plan.at_most_s, 1),
        "warnings": list(shown.warnings),
        "arms": as_list(shown),
    }
