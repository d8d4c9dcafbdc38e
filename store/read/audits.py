"""The rows of a stored sweep as a table to audit: its arms, and its profiles whether a job or an
outside profiler recorded them.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Engine

from store.read.profiling import LabelOf
from store.read.queries import find_sweep, peaks_of_hosts, sweep_rows
from store.rows.frames import rows_of
from store.rows.profiles import interval_estimate
from sweeps.analysis.audit.report import (
    BASELINE,
    AuditReport,
    audit_table,
    condition_key,
    measured_table,
    profile_notes,
    profiled_rows,
)
from sweeps.analysis.rows import SpeedupRow
from sweeps.importers.measurement import MeasurementTable
from sweeps.model.flags import split_flags, wrong
from sweeps.model.kinds import KINDS

if TYPE_CHECKING:
    import pandas as pd

MAX_AUDITED = 2000
"""Comparisons of a sweep that a report or a page audits without a request."""
_SAME = ("environment", "host", "condition_id", "arm_id")


def measured_sweep(engine: Engine, name: str, label: LabelOf) -> MeasurementTable:
    """The arms and profiles of the newest revision of a sweep; without rows where nothing was
    measured yet.

    `label` gives the label of a method and its parameters (JSON). Raises `StoreError` for an
    unknown name.
    """
    find_sweep(engine, name)
    effects = sweep_rows(engine, name, "effect")
    arms, profiles, kernels = (
        _own_arms(sweep_rows(engine, name, view), effects) for view in ("arm", "profile", "kernel")
    )
    rows = _without_profiled(_records(arms))
    places = arms[["environment", "host"]].drop_duplicates().itertuples(index=False, name=None)
    peaks = peaks_of_hosts(engine, places)
    speedups = _speedups(sweep_rows(engine, name, "speedup"), rows)
    for row in rows:
        row.update(speedups.get(tuple(row[key] for key in _SAME), {}))
        here = peaks[row["environment"], row["host"]]
        peak = here.get((row["dtype"], None if row["device"] == "cuda" else row["threads"]))
        row["peak_gflops"] = peak and peak.gflops
    table = measured_table(name, rows, label)
    traced = list(profiled_rows(_records(profiles), _records(kernels), rows, label))
    return table.model_copy(
        update={
            "rows": (*table.rows, *(row for _, row in traced)),
            "tools": tuple(tool for tool, _ in traced),
        }
    )


def _own_arms(arms: "pd.DataFrame", effects: "pd.DataFrame") -> "pd.DataFrame":
    """Arms that answers of the sweep are about, as arm or baseline: an attempt may hold those of
    other sweeps too.

    Rows of no attempt stay: files that were imported for a comparison of the sweep.
    """
    places = ("environment", "host", "condition_id")
    asked = {
        (*place, arm)
        for side in ("arm_id", "baseline_id")
        for *place, arm in _tuples(effects, (*places, side))
    }
    own = np.array([each in asked for each in _tuples(arms, (*places, "arm_id"))], dtype=bool)
    return arms.loc[own | arms["attempt"].isna()]


def _tuples(frame: "pd.DataFrame", columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return list(frame[list(columns)].itertuples(index=False, name=None))


def audit_of_sweep(engine: Engine, name: str, label: LabelOf) -> AuditReport:
    """What the rules of the audit find in the newest revision of a sweep, as `breakeven audit`
    prints it; see `measured_sweep`.
    """
    table = measured_sweep(engine, name, label)
    return audit_table(table, tuple(profile_notes(table)))


def _without_profiled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The arms, without those of profile jobs that were timed by a job of their own: a row of the
    profile stands for these.
    """
    timed = {tuple(row[key] for key in _SAME) for row in rows if KINDS[row["kind"]].sampled}
    return [
        row
        for row in rows
        if KINDS[row["kind"]].payload != "profiles" or tuple(row[key] for key in _SAME) not in timed
    ]


def _speedups(
    frame: "pd.DataFrame", arms: list[dict[str, Any]]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """By `_SAME` the speed-up of each arm against the unmodified model in its own setting, and
    whether it removes nothing.

    Those that a flag marks as wrong are left out.
    """
    settings = {tuple(row[name] for name in _SAME): condition_key(row) for row in arms}
    dense = {tuple(row[name] for name in _SAME) for row in arms if row["method"] == BASELINE}
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows_of(frame, SpeedupRow):
        flags = split_flags(row.flags)
        key = (row.environment, row.host, row.condition_id, row.arm_id)
        baseline = (*key[:-1], row.baseline_id)
        if wrong(flags) or baseline not in dense or settings.get(key) != settings[baseline]:
            continue
        if not found.get(key, {}).get("no_effect"):
            found[key] = {
                "paired": interval_estimate(row.speedup, row.speedup_low, row.speedup_high),
                "no_effect": "no_effect" in flags,
            }
    return found


def _records(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
