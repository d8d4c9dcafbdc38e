"""The one writer of imported profiles: ties each file to its comparison, and stores it once."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, and_, delete, or_, select

from store.rows.profiles import record_profiles
from store.schema.tables import ARM_RESULT, COMPARISON, KERNEL, PROFILE, PROFILE_TIME
from store.traces.ties import StatedTie, TraceTie, find_tie
from sweeps.importers.ncu import covered_share
from sweeps.importers.traces import ImportedProfile
from sweeps.model.profile import Activities, ArmProfile

State = Literal["imported", "known", "replaced"]


class TraceFile(NamedTuple):
    """The profiles in a file, one for each phase."""

    file: str
    """Name without its folder."""
    digest: str
    """SHA-256 of the file."""
    imported: tuple[ImportedProfile, ...]


class RecordedTrace(NamedTuple):
    """What became of a file."""

    trace: TraceFile
    tie: TraceTie
    state: State
    """`known`: it was in the store already, and nothing changed; `replaced`: the user stated
    something else of it than before."""
    kernel_time_share: tuple[float | None, ...]
    """For each profile the share of the arm's kernel time that it holds, if that is known."""


def record_traces(
    connection: Connection, traces: Iterable[TraceFile], request: StatedTie
) -> list[RecordedTrace]:
    """Store the profiles within the caller's write transaction. Raises `StoreError` if one
    contradicts its marks or the store.

    Timelines come before kernels measured one by one, whose share of the arm's time is known from a
    timeline.
    """
    ordered = sorted(traces, key=lambda each: each.imported[0].profile.tool == "ncu")
    return [_record(connection, each, request) for each in ordered]


def _record(connection: Connection, trace: TraceFile, request: StatedTie) -> RecordedTrace:
    first = trace.imported[0]
    found = connection.execute(select(PROFILE).where(PROFILE.c.digest == trace.digest)).all()
    stored = {row.phase: dict(row._mapping) for row in found}
    before = next(iter(found), None)
    if before is not None and request.comparison is None and not first.mark.comparisons:
        # nothing else states what it shows
        former = before.side if before.comparison_id else before.label
        request = request._replace(comparison=before.comparison_id, arm=request.arm or former)
    tie = find_tie(connection, first.mark, request, first.device_name)
    profiles = [each.profile for each in trace.imported]
    if first.profile.tool == "ncu":
        profiles = [
            each.model_copy(update={"kernel_time_share": _covered(connection, each, tie)})
            for each in profiles
        ]
    if stored and all(
        each.phase in stored and _unchanged(stored[each.phase], each, tie, request)
        for each in profiles
    ):
        return RecordedTrace(
            trace, tie, "known", tuple(stored[each.phase]["kernel_time_share"] for each in profiles)
        )
    if stored:
        _forget(connection, trace.digest)
    record_profiles(
        connection,
        profiles,
        digest=trace.digest,
        file=trace.file,
        comparison_id=tie.comparison_id,
        side=tie.side,
        label=tie.label,
        device_name=first.device_name,
    )
    return RecordedTrace(
        trace,
        tie,
        "replaced" if stored else "imported",
        tuple(each.kernel_time_share for each in profiles),
    )


def _unchanged(
    stored: Mapping[str, Any], profile: ArmProfile, tie: TraceTie, request: StatedTie
) -> bool:
    """Whether the stored profile is this one: another number of forwards counts only where the user
    states it.
    """
    forwards = request.forwards is None or stored["forwards"] == profile.forwards
    same_tie = (stored["comparison_id"], stored["side"], stored["label"]) == tie[:3]
    return (
        forwards and same_tie and profile.kernel_time_share in (None, stored["kernel_time_share"])
    )


def _forget(connection: Connection, digest: str) -> None:
    """Delete what was stored of a file."""
    old = select(PROFILE.c.profile_id).where(PROFILE.c.digest == digest)
    for table in (KERNEL, PROFILE_TIME):
        connection.execute(delete(table).where(table.c.profile_id.in_(old)))
    connection.execute(delete(PROFILE).where(PROFILE.c.digest == digest))


def _covered(connection: Connection, profile: ArmProfile, tie: TraceTie) -> float | None:
    """The share of the arm's kernel time that the profile stands for, by the newest profile of all
    kernels of the same arm.
    """
    row = connection.execute(
        select(COMPARISON).where(COMPARISON.c.comparison_id == tie.comparison_id)
    ).one_or_none()
    if row is None or tie.side is None:
        return None
    arm_id = row.arm_id if tie.side == "arm" else row.baseline_id
    same_arm = and_(ARM_RESULT.c.attempt == PROFILE.c.attempt, ARM_RESULT.c.arm == PROFILE.c.arm)
    whole = (
        select(PROFILE.c.profile_id)
        .join_from(PROFILE, ARM_RESULT, same_arm, isouter=True)
        .where(
            PROFILE.c.tool != "ncu",
            PROFILE.c.phase == profile.phase,
            or_(
                and_(PROFILE.c.comparison_id == tie.comparison_id, PROFILE.c.side == tie.side),
                and_(ARM_RESULT.c.arm_id == arm_id, ARM_RESULT.c.condition_id == row.condition_id),
            ),
        )
        .order_by(PROFILE.c.recorded_at.desc())
    )
    for profile_id in connection.execute(whole).scalars().all():
        own = KERNEL.c.profile_id == profile_id
        kernels = select(KERNEL.c.name, KERNEL.c.activity, KERNEL.c.count, KERNEL.c.seconds).where(
            own
        )
        share = covered_share(
            profile.activities,
            (Activities(**each._mapping) for each in connection.execute(kernels)),
        )
        if share is not None:
            return share
    return None
