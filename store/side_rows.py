"""Answers of one side of a comparison between sweeps, environments, revisions or days, and which sides there are."""

from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from time import strptime
from typing import Any, Literal, NamedTuple, get_args

from sqlalchemy import Connection, Engine, Select, and_, func, select

from store.derive.effects import PAIRS
from store.derive.payloads import payload_of
from store.row_mapping import timestamp
from store.tables.derived import EffectRow
from store.tables.planned import ArmColumns, ComparisonRow, EnvironmentRow, SweepComparisonRow, SweepRow, core
from store.tables.results import AttemptRow, ComparisonAttemptRow
from store.transactions import reading
from store.views.columns import newest_answer
from sweeps.flags import split_flags
from sweeps.kinds import KINDS

By = Literal["sweep", "environment", "revision", "date"]
BY: tuple[By, ...] = get_args(By)
EFFECT, COMPARISON, ENVIRONMENT, SWEEP = core(EffectRow), core(ComparisonRow), core(EnvironmentRow), core(SweepRow)
ATTEMPT, PAIR, LINK = core(AttemptRow), core(ComparisonAttemptRow), core(SweepComparisonRow)
MOST_ANSWERS = 1500
"""Questions, or answers of a side, that are read."""
MOST_DERIVED = 200
"""Answers of a day that are derived from its attempts."""
DAY_S = 86_400.0

ANSWER = (
    *("comparison_id", "question_id", "environment", "host", "metric", "measured_at", "baseline_value", "arm_value", "effect"),
    *("effect_low", "effect_high", "effect_se", "effect_freedom", "rounds", "n", "verdict", "flags", "floor", "process_loads"),
)
COMPARED_FIELDS = tuple(name for name in ArmColumns.model_fields if name not in {"arm_id", "condition_id"})


class SideChoice(NamedTuple):
    """One side that can be chosen: its value in an address, and what it is in words."""

    value: str
    label: str


def side_choices(engine: Engine, by: By) -> list[SideChoice]:
    """The sides that can be chosen, newest first."""
    with reading(engine) as connection:
        return list(choices(connection, by))


def choices(connection: Connection, by: By) -> Iterator[SideChoice]:
    if by == "environment":
        places = (EFFECT.c.environment, EFFECT.c.host)
        newest = func.max(EFFECT.c.measured_at)
        measured = (EFFECT.c.compared == "ratio", EFFECT.c.effect.is_not(None))
        found = select(*places, ENVIRONMENT.c.device_name, newest.label("newest")).join_from(EFFECT, ENVIRONMENT)
        for row in connection.execute(found.where(*measured).group_by(*places, ENVIRONMENT.c.device_name).order_by(newest.desc())):
            yield SideChoice(
                f"{row.environment}:{row.host}", f"{row.device_name}, host {row.host}, environment {row.environment[:8]}"
            )
        return
    if by == "date":
        since = func.timezone("UTC", func.to_timestamp(ATTEMPT.c.ended_at))
        day = func.date(ATTEMPT.c.ended_at, "unixepoch") if connection.dialect.name == "sqlite" else func.date(since)
        rows = select(day, func.count()).group_by(day).order_by(day.desc())
        for date, attempts in connection.execute(rows):
            yield SideChoice(str(date), f"{date}, {attempts:,} attempts")
        return
    sweeps = select(SWEEP.c.name, SWEEP.c.revision).order_by(SWEEP.c.submitted_at.desc(), SWEEP.c.id.desc())
    for name, revision in connection.execute(sweeps):
        if by == "revision":
            yield SideChoice(f"{revision}:{name}", f"{name}, revision {revision}")
    if by == "sweep":
        names = dict.fromkeys(row.name for row in connection.execute(sweeps))
        yield from (SideChoice(name, name) for name in names)


def _answers() -> Select[Any]:
    columns = (
        *(EFFECT.c[name] for name in ANSWER),
        *(COMPARISON.c[name] for name in COMPARED_FIELDS),
        *(COMPARISON.c[name] for name in ("baseline", "baseline_id")),
        COMPARISON.c.threads.label("requested_threads"),
        ENVIRONMENT.c.device_name,
    )
    source = EFFECT.join(COMPARISON, COMPARISON.c.comparison_id == EFFECT.c.comparison_id).join(
        ENVIRONMENT, ENVIRONMENT.c.environment_id == EFFECT.c.environment
    )
    measured = (EFFECT.c.compared == "ratio", EFFECT.c.effect.is_not(None))
    return select(*columns).select_from(source).where(*measured)


def _side(by: By, value: str) -> tuple[Any, Any]:
    """The conditions that a row of `effect_row`, and one of `comparison`, belongs to a side; `None` where any does."""
    first, _, rest = value.partition(":")
    if by == "environment":
        return and_(EFFECT.c.environment == first, EFFECT.c.host == rest), None
    name, revision = (rest, int(first)) if by == "revision" else (value, None)
    other = SWEEP.alias("other")
    newest = select(func.max(other.c.revision)).where(other.c.name == name).scalar_subquery()
    sweep = select(SWEEP.c.id).where(SWEEP.c.name == name, SWEEP.c.revision == (newest if revision is None else revision))
    linked = select(LINK.c.comparison_id).where(LINK.c.sweep == sweep.scalar_subquery())
    return EFFECT.c.comparison_id.in_(linked), COMPARISON.c.comparison_id.in_(linked)


def stored_sides(connection: Connection, by: By, a: str, b: str) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]], bool]:
    """The answers to common questions; all of both sides where they have none in common, and whether there are more."""
    sides = (_side(by, a), _side(by, b))
    newest = () if by == "revision" else (newest_answer(EFFECT),)
    common = [_questions(side) for side in sides]
    questions = connection.execute(common[0].intersect(common[1]).limit(MOST_ANSWERS + 1)).scalars().all()
    capped = len(questions) > MOST_ANSWERS
    if questions:
        here = EFFECT.c.question_id.in_(questions[:MOST_ANSWERS])
        order = (EFFECT.c.question_id, EFFECT.c.measured_at, EFFECT.c.metric)
        found = [_read(connection, _answers().where(here, effect, *newest).order_by(*order)) for effect, _ in sides]
        if all(found):
            return found[0], found[1], capped
    found, capped = [], False
    for side in sides:
        ids = connection.execute(_comparisons(side)).scalars().all()
        capped |= len(ids) > MOST_ANSWERS
        chosen = (EFFECT.c.comparison_id.in_(ids[:MOST_ANSWERS]), side[0], *newest)
        found.append(_read(connection, _answers().where(*chosen).order_by(EFFECT.c.measured_at, EFFECT.c.metric)))
    return found[0], found[1], capped


def _comparisons(side: tuple[Any, Any]) -> Select[Any]:
    """The comparisons of a side in an order that is alike on both, so that their beginnings match."""
    effect, comparison = side
    if comparison is None:
        comparison = COMPARISON.c.comparison_id.in_(select(EFFECT.c.comparison_id).where(effect))
    order = ("method", "model", "image_size", "params", "prompt_tokens", "batch_size")
    rows = select(COMPARISON.c.comparison_id).where(comparison).order_by(*(COMPARISON.c[name] for name in order))
    return rows.limit(MOST_ANSWERS + 1)


def _questions(side: tuple[Any, Any]) -> Select[Any]:
    """The questions of a side, answered or not."""
    effect, comparison = side
    if comparison is None:
        return select(EFFECT.c.question_id).where(effect)
    return select(COMPARISON.c.question_id).where(comparison)


def _read(connection: Connection, rows: Select[Any]) -> list[Mapping[str, Any]]:
    return [dict(row._mapping) for row in connection.execute(rows)]


def day_sides(connection: Connection, a: str, b: str) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]], bool]:
    """The answers by the attempts of each day alone, to questions that both days measured."""
    spans = [timegm(strptime(day, "%Y-%m-%d")) for day in (a, b)]
    sampled = [kind.name for kind in KINDS.values() if kind.sampled]
    keys = (COMPARISON.c.question_id, PAIR.c.comparison_id, ATTEMPT.c.environment, COMPARISON.c.kind)
    pairs = PAIR.join(ATTEMPT, ATTEMPT.c.id == PAIR.c.attempt).join(COMPARISON, COMPARISON.c.comparison_id == PAIR.c.comparison_id)
    measured = []
    for start in spans:
        here = (ATTEMPT.c.ended_at >= start, ATTEMPT.c.ended_at < start + DAY_S, PAIR.c.failure.is_(None))
        rows = select(*keys).select_from(pairs).where(*here, COMPARISON.c.kind.in_(sampled)).distinct().order_by(*keys)
        measured.append(connection.execute(rows).all())
    common = sorted({row.question_id for row in measured[0]} & {row.question_id for row in measured[1]})
    kept = set(common[:MOST_DERIVED])
    found = [
        list(_derived(connection, [row for row in rows if row.question_id in kept], start))
        for rows, start in zip(measured, spans, strict=True)
    ]
    return found[0], found[1], len(common) > MOST_DERIVED


def _derived(connection: Connection, wanted: Sequence[Any], start: float) -> Iterator[Mapping[str, Any]]:
    """Answers as rows of `_answers`, from the attempts of the day that begins at `start` alone."""
    for (environment, kind), rows in groupby(sorted(wanted, key=_place), key=_place):
        ids, payload = [row.comparison_id for row in rows], payload_of(kind)
        about = {row.comparison_id: dict(row._mapping) for row in connection.execute(_about(ids))}
        device = connection.execute(
            select(ENVIRONMENT.c.device_name).where(ENVIRONMENT.c.environment_id == environment)
        ).scalar_one()
        of = {"comparisons": ids, "environment": environment, "kind": kind}
        today = [pair for pair in connection.execute(PAIRS, of) if start <= pair.ended_at < start + DAY_S]
        for (comparison_id, host), own in groupby(sorted(today, key=_at), key=_at):
            used = payload.used(sorted(own, key=lambda pair: (pair.ended_at, pair.attempt)))
            if not used:
                continue
            flags = sorted(
                {flag for row in used for joined in (row.flags, row.baseline_flags, row.arm_flags) for flag in split_flags(joined)}
            )
            place = {"environment": environment, "host": host, "device_name": device}
            common = {**place, "rounds": len(used), "flags": ",".join(flags), "measured_at": timestamp(used[-1].ended_at)}
            data = {row.attempt: payload.load(connection, row.attempt) for row in used}
            for spec, figures in payload.compare(used, data.__getitem__):
                yield {**about[comparison_id], **figures, **common, "metric": spec.name, "floor": spec.floor}


def _place(row: Any) -> tuple[str, str]:
    return row.environment, row.kind


def _at(pair: Any) -> tuple[str, str]:
    return pair.comparison_id, pair.host


def _about(ids: Sequence[str]) -> Select[Any]:
    names = ("comparison_id", "question_id", *COMPARED_FIELDS, "baseline", "baseline_id")
    columns = (*(COMPARISON.c[name] for name in names), COMPARISON.c.threads.label("requested_threads"))
    return select(*columns).where(COMPARISON.c.comparison_id.in_(ids))
