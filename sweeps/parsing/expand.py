"""Expansion: a sweep file turned into the jobs and comparisons that it requests."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sweeps.geometry.llm_geometry import languages as known
from sweeps.geometry.model_families import LanguageModels, VisionModels
from sweeps.job import Arm, Comparison, Condition, Device, Job, Kind
from sweeps.kinds import kinds_of
from sweeps.method import AnyMethod, LanguageNetwork, Network
from sweeps.parsing.arm_checks import Refusals
from sweeps.parsing.arm_parser import OVERRIDES, Candidate, Entry, condition_keys, entry
from sweeps.parsing.condition_parser import FIELDS, KnownNames, check_exclusive, check_kinds, condition_of_kind
from sweeps.parsing.content_hashes import Contents, Hasher, sha256
from sweeps.parsing.exclude_rules import Rule, rules
from sweeps.parsing.file_schema import Sweep, parse
from sweeps.parsing.grid import (
    GridPoint,
    check_jobs,
    check_schedules,
    check_size,
    defaults,
    family_of,
    idle_groups,
    point,
    points,
    required,
)
from sweeps.parsing.job_blocks import Block, first_round, later_rounds, overrides_of_kind
from sweeps.parsing.yaml_reader import Document, KeyPath, SweepError, read

_LOOKS_PER_JOB = 20
"""Arms looked at for every arm that `max_jobs` allows: bounds the search through a grid that rules empty."""


@dataclass(frozen=True)
class Expansion:
    """What a sweep requests, in the order in which it is to be measured."""

    sweep: Sweep
    text: str
    """The file as it was read."""
    jobs: tuple[Job, ...]
    """All jobs of the first round, then those of the second …"""
    comparisons: tuple[Comparison, ...]
    """Distinct, in order."""
    points: int
    """Distinct conditions at which something is compared."""
    excluded: int
    """Arms, counted at each point, that a rule took out."""
    duplicates: int
    """Comparisons requested more than once."""
    document: Document
    written: Mapping[str, KeyPath]
    """Where each arm (by identity) is written."""
    warnings: tuple[str, ...] = ()
    """What stands in the file without effect, each with file, line and key."""

    def problem(self, arm: Arm, problem: str, *, step: int = 0, key: str = "") -> SweepError:
        """The error to raise for an arm, or to show as a warning; `key` is a parameter of one of its steps."""
        path = self.written[arm.arm_id]
        inner = ("stack", step) if (*path, "stack") in self.document.lines else ()
        here = (*path, *inner, key)
        return self.document.error(here if here in self.document.lines else path, problem)

    def without_demands(self) -> "Expansion":
        """The same wherever it is measured."""
        return replace(self, sweep=self.sweep.model_copy(update={"resources": None}))


def expand_file(
    path: Path | str,
    *,
    methods: Mapping[str, AnyMethod],
    networks: Mapping[str, Network],
    auto: Device,
    text: str | None = None,
    content_hash: Callable[[str], str] | None = None,
    contents: Contents | None = None,
    corruptions: Collection[str] = (),
    languages: Mapping[str, LanguageNetwork] | None = None,
) -> Expansion:
    """The jobs of the sweep file at `path`; with `text`, `path` is only its name in messages.

    `auto` is the device that `device: auto` stands for. `content_hash` gives the hash of a checkpoint file by its
    path (default: SHA-256 of the file, whose path counts from the current folder). `contents` gives further hashes, and is
    called once for each condition of each kind. `corruptions` are those that exist, if that is known. `languages` are the
    language models that go by a name (default: those of `sweeps.geometry.llm_geometry`). Raises `SweepError`.
    """
    document = read(path, text)
    sweep = parse(document)
    families = (VisionModels(networks), LanguageModels(known() if languages is None else languages))
    names = KnownNames(methods, families, families[0], auto, corruptions)
    names = replace(names, models=family_of(document, sweep, names))
    hasher = Hasher(document, content_hash or sha256, contents or (lambda _: {}))
    return _Expander(document, sweep, names, hasher).expansion()


@dataclass
class _Expander:
    document: Document
    sweep: Sweep
    names: KnownNames
    hasher: Hasher
    blocks: dict[tuple[Any, ...], Block] = field(default_factory=dict)
    requested: dict[tuple[Any, ...], set[tuple[str, str]]] = field(default_factory=dict)
    """The (baseline, arm) pairs of each point, before what a kind does not depend on merges points."""
    settled: dict[tuple[Any, ...], Candidate] = field(default_factory=dict)
    compared: dict[KeyPath, bool] = field(default_factory=dict)
    """Whether the entry at a path was compared with a baseline, for those that no rule took out everywhere."""
    jobs_so_far: int = 0
    excluded: int = 0
    duplicates: int = 0
    looks: int = 0
    written: dict[str, KeyPath] = field(default_factory=dict)
    warnings: list[SweepError] = field(default_factory=list)
    idle: set[int] = field(default_factory=set)
    """Rules that have matched nothing yet."""

    def __post_init__(self) -> None:
        self.refusals = Refusals(self.names)
        self.protocols = self.sweep.jobs.protocols(self.names.modality)
        self.required = required(self.protocols)

    def expansion(self) -> Expansion:
        sweep = self.sweep
        check_jobs(self.document, self.names.modality, self.protocols)
        entries = [self._entry("methods", index, item) for index, item in enumerate(sweep.methods)]
        baselines = self._baselines()
        if not entries and not sweep.include:
            problem = "nothing to measure: give at least one method under `methods`, or a full point under `include`"
            raise self.document.error(("methods",), problem)
        if entries:
            self._grid(entries, baselines)
        for index, written in enumerate(sweep.include):
            self._include(index, written, baselines)
        self._check_answers()
        return self._result()

    def _entry(self, key: str, index: int, written: Mapping[str, Any] | str) -> Entry:
        return entry(self.document, (key, index), written, self.names, bare=key == "baselines")

    def _baselines(self) -> list[Candidate]:
        found: dict[str, Candidate] = {}
        for index, written in enumerate(self.sweep.baselines):
            for item in self._arms(self._entry("baselines", index, written), {}):
                found.setdefault(item.key, item)
        if len(found) >= self.sweep.limits.arms_per_job:
            problem = f"{len(found)} baselines leave no room for an arm among limits.arms_per_job: {self.sweep.limits.arms_per_job}"
            raise self.document.error(("baselines",), problem)
        return list(found.values())

    def _arms(self, source: Entry, bound: Mapping[int, int]) -> list[Candidate]:
        allowed = self.sweep.limits.max_jobs * self.sweep.limits.arms_per_job
        if source.count() > allowed:
            raise self._too_many(source.path, f"expands to {source.count()} arms")
        return list(source.arms(bound))

    # ---- the grid ----

    def _grid(self, entries: list[Entry], baselines: list[Candidate]) -> None:
        filters = rules(self.document, self.sweep.exclude, self.names, {name for item in entries for name in item.names})
        self.idle = set(range(len(filters)))
        spots = points(self.document, self.sweep, self.names, entries, self.required)
        self.warnings += idle_groups(self.document, self.sweep, entries)
        bindings = [sorted(item.groups()) for item in entries]
        cache: dict[tuple[Any, ...], list[Candidate]] = {}
        for spot in spots:
            arms: list[Candidate] = []
            for index, (item, groups) in enumerate(zip(entries, bindings, strict=True)):
                key = (index, *(spot.bound.get(group) for group in groups))
                if key not in cache:
                    cache[key] = self._arms(item, {group: spot.bound[group] for group in groups if group in spot.bound})
                arms += cache[key]
            self._add(spot, arms, baselines, filters)
        for index in sorted(self.idle):
            problem = "takes out nothing: no arm at any point matches this rule"
            self.warnings.append(self.document.error(("exclude", index), problem))

    # ---- extra points ----

    def _include(self, index: int, written: Mapping[str, Any], baselines: list[Candidate]) -> None:
        path: KeyPath = ("include", index)
        keys = condition_keys(written, self.names)
        own = self.names.fields(self.document, path, {key: written[key] for key in written if key in keys}, several=False)
        picks = {**defaults(self.document, self.sweep, self.names), **{name: choices[0] for name, choices in own.items()}}
        for name in self.required:
            if name not in picks:
                raise self.document.error((*path, name), "is missing; an extra point needs it here or under `defaults`")
        rest = {key: value for key, value in written.items() if key not in keys}
        source = entry(self.document, path, rest, self.names)
        self._add(point(picks, {}), self._arms(source, {}), baselines, [])

    # ---- one point ----

    def _add(self, spot: GridPoint, arms: Iterable[Candidate], baselines: list[Candidate], filters: list[Rule]) -> None:
        condition = Condition.model_construct(**self.names.models.completed(spot.values, spot.paths))
        references = [self._settle(item, condition) for item in baselines]
        left: list[tuple[Candidate, Candidate]] = []
        for source in arms:
            self._count_look()
            arm = self._settle(source, condition)
            if filters and self._is_excluded(condition, arm.arm, filters):
                self.excluded += 1
                continue
            left.append((source, arm))
        if not left:
            return
        for item in (*references, *(arm for _, arm in left)):
            check_size(self.document, self.names.models, condition, item, spot)
        check_kinds(self.document, self.protocols, self.names.modality, spot.paths)
        check_exclusive(self.document, condition, spot.paths)
        pairs = self.requested.setdefault(tuple(getattr(condition, name) for name in FIELDS), set())
        for source, arm in left:
            self.compared.setdefault(source.path, False)
            self.refusals.check_model(source, condition.model)
            check_schedules(self.document, self.names.models, condition.model, source)
            for pair in ((reference.key, arm.key) for reference in references if reference.key != arm.key):
                self.duplicates += pair in pairs
                pairs.add(pair)
        sources = [source for source, _ in left]
        for kind in self.protocols:
            block = self._block(kind, condition_of_kind(self.document, kind, condition, self.names.models, spot.paths), spot)
            self._ask(block, sources, baselines)
        if self.jobs_so_far > self.sweep.limits.max_jobs:
            raise self._too_many(("limits", "max_jobs"), f"the sweep reached {self.jobs_so_far} jobs")

    def _ask(self, block: Block, arms: Iterable[Candidate], baselines: Iterable[Candidate]) -> None:
        """Add what a point compares to the block of its questions of one kind."""
        before = block.parts(self.sweep.limits.arms_per_job)
        references = [self._settle(item, block.condition, block.kind) for item in baselines]
        for reference in references:
            self.written.setdefault(reference.key, reference.path)
            block.baselines.setdefault(reference.key, reference.arm)
            block.content_hashes.update(self.hasher.named(reference.arm, reference.path))
        for source in arms:
            arm = self._settle(source, block.condition, block.kind)
            self.written.setdefault(arm.key, source.path)
            block.content_hashes.update(self.hasher.named(arm.arm, source.path))
            for reference in references:
                if arm.key != reference.key:
                    self.compared[source.path] = True
                    block.pairs[reference.key, arm.key] = None
                    if arm.key not in block.baselines:
                        block.arms[arm.key] = arm.arm
        self.jobs_so_far += (block.parts(self.sweep.limits.arms_per_job) - before) * self.protocols[block.kind].rounds

    def _settle(self, item: Candidate, condition: Condition, kind: Kind | None = None) -> Candidate:
        """The arm without overrides that repeat the condition, or that the kind (if none is named: timing) does not depend on."""
        if not item.overrides:
            return item
        kind = kind or kinds_of(self.names.modality)[0].name
        overrides = item.arm.overrides
        key = (kind, item.key, item.path, *(getattr(condition, name) for name in OVERRIDES))
        if key not in self.settled:
            arm = item.arm.model_copy(update={"overrides": overrides_of_kind(kind, overrides, condition)})
            self.settled[key] = item._replace(arm=arm, key=arm.arm_id)
        return self.settled[key]

    def _is_excluded(self, condition: Condition, arm: Arm, filters: list[Rule]) -> bool:
        values = dict(condition)
        values.update((name, value) for name, value in arm.overrides if value is not None)
        values["tokens"] = self.names.models.tokens(values)
        if values["tokens"] is None:
            del values["tokens"]
        excluded = False
        for index, rule in enumerate(filters):
            if (index in self.idle or not excluded) and rule.matches(values, arm):
                self.idle.discard(index)
                excluded = True
        return excluded

    def _block(self, kind: Kind, condition: Condition, spot: GridPoint) -> Block:
        key = (kind, *(getattr(condition, name) for name in FIELDS))
        if key not in self.blocks:
            self.blocks[key] = Block(kind, condition, self.hasher.hashes(condition, spot.paths))
        return self.blocks[key]

    # ---- limits and the end ----

    def _count_look(self) -> None:
        self.looks += 1
        limits = self.sweep.limits
        if self.looks > _LOOKS_PER_JOB * limits.max_jobs * limits.arms_per_job:
            raise self._too_many(("axes",), f"{self.looks} arms at points looked at, of which {self.excluded} are excluded")

    def _too_many(self, path: KeyPath, reached: str) -> SweepError:
        limit = self.sweep.limits.max_jobs
        return self.document.error(path, f"{reached}, more than limits.max_jobs: {limit} allows; request less, or raise it")

    def _check_answers(self) -> None:
        for path, compared in self.compared.items():
            if not compared:
                problem = "equals its baseline wherever it is requested; for an A/A test write `replicate: 1`"
                raise self.document.error(path, problem)
        self.refusals.check(self.document)
        if not any(block.pairs for block in self.blocks.values()):
            raise self.document.error(("exclude",), "the rules take out every arm at every point, so nothing is left to measure")

    def _result(self) -> Expansion:
        first = first_round(self.blocks.values(), self.protocols, self.sweep.limits.arms_per_job)
        comparisons = (comparison for job in first for comparison in job.comparisons())
        return Expansion(
            sweep=self.sweep,
            text=self.document.text,
            jobs=(*first, *later_rounds(first)),
            comparisons=tuple(comparisons),
            points=sum(map(bool, self.requested.values())),
            excluded=self.excluded,
            duplicates=self.duplicates,
            document=self.document,
            written=self.written,
            warnings=tuple(map(str, self.warnings)),
        )
