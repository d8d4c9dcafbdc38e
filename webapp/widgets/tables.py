"""Tables of points, as pages show them."""

from collections.abc import Collection, Sequence

import pandas as pd
import streamlit as st

from webapp.display import texts
from webapp.display.columns import column_of
from webapp.queries.quality_frames import QualityOfArms, figures_beside

POINT_COLUMNS = (
    *("arm", "against", "model", "host", "batch_size", "image_size", "image_shape"),
    *("prompt_tokens", "tokens", "new_tokens", "kv_cache"),
    *(
        "gmacs_saved",
        "gmacs_baseline",
        "baseline_ms",
        "arm_ms",
        "speedup",
        "interval",
        "word",
        "pairs",
        "flags",
    ),
)
LETTER_PX, WIDEST_PX = 8, 520
"""Pixels of a letter of an arm's label, which Streamlit would cut, and of the widest label."""
LEFT_OUT_IF_EQUAL = ("model", "host", "batch_size", "kv_cache", "against", "flags")
"""Columns of the tables that are left out where all values are equal."""
QUALITY_COLUMNS = (
    *("arm", "against", "model", "image_size", "image_shape", "prompt_tokens", "batch_size"),
    *("speedup", "interval", "word"),
)
"""Columns of the table of speed and quality, before those of the metric of quality."""
EQUAL_LEFT_OUT = frozenset(
    {
        "model",
        "host",
        "batch_size",
        "kv_cache",
        "against",
        "image_size",
        "image_shape",
        "prompt_tokens",
    }
)
"""Columns of that table that are left out where all values are equal."""


def point_table(points: pd.DataFrame) -> None:
    """The points as numbers, without empty columns."""
    shown = texts.with_enough_pairs(texts.with_words(points))
    known = [
        name
        for name in POINT_COLUMNS
        if name in shown.columns and (name == "flags" or shown[name].notna().any())
    ]
    show_table(shown, [name for name in known if name != "tokens" or "prompt_tokens" not in known])


def speed_and_quality(points: pd.DataFrame, quality: QualityOfArms) -> None:
    """Rows of `with_quality_words`, arms of one baseline together, those without quality last."""
    spec = quality.spec.name
    shown = points.assign(loss=points["loss_text"], unknown=points["worse"].isna())
    shown = shown.sort_values(["unknown", "against", "arm"])
    beside = [name for name in figures_beside(shown) if name != spec]
    columns = [
        *QUALITY_COLUMNS,
        *dict.fromkeys((spec, "loss", *beside)),
        "quality_verdict",
        "control_change",
    ]
    known = [
        name
        for name in columns
        if name in shown and (name == "speedup" or shown[name].notna().any())
    ]
    show_table(shown, known, EQUAL_LEFT_OUT)


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
        number = st.column_config.NumberColumn(column.title, format=form, help=column.help)
        width = (
            min(LETTER_PX * max(map(len, shown[name].astype(str))), WIDEST_PX)
            if name == "arm"
            else None
        )
        config[name] = (
            number
            if form
            else st.column_config.TextColumn(column.title, help=column.help, width=width)
        )
    st.dataframe(shown[chosen], column_config=config, hide_index=True, placeholder="–")
