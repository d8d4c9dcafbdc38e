"""Ceilings beside points: the speed-up of an arm that reaches the same tokens by cutting them for
nothing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sweeps.model.flags import split_flags, wrong

if TYPE_CHECKING:
    import pandas as pd

CEILING_COLUMNS = ("ceiling", "ceiling_low", "ceiling_high", "ceiling_id")
_CONDITION = (
    *(
        "metric",
        "model",
        "weights",
        "batch_size",
        "dtype",
        "attention",
        "runtime",
        "threads",
        "wait_policy",
        "pinning",
    ),
    *("spare_cores", "exclusive", "inputs", "baseline_id", "environment", "host"),
)
"""Equal for points that a ceiling bounds, where they have these columns."""
_NO_BOUND = ("insufficient", "quarantined")
_TOKENS = ("tokens", "tokens_final", "gmacs")
"""GMACs of the network and tokens at the end follow from the tokens of each block, and are equal
where these are."""


def with_ceilings(points: "pd.DataFrame", is_ceiling: Callable[[str], bool]) -> "pd.DataFrame":
    """Points with `ceiling`: the speed-up of an arm that reaches the same tokens by cutting under
    the same condition, if any.

    `ceiling_low` and `ceiling_high` are the ends of its interval, `ceiling_id` its comparison.
    `points` are rows of the view `speedup`; `is_ceiling` is whether a method only cuts. An answer
    from which nothing follows (too few pairs, a slowed machine, a flag) has its comparison and no
    numbers.
    """
    import pandas as pd  # imported late: a command that prints no points does not need it

    same = [name for name in (*_CONDITION, *_TOKENS) if name in points]
    keys = list(
        points[same]
        .astype(object)
        .where(points[same].notna(), None)
        .itertuples(index=False, name=None)
    )
    ends = ["speedup", "speedup_low", "speedup_high", "comparison_id"]
    judged = points.reindex(columns=["verdict", "flags"]).itertuples(index=False, name=None)
    counted = [
        verdict not in _NO_BOUND and not wrong(split_flags(flags)) for verdict, flags in judged
    ]
    figures = points.reindex(columns=ends[:3]).where(
        pd.DataFrame(dict.fromkeys(ends[:3], counted), index=points.index)
    )
    values = figures.assign(comparison_id=points.get("comparison_id")).itertuples(
        index=False, name=None
    )
    cut = points["method"].map(is_ceiling).astype(bool)
    known = {
        key: value for key, value, only_cuts in zip(keys, values, cut, strict=True) if only_cuts
    }
    found = [known.get(key, (None,) * len(ends)) for key in keys]
    ceilings = pd.DataFrame(found, index=points.index, columns=list(CEILING_COLUMNS), dtype=object)
    return pd.concat([points, ceilings.astype(dict.fromkeys(CEILING_COLUMNS[:3], float))], axis=1)
