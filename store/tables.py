"""Tables of the store: what is asked, what is queued, what was measured, and what was derived from it.

Read from top to bottom this is the data's way. Names ending in `_row` are tables behind a public view of the shorter name
(`store/views.py`). Rows are built from validated nouns only, because SQLModel's table models validate nothing. The store's own
words are checked by the database too; words of the nouns (kind, dtype, reason ...) are not, so that a new one needs no migration.
Documents are JSON in text columns; times are seconds since the epoch (UTC) unless the column says otherwise.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, MetaData, UniqueConstraint
from sqlmodel import Field, SQLModel

STATES = ("waiting", "running", "done", "failed", "cancelled", "split")
"""States of a job. `failed`: it ended without an answer; `split`: its children carry its questions on."""
AXES = ("tokens", "gmacs", "gmacs_saved")
"""Axes of break-even: size of the work in patch tokens or GMACs of the baseline, or share of its GMACs that the arm saves."""
SOURCES = ("measured", "imported", "published")

SHARES = ("top1_baseline", "top1", "top1_low", "top1_high", "top5_baseline", "top5", "mcnemar_p")

METADATA: MetaData = SQLModel.metadata
METADATA.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


def one_of(column: str, words: Iterable[str]) -> CheckConstraint:
    """A CHECK that `column` holds one of `words`: enumerations stay readable text, and a typing error stays out."""
    listed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def number(column: str, least: str = "") -> CheckConstraint:
    """A CHECK that `column` is a finite number or NULL, and fulfils `least` (such as `> 0`).

    Adding 0 tells numbers from text, which SQLite would take in any column, and works on every database.
    """
    bound = f" AND {column} {least}" if least else ""
    return CheckConstraint(f"{column} + 0 = {column} AND {column} < 1e308 AND {column} > -1e308{bound}", name=column)


class Sweep(SQLModel, table=True):
    """A question as it was submitted; the same name with another text is a new revision, and the newest is what is reported."""

    __table_args__: Any = (UniqueConstraint("name", "revision"), number("revision", "> 0"))

    id: int | None = Field(default=None, primary_key=True)
    name: str
    revision: int
    text: str
    question: str
    settings: str
    """Retry and limits, as canonical JSON."""
    submitted_at: float


class Comparison(SQLModel, table=True):
    """One question together with what makes an answer to it stale. Condition columns are those of the arm, see `describing.py`."""

    __table_args__: Any = (
        number("image_size", "> 0"),
        number("batch_size", "> 0"),
        Index(None, "method", "model", "image_size"),
    )

    comparison_id: str = Field(primary_key=True)
    question_id: str = Field(index=True)
    curve_id: str = Field(index=True)
    """Equal for comparisons that differ in the image size alone: the points of one curve."""
    arm_id: str
    kind: str
    device: str
    model: str
    weights: str
    image_size: int
    batch_size: int
    threads: int | None
    """Threads asked for; NULL means one per core."""
    dtype: str
    attention: str
    runtime: str
    seed: int
    method: str
    params: str
    """Canonical JSON of what was asked of the arm."""
    baseline: str
    """Readable text; in brackets where the baseline differs from the condition columns."""
    document: str
    """The comparison, as canonical JSON."""
    contents: str
    data: str | None = None
    """What accuracy is measured on; NULL, as are the next two, where the question does not depend on it."""
    corruption: str | None = None
    severity: int | None = None


class SweepComparison(SQLModel, table=True):
    """Which sweep asks which comparison: many to many."""

    __tablename__ = "sweep_comparison_row"

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    comparison_id: str = Field(primary_key=True, foreign_key="comparison.comparison_id", index=True)


class Environment(SQLModel, table=True):
    """Fingerprint of what can change a time."""

    environment_id: str = Field(primary_key=True)
    device: str
    device_name: str
    facts: str


class Job(SQLModel, table=True):
    """The queue: one row for each block of arms that is to be run together."""

    __table_args__: Any = (
        one_of("state", STATES),
        number("attempts", ">= 0"),
        Index(None, "state", "id"),
    )

    id: int | None = Field(default=None, primary_key=True)
    job_id: str = Field(index=True)
    kind: str
    device: str
    state: str
    attempts: int
    """Recorded executions so far."""
    owner: str | None
    """The dispatcher that holds the lease while the job is running."""
    renewed_at: float | None
    """When the owner last showed that it is alive."""
    parent: int | None = Field(foreign_key="job.id")
    """The job that was split to make this one."""
    queued_at: float
    document: str
    """The job, as JSON."""


class SweepJob(SQLModel, table=True):
    """Which sweep waits for which job: many to many, since equal jobs are queued once."""

    __tablename__ = "sweep_job"

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    job: int = Field(primary_key=True, foreign_key="job.id", index=True)


class Attempt(SQLModel, table=True):
    """One execution of a job."""

    __table_args__: Any = (
        one_of("source", SOURCES),
        number("started_at", "> 0"),
        number("ended_at", ">= started_at"),
        number("n", "> 0"),
    )

    id: int | None = Field(default=None, primary_key=True)
    digest: str = Field(unique=True)
    """SHA-256 of the whole outcome: recording it twice changes nothing."""
    job: int | None = Field(foreign_key="job.id", index=True)
    """NULL for an imported outcome."""
    job_id: str = Field(index=True)
    n: int
    """1 for the first execution of the job."""
    round: int
    environment: str = Field(foreign_key="environment.environment_id")
    host: str
    started_at: float
    ended_at: float
    project_commit: str | None
    source: str
    flags: str
    """Reasons to distrust the whole job, joined by commas."""
    protocol: str
    """How precisely it was asked to measure, as canonical JSON."""
    readings: str
    """What the monitors saw, as JSON."""
    document: str
    """The outcome less its samples, as JSON: with `sample` nothing that the worker said is lost."""


class Sample(SQLModel, table=True):
    """Raw timings of an attempt: zlib-compressed little-endian arrays of shape [rounds, columns]."""

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    rounds: int
    columns: int
    arms: str
    """JSON list: index of the arm in each column."""
    inner: str
    """JSON list: forwards that make up one sample, per column."""
    stopped: str
    seconds: bytes = Field(sa_type=LargeBinary)
    """float64, wall seconds per forward."""
    device_seconds: bytes | None = Field(sa_type=LargeBinary)
    """float64, device seconds per forward; NULL where not measured apart."""
    run_order: bytes = Field(sa_type=LargeBinary)
    """int32: for each round the columns in the order they ran."""


class Evaluation(SQLModel, table=True):
    """What each arm of an attempt said of each image."""

    __table_args__: Any = (number("images", "> 0"), number("unreadable", ">= 0"))

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    images: int
    """Images evaluated."""
    unreadable: int
    """Images that could not be read."""
    classes: int
    listing: str
    """Hash of what was evaluated."""
    document: bytes = Field(sa_type=LargeBinary)
    """The evaluation as zlib-compressed JSON."""


class MeasuredArm(SQLModel, table=True):
    """What is known of one arm that ran in an attempt."""

    __tablename__ = "measured_arm"
    __table_args__: Any = (
        number("gmacs", ">= 0"),
        number("gmacs_method", ">= 0"),
        number("batch", "> 0"),
        number("tokens", ">= 0"),
        number("tokens_final", ">= 0"),
        number("threads", "> 0"),
    )

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    arm: int = Field(primary_key=True)
    arm_id: str
    gmacs: float
    gmacs_method: float
    parameters: int = Field(sa_type=BigInteger)
    trainable_parameters: int = Field(sa_type=BigInteger)
    batch: int
    tokens: int
    tokens_final: int
    threads: int
    flags: str


class Metric(SQLModel, table=True):
    """One number about one arm of an attempt. Numbers that are not finite stay in the attempt's document."""

    __tablename__ = "metric_row"
    __table_args__: Any = (number("value"), number("low"), number("high"), number("n", ">= 0"))

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    arm: int = Field(primary_key=True)
    metric: str = Field(primary_key=True)
    value: float
    unit: str
    low: float | None
    high: float | None
    n: int | None


class Failure(SQLModel, table=True):
    """Why an arm (or, with `arm` NULL, the whole attempt) has no measurement."""

    id: int | None = Field(default=None, primary_key=True)
    attempt: int = Field(foreign_key="attempt.id", index=True)
    arm: int | None
    reason: str
    message: str
    detail: str


class Pairing(SQLModel, table=True):
    """What an attempt says about a comparison: two arms that were timed side by side, or the failure that prevented it."""

    comparison_id: str = Field(primary_key=True, foreign_key="comparison.comparison_id")
    attempt: int = Field(primary_key=True, foreign_key="attempt.id", index=True)
    baseline: int
    arm: int
    failure: int | None = Field(foreign_key="failure.id")


class Speedup(SQLModel, table=True):
    """Derived: the answer to a comparison in an environment, all its attempts taken together."""

    __tablename__ = "speedup_row"
    __table_args__: Any = (
        one_of("verdict", ("faster", "slower", "same", "unclear")),
        one_of("source", SOURCES),
        *(number(column, "> 0") for column in ("speedup", "speedup_low", "speedup_high", "baseline_ms", "method_ms", "device_ms")),
        *(number(column, ">= 0") for column in ("tokens", "tokens_final", "gmacs_baseline", "gmacs", "gmacs_method")),
        *(number(column, ">= 0") for column in ("floor", "pairs", "rounds", "threads")),
        Index(None, "question_id", "environment", "metric", "measured_at"),
    )

    comparison_id: str = Field(primary_key=True, foreign_key="comparison.comparison_id")
    environment: str = Field(primary_key=True, foreign_key="environment.environment_id")
    metric: str = Field(primary_key=True)
    question_id: str
    measured_at: str
    """ISO 8601, UTC, to the millisecond: text order is time order."""
    source: str
    analysis_version: int
    floor: float
    failure: int | None = Field(foreign_key="failure.id")
    """Set, with all figures NULL, when no attempt measured the pair."""
    threads: int | None
    tokens: int | None
    tokens_final: int | None
    gmacs_baseline: float | None
    gmacs: float | None
    gmacs_method: float | None
    baseline_ms: float | None
    method_ms: float | None
    device_ms: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    pairs: int | None
    rounds: int | None
    verdict: str | None
    flags: str


class Accuracy(SQLModel, table=True):
    """Derived: the answer to a comparison of accuracy in an environment, from the attempt that saw the most images."""

    __tablename__ = "accuracy_row"
    __table_args__: Any = (
        one_of("verdict", ("better", "worse", "same", "unclear")),
        one_of("source", SOURCES),
        *(number(column, ">= 0") for column in SHARES),
        *(number(column, ">= 0") for column in ("tokens", "tokens_final", "gmacs_baseline", "gmacs", "gmacs_method")),
        *(number(column, ">= 0") for column in ("floor", "images", "unreadable", "lost", "gained")),
        *(number(column) for column in ("top1_drop", "top1_drop_low", "top1_drop_high", "kl", "kl_low", "kl_high")),
        *(number(f"margin_change{end}") for end in ("", "_low", "_high", "_tail")),
        Index(None, "question_id", "environment", "measured_at"),
    )

    comparison_id: str = Field(primary_key=True, foreign_key="comparison.comparison_id")
    environment: str = Field(primary_key=True, foreign_key="environment.environment_id")
    question_id: str
    measured_at: str
    """ISO 8601, UTC, to the millisecond: text order is time order."""
    source: str
    analysis_version: int
    floor: float
    """Points of top-1 that count as no difference."""
    failure: int | None = Field(foreign_key="failure.id")
    """Set, with all figures NULL, when no attempt evaluated the pair."""
    images: int | None
    unreadable: int | None
    tokens: int | None
    tokens_final: int | None
    gmacs_baseline: float | None
    gmacs: float | None
    gmacs_method: float | None
    top1_baseline: float | None
    top1: float | None
    top1_low: float | None
    top1_high: float | None
    top1_drop: float | None
    top1_drop_low: float | None
    top1_drop_high: float | None
    lost: int | None
    gained: int | None
    mcnemar_p: float | None
    verdict: str | None
    top5_baseline: float | None
    top5: float | None
    kl: float | None
    kl_low: float | None
    kl_high: float | None
    margin_change: float | None
    margin_change_low: float | None
    margin_change_high: float | None
    margin_change_tail: float | None
    flags: str


class BreakEven(SQLModel, table=True):
    """Derived: where a curve crosses 1, one row for each crossing, or one with `x` NULL."""

    __tablename__ = "break_even_row"
    __table_args__: Any = (
        one_of("axis", AXES),
        one_of("verdict", ("crossing", "always", "never", "unclear")),
        one_of("direction", ("gains", "loses")),
        *(number(column) for column in ("x", "x_low", "x_high")),
        number("points", ">= 0"),
        Index(None, "curve_id", "environment"),
    )

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    curve_id: str = Field(primary_key=True)
    environment: str = Field(primary_key=True, foreign_key="environment.environment_id")
    axis: str = Field(primary_key=True)
    crossing: int = Field(primary_key=True)
    """0 for the first crossing along the axis."""
    comparison_id: str = Field(foreign_key="comparison.comparison_id")
    """One of the curve's points, which tells model, method and condition."""
    threads: int | None
    verdict: str
    x: float | None
    x_low: float | None
    x_high: float | None
    direction: str | None
    grid_limited: bool | None
    points: int
    why: str
    floor: float
    analysis_version: int
    varies: str | None = None
    """Along `gmacs_saved`: the parameter that moves; NULL along the other axes, where the image size does."""
