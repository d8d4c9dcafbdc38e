"""The change in quality that belongs to a speed-up, where its comparison stands, and that of a
tuned arm against its control.

A control is the same tuning without what the method adds.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Engine, bindparam, case, exists, func, select

from store.derive.payloads import payload_of
from store.rows.frames import read_frame
from store.rows.row_mapping import arm_columns, quality_arm_id, requested_params
from store.rows.transactions import fetch, reading
from store.schema.tables import (
    ATTEMPT,
    COMPARISON,
    EFFECT,
    FAILURE,
    JOB,
    PAIR,
    PANEL_PROGRESS,
    SWEEP,
    SWEEP_COMPARISON,
    SWEEP_JOB,
    TEXT_SCORES,
    named,
    newest_revision,
)
from store.views.public import TABLES
from sweeps.analysis.labels import (
    Conclusion,
    conclude_change,
    effect_of,
    unanswered,
)
from sweeps.analysis.rows import ComparisonState, JoinedQuality
from sweeps.model.condition import Kind
from sweeps.model.identity import canonical
from sweeps.model.job import Arm, Job
from sweeps.model.kinds import KINDS, KindSpec, kinds_of
from sweeps.model.metrics import MetricSpec, compared
from sweeps.stats.quality import compare_texts, scored

_FIRST = COMPARISON.alias("first_of_panel")
_KEYS = named(COMPARISON, "comparison_id model weights method params baseline dtype attention")
_KEYS += [COMPARISON.c.quality_arm_id, COMPARISON.c.quality_pair_id]
_NEWEST = (SWEEP.c.name == bindparam("name"), newest_revision(SWEEP))
# the panels of this kind first: most comparisons of a large sweep are of other kinds
_PANELS = (
    select(PANEL_PROGRESS.c.panel_id)
    .select_from(PANEL_PROGRESS.join(SWEEP).join(_FIRST))
    .where(*_NEWEST, _FIRST.c.kind == bindparam("kind"))
)
_REQUESTED = (
    select(SWEEP_COMPARISON.c.sweep)
    .join(SWEEP)
    .where(*_NEWEST, SWEEP_COMPARISON.c.comparison_id == COMPARISON.c.comparison_id)
)
_ANSWERS = (
    select(
        *_KEYS,
        func.max(case((EFFECT.c.effect.is_not(None), 1), else_=0)).label("measured"),
        func.max(FAILURE.c.reason).label("reason"),
    )
    .select_from(COMPARISON.outerjoin(EFFECT).outerjoin(FAILURE))
    .where(COMPARISON.c.panel_id.in_(_PANELS), exists(_REQUESTED.correlate(COMPARISON)))
    .group_by(*_KEYS)
)
_QUEUED = (
    select(JOB.c.id, JOB.c.payload)
    .select_from(JOB.join(SWEEP_JOB).join(SWEEP))
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
    found = read_frame(engine, _ANSWERS.params(**of))
    queued = {
        comparison_id
        for row in fetch(engine, _QUEUED.params(**of))
        for comparison_id in Job.model_validate_json(row.payload).comparison_ids()
    }
    waiting = found["comparison_id"].isin(queued)
    state = found["measured"].map({1: "measured"}).astype(object)
    state = state.mask(state.isna() & waiting, "queued").mask(
        state.isna() & ~waiting & found["reason"].notna(), "failed"
    )
    return found.assign(state=state.fillna("not measured")).drop(columns="measured")


_VALUES = ("baseline_value", "arm_value", "arm_low", "arm_high")
CHANGE = ("change", "change_low", "change_high")
ARM = ("model", "weights", "dtype", "attention", "method", "params")

ControlOf = Callable[[Arm, Sequence[Arm]], tuple[Arm, int | None] | None]
"""For an arm and all arms of its job the control of its tuning, and its place among them (`None`:
not among them).

`None` for an arm that needs no control.
"""


def quality_metrics(kind: str) -> list[tuple[KindSpec, MetricSpec]]:
    """The metrics that are compared by difference, with their kinds, for models of the modality of
    a kind.
    """
    kinds = kinds_of(KINDS[kind].modality)
    return [(other, spec) for other in kinds for spec in compared(other.metrics, "difference")]


def quality_rows(effects: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of the view `effect` by one metric, with all metrics of the same answers as columns.

    These are the metric's name for the arm, and the name with `_baseline`, `_low` and `_high`;
    verdict and floor of the metric are `quality_verdict` and `quality_floor`.
    """
    same = ["comparison_id", "environment", "host"]
    ends = dict(zip(_VALUES, ("_baseline", "", "_low", "_high"), strict=True))
    wide = effects.pivot(index=same, columns="metric", values=list(_VALUES))
    wide.columns = wide.columns.map(lambda pair: f"{pair[1]}{ends[pair[0]]}")
    rows = effects[(effects["metric"] == metric) & effects["effect"].notna()]
    return rows.rename(columns={"verdict": "quality_verdict", "floor": "quality_floor"}).join(
        wide, on=same
    )


def conclude_quality(row: JoinedQuality, spec: MetricSpec) -> Conclusion:
    """The change in quality, or why there is none."""
    if row.effect is None:
        state: ComparisonState = "not measured" if row.state == "measured" else row.state
        reason = row.reason if state == "failed" else None
        return unanswered(effect_of(spec), state, reason or "")
    bounds = (row.effect, row.effect_low, row.effect_high)
    return conclude_change(spec, *bounds, verdict=row.quality_verdict, floor=row.quality_floor)


def join_quality(speeds: pd.DataFrame, qualities: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup`, each with the newest of `quality_rows` for the same arm and
    baseline, if there is one.

    An evaluation of images as they are comes before those of corrupted ones, however new these are.
    Columns that both have are those of `speedup`; the others are empty where the arm has no
    quality.
    """
    clean = qualities.assign(
        clean=qualities["corruption"].isna() if "corruption" in qualities else True
    )
    newest = clean.sort_values(["clean", "measured_at"], kind="stable").drop_duplicates(
        "quality_pair_id", keep="last"
    )
    more = [name for name in newest.columns if name not in speeds.columns and name != "clean"]
    return speeds.merge(newest[["quality_pair_id", *more]], how="left", on="quality_pair_id")


def with_states(speeds: pd.DataFrame, requested: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with the `state` of the comparison of quality for the same arm and
    baseline, and its `reason`.

    `requested` are rows of `store.read.quality.states`; where there is none, the state is
    `not requested`.
    """
    known = requested.drop_duplicates("quality_pair_id", keep="last")[
        ["quality_pair_id", "state", "reason"]
    ]
    found = speeds.merge(known, how="left", on="quality_pair_id")
    return found.assign(state=found["state"].fillna("not requested"))


def with_controls(speeds: pd.DataFrame, controls: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with the columns of `beside_controls` for the same arm; empty for
    arms that nothing tunes.
    """
    known = controls.drop_duplicates("quality_arm_id", keep="last")[
        ["quality_arm_id", "control", "control_params", *CHANGE]
    ]
    return speeds.merge(known, how="left", on="quality_arm_id")


def beside_controls(engine: Engine, name: str, control_of: ControlOf) -> pd.DataFrame:
    """Tuned arms of the quality jobs of a sweep, each against the control of its tuning.

    A row for each environment, model, weights, dtype, attention, method and params, with
    `quality_arm_id`: method and params of the control (`control`, `control_params`), and `change`,
    `change_low`, `change_high`: bits per byte of the arm less those of the control, paired over
    windows; empty where no attempt measured both.
    """
    link = TABLES["sweep_comparison"]
    linked = select(link.c.sweep).where(
        link.c.sweep == name, link.c.comparison_id == PAIR.c.comparison_id
    )
    of_sweep = select(PAIR.c.attempt).where(
        PAIR.c.attempt == ATTEMPT.c.id, exists(linked.correlate(PAIR))
    )
    attempts = (
        select(*named(ATTEMPT, "id environment payload flags"), TEXT_SCORES.c.characters)
        .join(TEXT_SCORES)
        .where(exists(of_sweep.correlate(ATTEMPT)))
        .order_by(ATTEMPT.c.ended_at, ATTEMPT.c.id)
    )
    rows: dict[tuple[Any, ...], tuple[tuple[Any, ...], dict[str, Any]]] = {}
    with reading(engine) as connection:
        for attempt in connection.execute(attempts).all():
            job = Job.model_validate(json.loads(attempt.payload)["job"])
            controls = {
                place: found
                for place, arm in enumerate(job.arms)
                if (found := control_of(arm, job.arms)) is not None
            }
            if not controls:
                continue
            scores = payload_of(job.kind).load(connection, attempt.id)
            for place, (control, beside) in controls.items():
                change: tuple[float | None, ...] = (None, None, None)
                if beside is not None and scored(scores, beside) and scored(scores, place):
                    change = compare_texts(scores, beside, place).change[:3]
                columns = arm_columns(job, place)
                row = {"environment": attempt.environment, **{name: columns[name] for name in ARM}}
                key = tuple(row.values())
                rank = (change[0] is not None, attempt.flags == "", attempt.characters)
                row |= {
                    "quality_arm_id": quality_arm_id(columns),
                    "control": control.method,
                    "control_params": canonical(requested_params(control)),
                    **dict(zip(CHANGE, change, strict=True)),
                }
                if key not in rows or rank >= rows[key][0]:
                    rows[key] = rank, row
    names = ["environment", "quality_arm_id", *ARM, "control", "control_params", *CHANGE]
    return pd.DataFrame([row for _, row in rows.values()], columns=names)
