"""Filters: one row of choices that narrows a frame; the choices live in the address, so that a view can be shared as a link."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from webapp.scales import Axis
from webapp.wording import UNIT, counted

COLUMNS: Mapping[str, str] = {
    "model": "Model",
    "device_name": "Device",
    "batch_size": "Batch size",
    "dtype": "Dtype",
    "method": "Method",
    "weights": "Weights",
    "threads": "Threads",
    "attention": "Attention",
    "runtime": "Runtime",
    "baseline": "Against",
}
"""Column of the view `speedup` and its label."""


def choose_sweep(names: list[str]) -> str:
    """The sweep to show; the first name unless the address says otherwise."""
    return st.selectbox("Sweep", names, key="sweep", bind="query-params")


def narrowed(points: pd.DataFrame) -> pd.DataFrame:
    """The rows that the reader asks for. A column gets a choice only if it holds several values; nothing chosen means all."""
    asked = [column for column in COLUMNS if points[column].nunique() > 1]
    if not asked:
        return points
    places = st.columns(min(len(asked), 4))
    for number, column in enumerate(asked):
        options = [str(value) for value in sorted(points[column].dropna().unique())]
        with places[number % len(places)]:
            chosen = st.multiselect(COLUMNS[column], options, key=column, bind="query-params", placeholder="All")
        if chosen:
            points = points[points[column].astype(str).isin(chosen)]
    return points


def choose_axis() -> Axis:
    """What to draw against."""
    options: list[Axis] = ["tokens", "gmacs"]
    return st.segmented_control(
        "Against",
        options,
        default="tokens",
        required=True,
        format_func=lambda axis: f"Against {UNIT[axis]}",
        key="axis",
        bind="query-params",
        label_visibility="collapsed",
    )


def choose_flagged(number: int) -> bool:
    """Whether to show the flagged points, of which there are `number`; not asked if there are none."""
    return number > 0 and st.toggle(f"Show {counted(number, 'flagged point')}", key="flagged", bind="query-params")
