"""Charts of a cost model: time against work with the fitted lines, and their break-even beside the
measured one.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from sweeps.number_format import is_missing
from webapp.charts.encodings import GREY, with_links
from webapp.charts.roofline_chart import SIDE_COLORS
from webapp.charts.row_labels import plain_rows
from webapp.charts.scales import log_axis

STEPS_OF_LINE = 64
"""Of a line, between the first and the last point."""
_SIDES = ("baseline", "arm")


def cost_chart(
    points: pd.DataFrame, costs: Any, color_of_arm: str = SIDE_COLORS["arm"], height: int = 340
) -> alt.LayerChart | alt.FacetChart:
    """Times of baseline and arm against their work, and fixed cost + cost of work as lines between
    the points, not beyond.

    `points` has two rows for each size: `side` (`baseline` or `arm`), `work` (GMACs or tokens of a
    forward), `ms`, `size` (in words, which a thin line joins) and `in_fit` (whether the fit rests
    on it; others are hollow); with `comparison_id`, `environment` and `host` points link to their
    evidence. `costs` is a row of the view `cost_model`; without a fit only points are drawn. Raises
    `ValueError` without a row.
    """
    drawn = with_links(points.dropna(subset=["work", "ms"]))
    if drawn.empty:
        raise ValueError("no time with its work to draw")
    lines, parts = _lines(drawn[drawn["in_fit"]], costs), drawn.groupby("in_fit", sort=True)
    every = pd.concat([drawn[["work", "ms"]], lines.reindex(columns=["work", "ms"])])
    title = f"{costs.work_unit}s of a forward, of each side its own"
    scale = alt.Scale(type="log", nice=False, padding=14)
    x = alt.X("work:Q", scale=scale, axis=log_axis(every["work"].min(), every["work"].max(), title))
    y = alt.Y(
        "ms:Q",
        scale=scale,
        axis=log_axis(every["ms"].min(), every["ms"].max(), "Time of a forward, ms"),
    )
    colors = alt.Scale(domain=list(_SIDES), range=[SIDE_COLORS["baseline"], color_of_arm])
    color = alt.Color("side:N", scale=colors, legend=alt.Legend(title=None, orient="top"))
    texts = [
        alt.Tooltip("size:N", title="Size"),
        alt.Tooltip("side:N", title="Side"),
        alt.Tooltip("work:Q", title=f"{costs.work_unit}s", format=".3~g"),
        alt.Tooltip("ms:Q", title="ms", format=".3~g"),
    ]
    joined = alt.Chart(drawn[["size", "work", "ms"]]).mark_line(
        color=GREY, strokeWidth=1, opacity=0.6
    )
    joined = joined.encode(x, y, alt.Detail("size:N"))
    fitted = alt.Chart(lines).mark_line(strokeWidth=2).encode(x, y, color)
    marks = [
        alt.Chart(own)
        .mark_point(filled=bool(in_fit), size=70, opacity=1)
        .encode(x, y, color, tooltip=texts)
        for in_fit, own in parts
    ]
    marks = [mark.encode(href="href:N") for mark in marks] if "href" in drawn else marks
    return alt.layer(joined, *([fitted] if len(lines) else []), *marks).properties(height=height)


def _lines(points: pd.DataFrame, costs: Any) -> pd.DataFrame:
    """The fitted times of both sides between their first and their last point; empty where there is
    no fit.
    """
    found = []
    for side, (fixed, work) in zip(
        _SIDES, (("alpha_baseline", "beta_baseline"), ("alpha", "beta")), strict=True
    ):
        own = points.loc[points["side"] == side, "work"]
        if own.empty or is_missing(getattr(costs, fixed)) or is_missing(getattr(costs, work)):
            return pd.DataFrame()
        at = np.geomspace(own.min(), own.max(), STEPS_OF_LINE)
        found.append(
            pd.DataFrame(
                {
                    "side": side,
                    "work": at,
                    "ms": 1e3 * (getattr(costs, fixed) + getattr(costs, work) * at),
                }
            )
        )
    return pd.concat(found, ignore_index=True)


def place_chart(
    places: Sequence[tuple[str, Any, Any, Any]],
    measured: Sequence[float],
    title: str,
    color: str = SIDE_COLORS["arm"],
) -> alt.LayerChart | alt.FacetChart:
    """Break-evens one below the other along an axis of sizes: diamonds on their intervals, arrows
    for bounds.

    `places` are label, x, low and high each; `None` or NaN where not known. `measured` are the
    sizes that were measured. Raises `ValueError` where nothing is known of any.
    """
    named = [
        (label, *(None if is_missing(end) else float(end) for end in ends))
        for label, *ends in places
    ]
    found = pd.DataFrame(named, columns=["label", "x", "low", "high"]).astype(
        {"x": float, "low": float, "high": float}
    )
    nothing = found[["x", "low", "high"]].isna().all(axis="columns")
    known = found[~nothing]
    if known.empty:
        raise ValueError("no break-even, neither predicted nor measured")
    span, ticks = [min(measured), max(measured)], sorted(set(measured))
    scale = alt.Scale(type="log", base=2, domain=span, nice=False, padding=10)
    axis = alt.Axis(title=title, values=ticks, format="d", labelOverlap="greedy")
    rows = alt.Scale(domain=list(found["label"]))
    y = alt.Y("label:N", scale=rows, title=None, axis=plain_rows())
    titles = {"x": "at", "low": "at least", "high": "at most"}
    texts = [
        alt.Tooltip("label:N", title="Break-even"),
        *(
            alt.Tooltip(f"{name}:Q", title=f"{text}, tokens", format=",.0f")
            for name, text in titles.items()
        ),
    ]
    layers = []
    both = known.dropna(subset=["low", "high"])
    if len(both):
        bar = alt.Chart(both).mark_rule(strokeWidth=6, opacity=0.4, strokeCap="round", color=color)
        layers.append(
            bar.encode(alt.X("low:Q", scale=scale, axis=axis), alt.X2("high:Q"), y, tooltip=texts)
        )
    open_low, open_high = known[known["low"].isna()], known[known["high"].isna()]
    exact = known[known["x"].notna() & known["low"].notna() & known["high"].notna()]
    for shape, own, column in (
        ("diamond", exact, "x"),
        ("triangle-left", open_low, "high"),
        ("triangle-right", open_high, "low"),
    ):
        drawn = own.dropna(subset=[column])
        if len(drawn):
            mark = alt.Chart(drawn).mark_point(
                shape=shape, filled=True, size=110, opacity=1, color=color
            )
            layers.append(
                mark.encode(alt.X(f"{column}:Q", scale=scale, axis=axis), y, tooltip=texts)
            )
    if nothing.any():
        note = alt.Chart(found[nothing].assign(note="none")).mark_text(
            align="left", dx=8, fontSize=12, color=GREY
        )
        layers.append(note.encode(alt.XDatum(span[0], scale=scale), y, alt.Text("note:N")))
    edges = alt.Chart(pd.DataFrame({"edge": span})).mark_rule(
        color=GREY, opacity=0.5, strokeDash=[2, 4]
    )
    return alt.layer(edges.encode(alt.X("edge:Q", scale=scale)), *layers).properties(
        height=alt.Step(26)
    )
