"""Queries for the report, the app and the command line: sweeps and their panels, and the rows of
the public views that belong to them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Engine,
    FromClause,
    Select,
    and_,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects import sqlite

from store.errors import StoreError
from store.rows.frames import read_frame
from store.rows.location import database_option, display_name
from store.rows.profiles import best_peaks
from store.rows.row_mapping import timestamp
from store.rows.transactions import fetch, reading
from store.schema.tables import (
    ATTEMPT,
    CALIBRATION,
    COMPARISON,
    ENVIRONMENT,
    JOB,
    PAIR,
    PANEL,
    PANEL_PROGRESS,
    PREDICTIONS,
    SAME_PANEL,
    STATES,
    SWEEP,
    SWEEP_JOB,
    named,
    newest_revision,
    same_arm,
)
from sweeps.analysis.labels import PeaksOfHosts
from sweeps.model.kinds import THREAD_FIELDS

if TYPE_CHECKING:
    import pandas as pd

SWEEP_VIEWS: Mapping[str, tuple[str, ...]] = {
    "effect": ("method", "params", "metric"),
    "speedup": ("method", "params", "tokens"),
    "accuracy": ("method", "params", "image_size"),
    "quality": ("method", "params"),
    "failures": ("method", "params", "image_size"),
    "generation": ("prompt_tokens", "method", "params"),
    "arm": ("method", "params", "image_size"),
    "break_even": ("method", "params", "x"),
    "cost_model": ("method", "params", "metric"),
    "profile": ("attempt", "arm", "phase", "time_class"),
    "kernel": ("attempt", "arm", "phase", "rank"),
}
"""Views whose rows belong to sweeps, and the columns by which their rows are ordered."""


COUNTED = ("comparisons", "measured", "unclear", "insufficient", "failures")
"""Counts of the comparisons of a sweep: see `store.schema.derived.PanelProgressRow`."""


def sweep_summaries(engine: Engine) -> list[dict[str, Any]]:
    """The newest revision of each sweep, newest first, with counts of its comparisons and of its
    jobs by state.

    `best` is the largest clear speed-up, `None` where there is none.
    """
    numbers = {
        name: select(func.coalesce(func.sum(PANEL_PROGRESS.c[name]), 0)).where(
            PANEL_PROGRESS.c.sweep == SWEEP.c.id
        )
        for name in COUNTED
    }
    numbers["best"] = select(func.max(PANEL.c.best)).where(PANEL.c.sweep == SWEEP.c.id)
    revisions = (
        select(
            *(SWEEP.c.id, SWEEP.c.name, SWEEP.c.revision, SWEEP.c.question, SWEEP.c.submitted_at),
            *(
                number.correlate(SWEEP).scalar_subquery().label(name)
                for name, number in numbers.items()
            ),
        )
        .where(newest_revision(SWEEP))
        .order_by(SWEEP.c.submitted_at.desc(), SWEEP.c.id.desc())
    )
    jobs = (
        select(SWEEP_JOB.c.sweep, JOB.c.state, func.count().label("jobs"))
        .join(JOB)
        .group_by(SWEEP_JOB.c.sweep, JOB.c.state)
    )
    with reading(engine) as connection:
        found = [dict(row._mapping) for row in connection.execute(revisions)]
        states: dict[int, dict[str, int]] = defaultdict(dict)
        for row in connection.execute(jobs):
            states[row.sweep][row.state] = row.jobs
    for sweep in found:
        sweep["submitted_at"] = timestamp(sweep["submitted_at"])
        sweep.update(dict.fromkeys(STATES, 0) | states[sweep["id"]])
    return found


def find_sweep(engine: Engine, name: str) -> dict[str, Any]:
    """The newest revision of the sweep called `name`. Raises `StoreError` that names the nearest
    ones if there is none.
    """
    with reading(engine) as connection:
        found = connection.execute(
            select(SWEEP).where(SWEEP.c.name == name).order_by(SWEEP.c.revision.desc()).limit(1)
        ).one_or_none()
        if found is not None:
            return dict(found._mapping)
        names = list(
            connection.execute(select(SWEEP.c.name).distinct().order_by(SWEEP.c.name)).scalars()
        )
    near = get_close_matches(name, names, n=3) or names[:5]
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "there is none yet; run one first: breakeven run quickstart"
        + database_option(display_name(engine.url))
    )
    raise StoreError(f"{display_name(engine.url)} contains no sweep called {name}; {hint}")


def stored_sweeps(engine: Engine) -> dict[str, str]:
    """The file of each sweep by its name, newest revisions."""
    rows = fetch(engine, select(SWEEP.c.name, SWEEP.c.text).order_by(SWEEP.c.revision))
    return {row.name: row.text for row in rows}


def view_rows(engine: Engine, view: str) -> "pd.DataFrame":
    """All rows of a public view."""
    return read_frame(engine, select(_view(view)))


def sweep_rows(engine: Engine, name: str, view: str) -> "pd.DataFrame":
    """The rows of one of `SWEEP_VIEWS` that belong to the newest revision of a sweep.

    Rows of `break_even` are ordered by axis first: tokens, GMACs, share of GMACs saved. Those of
    `accuracy` have one column more: `classes`, the number of outputs that accuracy is about.
    """
    return read_frame(engine, sweep_statement(name, view))


def counter_rows(engine: Engine, name: str) -> "pd.DataFrame":
    """The rows of the view `kernel` of a sweep that a profiler with hardware counters recorded
    (ncu).
    """
    statement = sweep_statement(name, "kernel")
    tool = next(column for column in statement.selected_columns if column.key == "tool")
    return read_frame(engine, statement.where(tool == "ncu"))


def sweep_statement(name: str, view: str, panels: Select[Any] | None = None) -> Select[Any]:
    """The statement of `sweep_rows`, which may be narrowed; `panels` selects the `panel_id` of
    those whose rows are wanted.
    """
    table, linked = _view(view), _linked(name)
    if panels is not None:
        of_panels = select(COMPARISON.c.comparison_id).where(COMPARISON.c.panel_id.in_(panels))
        linked = linked.where(linked.selected_columns.comparison_id.in_(of_panels))
    order: list[ColumnElement[Any]] = named(table, SWEEP_VIEWS[view])
    rows = select(table)
    if "sweep" in table.c:
        # of a few panels: SQLite is to begin with their comparisons, not with all curves of the
        # sweep
        rows = rows.where(
            (table.c.sweep if panels is None else func.coalesce(table.c.sweep, "")) == name
        )
    if panels is not None and "panel_id" in table.c:
        rows = rows.where(table.c.panel_id.in_(panels))
    if view == "break_even":
        order.insert(0, case({"tokens": 0, "gmacs": 1}, value=table.c.axis, else_=2))
    elif view in {"generation", "arm", "profile", "kernel"}:
        own = [
            table.c.attempt.in_(select(PAIR.c.attempt).where(PAIR.c.comparison_id.in_(linked))),
            *(column.in_(linked) for column in table.c if column.name == "comparison_id"),
        ]
        rows = rows.where(or_(*own))
    elif "sweep" not in table.c:
        rows = rows.where(table.c.comparison_id.in_(linked))
    if view == "accuracy":
        classes = select(func.max(PREDICTIONS.c.classes)).join_from(
            PREDICTIONS, PAIR, PREDICTIONS.c.attempt == PAIR.c.attempt
        )
        rows = rows.add_columns(
            classes.where(PAIR.c.comparison_id == table.c.comparison_id)
            .scalar_subquery()
            .label("classes")
        )
    return rows.order_by(*order)


def peaks_of_hosts(engine: Engine, places: Iterable[tuple[str, str]]) -> PeaksOfHosts:
    """The best measured peaks of environments and hosts."""
    return {
        place: {key: peaks for key, (peaks, _) in best_peaks(engine, *place).items()}
        for place in dict.fromkeys(places)
    }


def zeroshot_rows(engine: Engine, name: str) -> "pd.DataFrame":
    """Zero-shot tasks of a sweep: each arm's results of the newest attempt, beside those of its
    first baseline.

    `task_drop` with its interval is the share of documents that the arm loses against that
    baseline.
    """
    quality, pair, attempt = _view("quality"), PAIR, ATTEMPT
    result, baseline, drop, newer = (
        _view("metric").alias(alias) for alias in ("result", "baseline", "task_drop", "newer")
    )
    other, other_attempt = pair.alias("other"), attempt.alias("other_attempt")
    other_baseline = select(other.c.attempt).where(
        same_arm(other, pair), other.c.baseline < pair.c.baseline
    )
    newer_result = (
        select(other.c.attempt)
        .join(other_attempt, other_attempt.c.id == other.c.attempt)
        .join(newer, same_arm(newer, other))
        .where(
            other.c.comparison_id == pair.c.comparison_id,
            other_attempt.c.environment == attempt.c.environment,
            other_attempt.c.id > attempt.c.id,
            newer.c.metric == result.c.metric,
        )
    )
    task = and_(
        result.c.metric.startswith("zeroshot"), ~result.c.metric.endswith("_drop", autoescape=True)
    )
    arm = named(quality, "environment device_name model weights baseline method params")
    figures = {
        "value_baseline": baseline.c.value,
        "task_drop": drop.c.value,
        "task_drop_low": drop.c.low,
        "task_drop_high": drop.c.high,
    }
    rows = (
        select(
            *arm,
            result.c.metric,
            result.c.value,
            result.c.n,
            *(column.label(label) for label, column in figures.items()),
        )
        .join(pair, pair.c.comparison_id == quality.c.comparison_id)
        .join(
            attempt,
            and_(attempt.c.id == pair.c.attempt, attempt.c.environment == quality.c.environment),
        )
        .join(result, and_(same_arm(result, pair), task))
        .join(
            baseline,
            and_(
                same_arm(baseline, pair, "baseline"),
                baseline.c.metric == result.c.metric,
            ),
        )
        .outerjoin(
            drop,
            and_(
                same_arm(drop, pair),
                drop.c.metric == result.c.metric + "_drop",
            ),
        )
        .where(
            quality.c.comparison_id.in_(_linked(name)),
            ~other_baseline.exists(),
            ~newer_result.exists(),
        )
        .order_by(quality.c.model, quality.c.method, quality.c.params, result.c.metric)
    )
    return read_frame(engine, rows)


def execution_rows(engine: Engine, name: str) -> "pd.DataFrame":
    """The attempts that measured comparisons of the newest revision of a sweep, oldest first: rows
    of the view `execution`.

    `system_metrics` are mappings; `comparison_ids` lists what each attempt measured.
    """
    execution = _view("execution")
    pairs = select(PAIR.c.attempt, PAIR.c.comparison_id).where(
        PAIR.c.comparison_id.in_(_linked(name)), PAIR.c.failure.is_(None)
    )
    measured: dict[int, list[str]] = defaultdict(list)
    for row in fetch(engine, pairs.order_by(PAIR.c.attempt, PAIR.c.comparison_id)):
        measured[row.attempt].append(row.comparison_id)
    attempts = pairs.with_only_columns(PAIR.c.attempt)
    rows = (
        select(execution)
        .where(execution.c.attempt.in_(attempts))
        .order_by(execution.c.ended_at, execution.c.attempt)
    )
    frame = read_frame(engine, rows)
    return frame.assign(
        system_metrics=[json.loads(text) for text in frame["system_metrics"]],
        comparison_ids=frame["attempt"].map(measured),
    )


def calibration_rows(engine: Engine) -> "pd.DataFrame":
    """All calibrations, oldest first, with the columns of the table."""
    return read_frame(
        engine, select(CALIBRATION).order_by(CALIBRATION.c.created_at, CALIBRATION.c.calibration_id)
    )


PANEL_COLUMNS = (
    *(
        "model",
        "weights",
        "batch_size",
        "device_name",
        "environment",
        "host",
        *THREAD_FIELDS,
        "seed",
    ),
    *("data", "new_tokens", "decoding", "exclusive", "inputs", "baseline_id"),
)
"""Columns of the views that stay fixed within one panel: points are drawn together where all are
equal."""
ARM_COLUMNS = ("method", "dtype", "attention", "runtime", "kv_cache")
"""Columns of the views that distinguish arms of one panel."""


RAN = ("threads",)
"""Columns of the views that a comparison has another value of: what was requested."""


def sweep_list(engine: Engine) -> list[dict[str, Any]]:
    """`name`, `question`, `submitted_at` and `measured` of the newest revision of each sweep,
    newest first.

    `measured`: whether any of its comparisons has a figure. Nothing is counted.
    """
    answered = exists(
        select(PANEL_PROGRESS.c.sweep)
        .where(PANEL_PROGRESS.c.sweep == SWEEP.c.id, PANEL_PROGRESS.c.measured > 0)
        .correlate(SWEEP)
    )
    statement = (
        select(SWEEP.c.name, SWEEP.c.question, SWEEP.c.submitted_at, answered.label("measured"))
        .where(newest_revision(SWEEP))
        .order_by(SWEEP.c.submitted_at.desc(), SWEEP.c.id.desc())
    )
    return [
        {
            **row._mapping,
            "submitted_at": timestamp(row.submitted_at),
            "measured": bool(row.measured),
        }
        for row in fetch(engine, statement)
    ]


def panel_counts(engine: Engine, sweeps: Sequence[str]) -> "pd.DataFrame":
    """How many `points` of the view `speedup` each panel and kind of arm of some sweeps has, by
    metric, and the last `measured_at`.

    A row for each combination found of `sweep`, `metric`, `PANEL_COLUMNS`, `baseline` and
    `ARM_COLUMNS`.
    """
    of_panel = dict.fromkeys(("environment", "host", "threads", "metric"), PANEL)
    own = {**of_panel, "device_name": ENVIRONMENT}
    names = ("metric", *PANEL_COLUMNS, "baseline", *ARM_COLUMNS)
    columns: list[ColumnElement[Any]] = [own.get(name, COMPARISON).c[name] for name in names]
    columns.append(SWEEP.c.name.label("sweep"))
    statement = (
        select(
            *columns,
            func.sum(PANEL.c.points).label("points"),
            func.max(PANEL.c.measured_at).label("measured_at"),
        )
        .select_from(
            SWEEP.join(PANEL).join(PANEL_PROGRESS, SAME_PANEL).join(COMPARISON).join(ENVIRONMENT)
        )
        .where(SWEEP.c.name.in_(sweeps), newest_revision(SWEEP))
        .group_by(*columns)
    )
    return read_frame(engine, statement).astype(object)


def panel_rows(
    engine: Engine,
    sweep: str,
    view: str,
    fixed: Mapping[str, Any],
    chosen: Mapping[str, Sequence[str]],
) -> "pd.DataFrame":
    """The rows of one of `SWEEP_VIEWS` that belong to `sweep` and have these values.

    `fixed` maps columns to their one value (`None`: no value), `chosen` to those that are allowed
    (none: all). Columns that the view lacks do not narrow it.
    """
    return read_frame(engine, _panel_statement(sweep, view, fixed, chosen))


def rows_of_panels(
    engine: Engine, panels: Iterable[tuple[str, Mapping[str, Any]]], view: str
) -> "pd.DataFrame":
    """The rows of `panel_rows` of a panel of each of several sweeps, which `of_sweep` names."""
    parts = [
        _panel_statement(sweep, view, fixed, {})
        .order_by(None)
        .add_columns(literal(sweep).label("of_sweep"))
        for sweep, fixed in panels
    ]
    return read_frame(engine, union_all(*parts))


def panel_sql(
    sweep: str, view: str, fixed: Mapping[str, Any], chosen: Mapping[str, Sequence[str]]
) -> str:
    """The query of `panel_rows` as SQL that `breakeven query` runs."""
    statement = _panel_statement(sweep, view, fixed, chosen)
    return str(statement.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))


def _panel_statement(
    sweep: str, view: str, fixed: Mapping[str, Any], chosen: Mapping[str, Sequence[str]]
) -> Select[Any]:
    table = _view(view)

    def equal(source: FromClause) -> list[ColumnElement[bool]]:
        # rows of attempts belong to the panel that was run in them, whatever their view shows of it
        shown = (
            fixed
            if source is COMPARISON and "attempt" in table.c
            else [name for name in fixed if name in table.c]
        )
        names = [
            name for name in shown if name in source.c and (source is table or name not in RAN)
        ]
        return [
            source.c[name].is_(None) if fixed[name] is None else source.c[name] == fixed[name]
            for name in names
        ]

    def allowed(source: FromClause) -> list[ColumnElement[bool]]:
        return [
            source.c[name].in_(values)
            for name, values in chosen.items()
            if values and name in source.c
        ]

    panels = (
        select(PANEL_PROGRESS.c.panel_id)
        .select_from(PANEL_PROGRESS.join(SWEEP).join(COMPARISON))
        .where(
            SWEEP.c.name == sweep, newest_revision(SWEEP), *equal(COMPARISON), *allowed(COMPARISON)
        )
    )
    given = [*equal(table), *allowed(table)]
    return sweep_statement(sweep, view, panels).where(*given)


def _linked(sweep: str) -> Select[Any]:
    """Selects the comparisons of the newest revision of a sweep."""
    links = _view("sweep_comparison")
    return select(links.c.comparison_id).where(links.c.sweep == sweep)


def _view(name: str) -> Any:
    from store.views.public import TABLES  # takes as long to import as a small plan

    return TABLES[name]
