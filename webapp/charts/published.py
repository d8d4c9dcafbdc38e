"""Published points beside measured ones: hollow marks, part of no curve, ratio or break-even."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from sweeps.geometry.vit_catalogue import timm_name
from webapp.display.axis_curves import Axis

TONES = ("#5c6069", "#9a6324", "#808591", "#b08d57")
"""Outlines of published points by source: muted, so that measured arms stand out."""
HOVER_PUBLISHED = (
    ("published", "Source", None),
    ("place", "Where", None),
    ("label", "Arm", None),
    ("setting", "Setting", None),
    ("device_name", "Device", None),
    ("batch_size", "Batch", "d"),
    ("speedup", "Speed-up, published", ".3f"),
)
"""Column, title and number format of the hover text."""
NOTE_PUBLISHED = "Hollow: published, measured elsewhere."


def published_points(
    references: pd.DataFrame | None, points: pd.DataFrame, axis: Axis
) -> pd.DataFrame:
    """Rows of the view `reference` of the models and batches of these points that have a place `x`
    along the axis.

    Models are compared without a tag of weights; a reference that states no batch goes with any.
    Their source is in `published`.
    """
    if references is None or references.empty:
        columns = ("x", "speedup", "published", "bare", "batch_size", "image_size")
        return pd.DataFrame({name: pd.Series(dtype=float) for name in columns})
    gmacs, baseline = references["gmacs"].astype(float), references["gmacs_baseline"].astype(float)
    place = {
        "tokens": references["tokens"].astype(float),
        "gmacs": baseline,
        "gmacs_saved": 1 - gmacs / baseline,
    }[axis]
    found = references.assign(
        x=place, published=references["environment"], bare=references["model"]
    )
    known = found["bare"].isin({bare_model(model) for model in points["model"]})
    batches = found["batch_size"].isna() | found["batch_size"].isin(set(points["batch_size"]))
    return found[known & batches].dropna(subset=["x", "speedup"])


def bare_model(name: str) -> str:
    """A model of timm without the hub's prefix and the tag of its weights."""
    return timm_name(name).partition(".")[0]


def of_panel(found: pd.DataFrame, about: Mapping[str, Any]) -> pd.DataFrame:
    """The published points of a panel's model and batch and, where all of its points are of one
    size, of that size.
    """
    kept: pd.DataFrame = found[
        (found["bare"] == bare_model(about["model"]))
        & (found["batch_size"].isna() | (found["batch_size"] == about["batch_size"]))
    ]
    size = about.get("image_size")
    if size is not None and not pd.isna(size):
        kept = kept[kept["image_size"] == size]
    return kept


def published_marks(found: pd.DataFrame) -> alt.Chart:
    """Hollow marks with their source as legend and hover text; the caller adds x and y."""
    legend = alt.Legend(
        title=None, orient="top", symbolType="circle", symbolFillColor="transparent", labelLimit=0
    )
    known = [entry for entry in HOVER_PUBLISHED if found[entry[0]].notna().any()]
    hover = [
        alt.Tooltip(f"{name}:{'Q' if form else 'N'}", title=title, format=form or alt.Undefined)
        for name, title, form in known
    ]
    made: alt.Chart = (
        alt.Chart(found)
        .mark_point(shape="circle", filled=False, size=95, strokeWidth=2, opacity=1)
        .encode(
            stroke=alt.Stroke("published:N", scale=alt.Scale(range=list(TONES)), legend=legend),
            tooltip=hover,
        )
    )
    return made


def with_rows(found: pd.DataFrame) -> pd.DataFrame:
    """Published points with the label of a `row` of their own, as a forest plot has: `published: …,
    ToMe, AugReg: 1.641×`.
    """
    words = [
        ", ".join(
            str(part)
            for part in (point["published"], point["label"], point["setting"])
            if not pd.isna(part)
        )
        for point in found.to_dict("records")
    ]
    labels = [
        f"{word}: {speedup:.3f}×" for word, speedup in zip(words, found["speedup"], strict=True)
    ]
    return found.assign(
        row=[label + " " * labels[:place].count(label) for place, label in enumerate(labels)]
    )
