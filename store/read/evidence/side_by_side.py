"""Two sides of a store beside each other: sweeps, environments, revisions or days, with what
differs between them.
"""

import json
from collections.abc import Mapping, Sequence
from math import log
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, select

from store.errors import StoreError
from store.read.evidence.compare_queries import (
    COMPARED_FIELDS,
    MAX_DERIVED,
    By,
    choices,
    compare_days,
    compare_stored,
)
from store.rows.transactions import reading
from store.schema.tables import COMPARISON, ENVIRONMENT, named
from sweeps.model.flags import split_flags, wrong
from sweeps.model.job import Comparison
from sweeps.stats.side_by_side import (
    SpeedAnswer,
    SpeedDifference,
    match_answers,
    speed_difference,
)

QUESTION = (
    *COMPARED_FIELDS,
    "baseline_id",
    "requested_threads",
    "metric",
    "environment",
    "host",
    "device_name",
)
"""Columns that make two answers comparable where they are equal."""
FREE: Mapping[By, tuple[str, ...]] = {
    "sweep": (),
    "environment": ("environment", "host", "device_name", "device"),
    "revision": (),
    "date": (),
}
"""Columns in which the sides of each kind differ by their nature."""
_ORDER = {
    "different": 0,
    "apart": 0,
    "unclear": 1,
    "overlap": 1,
    "same": 2,
    "one answer": 3,
    "not comparable": 4,
}


class ComparedAnswers(NamedTuple):
    """An answer of each side to one question, and how they differ."""

    a: Mapping[str, Any]
    """Columns of `store.read.evidence.compare_queries.ANSWER` and `QUESTION`."""
    b: Mapping[str, Any]
    difference: SpeedDifference


class SideBySide(NamedTuple):
    """All answers of two sides."""

    rows: list[ComparedAnswers]
    """Those that differ first, the clearest first."""
    tested: int
    """Questions that share the level."""
    differing: Mapping[str, tuple[Any, Any]]
    """Columns in which the sides differ as a whole."""
    facts: list[tuple[str, str, str]]
    """What differs between their environments: name, and the values of both sides."""
    versions: list[tuple[str, str, str]]
    """What differs between answers of other versions, in the same form, such as `("version of
    topk", "1", "2")`."""
    only_a: int
    only_b: int
    capped: bool
    """Whether a side has more answers than were read."""


def side_by_side(engine: Engine, by: By, a: str, b: str) -> SideBySide:
    """The answers of two sides, matched by question, or, where they have none in common, by all in
    which the sides do not differ.

    Raises `StoreError` for a side that the store does not have.
    """
    with reading(engine) as connection:
        known = {choice.value for choice in choices(connection, by)}
        for side in (a, b):
            if side not in known:
                raise StoreError(
                    f"no {by} is called {side}; there are {', '.join(sorted(known)) or 'none'}"
                )
        sides = (
            compare_days(connection, a, b) if by == "date" else compare_stored(connection, by, a, b)
        )
        return _compared(connection, by, *sides)


def _compared(
    connection: Connection,
    by: By,
    a: Sequence[Mapping[str, Any]],
    b: Sequence[Mapping[str, Any]],
    capped: bool,
) -> SideBySide:
    matched = match_answers(a, b, QUESTION, FREE[by])
    answers = [(_answer(one, by), _answer(other, by)) for one, other in matched.pairs]
    tested = sum(
        one.key != other.key and one.se is not None and other.se is not None
        for one, other in answers
    )
    rows = [
        ComparedAnswers(
            one, other, speed_difference(*both, max(tested, 1), max(one["floor"], other["floor"]))
        )
        for (one, other), both in zip(matched.pairs, answers, strict=True)
    ]
    rows.sort(key=lambda row: (_ORDER[row.difference.found], -row.difference.distance))
    facts = _fact_differences(connection, rows)
    return SideBySide(
        rows,
        tested,
        matched.differing,
        facts,
        _version_differences(connection, rows),
        matched.only_a,
        matched.only_b,
        capped,
    )


def _answer(row: Mapping[str, Any], by: By) -> SpeedAnswer:
    clear = row["verdict"] not in {"quarantined", "insufficient"} and not wrong(
        split_flags(row["flags"])
    )
    key = (
        row["comparison_id"],
        row["environment"],
        row["host"],
        row["metric"],
        row["measured_at"] if by == "date" else "",
    )
    processes = None if row["processes"] is None else frozenset(json.loads(row["processes"]))
    return SpeedAnswer(
        log(row["effect"]),
        row["effect_se"] if clear else None,
        row["effect_freedom"] or 1.0,
        processes,
        key,
    )


def _fact_differences(
    connection: Connection, rows: Sequence[ComparedAnswers]
) -> list[tuple[str, str, str]]:
    sides = [{getattr(row, side)["environment"] for row in rows} for side in ("a", "b")]
    if sides[0] == sides[1]:
        return []
    found = select(ENVIRONMENT).where(ENVIRONMENT.c.environment_id.in_(sorted(sides[0] | sides[1])))
    known = {
        row.environment_id: {"device": row.device_name, **json.loads(row.facts)}
        for row in connection.execute(found)
    }
    names = sorted({name for facts in known.values() for name in facts})
    listed = [
        (
            name,
            *(
                ", ".join(sorted({str(known[each].get(name, "not stated")) for each in side}))
                for side in sides
            ),
        )
        for name in names
    ]
    return [(name, one, other) for name, one, other in listed if one != other]


def _version_differences(
    connection: Connection, rows: Sequence[ComparedAnswers]
) -> list[tuple[str, str, str]]:
    """Versions of methods, and contents, by which answers to one question have other ids."""
    changed = [
        (row.a["comparison_id"], row.b["comparison_id"])
        for row in rows
        if row.a["question_id"] == row.b["question_id"]
    ]
    changed = [both for both in changed if both[0] != both[1]][:MAX_DERIVED]
    if not changed:
        return []
    ids = sorted({each for both in changed for each in both})
    stored = select(*named(COMPARISON, "comparison_id payload content_hashes"))
    known = {
        row.comparison_id: row
        for row in connection.execute(stored.where(COMPARISON.c.comparison_id.in_(ids)))
    }
    found: dict[tuple[str, str, str], None] = {}
    for both in changed:
        versions = [_versions(known[each].payload) for each in both]
        for name in sorted(versions[0].keys() & versions[1].keys()):
            if versions[0][name] != versions[1][name]:
                found[f"version of {name}", str(versions[0][name]), str(versions[1][name])] = None
        contents = [str(known[each].content_hashes) for each in both]
        if contents[0] != contents[1]:
            found["contents of weights or files", contents[0], contents[1]] = None
    return list(found) or [("protocol of the measurement", "one version", "another")]


def _versions(payload: str) -> dict[str, int]:
    comparison = Comparison.model_validate_json(payload)
    return dict((*comparison.baseline.versions, *comparison.arm.versions))
