"""Planning: from a sweep file to the jobs that still have to run here, without importing torch, timm or Ray."""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.estimate import at_most
from orchestrator.garbage import uncollected
from orchestrator.preview import Preview, as_list, table
from store.answers import answers as known_answers
from store.connection import Engine
from sweeps.catalogue import networks
from sweeps.expansion import Expansion, load
from sweeps.job import Condition, Device, Job, Pair, Protocol
from sweeps.outcome import Environment
from workers.artifacts import recipe
from workers.data import check_head, listing
from workers.data.corruptions import CORRUPTIONS
from workers.methods import every


class InfeasibleError(Exception):
    """A sweep asks for a device that is not there; one line for people."""


@dataclass(frozen=True)
class Plan:
    """What a sweep asks, and what of it is left to measure in these environments."""

    expansion: Expansion
    environments: Mapping[Device, Collection[Environment]]
    jobs: tuple[Job, ...]
    """Jobs reduced to the pairs that no environment of their device class has answered."""
    answered: int
    """Distinct comparisons that are answered already."""
    asked: int
    """Distinct comparisons in all."""
    insufficient: Mapping[str, int] = field(default_factory=dict)
    """Comparisons that are not answered because too few pairs were measured, and how many there are."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Comparisons that are not answered because they failed for a reason that is no answer, and its message."""

    @property
    def at_most_s(self) -> float:
        """Upper estimate of the measuring time in seconds, one job after the other, see `orchestrator/estimate.py`."""
        return at_most(self.jobs)


def preferred(devices: Iterable[Device]) -> Device:
    """The device class that `auto` stands for: a GPU where there is one."""
    return "cuda" if "cuda" in set(devices) else "cpu"


def require(devices: Collection[Device], environments: Mapping[Device, Collection[Environment]]) -> None:
    """Refuse at once what no machine here can run. Raises `InfeasibleError`."""
    missing = sorted(set(devices) - set(environments))
    if missing:
        there = "; ".join(f"{device}: {next(iter(found)).device_name}" for device, found in environments.items() if found)
        raise InfeasibleError(f"the sweep asks for device {', '.join(missing)}, and there is only {there or 'nothing'}")


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
        return {**recipe(condition), **listings[condition.data]}

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


@uncollected()
def plan(
    expansion: Expansion,
    engine: Engine | None,
    environments: Mapping[Device, Collection[Environment]],
    *,
    again: Collection[str] = (),
    tried: Collection[tuple[str, int]] = (),
) -> Plan:
    """Ask the store what is answered and keep the rest; without a store everything is left.

    `again` holds ids of comparisons that are left although they are answered; `tried` rounds (comparison id, round) that are
    not left although they are not answered.
    """
    asked: dict[Device, dict[str, Protocol]] = {}
    for job in expansion.jobs:
        asked.setdefault(job.condition.device, {}).update(dict.fromkeys(job.comparison_ids(), job.protocol))
    known: set[tuple[str, int]] = set()
    insufficient: dict[str, int] = {}
    errors: dict[str, str] = {}
    if engine is not None:
        for device, protocols in asked.items():
            here = [environment.environment_id for environment in environments.get(device, ())]
            found = known_answers(engine, protocols, here)
            known |= found.answered
            errors |= found.errors
            for (comparison_id, _), pairs in found.pairs.items():
                insufficient[comparison_id] = min(pairs, insufficient.get(comparison_id, pairs))
    everything = {comparison_id for protocols in asked.values() for comparison_id in protocols}
    keys = ((job, key) for job in expansion.jobs for key in job.comparison_ids())
    open_ids = {key for job, key in keys if (key, job.round) not in known}
    settled = {key for key in known if key[0] not in again} | set(tried)
    jobs = tuple(left for left in (_left(job, settled) for job in expansion.jobs) if left is not None)
    return Plan(expansion, environments, jobs, len(everything - open_ids), len(everything), insufficient, errors)


def _left(job: Job, settled: Collection[tuple[str, int]]) -> Job | None:
    """The job without the pairs that are settled in its round; `None` if nothing is left of it."""
    pairs = [Pair(*pair) for pair, key in zip(job.pairs, job.comparison_ids(), strict=True) if (key, job.round) not in settled]
    if len(pairs) == len(job.pairs):
        return job
    return job.only(pairs) if pairs else None


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


def describe(plan: Plan, shown: Preview | None = None) -> str:
    """The plan in a few lines for people, and with a preview its arms."""
    expansion = plan.expansion
    arms = {job.arms[pair[1]].arm_id for job in expansion.jobs for pair in job.pairs}
    lines = [
        f"{expansion.sweep.name}: {expansion.sweep.question}",
        f"{expansion.points} points x {len(arms)} arms, {plan.asked} comparisons in {len(expansion.jobs)} jobs"
        + (f", {expansion.excluded} excluded" if expansion.excluded else "")
        + (f", {expansion.duplicates} asked twice" if expansion.duplicates else ""),
        f"{answers(plan)} in this environment; {len(plan.jobs)} jobs left"
        + (f", at most {duration(plan.at_most_s)}" if plan.jobs else ""),
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


def duration(seconds: float) -> str:
    """`45 s`, `12 min` or `3.4 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
