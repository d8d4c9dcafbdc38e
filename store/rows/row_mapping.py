"""Row mapping: how a comparison, an environment and a job look as columns, with the identities of
panels and of qualities, and how such rows are inserted.
"""

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from sqlalchemy import Connection, Dialect, Insert, Table, column, func, insert, select, table
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import ReturningInsert

from store.rows.placement import on_curve
from store.schema.tables import JOB, SWEEP_JOB
from sweeps.model.condition import Condition, Overrides, Rectangle, square_side
from sweeps.model.identity import canonical, digest_of
from sweeps.model.job import Arm, Comparison, Job
from sweeps.model.kinds import OWN_FIELDS
from sweeps.model.outcome import Environment

PANEL_FIELDS = (
    "kind",
    "device",
    "model",
    "weights",
    "batch_size",
    "threads",
    "spare_cores",
    "wait_policy",
    "pinning",
    "seed",
    "data",
    "new_tokens",
    "decoding",
    "exclusive",
    "inputs",
    "baseline",
    "baseline_id",
    "method",
    "dtype",
    "attention",
    "runtime",
    "kv_cache",
    "fixed_values",
    "x_axis",
)
"""Columns of `comparison` that are equal for the comparisons of one panel."""


def panel_id(comparison: Mapping[str, Any]) -> str:
    """The column `panel_id` for the other columns of a comparison."""
    return _panel_digest(tuple([comparison[name] for name in PANEL_FIELDS]))


@lru_cache(maxsize=10_000)
def _panel_digest(values: tuple[Any, ...]) -> str:
    return digest_of(json.dumps(values))


SPEED_ONLY = ("runtime", "kv_cache")
"""Overrides that accuracy and quality do not depend on."""
_FIELDS = ("model", "weights", "image_size", "image_shape", "dtype", "attention", "method")


def quality_ids(columns: Mapping[str, Any], baseline: Arm) -> dict[str, str]:
    """The columns `quality_arm_id` and `quality_pair_id` for the columns of an arm, and what its
    baseline is with what differs from the condition of the arm.
    """
    arm = quality_arm_id(columns)
    return {"quality_arm_id": arm, "quality_pair_id": _pair_id(arm, baseline)}


def quality_arm_id(columns: Mapping[str, Any]) -> str:
    """Equal for arms that give the same outputs: the fields `_FIELDS` of an arm's columns, and its
    parameters.
    """
    return _digest(tuple(columns[name] for name in _FIELDS), columns["params"])


@lru_cache(maxsize=10_000)
def _pair_id(arm: str, baseline: Arm) -> str:
    plain = baseline.overrides.model_copy(update=dict.fromkeys(SPEED_ONLY))
    return digest_of(f"{arm} {baseline.model_copy(update={'overrides': plain}).request_text}")


@lru_cache(maxsize=10_000)
def _digest(fields: tuple[Any, ...], params: str) -> str:
    return digest_of(json.dumps([*fields, without_speed(params)]))


@lru_cache(maxsize=10_000)
def without_speed(params: str) -> str:
    """What was requested of an arm less what quality does not depend on."""
    requested = json.loads(params) if params else {}
    steps = requested if isinstance(requested, list) else [requested]
    kept = [{key: value for key, value in step.items() if key not in SPEED_ONLY} for step in steps]
    return json.dumps([step for step in kept if step], sort_keys=True)


ARM_FIELDS = tuple(Overrides.model_fields)
"""Condition fields that arms may override; the columns of these names are the arm's."""
ARM_CONDITION = tuple(
    name for name in Condition.model_fields if name not in {"threads", *OWN_FIELDS}
)
"""Condition fields that are columns of a row of an arm by their own names."""


@lru_cache(maxsize=100)
def insert_into(table: Table) -> Insert:
    """The statement that inserts whole rows into a table; made once, since its cache key costs as
    much as a small insert.
    """
    return insert(table)


def comparison_row(
    comparison: Comparison, contents: Mapping[str, str], comparison_id: str | None = None
) -> dict[str, Any]:
    """The columns of a comparison, whose identity may be known already.

    The condition columns (dtype, attention, runtime, image_size, kv_cache) are those that the arm
    really runs with; `baseline` names in brackets where the baseline's differ.
    """
    condition, arm, baseline = comparison.condition, comparison.arm, comparison.baseline
    shown = shown_baseline(comparison)
    baseline_and_condition = (
        f'"baseline":{baseline.canonical_text},"condition":{condition.canonical_text}'
    )
    row = {
        "comparison_id": comparison_id or comparison.comparison_id(contents),
        "question_id": comparison.question_id,
        "curve_id": curve_id(comparison),
        "arm_id": arm.arm_id,
        "kind": comparison.kind,
        **_columns(condition),
        **_overrides(arm),
        "method": arm.method,
        "params": _params(arm),
        "baseline": _named(shown),
        "baseline_method": baseline.method,
        "payload": (
            f'{{"arm":{arm.canonical_text},{baseline_and_condition},"kind":"{comparison.kind}"}}'
        ),
        "content_hashes": canonical(contents) if contents else "{}",
        "baseline_id": baseline.arm_id,
        "condition_id": digest_of(condition.canonical_text),
    }
    row["panel_id"] = panel_id(row)
    return row | quality_ids(row, shown)


@lru_cache(maxsize=10_000)
def _params(arm: Arm) -> str:
    return canonical(requested_params(arm))


@lru_cache(maxsize=10_000)
def _overrides(arm: Arm) -> Mapping[str, Any]:
    return condition_columns({field: value for field, value in arm.overrides if value is not None})


@lru_cache(maxsize=10_000)
def _columns(condition: Condition) -> Mapping[str, Any]:
    fields = {name: value for name, value in condition if name not in OWN_FIELDS}
    return condition_columns(fields) | _free_axes(condition)


def condition_columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Condition fields as columns: the size of an image is two."""
    if "image_size" not in fields:
        return dict(fields)
    size = fields["image_size"]
    shape = str(size) if isinstance(size, Rectangle) else None
    return {**fields, "image_size": size and square_side(size), "image_shape": shape}


def _free_axes(condition: Condition) -> dict[str, str | None]:
    """The columns of axes with free names."""
    values = {"axis_values": condition.values, "fixed_values": condition.fixed_values}
    return {
        **{name: canonical(dict(pairs)) if pairs else None for name, pairs in values.items()},
        "x_axis": condition.x_axis[0] if condition.x_axis else None,
    }


@lru_cache(maxsize=1000)
def _named(arm: Arm) -> str:
    return str(arm)


def arm_columns(job: Job, arm: int) -> dict[str, Any]:
    """The columns of an arm of a job and of the condition it ran under, as in table
    `arm_result`.
    """
    requested = job.arms[arm]
    ran = requested.condition(job.condition)
    of_steps = canonical([step.version for step in requested.stack])
    versions = f'"content_hashes":{canonical(job.content_hashes)},"versions":{of_steps}'
    return {
        "arm": arm,
        "arm_id": requested.arm_id,
        "kind": job.kind,
        "condition_id": digest_of(job.condition.canonical_text),
        "arm_condition_id": digest_of(
            f'{{"arm":{requested.request_text},"condition":{ran.canonical_text},{versions}}}'
        ),
        "method": requested.method,
        "params": _params(requested),
        **condition_columns({field: getattr(ran, field) for field in ARM_CONDITION}),
        **_free_axes(ran),
    }


def curve_id(comparison: Comparison) -> str:
    """Identity of the curve that a comparison is a point of: all that was requested but the image
    size or the prompt's length.
    """
    condition = on_curve(comparison.condition)
    baseline_and_condition = (
        f'"baseline":{comparison.baseline.request_text},"condition":{condition}'
    )
    return digest_of(
        f'{{"arm":{comparison.arm.request_text},{baseline_and_condition},"kind":"{comparison.kind}"}}'
    )


def requested_params(arm: Arm) -> dict[str, Any] | list[dict[str, Any]]:
    """What is requested of an arm, as a sweep file writes it: the method's parameters with
    overrides and replicate beside them.

    A stack is a list of such mappings with the method's name in each, and overrides last.
    """
    beside = {key: value for key, value in arm.overrides if value is not None}
    if arm.replicate:
        beside["replicate"] = arm.replicate
    if len(arm.stack) <= 1:
        return {**beside, **(arm.stack[0].params if arm.stack else {})}
    steps: list[dict[str, Any]] = [{"method": step.method, **step.params} for step in arm.stack]
    return [*steps, beside] if beside else steps


def shown_baseline(comparison: Comparison) -> Arm:
    """The baseline, its overrides those in which it differs from the condition that the arm runs
    with: `dense [runtime=eager]`.
    """
    if not _overrides(comparison.arm) and not _overrides(comparison.baseline):
        return comparison.baseline
    ran = comparison.arm.condition(comparison.condition)
    other = comparison.baseline.condition(comparison.condition)
    differing = {
        field: getattr(other, field)
        for field in ARM_FIELDS
        if getattr(other, field) != getattr(ran, field)
    }
    return comparison.baseline.model_copy(update={"overrides": Overrides(**differing)})


def environment_row(environment: Environment) -> dict[str, Any]:
    return {
        "environment_id": environment.environment_id,
        "device": environment.device,
        "device_name": environment.device_name,
        "facts": canonical(environment.facts),
    }


def insert_jobs(
    connection: Connection, jobs: Sequence[tuple[Job, Mapping[str, Any]]], parent: int | None = None
) -> list[int]:
    """Queue jobs as waiting, in order, each with its `placement.PLACEMENT_COLUMNS`, and return
    their rows.

    All within one write transaction, so that rows follow each other.
    """
    if not jobs:
        return []
    now, last = time.time(), connection.execute(select(func.max(JOB.c.id))).scalar_one() or 0
    rows = [
        {
            **placed,
            "job_id": job.job_id,
            "kind": job.kind,
            "device": job.condition.device,
            "exclusive": job.condition.exclusive,
            "state": "waiting",
            "attempts": 0,
            "owner": None,
            "parent": parent,
            "queued_at": now,
            "payload": job.model_dump_json(),
        }
        for job, placed in jobs
    ]
    connection.execute(insert_into(JOB), rows)
    # Not RETURNING, which SQLAlchemy executes row by row on SQLite where the order of the rows
    # matters.
    new = select(JOB.c.id).where(JOB.c.id > last).order_by(JOB.c.id)
    return [row for row in connection.execute(new).scalars() if row is not None]


def link_jobs(connection: Connection, sweep: int, jobs: Iterable[int]) -> None:
    """Let the sweep wait for the jobs in these rows too."""
    insert_new(connection, SWEEP_JOB, [{"sweep": sweep, "job": job} for job in jobs])


def insert_row(connection: Connection, table: Table, columns: Mapping[str, Any]) -> int:
    """Insert a row and return its number, the column `id`."""
    return int(connection.execute(_insert_returning(table), columns).scalar_one())


@lru_cache(maxsize=100)
def _insert_returning(table: Table) -> ReturningInsert[Any]:
    return insert(table).returning(table.c.id)


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows, all with the same columns, that the table does not have yet.

    Without the processing of each value that SQLAlchemy does, which plain numbers and text do not
    need.
    """
    if rows:
        sql, names = _insert_new_sql(table.name, tuple(rows[0]), connection.dialect)
        values = (
            [dict(row) for row in rows]
            if names is None
            else [tuple([row[name] for name in names]) for row in rows]
        )
        connection.exec_driver_sql(sql, values)


@lru_cache(maxsize=100)
def _insert_new_sql(
    name: str, columns: tuple[str, ...], dialect: Dialect
) -> tuple[str, list[str] | None]:
    """The statement, and the order of its parameters where they have no names."""
    # ON CONFLICT has no common construct
    insert_on = import_module(f"sqlalchemy.dialects.{dialect.name}").insert
    compiled = (
        insert_on(table(name, *map(column, columns)))
        .on_conflict_do_nothing()
        .compile(dialect=dialect)
    )
    assert isinstance(compiled, SQLCompiler)
    return str(compiled), compiled.positiontup


def timestamp(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 text in UTC, to the millisecond."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{milliseconds:03d}Z"


def finite(value: float | None) -> float | None:
    """A number as a column: NULL where there is none, or none that is finite."""
    return value if value is not None and math.isfinite(value) else None
