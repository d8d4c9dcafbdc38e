"""Costs: the change in quality that belongs to a speed-up; neither runtime nor KV cache changes it.

Also of a tuned arm against its control: the same tuning without what the method adds.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Engine, text

from store.derive.quality import QUALITY
from store.row_mapping import asked_params
from store.transactions import reading
from sweeps.identity import canonical
from sweeps.job import Arm, Job
from sweeps.stats import text_stats

SPEED_ONLY = ("runtime", "kv_cache")
"""Overrides that quality does not depend on."""
ATTEMPTS = text(
    """SELECT t.id, t.environment, t.document, t.flags, s.characters
       FROM attempt AS t JOIN scores AS s ON s.attempt = t.id
       WHERE t.id IN (SELECT p.attempt FROM pairing AS p JOIN sweep_comparison AS l ON l.comparison_id = p.comparison_id
                      WHERE l.sweep = :name)
       ORDER BY t.ended_at, t.id"""
)
SCORES = text("SELECT document FROM scores WHERE attempt = :attempt")
CHANGE = ("change", "change_low", "change_high")

ControlOf = Callable[[Arm, Sequence[Arm]], tuple[Arm, int | None] | None]
"""For an arm and all arms of its job the control of its tuning, and its place among them (`None`: not among them).

`None` for an arm that needs no control.
"""
ALIKE = ("model", "weights", "method", "dtype", "attention", "asked", "judge")


def judged(speeds: pd.DataFrame, qualities: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup`, each with the newest row of `quality` for the same arm and baseline, if there is one.

    Columns that both have are those of `speedup`; the others of `quality` are empty where the arm was not judged.
    """
    newest = _keyed(qualities.sort_values("measured_at")).drop_duplicates(list(ALIKE), keep="last")
    more = [name for name in newest.columns if name not in speeds.columns]
    found = _keyed(speeds).merge(newest[[*{*ALIKE, *more}]], how="left", on=list(ALIKE))
    return found.drop(columns=["asked", "judge"])


def with_states(speeds: pd.DataFrame, asked: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with the `state` of the comparison of quality for the same arm and baseline, and its `reason`.

    `asked` are rows of `store.asked.states`; where there is none, the state is `not asked`.
    """
    known = _keyed(asked).drop_duplicates(list(ALIKE), keep="last")[[*ALIKE, "state", "reason"]]
    found = _keyed(speeds).merge(known, how="left", on=list(ALIKE)).drop(columns=["asked", "judge"])
    return found.assign(state=found["state"].fillna("not asked"))


def with_controls(speeds: pd.DataFrame, controls: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with the columns of `beside_controls` for the same arm; empty for arms that nothing tunes."""
    alike = [name for name in ALIKE if name != "judge"]
    known = controls.assign(asked=controls["params"].map(without_speed)).drop_duplicates(alike, keep="last")
    more = ["control", "control_params", *CHANGE]
    found = speeds.assign(asked=speeds["params"].map(without_speed)).merge(known[[*alike, *more]], how="left", on=alike)
    return found.drop(columns="asked")


def _keyed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(asked=frame["params"].map(without_speed), judge=frame["baseline"].map(plain_baseline))


def without_speed(params: str) -> str:
    """What was asked of an arm less what quality does not depend on."""
    asked = json.loads(params) if params else {}
    steps = asked if isinstance(asked, list) else [asked]
    kept = [{key: value for key, value in step.items() if key not in SPEED_ONLY} for step in steps]
    return json.dumps([step for step in kept if step], sort_keys=True)


def plain_baseline(text: str) -> str:
    """A baseline in words without the overrides that quality does not depend on."""
    name, bracket, inside = text.partition(" [")
    left = [part for part in inside.rstrip("]").split(", ") if part and not part.startswith(SPEED_ONLY)]
    return f"{name}{bracket}{', '.join(left)}]" if left else name


def beside_controls(engine: Engine, name: str, control_of: ControlOf) -> pd.DataFrame:
    """Tuned arms of the quality jobs of a sweep, each against the control of its tuning.

    A row for each environment, model, weights, dtype, attention, method and params: method and params of the control (`control`,
    `control_params`), and `change`, `change_low`, `change_high`: bits per byte of the arm less those of the control, paired over
    windows; empty where no attempt measured both.
    """
    rows: dict[tuple[Any, ...], tuple[tuple[Any, ...], dict[str, Any]]] = {}
    with reading(engine) as connection:
        for attempt in connection.execute(ATTEMPTS, {"name": name}):
            job = Job.model_validate(json.loads(attempt.document)["job"])
            controls = {place: found for place, arm in enumerate(job.arms) if (found := control_of(arm, job.arms)) is not None}
            if not controls:
                continue
            scores = QUALITY.unpack(connection.execute(SCORES, {"attempt": attempt.id}).scalar_one())
            for place, (control, beside) in controls.items():
                known = beside is not None and all(text_stats.scored(scores, index) for index in (beside, place))
                change = text_stats.compare(scores, beside, place).change if known and beside is not None else None
                key, row = _tuned(job, job.arms[place], attempt.environment)
                row |= {"control": control.method, "control_params": canonical(asked_params(control)), **dict.fromkeys(CHANGE)}
                if change is not None:
                    row |= dict(zip(CHANGE, change[:3], strict=True))
                rank = (change is not None, attempt.flags == "", attempt.characters)
                if key not in rows or rank >= rows[key][0]:
                    rows[key] = rank, row
    columns = ("environment", "model", "weights", "dtype", "attention", "method", "params", "control", "control_params", *CHANGE)
    return pd.DataFrame([row for _, row in rows.values()], columns=list(columns))


def _tuned(job: Job, arm: Arm, environment: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What identifies an arm among the rows of a sweep."""
    ran = arm.condition(job.condition)
    row = {
        **{field: getattr(ran, field) for field in ("model", "weights", "dtype", "attention")},
        "method": arm.method,
        "params": canonical(asked_params(arm)),
        "environment": environment,
    }
    return tuple(row.values()), row
