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
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    FromClause,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    and_,
    exists,
    func,
    or_,
    select,
)

_TYPES = {"int": Integer, "float": Float, "str": String, "bool": Boolean, "bytes": LargeBinary}
_METADATA = MetaData()
_MODULES = ("planned", "measured", "derived", "references")
_MODELS = {
    node.name: node
    for module in _MODULES
    for node in ast.parse(Path(__file__).with_name(f"{module}.py").read_bytes()).body
    if isinstance(node, ast.ClassDef)
}


def _columns(model: str) -> list[Column[Any]]:
    """The columns of a model: those of its bases first, the last base before the others, as
    pydantic orders them.
    """
    bases = [base.id for base in reversed(_MODELS[model].bases) if isinstance(base, ast.Name)]
    found = [column for base in bases if base in _MODELS for column in _columns(base)]
    for node in _MODELS[model].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kind = ast.unparse(node.annotation).removesuffix(" | None")
            options = node.value.keywords if isinstance(node.value, ast.Call) else []
            keys = [
                ForeignKey(ast.literal_eval(each.value))
                for each in options
                if each.arg == "foreign_key"
            ]
            if kind in _TYPES:
                found.append(Column(node.target.id, _TYPES[kind], *keys))
    return found


def _table(model: str) -> Table:
    """The table that a model declares."""
    name = next(
        node.value.value
        for node in _MODELS[model].body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    )
    return Table(str(name), _METADATA, *_columns(model))


def model_metadata() -> MetaData:
    """The tables with keys and checks, of the models, which are imported for it."""
    for module in _MODULES:
        import_module(f"store.schema.{module}")
    from sqlmodel import SQLModel

    return SQLModel.metadata


STATES = ("waiting", "running", "done", "failed", "cancelled", "split")
"""Of a job in the queue. `failed`: it ended without an answer; `split`: its children answer its
questions."""
SUBMISSION_STATES = (
    *("queued", "running", "paused"),
    *("answered", "unanswered", "refused", "cancelled"),
)
"""Of a submitted sweep. `unanswered`: it ended with something left; `refused`: it was wrong."""
STAGES = ("effects", "curves")
"""Of what is pending, in the order in which it is derived."""
COSTS = ("alpha_baseline", "beta_baseline", "alpha", "beta")
"""Columns of launch and work, in the order of `sweeps.stats.cost_model.LaunchWork`."""
ARM_COLUMNS, REPORTED = (
    tuple(column.name for column in _columns(model)) for model in ("ArmColumns", "ReportedColumns")
)

CONDITION = tuple(
    name for name in ARM_COLUMNS if name not in {"arm_id", "kind", "device", "condition_id"}
)
"""Columns of an arm and its condition that views have."""

SWEEP, SWEEP_COMPARISON, SWEEP_JOB = map(_table, ("SweepRow", "SweepComparisonRow", "SweepJobRow"))
SUBMISSION = _table("SubmissionRow")
JOB, COMPARISON, ENVIRONMENT = map(_table, ("JobRow", "ComparisonRow", "EnvironmentRow"))
ATTEMPT, PAIR, FAILURE = map(_table, ("AttemptRow", "ComparisonAttemptRow", "FailureRow"))
ARM_RESULT, METRIC, CALIBRATION = map(_table, ("ArmResultRow", "MetricRow", "CalibrationRow"))
SAMPLE, SAMPLE_SERIES = map(_table, ("SampleRow", "SampleSeriesRow"))
PREDICTIONS, TEXT_SCORES = map(_table, ("ImagePredictionsRow", "TextScoresRow"))
EFFECT, BREAK_EVEN, COST_MODEL = map(_table, ("EffectRow", "BreakEvenRow", "CostModelRow"))
PANEL_PROGRESS, PANEL, ARM_LABEL = map(_table, ("PanelProgressRow", "PanelRow", "ArmLabelRow"))
PENDING = _table("PendingDerivationRow")
PROFILE, PROFILE_TIME = map(_table, ("ProfileRow", "ProfileTimeRow"))
KERNEL, PEAK, REFERENCE = map(_table, ("KernelRow", "PeakRow", "ReferenceRow"))


SAME_PANEL = and_(
    PANEL_PROGRESS.c.sweep == PANEL.c.sweep, PANEL_PROGRESS.c.panel_id == PANEL.c.panel_id
)


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


def same_arm(one: FromClause, other: FromClause, side: str = "arm") -> ColumnElement[bool]:
    """Whether a row of `one`, by attempt and arm, is what a row of `other` names in the column
    `side`.
    """
    return and_(one.c.attempt == other.c.attempt, one.c.arm == other.c[side])


IS_SPEEDUP = and_(EFFECT.c.compared == "ratio", EFFECT.c.effect.is_not(None))
"""Whether a row of `effect_row` holds a measured ratio of times."""


def newest_answer(effect: FromClause) -> ColumnElement[bool]:
    """Whether no newer answer to the question of a row of `effect_row` exists in its environment on
    its host.

    A raised method VERSION or protocol makes the answer of the older comparison_id stale.
    """
    newer = EFFECT.alias("newer")
    later = or_(
        newer.c.measured_at > effect.c.measured_at,
        and_(
            newer.c.measured_at == effect.c.measured_at,
            newer.c.comparison_id > effect.c.comparison_id,
        ),
    )
    same = (newer.c[name] == effect.c[name] for name in ("question_id", "environment", "host"))
    return ~exists(select(newer.c.metric).where(*same, later).correlate_except(newer))


def gmacs_total(table: FromClause) -> ColumnElement[float]:
    """GMACs of an arm, those that its method adds included."""
    return table.c.gmacs + func.coalesce(table.c.gmacs_overhead, 0.0)


def gmacs_saved(effect: FromClause) -> ColumnElement[float]:
    """Share of the baseline's GMACs that the arm saves."""
    return 1 - gmacs_total(effect) / func.nullif(effect.c.gmacs_baseline, 0.0, type_=Float())
