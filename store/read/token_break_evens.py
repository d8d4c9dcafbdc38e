"""Break-evens along the tokens of all curves of a sweep, with the conditions by which a map orders
them.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, select

from store.rows.placement import Place
from store.rows.transactions import reading
from store.schema.tables import BREAK_EVEN
from store.views.public import TABLES

if TYPE_CHECKING:
    import pandas as pd

_MOST_NAMED = 5000
"""Curves that one statement may name."""
CONDITION_COLUMNS = (
    *(
        "model",
        "weights",
        "device_name",
        "environment",
        "host",
        "batch_size",
        "threads",
        "spare_cores",
        "wait_policy",
        "pinning",
    ),
    *("data", "new_tokens", "decoding", "seed", "exclusive", "inputs", "baseline", "baseline_id"),
    *("method", "params", "dtype", "attention", "runtime", "kv_cache"),
)
"""Of the view `break_even`, by which its curves differ."""
_FIGURES = (
    *(
        "curve_id",
        "metric",
        "axis",
        "varied_parameter",
        "verdict",
        "x",
        "x_low",
        "x_high",
        "direction",
        "grid_limited",
        "points",
    ),
    *("points_missing", "why", "prompt_tokens", "x_first", "x_last", "worst_loss", "largest_gain"),
)


def token_break_evens(engine: Engine, sweep: str, metric: str) -> "pd.DataFrame":
    """Rows of the view `break_even` along the tokens by one metric, with the columns of conditions
    and what words need.
    """
    import pandas as pd

    view = TABLES["break_even"]
    columns = [view.c[name] for name in (*CONDITION_COLUMNS, *_FIGURES)]
    rows = select(*columns).where(
        view.c.sweep == sweep, view.c.metric == metric, view.c.axis == "tokens"
    )
    with reading(engine) as connection:
        found = connection.execute(rows.order_by(view.c.method, view.c.params, view.c.x))
        return pd.DataFrame.from_records(
            [tuple(row) for row in found], columns=list(found.keys()), coerce_float=True
        )


def claims_of_curves(
    engine: Engine, curves: Collection[str], metric: str
) -> dict[tuple[str, Place], tuple[Any, ...]]:
    """Break-evens along the tokens by one metric, by curve and place: rows with what words need.

    Of several sweeps that have a curve the one with most points on it, among equals the newest.
    """
    rows = select(BREAK_EVEN).where(BREAK_EVEN.c.metric == metric, BREAK_EVEN.c.axis == "tokens")
    found: dict[tuple[str, Place], dict[int, list[Any]]] = {}
    named = sorted(set(curves))
    with reading(engine) as connection:
        for start in range(0, len(named), _MOST_NAMED):
            part = rows.where(BREAK_EVEN.c.curve_id.in_(named[start : start + _MOST_NAMED]))
            for row in connection.execute(part.order_by(BREAK_EVEN.c.crossing)):
                here = found.setdefault((row.curve_id, Place(row.environment, row.host)), {})
                here.setdefault(row.sweep, []).append(row)
    return {
        key: tuple(max(own.items(), key=lambda each: (each[1][0].points, each[0]))[1])
        for key, own in found.items()
    }
