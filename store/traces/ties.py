"""To which comparison an imported file belongs, and to which of its two arms: by its marks, else by
what the user states.
"""

from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from store.errors import StoreError
from store.schema.tables import ATTEMPT, COMPARISON, ENVIRONMENT, PAIR
from sweeps.importers.traces import Mark
from sweeps.model.profile import Side

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


def _named(row: Any, requested: str) -> Side:
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
        .join_from(PAIR, ATTEMPT, ATTEMPT.c.id == PAIR.c.attempt)
        .join(ENVIRONMENT, ENVIRONMENT.c.environment_id == ATTEMPT.c.environment)
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
