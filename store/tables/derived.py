"""Derived tables: what follows from the measurements, computed by `sweeps` and rebuilt by `breakeven reanalyse`."""

from typing import Any

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from store.tables.planned import SOURCES, number, one_of

AXES = ("tokens", "gmacs", "gmacs_saved")
"""Axes of break-even: size of the work in tokens or GMACs of the baseline, or share of its GMACs that the arm saves."""
SHARES = ("top1_baseline", "top1", "top1_low", "top1_high", "top5_baseline", "top5", "mcnemar_p")
COUNTS = ("windows", "unscored", "bytes", "characters", "tokens_baseline", "tokens")
LEVELS = (
    *("bits_per_byte_baseline", "bits_per_byte", "perplexity_baseline", "perplexity"),
    *(f"top1_agreement{end}" for end in ("", "_low", "_high")),
)
JUDGED = ("better", "worse", "same", "unclear")


class Speedup(SQLModel, table=True):
    """Derived: the answer to a comparison in an environment and on a host, its attempts there taken together."""

    __tablename__ = "speedup_row"
    __table_args__: Any = (
        one_of("verdict", ("faster", "slower", "same", "unclear", "insufficient")),
        one_of("source", SOURCES),
        *(number(column, "> 0") for column in ("speedup", "speedup_low", "speedup_high", "baseline_ms", "method_ms", "device_ms")),
        *(number(column, ">= 0") for column in ("tokens", "tokens_final", "gmacs_baseline", "gmacs", "gmacs_method")),
        *(number(column, ">= 0") for column in ("floor", "pairs", "rounds", "threads")),
        Index(None, "question_id", "environment", "host", "metric", "measured_at"),
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
    host: str = Field(primary_key=True)
    """Where it was measured. Attempts of two hosts are never pooled."""
    route: str | None = None
    """Implementation that the arm ran with, where the worker reported one. Attempts of two routes are never pooled."""


class Accuracy(SQLModel, table=True):
    """Derived: the answer to a comparison of accuracy in an environment, from the attempt that saw the most images."""

    __tablename__ = "accuracy_row"
    __table_args__: Any = (
        one_of("verdict", JUDGED),
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


class Quality(SQLModel, table=True):
    """Derived: the answer to a comparison of quality in an environment, from the attempt that read the most characters."""

    __tablename__ = "quality_row"
    __table_args__: Any = (
        one_of("verdict", JUDGED),
        one_of("source", SOURCES),
        *(number(column, ">= 0") for column in ("floor", *COUNTS, *LEVELS)),
        *(number(f"bits_per_byte_change{end}") for end in ("", "_low", "_high")),
        *(number(f"kl{end}") for end in ("", "_low", "_high")),
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
    """Bits per byte that count as no difference."""
    failure: int | None = Field(foreign_key="failure.id")
    """Set, with all figures NULL, when no attempt scored the pair."""
    windows: int | None
    """Windows of text that both arms scored."""
    unscored: int | None
    """Windows left out because one of the two gave no finite likelihood."""
    bytes: int | None
    characters: int | None
    tokens_baseline: int | None
    tokens: int | None
    bits_per_byte_baseline: float | None
    bits_per_byte: float | None
    bits_per_byte_change: float | None
    bits_per_byte_change_low: float | None
    bits_per_byte_change_high: float | None
    verdict: str | None
    perplexity_baseline: float | None
    perplexity: float | None
    top1_agreement: float | None
    top1_agreement_low: float | None
    top1_agreement_high: float | None
    kl: float | None
    kl_low: float | None
    kl_high: float | None
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
        number("points_missing", ">= 0"),
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
    metric: str = Field(default="latency", primary_key=True)
    """Of the speed-ups on the curve."""
    varies: str | None = None
    """Along `gmacs_saved`: the parameter that moves; NULL along the other axes, where the image size does."""
    host: str = Field(primary_key=True)
    """Where all its points were measured."""
    points_missing: int = 0
    """Questions on this curve that the sweep asks and that have no answer, not even a failure, in this environment on this host."""
