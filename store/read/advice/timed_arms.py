"""What advice rests on: the conditions in which arms were timed, the arms with intervals that can
be widened, failures, quality by data set, memory, energy.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
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

from store.derive.effects import PAIRS
from store.derive.payloads import payload_of
from store.errors import StoreError
from store.read.quality import quality_metrics
from store.rows.frames import groups, read_frame
from store.rows.location import display_name
from store.rows.placement import Place, on_curve
from store.rows.transactions import batches, reading
from store.schema.tables import (
    ATTEMPT,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    PAIR,
    PANEL,
    PANEL_PROGRESS,
    SWEEP,
    SWEEP_COMPARISON,
    named,
)
from store.views.public import TABLES
from sweeps.errors import did_you_mean
from sweeps.model.flags import split_flags, wrong
from sweeps.model.job import DENSE, Comparison
from sweeps.model.kinds import KINDS, THREAD_FIELDS
from sweeps.model.metrics import METRICS, timed_metrics
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
        .select_from(COMPARISON.join(EFFECT, EFFECT.c.comparison_id == COMPARISON.c.comparison_id))
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
        panels[_known(key)] = tuple(sorted(found["panel_id"]))
    # a panel that several sweeps requested is one
    timed = read_frame(engine, points.where(*unmodified(COMPARISON), *own)).drop_duplicates(
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


SPEED, EFFECT_VIEW, FAILED = TABLES["speedup"], TABLES["effect"], TABLES["failures"]
_AT = ("comparison_id", "environment", "host")


def timed_arms(
    engine: Engine,
    model: str | None = None,
    device: str | None = None,
    *,
    metric: str | None = None,
    batch: int | None = None,
    only: Sequence[TimedCondition] | None = None,
) -> pd.DataFrame:
    """Rows of the view `speedup` against the unmodified model by one metric of their kind,
    published figures aside, oldest first.

    `metric` is one of `timed_metrics()` (default: the first of each kind), `device` is `cpu` or
    `cuda`; all of the model's batches without `batch`, and only some conditions with `only`. Beside
    the columns of the view: `effect_se` and `effect_freedom` of the effect, `payload` (the
    comparison as JSON), `condition` (the domain object), and `condition_group`, which the
    conditions of all sizes share. Raises `StoreError` that names the nearest models where none of
    that name was timed.
    """
    more = named(EFFECT, "effect_se effect_freedom")
    same = and_(*(EFFECT.c[name] == SPEED.c[name] for name in (*_AT, "metric")))
    source = SPEED.join(EFFECT, same).join(
        COMPARISON, COMPARISON.c.comparison_id == SPEED.c.comparison_id
    )
    where = [*_timed_by(metric), *_of_model(SPEED, model, device)]
    rows = select(SPEED, *more, COMPARISON.c.payload).select_from(source).where(*where)
    if only is not None:
        rows = rows.where(in_conditions(SPEED, only))
    elif model is not None:
        rows = rows.where(SPEED.c.comparison_id.in_(comparisons_of(model, batch)))
    if batch is not None:
        rows = rows.where(SPEED.c.batch_size == batch)
    found = read_frame(engine, rows.order_by(SPEED.c.measured_at, SPEED.c.comparison_id))
    if found.empty:
        _require_timed(engine, model, device, metric)
    return _with_conditions(found)


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
        .where(*_timed_by(metric), *_of_model(SPEED, model, device))
    )
    if model is not None:
        rows = rows.where(SPEED.c.comparison_id.in_(comparisons_of(model, None)))
    with reading(engine) as connection:
        return sorted(connection.execute(rows).scalars())


def failed_arms(
    engine: Engine,
    model: str | None = None,
    device: str | None = None,
    *,
    batch: int | None = None,
    only: Sequence[TimedCondition] | None = None,
) -> pd.DataFrame:
    """Arms that could not be timed against the unmodified model: rows of the view `failures`,
    oldest first.

    `only` is as in `timed_arms`. Beside the columns of the view: `curve_id`, `condition` and
    `condition_group` as in `timed_arms`.
    """
    source = FAILED.join(COMPARISON, COMPARISON.c.comparison_id == FAILED.c.comparison_id)
    sampled = FAILED.c.kind.in_([kind.name for kind in KINDS.values() if kind.sampled])
    rows = select(
        FAILED, COMPARISON.c.curve_id, COMPARISON.c.condition_id, COMPARISON.c.payload
    ).select_from(source)
    rows = rows.where(sampled, *_of_model(FAILED, model, device))
    if only is not None:
        rows = rows.where(in_conditions(FAILED, only))
    if batch is not None:
        rows = rows.where(FAILED.c.batch_size == batch)
    return _with_conditions(read_frame(engine, rows.order_by(FAILED.c.at, FAILED.c.comparison_id)))


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


def _of_model(
    table: FromClause, model: str | None, device: str | None
) -> Iterator[ColumnElement[bool]]:
    yield from unmodified(table)
    if model is not None:
        yield table.c.model == model
    if device is not None:
        yield table.c.device == device


def _with_conditions(found: pd.DataFrame) -> pd.DataFrame:
    """With `condition` and `condition_group`, of which comparisons of one `condition_id` have
    one.
    """
    payloads = found.drop_duplicates("condition_id")[["condition_id", "payload"]]
    known = {
        name: Comparison.model_validate_json(payload).condition
        for name, payload in payloads.itertuples(index=False, name=None)
    }
    conditions = pd.Series(
        [known[name] for name in found["condition_id"]], index=found.index, dtype=object
    )
    return found.assign(
        condition=conditions, condition_group=[on_curve(condition) for condition in conditions]
    )


def _require_timed(
    engine: Engine, model: str | None, device: str | None, metric: str | None
) -> None:
    with reading(engine) as connection:
        timed = connection.execute(
            select(SPEED.c.model, SPEED.c.device, SPEED.c.metric)
            .where(SPEED.c.source != "published")
            .distinct()
        ).all()
    where, known = display_name(engine.url), sorted({row.model for row in timed})
    if not known:
        raise StoreError(
            f"{where} contains no timed comparison; measure some first: breakeven run quickstart"
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


def qualities_of(engine: Engine, timed: pd.DataFrame) -> pd.DataFrame:
    """Quality of the same arms against the same baselines: one row for each `quality_pair_id`,
    metric and data set.

    Rows of the view `effect`, of each data set (with corruption and severity) the newest without a
    flag, else the newest.
    """
    pairs = sorted(set(timed["quality_pair_id"]))
    metrics = sorted(
        {spec.name for kind in set(timed["kind"]) for _, spec in quality_metrics(kind)}
    )
    chosen = (
        EFFECT_VIEW.c.metric.in_(metrics),
        EFFECT_VIEW.c.effect.is_not(None),
        EFFECT_VIEW.c.source != "published",
    )
    found = _of_batches(engine, select(EFFECT_VIEW), EFFECT_VIEW.c.quality_pair_id, pairs, *chosen)
    flagged = [wrong(split_flags(flags)) for flags in found["flags"]]
    ordered = found.assign(flagged=flagged).sort_values(
        ["flagged", "measured_at"], ascending=[False, True]
    )
    return ordered.drop_duplicates(
        ["quality_pair_id", "metric", "data", "corruption", "severity"], keep="last"
    )


def amounts_of(engine: Engine, timed: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `effect` with peak memory and energy of the same comparisons: where, metric,
    values and their ratio.
    """
    amounts = (EFFECT_VIEW.c.compared == "amount", EFFECT_VIEW.c.effect.is_not(None))
    names = (
        *_AT,
        "metric",
        "unit",
        "baseline_value",
        "arm_value",
        "effect",
        "effect_low",
        "effect_high",
        "verdict",
        "flags",
    )
    columns = named(EFFECT_VIEW, names)
    return _of_batches(
        engine,
        select(*columns),
        EFFECT_VIEW.c.comparison_id,
        sorted(set(timed["comparison_id"])),
        *amounts,
    )


def environment_facts(engine: Engine, environments: Collection[str]) -> dict[str, dict[str, Any]]:
    """Device, its name and the versions of each environment, by its id."""
    rows = select(*named(ENVIRONMENT, "environment_id device device_name facts"))
    with reading(engine) as connection:
        found = connection.execute(
            rows.where(ENVIRONMENT.c.environment_id.in_(sorted(environments)))
        ).all()
    return {
        row.environment_id: {
            "device": row.device,
            "device_name": row.device_name,
            "facts": json.loads(row.facts),
        }
        for row in found
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
    payload = payload_of(kind)
    with reading(engine) as connection:
        of = {"comparisons": [comparison_id], "environment": place.environment, "kind": kind}
        pairs = [
            pair
            for pair in connection.execute(PAIRS, of)
            if pair.attempt > since and pair.host == place.host
        ]
        used = payload.used(pairs) if pairs else []
        for spec, figures in (
            payload.compare(used, lambda attempt: payload.load(connection, attempt)) if used else ()
        ):
            if spec.name == metric:
                columns = ("flags", "baseline_flags", "arm_flags")
                listed = {
                    flag
                    for row in used
                    for name in columns
                    for flag in split_flags(getattr(row, name))
                }
                return {
                    **figures,
                    "flags": ",".join(sorted(listed)),
                    "floor": METRICS[spec.name].floor,
                }
    return None


def _of_batches(
    engine: Engine,
    selected: Any,
    column: ColumnElement[Any],
    values: Sequence[str],
    *where: ColumnElement[bool],
) -> pd.DataFrame:
    """Rows of the view `effect` whose `column` has one of the values, which may be more than one
    statement can name.
    """
    rows = selected.where(*where)
    frames = [
        read_frame(engine, rows.where(column.in_(part))) for part in [*batches(values)] or [[]]
    ]
    return pd.concat(frames, ignore_index=True)
