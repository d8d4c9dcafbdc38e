"""Two sides of a store next to each other: sweeps, environments, revisions or days, with what
differs between them, and which sides there are.
"""

import json
from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import log
from time import strptime
from typing import Any, Literal, NamedTuple, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Row,
    Select,
    and_,
    exists,
    func,
    select,
)

from store.derive.effects import compare_groups, stored_pairs, union_flags
from store.errors import StoreError
from store.rows.row_mapping import timestamp
from store.rows.transactions import reading
from store.schema.tables import (
    ARM_COLUMNS,
    ATTEMPT,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    IS_SPEEDUP,
    PAIR,
    SWEEP,
    SWEEP_COMPARISON,
    named,
    newest_answer,
)
from sweeps.model.flags import split_flags, wrong
from sweeps.model.job import Comparison
from sweeps.model.kinds import KINDS
from sweeps.stats.evidence import (
    SpeedAnswer,
    SpeedDifference,
    match_answers,
    speed_difference,
)

By = Literal["sweep", "environment", "revision", "date"]
BY: tuple[By, ...] = get_args(By)
MAX_ANSWERS = 1500
"""Questions, or answers of a side, that are read."""
LOOKED_UP = 50_000
"""Of more comparisons than this the beginning is found along an index instead of by sorting
them."""
MAX_DERIVED = 200
"""Answers of a day that are derived from its attempts."""
DAY_S = 86_400.0

ANSWER = (
    "comparison_id question_id environment host metric measured_at baseline_value "
    "arm_value effect effect_low effect_high effect_se effect_freedom rounds n verdict "
    "flags floor processes"
)
COMPARED_FIELDS = tuple(name for name in ARM_COLUMNS if name not in {"arm_id", "condition_id"})


_Columns = Mapping[str, Any]


class SideChoice(NamedTuple):
    """One side that can be chosen: its value in an address, what it is in words, and of a revision
    the sweep.
    """

    value: str
    label: str
    sweep: str = ""


def side_choices(engine: Engine, by: By) -> list[SideChoice]:
    """The sides that can be chosen, newest first."""
    with reading(engine) as connection:
        return list(choices(connection, by))


def choices(connection: Connection, by: By) -> Iterator[SideChoice]:
    if by == "environment":
        # places by their attempts, which are few beside their answers
        of = (ATTEMPT.c.environment, ATTEMPT.c.host)
        places = select(*of, func.max(ATTEMPT.c.ended_at).label("newest")).group_by(*of).subquery()
        answers = ATTEMPT.join(PAIR).join(EFFECT, EFFECT.c.comparison_id == PAIR.c.comparison_id)
        same = (
            column == places.c[column.name] for column in (*of, EFFECT.c.environment, EFFECT.c.host)
        )
        measured = select(PAIR.c.attempt).select_from(answers).where(*same, IS_SPEEDUP)
        known = select(places, ENVIRONMENT.c.device_name).join_from(
            places, ENVIRONMENT, ENVIRONMENT.c.environment_id == places.c.environment
        )
        found = known.where(exists(measured.correlate(places))).order_by(places.c.newest.desc())
        for row in connection.execute(found):
            yield SideChoice(
                f"{row.environment}:{row.host}",
                f"{row.device_name}, host {row.host}, environment {row.environment[:8]}",
            )
        return
    if by == "date":
        since = func.timezone("UTC", func.to_timestamp(ATTEMPT.c.ended_at))
        day = (
            func.date(ATTEMPT.c.ended_at, "unixepoch")
            if connection.dialect.name == "sqlite"
            else func.date(since)
        )
        rows = select(day, func.count()).group_by(day).order_by(day.desc())
        for date, attempts in connection.execute(rows):
            yield SideChoice(str(date), f"{date}, {attempts:,} attempts")
        return
    sweeps = select(SWEEP.c.name, SWEEP.c.revision).order_by(
        SWEEP.c.submitted_at.desc(), SWEEP.c.id.desc()
    )
    revisions = connection.execute(sweeps).all()
    if by == "sweep":
        names = dict.fromkeys(row.name for row in revisions)
        yield from (SideChoice(name, name) for name in names)
        return
    for name, revision in revisions:
        yield SideChoice(f"{revision}:{name}", f"{name}, revision {revision}", name)


_COMPARED = (
    *named(COMPARISON, (*COMPARED_FIELDS, "baseline", "baseline_id")),
    COMPARISON.c.threads.label("requested_threads"),
)


def _answers() -> Select[Any]:
    columns = (*named(EFFECT, ANSWER), *_COMPARED, ENVIRONMENT.c.device_name)
    source = EFFECT.join(COMPARISON).join(ENVIRONMENT)
    return select(*columns).select_from(source).where(IS_SPEEDUP)


class _Side(NamedTuple):
    """What belongs to a side: a sweep by its row, or a place by its environment and host."""

    sweep: int | None
    place: tuple[str, str]
    size: int
    """How many rows it has: questions, or answers of a place."""

    def effects(self, table: FromClause) -> ColumnElement[bool]:
        """Whether a row of (an alias of) `effect_row` belongs to it."""
        if self.sweep is None:
            return and_(table.c.environment == self.place[0], table.c.host == self.place[1])
        return self.linked(table)

    def linked(self, table: FromClause) -> ColumnElement[bool]:
        """Whether the sweep requests the comparison of a row: looked up, since a list of all would
        be made for each use.
        """
        link = SWEEP_COMPARISON.alias()
        of = select(link.c.sweep).where(
            link.c.sweep == self.sweep, link.c.comparison_id == table.c.comparison_id
        )
        return exists(of.correlate(table))

    def questions(self) -> Select[Any]:
        """All of its questions, answered or not."""
        if self.sweep is None:
            return select(EFFECT.c.question_id.label("question_id")).where(self.effects(EFFECT))
        both = SWEEP_COMPARISON.join(COMPARISON)
        return (
            select(COMPARISON.c.question_id.label("question_id"))
            .select_from(both)
            .where(SWEEP_COMPARISON.c.sweep == self.sweep)
        )

    def has(self, question: ColumnElement[str]) -> ColumnElement[bool]:
        """Whether a question is one of its own."""
        table = (EFFECT if self.sweep is None else COMPARISON).alias()
        return exists(
            select(table.c.question_id).where(table.c.question_id == question, self.effects(table))
        )

    def comparisons(self) -> Select[Any]:
        """The comparisons of a side in an order that is alike on both, so that their beginnings
        match.
        """
        order = named(COMPARISON, "method model image_size params prompt_tokens batch_size")
        # walk along the index of this order, of which the beginning is enough
        if self.size > LOOKED_UP:
            own = select(EFFECT.c.metric).where(
                EFFECT.c.comparison_id == COMPARISON.c.comparison_id, self.effects(EFFECT)
            )
            here = (
                exists(own.correlate(COMPARISON)) if self.sweep is None else self.linked(COMPARISON)
            )
        else:
            ids = select(EFFECT.c.comparison_id).where(self.effects(EFFECT))
            linked = select(SWEEP_COMPARISON.c.comparison_id).where(
                SWEEP_COMPARISON.c.sweep == self.sweep
            )
            here = COMPARISON.c.comparison_id.in_(ids if self.sweep is None else linked)
        return (
            select(COMPARISON.c.comparison_id).where(here).order_by(*order).limit(MAX_ANSWERS + 1)
        )


def _side(connection: Connection, by: By, value: str) -> _Side:
    first, _, rest = value.partition(":")
    if by == "environment":
        place = and_(EFFECT.c.environment == first, EFFECT.c.host == rest)
        size = connection.execute(
            select(func.count()).select_from(EFFECT).where(place)
        ).scalar_one()
        return _Side(None, (first, rest), size)
    name, revision = (rest, int(first)) if by == "revision" else (value, None)
    sweeps = (
        select(SWEEP.c.id).where(SWEEP.c.name == name).order_by(SWEEP.c.revision.desc()).limit(1)
    )
    row = connection.execute(
        sweeps if revision is None else sweeps.where(SWEEP.c.revision == revision)
    ).scalar_one()
    links = (
        select(func.count()).select_from(SWEEP_COMPARISON).where(SWEEP_COMPARISON.c.sweep == row)
    )
    return _Side(row, ("", ""), connection.execute(links).scalar_one())


def compare_stored(
    connection: Connection, by: By, a: str, b: str
) -> tuple[list[_Columns], list[_Columns], bool]:
    """The answers to common questions; all of both sides where they have none in common, and
    whether there are more.
    """
    sides = [_side(connection, by, value) for value in (a, b)]
    newest = () if by == "revision" else (newest_answer(EFFECT),)
    less, more = sorted(sides, key=lambda side: side.size)
    own = less.questions().subquery()
    common = (
        select(own.c.question_id)
        .where(more.has(own.c.question_id))
        .distinct()
        .limit(MAX_ANSWERS + 1)
    )
    order = (EFFECT.c.measured_at, EFFECT.c.metric)

    def read(side: _Side, column: ColumnElement[str], ids: Sequence[str]) -> list[_Columns]:
        chosen = (column.in_(ids[:MAX_ANSWERS]), side.effects(EFFECT), *newest)
        by = order if column is EFFECT.c.comparison_id else (column, *order)
        rows = connection.execute(_answers().where(*chosen).order_by(*by))
        return [dict(row._mapping) for row in rows]

    questions = connection.execute(common).scalars().all()
    if questions:
        a_rows, b_rows = (read(side, EFFECT.c.question_id, questions) for side in sides)
        if a_rows and b_rows:
            return a_rows, b_rows, len(questions) > MAX_ANSWERS
    listed = [connection.execute(side.comparisons()).scalars().all() for side in sides]
    a_rows, b_rows = (
        read(side, EFFECT.c.comparison_id, ids) for side, ids in zip(sides, listed, strict=True)
    )
    return a_rows, b_rows, any(len(ids) > MAX_ANSWERS for ids in listed)


def compare_days(
    connection: Connection, a: str, b: str
) -> tuple[list[_Columns], list[_Columns], bool]:
    """The answers by the attempts of each day alone, to questions that both days measured."""
    spans = [timegm(strptime(day, "%Y-%m-%d")) for day in (a, b)]
    sampled = [kind.name for kind in KINDS.values() if kind.sampled]
    keys = (
        COMPARISON.c.question_id,
        PAIR.c.comparison_id,
        ATTEMPT.c.environment,
        COMPARISON.c.kind,
    )
    pairs = PAIR.join(ATTEMPT).join(COMPARISON)
    measured = []
    for start in spans:
        here = (
            ATTEMPT.c.ended_at >= start,
            ATTEMPT.c.ended_at < start + DAY_S,
            PAIR.c.failure.is_(None),
        )
        rows = (
            select(*keys)
            .select_from(pairs)
            .where(*here, COMPARISON.c.kind.in_(sampled))
            .distinct()
            .order_by(*keys)
        )
        measured.append(connection.execute(rows).all())
    common = sorted(
        {row.question_id for row in measured[0]} & {row.question_id for row in measured[1]}
    )
    kept = set(common[:MAX_DERIVED])
    found = [
        list(_derived(connection, [row for row in rows if row.question_id in kept], start))
        for rows, start in zip(measured, spans, strict=True)
    ]
    return found[0], found[1], len(common) > MAX_DERIVED


def _derived(connection: Connection, wanted: Sequence[Any], start: float) -> Iterator[_Columns]:
    """Answers as rows of `_answers`, from the attempts of the day that begins at `start` alone."""
    for (environment, kind), rows in groupby(sorted(wanted, key=_place), key=_place):
        ids = [row.comparison_id for row in rows]
        about = {row.comparison_id: dict(row._mapping) for row in connection.execute(_about(ids))}
        device = connection.execute(
            select(ENVIRONMENT.c.device_name).where(ENVIRONMENT.c.environment_id == environment)
        ).scalar_one()
        today = [
            pair
            for pair in stored_pairs(connection, ids, environment, kind)
            if start <= pair.ended_at < start + DAY_S
        ]
        compared = compare_groups(connection, today, kind, _at)
        for (comparison_id, host), used, spec, figures in compared:
            yield {
                **about[comparison_id],
                **figures,
                "environment": environment,
                "host": host,
                "device_name": device,
                "rounds": len(used),
                "flags": union_flags(used),
                "measured_at": timestamp(used[-1].ended_at),
                "metric": spec.name,
                "floor": spec.floor,
            }


def _place(row: Row[Any]) -> tuple[str, str]:
    return row.environment, row.kind


def _at(pair: Row[Any]) -> tuple[str, str]:
    return pair.comparison_id, pair.host


def _about(ids: Sequence[str]) -> Select[Any]:
    columns = (*named(COMPARISON, "comparison_id question_id"), *_COMPARED)
    return select(*columns).where(COMPARISON.c.comparison_id.in_(ids))


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
    """Columns of `store.read.evidence.side_by_side.ANSWER` and `QUESTION`."""
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
    a: Sequence[_Columns],
    b: Sequence[_Columns],
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
    return SideBySide(
        rows,
        tested,
        matched.differing,
        _fact_differences(connection, rows),
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
    sides = [{row.a["environment"] for row in rows}, {row.b["environment"] for row in rows}]
    if sides[0] == sides[1]:
        return []
    both = ENVIRONMENT.c.environment_id.in_(sorted(sides[0] | sides[1]))
    known = {
        row.environment_id: {"device": row.device_name, **json.loads(row.facts)}
        for row in connection.execute(select(ENVIRONMENT).where(both))
    }
    names = sorted({name for facts in known.values() for name in facts})
    found = []
    for name in names:
        one, other = (
            ", ".join(sorted({str(known[each].get(name, "not stated")) for each in side}))
            for side in sides
        )
        if one != other:
            found.append((name, one, other))
    return found


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
