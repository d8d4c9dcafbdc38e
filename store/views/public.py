"""The public SQL views: what people query. Columns are added at the end, never changed or removed.

They only select: every figure was computed by `sweeps.stats` and stored by `store/derive`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    CreateView,
    DropView,
    Float,
    FromClause,
    Integer,
    MetaData,
    Select,
    Table,
    and_,
    case,
    cast,
    exists,
    func,
    literal,
    or_,
    select,
)

from store.tables.derived import BreakEvenRow, EffectRow
from store.tables.lightweight import newest_revision
from store.tables.planned import ArmColumns, ComparisonRow, EnvironmentRow, SweepComparisonRow, SweepRow, core
from store.tables.results import ArmResultRow, AttemptRow, FailureRow, MetricRow, ReportedColumns
from store.views import fingerprint
from sweeps.kinds import kinds_of
from sweeps.metrics import METRICS, MetricSpec

EFFECT, COMPARISON, ENVIRONMENT, SWEEP = core(EffectRow), core(ComparisonRow), core(EnvironmentRow), core(SweepRow)
ASKED, BREAK_EVEN, METRIC, FAILURE = core(SweepComparisonRow), core(BreakEvenRow), core(MetricRow), core(FailureRow)
ATTEMPT, ARM = core(AttemptRow), core(ArmResultRow)

FORMER = ("language",)
"""Views of older schemas, which a migration drops."""


def newest_answer(effect: FromClause) -> ColumnElement[bool]:
    """Whether no newer answer to the question of a row of `effect_row` exists in its environment on its host.

    A raised method VERSION or protocol makes the answer of the older comparison_id stale.
    """
    newer = EFFECT.alias("newer")
    later = or_(
        newer.c.measured_at > effect.c.measured_at,
        and_(newer.c.measured_at == effect.c.measured_at, newer.c.comparison_id > effect.c.comparison_id),
    )
    same = (newer.c[name] == effect.c[name] for name in ("question_id", "environment", "host"))
    return ~exists(select(newer.c.metric).where(*same, later).correlate_except(newer))


def gmacs_total(table: FromClause) -> ColumnElement[float]:
    """GMACs of an arm, those that its method adds included."""
    return table.c.gmacs + func.coalesce(table.c.gmacs_overhead, 0.0)


def gmacs_saved(effect: FromClause) -> ColumnElement[float]:
    """Share of the baseline's GMACs that the arm saves."""
    return 1 - gmacs_total(effect) / func.nullif(effect.c.gmacs_baseline, 0.0, type_=Float())


def _named(table: FromClause, names: str | Iterable[str]) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in (names.split() if isinstance(names, str) else names)]


CONDITION = tuple(name for name in ArmColumns.model_fields if name not in {"arm_id", "kind", "device", "condition_id"})
"""Columns of an arm and its condition that views have."""
REPORTED = tuple(ReportedColumns.model_fields)
_ANSWER = (
    *_named(EFFECT, "comparison_id question_id"),
    *_named(COMPARISON, "arm_id kind"),
    *_named(EFFECT, "source measured_at environment host"),
    *_named(ENVIRONMENT, "device device_name"),
    *_named(COMPARISON, (*CONDITION, "baseline", "baseline_id", "condition_id", "quality_arm_id", "quality_pair_id")),
)
_WORK = (
    *_named(EFFECT, "tokens tokens_final gmacs_baseline gmacs gmacs_overhead"),
    gmacs_total(EFFECT).label("gmacs_total"),
    gmacs_saved(EFFECT).label("gmacs_saved"),
)
_ANSWERED = EFFECT.join(COMPARISON, COMPARISON.c.comparison_id == EFFECT.c.comparison_id).join(
    ENVIRONMENT, ENVIRONMENT.c.environment_id == EFFECT.c.environment
)


def _effect() -> Select[Any]:
    figures = "baseline_value arm_value arm_low arm_high device_value effect effect_low effect_high n rounds verdict floor flags"
    columns = (
        *_named(EFFECT, "metric unit compared threads"),
        *_WORK,
        *_named(EFFECT, f"{figures} analysis_version"),
        *_named(EFFECT, REPORTED),
    )
    shown = or_(EFFECT.c.effect.is_not(None), EFFECT.c.baseline_value.is_not(None), EFFECT.c.arm_value.is_not(None))
    return select(*_ANSWER, COMPARISON.c.curve_id, *columns).select_from(_ANSWERED).where(shown, newest_answer(EFFECT))


def _speedup() -> Select[Any]:
    renamed = {
        "baseline_ms": EFFECT.c.baseline_value,
        "arm_ms": EFFECT.c.arm_value,
        "device_ms": EFFECT.c.device_value,
        "speedup": EFFECT.c.effect,
        "speedup_low": EFFECT.c.effect_low,
        "speedup_high": EFFECT.c.effect_high,
        "pairs": EFFECT.c.n,
    }
    columns = (
        *_named(EFFECT, "metric threads"),
        *_WORK,
        *(column.label(name) for name, column in renamed.items()),
        *_named(EFFECT, "rounds verdict floor flags"),
        *_named(EFFECT, REPORTED),
    )
    measured = and_(EFFECT.c.compared == "ratio", EFFECT.c.effect.is_not(None), newest_answer(EFFECT))
    return select(*_ANSWER, COMPARISON.c.curve_id, *columns).select_from(_ANSWERED).where(measured)


def _beside(main: str, columns: Iterable[ColumnElement[Any]], figures: Mapping[str, str], counts: Mapping[str, str]) -> Select[Any]:
    """One row for each answer with the metric `main`: `columns`, and figures of its other metrics side by side.

    `figures` and `counts` name for each column a metric and its column of `effect_row`, as `kl.arm_low`; counts are whole numbers.
    """
    tables: dict[str, FromClause] = {main: EFFECT}
    source = _ANSWERED
    for place in (*figures.values(), *counts.values()):
        metric = place.partition(".")[0]
        if metric not in tables:
            tables[metric] = other = EFFECT.alias(metric)
            same = (other.c[name] == EFFECT.c[name] for name in ("comparison_id", "environment", "host"))
            source = source.outerjoin(other, and_(*same, other.c.metric == metric))

    def read(place: str) -> ColumnElement[Any]:
        metric, _, column = place.partition(".")
        return tables[metric].c[column]

    answer = (
        *_named(EFFECT, "comparison_id question_id"),
        *_named(COMPARISON, "arm_id kind"),
        *_named(EFFECT, "source measured_at environment"),
        *_named(ENVIRONMENT, "device device_name"),
        *_named(COMPARISON, "model weights method params baseline baseline_id dtype attention data seed"),
        *_named(COMPARISON, "condition_id quality_arm_id quality_pair_id"),
        *columns,
        *(cast(read(place), Integer).label(name) for name, place in counts.items()),
        *(read(place).label(name) for name, place in figures.items()),
        *_named(EFFECT, "verdict floor flags"),
    )
    measured = and_(EFFECT.c.metric == main, EFFECT.c.effect.is_not(None), newest_answer(EFFECT))
    return select(*answer).select_from(source).where(measured)


def _bounded(metric: str, name: str | None = None) -> dict[str, str]:
    """Columns for a figure that is not compared, and its interval."""
    return {f"{name or metric}{end}": f"{metric}.arm_{place}" for end, place in (("", "value"), ("_low", "low"), ("_high", "high"))}


def _accuracy() -> Select[Any]:
    figures = {
        "top1_baseline": "top1.baseline_value",
        **_bounded("top1"),
        "top5_baseline": "top5.baseline_value",
        "top5": "top5.arm_value",
        "mcnemar_p": "mcnemar_p.arm_value",
        **_bounded("kl"),
        **_bounded("margin_change"),
        "margin_change_p05": "margin_change_p05.arm_value",
    }
    counted = ("unreadable", "only_baseline_correct", "only_arm_correct")
    counts = {"images": "top1.n", **{name: f"{name}.arm_value" for name in counted}}
    # 0 less the effect: a minus sign would make -0.0 of no drop
    drop = {
        "top1_drop": 0 - EFFECT.c.effect,
        "top1_drop_low": 0 - EFFECT.c.effect_high,
        "top1_drop_high": 0 - EFFECT.c.effect_low,
    }
    condition = _named(COMPARISON, "corruption severity image_size")
    return _beside("top1", (*condition, *_WORK, *(column.label(name) for name, column in drop.items())), figures, counts)


def _quality() -> Select[Any]:
    figures = {
        "bits_per_byte_baseline": "bits_per_byte.baseline_value",
        "bits_per_byte": "bits_per_byte.arm_value",
        "bits_per_byte_change": "bits_per_byte.effect",
        "bits_per_byte_change_low": "bits_per_byte.effect_low",
        "bits_per_byte_change_high": "bits_per_byte.effect_high",
        "perplexity_baseline": "perplexity.baseline_value",
        "perplexity": "perplexity.arm_value",
        **_bounded("top1_agreement"),
        **_bounded("kl"),
    }
    counts = {
        "windows": "bits_per_byte.n",
        "windows_skipped": "windows_skipped.arm_value",
        "bytes": "bytes_scored.arm_value",
        "characters": "characters_scored.arm_value",
        "tokens_baseline": "tokens_scored.baseline_value",
        "tokens": "tokens_scored.arm_value",
    }
    return _beside("bits_per_byte", (), figures, counts)


def _failures() -> Select[Any]:
    condition = [name for name in CONDITION if name != "seed"]
    failed = EFFECT.join(FAILURE, FAILURE.c.id == EFFECT.c.failure).join(ATTEMPT, ATTEMPT.c.id == FAILURE.c.attempt)
    source = failed.join(COMPARISON, COMPARISON.c.comparison_id == EFFECT.c.comparison_id).join(
        ENVIRONMENT, ENVIRONMENT.c.environment_id == EFFECT.c.environment
    )
    columns = (
        *_named(EFFECT, "comparison_id question_id environment"),
        *_named(ENVIRONMENT, "device device_name"),
        *_named(COMPARISON, ("kind", *condition, "threads", "baseline", "baseline_id")),
        *_named(FAILURE, "reason message attempt"),
        EFFECT.c.measured_at.label("at"),
        ATTEMPT.c.host,
    )
    return select(*columns).select_from(source).where(newest_answer(EFFECT)).distinct()


def _break_even() -> Select[Any]:
    figures = "axis varied_parameter verdict x x_low x_high direction grid_limited points points_missing why floor curve_id"
    columns = (
        SWEEP.c.name.label("sweep"),
        *_named(BREAK_EVEN, "environment host"),
        *_named(ENVIRONMENT, "device device_name"),
        COMPARISON.c.kind,
        *_named(BREAK_EVEN, f"metric threads {figures}"),
        *_named(COMPARISON, (*(name for name in CONDITION if name not in {"corruption", "severity"}), "baseline", "baseline_id")),
    )
    source = (
        BREAK_EVEN.join(SWEEP, SWEEP.c.id == BREAK_EVEN.c.sweep)
        .join(COMPARISON, COMPARISON.c.comparison_id == BREAK_EVEN.c.comparison_id)
        .join(ENVIRONMENT, ENVIRONMENT.c.environment_id == BREAK_EVEN.c.environment)
    )
    return select(*columns).select_from(source).where(newest_revision(SWEEP))


def _metric() -> Select[Any]:
    source = METRIC.join(ATTEMPT, ATTEMPT.c.id == METRIC.c.attempt).outerjoin(
        ARM, and_(ARM.c.attempt == METRIC.c.attempt, ARM.c.arm == METRIC.c.arm)
    )
    columns = (*_named(METRIC, "attempt arm metric value unit low high n"), *_named(ARM, "arm_id"))
    return select(*columns, *_named(ATTEMPT, "environment flags host"), ARM.c.route).select_from(source)


def _sweep_comparison() -> Select[Any]:
    asked = ASKED.join(SWEEP, SWEEP.c.id == ASKED.c.sweep)
    return select(SWEEP.c.name.label("sweep"), ASKED.c.comparison_id).select_from(asked).where(newest_revision(SWEEP))


def _declared() -> list[MetricSpec]:
    """Metrics that the view `arm` has a column for; those of a family (`zeroshot_*`) are rows of `metric` alone."""
    return [spec for name, spec in METRICS.items() if "*" not in name]


def metric_column(spec: MetricSpec) -> tuple[str, dict[str, float]]:
    """Column of the view `arm` for a metric, and how many of its units each unit is that a worker may report."""
    if spec.unit == "ms":
        return f"{spec.name}_ms", {"s": 1000}
    if spec.unit in {"B", "MiB"}:
        return spec.name if "bytes" in spec.name else f"{spec.name}_bytes", {"MiB": 1048576}
    return spec.name, {}


def _arm() -> Select[Any]:
    """For each arm and condition the newest attempt, one without a flag before one with any."""
    wide = []
    for spec in _declared():
        name, factors = metric_column(spec)
        scaled = METRIC.c.value * case(*((METRIC.c.unit == unit, by) for unit, by in factors.items()), else_=1) if factors else None
        wide.append(func.max(case((METRIC.c.metric == spec.name, METRIC.c.value if scaled is None else scaled))).label(name))
    metrics = select(METRIC.c.attempt, METRIC.c.arm, *wide).group_by(METRIC.c.attempt, METRIC.c.arm).subquery("metrics")
    other, attempt = ARM.alias("other"), ATTEMPT.alias("other_attempt")

    def flagged(arm: FromClause, of: FromClause) -> ColumnElement[int]:
        return case((and_(arm.c.flags == "", of.c.flags == ""), 0), else_=1)

    old, new = flagged(ARM, ATTEMPT), flagged(other, attempt)
    better = (
        select(other.c.attempt)
        .join(attempt, attempt.c.id == other.c.attempt)
        .where(
            other.c.arm_condition_id == ARM.c.arm_condition_id,
            attempt.c.environment == ATTEMPT.c.environment,
            attempt.c.host == ATTEMPT.c.host,
            or_(new < old, and_(new == old, attempt.c.id > ATTEMPT.c.id)),
        )
        .correlate(ARM, ATTEMPT)
    )
    columns = (
        *_named(ARM, "attempt arm arm_id kind condition_id arm_condition_id"),
        *_named(ATTEMPT, "environment host"),
        *_named(ENVIRONMENT, "device device_name"),
        *_named(ARM, (*CONDITION, "threads", "batch", "parameters", "tokens", "tokens_final", "gmacs", "gmacs_overhead")),
        gmacs_total(ARM).label("gmacs_total"),
        *(metrics.c[column.name] for column in wide),
        ARM.c.flags.label("arm_flags"),
        ATTEMPT.c.flags.label("job_flags"),
        *_named(ATTEMPT, "source ended_at"),
        *_named(ARM, REPORTED),
    )
    source = (
        ARM.join(ATTEMPT, ATTEMPT.c.id == ARM.c.attempt)
        .join(ENVIRONMENT, ENVIRONMENT.c.environment_id == ATTEMPT.c.environment)
        .outerjoin(metrics, and_(metrics.c.attempt == ARM.c.attempt, metrics.c.arm == ARM.c.arm))
    )
    return select(*columns).select_from(source).where(~exists(better))


def _generation() -> Select[Any]:
    arm = CreateView(_arm(), "arm").table
    other = {metric_column(spec)[0] for spec in _declared() if spec.modality == "vision" or spec.read == "item"}
    hidden = other | {"image_size", "corruption", "severity", "batch"}
    timed = [kind.name for kind in kinds_of("language") if kind.timed]
    return select(*(column for column in arm.c if column.name not in hidden)).where(arm.c.kind.in_(timed))


def statements() -> dict[str, Select[Any]]:
    """Name of each view and the statement behind it by the declarations of metrics and kinds, after those that it selects from."""
    return {
        "effect": _effect(),
        "speedup": _speedup(),
        "accuracy": _accuracy(),
        "quality": _quality(),
        "break_even": _break_even(),
        "failures": _failures(),
        "metric": _metric(),
        "sweep_comparison": _sweep_comparison(),
        "arm": _arm(),
        "generation": _generation(),
    }


VIEWS = statements()
TABLES: Mapping[str, Table] = {name: CreateView(statement, name).table for name, statement in VIEWS.items()}
"""The views as tables to select from."""


def create_views(connection: Connection) -> None:
    """Create all views."""
    for name, statement in statements().items():
        connection.execute(CreateView(statement, name))
    connection.execute(CreateView(select(literal(fingerprint.fingerprint()).label("fingerprint")), fingerprint.NAME))


def drop_views(connection: Connection) -> None:
    """Drop the views that exist, of this and of older schemas."""
    for name in reversed((*VIEWS, *FORMER, fingerprint.NAME)):
        connection.execute(DropView(Table(name, MetaData()), if_exists=True))
