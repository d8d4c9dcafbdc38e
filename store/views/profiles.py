"""The views of profiles: classes of time of each arm and phase, and the kernels or operators that
ran.
"""

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, select

from store.schema.tables import (
    ARM_RESULT,
    ATTEMPT,
    COMPARISON,
    ENVIRONMENT,
    KERNEL,
    PEAK,
    PROFILE,
    PROFILE_TIME,
)
from store.views.columns import CONDITION, named
from sweeps.model.profile import COUNTERS

_BASELINE = ARM_RESULT.alias("baseline_arm")
_CONDITION = tuple(name for name in CONDITION if name not in {"method", "params"})
_SOURCE = (
    PROFILE.outerjoin(ATTEMPT, ATTEMPT.c.id == PROFILE.c.attempt)
    .outerjoin(
        ARM_RESULT,
        and_(ARM_RESULT.c.attempt == PROFILE.c.attempt, ARM_RESULT.c.arm == PROFILE.c.arm),
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
        and_(_BASELINE.c.attempt == PROFILE.c.attempt, _BASELINE.c.arm == PROFILE.c.baseline),
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
