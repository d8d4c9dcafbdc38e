"""Kernels and operators of two profiles side by side, from the view `kernel`."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, select

from store.rows.transactions import reading

if TYPE_CHECKING:
    import pandas as pd

_IDS_AT_ONCE = 1000


def activity_differences(engine: Engine, baseline: str, arm: str) -> "pd.DataFrame":
    """Each kernel, copy or operator of two profiles, by their `profile_id`, largest difference of
    time first.

    Columns: `activity`, `name`, `baseline_ms`, `arm_ms`, `difference_ms`, `baseline_count` and
    `arm_count`, all of one forward; 0 where one of both does not run it.
    """
    import pandas as pd

    from store.views.public import TABLES  # which imports the models

    kernel = TABLES["kernel"]
    columns = [kernel.c[name] for name in ("profile_id", "activity", "name", "ms", "count")]
    with reading(engine) as connection:
        found = connection.execute(select(*columns).where(kernel.c.profile_id.in_((baseline, arm))))
        rows = pd.DataFrame.from_records([tuple(row) for row in found], columns=list(found.keys()))
    sides = {
        side: rows[rows["profile_id"] == profile_id]
        .groupby(["activity", "name"])[["ms", "count"]]
        .sum()
        .add_prefix(f"{side}_")
        for side, profile_id in (("baseline", baseline), ("arm", arm))
    }
    both = sides["baseline"].join(sides["arm"], how="outer").fillna(0.0).reset_index()
    both = both.assign(difference_ms=both["arm_ms"] - both["baseline_ms"])
    order = both["difference_ms"].abs().sort_values(ascending=False, kind="stable").index
    return both.loc[order].reset_index(drop=True)


def operator_rows(engine: Engine, profile_ids: Collection[str]) -> "pd.DataFrame":
    """The operators of profiles, by their `profile_id`: of the view `kernel` those columns that
    stories read.
    """
    import pandas as pd

    from store.views.public import TABLES

    kernel, names = TABLES["kernel"], ("profile_id", "name", "count", "ms", "gmacs")
    columns, ids = [kernel.c[name] for name in names], sorted(set(profile_ids))
    rows: list[tuple[Any, ...]] = []
    with reading(engine) as connection:
        for start in range(0, len(ids), _IDS_AT_ONCE):
            own = kernel.c.profile_id.in_(ids[start : start + _IDS_AT_ONCE])
            rows += [
                tuple(row)
                for row in connection.execute(
                    select(*columns).where(own, kernel.c.activity == "operator")
                )
            ]
    return pd.DataFrame.from_records(rows, columns=list(names))
