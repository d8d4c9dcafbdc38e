"""Axes of curves, and the points and break-evens along one; along the MACs saved one parameter
varies at a fixed size.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from sweeps.model.identity import canonical
from sweeps.model.kinds import THREAD_FIELDS
from webapp.display import arm_style

Axis = Literal["tokens", "gmacs", "gmacs_saved"]


class Size(NamedTuple):
    """How the size of an input is named."""

    unit: str
    tokens: str
    """Title of the axis of its tokens."""
    token_unit: str
    """After a number of tokens in a sentence."""
    one_size: str
    """Where only one was measured."""


SIZES: Mapping[str, Size] = {
    "image_size": Size("px", "Patch tokens per image", "tokens", "size"),
    "prompt_tokens": Size(
        "tokens of the prompt", "Tokens of the prompt", "prompt tokens", "length of the prompt"
    ),
}
"""Columns of the views with the size of an input: a row has a value in one. They are fixed along
the MACs saved alone."""
FIXED = (
    *(
        "metric",
        "method",
        "model",
        "weights",
        "environment",
        "host",
        "batch_size",
        *THREAD_FIELDS,
        "seed",
        "dtype",
        "attention",
    ),
    *(
        "runtime",
        "baseline",
        "data",
        "new_tokens",
        "kv_cache",
        "decoding",
        "exclusive",
        "inputs",
        *SIZES,
        "axis_values",
    ),
)
"""Columns that a point has in common with its curve along the MACs saved."""


def free_axis(points: pd.DataFrame) -> str | None:
    """What the tokens of these points are, of models from files; `None` of others."""
    named = [] if "x_axis" not in points else points["x_axis"].dropna().tolist()
    return str(named[0]) if named else None


def size_of(points: pd.DataFrame) -> Size:
    """How the size of the inputs of these points is named."""
    if (name := free_axis(points)) is not None:
        return Size(name, name, name, name)
    return next(
        (size for column, size in SIZES.items() if points[column].notna().any()),
        SIZES["image_size"],
    )


def curves_along(
    points: pd.DataFrame, break_evens: pd.DataFrame, axis: Axis
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What is drawn along `axis`: the points that lie on a curve, and the break-evens of these
    curves.

    Along the MACs saved a curve is one method with one parameter varied, as in the view
    `break_even`: its points are labelled by it. A point may lie on several curves. Frames that this
    function returned stay as they are. Points whose MACs are not known lie on no curve along the
    MACs.
    """
    of_axis = break_evens[
        (break_evens["axis"] == axis) & break_evens["metric"].isin(points["metric"].unique())
    ]
    if axis == "gmacs":
        return points[points["gmacs_baseline"].notna()], of_axis
    if axis != "gmacs_saved" or "varied_parameter" in points.columns:
        return points, of_axis
    curves = of_axis.assign(
        params=list(map(_without, of_axis["params"], of_axis["varied_parameter"]))
    )
    found = [points.iloc[:0].assign(varied_parameter="")]
    for name in curves["varied_parameter"].unique():
        keys = {_key(row) for row in curves[curves["varied_parameter"] == name].itertuples()}
        others = points.assign(
            params=[_without(params, name) for params in points["params"]], varied_parameter=name
        )
        found.append(others[[_key(row) in keys for row in others.itertuples()]])
    drawn = pd.concat([frame for frame in found if len(frame)] or found, ignore_index=True)
    labelled = arm_style.label_arms(
        *(frame.drop(columns="arm", errors="ignore") for frame in (drawn, curves))
    )
    points, curves = (
        frame.assign(
            arm=[
                f"{arm}, {name.split('.')[-1]} varied"
                for arm, name in zip(frame["arm"], frame["varied_parameter"], strict=True)
            ]
        )
        for frame in labelled
    )
    return points, curves


def _without(params: str | None, varied: str) -> str:
    """Parameters without the one that varies, as text; empty where it is not among them."""
    try:
        return canonical(_removed(json.loads(params) if params else {}, varied.split(".")))
    except (LookupError, TypeError, ValueError):
        return ""


def _removed(value: Any, path: Sequence[str]) -> Any:
    """A value without what lies at `path`, and without a mapping that this empties. Raises
    `LookupError` if nothing lies there.
    """
    name, *inner = path
    if isinstance(value, list):
        place = int(name)
        return [*value[:place], _removed(value[place], inner), *value[place + 1 :]]
    found = value[name]
    left = _removed(found, inner) if inner else {}
    others = {key: own for key, own in value.items() if key != name}
    return others | {name: left} if left else others


def _key(row: Any) -> tuple[str, ...]:
    """What a point and its curve have in common; missing values are alike, and 64.0 is 64."""
    values = (getattr(row, name) for name in FIXED)
    known = [
        "" if pd.isna(value) else f"{value:g}" if isinstance(value, int | float) else str(value)
        for value in values
    ]
    return (str(row.params), *known)
