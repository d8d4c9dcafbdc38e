"""Arm, Comparison and Job: the work of a worker, and the identities of the questions."""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from sweeps.model.condition import UNCOMPILED, Condition, Kind, Overrides
from sweeps.model.identity import FrozenModel, canonical, digest_of
from sweeps.model.kinds import KINDS

MAX_TIMEOUT_S = 1e9
"""Three decades; timers of the operating system overflow later."""


class Protocol(FrozenModel):
    """How precisely to measure; part of no identity. Times in seconds."""

    pairs_min: int = Field(default=30, ge=2)
    pairs_max: int = Field(default=300, ge=2)
    half_width: float = Field(default=0.015, gt=0, lt=1)
    """Stop once every ratio's interval is at most this wide to each side, as a share of the ratio,
    by the errors within a process. What differs between visits is left out here."""
    budget_s: PositiveFloat = 10.0
    """Stop timing after this long, warm-up excluded; with fewer than `pairs_min` pairs the answer
    is `insufficient`."""
    timeout_s: float = Field(default=300.0, gt=0, le=MAX_TIMEOUT_S)
    """The job is killed after this long, not counting `compile_timeout_s`."""
    compile_timeout_s: float = Field(default=900.0, gt=0, le=MAX_TIMEOUT_S)
    """An arm that is compiled or exported may take this long for its first call, which is when that
    happens."""
    rounds: PositiveInt = 1
    """Repetitions of the whole job, each in a fresh process when more than one."""
    passes: PositiveInt = 1
    """Visits to the job, spread over the sweep, each with models copied anew; pairs and budget are
    those of one visit."""
    images: PositiveInt | None = None
    """Accuracy jobs: evaluate this many images (evenly spread over the data); `None` for all."""
    characters: PositiveInt | None = None
    """Quality jobs: read this many characters of the held-out text; `None` for all of it."""
    tasks: tuple[str, ...] | None = None
    """Quality jobs: answer these tasks of lm-eval besides, each a name or the path of a YAML
    file."""
    documents: PositiveInt | None = None
    """Quality jobs: answer this many documents of each task (evenly spread over them); `None` for
    all."""

    @model_validator(mode="after")
    def _ordered(self) -> "Protocol":
        if self.pairs_min > self.pairs_max:
            raise ValueError(
                f"pairs: min is {self.pairs_min}, above max, which is {self.pairs_max}"
            )
        return self

    @property
    def turns(self) -> int:
        """How often the job is executed: as rounds or as passes."""
        return max(self.rounds, self.passes)

    def satisfies(self, requested: "Protocol") -> bool:
        """Whether an answer that stopped under this protocol without reaching its width need not be
        tried again for `requested`.
        """
        return (
            self.pairs_min >= requested.pairs_min
            and self.pairs_max >= requested.pairs_max
            and self.half_width <= requested.half_width
            and self.budget_s >= requested.budget_s
            and _as_many(self.images, requested.images)
            and _as_many(self.characters, requested.characters)
            and set(requested.tasks or ()) <= set(self.tasks or ())
            and (not requested.tasks or _as_many(self.documents, requested.documents))
        )


def _as_many(made: int | None, requested: int | None) -> bool:
    """Whether `made` is no less than `requested`; `None` is all there is."""
    return made is None or (requested is not None and made >= requested)


Occupation = Literal["node", "device", "shared"]
"""What a job has to itself: its node, one GPU of it with a share of the cores, or nothing."""
NAMED = "named:"
"""In `Job.content_hashes` the hash of what a parameter names has this before the name."""
NAMING = ("data", "file")
"""Parameters that name a text or a file."""
PASS_SECONDS = 2.0
"""Energy, where a counter can be read, is measured in a pass of each arm alone that lasts at least
this long."""


class Step(FrozenModel):
    """One method in an arm's stack, with every parameter spelled out (defaults included) as plain
    JSON values.
    """

    method: str = Field(min_length=1)
    params: dict[str, Any] = Field(default_factory=dict)
    version: int = 1
    """The method's VERSION: part of what makes an answer stale, not of the question."""

    @property
    def code(self) -> str | None:
        """`FILE.py:FUNCTION` of an arm from a file of the user, which is its method."""
        return self.method if ":" in self.method else None

    def __str__(self) -> str:
        params = [
            f"{key}={canonical(value)}"
            for key, value in sorted(self.params.items())
            if value is not None
        ]
        return f"{self.method}({', '.join(params)})"


class Arm(FrozenModel):
    """One way of running the condition: an ordered stack of methods (empty: `dense`), overrides and
    a replicate number.
    """

    stack: tuple[Step, ...] = ()
    overrides: Overrides = Overrides()
    replicate: NonNegativeInt = 0
    """Distinguishes equal arms in A/A tests."""

    def request(self) -> dict[str, Any]:
        """The request, without versions: the part of the arm that identifies it."""
        return {
            "stack": [{"method": step.method, "params": step.params} for step in self.stack],
            "overrides": self.overrides.model_dump(exclude_none=True),
            "replicate": self.replicate or None,
        }

    @cached_property
    def request_text(self) -> str:
        """`request()` as canonical JSON."""
        return canonical(self.request())

    @cached_property
    def arm_id(self) -> str:
        return digest_of(self.request_text)

    @cached_property
    def versioned_text(self) -> str:
        """`request()` and the versions of its steps, as canonical JSON."""
        return f"[{self.request_text},{canonical([version for _, version in self.versions])}]"

    @cached_property
    def versions(self) -> tuple[tuple[str, int], ...]:
        """Each method of the stack with its VERSION."""
        return tuple((step.method, step.version) for step in self.stack)

    @property
    def method(self) -> str:
        """Name for tables and legends: `dense`, `topk`, or `a+b` for a stack."""
        return "+".join(step.method for step in self.stack) or "dense"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What it names outside the sweep: the text (`data`) or the file (`file`) that a method is
        made from, or the file with the method itself.
        """
        named = [[step.code, *(step.params.get(key) for key in NAMING)] for step in self.stack]
        return tuple(name for names in named for name in names if isinstance(name, str))

    def condition(self, condition: Condition) -> Condition:
        """`condition` with this arm's overrides applied."""
        own = {key: value for key, value in self.overrides if value is not None}
        return condition.model_copy(update=own)

    def __str__(self) -> str:
        name = " + ".join(map(str, self.stack)) or "dense"
        extra = [f"{key}={value}" for key, value in self.overrides if value is not None]
        if self.replicate:
            extra.append(f"replicate={self.replicate}")
        return f"{name} [{', '.join(extra)}]" if extra else name


DENSE = Arm()


class Comparison(FrozenModel):
    """One question: how does `arm` compare with `baseline` under `condition`?"""

    kind: Kind = "latency"
    condition: Condition
    baseline: Arm
    arm: Arm
    protocol_version: int = 1
    """Of the job that answers it."""
    warm: bool = False
    """As `Job.warm`."""

    @cached_property
    def question_id(self) -> str:
        """Identity of the question: no versions, no precision."""
        # the canonical JSON of kind, condition and both arms, made of parts that many comparisons
        # share
        condition = self.condition.request_text(self.kind)
        text = (
            f'"baseline":{self.baseline.request_text},"condition":{condition},"kind":"{self.kind}"'
        )
        return digest_of(f'{{"arm":{self.arm.request_text},{text}}}')

    def comparison_id(self, content_hashes: Mapping[str, str] | None = None) -> str:
        """Identity of an answer: the question, and what makes an answer to it stale.

        `content_hashes` holds hashes of what the condition only names (`weights` for a checkpoint
        file), and of what parameters name (see `Arm.names`), of which those of other arms do not
        count.
        """
        own = content_hashes or {}
        if any(key.startswith(NAMED) for key in own):
            names = {f"{NAMED}{name}" for arm in (self.baseline, self.arm) for name in arm.names}
            own = {
                key: value
                for key, value in own.items()
                if not key.startswith(NAMED) or key in names
            }
        versions = _versions((*self.baseline.versions, *self.arm.versions))
        protocol = f'"protocol":{self.protocol_version}'
        question = f'{protocol},"question":"{self.question_id}","versions":{versions}'
        question += ',"warm":true' if self.warm else ""
        return digest_of(f'{{"content_hashes":{canonical(own) if own else "{}"},{question}}}')


@lru_cache(maxsize=1024)
def _versions(stacks: tuple[tuple[str, int], ...]) -> str:
    return canonical(dict(stacks))


class Pair(NamedTuple):
    """Indices into `Job.arms`: measure the ratio of `baseline` over `arm`."""

    baseline: int
    arm: int


class Job(FrozenModel):
    """A randomised block: arms that run interleaved in one process on one device, and the pairs to
    compare.
    """

    kind: Kind = "latency"
    condition: Condition
    arms: tuple[Arm, ...] = Field(min_length=1)
    pairs: tuple[Pair, ...] = ()
    protocol: Protocol = Protocol()
    content_hashes: dict[str, str] = Field(default_factory=dict)
    """Hashes of what the condition only names, see `Comparison.comparison_id`."""
    files: dict[str, str] = Field(default_factory=dict)
    """Files of the user that it runs, by their paths from the sweep: their text, which
    `content_hashes` stands for in identities."""
    round: NonNegativeInt = 0
    protocol_version: PositiveInt = 1
    """Version of the way in which it is measured."""
    warm: bool = False
    """Each arm runs once before every sample, and that forward does not count. An engine that has
    its own copy of the weights is up to a tenth slower in its first forward after another arm, and
    a deployed model runs warm."""

    @model_validator(mode="after")
    def _pairs_exist(self) -> "Job":
        for baseline, arm in self.pairs:
            if baseline == arm or not (
                0 <= baseline < len(self.arms) and 0 <= arm < len(self.arms)
            ):
                raise ValueError(
                    f"pair ({baseline}, {arm}) does not name two of the job's {len(self.arms)} arms"
                )
        return self

    @cached_property
    def job_id(self) -> str:
        # the canonical JSON of all parts, the arms and the condition being shared by many jobs
        arms = ",".join([arm.versioned_text for arm in self.arms])
        pairs = ",".join([f"[{baseline},{arm}]" for baseline, arm in self.pairs])
        contents = canonical(self.content_hashes) if self.content_hashes else "{}"
        condition = f'"condition":{self.condition.canonical_text},"content_hashes":{contents}'
        condition += f',"kind":"{self.kind}"'
        warm = ',"warm":true' if self.warm else ""
        return digest_of(
            f'{{"arms":[{arms}],{condition},"pairs":[{pairs}],"protocol":{self.protocol_version},"round":{self.round}{warm}}}'
        )

    @cached_property
    def visited_id(self) -> str:
        """Of what is measured, whichever visit this is."""
        return self.model_copy(update={"round": 0}).job_id

    @property
    def occupation(self) -> Occupation:
        """What it must have to itself, so that its times are those of the condition."""
        if not KINDS[self.kind].timed:
            return "shared"
        return self.condition.exclusive or "node"

    @property
    def compiled(self) -> tuple[int, ...]:
        """Indices of the arms that are compiled before they run."""
        return tuple(
            index
            for index, arm in enumerate(self.arms)
            if arm.condition(self.condition).runtime not in UNCOMPILED
        )

    @property
    def timeout_s(self) -> float:
        """The job is killed after this long: its protocol's time-out, and for each compiled arm
        that of its compilation.
        """
        return self.protocol.timeout_s + len(self.compiled) * self.protocol.compile_timeout_s

    def comparison(self, pair: Pair) -> Comparison:
        return Comparison(
            kind=self.kind,
            condition=self.condition,
            baseline=self.arms[pair.baseline],
            arm=self.arms[pair.arm],
            protocol_version=self.protocol_version,
            warm=self.warm,
        )

    def comparisons(self) -> tuple[Comparison, ...]:
        """The questions of this job, in the order of `pairs`."""
        return self._comparisons

    @cached_property
    def _comparisons(self) -> tuple[Comparison, ...]:
        return tuple(self.comparison(Pair(*pair)) for pair in self.pairs)

    def comparison_ids(self) -> tuple[str, ...]:
        return self._comparison_ids

    @cached_property
    def _comparison_ids(self) -> tuple[str, ...]:
        return tuple(
            comparison.comparison_id(self.content_hashes) for comparison in self.comparisons()
        )

    def apart(self, arms: Collection[int]) -> "tuple[Job, ...]":
        """The job in two: the pairs without an arm, and those with it; of several arms, one of
        which is sought, halves.

        Empty where that divides nothing.
        """
        own = (
            [pair for pair in self.pairs if set(arms) & set(pair)]
            if len(arms) == 1
            else self.pairs[len(self.pairs) // 2 :]
        )
        parts = ([pair for pair in self.pairs if pair not in own], own)
        return tuple(self.only(part) for part in parts) if all(parts) else ()

    def only(self, pairs: Iterable[Pair]) -> "Job":
        """The same job reduced to `pairs` and the arms they need: how a job is bisected."""
        wanted = tuple(Pair(*pair) for pair in pairs)
        used = sorted({index for pair in wanted for index in pair})
        place = {old: new for new, old in enumerate(used)}
        return self.model_copy(
            update={
                "arms": tuple(self.arms[index] for index in used),
                "pairs": tuple(Pair(place[baseline], place[arm]) for baseline, arm in wanted),
            }
        )
