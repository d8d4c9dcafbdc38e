"""Expansion: a sweep file turned into the jobs and comparisons that it requests."""

import hashlib
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any, cast

from sweeps.errors import WeightsError
from sweeps.geometry.llm_geometry import content, is_folder, languages
from sweeps.geometry.model_families import (
    LanguageModels,
    OwnFiles,
    OwnModels,
    VisionModels,
    code_name,
    content_of,
)
from sweeps.language.arm_parser import (
    Candidate,
    Entry,
    check_schedules,
    check_size,
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
    check_kinds,
    check_x_axis,
    defaults,
    family_of,
    idle_groups,
    points,
    rules,
    with_search,
    with_sizes_between,
    written_models,
)
from sweeps.language.yaml_reader import Document, KeyPath, Place, SweepError, read
from sweeps.model.condition import (
    EXPORTED,
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
from sweeps.model.method import AnyMethod, Network

Contents = Callable[[Condition], Mapping[str, str]]
"""Hashes of what a condition names besides a checkpoint file; raises `OSError` or `ValueError`
where there is none."""
_LOOKS_PER_JOB = 20
"""Arms looked at for every arm that `max_jobs` allows: bounds the search through a grid that rules
empty."""
_NEVER_FILES = ("question", "resources")
"""Keys of texts that no program opens."""
_PATH = re.compile(r"[/\\:~]|\.ya?ml$")
_Key = tuple[Any, ...]


@dataclass
class Block:
    """All that is compared under one condition."""

    kind: Kind
    condition: Condition
    content_hashes: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
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
        every = (*self.baselines.values(), *self.arms.values())
        warm = KINDS[self.kind].timed and any(
            arm.condition(self.condition).runtime in EXPORTED for arm in every
        )
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
                files=dict(self.files),
                protocol_version=KINDS[self.kind].protocol_version,
                warm=warm,
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
    more: Contents
    own: OwnFiles
    content_hash: Callable[[str], str] = field(default_factory=lambda: cache(sha256))
    """Hash of a file by its path, each read once."""
    names: dict[str, str] = field(default_factory=dict)
    """Of what parameters name, by name."""

    def hashes(self, condition: Condition, places: Mapping[str, Place]) -> dict[str, str]:
        """What belongs in `Job.content_hashes`; `places` holds those of the condition's fields.
        Raises `SweepError`.
        """
        own: dict[str, str] = {}
        if condition.weights not in NAMED_WEIGHTS:
            try:
                own["weights"] = self.content_hash(condition.weights)
            except (OSError, ValueError) as error:
                raise places["weights"].error(
                    f"the checkpoint {condition.weights!r} cannot be read: {_reason(error)}; write"
                    " random, pretrained, or a file's path"
                ) from None
        try:
            if sources := self.sources(condition.model):
                own = {f"file {file}": content_of({file: text}) for file, text in sources.items()}
            elif is_folder(condition.model):
                own = {"model": content(condition.model)}
            return {**own, **self.more(condition)}
        except (OSError, ValueError) as error:
            name = "weights" if isinstance(error, WeightsError) or not condition.data else "data"
            place = places.get(name, self.document.at(name))
            raise place.error(f"cannot be used: {error}") from None

    def sources(self, name: str) -> dict[str, str]:
        """The files of the user behind a model or a method."""
        return self.own.sources(name) if code_name(name) is not None else {}

    def named(self, item: Candidate) -> dict[str, str]:
        """What the parameters of an arm name, for `Job.content_hashes`. Raises `SweepError`."""
        for step in item.arm.stack if item.arm.names else ():
            if step.code is not None:
                self.names[step.code] = content_of(self.sources(step.code))
            for key in NAMING:
                name = step.params.get(key)
                if not isinstance(name, str) or name in self.names:
                    continue
                data = Condition.model_construct(model="", data=name)
                try:
                    self.names[name] = (
                        self.content_hash(name) if key == "file" else digest(dict(self.more(data)))
                    )
                except (OSError, ValueError) as error:
                    problem = f"{step.method}.{key} cannot be used: {name}: {_reason(error)}"
                    raise item.place.error(problem) from None
        return {f"{NAMED}{name}": self.names[name] for name in item.arm.names}


def _reason(error: Exception) -> object:
    return getattr(error, "strerror", None) or error


@dataclass(frozen=True)
class Expansion:
    """What a sweep requests, in the order in which it is to be measured."""

    sweep: Sweep
    document: Document
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
    written: Mapping[str, Place]
    """Where each arm (by identity) is written."""
    warnings: tuple[str, ...] = ()
    """What stands in the file without effect, each with file, line and key."""

    def problem(self, arm: Arm, problem: str, *, step: int = 0, key: str = "") -> SweepError:
        """The error to raise for an arm, or to show as a warning; `key` is a parameter of one of
        its steps.
        """
        place, lines = self.written[arm.arm_id], self.document.lines
        stack = place / "stack" / step
        inner = (stack if stack.path in lines else place) / key
        return (inner if inner.path in lines else place).error(problem)

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
    contents: Contents = lambda _: {},
    corruptions: Collection[str] = (),
    between: bool = False,
) -> Expansion:
    """The jobs of the sweep file at `path`; with `text`, `path` is only its name in messages.

    `auto` is the device that `device: auto` stands for. `contents` gives hashes besides those of
    checkpoint files, and is called once for each condition of each kind. `corruptions` are those
    that exist, if that is known. With `between` a grid along its sizes has further ones between its
    own. Raises `SweepError`.
    """
    document = read(path, text)
    sweep = parse(document)
    models = written_models(document, sweep, sweep.include)
    own = OwnModels(
        OwnFiles(Path(document.file).parent),
        tuple(filter(None, (code_name(choice.value) for choice in models))),
        (*sweep.axes, *([] if sweep.search is None else [sweep.search.axis])),
        sweep.x_axis,
        sweep.zip,
    )
    families = (VisionModels(networks), own, LanguageModels(languages()))
    folder = Path(document.file).parent
    names = KnownNames(dict(methods), families, families[0], auto, corruptions, folder)
    names = replace(names, models=family_of(document, sweep, names))
    check_x_axis(document, sweep, names, models)
    whole = with_sizes_between(document, sweep, names) if between else sweep
    expander = _Expander(document, whole, names, Hasher(document, contents, own.files))
    return replace(expander.expansion(), sweep=sweep)


class _Expander:
    def __init__(self, document: Document, sweep: Sweep, names: KnownNames, hasher: Hasher) -> None:
        self.document, self.sweep, self.names, self.hasher = document, sweep, names, hasher
        self.protocols = {
            kind: protocol.model_copy(
                update={
                    "tasks": protocol.tasks
                    and tuple(
                        names.placed("file", task) if task.endswith((".yaml", ".yml")) else task
                        for task in protocol.tasks
                    )
                }
            )
            for kind, protocol in sweep.jobs.protocols(names.models.modality).items()
        }
        required = [name for kind in self.protocols for name in KINDS[kind].required]
        self.required = ["model", *dict.fromkeys(required)]
        self.timing = kinds_of(names.models.modality)[0].name
        self.timed = any("runtime" in condition_fields(kind) for kind in self.protocols)
        self.limits = sweep.limits
        self.blocks: dict[_Key, Block] = {}
        # the (baseline, arm) pairs of each point, before what a kind does not depend on merges
        # points
        self.requested: dict[_Key, set[tuple[str, str]]] = {}
        self.settled: dict[_Key, Candidate] = {}
        # whether the entry at a place was compared with a baseline, of those that no rule took out
        # everywhere
        self.compared: dict[Place, bool] = {}
        # where each arm (by identity) is written, and by model and runtime why it cannot run there
        self.refusals: dict[str, tuple[Place, dict[_Key, str | None]]] = {}
        self.sizes: dict[_Key, ImageSize | None] = {}  # of each place on a curve
        self.jobs_so_far = self.excluded = self.duplicates = self.looks = 0
        self.written: dict[str, Place] = {}
        self.warnings: list[SweepError] = []
        self.idle: set[int] = set()  # rules that have matched nothing yet

    def expansion(self) -> Expansion:
        document = self.document
        check_jobs(document, self.protocols, self.names.models.modality)
        if self.sweep.search is not None:
            check_kinds(document, self.protocols)
        entries = self._entries("methods")
        self.sweep = with_search(document, self.sweep, self.names, entries)
        baselines = self._baselines()
        if not entries and not self.sweep.include:
            raise document.at("methods").error(
                "nothing to measure: give at least one method under `methods`, or a full point"
                " under `include`"
            )
        if entries:
            self._grid(entries, baselines)
        for index, written in enumerate(self.sweep.include):
            self._include(document.at("include", index), written, baselines)
        self._check_answers()
        return self._result()

    def _entries(self, section: str) -> list[Entry]:
        return [
            parse_entry(
                self.document.at(section, index), written, self.names, bare=section == "baselines"
            )
            for index, written in enumerate(getattr(self.sweep, section))
        ]

    def _baselines(self) -> list[Candidate]:
        found: dict[str, Candidate] = {}
        for entry in self._entries("baselines"):
            for item in self._arms(entry, {}):
                found.setdefault(item.arm.arm_id, item)
        limit = self.limits.arms_per_job
        if len(found) >= limit:
            raise self.document.at("baselines").error(
                f"{len(found)} baselines leave no room for an arm among limits.arms_per_job:"
                f" {limit}"
            )
        return list(found.values())

    def _arms(self, source: Entry, bound: Mapping[int, int]) -> list[Candidate]:
        if source.count() > self.limits.max_jobs * self.limits.arms_per_job:
            raise self._too_many(source.place, f"expands to {source.count()} arms")
        return source.arms(bound)

    def _grid(self, entries: list[Entry], baselines: list[Candidate]) -> None:
        used = [name for entry in entries for name in entry.names]
        filters = rules(self.document, self.sweep, self.names, used)
        self.idle = set(range(len(filters)))
        spots = points(self.document, self.sweep, self.names, entries, self.required)
        self.warnings += idle_groups(self.document, self.sweep, entries)
        for spot in spots:
            arms = [arm for entry in entries for arm in self._arms(entry, spot.bound)]
            self._add(spot, arms, baselines, filters)
        for index in sorted(self.idle):
            problem = "takes out nothing: no arm at any point matches this rule"
            self.warnings.append(self.document.at("exclude", index).error(problem))

    def _include(
        self, place: Place, written: Mapping[str, Any], baselines: list[Candidate]
    ) -> None:
        keys = condition_keys(written, self.names)
        own = {key: value for key, value in written.items() if key in keys}
        rest = {key: value for key, value in written.items() if key not in keys}
        picks = defaults(self.document, self.sweep, self.names)
        picks |= self.names.fields(place, own)
        for name in self.required:
            if name not in picks:
                right = "is missing; an extra point needs it here or under `defaults`"
                raise (place / name).error(right)
        arms = self._arms(parse_entry(place, rest, self.names), {})
        self._add(GridPoint(picks, {}), arms, baselines, [])

    def _add(
        self,
        spot: GridPoint,
        sources: Iterable[Candidate],
        baselines: list[Candidate],
        filters: list[Rule],
    ) -> None:
        """Add what is compared at one point."""
        models = self.names.models
        values = {name: pick.value for name, pick in spot.picks.items()}
        places = {name: pick.place for name, pick in spot.picks.items()}
        condition = Condition.model_construct(**models.completed(values, places))
        sources = [each for each in sources if not self._is_excluded(condition, each.arm, filters)]
        if not sources:
            return
        references = self._settle(baselines, condition, self.timing)
        arms = self._settle(sources, condition, self.timing)
        for item in (*references, *arms):
            check_size(models, condition, item, places)
        self._check_tokens(condition, places)
        pairs = self.requested.setdefault(_values(condition), set())
        for source, item in zip(sources, arms, strict=True):
            self.compared.setdefault(source.place, False)
            self._check_model(source, condition)
            check_schedules(models, condition.model, source)
            for baseline in references:
                pair = (baseline.arm.arm_id, item.arm.arm_id)
                if pair[0] != pair[1]:
                    self.duplicates += pair in pairs
                    pairs.add(pair)
        check_fields(condition, self.protocols, self.names.models.modality, places)
        for kind in self.protocols:
            own = condition_of_kind(self.document, kind, condition, models, places)
            key = (kind, *_values(own))
            if key not in self.blocks:
                hashes = self.hasher.hashes(own, places)
                self.blocks[key] = Block(kind, own, hashes, self.hasher.sources(own.model))
            self._compare(self.blocks[key], sources, baselines)
        if self.jobs_so_far > self.limits.max_jobs:
            place = self.document.at("limits", "max_jobs")
            raise self._too_many(place, f"the sweep reached {self.jobs_so_far} jobs")

    def _compare(
        self, block: Block, arms: Sequence[Candidate], baselines: Sequence[Candidate]
    ) -> None:
        """Add what a point compares to the block of its questions of one kind."""
        limit, rounds = self.limits.arms_per_job, self.protocols[block.kind].rounds
        before = block.parts(limit)
        references = self._settle(baselines, block.condition, block.kind)
        found = self._settle(arms, block.condition, block.kind)
        for item in references:
            block.baselines.setdefault(item.arm.arm_id, item.arm)
        for item in (*references, *found):
            self.written.setdefault(item.arm.arm_id, item.place)
            block.content_hashes.update(self.hasher.named(item))
            for name in item.arm.names:
                block.files.update(self.hasher.sources(name))
        for item in found:
            key = item.arm.arm_id
            for baseline in references:
                if key != baseline.arm.arm_id:
                    self.compared[item.place] = True
                    block.pairs[baseline.arm.arm_id, key] = None
                    if key not in block.baselines:
                        block.arms[key] = item.arm
        self.jobs_so_far += (block.parts(limit) - before) * rounds

    def _settle(
        self, items: Iterable[Candidate], condition: Condition, kind: Kind
    ) -> list[Candidate]:
        """The arms without overrides that repeat the condition, or that the kind does not
        depend on.
        """
        found = []
        for item in items:
            own = {name: value for name, value in item.arm.overrides if value is not None}
            place = (kind, item.arm.arm_id, item.place, *(getattr(condition, key) for key in own))
            if own and place not in self.settled:
                kept = {key: own[key] for key in own if key in condition_fields(kind)}
                overrides = Overrides(**kept).without_repeats(condition)
                arm = item.arm.model_copy(update={"overrides": overrides})
                self.settled[place] = item._replace(arm=arm)
            found.append(self.settled[place] if own else item)
        return found

    def _is_excluded(self, condition: Condition, arm: Arm, filters: list[Rule]) -> bool:
        self.looks += 1
        if self.looks > _LOOKS_PER_JOB * self.limits.max_jobs * self.limits.arms_per_job:
            reached = (
                f"{self.looks} arms at points looked at, of which {self.excluded} are excluded"
            )
            raise self._too_many(self.document.at("axes"), reached)
        if not filters:
            return False
        values = dict(arm.condition(condition))
        if (tokens := self.names.models.tokens(values)) is not None:
            values["tokens"] = tokens
        if values["image_size"] is not None:
            values["image_size"] = square_side(values["image_size"])
        values |= dict(condition.values or ())
        excluded = False
        for index, rule in enumerate(filters):
            if (index in self.idle or not excluded) and rule.matches(values, arm):
                self.idle.discard(index)
                excluded = True
        self.excluded += excluded
        return excluded

    def _check_tokens(self, condition: Condition, places: Mapping[str, Place]) -> None:
        """Refuse two sizes of equal tokens, which are one place on a curve."""
        size = condition.image_size
        rest = tuple(getattr(condition, name) for name in CONDITION_FIELDS if name != "image_size")
        key = (*rest, self.names.models.tokens(dict(condition)))
        if (first := self.sizes.setdefault(key, size)) != size:
            place = places.get("image_size", self.document.at("axes"))
            raise place.error(f"{size} pixels are as many tokens as {first}; keep one of the two")

    def _check_model(self, item: Candidate, condition: Condition) -> None:
        """Check whether an arm can run on the model of a condition, where that is known, once
        for each model and runtime.
        """
        _, reasons = self.refusals.setdefault(item.arm.arm_id, (item.place, {}))
        own = item.arm.condition(condition)
        key = (own.model, own.device, own.dtype, own.runtime, own.kv_cache)
        if key not in reasons:
            reasons[key] = obstacle(self.names, item, own, timed=self.timed)

    def _too_many(self, place: Place, reached: str) -> SweepError:
        limit = f"limits.max_jobs: {self.limits.max_jobs}"
        return place.error(f"{reached}, more than {limit} allows; request less, or raise it")

    def _check_answers(self) -> None:
        for place, compared in self.compared.items():
            if not compared:
                raise place.error(
                    "equals its baseline wherever it is requested; for an A/A test write"
                    " `replicate: 1`"
                )
        for place, reasons in self.refusals.values():
            if reasons and all(reasons.values()):
                first = next(iter(reasons.values()))
                raise place.error(f"cannot run on any model of this sweep: {first}")
        if not any(block.pairs for block in self.blocks.values()):
            problem = "the rules take out every arm at every point, so nothing is left to measure"
            raise self.document.at("exclude").error(problem)

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
            for job in _in_turn(first, turn)
            if turn < job.protocol.turns
        ]
        return Expansion(
            sweep=self.sweep,
            document=self.document,
            jobs=(*first, *later),
            comparisons=tuple(comparison for job in first for comparison in job.comparisons()),
            points=sum(map(bool, self.requested.values())),
            excluded=self.excluded,
            duplicates=self.duplicates,
            written=self.written,
            warnings=tuple(map(str, self.warnings)),
        )


def _values(condition: Condition) -> _Key:
    return tuple(getattr(condition, name) for name in CONDITION_FIELDS)


def _in_turn(jobs: list[Job], turn: int) -> list[Job]:
    """The jobs in the order of a turn: of passes a random one, so that no size is always
    measured after the same other one.
    """
    if any(job.protocol.passes > 1 for job in jobs):
        return sorted(jobs, key=lambda job: digest([turn, job.job_id]))
    return jobs


def refuse_files(document: Document) -> None:
    """Refuse a sweep that names files or code of the machine that measures: who may send one need
    not be one who may read these. Looks at no file. Raises `SweepError` that names the key.
    """
    for path in document.lines:
        value = reduce(getitem, path, cast(Any, document.root))
        if isinstance(value, str) and _names_file(path, value):
            raise document.at(*path).error(
                "names a file or code of the server, which a sweep from a page may not; submit it"
                " there: breakeven submit FILE"
            )


def _names_file(path: KeyPath, value: str) -> bool:
    if {"file", "callable"} & set(path):
        return True
    if {"weights", "checkpoint"} & set(path):
        return value not in NAMED_WEIGHTS
    if "model" in path:
        return is_folder(value) or code_name(value) is not None
    return path[0] not in _NEVER_FILES and _PATH.search(value) is not None
