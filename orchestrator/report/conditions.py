"""Conditions and break-evens in words: the titles of sections and the sentences on curves."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from sweeps.curve_labels import describe_break_even, token_unit
from sweeps.flags import split_flags, wrong
from sweeps.number_format import is_missing
from workers.methods.arm_labels import params_label

FIELD_AXES = ("batch_size", "threads")
"""Axes that are numbers of the condition, the size being fixed."""
_NAMED = (("model", "{}"), ("batch_size", "batch {:.0f}"), ("threads", "{:.0f} threads"), ("baseline", "against {}"))
"""Columns that are named where they differ between curves."""


def curve_label(row: Any) -> str:
    """The arm of a row of `break_even`; a parameter that varies is named without a value, and with another number the size."""
    if is_missing(row.varied_parameter):
        sizes = ((row.image_size, "px"), (row.prompt_tokens, "prompt tokens")) if row.axis in FIELD_AXES else ()
        return ", ".join([params_label(row.method, row.params), *(f"{v:.0f} {unit}" for v, unit in sizes if not is_missing(v))])
    return f"{params_label(row.method, row.params, without=row.varied_parameter)}, {row.varied_parameter} varies"


def distinctions(row: Any, among: pd.DataFrame) -> Iterator[str]:
    """What distinguishes the curve of a row from those of other rows of the view: model, batch, threads, baseline."""
    for name, form in _NAMED:
        value = getattr(row, name)
        if name != getattr(row, "axis", "") and among[name].nunique() > 1 and not is_missing(value):
            yield form.format(value)


def shown_curves(break_evens: pd.DataFrame) -> pd.DataFrame:
    """Rows of `break_even` without what repeats others: along the image size, and the parameter where it saves GMACs."""
    saved = set(break_evens.loc[break_evens["axis"] == "gmacs_saved", "curve_id"])
    repeated = (break_evens["axis"] == "parameter") & break_evens["curve_id"].isin(saved)
    return break_evens[~repeated & (break_evens["axis"] != "image_size")]


def break_even_sentence(rows: Sequence[Any], points: pd.DataFrame) -> str:
    """The break-even of one curve along one axis, in the words of the web app.

    `rows` are those of the view `break_even`, `points` those of the view `speedup` in which the curve's own are looked for.
    """
    return describe_break_even(rows, token_unit(rows[0]), _measured(rows[0], points))


def break_even_line(rows: Sequence[Any], points: pd.DataFrame) -> str:
    """The sentence with its reason."""
    return f"{break_even_sentence(rows, points)}. {rows[0].why}"


def _measured(curve: Any, points: pd.DataFrame) -> tuple[float, float] | None:
    """The smallest and the largest x of a curve along a size, but for points wrong by a flag; `None` where they are not known."""
    column = {"tokens": "tokens", "gmacs": "gmacs_baseline"}.get(curve.axis)
    if column is None:
        return None
    own = points
    for name in ("curve_id", "environment", "host", "metric"):
        own = own[own[name] == getattr(curve, name)]
    right = own[[not wrong(split_flags(flags)) for flags in own["flags"]]]
    x = (right if len(right) else own)[column].dropna()
    return (float(x.min()), float(x.max())) if len(x) else None
