"""Planning: from a sweep file to the jobs that are left to run here, without importing torch, timm
or Ray.

Points of one curve are measured on one host in one environment. A curve that is complete somewhere
is answered. Else it is continued on the present node that has most of it, or measured completely on
any node.
"""

import gc
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, Self

import typer

from orchestrator.plan.preview import Preview, preview_as_list, preview_lines
from orchestrator.plan.sites import (
    InfeasibleError,
    NodeRequirement,
    Site,
    by_device,
    demand_text,
    missing_packages,
    require_sites,
)
from orchestrator.plan.time_budget import comparison_ids, upper_bound_seconds
from store.errors import NoStoreError
from store.open.engine import Engine, connect_readonly, disposing
from store.read.answers import Change, Round, stale_answers
from store.read.answers import answers as stored_answers
from store.read.current_effects import measured_gmacs_per_second
from store.read.queries import stored_sweeps
from store.rows.location import database_option
from store.rows.placement import Group, Place, PlannedWork, curve_group
from store.rows.row_mapping import requested_params
from store.write import queue
from store.write.submission import NewSweep, newest_attempt, store_arm_labels, submit_sweep
from sweeps.errors import did_you_mean
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import Expansion, expand_file
from sweeps.language.yaml_reader import SweepError, shipped_sweeps
from sweeps.model.condition import NAMED_WEIGHTS, Condition, Device, Runtime, condition_fields
from sweeps.model.identity import canonical
from sweeps.model.job import Job, Pair, Protocol
from sweeps.number_format import count, duration
from workers.data import check_head, data_hash
from workers.data.corruptions import CORRUPTIONS
from workers.methods import all_methods
from workers.methods.arm_labels import params_label
from workers.training.recipes import recipe_hash


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

    def _plan(self, group: Sequence[PlannedJob], demand: NodeRequirement) -> GroupPlan:
        first = group[0]
        rounds = {key for each in group for key in each.rounds}
        if not first.group:
            return self._group_plan(None, rounds, {*self.answered, *self.tried})
        device = first.job.condition.device
        able = [site for site in self.sites if device in site.environments and site.meets(demand)]
        present = list(dict.fromkeys(site.place(device) for site in able))
        place = self.pins.get((first.group, demand_text(demand)))
        if place is None and not any(comparison_id in self.again for comparison_id, _ in rounds):
            unable = {site.host for site in self.sites} - {site.host for site in able}
            environments = {place.environment for place in present} | set(self.seen)
            for known, answered in self.answered.items():
                if (
                    known.environment in environments
                    and known.host not in unable
                    and rounds <= answered
                ):
                    return GroupPlan(None, rounds, rounds)
        if place is None:
            known_rounds = {
                each: len(rounds & (self._at(each, self.answered) | self._at(each, self.tried)))
                for each in present
            }
            place = max(present, key=known_rounds.__getitem__, default=None)
            if place is None or not known_rounds[place]:
                return GroupPlan(None, set(), set())
        return self._group_plan(place, rounds, [place])

    def _group_plan(
        self, place: Place | None, rounds: set[Round], places: Iterable[Place]
    ) -> GroupPlan:
        """What of the rounds is answered or was tried in some places."""
        done, tried = set[Round](), set[Round]()
        for each in places:
            done |= rounds & self._at(each, self.answered)
            tried |= rounds & self._at(each, self.tried)
        return GroupPlan(place, done, tried | {key for key in done if key[0] not in self.again})

    @staticmethod
    def _at(place: Place, found: Mapping[Place, set[Round]]) -> set[Round]:
        return found.get(place, set())


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
    gmacs_per_second: Mapping[Device, float] = field(default_factory=dict)
    """What the unmodified model reached in these environments, where that was measured."""

    def stale(self, engine: Engine) -> Counter[Change]:
        """What has changed since the store's answers to questions that are left, and to how many of
        them.
        """
        offered = by_device(self.sites).values()
        return stale_answers(engine, self.jobs, [*chain.from_iterable(offered)])

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(wanted.job for wanted in self.wanted)

    @property
    def files(self) -> list[str]:
        """Files of the user whose code runs, by their paths from the sweep."""
        return sorted({file for job in self.expansion.jobs for file in job.files})

    @property
    def left_ids(self) -> set[str]:
        """The comparisons that are left to measure, in part or as a whole."""
        return comparison_ids(self.jobs)

    @property
    def upper_bound_s(self) -> float:
        """Upper estimate of the measuring time in seconds, one job after the other, see
        `orchestrator/plan/estimate.py`.
        """
        return upper_bound_seconds(self.jobs, self.gmacs_per_second)


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

    With `between`, a grid along its sizes has further ones between its own.
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


class SweepSource(NamedTuple):
    """Where a sweep is read."""

    path: Path
    """The file, or the name of `text` in messages."""
    text: str | None = None
    """What is read instead of the file."""

    def load(self, *, auto: Device, between: bool = False) -> Expansion:
        """See `load_sweep`."""
        return load_sweep(self.path, auto=auto, text=self.text, between=between)


def find_source(given: Path, db: str | None) -> SweepSource:
    """The source that a command line names: a file, NAME.yaml in this folder, a sweep of the store,
    or one that ships.

    Raises `SweepError` for what is none of these.
    """
    if given.is_file():
        return SweepSource(given)
    name, shipped = given.name.removesuffix(".yaml"), shipped_sweeps()
    with existing_store(db) as engine:
        stored = {} if engine is None else stored_sweeps(engine)
    if str(given) == name:
        if (file := Path(f"{name}.yaml")).is_file():
            return SweepSource(file)
        if name in stored:
            typer.echo(f"{name}: the sweep of this name in the store", err=True)
            return SweepSource(given, stored[name])
        if name in shipped:
            typer.echo(f"{name}: {shipped[name]}", err=True)
            return SweepSource(shipped[name])
    if given.exists():
        return SweepSource(given)  # a folder, a pipe: the reader states what is wrong, or reads it
    raise SweepError(
        str(given), None, "", f"there is no such file{did_you_mean(name, {*stored, *shipped})}"
    )


def command_options(
    db: str | None, device: Device | None = None, ray_address: str | None = None
) -> str:
    """What a command that is printed needs besides, to go on where this one was given; each with a
    space before it.
    """
    given = {"--device": device, "--ray-address": ray_address}
    return database_option(db) + "".join(
        f" {name} {shlex.quote(value)}" for name, value in given.items() if value
    )


@contextmanager
def existing_store(db: str | None) -> Iterator[Engine | None]:
    """The store, open for reading; `None` if there is none yet, or nothing in it."""
    with ExitStack() as stack:
        engine = None
        with suppress(NoStoreError):
            engine = stack.enter_context(disposing(connect_readonly(db)))
        yield engine


def require_feasible(
    expansion: Expansion, sites: Collection[Site], *, devices: bool = True
) -> None:
    """Refuse what no site can run (without `devices`: labels alone). Raises `InfeasibleError` that
    names the device, the label, or the package that all arms lack.
    """
    requested: set[Device] = {job.condition.device for job in expansion.jobs} if devices else set()
    require_sites(requested, expansion.sweep.demands, sites)
    needed = _runtimes(expansion.jobs)
    missing = missing_packages(set().union(*needed), sites)
    if devices and missing and not any(missing.keys().isdisjoint(of_pair) for of_pair in needed):
        (runtime, reason), *_ = sorted(missing.items())
        raise InfeasibleError(f"every comparison requires runtime {runtime}, but {reason}")


def local_warnings(expansion: Expansion, sites: Collection[Site]) -> Iterator[str]:
    """What the sites lack for some of the comparisons, or for figures that mean anything."""
    for runtime, reason in missing_packages(set().union(*_runtimes(expansion.jobs)), sites).items():
        yield f"arms with runtime {runtime} will be `unsupported`: {reason}"
    conditions = {job.condition for job in expansion.jobs}
    for device, environments in by_device(sites).items():
        cores = max(float(found.facts.get("cores", inf)) for found in environments)
        most = max((one.threads or 0 for one in conditions if one.device == device), default=0)
        if most > cores:
            yield (
                f"threads: {most} is more than the {count(int(cores), 'core')} that a machine here"
                " has: threads wait for each other"
            )


def _runtimes(jobs: Iterable[Job]) -> set[frozenset[Runtime]]:
    """The runtimes that each comparison needs, of its arm and its baseline; equal ones once."""
    return {
        frozenset(job.arms[arm].overrides.runtime or job.condition.runtime for arm in pair)
        for job in jobs
        if "runtime" in condition_fields(job.kind)
        for pair in job.pairs
    }


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
    rates: dict[Device, float] = {}
    since, pins = None, dict[Group, Place]()
    if engine is not None:
        since, pins = newest_attempt(engine), queue.pins(engine, expansion.sweep.name)
        offered = by_device(sites)
        elsewhere = {*seen, *(place.environment for place in pins.values())}
        for device, of_device in protocols.items():
            here = {environment.environment_id for environment in offered.get(device, ())}
            if (rate := measured_gmacs_per_second(engine, here)) is not None:
                rates[device] = rate
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
    open_plan = Plan(expansion, sites, tuple(wanted), *counts, insufficient, errors, quarantined)
    return replace(open_plan, since=since, gmacs_per_second=rates)


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
        from sweeps.stats.curve import point_alpha  # imports NumPy

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
        size = job.kind if condition.image_size is None else f"{condition.image_size}px"
        if condition.prompt_tokens is not None:
            size += f"-{condition.prompt_tokens}+{condition.new_tokens}tokens"
        path = folder / f"{number:04d}-{model}-{size}-{job.job_id}.json"
        path.write_text(job.model_dump_json(indent=1) + "\n")
        paths.append(path)
    return paths


def answered_text(plan: Plan) -> str:
    """How many comparisons are answered, in words."""
    are = "is" if plan.requested == 1 else "are"
    return f"{plan.answered} of {count(plan.requested, 'comparison')} {are} answered"


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
    reasons = {
        "too few pairs": plan.insufficient,
        "an error": plan.errors,
        "only a slowed machine": plan.quarantined,
    }
    for why, ids in reasons.items():
        if found := plan.left_ids & ids.keys():
            yield f"{count(len(found), 'comparison')} measured before, with {why}"


def describe_plan(
    plan: Plan, shown: Preview | None = None, stale: Mapping[Change, int] | None = None
) -> str:
    """The plan in a few lines for people, and with a preview its arms."""
    expansion = plan.expansion
    arms = {job.arms[pair[1]].arm_id for job in expansion.jobs for pair in job.pairs}
    repeated = len(plan.left_ids) - (plan.requested - plan.answered)
    passes = max((job.protocol.passes for job in expansion.jobs), default=1)
    visited = f" ({passes} passes)" if passes > 1 else ""
    visits = sum(len(job.pairs) for job in plan.jobs)
    lines = [
        f"{expansion.sweep.name}: {expansion.sweep.question}",
        f"{count(expansion.points, 'point')} x {count(len(arms), 'arm')},"
        f" {count(plan.requested, 'comparison')} in {count(len(expansion.jobs), 'job')}{visited}"
        + (f", {expansion.excluded} excluded" if expansion.excluded else "")
        + (f", {expansion.duplicates} requested twice" if expansion.duplicates else ""),
        f"{answered_text(plan)} in this environment"
        + (f", {repeated} of them to be measured again" if repeated > 0 else "")
        + f"; {count(len(plan.jobs), 'job')} left"
        + (f" with {count(visits, 'measurement')}" if visits > len(plan.left_ids) else "")
        + (f", at most {duration(plan.upper_bound_s)} on an idle machine" if plan.jobs else ""),
    ]
    if files := plan.files:
        lines.append(f"runs the code in {', '.join(files)}")
    return "\n".join(
        [*lines, *describe_unanswered(plan, stale or {}), *(preview_lines(shown) if shown else ())]
    )


def plan_as_dict(plan: Plan, shown: Preview, stale: Mapping[Change, int]) -> dict[str, Any]:
    """The plan as plain data, for `breakeven plan --format json`."""
    return {
        "name": plan.expansion.sweep.name,
        "question": plan.expansion.sweep.question,
        "text": describe_plan(plan, None, stale),
        "points": plan.expansion.points,
        "jobs": len(plan.expansion.jobs),
        "comparisons": plan.requested,
        "excluded": plan.expansion.excluded,
        "duplicates": plan.expansion.duplicates,
        "answered": plan.answered,
        "stale": [
            {**change._asdict(), "comparisons": number} for change, number in sorted(stale.items())
        ],
        "files": plan.files,
        "jobs_left": [job.job_id for job in plan.jobs],
        "upper_bound_s": round(plan.upper_bound_s, 1),
        "warnings": list(shown.warnings),
        "limits": list(shown.limits),
        "arms": preview_as_list(shown),
    }
