"""Tables of points, as pages show them."""

from collections.abc import Collection, Sequence

import pandas as pd
import streamlit as st

from webapp.display import texts
from webapp.display.columns import column_of

POINT_COLUMNS = (
    "arm",
    "against",
    "model",
    "host",
    "batch_size",
    "image_size",
    "image_shape",
    "prompt_tokens",
    "tokens",
    "new_tokens",
    "kv_cache",
    "gmacs_saved",
    "gmacs_baseline",
    "baseline_ms",
    "arm_ms",
    "speedup",
    "interval",
    "word",
    "pairs",
    "flags",
)
LETTER_PX, WIDEST_PX = 8, 520
"""Pixels of a letter of an arm's label, which Streamlit would cut, and of the widest label."""
LEFT_OUT_IF_EQUAL = ("model", "host", "batch_size", "kv_cache", "against", "flags")
"""Columns of the tables that are left out where all values are equal."""


def point_table(points: pd.DataFrame) -> None:
    """The points as numbers, without empty columns."""
    shown = texts.with_enough_pairs(texts.with_words(points))
    known = [
        name
        for name in POINT_COLUMNS
        if name in shown and (name == "flags" or shown[name].notna().any())
    ]
    show_table(shown, [name for name in known if name != "tokens" or "prompt_tokens" not in known])


def show_table(
    shown: pd.DataFrame, names: Sequence[str], may_be_equal: Collection[str] = ()
) -> None:
    """These columns, but for those that are left out where all values are equal; speed-ups as exact
    as their intervals.
    """
    formats = {"speedup": f"%.{max(texts.SHOWN.digits, *shown['digits'])}f×"}
    chosen = [
        name
        for name in names
        if name not in (*LEFT_OUT_IF_EQUAL, *may_be_equal) or shown[name].nunique() > 1
    ]
    config = {}
    for name in chosen:
        column = column_of(name)
        form = formats.get(name, column.table_format)
        if form:
            config[name] = st.column_config.NumberColumn(
                column.title, format=form, help=column.help
            )
            continue
        width = None
        if name == "arm":
            width = min(LETTER_PX * max(map(len, shown[name])), WIDEST_PX)
        config[name] = st.column_config.TextColumn(column.title, help=column.help, width=width)
    st.dataframe(shown[chosen], column_config=config, hide_index=True, placeholder="–")
