"""Tables of the store: what was measured in each attempt at a job; nothing here can be derived again."""

from typing import Any

from sqlalchemy import BigInteger, Index, LargeBinary
from sqlmodel import Field, SQLModel

from store.tables.planned import SOURCES, number, one_of


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


class SampleSeries(SQLModel, table=True):
    """Further times of the runs in `sample`, by metric: zlib-compressed little-endian float64 of the same shape, in seconds."""

    __tablename__ = "sample_series"

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    metric: str = Field(primary_key=True)
    seconds: bytes = Field(sa_type=LargeBinary)


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


class Scores(SQLModel, table=True):
    """How likely each arm of an attempt found each window of a text."""

    __table_args__: Any = (number("windows", "> 0"), number("characters", ">= 0"))

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    windows: int
    characters: int
    """Characters read."""
    complete: bool
    """Whether the text has no more."""
    listing: str
    """Hash of the text."""
    document: bytes = Field(sa_type=LargeBinary)
    """The scores as zlib-compressed JSON."""


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
    route: str | None = None
    """Implementation that ran, where there is more than one (`ArmOutcome.route`)."""


class SpokenArm(SQLModel, table=True):
    """The condition under which an arm of a generation attempt really ran."""

    __tablename__ = "spoken_arm"
    __table_args__: Any = (
        *(number(column, "> 0") for column in ("batch_size", "prompt_tokens", "new_tokens")),
        Index(None, "setting_id"),
    )

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    arm: int = Field(primary_key=True)
    arm_id: str
    condition_id: str
    setting_id: str
    """Equal for the same arm, methods' versions included, under the same condition and contents: the newest of them is shown."""
    device: str
    model: str
    weights: str
    method: str
    params: str
    """Canonical JSON of what was asked of the arm."""
    data: str | None
    prompt_tokens: int | None
    new_tokens: int | None
    decoding: str | None
    batch_size: int
    kv_cache: str | None
    dtype: str
    attention: str
    runtime: str
    seed: int
    exclusive: str | None = None


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
