"""Break-evens along the tokens of all curves of a sweep, with the conditions by which a map orders them."""

from typing import TYPE_CHECKING

from sqlalchemy import Engine, select

from store.transactions import reading
from store.views.public import TABLES

if TYPE_CHECKING:
    import pandas as pd

CONDITION_COLUMNS = (
    *("model", "weights", "device_name", "environment", "host", "batch_size", "threads", "spare_cores", "wait_policy", "pinning"),
    *("data", "new_tokens", "decoding", "seed", "exclusive", "baseline", "baseline_id"),
    *("method", "params", "dtype", "attention", "runtime", "kv_cache"),
)
"""Of the view `break_even`, by which its curves differ."""
_FIGURES = (
    *("curve_id", "metric", "axis", "varied_parameter", "verdict", "x", "x_low", "x_high", "direction", "grid_limited", "points"),
    *("points_missing", "why", "prompt_tokens", "fitted", "worst_loss", "largest_gain", "pairs_factor", "more_seconds"),
)


def token_break_evens(engine: Engine, sweep: str, metric: str) -> "pd.DataFrame":
    """Rows of the view `break_even` along the tokens by one metric, with the columns of conditions and what words need."""
    import pandas as pd

    view = TABLES["break_even"]
    columns = [view.c[name] for name in (*CONDITION_COLUMNS, *_FIGURES)]
    rows = select(*columns).where(view.c.sweep == sweep, view.c.metric == metric, view.c.axis == "tokens")
    with reading(engine) as connection:
        found = connection.execute(rows.order_by(view.c.method, view.c.params, view.c.x))
        return pd.DataFrame.from_records([tuple(row) for row in found], columns=list(found.keys()), coerce_float=True)
