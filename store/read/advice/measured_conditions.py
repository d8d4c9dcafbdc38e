"""What advice can be given on: models, devices, batches, runtimes and metrics that were timed,
their conditions and sizes.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from sqlalchemy import (
    ColumnElement,
    Engine,
    FromClause,
    and_,
    distinct,
    except_,
    func,
    or_,
    select,
    tuple_,
)

from store.rows.frames import groups
from store.rows.placement import Place
from store.rows.transactions import reading
from store.schema.tables import COMPARISON, EFFECT, PANEL, PANEL_PROGRESS, SWEEP_COMPARISON
from sweeps.model.job import DENSE
from sweeps.model.kinds import THREAD_FIELDS
from sweeps.model.metrics import timed_metrics
from sweeps.number_format import is_missing

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
    columns = [COMPARISON.c[name] for name in names[:-1]]
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
    found = _frame(engine, swept)
    if _all_swept(engine):
        return found.sort_values(names, ignore_index=True)
    figures = [func.count().label("points"), func.max(EFFECT.c.measured_at).label("at")]
    other = COMPARISON.alias("other")
    alone = EFFECT.c.comparison_id.in_(
        except_(select(other.c.comparison_id), select(SWEEP_COMPARISON.c.comparison_id))
    )
    imported = (
        select(*columns, EFFECT.c.metric, *figures)
        .select_from(COMPARISON.join(EFFECT, EFFECT.c.comparison_id == COMPARISON.c.comparison_id))
        .where(alone, *_measured_by(EFFECT, timed_metrics()), *unmodified(COMPARISON))
        .group_by(*columns, EFFECT.c.metric)
    )
    both = [frame for frame in (found, _frame(engine, imported)) if len(frame)] or [found]
    return (
        pd.concat(both)
        .groupby(names, as_index=False)
        .agg(points=("points", "sum"), at=("at", "max"))
    )


def _all_swept(engine: Engine) -> bool:
    """Whether every comparison belongs to a sweep, so that panels count all of them."""
    counts = (
        select(func.count()).select_from(COMPARISON),
        select(func.count(distinct(SWEEP_COMPARISON.c.comparison_id))),
    )
    with reading(engine) as connection:
        every, swept = (connection.execute(count).scalar_one() for count in counts)
    return bool(every == swept)


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
    of_condition = [COMPARISON.c[name] for name in _CONDITION]
    of_place = [
        PANEL.c[name] for name in ("environment", "host", "panel_id", "points", "measured_at")
    ]
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
        _frame(engine, every.where(*unmodified(COMPARISON), *own)), _CONDITION
    ):
        panels[_known(key)] = tuple(sorted(found["panel_id"]))
    # a panel that several sweeps requested is one
    timed = _frame(engine, points.where(*unmodified(COMPARISON), *own)).drop_duplicates(
        ["environment", "host", "panel_id"]
    )
    conditions = [
        TimedCondition(
            place=Place(key.pop("environment"), key.pop("host")),
            panel_ids=panels[_known(key)],
            points=int(found["points"].sum()),
            measured_at=str(found["measured_at"].max()),
        )
        for key, found in groups(timed, ("environment", "host", *_CONDITION))
    ]
    return sorted(
        conditions, key=lambda each: (each.points, each.measured_at, each.panel_ids), reverse=True
    )


def _known(key: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of a key, of which missing ones equal each other."""
    return tuple(None if is_missing(value) else value for value in key.values())


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
    with reading(engine) as connection:
        found = connection.execute(
            rows.where(in_conditions(EFFECT, fullest) if fullest else of_batch)
        )
        return {row.tokens: row.arms for row in found}


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


def comparisons_of(model: str, batch: int | None) -> Any:
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
    dense = or_(
        table.c.baseline == DENSE.method,
        table.c.baseline.startswith(f"{DENSE.method} [", autoescape=True),
    )
    return dense, or_(table.c.params.is_(None), ~table.c.params.contains('"replicate"'))


def _panels() -> Any:
    same = and_(
        PANEL_PROGRESS.c.sweep == PANEL.c.sweep,
        PANEL_PROGRESS.c.panel_id == PANEL.c.panel_id,
    )
    return PANEL.join(PANEL_PROGRESS, same).join(COMPARISON, _OF_PANEL)


def _measured_by(table: FromClause, metrics: Collection[str]) -> tuple[ColumnElement[bool], ...]:
    return table.c.metric.in_(metrics), table.c.effect.is_not(None), table.c.source != "published"


def _frame(engine: Engine, statement: Any) -> pd.DataFrame:
    with reading(engine) as connection:
        found = connection.execute(statement)
        return pd.DataFrame.from_records(
            [tuple(row) for row in found], columns=list(found.keys()), coerce_float=True
        )
