"""Sweep: the keys of a sweep file as frozen models."""

import math
import re
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from sweeps.language.yaml_reader import Document, SweepError, shown, validated
from sweeps.model.condition import Kind
from sweeps.model.identity import FrozenModel, canonical
from sweeps.model.job import Protocol
from sweeps.model.kinds import KINDS, Modality, kinds_of

DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


LONGEST_S = 1000 * _SECONDS["h"]
"""A longer duration is a mistake, and more than clocks of the system take."""


def seconds(value: Any) -> float:
    """`250ms`, `10s`, `5m`, `1h` or a plain number of seconds, in seconds."""
    if isinstance(value, str) and (match := DURATION.fullmatch(value)):
        found = float(match[1]) * _SECONDS[match[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
    else:
        raise ValueError(
            f"{value!r} is no duration; write 250ms, 10s, 5m, 1h, or a number of seconds"
        )
    if found > LONGEST_S:
        raise ValueError(f"{value!r} is longer than 1000h, the most that can be waited for")
    return found


def stated_seconds(text: str) -> float:
    """The same of a command line, where a number is text too."""
    return seconds(float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else text)


def _language(value: Any) -> Any:
    if type(value) is not int or value != 1:
        raise ValueError(f"{shown(value)} is no version that this program reads; write `schema: 1`")
    return value


_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": f"^{DURATION.pattern}$"},
    ],
    "description": "A duration: 250ms, 10s, 5m, 1h, or a number of seconds.",
}
Duration = Annotated[float, BeforeValidator(seconds), Field(gt=0), WithJsonSchema(_DURATION_SCHEMA)]
_Natural = Annotated[int, Field(ge=1)]
_DEFAULT = Protocol()
VISIT_PAIRS = 3
"""A visit has at least so many."""


class FileSection(FrozenModel):
    """A mapping as it stands in a sweep file."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Pairs(FileSection):
    """How many pairs to measure: at least `min`, and at most `max` where the interval stays
    wide.
    """

    min: int = Field(default=_DEFAULT.pairs_min, ge=2)
    max: int = Field(default=_DEFAULT.pairs_max, ge=2)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(
                f"min is {self.min}, above max, which is {self.max}; raise max or lower min"
            )
        return self


class KindSection(FileSection):
    """How precisely to measure one kind of job: fields of `Protocol`, whose durations end in
    `_s`.
    """

    def protocol(self) -> Protocol:
        """The protocol of its jobs."""
        values = {
            name if name in Protocol.model_fields else f"{name}_s": value
            for name, value in self
            if name != "pairs"
        }
        pairs = {f"pairs_{name}": value for name, value in getattr(self, "pairs", ())}
        return Protocol(**values, **pairs)


class Latency(KindSection):
    """How precisely to measure latency."""

    pairs: Pairs = Pairs()
    half_width: float = Field(default=_DEFAULT.half_width, gt=0, lt=1)
    """Stop once every ratio's interval is at most this wide to each side, as a share of the
    ratio."""
    budget: Duration = _DEFAULT.budget_s
    """Stop timing after this long; fewer than `pairs.min` pairs are then `insufficient`."""
    timeout: Duration = _DEFAULT.timeout_s
    """The job is killed after this long."""
    compile_timeout: Duration = _DEFAULT.compile_timeout_s
    """An arm that is compiled or exported (`runtime`) may take this long for its first call, beside
    `timeout`."""
    rounds: int = Field(default=_DEFAULT.rounds, ge=1, le=1000)
    """Repetitions of the whole job, each in a fresh process when more than one."""
    passes: int = Field(default=_DEFAULT.passes, ge=1, le=1000)
    """Visit every job so often, in turns with all others, each time for a share of `pairs` and
    `budget`: what the state of the machine changes is then sampled. Excludes `rounds`."""

    @model_validator(mode="after")
    def _one_way_to_repeat(self) -> Self:
        if self.rounds > 1 and self.passes > 1:
            raise ValueError("rounds and passes both repeat the jobs; write one of them")
        return self

    def protocol(self) -> Protocol:
        """That of one visit."""
        whole = super().protocol()
        if self.passes == 1:
            return whole
        least, most = (
            max(VISIT_PAIRS, math.ceil(pairs / self.passes))
            for pairs in (whole.pairs_min, whole.pairs_max)
        )
        share = {"pairs_min": least, "pairs_max": most, "budget_s": whole.budget_s / self.passes}
        return whole.model_copy(update=share)


class Generation(Latency):
    """How precisely to measure generation: time to the first token, per output token, and per
    character.
    """

    half_width: float = Field(default=0.02, gt=0, lt=1)
    """Stop once every ratio's interval is at most this wide to each side, as a share of the
    ratio."""
    budget: Duration = 300.0
    """Stop timing after this long; fewer than `pairs.min` pairs are then `insufficient`. One pair
    is two runs of the workload."""
    timeout: Duration = 1800.0
    """The job is killed after this long; what is made on demand (weights, rotations, a vocabulary)
    counts."""


class Accuracy(KindSection):
    """How much to evaluate."""

    images: _Natural | None = None
    """Evaluate this many images, evenly spread over the data; all where it is left out."""
    timeout: Duration = 1800.0
    """The job is killed after this long; training a model on demand counts."""


class Quality(KindSection):
    """How much to read."""

    characters: _Natural | None = None
    """Read this many characters of the held-out text; all of it where it is left out."""
    tasks: tuple[Annotated[str, Field(pattern=r"^\S(.*\S)?$")], ...] | None = Field(
        default=None, min_length=1
    )
    """Tasks of lm-eval to answer zero-shot, each a name or the path of a YAML file; needs lm-eval
    and the tasks' data on disk."""
    documents: _Natural | None = None
    """Answer this many documents of each task, evenly spread over them; all where it is left
    out."""
    timeout: Duration = 1800.0
    """The job is killed after this long; what is made on demand (weights, rotations, a vocabulary)
    counts."""

    @field_validator("documents")
    @classmethod
    def _of_tasks(cls, documents: int | None, info: ValidationInfo) -> int | None:
        if documents is not None and not info.data.get("tasks"):
            raise ValueError(
                "counts those of `tasks`, and none is named; name tasks, or bound the held-out text"
                " by `characters`"
            )
        return documents


class Profile(Latency):
    """How long to time the forwards whose time is then explained, kernel by kernel or operator by
    operator.
    """

    timeout: Duration = 1800.0
    """The job is killed after this long; what is made on demand (weights, rotations, a vocabulary)
    counts."""


class Jobs(FileSection):
    """The kinds of jobs that the sweep requests; where none is named, latency, or generation for
    language models.
    """

    latency: Latency | None = None
    accuracy: Accuracy | None = None
    generation: Generation | None = None
    quality: Quality | None = None
    profile: Profile | None = None

    def protocols(self, modality: Modality) -> dict[Kind, Protocol]:
        """How precisely to measure each kind of the sweep, in the order of `KINDS`; models of
        `modality` are timed where none is named.

        A section that several kinds share stands for those of models of `modality`, if there are
        any.
        """
        own = {spec.section for spec in kinds_of(modality)}
        found = {
            kind: section.protocol()
            for kind, spec in KINDS.items()
            if (section := getattr(self, spec.section)) is not None
            and (spec.modality == modality or spec.section not in own)
        }
        timing = kinds_of(modality)[0]
        default, _ = get_args(Jobs.model_fields[timing.section].annotation)
        return found or {timing.name: default().protocol()}


class Retry(FileSection):
    """When a job that got no answer is tried again."""

    max_attempts: int = Field(default=2, ge=1, le=100)
    when: tuple[Literal["worker_crash", "node_died"], ...] = ("worker_crash", "node_died")


class Limits(FileSection):
    """Guards against sweeps that are larger than meant."""

    max_jobs: int = Field(default=5000, ge=1, le=10_000_000)
    arms_per_job: int = Field(default=16, ge=2, le=1000)
    """Arms (baselines included) in one job; more are split into several jobs, each with its own
    baselines."""


class Stop(FileSection):
    """When a curve of a search is settled."""

    factor: float = Field(default=1.25, gt=1)
    """Once the interval of its break-even is at most so wide: upper over lower end."""


class BreakEvenSearch(FileSection):
    """A search for the break-even along one axis, instead of a grid on it."""

    kind: Literal["breakeven"] = "breakeven"
    axis: str = Field(min_length=1)
    """`image_size`, `batch_size`, `prompt_tokens`, `threads`, or a numeric parameter that every
    method has."""
    bracket: tuple[float, float]
    """The least and the largest value of the axis."""
    stop: Stop = Stop()
    max_points: int = Field(default=8, ge=2, le=100)
    """Places on the axis at most; each is tested at the level of a comparison divided by this."""
    budget: Duration = 600.0
    """Measure no longer than this; settled or not, the search ends then."""

    @field_validator("bracket")
    @classmethod
    def _ascending(cls, bracket: tuple[float, float]) -> tuple[float, float]:
        if not bracket[0] < bracket[1]:
            raise ValueError(
                f"needs the smaller value first, such as [{bracket[1]:g}, {bracket[0]:g}]"
            )
        return bracket


def _demanded(value: Any) -> Any:
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(demand, dict) and demand for demand in listed):
        raise ValueError(
            "needs the labels of a node, such as {zone: a}, or a list of such mappings, not"
            f" {shown(value)}"
        )
    for name, wanted in (item for demand in listed for item in demand.items()):
        is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
        if not (0 < wanted < math.inf if is_number else isinstance(wanted, str) and wanted):
            raise ValueError(
                f"{name} needs a label's value as text, or an amount of a resource above 0, not"
                f" {shown(wanted)}"
            )
    return tuple(value) if isinstance(value, list) else value


_LABEL = Annotated[str, Field(pattern=r"^\S+$", max_length=200)]
_VALUE = (
    Annotated[str, Field(min_length=1, max_length=200)]
    | Annotated[float, Field(gt=0, allow_inf_nan=False)]
)
Demand = Annotated[dict[_LABEL, _VALUE], Field(min_length=1)]


class Sweep(FileSection):
    """A sweep as it is written; `sweeps.language.expand` gives its axes, methods and rules their
    meaning.
    """

    schema_version: Annotated[Literal[1], BeforeValidator(_language)] = Field(alias="schema")
    """The version of the sweep language."""
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)
    """Letters, digits, dots, dashes and underscores; `breakeven report NAME` shows it."""
    question: str = ""
    """What the sweep is to answer, for people."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Condition fields that hold at every point unless an axis sets them."""
    axes: dict[str, Any] = Field(default_factory=dict)
    """Condition fields that vary; every combination is a point."""
    methods: tuple[dict[str, Any] | str, ...] = ()
    """What is measured side by side with the baselines at every point."""
    baselines: tuple[dict[str, Any] | str, ...] = Field(default=("dense",), min_length=1)
    """What every method is compared with: `dense`, a method, or overrides such as `{runtime:
    eager}`."""
    x_axis: str | None = None
    """Of own models: the axis with a free name along which the break-even is sought. Where it is
    left out: what `tokens(…)` of the model's file counts, or the only such axis."""
    zip: tuple[tuple[str, ...], ...] = ()
    """Groups of axes or method parameters (`topk.keep_rate`) that move together."""
    exclude: tuple[dict[str, Any], ...] = ()
    """Rules: AND inside a rule, OR between rules."""
    include: tuple[dict[str, Any], ...] = ()
    """Full extra points, not filtered by `exclude`."""
    jobs: Jobs = Jobs()
    search: BreakEvenSearch | None = None
    """Look for the break-even along one axis, which then has no grid."""
    budget: Duration | None = None
    """Measure no longer than this: first one pass of everything, then what narrows unresolved
    curves most."""
    retry: Retry = Retry()
    limits: Limits = Limits()
    resources: (
        Annotated[
            Demand | Annotated[tuple[Demand, ...], Field(min_length=1)], BeforeValidator(_demanded)
        ]
        | None
    ) = None
    """What a node must have: labels of Ray with their values (`ray start --labels`), or amounts of
    resources (`--resources`). Each mapping of a list requests all curves anew, each whole on a node
    that has what it names."""

    @property
    def demands(self) -> tuple[dict[str, str | float], ...]:
        """The distinct mappings of `resources`."""
        if self.resources is None:
            return ()
        written = (self.resources,) if isinstance(self.resources, dict) else self.resources
        return tuple({canonical(demand): dict(demand) for demand in written}.values())


def parse(document: Document) -> Sweep:
    """The sweep in `document`, its own keys checked. Raises `SweepError`."""
    written = {key: value for key, value in document.root.items() if value is not None}
    if isinstance(jobs := written.get("jobs"), dict):
        written["jobs"] = {
            key: {} if value is None and key in Jobs.model_fields else value
            for key, value in jobs.items()
        }
    try:
        return validated(document.at(), Sweep, written)
    except SweepError as error:
        if error.key == "schema" and "schema" not in written:
            raise document.at("schema").error(f"{error.problem}; write `schema: 1`") from None
        raise
