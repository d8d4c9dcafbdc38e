"""The store's public views as data frames, one function for each thing that a page, a plot or a notebook shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

from store import queries
from store.comparison_status import states
from store.engine import connect_readonly
from store.quality_join import beside_controls
from workers.methods import control

STATES = ("waiting", "running", "done", "failed", "cancelled")
SWEEP_COLUMNS = ("sweep", "question", "submitted_at", "comparisons", "measured", "failures", *STATES)


def sweeps(url: str | None = None) -> pd.DataFrame:
    """The newest revision of every sweep, newest first, with counts of comparisons and of jobs by state (`SWEEP_COLUMNS`).

    Raises `store.errors.StoreError`, as all functions here do, if the store is missing or cannot be read; `url` is a file or an
    SQLAlchemy URL (default: as for `breakeven`).
    """
    with _store(url) as engine:
        frame = pd.DataFrame(queries.sweeps(engine)).rename(columns={"name": "sweep"}).reindex(columns=list(SWEEP_COLUMNS))
    return frame.assign(submitted_at=pd.to_datetime(frame["submitted_at"], utc=True))


def question(sweep: str, url: str | None = None) -> str:
    """The question of the sweep. Raises `StoreError` that names the nearest sweeps if there is none of this name."""
    with _store(url) as engine:
        return str(queries.sweep(engine, sweep)["question"])


def points(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `speedup` that belong to `sweep`."""
    return _rows(url, sweep, "speedup")


def break_evens(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `break_even` of `sweep`."""
    return _rows(url, sweep, "break_even")


def qualities(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `quality` that belong to `sweep`."""
    return _rows(url, sweep, "quality")


def quality_states(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The states of the comparisons of quality of `sweep`, see `store.comparison_status.states`."""
    with _store(url) as engine:
        return states(engine, sweep, "quality")


def controls(sweep: str, url: str | None = None) -> pd.DataFrame:
    """Tuned arms of `sweep` against the control of their tuning, see `store.quality_join.beside_controls`."""
    with _store(url) as engine:
        return beside_controls(engine, sweep, control)


def parameters(sweep: str, url: str | None = None) -> dict[str, float]:
    """Parameters of the language models that `sweep` timed, without a method."""
    found = _rows(url, sweep, "generation").sort_values("parameters")
    # Other arms untie the head, or add adapters: they count only where the unmodified model was not timed.
    first = found.assign(other=found["method"] != "dense").sort_values("other", kind="stable").drop_duplicates("model")
    return dict(zip(first["model"], first["parameters"], strict=True))


def failures(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `failures` that belong to `sweep`, newest first."""
    return _rows(url, sweep, "failures").sort_values("at", ascending=False, kind="stable")


def _rows(url: str | None, sweep: str, view: str) -> pd.DataFrame:
    with _store(url) as engine:
        return queries.sweep_rows(engine, sweep, view)


@contextmanager
def _store(url: str | None) -> Iterator[Any]:
    """The store, opened read-only for one query, so that no page keeps a file open that was replaced."""
    engine = connect_readonly(url)
    try:
        yield engine
    finally:
        engine.dispose()
