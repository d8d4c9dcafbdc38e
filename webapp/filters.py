"""Filters: one row of choices that narrows a frame; the choices live in the address, so that a view can be shared as a link."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from webapp import texts
from webapp.charts.scales import Axis
from webapp.texts import counted

COLUMNS: Mapping[str, str] = {
    "model": "Model",
    "device_name": "Device",
    "host": "Host",
    "batch_size": "Batch size",
    "dtype": "Dtype",
    "method": "Method",
    "weights": "Weights",
    "threads": "Threads",
    "attention": "Attention",
    "runtime": "Runtime",
    "kv_cache": "KV cache",
    "against": "Against",
}
"""Column of the points and its label."""

AXES: Mapping[Axis, str] = {"tokens": "tokens", "gmacs": "GMACs", "gmacs_saved": "GMACs saved"}


def choose_sweep(names: list[str]) -> str:
    """Asks which sweep to show, for all pages; the first name unless the address says otherwise."""
    return st.selectbox("Sweep", names, key="sweep", bind="query-params")


def chosen_sweep() -> str:
    """What `choose_sweep` was told."""
    return str(st.session_state["sweep"])


def choose_metric(points: pd.DataFrame) -> str:
    """The metric that the reader asks for; not asked where there is one."""
    known = texts.metrics(points["metric"])
    if len(known) == 1:
        return known[0]
    named = {texts.METRIC.get(name, name): name for name in known}
    chosen = st.segmented_control(
        "Speed-up of the", list(named), default=next(iter(named)), required=True, key="metric", bind="query-params"
    )
    return named.get(str(chosen), known[0])


def choose(points: pd.DataFrame, axes: Sequence[Axis]) -> tuple[pd.DataFrame, Axis]:
    """The rows and the axis, one of `axes`, that the reader asks for.

    A column gets a choice only if it holds several values, and so do the axes; nothing chosen means all.
    """
    asked = [column for column in COLUMNS if points[column].nunique() > 1]
    axis, first = axes[0], int(len(axes) > 1)
    if not asked and not first:
        return points, axis
    places = st.columns([4] * first + [3] * max(len(asked[:4]), 4), vertical_alignment="bottom")
    if first:
        with places[0]:
            axis = _axis(axes)
    for number, column in enumerate(asked):
        options = [str(value) for value in sorted(points[column].dropna().unique())]
        with places[first + number % (len(places) - first)]:
            chosen = st.multiselect(COLUMNS[column], options, key=column, bind="query-params", placeholder="All")
        if chosen:
            points = points[points[column].astype(str).isin(chosen)]
    return points, axis


def _axis(axes: Sequence[Axis]) -> Axis:
    options = [AXES[axis] for axis in axes]
    chosen = st.segmented_control(
        "Along", options, default=options[0], required=True, key="axis", bind="query-params", width="stretch"
    )
    return next((axis for axis in axes if AXES[axis] == chosen), axes[0])


def choose_flagged(number: int) -> bool:
    """Whether to show the flagged points, of which there are `number`; not asked if there are none."""
    return number > 0 and st.toggle(f"Show {counted(number, 'flagged point')}", key="flagged", bind="query-params")
