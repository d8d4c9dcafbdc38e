"""The store's public views as data frames, one function for each thing that a page, a plot or a notebook shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

from store import queries
from store.comparison_status import states
from store.engine import connect_readonly
from store.quality_join import beside_controls
from store.references import reference_points
from sweeps.job import Kind
from webapp.arm_style import label_arms
from workers.methods import tuning_control

JOB_STATES = ("waiting", "running", "done", "failed", "cancelled")
COLUMNS_OF_SWEEPS = ("sweep", "question", "submitted_at", "comparisons", "measured", "failures", *JOB_STATES)


def sweeps(url: str | None = None) -> pd.DataFrame:
    """The newest revision of every sweep, newest first, with counts of comparisons and of jobs by state (`COLUMNS_OF_SWEEPS`).

    Raises `store.errors.StoreError`, as all functions here do, if the store is missing or cannot be read; `url` is a file or an
    SQLAlchemy URL (default: as for `breakeven`).
    """
    with _store(url) as engine:
        frame = (
            pd.DataFrame(queries.sweep_summaries(engine)).rename(columns={"name": "sweep"}).reindex(columns=list(COLUMNS_OF_SWEEPS))
        )
    return frame.assign(submitted_at=pd.to_datetime(frame["submitted_at"], utc=True))


def question(sweep: str, url: str | None = None) -> str:
    """The question of the sweep. Raises `StoreError` that names the nearest sweeps if there is none of this name."""
    with _store(url) as engine:
        return str(queries.find_sweep(engine, sweep)["question"])


def view_rows(sweep: str, view: str, url: str | None = None) -> pd.DataFrame:
    """The rows of a public view that belong to `sweep`, see `store.queries.sweep_rows`."""
    with _store(url) as engine:
        return queries.sweep_rows(engine, sweep, view)


def labelled_speedups(sweep: str, url: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of the views `speedup` and `break_even` that belong to `sweep`, with labels of arms and baselines.

    Points have `process_freedom` and `calibrated_at` (seconds since the epoch) of their calibration; NaN: the stated default.
    """
    points = view_rows(sweep, "speedup", url)
    with _store(url) as engine:
        known = queries.calibration_rows(engine).set_index("calibration_id")
    columns = {"process_freedom": "freedom", "calibrated_at": "created_at"}
    points = points.assign(**{name: points["calibration_id"].map(known[column].to_dict()) for name, column in columns.items()})
    return label_arms(points, view_rows(sweep, "break_even", url))


def comparison_states(sweep: str, kind: Kind, url: str | None = None) -> pd.DataFrame:
    """The states of the comparisons of one kind of `sweep`, see `store.comparison_status.states`."""
    with _store(url) as engine:
        return states(engine, sweep, kind)


def controls(sweep: str, url: str | None = None) -> pd.DataFrame:
    """Tuned arms of `sweep` against the control of their tuning, see `store.quality_join.beside_controls`."""
    with _store(url) as engine:
        return beside_controls(engine, sweep, tuning_control)


def parameters(sweep: str, url: str | None = None) -> dict[str, float]:
    """Parameters of the language models that `sweep` timed, without a method."""
    found = view_rows(sweep, "generation", url).sort_values("parameters")
    # Other arms untie the head, or add adapters: they count only where the unmodified model was not timed.
    first = found.assign(other=found["method"] != "dense").sort_values("other", kind="stable").drop_duplicates("model")
    return dict(zip(first["model"], first["parameters"], strict=True))


def references(url: str | None = None) -> pd.DataFrame:
    """Published points, the rows of the view `reference` that have a speed-up; none in a store that has imported none."""
    with _store(url) as engine:
        return reference_points(engine)


@contextmanager
def _store(url: str | None) -> Iterator[Any]:
    """The store, opened read-only for one query, so that no page keeps a file open that was replaced."""
    engine = connect_readonly(url)
    try:
        yield engine
    finally:
        engine.dispose()
