"""Frames: the store's public views as data frames, one function for each thing that a page, a plot or a notebook shows."""

from typing import Any

import pandas as pd
from store.reading import table

from store.connection import connect_readonly

STATES = ("waiting", "running", "done", "failed", "cancelled")


def check(url: str | None = None) -> None:
    """Raises `store.connection.StoreError` unless the store is there and readable; `url` as in `store.connection.location`."""
    _read("SELECT 1", url)


def sweeps(url: str | None = None) -> pd.DataFrame:
    """The newest revision of every sweep, newest first: sweep, question, submitted_at (UTC), one column of job counts per state."""
    counts = ", ".join(f"COUNT(CASE WHEN j.state = '{state}' THEN 1 END) AS {state}" for state in STATES)
    frame = _read(
        f"""SELECT s.name AS sweep, s.question, s.submitted_at, {counts}
            FROM sweep AS s LEFT JOIN sweep_job AS l ON l.sweep = s.id LEFT JOIN job AS j ON j.id = l.job
            WHERE NOT EXISTS (SELECT 1 FROM sweep AS newer WHERE newer.name = s.name AND newer.revision > s.revision)
            GROUP BY s.id, s.name, s.question, s.submitted_at ORDER BY s.submitted_at DESC""",  # noqa: S608 - states are our own words
        url,
    )
    return frame.assign(submitted_at=pd.to_datetime(frame["submitted_at"], unit="s", utc=True))


def state(sweep: "pd.Series[Any]") -> str:
    """The state of one row of `sweeps` in a word."""
    return next((word for word in ("running", "waiting", "failed") if sweep[word] > 0), "done")


def points(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `speedup` that `sweep` asks for."""
    return _read(
        """SELECT s.* FROM speedup AS s JOIN sweep_comparison AS l ON l.comparison_id = s.comparison_id
           WHERE l.sweep = :sweep ORDER BY s.model, s.batch_size, s.method, s.params, s.tokens""",
        url,
        sweep=sweep,
    )


def break_evens(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `break_even` of `sweep`."""
    return _read("SELECT * FROM break_even WHERE sweep = :sweep", url, sweep=sweep)


def failures(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The rows of the view `failures` that `sweep` asks for, newest first."""
    return _read(
        """SELECT f.* FROM failures AS f JOIN sweep_comparison AS l ON l.comparison_id = f.comparison_id
           WHERE l.sweep = :sweep ORDER BY f.at DESC""",
        url,
        sweep=sweep,
    )


def _read(sql: str, url: str | None, **params: Any) -> pd.DataFrame:
    engine = connect_readonly(url)
    try:
        return table(engine, sql, **params)
    finally:
        engine.dispose()
