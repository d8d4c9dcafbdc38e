"""The views of arms: each arm in its condition with its metrics side by side."""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    CreateView,
    FromClause,
    Select,
    and_,
    case,
    exists,
    literal,
    or_,
    select,
)

from store.schema.tables import ARM_RESULT, ATTEMPT, ENVIRONMENT, METRIC, REPORTED
from store.views.columns import CONDITION, gmacs_total, named
from sweeps.model.flags import FLAGS
from sweeps.model.kinds import kinds_of
from sweeps.model.metrics import METRICS, MetricSpec

_WRONG = tuple(name for name, flag in FLAGS.items() if flag.wrong)


def _declared() -> list[MetricSpec]:
    """Metrics that the view `arm` has a column for; those of a family (`zeroshot_*`) are rows of
    `metric` alone.
    """
    return [spec for name, spec in METRICS.items() if "*" not in name]


def metric_column(spec: MetricSpec) -> tuple[str, dict[str, float]]:
    """Column of the view `arm` for a metric, and how many of its units each unit is that a worker
    may report.
    """
    if spec.unit == "ms":
        return f"{spec.name}_ms", {"s": 1000}
    if spec.unit in {"B", "MiB"}:
        return spec.name if "bytes" in spec.name else f"{spec.name}_bytes", {"MiB": 1048576}
    return spec.name, {}


def _figure(spec: MetricSpec) -> ColumnElement[Any]:
    """The value of a metric of the arm, looked up by its key: a query for a few arms or columns
    reads no others.
    """
    name, factors = metric_column(spec)
    value: ColumnElement[Any] = METRIC.c.value
    if factors:
        value = value * case(
            *((METRIC.c.unit == unit, by) for unit, by in factors.items()), else_=1
        )
    here = (
        METRIC.c.attempt == ARM_RESULT.c.attempt,
        METRIC.c.arm == ARM_RESULT.c.arm,
        METRIC.c.metric == spec.name,
    )
    return select(value).where(*here).correlate(ARM_RESULT).scalar_subquery().label(name)


def arm_view() -> Select[Any]:
    """For each arm, condition and kind of job the newest attempt; one that a flag marks as wrong
    only where there is no other.
    """
    other, attempt = ARM_RESULT.alias("other"), ATTEMPT.alias("other_attempt")

    def flagged(arm: FromClause, of: FromClause) -> ColumnElement[int]:
        joined = literal(",").concat(arm.c.flags).concat(",").concat(of.c.flags).concat(",")
        return case(
            (or_(*(joined.contains(f",{flag},", autoescape=True) for flag in _WRONG)), 1), else_=0
        )

    old, new = flagged(ARM_RESULT, ATTEMPT), flagged(other, attempt)
    better = (
        select(other.c.attempt)
        .join(attempt, attempt.c.id == other.c.attempt)
        .where(
            other.c.arm_condition_id == ARM_RESULT.c.arm_condition_id,
            other.c.kind == ARM_RESULT.c.kind,
            attempt.c.environment == ATTEMPT.c.environment,
            attempt.c.host == ATTEMPT.c.host,
            or_(new < old, and_(new == old, attempt.c.id > ATTEMPT.c.id)),
        )
        .correlate(ARM_RESULT, ATTEMPT)
    )
    columns = (
        *named(ARM_RESULT, "attempt arm arm_id kind condition_id arm_condition_id"),
        *named(ATTEMPT, "environment host"),
        *named(ENVIRONMENT, "device device_name"),
        *named(
            ARM_RESULT,
            (
                *CONDITION,
                "threads",
                "batch",
                "parameters",
                "tokens",
                "tokens_final",
                "gmacs",
                "gmacs_overhead",
            ),
        ),
        gmacs_total(ARM_RESULT).label("gmacs_total"),
        *(_figure(spec) for spec in _declared()),
        ARM_RESULT.c.flags.label("arm_flags"),
        ATTEMPT.c.flags.label("job_flags"),
        *named(ATTEMPT, "source ended_at"),
        *named(ARM_RESULT, REPORTED),
    )
    source = ARM_RESULT.join(ATTEMPT, ATTEMPT.c.id == ARM_RESULT.c.attempt).join(
        ENVIRONMENT, ENVIRONMENT.c.environment_id == ATTEMPT.c.environment
    )
    return select(*columns).select_from(source).where(~exists(better))


def generation_view() -> Select[Any]:
    arm = CreateView(arm_view(), "arm").table
    other = {
        metric_column(spec)[0]
        for spec in _declared()
        if spec.modality == "vision" or spec.read == "item"
    }
    hidden = other | {"image_size", "image_shape", "corruption", "severity", "batch"}
    timed = [kind.name for kind in kinds_of("language") if kind.sampled]
    return select(*(column for column in arm.c if column.name not in hidden)).where(
        arm.c.kind.in_(timed)
    )
