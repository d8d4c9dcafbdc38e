"""Notes on points of a report: what stood out of clocks, load and throttling while they were measured."""

from collections import defaultdict
from collections.abc import Mapping

import pandas as pd

from store.rows.frames import rows_of
from sweeps.model.system_metrics import notes_on, worst
from sweeps.number_format import is_missing

_POINT = ("comparison_id", "environment", "host")


def with_system_notes(points: pd.DataFrame, executions: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `system_notes`: what stands out in the readings of the attempts that count, if anything does.

    `executions` are those of `store.read.queries.execution_rows`; quarantined ones count where there are no others.
    """
    read: dict[tuple[str, str, str], list[tuple[bool, Mapping[str, float]]]] = defaultdict(list)
    for row in rows_of(executions):
        for comparison_id in row.comparison_ids:
            read[comparison_id, row.environment, row.host].append((is_missing(row.quarantine), row.system_metrics))
    notes = {}
    for key, attempts in read.items():
        counted = [readings for counts, readings in attempts if counts] or [readings for _, readings in attempts]
        notes[key] = ", ".join(notes_on(worst(counted)))
    keys = points[list(_POINT)].itertuples(index=False, name=None)
    return points.assign(system_notes=[notes.get(key, "") for key in keys])
