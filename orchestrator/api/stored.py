"""Comparisons in a store: saved as a sweep of kind `call`, and the public views as data frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from store.open.engine import connect, connect_readonly
from store.read.queries import view_rows
from store.views.public import VIEWS
from store.write.record import record_imported
from store.write.submission import NewSweep, store_arm_labels, submit_sweep
from sweeps.errors import did_you_mean
from sweeps.model.outcome import Outcome

if TYPE_CHECKING:
    import pandas as pd


def save_outcomes(
    outcomes: Sequence[Outcome], names: Sequence[str], url: str | Path, sweep: str | None = None
) -> str:
    """Record outcomes of the same arms as a sweep, whose name is returned; by default it names the
    arms. Saving them again changes nothing. Raises `StoreError`.
    """
    name = sweep or " vs ".join(reversed(names))
    jobs = {outcome.job.visited_id: outcome.job for outcome in outcomes}
    engine = connect(str(url))
    record_imported(engine, outcomes)
    question = f"Is {' or '.join(names[1:])} faster than {names[0]}?"
    new = NewSweep(name, f"# Compared by breakeven: {question}\n", question)
    submit_sweep(engine, new, jobs.values(), [])
    labels = zip(outcomes[0].job.arms[1:], names[1:], strict=True)
    store_arm_labels(engine, {arm.arm_id: label for arm, label in labels})
    engine.dispose()
    return name


class StoredResults:
    """A store whose public views (docs/views.md) are methods that return data frames:
    `open("breakeven.db").speedup()`.
    """

    def __init__(self, url: str | Path) -> None:
        """Raises `StoreError` for what is not a store."""
        self._engine = connect_readonly(str(url))

    def __dir__(self) -> list[str]:
        return sorted(VIEWS)

    def __getattr__(self, name: str) -> Callable[[], pd.DataFrame]:
        if name not in VIEWS:
            raise AttributeError(f"there is no view {name!r}{did_you_mean(name, VIEWS)}")
        return partial(view_rows, self._engine, name)
