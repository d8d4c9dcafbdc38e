"""The one writer of imported profiles: ties each file to its comparison by its marks, else by what
the user states, and stores it once.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Row, and_, delete, or_, select

from store.errors import StoreError
from store.rows.profiles import record_profiles
from store.schema.tables import (
    ARM_RESULT,
    ATTEMPT,
    COMPARISON,
    ENVIRONMENT,
    KERNEL,
    PAIR,
    PROFILE,
    PROFILE_TIME,
    same_arm,
)
from sweeps.importers.ncu import covered_share
from sweeps.importers.traces import ImportedProfile, Mark
from sweeps.model.profile import Activities, ArmProfile, Side

SIDES: dict[str, Side] = {"baseline": "baseline", "arm": "arm"}
LIST_THEM = (
    'they are listed by: breakeven query "SELECT comparison_id, method, params, baseline FROM'
    ' speedup"'
)


class StatedTie(NamedTuple):
    """What the user states of a file."""

    comparison: str | None = None
    """A comparison's id, or its beginning."""
    arm: str | None = None
    """`baseline`, `arm`, or the name of one of both; without a comparison any words."""
    forwards: int | None = None
    """Forwards that it holds."""


class TraceTie(NamedTuple):
    """The comparison and the arm that a file shows, where they are known."""

    comparison_id: str | None = None
    side: Side | None = None
    label: str | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        label = f": {self.label}" if self.label else ""
        where = (
            "tied to no comparison"
            if self.comparison_id is None
            else f"the {self.side} of comparison {self.comparison_id}"
        )
        return where + label


def find_tie(
    connection: Connection, mark: Mark, request: StatedTie, device_name: str | None = None
) -> TraceTie:
    """The tie of a file with these marks. Raises `StoreError` if marks, request and store
    contradict each other.
    """
    comparison_id = _comparison(connection, mark, request.comparison)
    if comparison_id is None:
        how = (
            "it has no marks of `python -m workers.run job.json --arm N`; --comparison ID --arm"
            " baseline|arm ties it"
        )
        return TraceTie(label=request.arm, notes=(f"tied to no comparison: {how}",))
    row = connection.execute(
        select(COMPARISON).where(COMPARISON.c.comparison_id == comparison_id)
    ).one_or_none()
    stated = (
        None
        if request.arm is None
        else SIDES.get(request.arm) or (None if row is None else _named(row, request.arm))
    )
    side = mark.side or stated
    if side is None:
        raise StoreError(
            f"which arm of comparison {comparison_id} it shows is not known; add --arm baseline or"
            " --arm arm"
        )
    if stated not in (None, side):
        mark_of = f"it shows the {side} of comparison {comparison_id}"
        raise StoreError(f"--arm {request.arm} disagrees with the mark in the file: {mark_of}")
    if row is None:
        note = (
            f"the store does not hold comparison {comparison_id} yet, which its marks name; an"
            " import of the outcome adds it"
        )
        return TraceTie(comparison_id, side, None, (note,))
    arm = row.method if row.params == "{}" else f"{row.method} {row.params}"
    notes = _other_device(connection, comparison_id, device_name)
    return TraceTie(comparison_id, side, row.baseline if side == "baseline" else arm, notes)


def _comparison(connection: Connection, mark: Mark, requested: str | None) -> str | None:
    """The comparison's id: of the marks the first that the store holds, else the first."""
    ids = COMPARISON.c.comparison_id
    if requested is None:
        known = set(connection.execute(select(ids).where(ids.in_(mark.comparisons))).scalars())
        return next(
            (one for one in mark.comparisons if one in known), next(iter(mark.comparisons), None)
        )
    found: list[str] = list(
        connection.execute(
            select(ids).where(ids.startswith(requested, autoescape=True)).limit(3)
        ).scalars()
    )
    if requested in found:
        found = [requested]
    if len(found) != 1:
        what = "begins several comparisons" if found else "is no comparison in the store"
        raise StoreError(f"--comparison {requested} {what}; {LIST_THEM}")
    if mark.comparisons and found[0] not in mark.comparisons:
        named = ", ".join(mark.comparisons)
        raise StoreError(
            f"--comparison {found[0]} disagrees with the marks in the file, which name {named};"
            " leave it out"
        )
    return found[0]


def _named(row: Row[Any], requested: str) -> Side:
    """The arm of a comparison with that name."""
    names: dict[Side, str] = {"baseline": row.baseline, "arm": row.method}
    found = [side for side, name in names.items() if name == requested]
    if len(found) != 1:
        has = f"the comparison has the baseline {row.baseline} and the arm {row.method}"
        raise StoreError(f"--arm {requested}: {has}; write baseline or arm")
    return found[0]


def _other_device(
    connection: Connection, comparison_id: str, device_name: str | None
) -> tuple[str, ...]:
    """A note if the comparison was measured on other devices alone."""
    measured = (
        select(ENVIRONMENT.c.device_name)
        .join_from(PAIR, ATTEMPT)
        .join(ENVIRONMENT)
        .where(PAIR.c.comparison_id == comparison_id)
        .distinct()
    )
    devices = sorted(connection.execute(measured).scalars())
    if device_name is None or not devices or device_name in devices:
        return ()
    measured_on = " and ".join(devices)
    return (
        (
            f"it was recorded on {device_name}, the comparison was measured on {measured_on}: do"
            " not compare their times"
        ),
    )


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
    whole = (
        select(PROFILE.c.profile_id)
        .join_from(PROFILE, ARM_RESULT, same_arm(ARM_RESULT, PROFILE), isouter=True)
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
