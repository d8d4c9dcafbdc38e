"""Derived tables: what follows from the measurements, computed by `sweeps.stats` and rebuilt by
`breakeven reanalyse`.
"""

from typing import get_args

from sqlalchemy import CheckConstraint, Index, text
from sqlmodel import Field, SQLModel

from store.schema.measured import ReportedColumns
from store.schema.planned import SOURCES, finite_number, finite_numbers, one_of
from store.schema.tables import COSTS, STAGES
from sweeps.model.metrics import Compared
from sweeps.stats.curve import Claim

BREAK_EVEN_AXES = (
    "tokens",
    "gmacs",
    "gmacs_saved",
    "image_size",
    "batch_size",
    "threads",
    "parameter",
)
"""Axes of break-even: size of the work in tokens or GMACs of the baseline, share of its GMACs that
the arm saves, numbers of the condition, and values of a parameter."""
VERDICTS = ("faster", "slower", "insufficient", "quarantined", "better", "worse", "same", "unclear")
_FAILED = text("failure IS NOT NULL")
"""What an index of the few failures among many effects holds."""


class EffectRow(ReportedColumns, table=True):
    """Derived: one metric of a comparison in an environment, on a host where the metric depends on
    the machine.

    A comparison that no attempt measured has a row with `failure` for each metric that its kind
    compares. Figures that are not compared with the baseline's (such as a KL divergence) have
    `arm_value` alone.
    """

    __tablename__ = "effect_row"
    __table_args__ = (
        one_of("source", SOURCES),
        one_of("compared", get_args(Compared)),
        one_of("verdict", VERDICTS),
        *finite_numbers("tokens tokens_final gmacs_baseline gmacs gmacs_overhead", ">= 0"),
        *finite_numbers("floor n rounds threads", ">= 0"),
        *finite_numbers("baseline_value arm_value arm_low arm_high device_value"),
        *finite_numbers("effect effect_low effect_high"),
        CheckConstraint(
            "compared <> 'ratio' OR (effect > 0 AND baseline_value > 0 AND arm_value > 0)",
            name="ratio",
        ),
        Index(None, "question_id", "environment", "host", "measured_at"),
        Index("ix_effect_row_failure", "failure", sqlite_where=_FAILED, postgresql_where=_FAILED),
    )

    comparison_id: str = Field(primary_key=True, foreign_key="comparison.comparison_id")
    environment: str = Field(primary_key=True, foreign_key="environment.environment_id")
    host: str = Field(primary_key=True)
    """Where it was measured; empty where the answer does not depend on the machine. Attempts of two
    hosts are never pooled."""
    metric: str = Field(primary_key=True)
    question_id: str
    measured_at: str
    """ISO 8601, UTC, to the millisecond: text order is time order."""
    source: str
    analysis_version: int
    unit: str
    """Of the values, and of a difference."""
    compared: str | None
    """`ratio`, `amount`: baseline over arm, of times and of what is read once; `difference`: arm
    less baseline; NULL: none."""
    floor: float | None
    """Differences up to this count as none: a share of 1 for a ratio, else in `unit`."""
    failure: int | None = Field(foreign_key="failure.id")
    """Set, with all figures NULL, when no attempt measured the pair."""
    threads: int | None
    tokens: int | None
    """The baseline's: the size of the work."""
    tokens_final: int | None
    gmacs_baseline: float | None
    gmacs: float | None
    gmacs_overhead: float | None
    baseline_value: float | None
    arm_value: float | None
    arm_low: float | None
    arm_high: float | None
    device_value: float | None
    """`arm_value` by the device's own clock."""
    effect: float | None
    effect_low: float | None
    effect_high: float | None
    effect_se: float | None = None
    """Standard error of the logarithm of a ratio, what differs between visits included."""
    effect_freedom: float | None = None
    """Degrees of freedom of `effect_se`."""
    visits_sd: float | None = None
    """By how much the log speed-ups of visits deviate, as they alone show it."""
    visits_freedom: float | None = None
    """Degrees of freedom of `visits_sd`."""
    ratio_of_means: float | None = None
    """Of times that every round samples: the baseline's mean over the arm's, slow forwards
    counted."""
    calibration_id: str | None = Field(default=None, foreign_key="calibration.calibration_id")
    """That of the newest attempt, whose spread is assumed before visits are compared; NULL: the
    default."""
    processes: str | None = None
    """JSON: those that measured it, sorted."""
    host_speed: float | None = None
    """The median speed of the newest run, as a share of the quickest known one."""
    effect_slow: float | None = None
    """In the slow state of the machine, where `effect` is that of the quick one and several visits
    saw the slow one too."""
    effect_slow_low: float | None = None
    effect_slow_high: float | None = None
    n: int | None
    """Pairs, images or windows that it rests on."""
    pairs_min: int | None = None
    """Pairs that the newest attempt was to measure at least; NULL where nothing is timed."""
    rounds: int | None
    """Attempts pooled."""
    seconds: float | None = None
    """Time that these attempts took, with all of their arms."""
    verdict: str | None
    flags: str
    realised_share: float | None = None
    """Of a ratio: its logarithm over that of what the MACs promise; NULL where the promise is no
    change (`sweeps.stats.timing`)."""


class BreakEvenRow(SQLModel, table=True):
    """Derived: where a curve crosses 1, one row for each crossing, or one with `x` NULL."""

    __tablename__ = "break_even_row"
    __table_args__ = (
        one_of("axis", BREAK_EVEN_AXES),
        one_of("verdict", get_args(Claim)),
        one_of("direction", ("gains", "loses")),
        *finite_numbers("x x_low x_high x_first x_last worst_loss largest_gain"),
        finite_number("points", ">= 0"),
        finite_number("points_missing", ">= 0"),
        Index(None, "curve_id", "environment"),
        Index(None, "comparison_id"),
    )

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    curve_id: str = Field(primary_key=True)
    environment: str = Field(primary_key=True, foreign_key="environment.environment_id")
    axis: str = Field(primary_key=True)
    crossing: int = Field(primary_key=True)
    """0 for the first crossing along the axis."""
    comparison_id: str = Field(foreign_key="comparison.comparison_id")
    """One of the curve's points, which identifies model, method and condition."""
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
    """Of the ratios on the curve."""
    varied_parameter: str | None = None
    """Along `gmacs_saved` and `parameter`: the parameter that varies; NULL along the other axes."""
    host: str = Field(primary_key=True)
    """Where all its points were measured."""
    points_missing: int = 0
    """Questions of the sweep on this curve that have no answer, not even a failure, in this
    environment on this host."""
    x_first: float | None = None
    """The smallest x that the claim rests on: without points that a flag excludes, and those where
    the method does nothing."""
    x_last: float | None = None
    """The largest."""
    worst_loss: float | None = None
    """Beyond a bound: the largest share of time that the intervals of the points there allow to be
    lost."""
    largest_gain: float | None = None
    """Largest speed-up less 1 that the interval of any point allows."""
    point_alpha: float | None = None
    """Level of its points' intervals where their places were chosen one after the other; NULL: that
    of each comparison."""
    left_out: str | None = None
    """Where the points lie that a flag excludes, such as `9, 64`."""


class CostModelRow(SQLModel, table=True):
    """Derived: launch and work of both sides of a curve along the size of the work, and the
    break-even that they predict.

    The time of a forward is launch + work; the method pays where its launch costs less than the
    work that it saves.
    """

    __tablename__ = "cost_model_row"
    __table_args__ = (
        one_of("work_unit", ("GMAC", "token")),
        one_of("verdict", ("fits", "misfit", "undetermined")),
        *(finite_number(f"{name}{end}", ">= 0") for name in COSTS for end in ("", "_low", "_high")),
        *(finite_number(f"predicted_x{end}") for end in ("", "_low", "_high")),
        finite_number("misfit_p", ">= 0"),
        finite_number("points", ">= 0"),
        Index(None, "curve_id", "environment"),
        Index(None, "comparison_id"),
    )

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    curve_id: str = Field(primary_key=True)
    environment: str = Field(primary_key=True, foreign_key="environment.environment_id")
    host: str = Field(primary_key=True)
    metric: str = Field(primary_key=True)
    comparison_id: str = Field(foreign_key="comparison.comparison_id")
    """One of the curve's points, which identifies model, method and condition."""
    threads: int | None
    points: int
    """Points with effect that no flag marks as wrong."""
    work_unit: str
    """What `beta` counts: `GMAC`, or `token` of the baseline where the MACs are not known."""
    verdict: str
    """`fits`; `misfit`: the speed-ups are not those of launch + work; `undetermined`: too few
    points, or too equal."""
    misfit_p: float | None
    """Probability of residuals as large as these if speed-ups were launch + work."""
    alpha_baseline: float | None = None
    """Launch in seconds; with 95 % intervals, as all four."""
    alpha_baseline_low: float | None = None
    alpha_baseline_high: float | None = None
    beta_baseline: float | None = None
    """Seconds per `work_unit`."""
    beta_baseline_low: float | None = None
    beta_baseline_high: float | None = None
    alpha: float | None = None
    """Of the arm, with what its method adds."""
    alpha_low: float | None = None
    alpha_high: float | None = None
    beta: float | None = None
    beta_low: float | None = None
    beta_high: float | None = None
    predicted_x: float | None = None
    """Tokens at which the model crosses 1, with its interval; one end is NULL where it is not
    distinguished from 1 up to there."""
    predicted_x_low: float | None = None
    predicted_x_high: float | None = None
    analysis_version: int


class PendingDerivationRow(SQLModel, table=True):
    """What is still to be derived of what is measured: the curves of recorded outcomes, and what an
    interrupted `breakeven reanalyse` has left.
    """

    __tablename__ = "pending_derivation"
    __table_args__ = (one_of("stage", STAGES),)

    id: int | None = Field(default=None, primary_key=True)
    analysis: str = Field(index=True)
    """Of `reanalyse`: the sweep, versions and newest calibration, as JSON; empty: what was
    recorded."""
    stage: str
    """`effects`, or the `curves` that these lie on."""
    environment: str = Field(foreign_key="environment.environment_id")
    comparisons: str
    """JSON list."""


class PanelProgressRow(SQLModel, table=True):
    """Derived: how far a panel of a sweep is. A panel has the comparisons that differ in sizes and
    parameters alone.
    """

    __tablename__ = "panel_progress"
    __table_args__ = (
        *finite_numbers("comparisons measured unclear insufficient failures", ">= 0"),
    )

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    panel_id: str = Field(primary_key=True, index=True)
    comparison_id: str = Field(foreign_key="comparison.comparison_id")
    """One of the panel, which identifies model, method and condition."""
    comparisons: int
    measured: int
    """Comparisons with figures, in whatever environment."""
    unclear: int
    """Of those measured: with an interval that decides nothing, in whatever environment."""
    insufficient: int
    """Of those measured: with fewer pairs than requested, or on a slowed machine alone."""
    failures: int
    """Comparisons with nothing but failures."""


class PanelRow(SQLModel, table=True):
    """Derived: the points of a panel of a sweep in an environment on a host, counted: rows of the
    view `speedup`.
    """

    __tablename__ = "panel_row"
    __table_args__ = (finite_number("points", "> 0"), finite_number("best"))

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    panel_id: str = Field(primary_key=True, index=True)
    environment: str = Field(primary_key=True, foreign_key="environment.environment_id")
    host: str = Field(primary_key=True)
    metric: str = Field(primary_key=True)
    threads: int | None
    points: int
    measured_at: str
    """Of its newest point."""
    best: float | None
    """The largest speed-up among those that are clear; NULL where none is."""


class ArmLabelRow(SQLModel, table=True):
    """What an arm is called in reports, charts and pages; made by the command line, which knows the
    defaults of methods.
    """

    __tablename__ = "arm_label"

    arm_id: str = Field(primary_key=True)
    label: str
