"""Answers of one side of a comparison between sweeps, environments, revisions or days, and which
sides there are.
"""

from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
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

from store.derive.effects import stored_pairs, union_flags
from store.derive.payloads import payload_of
from store.rows.row_mapping import timestamp
from store.rows.transactions import reading
from store.schema.tables import (
    ARM_COLUMNS,
    ATTEMPT,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    PAIR,
    SWEEP,
    SWEEP_COMPARISON,
    named,
)
from store.views.columns import IS_SPEEDUP, newest_answer
from sweeps.model.kinds import KINDS

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
    for name, revision in connection.execute(sweeps):
        if by == "revision":
            yield SideChoice(f"{revision}:{name}", f"{name}, revision {revision}", name)
    if by == "sweep":
        names = dict.fromkeys(row.name for row in connection.execute(sweeps))
        yield from (SideChoice(name, name) for name in names)


def _answers() -> Select[Any]:
    columns = (
        *named(EFFECT, ANSWER),
        *named(COMPARISON, COMPARED_FIELDS),
        *named(COMPARISON, "baseline baseline_id"),
        COMPARISON.c.threads.label("requested_threads"),
        ENVIRONMENT.c.device_name,
    )
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
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]], bool]:
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
    questions = connection.execute(common).scalars().all()
    capped = len(questions) > MAX_ANSWERS
    if questions:
        here = EFFECT.c.question_id.in_(questions[:MAX_ANSWERS])
        order = (EFFECT.c.question_id, EFFECT.c.measured_at, EFFECT.c.metric)
        found = [
            _read(
                connection, _answers().where(here, side.effects(EFFECT), *newest).order_by(*order)
            )
            for side in sides
        ]
        if all(found):
            return found[0], found[1], capped
    found, capped = [], False
    for side in sides:
        ids = connection.execute(side.comparisons()).scalars().all()
        capped |= len(ids) > MAX_ANSWERS
        chosen = (EFFECT.c.comparison_id.in_(ids[:MAX_ANSWERS]), side.effects(EFFECT), *newest)
        found.append(
            _read(
                connection,
                _answers().where(*chosen).order_by(EFFECT.c.measured_at, EFFECT.c.metric),
            )
        )
    return found[0], found[1], capped


def _read(connection: Connection, rows: Select[Any]) -> list[Mapping[str, Any]]:
    return [dict(row._mapping) for row in connection.execute(rows)]


def compare_days(
    connection: Connection, a: str, b: str
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]], bool]:
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


def _derived(
    connection: Connection, wanted: Sequence[Any], start: float
) -> Iterator[Mapping[str, Any]]:
    """Answers as rows of `_answers`, from the attempts of the day that begins at `start` alone."""
    for (environment, kind), rows in groupby(sorted(wanted, key=_place), key=_place):
        ids, payload = [row.comparison_id for row in rows], payload_of(kind)
        about = {row.comparison_id: dict(row._mapping) for row in connection.execute(_about(ids))}
        device = connection.execute(
            select(ENVIRONMENT.c.device_name).where(ENVIRONMENT.c.environment_id == environment)
        ).scalar_one()
        today = [
            pair
            for pair in stored_pairs(connection, ids, environment, kind)
            if start <= pair.ended_at < start + DAY_S
        ]
        for (comparison_id, host), own in groupby(sorted(today, key=_at), key=_at):
            used = payload.used(sorted(own, key=lambda pair: (pair.ended_at, pair.attempt)))
            if not used:
                continue
            place = {"environment": environment, "host": host, "device_name": device}
            common = {
                **place,
                "rounds": len(used),
                "flags": union_flags(used),
                "measured_at": timestamp(used[-1].ended_at),
            }
            data = {row.attempt: payload.load(connection, row.attempt) for row in used}
            for spec, figures in payload.compare(used, data.__getitem__):
                yield {
                    **about[comparison_id],
                    **figures,
                    **common,
                    "metric": spec.name,
                    "floor": spec.floor,
                }


def _place(row: Row[Any]) -> tuple[str, str]:
    return row.environment, row.kind


def _at(pair: Row[Any]) -> tuple[str, str]:
    return pair.comparison_id, pair.host


def _about(ids: Sequence[str]) -> Select[Any]:
    names = ("comparison_id", "question_id", *COMPARED_FIELDS, "baseline", "baseline_id")
    columns = (
        *named(COMPARISON, names),
        COMPARISON.c.threads.label("requested_threads"),
    )
    return select(*columns).where(COMPARISON.c.comparison_id.in_(ids))
