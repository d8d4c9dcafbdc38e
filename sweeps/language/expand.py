"""Expansion: a sweep file turned into the jobs and comparisons that it requests."""

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from sweeps.errors import WeightsError
from sweeps.geometry.llm_geometry import content, is_folder
from sweeps.geometry.llm_geometry import languages as known
from sweeps.geometry.model_families import LanguageModels, VisionModels
from sweeps.language.arm_parser import (
    OVERRIDES,
    Candidate,
    Entry,
    check_arm,
    check_schedules,
    condition_keys,
    obstacle,
    parse_entry,
)
from sweeps.language.condition_parser import (
    CONDITION_FIELDS,
    KnownNames,
    check_fields,
    check_jobs,
    condition_of_kind,
)
from sweeps.language.file_schema import Sweep, parse
from sweeps.language.grid import (
    GridPoint,
    Rule,
    defaults,
    family_of,
    idle_groups,
    point,
    points,
    rules,
)
from sweeps.language.search_axis import check_kinds, with_search, with_sizes_between
from sweeps.language.yaml_reader import Document, KeyPath, SweepError, read
from sweeps.model.condition import (
    NAMED_WEIGHTS,
    Condition,
    Device,
    ImageSize,
    Kind,
    Overrides,
    condition_fields,
    square_side,
)
from sweeps.model.identity import digest
from sweeps.model.job import NAMED, NAMING, Arm, Comparison, Job, Pair, Protocol
from sweeps.model.kinds import KINDS, kinds_of
from sweeps.model.method import AnyMethod, LanguageNetwork, Network

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


_LOOKS_PER_JOB = 20
"""Arms looked at for every arm that `max_jobs` allows: bounds the search through a grid that rules
empty."""


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
        """The error to raise for an arm, or to show as a warning; `key` is a parameter of one of
        its steps.
        """
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
    between: bool = False,
) -> Expansion:
    """The jobs of the sweep file at `path`; with `text`, `path` is only its name in messages.

    `auto` is the device that `device: auto` stands for. `content_hash` gives the hash of a
    checkpoint file by its path (default: SHA-256 of the file, whose path counts from the current
    folder). `contents` gives further hashes, and is called once for each condition of each kind.
    `corruptions` are those that exist, if that is known. `languages` are the language models that
    go by a name (default: those of `sweeps.geometry.llm_geometry`). With `between` a grid along
    `image_size` has further sizes between its own. Raises `SweepError`.
    """
    document = read(path, text)
    sweep = parse(document)
    families = (VisionModels(networks), LanguageModels(known() if languages is None else languages))
    names = KnownNames(methods, families, families[0], auto, corruptions)
    names = replace(names, models=family_of(document, sweep, names))
    sweep = with_search(document, sweep, names)
    hasher = Hasher(document, cache(content_hash or sha256), contents or (lambda _: {}))
    whole = with_sizes_between(document, sweep, names) if between else sweep
    return replace(_Expander(document, whole, names, hasher).expansion(), sweep=sweep)


@dataclass
class _Expander:
    document: Document
    sweep: Sweep
    names: KnownNames
    hasher: Hasher
    blocks: dict[tuple[Any, ...], Block] = field(default_factory=dict)
    requested: dict[tuple[Any, ...], set[tuple[str, str]]] = field(default_factory=dict)
    """The (baseline, arm) pairs of each point, before what a kind does not depend on merges
    points."""
    settled: dict[tuple[Any, ...], Candidate] = field(default_factory=dict)
    compared: dict[KeyPath, bool] = field(default_factory=dict)
    """Whether the entry at a path was compared with a baseline, for those that no rule took out
    everywhere."""
    refusals: dict[str, tuple[KeyPath, dict[tuple[Any, ...], str | None]]] = field(
        default_factory=dict
    )
    """Where each arm (by identity) is written, and by model and runtime why it cannot run there;
    `None` where it can."""
    sizes: dict[tuple[Any, ...], ImageSize | None] = field(default_factory=dict)
    """The size of each place on a curve."""
    jobs_so_far: int = 0
    excluded: int = 0
    duplicates: int = 0
    looks: int = 0
    written: dict[str, KeyPath] = field(default_factory=dict)
    warnings: list[SweepError] = field(default_factory=list)
    idle: set[int] = field(default_factory=set)
    """Rules that have matched nothing yet."""

    def __post_init__(self) -> None:
        self.protocols = self.sweep.jobs.protocols(self.names.modality)
        self.required = (
            "model",
            *dict.fromkeys(name for kind in self.protocols for name in KINDS[kind].required),
        )
        self.timing = kinds_of(self.names.modality)[0].name
        self.timed = any("runtime" in condition_fields(kind) for kind in self.protocols)
        self.limits = self.sweep.limits

    def expansion(self) -> Expansion:
        sweep = self.sweep
        check_jobs(self.document, self.protocols, self.names.modality)
        check_kinds(self.document, sweep, self.protocols)
        entries = [self._entry("methods", index, item) for index, item in enumerate(sweep.methods)]
        baselines = self._baselines()
        if not entries and not sweep.include:
            problem = (
                "nothing to measure: give at least one method under `methods`, or a full point"
                " under `include`"
            )
            raise self.document.error(("methods",), problem)
        if entries:
            self._grid(entries, baselines)
        for index, written in enumerate(sweep.include):
            self._include(index, written, baselines)
        self._check_answers()
        return self._result()

    def _entry(self, key: str, index: int, written: Mapping[str, Any] | str) -> Entry:
        return parse_entry(
            self.document, (key, index), written, self.names, bare=key == "baselines"
        )

    def _baselines(self) -> list[Candidate]:
        found: dict[str, Candidate] = {}
        for index, written in enumerate(self.sweep.baselines):
            for item in self._arms(self._entry("baselines", index, written), {}):
                found.setdefault(item.arm.arm_id, item)
        if len(found) >= self.limits.arms_per_job:
            problem = (
                f"{len(found)} baselines leave no room for an arm among limits.arms_per_job:"
                f" {self.limits.arms_per_job}"
            )
            raise self.document.error(("baselines",), problem)
        return list(found.values())

    def _arms(self, source: Entry, bound: Mapping[int, int]) -> list[Candidate]:
        if source.count() > self.limits.max_jobs * self.limits.arms_per_job:
            raise self._too_many(source.path, f"expands to {source.count()} arms")
        return list(source.arms(bound))

    def _grid(self, entries: list[Entry], baselines: list[Candidate]) -> None:
        filters = rules(
            self.document,
            self.sweep.exclude,
            self.names,
            {name for item in entries for name in item.names},
        )
        self.idle = set(range(len(filters)))
        spots = points(self.document, self.sweep, self.names, entries, self.required)
        self.warnings += idle_groups(self.document, self.sweep, entries)
        groups = [sorted(item.groups()) for item in entries]
        expanded: dict[tuple[Any, ...], list[Candidate]] = {}
        for spot in spots:
            arms: list[Candidate] = []
            for index, item in enumerate(entries):
                bound = {group: spot.bound[group] for group in groups[index] if group in spot.bound}
                key = (index, *bound.values())
                if key not in expanded:
                    expanded[key] = self._arms(item, bound)
                arms += expanded[key]
            self._add(spot, arms, baselines, filters)
        for index in sorted(self.idle):
            problem = "takes out nothing: no arm at any point matches this rule"
            self.warnings.append(self.document.error(("exclude", index), problem))

    def _include(self, index: int, written: Mapping[str, Any], baselines: list[Candidate]) -> None:
        path: KeyPath = ("include", index)
        keys = condition_keys(written, self.names)
        own = self.names.fields(
            self.document,
            path,
            {key: written[key] for key in written if key in keys},
            several=False,
        )
        picks = {
            **defaults(self.document, self.sweep, self.names),
            **{name: choices[0] for name, choices in own.items()},
        }
        for name in self.required:
            if name not in picks:
                raise self.document.error(
                    (*path, name), "is missing; an extra point needs it here or under `defaults`"
                )
        rest = {key: value for key, value in written.items() if key not in keys}
        self._add(
            point(picks, {}),
            self._arms(parse_entry(self.document, path, rest, self.names), {}),
            baselines,
            [],
        )

    def _add(
        self,
        spot: GridPoint,
        arms: Iterable[Candidate],
        baselines: list[Candidate],
        filters: list[Rule],
    ) -> None:
        """Add what is compared at one point."""
        models = self.names.models
        condition = Condition.model_construct(**models.completed(spot.values, spot.paths))
        references = [self._settle(item, condition, self.timing) for item in baselines]
        left: list[tuple[Candidate, Candidate]] = []
        for source in arms:
            self._count_look()
            arm = self._settle(source, condition, self.timing)
            if filters and self._is_excluded(condition, arm.arm, filters):
                self.excluded += 1
            else:
                left.append((source, arm))
        if not left:
            return
        for item in (*references, *(arm for _, arm in left)):
            check_arm(self.document, models, condition, item, spot.paths)
        check_fields(self.document, condition, self.protocols, self.names.modality, spot.paths)
        self._check_tokens(condition, spot.paths)
        baseline_keys = [item.arm.arm_id for item in references]
        pairs = self.requested.setdefault(
            tuple(getattr(condition, name) for name in CONDITION_FIELDS), set()
        )
        for source, arm in left:
            self.compared.setdefault(source.path, False)
            self._check_model(source, condition)
            check_schedules(self.document, models, condition.model, source)
            key = arm.arm.arm_id
            for pair in ((baseline, key) for baseline in baseline_keys if baseline != key):
                self.duplicates += pair in pairs
                pairs.add(pair)
        for kind in self.protocols:
            own = condition_of_kind(self.document, kind, condition, models, spot.paths)
            place = (kind, *(getattr(own, name) for name in CONDITION_FIELDS))
            if place not in self.blocks:
                self.blocks[place] = Block(kind, own, self.hasher.hashes(own, spot.paths))
            self._compare(self.blocks[place], [source for source, _ in left], baselines)
        if self.jobs_so_far > self.limits.max_jobs:
            raise self._too_many(
                ("limits", "max_jobs"), f"the sweep reached {self.jobs_so_far} jobs"
            )

    def _compare(
        self, block: Block, arms: Iterable[Candidate], baselines: Iterable[Candidate]
    ) -> None:
        """Add what a point compares to the block of its questions of one kind."""
        before = block.parts(self.limits.arms_per_job)
        references = [self._settle(item, block.condition, block.kind) for item in baselines]
        baseline_keys = [item.arm.arm_id for item in references]
        for key, item in zip(baseline_keys, references, strict=True):
            block.baselines.setdefault(key, item.arm)
        for item in (
            *references,
            *(found := [self._settle(source, block.condition, block.kind) for source in arms]),
        ):
            self.written.setdefault(item.arm.arm_id, item.path)
            block.content_hashes.update(self.hasher.named(item.arm, item.path))
        for item in found:
            key = item.arm.arm_id
            for baseline in baseline_keys:
                if key != baseline:
                    self.compared[item.path] = True
                    block.pairs[baseline, key] = None
                    if key not in block.baselines:
                        block.arms[key] = item.arm
        self.jobs_so_far += (block.parts(self.limits.arms_per_job) - before) * self.protocols[
            block.kind
        ].rounds

    def _settle(self, item: Candidate, condition: Condition, kind: Kind) -> Candidate:
        """The arm without overrides that repeat the condition, or that the kind does not
        depend on.
        """
        if not item.overrides:
            return item
        key = (kind, item.arm.arm_id, item.path, *(getattr(condition, name) for name in OVERRIDES))
        if key not in self.settled:
            kept = {
                name: value if name in condition_fields(kind) else None
                for name, value in item.arm.overrides
            }
            overrides = Overrides(**kept).without_repeats(condition)
            self.settled[key] = item._replace(
                arm=item.arm.model_copy(update={"overrides": overrides})
            )
        return self.settled[key]

    def _is_excluded(self, condition: Condition, arm: Arm, filters: list[Rule]) -> bool:
        values = dict(condition)
        values.update((name, value) for name, value in arm.overrides if value is not None)
        if (tokens := self.names.models.tokens(values)) is not None:
            values["tokens"] = tokens
        if values["image_size"] is not None:
            values["image_size"] = square_side(values["image_size"])
        excluded = False
        for index, rule in enumerate(filters):
            if (index in self.idle or not excluded) and rule.matches(values, arm):
                self.idle.discard(index)
                excluded = True
        return excluded

    def _check_tokens(self, condition: Condition, paths: Mapping[str, KeyPath]) -> None:
        """Refuse two sizes of equal tokens, which are one place on a curve."""
        rest = tuple(getattr(condition, name) for name in CONDITION_FIELDS if name != "image_size")
        place = (*rest, self.names.models.tokens(dict(condition)))
        if (first := self.sizes.setdefault(place, condition.image_size)) != condition.image_size:
            problem = (
                f"{condition.image_size} pixels are as many tokens as {first}; keep one of the two"
            )
            raise self.document.error(paths.get("image_size", ("axes",)), problem)

    def _check_model(self, item: Candidate, condition: Condition) -> None:
        """Check whether an arm can run on the model of a condition, where that is known, once
        for each model and runtime.
        """
        _, reasons = self.refusals.setdefault(item.arm.arm_id, (item.path, {}))
        beside = item.arm.overrides
        place = (
            condition.model,
            beside.runtime or condition.runtime,
            beside.kv_cache or condition.kv_cache,
        )
        if place not in reasons:
            reasons[place] = obstacle(
                self.names, item, item.arm.condition(condition), timed=self.timed
            )

    def _count_look(self) -> None:
        self.looks += 1
        if self.looks > _LOOKS_PER_JOB * self.limits.max_jobs * self.limits.arms_per_job:
            raise self._too_many(
                ("axes",),
                f"{self.looks} arms at points looked at, of which {self.excluded} are excluded",
            )

    def _too_many(self, path: KeyPath, reached: str) -> SweepError:
        limit = self.limits.max_jobs
        return self.document.error(
            path, f"{reached}, more than limits.max_jobs: {limit} allows; request less, or raise it"
        )

    def _check_answers(self) -> None:
        for path, compared in self.compared.items():
            if not compared:
                problem = (
                    "equals its baseline wherever it is requested; for an A/A test write"
                    " `replicate: 1`"
                )
                raise self.document.error(path, problem)
        for path, reasons in self.refusals.values():
            if reasons and all(reasons.values()):
                raise self.document.error(
                    path, f"cannot run on any model of this sweep: {next(iter(reasons.values()))}"
                )
        if not any(block.pairs for block in self.blocks.values()):
            raise self.document.error(
                ("exclude",),
                "the rules take out every arm at every point, so nothing is left to measure",
            )

    def _in_turn(self, jobs: list[Job], turn: int) -> list[Job]:
        """The jobs in the order of a turn: of passes a random one, so that no size is always
        measured after the same other one.
        """
        if any(job.protocol.passes > 1 for job in jobs):
            return sorted(jobs, key=lambda job: digest([turn, job.job_id]))
        return jobs

    def _result(self) -> Expansion:
        first = [
            job
            for kind, protocol in self.protocols.items()
            for block in self.blocks.values()
            if block.kind == kind
            for job in block.jobs(protocol, self.limits.arms_per_job)
        ]
        later = [
            job.model_copy(update={"round": turn})
            for turn in range(1, max((job.protocol.turns for job in first), default=1))
            for job in self._in_turn(first, turn)
            if turn < job.protocol.turns
        ]
        return Expansion(
            sweep=self.sweep,
            text=self.document.text,
            jobs=(*first, *later),
            comparisons=tuple(comparison for job in first for comparison in job.comparisons()),
            points=sum(map(bool, self.requested.values())),
            excluded=self.excluded,
            duplicates=self.duplicates,
            document=self.document,
            written=self.written,
            warnings=tuple(map(str, self.warnings)),
        )
