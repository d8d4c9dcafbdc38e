"""The tables as statements use them, read from the source of the models.

Importing SQLModel's classes takes a quarter of a second. They declare the tables, and are imported
where tables are created; all statements use these, which have the same names, columns and types.
"""

import ast
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    FromClause,
    Integer,
    LargeBinary,
    MetaData,
    String,
    TableClause,
    column,
    exists,
    select,
    table,
)

_TYPES = {"int": Integer, "float": Float, "str": String, "bool": Boolean, "bytes": LargeBinary}
_MODULES = ("planned", "measured", "derived", "references")
_MODELS = {
    node.name: node
    for module in _MODULES
    for node in ast.parse(Path(__file__).with_name(f"{module}.py").read_bytes()).body
    if isinstance(node, ast.ClassDef)
}


def _fields(model: str) -> dict[str, str]:
    """The type of each field of a model by its name: those of its bases first, the last base
    before the others, as pydantic orders them.
    """
    found: dict[str, str] = {}
    for base in reversed(_MODELS[model].bases):
        if isinstance(base, ast.Name) and base.id in _MODELS:
            found |= _fields(base.id)
    for node in _MODELS[model].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = ast.unparse(node.annotation).removesuffix(" | None")
    return found


def _table(model: str) -> TableClause:
    """The table that a model declares."""
    fields = _fields(model)
    fields.pop("__table_args__", None)
    name = next(
        node.value.value
        for node in _MODELS[model].body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    )
    return table(str(name), *(column(key, _TYPES[kind]) for key, kind in fields.items()))


def model_metadata() -> MetaData:
    """The tables with keys and checks, of the models, which are imported for it."""
    for module in _MODULES:
        import_module(f"store.schema.{module}")
    from sqlmodel import SQLModel

    return SQLModel.metadata


STATES = ("waiting", "running", "done", "failed", "cancelled", "split")
"""Of a job in the queue. `failed`: it ended without an answer; `split`: its children answer its
questions."""
COSTS = ("alpha_baseline", "beta_baseline", "alpha", "beta")
"""Columns of launch and work, in the order of `sweeps.stats.cost_model.LaunchWork`."""
ARM_COLUMNS, REPORTED = tuple(_fields("ArmColumns")), tuple(_fields("ReportedColumns"))

SWEEP, SWEEP_COMPARISON, SWEEP_JOB = map(_table, ("SweepRow", "SweepComparisonRow", "SweepJobRow"))
JOB, COMPARISON, ENVIRONMENT = map(_table, ("JobRow", "ComparisonRow", "EnvironmentRow"))
ATTEMPT, PAIR, FAILURE = map(_table, ("AttemptRow", "ComparisonAttemptRow", "FailureRow"))
ARM_RESULT, METRIC, CALIBRATION = map(_table, ("ArmResultRow", "MetricRow", "CalibrationRow"))
SAMPLE, SAMPLE_SERIES = map(_table, ("SampleRow", "SampleSeriesRow"))
PREDICTIONS, TEXT_SCORES = map(_table, ("ImagePredictionsRow", "TextScoresRow"))
EFFECT, BREAK_EVEN, COST_MODEL = map(_table, ("EffectRow", "BreakEvenRow", "CostModelRow"))
PANEL_PROGRESS, PANEL, ARM_LABEL = map(_table, ("PanelProgressRow", "PanelRow", "ArmLabelRow"))
PROFILE, PROFILE_TIME = map(_table, ("ProfileRow", "ProfileTimeRow"))
KERNEL, PEAK, REFERENCE = map(_table, ("KernelRow", "PeakRow", "ReferenceRow"))


def named(table: FromClause, names: str | Iterable[str]) -> list[ColumnElement[Any]]:
    """The columns of these names, which may stand in one text."""
    return [table.c[name] for name in (names.split() if isinstance(names, str) else names)]


def newest_revision(sweep: FromClause) -> ColumnElement[bool]:
    """Whether a row of `sweep` is the newest revision of its name."""
    newer = SWEEP.alias("newer")
    later = select(newer.c.id).where(
        sweep.c.name == newer.c.name, sweep.c.revision < newer.c.revision
    )
    return ~exists(later.correlate_except(newer))
