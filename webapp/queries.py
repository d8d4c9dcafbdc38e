"""Frames: the store's public views as data frames, one function for each thing that a page, a plot or a notebook shows."""

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
    """The newest revision of every sweep, newest first: its comparisons by fate and its jobs by state (see `SWEEP_COLUMNS`).

    Raises `store.errors.StoreError`, as all functions here do, if the store is missing or cannot be read; `url` is what
    `store.location.location` takes.
    """
    with _store(url) as engine:
        frame = pd.DataFrame(queries.sweeps(engine)).rename(columns={"name": "sweep"}).reindex(columns=list(SWEEP_COLUMNS))
    return frame.assign(submitted_at=pd.to_datetime(frame["submitted_at"], utc=True))


def question(sweep: str, url: str | None = None) -> str:
    """What the sweep asks. Raises `StoreError` that names the nearest sweeps if there is none of this name."""
    with _store(url) as engine:
        return str(queries.sweep(engine, sweep)["question"])


def points(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `speedup` that `sweep` asks for."""
    sql = """SELECT s.* FROM speedup AS s JOIN sweep_comparison AS l ON l.comparison_id = s.comparison_id
             WHERE l.sweep = :sweep ORDER BY s.model, s.batch_size, s.method, s.params, s.tokens"""
    return _table(url, sql, sweep=sweep)


def break_evens(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `break_even` of `sweep`."""
    return _table(url, "SELECT * FROM break_even WHERE sweep = :sweep", sweep=sweep)


def qualities(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `quality` that `sweep` asks for."""
    sql = """SELECT q.* FROM quality AS q JOIN sweep_comparison AS l ON l.comparison_id = q.comparison_id WHERE l.sweep = :sweep"""
    return _table(url, sql, sweep=sweep)


def quality_states(sweep: str, url: str | None = None) -> pd.DataFrame:
    """Where the comparisons of quality that `sweep` asks stand, see `store.asked.states`."""
    with _store(url) as engine:
        return states(engine, sweep, "quality")


def controls(sweep: str, url: str | None = None) -> pd.DataFrame:
    """Tuned arms of `sweep` against the control of their tuning, see `store.quality_join.beside_controls`."""
    with _store(url) as engine:
        return beside_controls(engine, sweep, control)


def parameters(url: str | None = None) -> dict[str, float]:
    """Parameters of every language model that was timed, without a method."""
    # Other arms untie the head, or add adapters.
    sql = """SELECT model, coalesce(min(CASE WHEN method = 'dense' THEN parameters END), min(parameters)) AS parameters
    FROM language GROUP BY model"""
    found = _table(url, sql)
    return {str(model): float(number) for model, number in zip(found["model"], found["parameters"], strict=True)}


def failures(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `failures` that `sweep` asks for, newest first."""
    sql = """SELECT f.* FROM failures AS f JOIN sweep_comparison AS l ON l.comparison_id = f.comparison_id
             WHERE l.sweep = :sweep ORDER BY f.at DESC"""
    return _table(url, sql, sweep=sweep)


def _table(url: str | None, sql: str, **params: Any) -> pd.DataFrame:
    with _store(url) as engine:
        return queries.table(engine, sql, **params)


@contextmanager
def _store(url: str | None) -> Iterator[Any]:
    """The store, opened read-only for one look, so that no page holds on to a file that was replaced."""
    engine = connect_readonly(url)
    try:
        yield engine
    finally:
        engine.dispose()
