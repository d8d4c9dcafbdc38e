"""What advice rests on: the conditions in which arms were timed, the arms with intervals that can
be widened, failures, quality by data set, memory, energy.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
from sqlalchemy import (
    ColumnElement,
    Engine,
    FromClause,
    Select,
    and_,
    distinct,
    except_,
    func,
    or_,
    select,
    tuple_,
)

from store.derive.effects import compare_groups, stored_pairs, union_flags
from store.errors import StoreError
from store.read.quality import quality_metrics
from store.rows.frames import groups, read_frame, rows_of, typed_rows
from store.rows.location import database_option, display_name
from store.rows.placement import Place, on_curve
from store.rows.transactions import fetch, fetch_values, reading
from store.schema.tables import (
    ATTEMPT,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    PAIR,
    PANEL,
    PANEL_PROGRESS,
    SAME_PANEL,
    SWEEP,
    SWEEP_COMPARISON,
    named,
)
from store.views.public import TABLES
from sweeps.analysis.rows import AdviceRow, EffectRow, FailureRow
from sweeps.errors import did_you_mean
from sweeps.model.condition import Condition
from sweeps.model.flags import split_flags, wrong
from sweeps.model.job import DENSE, Comparison
from sweeps.model.kinds import KINDS, THREAD_FIELDS
from sweeps.model.metrics import timed_metrics
from sweeps.stats.pooling import Verdict

_OF_PANEL = COMPARISON.c.comparison_id == PANEL_PROGRESS.c.comparison_id
_CONDITION = (
    "weights",
    *THREAD_FIELDS,
    "seed",
    "data",
    "new_tokens",
    "decoding",
    "exclusive",
    "inputs",
    "baseline_id",
)
"""Columns of `comparison` that are equal for the arms of one condition, besides model, batch and
device."""


class TimedCondition(NamedTuple):
    """A condition in which arms of a model and batch were timed."""

    place: Place
    panel_ids: tuple[str, ...]
    """Those of arms without a point too, which may have failed."""
    points: int
    measured_at: str


def measured_conditions(engine: Engine) -> pd.DataFrame:
    """What advice can be given on: `model`, `device`, `batch_size`, `runtime`, `metric`, with
    `points` and newest `at`.

    One row for each combination against the unmodified model that was measured somewhere.
    """
    names = ["model", "device", "batch_size", "runtime", "metric"]
    columns = named(COMPARISON, names[:-1])
    counted = [
        func.sum(PANEL.c.points).label("points"),
        func.max(PANEL.c.measured_at).label("at"),
    ]
    swept = (
        select(*columns, PANEL.c.metric, *counted)
        .select_from(_panels())
        .where(PANEL.c.metric.in_(timed_metrics()), *unmodified(COMPARISON))
        .group_by(*columns, PANEL.c.metric)
    )
    found = read_frame(engine, swept)
    if _all_swept(engine):
        return found.sort_values(names, ignore_index=True)
    figures = [func.count().label("points"), func.max(EFFECT.c.measured_at).label("at")]
    other = COMPARISON.alias("other")
    alone = EFFECT.c.comparison_id.in_(
        except_(select(other.c.comparison_id), select(SWEEP_COMPARISON.c.comparison_id))
    )
    imported = (
        select(*columns, EFFECT.c.metric, *figures)
        .select_from(COMPARISON.join(EFFECT))
        .where(alone, *_measured_by(EFFECT, timed_metrics()), *unmodified(COMPARISON))
        .group_by(*columns, EFFECT.c.metric)
    )
    both = [frame for frame in (found, read_frame(engine, imported)) if len(frame)] or [found]
    return (
        pd.concat(both)
        .groupby(names, as_index=False)
        .agg(points=("points", "sum"), at=("at", "max"))
    )


def _all_swept(engine: Engine) -> bool:
    """Whether every comparison belongs to a sweep, so that panels count all of them."""
    every = select(func.count()).select_from(COMPARISON).scalar_subquery()
    swept = select(func.count(distinct(SWEEP_COMPARISON.c.comparison_id))).scalar_subquery()
    return bool(fetch_values(engine, select(every == swept))[0])


def timed_conditions(
    engine: Engine,
    model: str,
    batch: int,
    *,
    device: str | None = None,
    runtime: str | None = None,
    metric: str | None = None,
) -> list[TimedCondition]:
    """The conditions of a model and batch in which sweeps timed arms against the unmodified model,
    those with most points first.

    Of conditions with equally many the newest is first. `metric` is one of `timed_metrics()`
    (default: any).
    """
    limits = {"model": model, "batch_size": batch, "device": device, "runtime": runtime}
    own = [COMPARISON.c[name] == value for name, value in limits.items() if value is not None]
    of_condition = named(COMPARISON, _CONDITION)
    of_place = named(PANEL, "environment host panel_id points measured_at")
    metrics = timed_metrics() if metric is None else (metric,)
    points = (
        select(*of_place, *of_condition).select_from(_panels()).where(PANEL.c.metric.in_(metrics))
    )
    every = (
        select(PANEL_PROGRESS.c.panel_id, *of_condition)
        .distinct()
        .join_from(PANEL_PROGRESS, COMPARISON, _OF_PANEL)
    )
    panels = dict[tuple[Any, ...], tuple[str, ...]]()
    for key, found in groups(
        read_frame(engine, every.where(*unmodified(COMPARISON), *own)), _CONDITION
    ):
        panels[tuple(key.values())] = tuple(sorted(found["panel_id"]))
    # a panel that several sweeps requested is one
    timed = read_frame(engine, points.where(*unmodified(COMPARISON), *own)).drop_duplicates(
        ["environment", "host", "panel_id"]
    )
    conditions = [
        TimedCondition(
            place=Place(key.pop("environment"), key.pop("host")),
            panel_ids=panels[tuple(key.values())],
            points=int(found["points"].sum()),
            measured_at=str(found["measured_at"].max()),
        )
        for key, found in groups(timed, ("environment", "host", *_CONDITION))
    ]
    return sorted(
        conditions, key=lambda each: (each.points, each.measured_at, each.panel_ids), reverse=True
    )


def timed_sizes(engine: Engine, model: str, batch: int) -> dict[int, int]:
    """At how many tokens how many arms of a model and batch were timed against the unmodified
    model, by any of its metrics.

    Where sweeps timed them, those of the condition with the most points.
    """
    rows = select(EFFECT.c.tokens, func.count(distinct(EFFECT.c.comparison_id)).label("arms"))
    rows = rows.where(
        *_measured_by(EFFECT, timed_metrics()), EFFECT.c.tokens.is_not(None)
    ).group_by(EFFECT.c.tokens)
    fullest = timed_conditions(engine, model, batch)[:1]
    of_batch = EFFECT.c.comparison_id.in_(comparisons_of(model, batch))
    found = rows.where(in_conditions(EFFECT, fullest) if fullest else of_batch)
    return {row.tokens: row.arms for row in fetch(engine, found)}


def in_conditions(table: FromClause, conditions: Sequence[TimedCondition]) -> ColumnElement[bool]:
    """Whether rows of a table with `comparison_id`, `environment` and `host` were measured in one
    of the conditions.
    """
    places = tuple_(table.c.environment, table.c.host).in_(
        [tuple(each.place) for each in conditions]
    )
    panels = [panel for each in conditions for panel in each.panel_ids]
    own = select(COMPARISON.c.comparison_id).where(COMPARISON.c.panel_id.in_(panels))
    return and_(table.c.comparison_id.in_(own), places)


def comparisons_of(model: str, batch: int | None) -> Select[Any]:
    """Selects the ids of the comparisons of a model, found by the index of methods and models:
    others are not read.
    """
    other = COMPARISON.alias("other")
    rows = select(COMPARISON.c.comparison_id).where(
        COMPARISON.c.method.in_(select(other.c.method).distinct()),
        COMPARISON.c.model == model,
        *unmodified(COMPARISON),
    )
    return rows if batch is None else rows.where(COMPARISON.c.batch_size == batch)


def unmodified(table: FromClause) -> tuple[ColumnElement[bool], ...]:
    """Against the unmodified model, whatever setting it ran with, and no repeated arm of an A/A
    test.
    """
    once = or_(table.c.params.is_(None), ~table.c.params.contains('"replicate"'))
    return table.c.baseline_method == DENSE.method, once


def _panels() -> FromClause:
    return PANEL.join(PANEL_PROGRESS, SAME_PANEL).join(COMPARISON, _OF_PANEL)


def _measured_by(table: FromClause, metrics: Collection[str]) -> tuple[ColumnElement[bool], ...]:
    return table.c.metric.in_(metrics), table.c.effect.is_not(None), table.c.source != "published"


MAX_LETTERS = 160
"""Letters of an error message that are shown."""
SPEED, EFFECT_VIEW, FAILED = TABLES["speedup"], TABLES["effect"], TABLES["failures"]
_EFFECTS = select(EFFECT_VIEW).where(EFFECT_VIEW.c.effect.is_not(None))


@dataclass(frozen=True, kw_only=True)
class TimedArm(AdviceRow):
    """A row of the view `speedup`, with what else advice is made of."""

    pairs: int
    verdict: Verdict
    condition: Condition
    condition_group: str
    """Equal for the conditions of all sizes."""


@dataclass(frozen=True, kw_only=True)
class FailedArm(FailureRow):
    """A row of the view `failures`, with `condition_group` as of `TimedArm`."""

    curve_id: str
    condition: Condition
    condition_group: str
    tokens: int | None = None
    """Of the unmodified model there; `None` where no measured size of the model states it."""

    @property
    def explanation(self) -> str:
        """`failed: out of memory (…)`."""
        first = next(iter(self.message.strip().splitlines()), "")
        detail = first if len(first) <= MAX_LETTERS else f"{first[:MAX_LETTERS]}…"
        return f"failed: {self.reason.replace('_', ' ')}" + (f" ({detail})" if detail else "")


def timed_arms(
    engine: Engine,
    model: str | None = None,
    device: str | None = None,
    *,
    metric: str | None = None,
    batch: int | None = None,
    only: Sequence[TimedCondition] | None = None,
) -> list[TimedArm]:
    """Arms timed against the unmodified model by one metric of their kind, published figures aside,
    oldest first.

    `metric` is one of `timed_metrics()` (default: the first of each kind), `device` is `cpu` or
    `cuda`; all of the model's batches without `batch`, and only some conditions with `only`. Raises
    `StoreError` that names the nearest models where none of that name was timed.
    """
    more = named(EFFECT, "effect_se effect_freedom")
    keys = ("comparison_id", "environment", "host", "metric")
    same = and_(*(EFFECT.c[name] == SPEED.c[name] for name in keys))
    source = SPEED.join(EFFECT, same).join(
        COMPARISON, COMPARISON.c.comparison_id == SPEED.c.comparison_id
    )
    rows = select(SPEED, *more, COMPARISON.c.payload).select_from(source).where(*_timed_by(metric))
    if only is None and model is not None:
        rows = rows.where(SPEED.c.comparison_id.in_(comparisons_of(model, batch)))
    order = (SPEED.c.measured_at, SPEED.c.comparison_id)
    rows = rows.where(*_chosen(SPEED, model, device, batch, only)).order_by(*order)
    found = rows_of(_with_conditions(read_frame(engine, rows)), TimedArm)
    if not found:
        _require_timed(engine, model, device, metric)
    return found


def timed_batches(
    engine: Engine,
    model: str | None = None,
    device: str | None = None,
    *,
    metric: str | None = None,
) -> list[int]:
    """The batch sizes of the comparisons that `timed_arms` returns, smallest first."""
    rows = (
        select(SPEED.c.batch_size)
        .distinct()
        .where(*_timed_by(metric), *_chosen(SPEED, model, device))
    )
    if model is not None:
        rows = rows.where(SPEED.c.comparison_id.in_(comparisons_of(model, None)))
    return sorted(fetch_values(engine, rows))


def failed_arms(
    engine: Engine,
    model: str | None = None,
    device: str | None = None,
    *,
    batch: int | None = None,
    only: Sequence[TimedCondition] | None = None,
) -> list[FailedArm]:
    """Arms that could not be timed against the unmodified model, oldest first; `only` is as in
    `timed_arms`.
    """
    rows = (
        select(FAILED, *named(COMPARISON, "curve_id condition_id payload"))
        .join_from(FAILED, COMPARISON, COMPARISON.c.comparison_id == FAILED.c.comparison_id)
        .where(
            FAILED.c.kind.in_([kind.name for kind in KINDS.values() if kind.sampled]),
            *_chosen(FAILED, model, device, batch, only),
        )
        .order_by(FAILED.c.at, FAILED.c.comparison_id)
    )
    return rows_of(_with_conditions(read_frame(engine, rows)), FailedArm)


def _timed_by(metric: str | None) -> tuple[ColumnElement[bool], ...]:
    chosen = SPEED.c.metric == metric
    if metric is None:
        first = (
            and_(SPEED.c.kind == kind.name, SPEED.c.metric == kind.metrics[0])
            for kind in KINDS.values()
            if kind.sampled
        )
        chosen = or_(*first)
    return chosen, SPEED.c.source != "published"


def _chosen(
    table: FromClause,
    model: str | None,
    device: str | None,
    batch: int | None = None,
    only: Sequence[TimedCondition] | None = None,
) -> Iterator[ColumnElement[bool]]:
    yield from unmodified(table)
    wanted = {"model": model, "device": device, "batch_size": batch}
    yield from (table.c[name] == value for name, value in wanted.items() if value is not None)
    if only is not None:
        yield in_conditions(table, only)


def _with_conditions(found: pd.DataFrame) -> pd.DataFrame:
    """With `condition` and `condition_group`, of which comparisons of one `condition_id` have
    one.
    """
    known = {
        name: Comparison.model_validate_json(payload).condition
        for name, payload in dict(zip(found["condition_id"], found["payload"], strict=True)).items()
    }
    conditions = [known[name] for name in found["condition_id"]]
    return found.assign(
        condition=pd.Series(conditions, index=found.index, dtype=object),
        condition_group=[on_curve(condition) for condition in conditions],
    )


def _require_timed(
    engine: Engine, model: str | None, device: str | None, metric: str | None
) -> None:
    columns = select(SPEED.c.model, SPEED.c.device, SPEED.c.metric)
    timed = fetch(engine, columns.where(SPEED.c.source != "published").distinct())
    where, known = display_name(engine.url), sorted({row.model for row in timed})
    if not known:
        raise StoreError(
            f"{where} contains no timed comparison; measure some first: breakeven run quickstart"
            + database_option(where)
        )
    if model is not None and model not in known:
        raise StoreError(
            f"{where} contains no timed comparison of {model}{did_you_mean(model, known)}"
        )
    own = [row for row in timed if model in {None, row.model}]
    if device is not None and all(row.device != device for row in own):
        raise StoreError(
            f"{where} contains no comparison of {model or 'any model'} that was timed on device"
            f" {device}"
        )
    metrics = sorted(
        {row.metric for row in own if row.metric in timed_metrics()}, key=timed_metrics().index
    )
    if metric is not None and metric not in metrics:
        raise StoreError(
            f"{where} contains no comparison of {model or 'any model'} by {metric}; timed are"
            f" {', '.join(metrics)}"
        )


def qualities_of(engine: Engine, timed: Sequence[TimedArm]) -> list[EffectRow]:
    """Quality of the same arms against the same baselines, one row for each `quality_pair_id`,
    metric and data set (with corruption and severity): the newest without a flag, else the newest.
    """
    kinds = {row.kind for row in timed}
    metrics = sorted({spec.name for kind in kinds for _, spec in quality_metrics(kind)})
    stored = _EFFECTS.where(EFFECT_VIEW.c.metric.in_(metrics), EFFECT_VIEW.c.source != "published")
    ids = (row.quality_pair_id for row in timed)
    rows = typed_rows(engine, stored, EFFECT_VIEW.c.quality_pair_id, ids, EffectRow)
    newest: dict[tuple[str | int | None, ...], EffectRow] = {}
    for row in sorted(rows, key=lambda row: (not wrong(split_flags(row.flags)), row.measured_at)):
        key = (row.quality_pair_id, row.metric, row.data, row.corruption, row.severity)
        newest.pop(key, None)  # it comes where its newest row is
        newest[key] = row
    return list(newest.values())


def amounts_of(engine: Engine, timed: Sequence[TimedArm]) -> list[EffectRow]:
    """Peak memory and energy of the same comparisons."""
    amounts = _EFFECTS.where(EFFECT_VIEW.c.compared == "amount")
    ids = (row.comparison_id for row in timed)
    return typed_rows(engine, amounts, EFFECT_VIEW.c.comparison_id, ids, EffectRow)


def environment_facts(engine: Engine, environments: Collection[str]) -> dict[str, dict[str, Any]]:
    """Device, its name and the versions of each environment, by its id."""
    rows = select(ENVIRONMENT).where(ENVIRONMENT.c.environment_id.in_(sorted(environments)))
    return {
        row.environment_id: {
            "device": row.device,
            "device_name": row.device_name,
            "facts": json.loads(row.facts),
        }
        for row in fetch(engine, rows)
    }


def provenance_rows(engine: Engine, name: str) -> pd.DataFrame:
    """Where and when the comparisons of the newest revision of a sweep were measured.

    A row for each environment, host, commit and source: `device_name`, `facts` (JSON), `attempts`,
    and `first` and `last` in seconds since the epoch.
    """
    link, sweep, other = SWEEP_COMPARISON, SWEEP, SWEEP.alias("other")
    newest = select(func.max(other.c.revision)).where(other.c.name == name).scalar_subquery()
    requested = select(link.c.comparison_id).join(sweep, sweep.c.id == link.c.sweep)
    requested = requested.where(sweep.c.name == name, sweep.c.revision == newest)
    attempts = select(PAIR.c.attempt).where(PAIR.c.comparison_id.in_(requested))
    place = named(ATTEMPT, "environment host source project_commit")
    device = [ENVIRONMENT.c.device_name, ENVIRONMENT.c.facts]
    figures = [
        func.count().label("attempts"),
        func.min(ATTEMPT.c.started_at).label("first"),
        func.max(ATTEMPT.c.ended_at).label("last"),
    ]
    rows = (
        select(*place[:-1], place[-1].label("commit"), *device, *figures)
        .join_from(ATTEMPT, ENVIRONMENT, ENVIRONMENT.c.environment_id == ATTEMPT.c.environment)
        .where(ATTEMPT.c.id.in_(attempts))
        .group_by(*place, *device)
        .order_by(func.max(ATTEMPT.c.ended_at).desc(), ATTEMPT.c.host)
    )
    return read_frame(engine, rows)


def fresh_figures(
    engine: Engine, comparison_id: str, kind: str, place: Place, *, since: int, metric: str
) -> dict[str, Any] | None:
    """The effect of a comparison by one metric, from attempts after the number `since` alone.

    Columns of `effect_row`, and `flags`. `None` where no such attempt measured it.
    """
    with reading(engine) as connection:
        pairs = [
            pair
            for pair in stored_pairs(connection, [comparison_id], place.environment, kind)
            if pair.attempt > since and pair.host == place.host
        ]
        compared = compare_groups(connection, pairs, kind, lambda pair: (pair.host,))
        for _, used, spec, figures in compared:
            if spec.name == metric:
                return {**figures, "flags": union_flags(used), "floor": spec.floor}
    return None
