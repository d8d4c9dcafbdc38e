"""Conditions and break-evens in words: the titles of sections and the sentences on curves."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from sweeps.number_format import image_text, is_missing
from sweeps.text.curves import LEFT_OUT_SENTENCE, describe_break_even, token_unit
from workers.methods.arm_labels import params_label

FIELD_AXES = ("batch_size", "threads")
"""Axes that are numbers of the condition, the size being fixed."""
_NAMED = (
    ("model", "{}"),
    ("batch_size", "batch {:.0f}"),
    ("threads", "{:.0f} threads"),
    ("baseline", "against {}"),
)
"""Columns that are named where they differ between curves."""


def curve_label(row: Any) -> str:
    """The arm of a row of `break_even`; a parameter that varies is named without a value, and with
    another number the size.
    """
    if is_missing(row.varied_parameter):
        parts = [params_label(row.method, row.params)]
        if row.axis in FIELD_AXES and not is_missing(row.image_size):
            parts.append(image_text(row.image_size, row.image_shape))
        if row.axis in FIELD_AXES and not is_missing(row.prompt_tokens):
            parts.append(f"{row.prompt_tokens:.0f} prompt tokens")
        return ", ".join(parts)
    return (
        f"{params_label(row.method, row.params, without=row.varied_parameter)},"
        f" {row.varied_parameter} varies"
    )


def distinctions(row: Any, among: pd.DataFrame) -> Iterator[str]:
    """What distinguishes the curve of a row from those of other rows of the view: model, batch,
    threads, baseline.
    """
    for name, form in _NAMED:
        value = getattr(row, name)
        if name != getattr(row, "axis", "") and among[name].nunique() > 1 and not is_missing(value):
            yield form.format(value)


def shown_curves(break_evens: pd.DataFrame) -> pd.DataFrame:
    """Rows of `break_even` without what repeats others: along the image size, and the parameter
    where it saves GMACs.
    """
    saved = set(break_evens.loc[break_evens["axis"] == "gmacs_saved", "curve_id"])
    repeated = (break_evens["axis"] == "parameter") & break_evens["curve_id"].isin(saved)
    return break_evens[~repeated & (break_evens["axis"] != "image_size")]


def break_even_sentence(rows: Sequence[Any]) -> str:
    """The break-even of one curve along one axis, its rows of the view `break_even`, in the words
    of the web app.
    """
    return describe_break_even(rows, token_unit(rows[0]))


def break_even_line(rows: Sequence[Any]) -> str:
    """The sentence with its reason, once; points that a flag excludes stand in the sentence."""
    sentence, why = break_even_sentence(rows), str(rows[0].why)
    if why.removesuffix(".").lower() in sentence.lower():
        return f"{sentence}."
    return f"{sentence}. {LEFT_OUT_SENTENCE.sub('', why) if rows[0].points else why}"
