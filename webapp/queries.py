"""The store's public views as data frames, one function for each thing that several pages or a plot
show; read once until a process commits to the store.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import pandas as pd

from store.open.engine import connect_readonly, disposing, state_mark
from store.read import queries
from store.read.curves import token_break_evens, with_limits
from store.write.references import reference_points
from webapp.display.arm_style import label_arms

_Content = TypeVar("_Content")
_Given = ParamSpec("_Given")
_URL: ContextVar[str | None] = ContextVar("url", default=None)
KEPT = 64
"""Results that are kept at once; each holds the rows of one panel."""


class Scope(NamedTuple):
    """What a page is about: a choice that every page with common filters shows; made by
    `webapp.widgets.filters.choose_scope`.
    """

    sweep: str
    metric: str
    """A metric of the view `speedup`."""
    fixed: Mapping[str, Any]
    """One value for each of `store.read.queries.PANEL_COLUMNS` but those of the facet; `None` where
    the rows have no value."""
    facet: str | None
    """`batch_size`, `dtype`, `runtime` or `device_name`: there is a panel for each of its values.
    `None`: one panel."""
    chosen: Mapping[str, tuple[str, ...]]
    """Values of `store.read.queries.ARM_COLUMNS` that arms may have; an empty tuple: all."""

    def __hash__(self) -> int:
        return hash((self.sweep, self.metric, *self.fixed.values()))

    @property
    def conditions(self) -> Mapping[str, Any]:
        """The fixed values and the metric."""
        return {**self.fixed, "metric": self.metric}


@contextmanager
def reading(url: str | None) -> Iterator[None]:
    """Within it, what is read comes from the store at `url`, a file or an SQLAlchemy URL (default:
    as for `breakeven`).
    """
    token = _URL.set(url)
    try:
        yield
    finally:
        _URL.reset(token)


def kept(read: Callable[Concatenate[Any, _Given], _Content]) -> Callable[_Given, _Content]:
    """The function without its first argument, the engine of the store, which is opened read-only
    for each call, so that no page keeps a file open that was replaced.

    Its results are kept until something is committed to the store, the newest `KEPT` of all
    functions; callers change nothing of them. Other arguments are hashable and given by position.
    Raises `StoreError` if the store is missing or cannot be read.
    """

    @wraps(read)
    def known(*given: _Given.args, **named: _Given.kwargs) -> _Content:
        url = _URL.get()
        key = (read.__code__, given, tuple(named.items()), url, state_mark(url))
        found: _Content = _kept(_Reading(lambda engine: read(engine, *given, **named), key))
        return found

    return known


class _Reading:
    """A function that is equal to others by its key alone."""

    def __init__(self, read: Callable[[Any], Any], key: tuple[Any, ...]) -> None:
        self.read, self.key = read, key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reading) and self.key == other.key


@lru_cache(maxsize=KEPT)
def _kept(reading: _Reading) -> Any:
    with disposing(connect_readonly(_URL.get())) as engine:
        return reading.read(engine)


sweeps = kept(queries.sweep_summaries)
"""See `store.read.queries.sweep_summaries`."""

measured_sweeps = kept(queries.sweep_list)
"""`name`, `question`, `submitted_at` and whether anything is `measured`, newest first, without
counting.
"""


@kept
def panels(engine: Any, sweep: str) -> pd.DataFrame:
    """The panels of a sweep and their kinds of arms with the number of their points, see
    `store.read.queries.panel_counts`.
    """
    return queries.panel_counts(engine, [sweep])


@kept
def scope_rows(engine: Any, scope: Scope, view: str) -> pd.DataFrame:
    """Rows of a sweep view in the scope: restricted to its fixed and chosen values, where the view
    has these columns.
    """
    return queries.panel_rows(engine, scope.sweep, view, scope.conditions, scope.chosen)


def scope_sql(scope: Scope) -> str:
    """The SQL behind the speed-ups of a scope, for `breakeven query`."""
    return queries.panel_sql(scope.sweep, "speedup", scope.conditions, scope.chosen)


@kept
def scope_points(_engine: Any, scope: Scope) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of the views `speedup` and `break_even` in the scope, with labels of arms and
    baselines (`arm`, `against`), and where arms ran out of memory.
    """
    points, break_evens, failures = (
        scope_rows(scope, view) for view in ("speedup", "break_even", "failures")
    )
    return label_arms(with_limits(points, failures), break_evens)


@kept
def model_effects(engine: Any, scope: Scope, kind: str, metric: str) -> pd.DataFrame:
    """Rows of the view `effect` of the scope's sweep, model and weights by one metric of a kind of
    jobs, under any conditions.
    """
    fixed = {name: scope.fixed[name] for name in ("model", "weights") if name in scope.fixed}
    where = {**fixed, "metric": metric}
    return queries.panel_rows(engine, scope.sweep, "effect", where, {"kind": (kind,)})


sweep_break_evens = kept(token_break_evens)
"""Break-evens along the tokens of a whole sweep, see `store.read.curves`."""

find_sweep = kept(queries.find_sweep)
"""`question` and `text` (of its file) of a sweep, newest revision. Raises `StoreError` that
names the nearest sweeps if there is none of this name.
"""

view_rows = kept(queries.sweep_rows)
"""The rows of a public view that belong to `sweep`, see `store.read.queries.sweep_rows`."""


def labelled_speedups(sweep: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of the views `speedup` and `break_even` that belong to `sweep`, with labels of arms
    and baselines.
    """
    points = with_limits(view_rows(sweep, "speedup"), view_rows(sweep, "failures"))
    return label_arms(points, view_rows(sweep, "break_even"))


def parameters(scope: Scope) -> dict[str, float]:
    """Parameters of the language models of the scope that were timed, without a method."""
    found = scope_rows(scope._replace(chosen={}), "generation").sort_values("parameters")
    # Other arms untie the head, or add adapters: they count only where the unmodified model was not
    # timed.
    ordered = found.assign(other=found["method"] != "dense").sort_values("other", kind="stable")
    first = ordered.drop_duplicates("model")
    return dict(zip(first["model"], first["parameters"], strict=True))


references = kept(reference_points)
"""Published points, the rows of the view `reference` that have a speed-up; none in a store that
has imported none.
"""
