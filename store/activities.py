"""Kernels and operators of two profiles side by side, from the view `kernel`."""

from typing import TYPE_CHECKING

from sqlalchemy import Engine, select

from store.transactions import reading

if TYPE_CHECKING:
    import pandas as pd


def activity_differences(engine: Engine, baseline: str, arm: str) -> "pd.DataFrame":
    """Each kernel, copy or operator of two profiles, by their `profile_id`, largest difference of time first.

    Columns: `activity`, `name`, `baseline_ms`, `arm_ms`, `difference_ms`, `baseline_count` and `arm_count`, all of one forward;
    0 where one of both does not run it.
    """
    import pandas as pd

    from store.views.public import TABLES  # which imports the models

    kernel = TABLES["kernel"]
    columns = [kernel.c[name] for name in ("profile_id", "activity", "name", "ms", "count")]
    with reading(engine) as connection:
        found = connection.execute(select(*columns).where(kernel.c.profile_id.in_((baseline, arm))))
        rows = pd.DataFrame.from_records([tuple(row) for row in found], columns=list(found.keys()))
    sides = {
        side: rows[rows["profile_id"] == profile_id].groupby(["activity", "name"])[["ms", "count"]].sum().add_prefix(f"{side}_")
        for side, profile_id in (("baseline", baseline), ("arm", arm))
    }
    both = sides["baseline"].join(sides["arm"], how="outer").fillna(0.0).reset_index()
    both = both.assign(difference_ms=both["arm_ms"] - both["baseline_ms"])
    order = both["difference_ms"].abs().sort_values(ascending=False, kind="stable").index
    return both.loc[order].reset_index(drop=True)
