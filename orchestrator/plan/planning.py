"""Planning: from a sweep file to the jobs that are left to run here, without importing torch, timm
or Ray.
"""

import gc
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from orchestrator.plan.estimate import upper_bound_seconds
from orchestrator.plan.placement import Placement, PlannedJob
from orchestrator.plan.preview import Preview, preview_as_list, preview_lines
from orchestrator.plan.sites import Site, by_device, require_sites
from store.open.engine import Engine
from store.read.answers import Change, Round, stale_answers
from store.read.answers import answers as stored_answers
from store.rows.placement import Place, PlannedWork
from store.rows.row_mapping import requested_params
from store.write import queue
from store.write.submission import NewSweep, newest_attempt, store_arm_labels, submit_sweep
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import Expansion, expand_file
from sweeps.model.condition import NAMED_WEIGHTS, Condition, Device
from sweeps.model.identity import canonical
from sweeps.model.job import Job, Protocol
from sweeps.number_format import count, duration
from workers.data import check_head, data_hash
from workers.data.corruptions import CORRUPTIONS
from workers.methods import all_methods
from workers.methods.arm_labels import params_label
from workers.training.recipes import recipe_hash


@dataclass(frozen=True)
class Plan:
    """What a sweep requests, and what of it is left to measure in these environments."""

    expansion: Expansion
    sites: Collection[Site]
    wanted: tuple[PlannedWork, ...]
    """Jobs reduced to the pairs that are not answered where their curve is measured."""
    answered: int
    """Distinct comparisons that are answered already."""
    requested: int
    """Distinct comparisons in all."""
    insufficient: Mapping[str, int] = field(default_factory=dict)
    """Comparisons that are not answered because too few pairs were measured, and how many there
    are."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Comparisons that are not answered because of an error, and its message."""
    quarantined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Comparisons that were only measured while the machine was slowed, and the flags that state by
    what."""
    since: int | None = None
    """The newest attempt in the store before answers were looked up; `None` without a store."""

    def stale(self, engine: Engine) -> Counter[Change]:
        """What has changed since the store's answers to questions that are left, and to how many of
        them.
        """
        environments = [
            environment for site in self.sites for environment in site.environments.values()
        ]
        return stale_answers(engine, self.jobs, environments)

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(wanted.job for wanted in self.wanted)

    @property
    def upper_bound_s(self) -> float:
        """Upper estimate of the measuring time in seconds, one job after the other, see
        `orchestrator/plan/estimate.py`.
        """
        return upper_bound_seconds(self.jobs)


def preferred(devices: Iterable[Device]) -> Device:
    """The device class that `auto` stands for: a GPU where there is one."""
    return "cuda" if "cuda" in set(devices) else "cpu"


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """No cyclic garbage collection inside: of a large sweep it takes a third of the time and finds
    nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@without_garbage_collection()
def load_sweep(
    path: Path | str, *, auto: Device, text: str | None = None, between: bool = False
) -> Expansion:
    """Expand the sweep file against the methods and models that this installation knows. Raises
    `SweepError`.

    With `between`, a grid along `image_size` has further sizes between its own.
    """
    checked: set[tuple[str, str, str | None]] = set()
    listings: dict[str | None, Mapping[str, str]] = {}  # a folder of many images is listed once

    def contents(condition: Condition) -> Mapping[str, str]:
        if condition.data not in listings:

            def show(read: int, total: int) -> None:
                progress = f"{read / 1e6:.0f} of {total / 1e6:.0f} MB"
                typer.echo(
                    f"hashing {condition.data}: {progress}; unchanged files are not read again",
                    err=True,
                )

            listings[condition.data] = data_hash(condition, show)
        if (head := (condition.model, condition.weights, condition.data)) not in checked:
            if condition.weights not in NAMED_WEIGHTS and condition.model in networks():
                # of all that a plan does this alone needs torch
                from workers.models.vision import (
                    check_weights,
                )

                check_weights(condition)
            check_head(condition)
            checked.add(head)
        return {**recipe_hash(condition), **listings[condition.data]}

    return expand_file(
        path,
        methods=all_methods(),
        networks=networks(),
        auto=auto,
        text=text,
        contents=contents,
        corruptions=tuple(CORRUPTIONS),
        between=between,
    )


def require_feasible(
    expansion: Expansion, sites: Collection[Site], *, devices: bool = True
) -> None:
    """Refuse what no site can run (without `devices`: labels alone). Raises `InfeasibleError` that
    names the device or label.
    """
    requested: set[Device] = {job.condition.device for job in expansion.jobs} if devices else set()
    require_sites(requested, expansion.sweep.demands, sites)


@without_garbage_collection()
def make_plan(
    expansion: Expansion,
    engine: Engine | None,
    sites: Collection[Site],
    *,
    again: Collection[str] = (),
    only: Collection[str] | None = None,
    tried: Mapping[Place, set[Round]] | None = None,
    seen: Collection[str] = (),
) -> Plan:
    """Leave what the store does not answer; without a store everything is left.

    `again` holds ids of comparisons that are left although they are answered; `only` those of which
    nothing but one round is left; `tried` rounds that are not left in a place although they are not
    answered; `seen` environments, beside those of the sites, whose complete curves count.
    """
    jobs = [PlannedJob.of(job) for job in expansion.jobs]
    protocols: dict[Device, dict[str, Protocol]] = {}
    for each in jobs:
        protocols.setdefault(each.job.condition.device, {}).update(
            (key, each.job.protocol) for key, _ in each.rounds
        )
    answered: dict[Place, set[Round]] = {}
    insufficient: dict[str, int] = {}
    errors: dict[str, str] = {}
    quarantined: dict[str, tuple[str, ...]] = {}
    since = None if engine is None else newest_attempt(engine)
    pins = {} if engine is None else queue.pins(engine, expansion.sweep.name)
    if engine is not None:
        offered, elsewhere = (
            by_device(sites),
            {*seen, *(place.environment for place in pins.values())},
        )
        for device, of_device in protocols.items():
            here = {environment.environment_id for environment in offered.get(device, ())}
            found = stored_answers(engine, of_device, here | elsewhere)
            for place, rounds in found.at.items():
                answered.setdefault(place, set()).update(rounds)
            errors |= found.errors
            quarantined |= found.quarantined
            for (comparison_id, _), pairs in found.pairs.items():
                insufficient[comparison_id] = min(pairs, insufficient.get(comparison_id, pairs))
    wanted, open_ids = Placement(sites, answered, seen, pins, again, only, tried or {}).left(
        jobs, expansion.sweep.demands
    )
    everything = {comparison_id for of_device in protocols.values() for comparison_id in of_device}
    counts = len(everything - open_ids), len(everything)
    return Plan(expansion, sites, tuple(wanted), *counts, insufficient, errors, quarantined, since)


@without_garbage_collection()
def submit_plan(engine: Engine, plan: Plan) -> int:
    """Store the sweep, link all its comparisons, and queue what is left. Returns the row of the
    sweep.
    """
    sweep = plan.expansion.sweep
    jobs = [job for job in plan.expansion.jobs if job.round == 0]
    settings: dict[str, Any] = {
        "retry": sweep.retry.model_dump(mode="json"),
        "limits": sweep.limits.model_dump(mode="json"),
    }
    if sweep.search is not None:
        from sweeps.stats.search import point_alpha  # imports NumPy

        settings["point_alpha"] = point_alpha(sweep.search.max_points)
    new = NewSweep(sweep.name, plan.expansion.document.text, sweep.question, settings)
    row = submit_sweep(engine, new, jobs, plan.wanted, plan.since)
    store_arm_labels(engine, job_arm_labels(jobs))
    return row


def job_arm_labels(jobs: Iterable[Job]) -> dict[str, str]:
    """The label of each arm of some jobs, by its `arm_id`, as reports show it for a row of a
    view.
    """
    arms = {arm.arm_id: arm for job in jobs for arm in job.arms}
    return {
        key: params_label(arm.method, canonical(requested_params(arm))) for key, arm in arms.items()
    }


def write_jobs(jobs: Iterable[Job], folder: Path) -> list[Path]:
    """Write each job as JSON for `python -m workers.run`; returns the files, named by position,
    model, size and job id.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, job in enumerate(jobs):
        condition = job.condition
        model = re.sub(r"[^A-Za-z0-9._-]+", "_", condition.model).strip("._") or "model"
        size = f"-{condition.image_size}px" if condition.image_size is not None else f"-{job.kind}"
        size += (
            ""
            if condition.prompt_tokens is None
            else f"-{condition.prompt_tokens}+{condition.new_tokens}tokens"
        )
        path = folder / f"{number:04d}-{model}{size}-{job.job_id}.json"
        path.write_text(job.model_dump_json(indent=1) + "\n")
        paths.append(path)
    return paths


def answered_text(plan: Plan) -> str:
    """How many comparisons are answered, in words."""
    return f"{plan.answered} of {plan.requested} comparisons are answered"


def describe_unanswered(plan: Plan, stale: Mapping[Change, int]) -> Iterator[str]:
    """Why what was measured before counts as not answered."""
    for change, number in sorted(stale.items()):
        values = (
            f": {change.before or 'another'} then, {change.now} now"
            if change.now
            else " is another now"
        )
        yield (
            f"{count(number, 'comparison')} measured before, but not with this"
            f" {change.what}{values}"
        )
    left = {comparison_id for job in plan.jobs for comparison_id in job.comparison_ids()}
    reasons = {
        "too few pairs": plan.insufficient,
        "an error": plan.errors,
        "only a slowed machine": plan.quarantined,
    }
    for why, ids in reasons.items():
        if found := left & ids.keys():
            yield f"{count(len(found), 'comparison')} measured before, with {why}"


def describe_plan(
    plan: Plan, shown: Preview | None = None, stale: Mapping[Change, int] | None = None
) -> str:
    """The plan in a few lines for people, and with a preview its arms."""
    expansion = plan.expansion
    arms = {job.arms[pair[1]].arm_id for job in expansion.jobs for pair in job.pairs}
    left = {comparison_id for job in plan.jobs for comparison_id in job.comparison_ids()}
    repeated = len(left) - (plan.requested - plan.answered)
    passes = max((job.protocol.passes for job in expansion.jobs), default=1)
    visited = f" ({passes} passes)" if passes > 1 else ""
    lines = [
        f"{expansion.sweep.name}: {expansion.sweep.question}",
        f"{count(expansion.points, 'point')} x {count(len(arms), 'arm')},"
        f" {count(plan.requested, 'comparison')} in {count(len(expansion.jobs), 'job')}{visited}"
        + (f", {expansion.excluded} excluded" if expansion.excluded else "")
        + (f", {expansion.duplicates} requested twice" if expansion.duplicates else ""),
        f"{answered_text(plan)} in this environment"
        + (f", {repeated} of them to be measured again" if repeated > 0 else "")
        + f"; {count(len(plan.jobs), 'job')} left"
        + (f", at most {duration(plan.upper_bound_s)} on an idle machine" if plan.jobs else ""),
    ]
    return "\n".join(
        [*lines, *describe_unanswered(plan, stale or {}), *(preview_lines(shown) if shown else ())]
    )


def plan_as_dict(plan: Plan, shown: Preview, stale: Mapping[Change, int]) -> dict[str, Any]:
    """The plan as plain data, for `breakeven plan --format json`."""
    return {
        "name": plan.expansion.sweep.name,
        "question": plan.expansion.sweep.question,
        "points": plan.expansion.points,
        "jobs": len(plan.expansion.jobs),
        "comparisons": plan.requested,
        "excluded": plan.expansion.excluded,
        "duplicates": plan.expansion.duplicates,
        "answered": plan.answered,
        "stale": [
            {**change._asdict(), "comparisons": number} for change, number in sorted(stale.items())
        ],
        "jobs_left": [job.job_id for job in plan.jobs],
        "upper_bound_s": round(plan.upper_bound_s, 1),
        "warnings": list(shown.warnings),
        "limits": list(shown.limits),
        "arms": preview_as_list(shown),
    }
