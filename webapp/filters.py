"""Widgets that narrow a frame; the choices are query parameters of the address, so that a view can be shared as a link."""

from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd
import streamlit as st

from sweeps.metrics import METRICS
from sweeps.number_format import AXIS_LABELS, count
from webapp import texts
from webapp.axis_curves import Axis

FILTERS: Mapping[str, str] = {
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


def choose_sweep(names: list[str]) -> str:
    """The sweep to show on all pages: the one in the address, else the first name."""
    return st.selectbox("Sweep", names, key="sweep", bind="query-params")


def chosen_sweep() -> str:
    """The sweep that was chosen with `choose_sweep`."""
    return str(st.session_state["sweep"])


def choose_metric(points: pd.DataFrame) -> str:
    """The chosen metric; there is no widget if the points have one metric only."""
    names = {METRICS[name].label: name for name in texts.metrics_in(points["metric"])}
    return names[_choose_one("Speed-up of the", list(names), "metric")]


def choose_points(points: pd.DataFrame, axes: Sequence[Axis]) -> tuple[pd.DataFrame, Axis]:
    """The chosen rows, and the chosen one of `axes`.

    There is a widget for each column with several values, and for the axes if there are several; nothing chosen means all.
    """
    columns = [column for column in FILTERS if points[column].nunique() > 1]
    axis_names = {AXIS_LABELS[axis].title: axis for axis in axes}
    first = int(len(axes) > 1)
    if not columns and not first:
        return points, axes[0]
    places = st.columns([4] * first + [3] * max(len(columns[:4]), 4), vertical_alignment="bottom")
    with places[0]:
        axis = axis_names[_choose_one("Along", list(axis_names), "axis", width="stretch")]
    for number, column in enumerate(columns):
        options = [str(value) for value in sorted(points[column].dropna().unique())]
        with places[first + number % (len(places) - first)]:
            chosen = st.multiselect(FILTERS[column], options, key=column, bind="query-params", placeholder="All")
        if chosen:
            points = points[points[column].astype(str).isin(chosen)]
    return points, axis


def _choose_one(label: str, options: list[str], key: str, width: Literal["content", "stretch"] = "content") -> str:
    """One of the options, the first by default; there is no widget for one option."""
    if len(options) == 1:
        return options[0]
    chosen = st.segmented_control(label, options, default=options[0], required=True, key=key, bind="query-params", width=width)
    return str(chosen) if chosen in options else options[0]


def choose_flagged(number: int) -> bool:
    """Whether to show the flagged points, of which there are `number`; there is no widget if there are none."""
    return number > 0 and st.toggle(f"Show {count(number, 'flagged point')}", key="flagged", bind="query-params")


def choose_references(number: int) -> bool:
    """Whether to draw the published points beside the measured ones; there is no widget if the store holds none of these models."""
    return number > 0 and st.toggle(f"Show {count(number, 'published point')}", key="references", bind="query-params")
