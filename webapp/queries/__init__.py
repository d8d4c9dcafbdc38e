"""The store's public views as data frames, one function for each thing that a page, a plot or a
notebook shows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import pandas as pd

from store.open.engine import connect_readonly, state_mark
from store.read import queries
from store.read.curves import token_break_evens
from store.write.references import reference_points
from webapp.display.arm_style import label_arms
from webapp.display.scope import Scope

JOB_STATES = ("waiting", "running", "done", "failed", "cancelled")
_Content = TypeVar("_Content")
KEPT = 64
"""Results that are kept at once; each holds the rows of one panel."""
COLUMNS_OF_SWEEPS = (
    "sweep",
    "question",
    "submitted_at",
    "comparisons",
    "measured",
    "failures",
    "best",
    *JOB_STATES,
)


def sweeps(url: str | None = None) -> pd.DataFrame:
    """The newest revision of every sweep, newest first, with counts of comparisons and of jobs by
    state (`COLUMNS_OF_SWEEPS`).

    Raises `store.errors.StoreError`, as all functions here do, if the store is missing or cannot be
    read; `url` is a file or an SQLAlchemy URL (default: as for `breakeven`).
    """
    with _store(url) as engine:
        frame = (
            pd.DataFrame(queries.sweep_summaries(engine))
            .rename(columns={"name": "sweep"})
            .reindex(columns=list(COLUMNS_OF_SWEEPS))
        )
    return frame.assign(submitted_at=pd.to_datetime(frame["submitted_at"], utc=True))


def kept(read: Callable[[Any], _Content], *key: Any, url: str | None = None) -> _Content:
    """What `read` makes of the store's engine, kept until something is committed to the store.

    `key` distinguishes what is read: hashable, beginning with a name of its own. Callers change
    nothing of the result; of a frame they may take a shallow copy. The newest `KEPT` results are
    kept. Raises `StoreError`.
    """
    found: _Content = _kept(_Reading(read, (*key, url, state_mark(url))), url)
    return found


class _Reading:
    """A function that is equal to others by its key alone."""

    def __init__(self, read: Callable[[Any], Any], key: tuple[Any, ...]) -> None:
        self.read, self.key = read, key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reading) and self.key == other.key


@lru_cache(maxsize=KEPT)
def _kept(reading: _Reading, url: str | None) -> Any:
    with _store(url) as engine:
        return reading.read(engine)


def measured_sweeps(url: str | None = None) -> list[dict[str, Any]]:
    """`name`, `question`, `submitted_at` and whether anything is `measured`, newest first, without
    counting.
    """
    return kept(queries.sweep_list, "measured_sweeps", url=url)


def panels(sweep: str, url: str | None = None) -> pd.DataFrame:
    """The panels of a sweep and their kinds of arms with the number of their points, see
    `store.read.queries.panel_counts`.
    """
    return kept(lambda engine: queries.panel_counts(engine, sweep), "panels", sweep, url=url)


def scope_rows(scope: Scope, view: str, url: str | None = None) -> pd.DataFrame:
    """Rows of a sweep view in the scope: restricted to its fixed and chosen values, as far as the
    view has these columns.
    """

    def read(engine: Any) -> pd.DataFrame:
        return queries.panel_rows(engine, scope.sweep, view, scope.conditions, scope.chosen)

    return kept(read, "scope_rows", view, scope.key, url=url).copy(deep=False)


def scope_sql(scope: Scope, view: str = "speedup") -> str:
    """The SQL behind `scope_rows`, for `breakeven query`."""
    return queries.panel_sql(scope.sweep, view, scope.conditions, scope.chosen)


def scope_points(scope: Scope, url: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of the views `speedup` and `break_even` in the scope, with labels of arms and
    baselines (`arm`, `against`).
    """

    def read(engine: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
        found = (
            queries.panel_rows(engine, scope.sweep, view, scope.conditions, scope.chosen)
            for view in ("speedup", "break_even")
        )
        return label_arms(*found)

    points, break_evens = kept(read, "scope_points", scope.key, url=url)
    return points.copy(deep=False), break_evens.copy(deep=False)


def model_effects(scope: Scope, kind: str, metric: str, url: str | None = None) -> pd.DataFrame:
    """Rows of the view `effect` of the scope's sweep, model and weights by one metric of a kind of
    jobs, under any conditions.
    """
    fixed = {name: scope.fixed[name] for name in ("model", "weights") if name in scope.fixed} | {
        "metric": metric
    }

    def read(engine: Any) -> pd.DataFrame:
        return queries.panel_rows(engine, scope.sweep, "effect", fixed, {"kind": (kind,)})

    return kept(read, "model_effects", scope.sweep, kind, *fixed.items(), url=url).copy(deep=False)


def sweep_break_evens(sweep: str, metric: str, url: str | None = None) -> pd.DataFrame:
    """Break-evens along the tokens of a whole sweep, see `store.read.curves`."""
    return kept(
        lambda engine: token_break_evens(engine, sweep, metric),
        "token_break_evens",
        sweep,
        metric,
        url=url,
    )


def sweep_file(sweep: str, url: str | None = None) -> str:
    """The text of the sweep file, newest revision."""
    with _store(url) as engine:
        return str(queries.find_sweep(engine, sweep)["text"])


def columns_of(view: str) -> list[str]:
    """The columns of a public view."""
    from store.views.public import TABLES

    return [column.name for column in TABLES[view].c]


def question(sweep: str, url: str | None = None) -> str:
    """The question of the sweep. Raises `StoreError` that names the nearest sweeps if there is none
    of this name.
    """
    with _store(url) as engine:
        return str(queries.find_sweep(engine, sweep)["question"])


def view_rows(sweep: str, view: str, url: str | None = None) -> pd.DataFrame:
    """The rows of a public view that belong to `sweep`, see `store.read.queries.sweep_rows`."""
    with _store(url) as engine:
        return queries.sweep_rows(engine, sweep, view)


def labelled_speedups(sweep: str, url: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of the views `speedup` and `break_even` that belong to `sweep`, with labels of arms
    and baselines.
    """
    return label_arms(view_rows(sweep, "speedup", url), view_rows(sweep, "break_even", url))


def parameters(scope: Scope, url: str | None = None) -> dict[str, float]:
    """Parameters of the language models of the scope that were timed, without a method."""
    found = scope_rows(scope._replace(chosen={}), "generation", url).sort_values("parameters")
    # Other arms untie the head, or add adapters: they count only where the unmodified model was not
    # timed.
    first = (
        found.assign(other=found["method"] != "dense")
        .sort_values("other", kind="stable")
        .drop_duplicates("model")
    )
    return dict(zip(first["model"], first["parameters"], strict=True))


def references(url: str | None = None) -> pd.DataFrame:
    """Published points, the rows of the view `reference` that have a speed-up; none in a store that
    has imported none.
    """
    return kept(reference_points, "references", url=url).copy(deep=False)


@contextmanager
def _store(url: str | None) -> Iterator[Any]:
    """The store, opened read-only for one query, so that no page keeps a file open that was
    replaced.
    """
    engine = connect_readonly(url)
    try:
        yield engine
    finally:
        engine.dispose()
