"""Tables of the store: what was measured in each attempt at a job, with profiles and peaks; nothing
here can be derived again.

A profile shows where the time of an arm's forward goes, recorded in an attempt or imported from a
profiler's file.
"""

from typing import get_args

from sqlalchemy import BigInteger, Index, LargeBinary
from sqlmodel import Field, SQLModel

from store.schema.planned import (
    CONDITION_CHECKS,
    SOURCES,
    ArmColumns,
    finite_number,
    finite_numbers,
    one_of,
)
from sweeps.model.profile import COUNTERS, Activity, Phase, Side, TimeClass, Tool


class CalibrationRow(SQLModel, table=True):
    """What differs between processes, estimated from repeats in fresh ones, or between visits, from
    all comparisons of a sweep; never changed, so that answers keep theirs.
    """

    __tablename__ = "calibration"
    __table_args__ = (
        one_of("made_of", ("processes", "visits")),
        *finite_numbers("process_sd tau tau_low tau_high created_at", ">= 0"),
        *finite_numbers("freedom processes contrasts", "> 0"),
        Index(None, "environment", "size_class", "created_at"),
    )

    calibration_id: str = Field(primary_key=True)
    """Digest of what it was made from."""
    made_of: str
    environment: str = Field(foreign_key="environment.environment_id")
    size_class: str
    """Of models, by their parameters (`sweeps.stats.calibration.size_class`)."""
    created_at: float
    process_sd: float
    """Standard deviation of a log speed-up that intervals assume before visits are compared:
    between processes an upper bound of `tau`."""
    tau: float
    tau_low: float
    tau_high: float
    freedom: float
    """Degrees of freedom of `process_sd`."""
    processes: int
    """Or visits."""
    contrasts: int


class AttemptRow(SQLModel, table=True):
    """One execution of a job."""

    __tablename__ = "attempt"
    __table_args__ = (
        one_of("source", SOURCES),
        finite_number("started_at", "> 0"),
        finite_number("ended_at", ">= started_at"),
        finite_number("n", "> 0"),
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
    process: str | None = None
    """Identifies the process that measured it; NULL where it is not known, so that each attempt
    counts as one."""
    calibration_id: str | None = Field(default=None, foreign_key="calibration.calibration_id")
    """The term between processes that its effects are derived with; NULL: the stated default. Only
    `reanalyse` changes it."""
    started_at: float
    ended_at: float
    project_commit: str | None
    source: str
    flags: str
    """Reasons to distrust the whole job, joined by commas."""
    protocol: str
    """The requested precision, as canonical JSON."""
    system_metrics: str
    """What the monitors read, as JSON."""
    payload: str
    """The outcome less its raw data, as JSON: with the tables below nothing of an outcome is
    lost."""


class SampleRow(SQLModel, table=True):
    """Raw timings of an attempt: zlib-compressed little-endian arrays of shape [rounds,
    columns], or the file that `breakeven archive` moved them to.
    """

    __tablename__ = "sample"

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    rounds: int
    columns: int
    arms: str
    """JSON list: index of the arm in each column."""
    inner: str
    """JSON list: forwards that make up one sample, per column."""
    stopped: str
    seconds: bytes | None = Field(sa_type=LargeBinary)
    """float64, wall seconds per forward; NULL, as the next three, where `archive` holds them."""
    event_seconds: bytes | None = Field(sa_type=LargeBinary)
    """float64, device seconds per forward; NULL where not measured apart."""
    run_order: bytes | None = Field(sa_type=LargeBinary)
    """int32: for each round the columns in the order they ran."""
    bursts: bytes | None = Field(default=None, sa_type=LargeBinary)
    """float64, seconds per forward of several in one go, each arm once in the order of its first
    column; NULL where none."""
    archive: str | None = Field(default=None, index=True)
    """Parquet file with its arrays, by its path from the root or the folder of the store;
    NULL: they are here."""


class SampleSeriesRow(SQLModel, table=True):
    """Further times of the runs in `sample`, by metric: zlib-compressed little-endian float64 of
    the same shape, in seconds.
    """

    __tablename__ = "sample_series"

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    metric: str = Field(primary_key=True)
    seconds: bytes | None = Field(sa_type=LargeBinary)
    """NULL where the file of `sample` holds them."""


class ItemColumns(SQLModel):
    """Columns of results for each image or text window."""

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    listing: str
    """Hash of what was evaluated."""
    payload: bytes = Field(sa_type=LargeBinary)
    """The results as zlib-compressed JSON."""


class ImagePredictionsRow(ItemColumns, table=True):
    """What each arm of an attempt predicted for each image."""

    __tablename__ = "image_predictions"
    __table_args__ = (finite_number("images", "> 0"), finite_number("unreadable", ">= 0"))

    images: int
    """Images evaluated."""
    unreadable: int
    """Images that could not be read."""
    classes: int


class TextScoresRow(ItemColumns, table=True):
    """The likelihood that each arm of an attempt gave each window of a text."""

    __tablename__ = "text_scores"
    __table_args__ = (finite_number("windows", "> 0"), finite_number("characters", ">= 0"))

    windows: int
    characters: int
    """Characters read."""
    complete: bool
    """Whether the text has no more."""


class ReportedColumns(SQLModel):
    """Fields of `ArmOutcome` that `arm_result` and `effect_row` have, and the views `effect`,
    `speedup` and `arm` end with.
    """

    implementation: str | None = None
    """Implementation that ran, where there is more than one. Attempts of two implementations are
    never pooled."""


class ArmResultRow(ArmColumns, ReportedColumns, table=True):
    """One arm that ran in an attempt: the condition it really ran under, and what was counted."""

    __tablename__ = "arm_result"
    __table_args__ = (
        *(finite_number(column, "> 0") for column in (*CONDITION_CHECKS, "batch", "threads")),
        *finite_numbers("gmacs gmacs_overhead tokens tokens_final", ">= 0"),
        Index(None, "arm_condition_id"),
    )

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    arm: int = Field(primary_key=True)
    arm_condition_id: str
    """Equal for the same arm, methods' versions included, under the same condition and contents:
    the newest of them is shown."""
    gmacs: float | None = None
    """NULL, as the next ones, where no network is known, as of a function."""
    gmacs_overhead: float | None = None
    parameters: int | None = Field(default=None, sa_type=BigInteger)
    trainable_parameters: int | None = Field(default=None, sa_type=BigInteger)
    batch: int
    tokens: int | None = None
    """The size of the work; of own models what `x_axis` counts."""
    tokens_final: int | None = None
    threads: int
    """CPU threads used."""
    flags: str


class MetricRow(SQLModel, table=True):
    """One number about one arm of an attempt. Numbers that are not finite stay in the attempt's
    payload.
    """

    __tablename__ = "metric_row"
    __table_args__ = (
        finite_number("value"),
        finite_number("low"),
        finite_number("high"),
        finite_number("n", ">= 0"),
    )

    attempt: int = Field(primary_key=True, foreign_key="attempt.id")
    arm: int = Field(primary_key=True)
    metric: str = Field(primary_key=True)
    value: float
    unit: str
    low: float | None
    high: float | None
    n: int | None


class FailureRow(SQLModel, table=True):
    """Why an arm (or, with `arm` NULL, the whole attempt) has no measurement."""

    __tablename__ = "failure"

    id: int | None = Field(default=None, primary_key=True)
    attempt: int = Field(foreign_key="attempt.id", index=True)
    arm: int | None
    reason: str
    message: str
    detail: str


class ComparisonAttemptRow(SQLModel, table=True):
    """What an attempt holds for a comparison: two arms that ran side by side, or the failure that
    prevented it.
    """

    __tablename__ = "comparison_attempt"

    comparison_id: str = Field(primary_key=True, foreign_key="comparison.comparison_id")
    attempt: int = Field(primary_key=True, foreign_key="attempt.id", index=True)
    baseline: int
    arm: int
    failure: int | None = Field(foreign_key="failure.id")


class ProfileRow(SQLModel, table=True):
    """An `ArmProfile` of `sweeps.model.profile`: of an attempt, or (`attempt` NULL) of an imported
    file.
    """

    __tablename__ = "profile_row"
    __table_args__ = (
        one_of("source", SOURCES),
        one_of("tool", get_args(Tool)),
        one_of("phase", get_args(Phase)),
        one_of("side", get_args(Side)),
        finite_number("forwards", "> 0"),
        finite_number("recorded_at", "> 0"),
        *finite_numbers("wall_s profiled_wall_s launches kernel_time_share", ">= 0"),
        *finite_numbers("allocations allocated_bytes", ">= 0"),
    )

    profile_id: str = Field(primary_key=True)
    """Digest of the profile and where it is from: recording it twice changes nothing."""
    attempt: int | None = Field(default=None, foreign_key="attempt.id", index=True)
    """NULL for a file."""
    arm: int
    """Index into the arms of the attempt's job; of a file 0, or the index that its mark holds."""
    source: str | None = None
    """NULL: that of the attempt."""
    tool: str
    phase: str
    digest: str | None = Field(default=None, index=True)
    """SHA-256 of the imported file; NULL for an attempt."""
    file: str | None = None
    """Name of the imported file, without its folder."""
    comparison_id: str | None = Field(default=None, index=True)
    """The comparison that an imported file is tied to, which the store need not hold; NULL: none,
    or see `attempt`."""
    side: str | None = None
    """Which arm of `comparison_id` it shows: `baseline` or `arm`."""
    label: str | None = None
    """The arm of an imported file, in words."""
    environment: str | None = Field(default=None, foreign_key="environment.environment_id")
    """Where an imported file was recorded, if that is known; an attempt has its own."""
    device_name: str | None = None
    """The device as an imported file names it."""
    recorded_at: float
    """Seconds since the epoch, UTC: when the attempt ended or the file was imported."""
    forwards: int
    wall_s: float | None = None
    profiled_wall_s: float | None = None
    launches: float
    kernel_time_share: float | None = None
    allocations: float | None = None
    allocated_bytes: float | None = None
    baseline: int | None = None
    """This and the rest: of an attempt with rounds under the profiler; NULL in profiles of
    files."""
    rounds: int | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    profiled_speedup: float | None = None
    profiled_speedup_low: float | None = None
    profiled_speedup_high: float | None = None


class ProfileTimeRow(SQLModel, table=True):
    """One class of time of a profile, in seconds per forward."""

    __tablename__ = "profile_time_row"
    __table_args__ = (
        one_of("time_class", get_args(TimeClass)),
        finite_number("seconds", ">= 0"),
    )

    profile_id: str = Field(primary_key=True, foreign_key="profile_row.profile_id")
    time_class: str = Field(primary_key=True)
    attempt: int | None = Field(default=None, foreign_key="attempt.id", index=True)
    """That of the profile."""
    seconds: float
    change: float | None = None
    """What the arm takes more than its baseline, as a share of the baseline's wall; NULL of the
    baseline and without rounds."""
    change_low: float | None = None
    change_high: float | None = None


class KernelRow(SQLModel, table=True):
    """All runs of one kernel or operator in a profile, as means of one forward."""

    __tablename__ = "kernel_row"
    __table_args__ = (
        one_of("activity", get_args(Activity)),
        finite_number("rank", ">= 0"),
        *(
            finite_number(column, ">= 0")
            for column in ("count", "seconds", "gmacs", "bytes_moved", *COUNTERS)
        ),
    )

    profile_id: str = Field(primary_key=True, foreign_key="profile_row.profile_id")
    rank: int = Field(primary_key=True)
    """0 for the one with the longest total."""
    attempt: int | None = Field(default=None, foreign_key="attempt.id", index=True)
    """That of the profile."""
    name: str
    activity: str
    count: float
    seconds: float
    gmacs: float | None = None
    bytes_moved: float | None = None
    sm_throughput: float | None = None
    """This and the rest: hardware counters in per cent, see `sweeps.model.profile.COUNTERS`."""
    memory_throughput: float | None = None
    achieved_occupancy: float | None = None
    l1_hit_rate: float | None = None
    l2_hit_rate: float | None = None


class PeakRow(SQLModel, table=True):
    """What a device reaches at best, as measured on a host: an attribute of an environment, no part
    of its identity.
    """

    __tablename__ = "peak_row"
    __table_args__ = (
        finite_number("measured_at", "> 0"),
        *finite_numbers("gflops gb_per_s threads", "> 0"),
    )

    id: int | None = Field(default=None, primary_key=True)
    environment: str = Field(foreign_key="environment.environment_id", index=True)
    host: str
    attempt: int | None = Field(default=None, foreign_key="attempt.id", index=True)
    """The profile job that measured them; NULL: `breakeven doctor`."""
    measured_at: float
    """Seconds since the epoch, UTC."""
    dtype: str
    threads: int | None = None
    """CPU threads that were used; NULL on a GPU."""
    kernel: str | None = None
    """Of the fastest matrix product."""
    gflops: float
    """1e9 floating-point operations per second, two per MAC."""
    gb_per_s: float
    """1e9 bytes per second of memory, read and written."""
