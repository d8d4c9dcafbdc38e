"""The rows of a stored sweep as a table to audit: its arms, and its profiles whether a job or an outside profiler recorded them."""

from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from store.explanations import LabelOf
from store.queries import find_sweep, peak_gflops, sweep_rows
from sweeps.audit.measured import measured_table
from sweeps.audit.profiled import profiled_rows
from sweeps.references.measurement import MeasurementTable

if TYPE_CHECKING:
    import pandas as pd


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
    for row in rows:
        here = peaks[row["environment"], row["host"]]
        row["peak_gflops"] = here.get((row["dtype"], None if row["device"] == "cuda" else row["threads"]))
    table = measured_table(name, rows, label)
    return table.model_copy(update={"rows": (*table.rows, *profiled_rows(profiles, kernels, rows, label))})


def _records(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
