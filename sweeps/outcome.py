"""Outcome: what a worker hands back for a job, as plain data; raw samples are the truth, everything else can be derived again."""

from typing import Literal

from pydantic import Field

from sweeps.evaluation import Evaluation
from sweeps.identity import Noun, digest
from sweeps.job import Device, Job
from sweeps.method import BlockTokens
from sweeps.scores import Scores

FailureReason = Literal["out_of_memory", "timeout", "unsupported", "not_a_number", "crash", "error"]
ANSWERS: frozenset[FailureReason] = frozenset({"out_of_memory", "timeout", "unsupported", "not_a_number", "crash"})
"""Failures that answer the question (exit code 0). `error`, an exception nobody foresaw, does not: it is tried again."""

WORKER_UNFIT = "worker_unfit"
"""Reading by which an outcome asks that its process run no other job."""


class Environment(Noun):
    """Fingerprint of what can change a time; ratios are never formed across two environments."""

    device: Device
    device_name: str
    """Marketing name of the GPU, or of the CPU."""
    facts: dict[str, str] = Field(default_factory=dict)
    """Driver, CUDA, CPU model, cores present, versions of python, torch, timm …"""

    @property
    def environment_id(self) -> str:
        return digest(self)


class Metric(Noun):
    """One number about one arm: `low` and `high` bound it where an interval is known, `n` counts what it rests on."""

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    n: int | None = None


class Samples(Noun):
    """Raw timings: one row per round, one column per measured arm (see `arms`), each of them seconds per forward pass."""

    arms: tuple[int, ...]
    """Indices into `Job.arms` of the columns."""
    seconds: tuple[tuple[float, ...], ...]
    """Wall time per forward, shape [rounds, arms]. Cells of one row form pairs."""
    device_seconds: tuple[tuple[float, ...], ...] | None = None
    """Device time per forward from CUDA events, same shape; `None` on a CPU, where it is not measured apart."""
    order: tuple[tuple[int, ...], ...]
    """For each round the columns in the order they ran."""
    inner: tuple[int, ...]
    """Forwards that make up one sample, per column."""
    stopped: Literal["half_width", "plateau", "pairs_max", "budget"]
    series: dict[str, tuple[tuple[float, ...], ...]] = Field(default_factory=dict)
    """Further times of the same runs, each of the shape of `seconds`, in seconds: `ttft`, `tpot` and `time_per_char` of a
    generation job, whose `seconds` are those of the whole run, tokenizer included."""


class ArmOutcome(Noun):
    """What is known of one arm that ran."""

    arm: int
    """Index into `Job.arms`."""
    gmacs: float
    """The network on the tokens it really saw, per image, in 1e9 MACs."""
    gmacs_method: float
    """What the method itself adds, per image, in 1e9 MACs."""
    parameters: int
    trainable_parameters: int
    batch: int
    """Images per forward, from the tensor that the first block saw."""
    tokens: int
    """Patch tokens that enter the first block."""
    tokens_final: int
    """All tokens (prefix tokens included) that leave the last block."""
    trace: tuple[BlockTokens, ...]
    threads: int
    """CPU threads really used."""
    warmup_s: float | None = None
    warmup_forwards: int | None = None
    first_call_s: float | None = None
    """Wall time of the very first forward, compilation included."""
    solved: dict[str, float] = Field(default_factory=dict)
    """What was solved from what was asked (a budget's parameter, a capped r)."""
    metrics: tuple[Metric, ...] = ()
    """Everything else as rows: peak_rss, cuda_peak_allocated, cuda_peak_reserved, energy_per_image, mean_power, throughput …"""
    flags: tuple[str, ...] = ()
    route: str | None = None
    """Which implementation ran, where a method has several that give equal results; `None` where there is one."""


class Failure(Noun):
    """Why one arm (or, with `arm` None, the whole job) has no measurement."""

    arm: int | None
    reason: FailureReason
    message: str
    """One line for people."""
    detail: str = ""
    """Traceback or log tail."""


class Outcome(Noun):
    """Everything that came of one attempt at a job."""

    schema_version: Literal[1] = 1
    job: Job
    environment: Environment
    host: str
    started_at: float
    """Seconds since the epoch, UTC; the span in which the job held its device."""
    ended_at: float
    arms: tuple[ArmOutcome, ...] = ()
    failures: tuple[Failure, ...] = ()
    samples: Samples | None = None
    evaluation: Evaluation | None = None
    """Accuracy jobs: what each arm said of each image."""
    scores: Scores | None = None
    """Quality jobs: how likely each arm found each window of the text."""
    readings: dict[str, float] = Field(default_factory=dict)
    """What the monitors saw: load average, steal, involuntary context switches, clocks, temperature …"""
    flags: tuple[str, ...] = ()
    """Reasons to distrust the whole job: contended, throttled, identity_violated …"""
    notes: tuple[str, ...] = ()
    """What flags of the job or of its arms are about, where their name does not say it all; a line each."""
    commit: str | None = None
    """The project's commit: provenance, not identity."""
