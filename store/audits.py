"""The rows of a stored sweep as a table to audit: its arms, and its profiles whether a job or an outside profiler recorded them."""

from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from store.explanations import LabelOf
from store.frames import rows_of
from store.profiles import bounded_figure
from store.queries import find_sweep, peak_gflops, sweep_rows
from sweeps.audit.measured import measured_table
from sweeps.audit.profiled import profile_notes, profiled_rows
from sweeps.audit.report import AuditReport, audit_table
from sweeps.flags import split_flags, wrong
from sweeps.references.measurement import MeasurementTable

if TYPE_CHECKING:
    import pandas as pd

MOST_AUDITED = 2000
"""Comparisons of a sweep that a report or a page audits without a request."""
_SAME = ("environment", "host", "condition_id", "arm_id")


def measured_sweep(engine: Engine, name: str, label: LabelOf) -> MeasurementTable:
    """The arms and profiles of the newest revision of a sweep; without rows where nothing was measured yet.

    `label` gives the label of a method and its parameters (JSON). Raises `StoreError` for an unknown name.
    """
    find_sweep(engine, name)
    arms = sweep_rows(engine, name, "arm")
    profiles, kernels = (_records(sweep_rows(engine, name, view)) for view in ("profile", "kernel"))
    rows = _records(arms)
    places = arms[["environment", "host"]].drop_duplicates().itertuples(index=False, name=None)
    peaks = {place: peak_gflops(engine, *place) for place in places}
    speedups = _speedups(sweep_rows(engine, name, "speedup"))
    for row in rows:
        row.update(speedups.get(tuple(row[key] for key in _SAME), {}))
        here = peaks[row["environment"], row["host"]]
        row["peak_gflops"] = here.get((row["dtype"], None if row["device"] == "cuda" else row["threads"]))
    table = measured_table(name, rows, label)
    return table.model_copy(update={"rows": (*table.rows, *profiled_rows(profiles, kernels, rows, label))})


def audit_of_sweep(engine: Engine, name: str, label: LabelOf) -> AuditReport:
    """What the rules of the audit find in the newest revision of a sweep, as `breakeven audit` prints it; see `measured_sweep`."""
    table = measured_sweep(engine, name, label)
    return audit_table(table, tuple(profile_notes(table)))


def _speedups(frame: "pd.DataFrame") -> dict[tuple[Any, ...], dict[str, Any]]:
    """By `_SAME` the speed-up of each arm that no flag marks as wrong, and whether it removes nothing."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows_of(frame):
        flags, key = split_flags(row.flags), tuple(getattr(row, name) for name in _SAME)
        if not wrong(flags) and not found.get(key, {}).get("no_effect"):
            found[key] = {"paired": bounded_figure(row, "speedup"), "no_effect": "no_effect" in flags}
    return found


def _records(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
