"""The change in quality that belongs to a speed-up, and that of a tuned arm against its control.

A control is the same tuning without what the method adds.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Engine, select

from store.derive.payloads import TextScoreStore
from store.quality_ids import quality_arm_id
from store.row_mapping import arm_columns, requested_params
from store.tables.planned import core
from store.tables.results import AttemptRow, ComparisonAttemptRow, TextScoresRow
from store.transactions import reading
from store.views.public import TABLES
from sweeps.identity import canonical
from sweeps.job import Arm, Job
from sweeps.stats import text_stats

ATTEMPT, SCORES, PAIR = core(AttemptRow), core(TextScoresRow), core(ComparisonAttemptRow)
CHANGE = ("change", "change_low", "change_high")
ARM = ("model", "weights", "dtype", "attention", "method", "params")

ControlOf = Callable[[Arm, Sequence[Arm]], tuple[Arm, int | None] | None]
"""For an arm and all arms of its job the control of its tuning, and its place among them (`None`: not among them).

`None` for an arm that needs no control.
"""


def join_quality(speeds: pd.DataFrame, qualities: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup`, each with the newest row of `quality` for the same arm and baseline, if there is one.

    Columns that both have are those of `speedup`; the others of `quality` are empty where the arm has no quality.
    """
    newest = qualities.sort_values("measured_at").drop_duplicates("quality_pair_id", keep="last")
    more = [name for name in newest.columns if name not in speeds.columns]
    return speeds.merge(newest[["quality_pair_id", *more]], how="left", on="quality_pair_id")


def with_states(speeds: pd.DataFrame, requested: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with the `state` of the comparison of quality for the same arm and baseline, and its `reason`.

    `requested` are rows of `store.comparison_status.states`; where there is none, the state is `not requested`.
    """
    known = requested.drop_duplicates("quality_pair_id", keep="last")[["quality_pair_id", "state", "reason"]]
    found = speeds.merge(known, how="left", on="quality_pair_id")
    return found.assign(state=found["state"].fillna("not requested"))


def with_controls(speeds: pd.DataFrame, controls: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with the columns of `beside_controls` for the same arm; empty for arms that nothing tunes."""
    known = controls.drop_duplicates("quality_arm_id", keep="last")[["quality_arm_id", "control", "control_params", *CHANGE]]
    return speeds.merge(known, how="left", on="quality_arm_id")


def beside_controls(engine: Engine, name: str, control_of: ControlOf) -> pd.DataFrame:
    """Tuned arms of the quality jobs of a sweep, each against the control of its tuning.

    A row for each environment, model, weights, dtype, attention, method and params, with `quality_arm_id`: method and params of
    the control (`control`, `control_params`), and `change`, `change_low`, `change_high`: bits per byte of the arm less those of
    the control, paired over windows; empty where no attempt measured both.
    """
    link = TABLES["sweep_comparison"]
    of_sweep = select(PAIR.c.attempt).join(link, link.c.comparison_id == PAIR.c.comparison_id).where(link.c.sweep == name)
    attempts = (
        select(*(ATTEMPT.c[column] for column in ("id", "environment", "payload", "flags")), SCORES.c.characters)
        .join(SCORES, SCORES.c.attempt == ATTEMPT.c.id)
        .where(ATTEMPT.c.id.in_(of_sweep))
        .order_by(ATTEMPT.c.ended_at, ATTEMPT.c.id)
    )
    rows: dict[tuple[Any, ...], tuple[tuple[Any, ...], dict[str, Any]]] = {}
    with reading(engine) as connection:
        for attempt in connection.execute(attempts).all():
            job = Job.model_validate(json.loads(attempt.payload)["job"])
            controls = {place: found for place, arm in enumerate(job.arms) if (found := control_of(arm, job.arms)) is not None}
            if not controls:
                continue
            packed = select(SCORES.c.payload).where(SCORES.c.attempt == attempt.id)
            scores = TextScoreStore.unpack(connection.execute(packed).scalar_one())
            for place, (control, beside) in controls.items():
                known = beside is not None and all(text_stats.scored(scores, index) for index in (beside, place))
                change = text_stats.compare_texts(scores, beside, place).change[:3] if known and beside is not None else (None,) * 3
                columns = arm_columns(job, place)
                row = {"environment": attempt.environment, **{name: columns[name] for name in ARM}}
                key, rank = tuple(row.values()), (change[0] is not None, attempt.flags == "", attempt.characters)
                row |= {"control": control.method, "control_params": canonical(requested_params(control))}
                row |= {"quality_arm_id": quality_arm_id(columns), **dict(zip(CHANGE, change, strict=True))}
                if key not in rows or rank >= rows[key][0]:
                    rows[key] = rank, row
    names = ["environment", "quality_arm_id", *ARM, "control", "control_params", *CHANGE]
    return pd.DataFrame([row for _, row in rows.values()], columns=names)
