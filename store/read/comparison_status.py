"""Status of the comparisons of a sweep: measured, failed, queued, or not measured."""

import pandas as pd
from sqlalchemy import Engine, bindparam, case, exists, func, select

from store.rows.transactions import reading
from store.schema.tables import (
    COMPARISON,
    EFFECT,
    FAILURE,
    JOB,
    PANEL_PROGRESS,
    SWEEP,
    SWEEP_COMPARISON,
    SWEEP_JOB,
    newest_revision,
)
from sweeps.model.condition import Kind
from sweeps.model.job import Job

_FIRST = COMPARISON.alias("first_of_panel")
_KEYS = [
    COMPARISON.c[name]
    for name in (
        "comparison_id",
        "model",
        "weights",
        "method",
        "params",
        "baseline",
        "dtype",
        "attention",
    )
]
_KEYS += [COMPARISON.c.quality_arm_id, COMPARISON.c.quality_pair_id]
_NEWEST = (SWEEP.c.name == bindparam("name"), newest_revision(SWEEP))
# the panels of this kind first: most comparisons of a large sweep are of other kinds
_PANELS = (
    select(PANEL_PROGRESS.c.panel_id)
    .select_from(
        PANEL_PROGRESS.join(SWEEP, SWEEP.c.id == PANEL_PROGRESS.c.sweep).join(
            _FIRST, _FIRST.c.comparison_id == PANEL_PROGRESS.c.comparison_id
        )
    )
    .where(*_NEWEST, _FIRST.c.kind == bindparam("kind"))
)
_REQUESTED = (
    select(SWEEP_COMPARISON.c.sweep)
    .join(SWEEP, SWEEP.c.id == SWEEP_COMPARISON.c.sweep)
    .where(*_NEWEST, SWEEP_COMPARISON.c.comparison_id == COMPARISON.c.comparison_id)
)
_ANSWERS = (
    select(
        *_KEYS,
        func.max(case((EFFECT.c.effect.is_not(None), 1), else_=0)).label("measured"),
        func.max(FAILURE.c.reason).label("reason"),
    )
    .select_from(
        COMPARISON.outerjoin(
            EFFECT, EFFECT.c.comparison_id == COMPARISON.c.comparison_id
        ).outerjoin(FAILURE, FAILURE.c.id == EFFECT.c.failure)
    )
    .where(COMPARISON.c.panel_id.in_(_PANELS), exists(_REQUESTED.correlate(COMPARISON)))
    .group_by(*_KEYS)
)
_QUEUED = (
    select(JOB.c.id, JOB.c.payload)
    .select_from(
        JOB.join(SWEEP_JOB, SWEEP_JOB.c.job == JOB.c.id).join(
            SWEEP, SWEEP.c.id == SWEEP_JOB.c.sweep
        )
    )
    .where(
        SWEEP.c.name == bindparam("name"),
        JOB.c.kind == bindparam("kind"),
        JOB.c.state.in_(("waiting", "running")),
    )
    .distinct()
)


def states(engine: Engine, name: str, kind: Kind) -> pd.DataFrame:
    """The comparisons of one kind in the newest revision of a sweep, in whatever environment they
    were answered.

    Each has what identifies its arm and baseline, `state` (`measured`, `failed`, `queued` or `not
    measured`) and the `reason` of a failure.
    """
    of = {"name": name, "kind": kind}
    with reading(engine) as connection:
        answers = connection.execute(_ANSWERS, of)
        found = pd.DataFrame.from_records(
            [tuple(row) for row in answers], columns=list(answers.keys())
        )
        payloads = [row.payload for row in connection.execute(_QUEUED, of)]
    queued = {
        comparison_id
        for payload in payloads
        for comparison_id in Job.model_validate_json(payload).comparison_ids()
    }
    waiting = found["comparison_id"].isin(queued)
    state = found["measured"].map({1: "measured"}).astype(object)
    state = state.mask(state.isna() & waiting, "queued").mask(
        state.isna() & ~waiting & found["reason"].notna(), "failed"
    )
    return found.assign(state=state.fillna("not measured")).drop(columns="measured")
