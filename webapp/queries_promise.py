"""What the page Promise reads beside the points of its scope: break-evens along the tokens of a whole sweep."""

import pandas as pd

from store.token_break_evens import token_break_evens
from webapp.queries import kept


def sweep_break_evens(sweep: str, metric: str, url: str | None = None) -> pd.DataFrame:
    """See `store.token_break_evens`."""
    return kept(lambda engine: token_break_evens(engine, sweep, metric), "token_break_evens", sweep, metric, url=url)
