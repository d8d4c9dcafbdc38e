"""Along: the points and break-evens of the curves along one axis; along the MACs saved one parameter moves at a fixed size."""

import json
from typing import Any

import pandas as pd

from store.derive.savings_curves import flat
from webapp import arm_style
from webapp.charts.scales import Axis

SAVED = "gmacs_saved"
SIZE = ("image_size", "prompt_tokens")
"""Columns that move along the other axes, and are fixed along this one."""
FIXED = (
    *(
        "metric",
        "method",
        "model",
        "weights",
        "environment",
        "host",
        "batch_size",
        "threads",
        "seed",
        "dtype",
        "attention",
        "runtime",
    ),
    *("baseline", "data", "new_tokens", "kv_cache", "decoding", "exclusive", *SIZE),
)
"""Columns that a point has in common with its curve along the MACs saved."""


def along(points: pd.DataFrame, break_evens: pd.DataFrame, axis: Axis) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What is drawn along `axis`: the points that lie on a curve, and the break-evens of these curves.

    Along the MACs saved a curve is one method with one parameter moving, as the view `break_even` says: its points are named
    after it, and get the column `gmacs_saved`. A point may lie on several curves. Frames that were made so are left as they are.
    Points whose MACs are not known lie nowhere along the MACs.
    """
    of_axis = break_evens[(break_evens["axis"] == axis) & break_evens["metric"].isin(points["metric"].unique())]
    if axis == "gmacs":
        return points[points["gmacs_baseline"].notna()], of_axis
    if axis != SAVED or SAVED in points.columns:
        return points, of_axis
    curves = of_axis.assign(params=[_rest(str(row.params), str(row.varies)) for row in of_axis.itertuples()])
    found = []
    for name in curves["varies"].unique():
        keys = {_key(row) for row in curves[curves["varies"] == name].itertuples()}
        rest = points.assign(params=[_rest(str(params), str(name)) for params in points["params"]], varies=name)
        found.append(rest[[_key(row) in keys for row in rest.itertuples()]])
    chosen = pd.concat(found, ignore_index=True) if found else points.iloc[:0].assign(varies="")
    cost = chosen["gmacs"] + chosen["gmacs_method"].fillna(0)
    drawn = chosen.assign(**{SAVED: 1 - cost / chosen["gmacs_baseline"]})
    named = arm_style.named(*(frame.drop(columns="arm", errors="ignore") for frame in (drawn, curves)), doses=False)
    points, curves = (
        frame.assign(arm=[f"{arm}, {_said(name)} moving" for arm, name in zip(frame["arm"], frame["varies"], strict=True)])
        for frame in named
    )
    return points, curves


def _rest(params: str, varies: str) -> str:
    """Parameters without the one that moves; no text where it is not among them."""
    asked = flat(json.loads(params) if params else {})
    if varies not in asked:
        return ""
    return json.dumps({name: value for name, value in asked.items() if name != varies}, sort_keys=True)


def _said(varies: str) -> str:
    return varies.rpartition(".")[2].replace("_", " ")


def _key(row: Any) -> tuple[str, ...]:
    """What a point and its curve have in common; missing values are alike, and 64.0 is 64."""
    values = (getattr(row, name) for name in FIXED)
    known = ["" if pd.isna(value) else f"{value:g}" if isinstance(value, int | float) else str(value) for value in values]
    return (str(row.params), *known)
