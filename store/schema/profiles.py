"""Tables of profiles: where the time of an arm's forward goes, recorded in an attempt or imported
from a profiler's file; peaks.
"""

from typing import Any, get_args

from sqlmodel import Field, SQLModel

from store.schema.planned import SOURCES, finite_number, one_of
from sweeps.model.profile import COUNTERS, Activity, Phase, Side, TimeClass, Tool


class ProfileRow(SQLModel, table=True):
    """An `ArmProfile` of `sweeps.model.profile`: of an attempt, or (`attempt` NULL) of an imported
    file.
    """

    __tablename__ = "profile_row"
    __table_args__: Any = (
        one_of("source", SOURCES),
        one_of("tool", get_args(Tool)),
        one_of("phase", get_args(Phase)),
        one_of("side", get_args(Side)),
        finite_number("forwards", "> 0"),
        finite_number("recorded_at", "> 0"),
        *(
            finite_number(column, ">= 0")
            for column in ("wall_s", "profiled_wall_s", "launches", "kernel_time_share")
        ),
        *(finite_number(column, ">= 0") for column in ("allocations", "allocated_bytes")),
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
    __table_args__: Any = (
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
    __table_args__: Any = (
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
    __table_args__: Any = (
        finite_number("measured_at", "> 0"),
        *(finite_number(column, "> 0") for column in ("gflops", "gb_per_s", "threads")),
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
    gflops: float
    """1e9 floating-point operations per second, two per MAC."""
    gb_per_s: float
    """1e9 bytes per second of memory, read and written."""
