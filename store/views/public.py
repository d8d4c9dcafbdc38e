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
    func,
    literal,
    or_,
    select,
)

from store.schema.tables import (
    ARM_LABEL,
    ARM_RESULT,
    ATTEMPT,
    BREAK_EVEN,
    COMPARISON,
    CONDITION,
    COST_MODEL,
    COSTS,
    EFFECT,
    ENVIRONMENT,
    FAILURE,
    METRIC,
    REFERENCE,
    REPORTED,
    SWEEP,
    SWEEP_COMPARISON,
    gmacs_saved,
    gmacs_total,
    named,
    newest_answer,
    newest_revision,
    same_arm,
)
from store.views import fingerprint
from store.views.attempts import (
    arm_view,
    execution_view,
    generation_view,
    kernel_view,
    profile_view,
)

_ANSWER = (
    *named(EFFECT, "comparison_id question_id"),
    *named(COMPARISON, "arm_id kind"),
    *named(EFFECT, "source measured_at environment host"),
    *named(ENVIRONMENT, "device device_name"),
    *named(
        COMPARISON,
        (
            *CONDITION,
            "baseline",
            "baseline_method",
            "baseline_id",
            "condition_id",
            "quality_arm_id",
            "quality_pair_id",
        ),
    ),
)
_WORK = (
    *named(EFFECT, "tokens tokens_final gmacs_baseline gmacs gmacs_overhead"),
    gmacs_total(EFFECT).label("gmacs_total"),
    gmacs_saved(EFFECT).label("gmacs_saved"),
)
_ANSWERED = EFFECT.join(COMPARISON).join(ENVIRONMENT)


def _effect() -> Select[Any]:
    figures = (
        "baseline_value arm_value arm_low arm_high device_value effect effect_low effect_high n"
        " rounds verdict floor flags"
    )
    columns = (
        *named(EFFECT, "metric unit compared threads"),
        *_WORK,
        *named(EFFECT, f"{figures} analysis_version"),
        *named(EFFECT, REPORTED),
        *named(EFFECT, "calibration_id"),
        COMPARISON.c.panel_id,
        *named(EFFECT, "ratio_of_means host_speed effect_slow effect_slow_low effect_slow_high"),
    )
    shown = or_(
        EFFECT.c.effect.is_not(None),
        EFFECT.c.baseline_value.is_not(None),
        EFFECT.c.arm_value.is_not(None),
    )
    return (
        select(*_ANSWER, COMPARISON.c.curve_id, *columns)
        .select_from(_ANSWERED)
        .where(shown, newest_answer(EFFECT))
    )


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
        *named(EFFECT, "metric threads"),
        *_WORK,
        *(column.label(name) for name, column in renamed.items()),
        *named(EFFECT, "rounds verdict floor flags"),
        *named(EFFECT, REPORTED),
        *named(EFFECT, "calibration_id"),
        (EFFECT.c.gmacs_baseline / func.nullif(gmacs_total(EFFECT), 0.0, type_=Float())).label(
            "speedup_macs"
        ),
        EFFECT.c.realised_share,
        _label(),
        COMPARISON.c.panel_id,
        *named(EFFECT, "pairs_min ratio_of_means host_speed"),
        *(
            EFFECT.c[f"effect_{name}"].label(f"speedup_{name}")
            for name in ("slow", "slow_low", "slow_high")
        ),
    )
    # nearly all rows are ratios: `coalesce` keeps SQLite from making an index of them for every
    # join
    ratio = func.coalesce(EFFECT.c.compared, "") == "ratio"
    measured = and_(ratio, EFFECT.c.effect.is_not(None), newest_answer(EFFECT))
    return select(*_ANSWER, COMPARISON.c.curve_id, *columns).select_from(_ANSWERED).where(measured)


def _label() -> ColumnElement[str]:
    """What the arm is called: method and all parameters where no label is stored."""
    plain = case(
        (COMPARISON.c.params == "{}", COMPARISON.c.method),
        else_=COMPARISON.c.method.concat(" ").concat(COMPARISON.c.params),
    )
    stored = (
        select(ARM_LABEL.c.label)
        .where(ARM_LABEL.c.arm_id == COMPARISON.c.arm_id)
        .correlate(COMPARISON)
        .scalar_subquery()
    )
    return func.coalesce(stored, plain).label("arm_label")


def _beside(
    main: str,
    columns: Iterable[ColumnElement[Any]],
    figures: Mapping[str, str],
    counts: Mapping[str, str],
) -> Select[Any]:
    """One row for each answer with the metric `main`: `columns`, and figures of its other metrics
    side by side.

    `figures` and `counts` name for each column a metric and its column of `effect_row`, as
    `kl.arm_low`; counts are whole numbers.
    """
    tables: dict[str, FromClause] = {main: EFFECT}
    source = _ANSWERED
    for place in (*figures.values(), *counts.values()):
        metric = place.partition(".")[0]
        if metric not in tables:
            tables[metric] = other = EFFECT.alias(metric)
            same = (
                other.c[name] == EFFECT.c[name] for name in ("comparison_id", "environment", "host")
            )
            source = source.outerjoin(other, and_(*same, other.c.metric == metric))

    def read(place: str) -> ColumnElement[Any]:
        metric, _, column = place.partition(".")
        return tables[metric].c[column]

    answer = (
        *named(EFFECT, "comparison_id question_id"),
        *named(COMPARISON, "arm_id kind"),
        *named(EFFECT, "source measured_at environment"),
        *named(ENVIRONMENT, "device device_name"),
        *named(
            COMPARISON,
            "model weights method params baseline baseline_method baseline_id dtype attention"
            " data seed",
        ),
        *named(COMPARISON, "condition_id quality_arm_id quality_pair_id"),
        *columns,
        *(cast(read(place), Integer).label(name) for name, place in counts.items()),
        *(read(place).label(name) for name, place in figures.items()),
        *named(EFFECT, "verdict floor flags"),
        COMPARISON.c.panel_id,
    )
    measured = and_(EFFECT.c.metric == main, EFFECT.c.effect.is_not(None), newest_answer(EFFECT))
    return select(*answer).select_from(source).where(measured)


def _bounded(metric: str, name: str | None = None) -> dict[str, str]:
    """Columns for a figure that is not compared, and its interval."""
    return {
        f"{name or metric}{end}": f"{metric}.arm_{place}"
        for end, place in (("", "value"), ("_low", "low"), ("_high", "high"))
    }


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
    condition = named(COMPARISON, "corruption severity image_size image_shape")
    return _beside(
        "top1",
        (*condition, *_WORK, *(column.label(name) for name, column in drop.items())),
        figures,
        counts,
    )


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
    failed = EFFECT.join(FAILURE).join(ATTEMPT)
    source = failed.join(COMPARISON, COMPARISON.c.comparison_id == EFFECT.c.comparison_id).join(
        ENVIRONMENT, ENVIRONMENT.c.environment_id == EFFECT.c.environment
    )
    columns = (
        *named(EFFECT, "comparison_id question_id environment"),
        *named(ENVIRONMENT, "device device_name"),
        *named(
            COMPARISON,
            ("kind", *condition, "threads", "baseline", "baseline_method", "baseline_id"),
        ),
        *named(FAILURE, "reason message attempt"),
        EFFECT.c.measured_at.label("at"),
        *(ATTEMPT.c.host, COMPARISON.c.panel_id),
    )
    other = EFFECT.alias("first_metric")  # a failure has a row for each metric of its kind
    key = (
        other.c[name] == EFFECT.c[name]
        for name in ("comparison_id", "environment", "host", "failure")
    )
    earlier = select(other.c.metric).where(*key, other.c.metric < EFFECT.c.metric).correlate(EFFECT)
    return select(*columns).select_from(source).where(newest_answer(EFFECT), ~earlier.exists())


def _break_even() -> Select[Any]:
    figures = (
        "axis varied_parameter verdict x x_low x_high direction grid_limited points points_missing"
        " why floor curve_id"
    )
    added = "x_first x_last worst_loss largest_gain point_alpha left_out"
    return _of_curves(BREAK_EVEN, figures, added)


def _cost_model() -> Select[Any]:
    ends = ("", "_low", "_high")
    costs = [f"{name}{end}" for name in COSTS for end in ends]
    places = [f"predicted_x{end}" for end in ends]
    return _of_curves(
        COST_MODEL, " ".join(["points verdict misfit_p work_unit", *costs, *places, "curve_id"])
    )


def _of_curves(table: Table, figures: str, added: str = "") -> Select[Any]:
    """The rows of a table that has one or more for each curve of a sweep, with the condition and
    the arm of the curve.
    """
    columns = (
        SWEEP.c.name.label("sweep"),
        *named(table, "environment host"),
        *named(ENVIRONMENT, "device device_name"),
        COMPARISON.c.kind,
        *named(table, f"metric threads {figures}"),
        *named(
            COMPARISON,
            (
                *(name for name in CONDITION if name not in {"corruption", "severity"}),
                "baseline",
                "baseline_id",
            ),
        ),
        *named(table, added),
        *([] if table is COST_MODEL else [_label()]),
        COMPARISON.c.panel_id,
    )
    source = (
        table.join(SWEEP, SWEEP.c.id == table.c.sweep)
        .join(COMPARISON, COMPARISON.c.comparison_id == table.c.comparison_id)
        .join(ENVIRONMENT, ENVIRONMENT.c.environment_id == table.c.environment)
    )
    return select(*columns).select_from(source).where(newest_revision(SWEEP))


def _metric() -> Select[Any]:
    source = METRIC.join(ATTEMPT).outerjoin(ARM_RESULT, same_arm(ARM_RESULT, METRIC))
    columns = (
        *named(METRIC, "attempt arm metric value unit low high n"),
        *named(ARM_RESULT, "arm_id"),
    )
    return select(
        *columns, *named(ATTEMPT, "environment flags host"), ARM_RESULT.c.implementation
    ).select_from(source)


def _sweep_comparison() -> Select[Any]:
    requested = SWEEP_COMPARISON.join(SWEEP)
    return (
        select(SWEEP.c.name.label("sweep"), SWEEP_COMPARISON.c.comparison_id)
        .select_from(requested)
        .where(newest_revision(SWEEP))
    )


def _reference() -> Select[Any]:
    """Published tables, without their JSON."""
    return select(
        *(
            column
            for column in REFERENCE.c
            if column.name not in {"digest", "payload", "set_payload"}
        )
    )


def statements() -> dict[str, Select[Any]]:
    """Name of each view and the statement behind it by the declarations of metrics and kinds, after
    those that it selects from.
    """
    return {
        "effect": _effect(),
        "speedup": _speedup(),
        "accuracy": _accuracy(),
        "quality": _quality(),
        "break_even": _break_even(),
        "cost_model": _cost_model(),
        "failures": _failures(),
        "metric": _metric(),
        "sweep_comparison": _sweep_comparison(),
        "arm": arm_view(),
        "generation": generation_view(),
        "reference": _reference(),
        "execution": execution_view(),
        "profile": profile_view(),
        "kernel": kernel_view(),
    }


VIEWS = statements()
TABLES: Mapping[str, Table] = {
    name: CreateView(statement, name).table for name, statement in VIEWS.items()
}
"""The views as tables to select from."""


def creations(*, temporary: bool = False) -> list[CreateView]:
    """The statements that create all views, and by default the fingerprints that the store carries.

    Temporary views hide those of the store from their own connection, for one that may not or
    should not change the store.
    """
    made = [
        CreateView(statement, name, temporary=temporary) for name, statement in statements().items()
    ]
    if temporary:
        return made
    carried = fingerprint.Fingerprints(
        fingerprint.views_fingerprint(), fingerprint.tables_fingerprint()
    )
    columns = [literal(value).label(name) for name, value in carried._asdict().items()]
    return [*made, CreateView(select(*columns), fingerprint.NAME)]


def create_views(connection: Connection) -> None:
    """Create all views."""
    for statement in creations():
        connection.execute(statement)


def drop_views(connection: Connection) -> None:
    """Drop the views that exist."""
    for name in reversed((*VIEWS, fingerprint.NAME)):
        connection.execute(DropView(Table(name, MetaData()), if_exists=True))
