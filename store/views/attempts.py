"""The views of what attempts hold: arms with their metrics side by side, executions, profiles and
kernels.
"""

from functools import reduce
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CreateView,
    FromClause,
    Select,
    and_,
    case,
    exists,
    func,
    literal,
    or_,
    select,
)

from store.schema.tables import (
    ARM_RESULT,
    ATTEMPT,
    COMPARISON,
    CONDITION,
    ENVIRONMENT,
    KERNEL,
    METRIC,
    PEAK,
    PROFILE,
    PROFILE_TIME,
    REPORTED,
    gmacs_total,
    named,
    same_arm,
)
from sweeps.model.flags import FLAGS
from sweeps.model.kinds import KINDS, kinds_of
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.model.profile import COUNTERS

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
    source = ARM_RESULT.join(ATTEMPT).join(ENVIRONMENT)
    return select(*columns).select_from(source).where(~exists(better))


def generation_view() -> Select[Any]:
    arm = CreateView(arm_view(), "arm").table
    timed = [kind.name for kind in kinds_of("language") if kind.sampled]
    times = [name for kind in timed for name in KINDS[kind].metrics]
    compared = {name for kind in KINDS.values() if kind.name not in timed for name in kind.metrics}
    other = {
        metric_column(spec)[0]
        for spec in _declared()
        if spec.modality == "vision"
        or spec.read == "item"
        or (spec.modality is None and spec.name in compared)
        or (spec.read == "round" and spec.name not in times)
    }
    hidden = other | {"image_size", "image_shape", "corruption", "severity", "batch"}
    hidden |= {"axis_values", "fixed_values", "x_axis"}
    return select(*(column for column in arm.c if column.name not in hidden)).where(
        arm.c.kind.in_(timed)
    )


def execution_view() -> Select[Any]:
    """One row for each attempt; `quarantine` holds those of its flags that quarantine it, NULL
    where there is none.
    """
    columns = (
        ATTEMPT.c.id.label("attempt"),
        *named(ATTEMPT, "job_id round process source environment host"),
        *named(ENVIRONMENT, "device device_name"),
        *named(ATTEMPT, "started_at ended_at flags"),
        _quarantine().label("quarantine"),
        *named(ATTEMPT, "calibration_id system_metrics"),
    )
    return select(*columns).join_from(
        ATTEMPT, ENVIRONMENT, ENVIRONMENT.c.environment_id == ATTEMPT.c.environment
    )


def _quarantine() -> ColumnElement[str | None]:
    """The flags that quarantine an attempt, joined by commas."""
    padded = literal(",").concat(ATTEMPT.c.flags).concat(",")
    names = [name for name, flag in FLAGS.items() if flag.quarantine]
    found: list[ColumnElement[str]] = [
        case((padded.contains(f",{name},", autoescape=True), f",{name}"), else_="")
        for name in names
    ]
    joined = reduce(lambda one, other: one.concat(other), found[1:], found[0])
    return func.nullif(func.substr(joined, 2), "")


_BASELINE = ARM_RESULT.alias("baseline_arm")
_CONDITION = tuple(name for name in CONDITION if name not in {"method", "params"})
_SOURCE = (
    PROFILE.outerjoin(ATTEMPT)
    .outerjoin(
        ARM_RESULT,
        same_arm(ARM_RESULT, PROFILE),
    )
    .outerjoin(COMPARISON, COMPARISON.c.comparison_id == PROFILE.c.comparison_id)
    .outerjoin(
        ENVIRONMENT,
        ENVIRONMENT.c.environment_id == func.coalesce(ATTEMPT.c.environment, PROFILE.c.environment),
    )
)
"""A profile with its arm: that of its attempt, or of the comparison that an imported file is tied
to."""


def _either(name: str) -> ColumnElement[Any]:
    """A column of the attempt's arm, or of the comparison that an imported file is tied to, as the
    arm or as its baseline.
    """
    tied: ColumnElement[Any] = COMPARISON.c[name]
    if name == "arm_id":
        tied = case(
            (PROFILE.c.side == "arm", tied),
            (PROFILE.c.side == "baseline", COMPARISON.c.baseline_id),
        )
    elif name in {"method", "params"}:
        tied = case((PROFILE.c.side == "arm", tied))
    return func.coalesce(ARM_RESULT.c[name], tied).label(name)


def _identity() -> tuple[ColumnElement[Any], ...]:
    return (
        *named(PROFILE, "profile_id attempt arm tool phase"),
        func.coalesce(ATTEMPT.c.source, PROFILE.c.source).label("source"),
        *named(PROFILE, "file comparison_id side label"),
        *map(_either, ("arm_id", "kind", "condition_id", "method", "params")),
        func.coalesce(ATTEMPT.c.environment, PROFILE.c.environment).label("environment"),
        ATTEMPT.c.host,
        ENVIRONMENT.c.device,
        func.coalesce(ENVIRONMENT.c.device_name, PROFILE.c.device_name).label("device_name"),
    )


def _total(column: ColumnElement[Any], *where: ColumnElement[bool]) -> ColumnElement[Any]:
    """A sum over the kernels or operators of a profile; NULL where none has a value."""
    return (
        select(func.sum(column))
        .where(KERNEL.c.profile_id == PROFILE.c.profile_id, *where)
        .correlate(PROFILE)
        .scalar_subquery()
    )


def _peak(name: str) -> ColumnElement[Any]:
    """What the attempt measured as the peak for the arm's dtype."""
    own = (PEAK.c.attempt == PROFILE.c.attempt, PEAK.c.dtype == ARM_RESULT.c.dtype)
    return (
        select(func.max(PEAK.c[name]))
        .where(*own)
        .correlate(PROFILE, ARM_RESULT)
        .scalar_subquery()
        .label(f"peak_{name}")
    )


def profile_view() -> Select[Any]:
    """One row for each profile and class of time, in ms of one forward without a profiler."""
    figures = (
        PROFILE_TIME.c.time_class,
        (1e3 * PROFILE_TIME.c.seconds).label("ms"),
        (PROFILE_TIME.c.seconds / func.nullif(PROFILE.c.wall_s, 0.0)).label("share"),
        (1e3 * PROFILE.c.wall_s).label("wall_ms"),
        (1e3 * PROFILE.c.profiled_wall_s).label("profiled_wall_ms"),
        *named(PROFILE, "forwards launches kernel_time_share allocations allocated_bytes"),
        _total(KERNEL.c.gmacs).label("gmacs"),
        _total(KERNEL.c.bytes_moved).label("bytes_moved"),
        (
            _total(KERNEL.c.seconds, KERNEL.c.gmacs > 0)
            / func.nullif(_total(KERNEL.c.seconds), 0.0)
        ).label("product_share"),
        _peak("gflops"),
        _peak("gb_per_s"),
        *map(_either, _CONDITION),
        ARM_RESULT.c.threads,
        ARM_RESULT.c.flags.label("arm_flags"),
        ATTEMPT.c.flags.label("job_flags"),
        PROFILE.c.recorded_at,
        *named(PROFILE_TIME, "change change_low change_high"),
        *named(
            PROFILE,
            "speedup speedup_low speedup_high profiled_speedup profiled_speedup_low"
            " profiled_speedup_high rounds",
        ),
        _BASELINE.c.arm_id.label("baseline_arm_id"),
    )
    source = _SOURCE.join(
        PROFILE_TIME, PROFILE_TIME.c.profile_id == PROFILE.c.profile_id
    ).outerjoin(
        _BASELINE,
        same_arm(_BASELINE, PROFILE, "baseline"),
    )
    return select(*_identity(), *figures).select_from(source)


def kernel_view() -> Select[Any]:
    """One row for each kernel, copy or operator of a profile, in means of one forward."""
    seconds = func.nullif(KERNEL.c.seconds, 0.0)
    figures = (
        *named(KERNEL, "rank name activity count"),
        (1e3 * KERNEL.c.seconds).label("ms"),
        *named(KERNEL, "gmacs bytes_moved"),
        (2 * KERNEL.c.gmacs / seconds).label("gflops"),
        (KERNEL.c.bytes_moved / 1e9 / seconds).label("gb_per_s"),
        *named(KERNEL, tuple(COUNTERS)),
        PROFILE.c.kernel_time_share,
    )
    source = _SOURCE.join(KERNEL, KERNEL.c.profile_id == PROFILE.c.profile_id)
    return select(*_identity(), *figures).select_from(source)
