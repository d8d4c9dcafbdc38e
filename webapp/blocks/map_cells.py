"""Cells of the break-even map: the axes that a sweep offers, and for each pair of their values the
break-even there.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from store.rows.frames import rows_of
from sweeps.analysis.rows import ClaimRow
from sweeps.model.identity import canonical
from sweeps.text.curves import alike, break_even_cell, earliest
from webapp.charts.break_even_map import with_colors
from webapp.display.arm_style import QUALIFIERS, label_arms

MAP_AXES: Mapping[str, str] = {
    "arm": "Arm",
    "method": "Method",
    "batch_size": "Batch",
    "runtime": "Runtime",
    "dtype": "Dtype",
    "model": "Model",
    "threads": "Threads",
    "device_name": "Device",
    "attention": "Attention",
    "kv_cache": "KV cache",
    "new_tokens": "New tokens",
    "data": "Data",
    "decoding": "Decoding",
    "weights": "Weights",
    "host": "Host",
    "seed": "Seed",
    "exclusive": "Holds",
    "inputs": "Inputs",
    "against": "Against",
}
"""Columns that may be an axis, in the order in which they are preferred, with their titles."""
WITH_DEVICE = ("environment", "host", "threads", "spare_cores", "wait_policy", "pinning")
"""What may differ between the values of an axis of devices or hosts."""
MAX_CELLS = 1200
"""Cells that a map shows; more are counted."""


def axes_of(curves: pd.DataFrame) -> list[str]:
    """The axes along which these rows of `store.read.curves` differ, in the order of
    `MAP_AXES`, arms in any case.

    Where nothing else varies the model is one, so that a map has columns.
    """
    columns = {"against": "baseline_id", "arm": "params"}
    found = [
        name
        for name in MAP_AXES
        if name == "arm" or curves[columns.get(name, name)].nunique(dropna=False) > 1
    ]
    return found if set(found) - {"arm", "method"} else [*found, "model"]


def label_curves(curves: pd.DataFrame, axes: Sequence[str]) -> pd.DataFrame:
    """With the labels `arm` and `against`; what an axis states already is left out of the labels of
    arms.
    """
    shown = [name for name in QUALIFIERS if name in axes]
    plain = curves.assign(**dict.fromkeys(shown))
    plain["params"] = plain["params"].map(lambda params: _without(params, shown))
    labelled, _ = label_arms(plain, plain)
    return labelled.assign(**{name: curves[name] for name in shown})


def in_scope(curves: pd.DataFrame, fixed: Mapping[str, Any], axes: Sequence[str]) -> pd.DataFrame:
    """The curves with the fixed values of a scope, but for those along an axis and what differs
    with it.
    """
    columns = {"against": "baseline_id"}
    free = {columns.get(name, name) for name in axes}
    free |= set(WITH_DEVICE) if free & {"device_name", "host"} else set()
    kept = pd.Series(data=True, index=curves.index)
    for name, value in fixed.items():
        if name in curves and name not in free:
            kept &= (
                curves[name].isna()
                if value is None or pd.isna(value)
                else curves[name].astype(str) == str(value)
            )
    return curves[kept]


def map_frame(curves: pd.DataFrame, across: str, down: str) -> pd.DataFrame:
    """A row for each cell: `column`, `row`, `label` (of its arm), `sentence`, `reason`, and how it
    is drawn (`with_colors`).

    Of several arms in a cell the one that pays from the fewest tokens on is shown; of several
    curves of one arm what they agree on.
    """
    places: dict[tuple[str, str], dict[str, dict[tuple[str, str, str], list[ClaimRow]]]] = {}
    claims = rows_of(curves, ClaimRow)
    for curve, claim in zip(curves.itertuples(), claims, strict=True):
        at = value_text(getattr(curve, across)), value_text(getattr(curve, down))
        here = places.setdefault(at, {}).setdefault(str(curve.arm), {})
        here.setdefault((str(curve.curve_id), str(curve.environment), str(curve.host)), []).append(
            claim
        )
    rows, found = [], []
    for (column, row), arms in places.items():
        cells = [
            alike([break_even_cell(one) for one in several.values()]) for several in arms.values()
        ]
        place = earliest(cells)
        name, several = list(arms.items())[place]
        label = name + (f" (of {len(arms)} arms the one that pays first)" if len(arms) > 1 else "")
        why = str(next(iter(several.values()))[0].why)
        rows.append({"column": column, "row": row, "label": label, "reason": why})
        found.append(cells[place])
    return with_colors(pd.DataFrame(rows, columns=["column", "row", "label", "reason"]), found)


def values_of(curves: pd.DataFrame, axis: str) -> list[str]:
    """The values along an axis, numbers by size."""
    values = curves[axis].dropna().unique()
    known = sorted(values) if curves[axis].dtype.kind in "iuf" else sorted(values, key=str)
    return [value_text(value) for value in known] + (
        [value_text(None)] if curves[axis].isna().any() else []
    )


def value_text(value: Any) -> str:
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "none"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _without(params: str | None, names: Sequence[str]) -> str | None:
    """Parameters without overrides that an axis states."""
    if not params or not names:
        return params
    value = json.loads(params)
    if not isinstance(value, list):
        return canonical({key: own for key, own in value.items() if key not in names})
    return canonical(
        [
            step
            if "method" in step
            else {key: own for key, own in step.items() if key not in names}
            for step in value
        ]
    )
