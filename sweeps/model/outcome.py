"""Outcome: what a worker returns for a job, as plain data; raw samples are the truth, everything
else can be derived again.
"""

import base64
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from sweeps.model.condition import Device
from sweeps.model.identity import FrozenModel, digest
from sweeps.model.job import Job, Pair
from sweeps.model.method import BlockTokens
from sweeps.model.profile import ArmProfile, Peaks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray


def pack(values: "ArrayLike", dtype: "DTypeLike") -> str:
    """An array as base64 text of its little-endian bytes."""
    import numpy as np

    return base64.b64encode(
        np.asarray(values, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()
    ).decode("ascii")


def unpack(text: str, dtype: "DTypeLike") -> "NDArray[Any]":
    """What `pack` packed."""
    import numpy as np

    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(dtype).newbyteorder("<"))


class ArmImages(FrozenModel):
    """One arm on the images of an evaluation, in their order; each text is `pack`ed, one value per
    image.
    """

    arm: int
    """Index into `Job.arms`."""
    predicted: str
    """Class with the highest logit, int16; -1 where the logits are not finite."""
    rank: str
    """How many classes have a higher logit than the true one, int16: 0 is a top-1 hit, below 5 a
    top-5 hit; -1 if not finite."""
    margin: str
    """Logit of the true class less the highest other logit, float32."""


class PairImages(FrozenModel):
    """How an arm's output differs from its baseline's, image by image."""

    baseline: int
    arm: int
    kl: str
    """KL(baseline || arm) of the softmax over the outputs that stand for the data's classes, in
    nats, float32.

    With a class map other outputs of the model are left out before the softmax.
    """


class Predictions(FrozenModel):
    """What an accuracy job saw: arms and pairs on the same images in the same order."""

    images: int
    classes: int
    labels: str
    """True classes, int16, packed."""
    listing: str
    """Hash of the data listing (names, labels, corruption): what was evaluated."""
    unreadable: tuple[str, ...] = ()
    """Names of images that could not be read; the rest was evaluated."""
    arms: tuple[ArmImages, ...] = ()
    pairs: tuple[PairImages, ...] = ()


SCORED, CONTEXT = 384, 256
"""Characters of a window that are scored, and of context before them: together some 220 tokens,
fewer than the sequence length of the smallest model's training."""


class ArmScores(FrozenModel):
    """One arm on the windows of a text, in their order; each text is packed by `predictions.pack`,
    a value per window.
    """

    arm: int
    """Index into `Job.arms`."""
    nll: str
    """Negative log likelihood of the window's text in nats, float64; NaN where it is not finite."""
    tokens: str
    """Tokens of the arm's own tokenizer in the scored part of the window, int32."""


class PairScores(FrozenModel):
    """How an arm's predictions differ from its baseline's, window by window; only where both read
    the same tokens.
    """

    baseline: int
    arm: int
    positions: str
    """Positions compared, int32."""
    agree: str
    """Positions at which both find the same token most likely, int32."""
    kl: str
    """Mean KL(baseline || arm) over the positions in nats, float32."""


class TextScores(FrozenModel):
    """What a quality job read: all arms on the same windows of the same text, in the same order."""

    windows: int
    listing: str
    """Hash of the text that was read."""
    bytes: str
    """UTF-8 bytes of the scored part of each window, int32."""
    characters: str
    """Characters of the same, int32."""
    documents: str
    """Which document each window is of, int32."""
    arms: tuple[ArmScores, ...] = ()
    pairs: tuple[PairScores, ...] = ()
    complete: bool = False
    """Whether these are all windows of the text, so that no more characters could be read."""


DatabaseCount = Annotated[int, Field(ge=0, lt=2**31)]
"""A count that every database can hold."""
YEAR_3000 = 32_503_680_000.0
"""Seconds since the epoch; what lies beyond is no time of a measurement."""
_Moment = Annotated[float, Field(gt=0, lt=YEAR_3000, allow_inf_nan=False)]
INTEGER = 2**63
"""No integer of an outcome is as large as this: a database cannot hold it."""

FailureReason = Literal[
    "out_of_memory", "timeout", "unsupported", "not_a_number", "wrong_result", "crash", "error"
]
ANSWERING_FAILURES: frozenset[FailureReason] = frozenset(
    {"out_of_memory", "timeout", "unsupported", "not_a_number"}
)
"""Failures that answer the question (exit code 0). A wrong result, a crash and `error`, an
unexpected exception, do not: the next run tries them again."""

WAITED_S = "waited_s"
"""Name of the system metric that holds the seconds for which a job waited for other processes to
free the cores."""
WORKER_UNFIT = "worker_unfit"
"""Name of the system metric by which an outcome marks its process as unfit for further jobs."""

SAME_COUNTS = ("gmacs", "gmacs_overhead", "tokens_final", "parameters")
"""Fields of `ArmOutcome` that are equal for arms that do the same work."""


class Environment(FrozenModel):
    """Fingerprint of what can change a time; ratios are never formed across two environments."""

    device: Device
    device_name: str
    """Marketing name of the GPU, or of the CPU."""
    facts: dict[str, str] = Field(default_factory=dict)
    """Driver, CUDA, CPU model, cores present, versions of python, torch, timm …"""

    @property
    def environment_id(self) -> str:
        return digest(self)


class MetricValue(FrozenModel):
    """One number about one arm: `low` and `high` bound it where an interval is known, `n` counts
    what it rests on.
    """

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    n: DatabaseCount | None = None


class Samples(FrozenModel):
    """Raw timings: one row per round, one column per measured arm (see `arms`), each of them
    seconds per forward pass.
    """

    arms: tuple[int, ...]
    """Indices into `Job.arms` of the columns; an arm that was timed twice in every round has
    two."""
    seconds: tuple[tuple[float, ...], ...]
    """Wall time per forward, shape [rounds, arms]. Cells of one row form pairs."""
    event_seconds: tuple[tuple[float, ...], ...] | None = None
    """Device time per forward from CUDA events, same shape; `None` on a CPU, where it is not
    measured apart."""
    order: tuple[tuple[int, ...], ...]
    """For each round the columns in the order they ran."""
    inner: tuple[int, ...]
    """Forwards that make up one sample, per column."""
    stopped: Literal["half_width", "plateau", "pairs_max", "budget"]
    series: dict[str, tuple[tuple[float, ...], ...]] = Field(default_factory=dict)
    """Further times of the same runs, each of the shape of `seconds`, in seconds: `ttft`, `tpot`
    and `time_per_char` of a generation job, whose `seconds` are those of the whole run, tokenizer
    included."""
    bursts: tuple[tuple[float, ...], ...] | None = None
    """Seconds per forward of several in one go, shape [bursts, arms], each arm once in the order of
    its first column."""

    @model_validator(mode="after")
    def _rectangular(self) -> Self:
        columns, rounds, arms = len(self.arms), len(self.seconds), len(set(self.arms))
        if len(self.inner) != columns or any(not 0 < forwards < 2**31 for forwards in self.inner):
            raise ValueError(
                f"samples.inner must have one positive number for each of the {columns} columns"
            )
        tables: dict[str, Sequence[Sequence[float]]] = {
            "seconds": self.seconds,
            "order": self.order,
            "event_seconds": self.seconds if self.event_seconds is None else self.event_seconds,
            **self.series,
        }
        for name, table in tables.items():
            if len(table) != rounds or any(len(row) != columns for row in table):
                raise ValueError(
                    f"samples: {name} must have {rounds} rounds of {columns} values, one for each"
                    " column of arms"
                )
        if any(len(row) != arms for row in self.bursts or ()):
            raise ValueError(f"samples: a row of bursts has not one value for each of {arms} arms")
        if any(sorted(row) != list(range(columns)) for row in self.order):
            raise ValueError(f"samples: a round is no order of the columns 0 to {columns - 1}")
        return self


class ArmOutcome(FrozenModel):
    """What is known of one arm that ran."""

    arm: int
    """Index into `Job.arms`."""
    gmacs: float | None = None
    """The network on the tokens it really saw, per image, in 1e9 MACs; `None`, as the other counts,
    where no network is known, as of a function."""
    gmacs_overhead: float | None = None
    """What the method itself adds, per image, in 1e9 MACs."""
    parameters: NonNegativeInt | None = None
    trainable_parameters: NonNegativeInt | None = None
    batch: DatabaseCount
    """Images per forward, from the tensor that the first block saw."""
    tokens: DatabaseCount | None = None
    """The size of the work: patch tokens that enter the first block; of own models what the first
    name of `Condition.x_axis` counts."""
    tokens_final: DatabaseCount | None = None
    """All tokens (prefix tokens included) that leave the last block."""
    trace: tuple[BlockTokens, ...] = ()
    threads: DatabaseCount
    """CPU threads really used."""
    warmup_s: float | None = None
    warmup_forwards: int | None = None
    first_call_s: float | None = None
    """Wall time of the very first forward, compilation included."""
    solved: dict[str, float] = Field(default_factory=dict)
    """What was solved from a request (a budget's parameter, a capped r)."""
    metrics: tuple[MetricValue, ...] = ()
    """Everything else as rows: peak_rss, cuda_peak_allocated, cuda_peak_reserved, energy_per_image,
    mean_power, throughput …"""
    flags: tuple[str, ...] = ()
    implementation: str | None = None
    """Which implementation ran, where a method has several that give equal results; `None` where
    there is one."""

    @property
    def gmacs_total(self) -> float:
        """With what the method adds; 0 where neither is known."""
        return (self.gmacs or 0.0) + (self.gmacs_overhead or 0.0)


class Failure(FrozenModel):
    """Why one arm (or, with `arm` None, the whole job) has no measurement."""

    arm: int | None
    reason: FailureReason
    message: str
    """One line for people."""
    detail: str = ""
    """Traceback or log tail."""


class Outcome(FrozenModel):
    """Everything that came of one attempt at a job."""

    schema_version: int = Field(default=1, ge=1, le=1)
    job: Job
    environment: Environment
    host: str
    started_at: _Moment
    """Seconds since the epoch, UTC; the span in which the job held its device."""
    ended_at: _Moment
    arms: tuple[ArmOutcome, ...] = ()
    failures: tuple[Failure, ...] = ()
    samples: Samples | None = None
    predictions: Predictions | None = None
    """Accuracy jobs: each arm's prediction for each image."""
    text_scores: TextScores | None = None
    """Quality jobs: how likely each arm found each window of the text."""
    profiles: tuple[ArmProfile, ...] | None = None
    """Profile jobs: where the time of each arm goes, phase by phase."""
    peaks: tuple[Peaks, ...] = ()
    """What the machine reaches at best, where the job measured it: an attribute of the
    environment."""
    system_metrics: dict[str, float] = Field(default_factory=dict)
    """What the monitors read around timing, by the names of
    `sweeps.model.metrics.SYSTEM_METRICS`."""
    system_series: dict[str, tuple[float | None, ...]] | None = None
    """What they read between rounds, as columns of equal length by the names of `SYSTEM_SERIES`
    there; `None` without readings."""
    flags: tuple[str, ...] = ()
    """Reasons to distrust the whole job: contended, thermal_slowdown, consistency_check_failed …"""
    notes: tuple[str, ...] = ()
    """What flags of the job or of its arms are about, where their name is not enough; a line
    each."""
    cores: tuple[DatabaseCount, ...] | None = None
    """The CPU cores that the process was pinned to; `None` where it was not."""
    process: str | None = None
    """Identifies the process that measured it: outcomes of one process share what is particular to
    it."""
    suspects: tuple[DatabaseCount, ...] = ()
    """Arms one of which changed what all arms of the process run on, where others can be measured
    apart from it (`Job.apart`): nothing else in this outcome counts then."""
    commit: str | None = None
    """The project's commit: provenance, not identity."""

    def same_work(self, pair: Pair) -> bool:
        """See `do_same_work`."""
        return do_same_work(self.job, self.arms, pair)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Outcomes are also read from untrusted files: what contradicts itself is refused here, not
        by a database.
        """
        if self.ended_at < self.started_at:
            raise ValueError(
                f"ended_at ({self.ended_at}) lies before started_at ({self.started_at})"
            )
        phases = [(profile.arm, profile.phase) for profile in self.profiles or ()]
        if len(set(phases)) < len(phases):
            raise ValueError("profiles names an arm and phase twice")
        named: dict[str, Collection[int]] = {
            "suspects": self.suspects,
            "arms": [arm.arm for arm in self.arms],
            "failures": {each.arm for each in self.failures if each.arm is not None},
            "profiles": {arm for arm, _ in phases},
            "samples.arms": set(self.samples.arms if self.samples else ()),
        }
        for name, kept in (("predictions", self.predictions), ("text_scores", self.text_scores)):
            if kept is not None:
                named[f"{name}.arms"] = [arm.arm for arm in kept.arms]
                named[f"{name}.pairs"] = {
                    arm for pair in kept.pairs for arm in (pair.baseline, pair.arm)
                }
        count = len(self.job.arms)
        for name, arms in named.items():
            if any(not 0 <= arm < count for arm in arms) or len(set(arms)) < len(arms):
                raise ValueError(
                    f"{name} must name arms of the job (0 to {count - 1}), each once: {list(arms)}"
                )
        large = max(map(abs, _integers(self.model_dump(exclude={"samples"}))))
        if large >= INTEGER:
            raise ValueError(
                f"an integer of {large.bit_length()} bits is too large; a database holds 63"
            )
        lengths = {len(column) for column in (self.system_series or {}).values()}
        if len(lengths) > 1:
            raise ValueError(f"the columns of system_series differ in length: {sorted(lengths)}")
        return self


def do_same_work(job: Job, arms: Iterable[ArmOutcome], pair: Pair) -> bool:
    """Whether the arms of a pair have equal counts, where these are known, under equal conditions:
    replicates, controls, methods without effect.
    """
    counts = {one.arm: tuple(getattr(one, name) for name in SAME_COUNTS) for one in arms}
    conditions = [job.arms[arm].condition(job.condition) for arm in pair]
    return (
        set(pair) <= counts.keys()
        and None not in counts[pair.arm]
        and counts[pair.baseline] == counts[pair.arm]
        and conditions[0] == conditions[1]
    )


def _integers(value: Any) -> Iterator[int]:
    """All integers in plain data."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _integers(inner)
