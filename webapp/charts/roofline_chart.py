"""Roofline: what arms reach beside the peaks of the machine, against the operations that they make
of each byte.
"""

from typing import Any

import altair as alt
import pandas as pd

from sweeps.model.profile import Peaks
from webapp.charts.encodings import GREY
from webapp.charts.scales import log_axis

ROOM = 2.0
"""Factor of room beside the points."""
SIDE_COLORS = {"baseline": "#6b7280", "arm": "#c2500c", "other arm": GREY}
_SHAPES = {"baseline": "square", "arm": "circle", "other arm": "diamond"}


def roofline_chart(
    points: pd.DataFrame, peaks: Peaks, color_of_arm: str = SIDE_COLORS["arm"], height: int = 360
) -> alt.LayerChart | alt.FacetChart:
    """Points under the roof that `peaks` make, both axes logarithmic.

    `points` has a row for each profile with both rates: `label`, `side` (a name of `SIDE_COLORS`),
    `gflops`, `gb_per_s` and `limit`. Bytes are counted once per operator, so that caches can lift a
    point above the roof of memory. Raises `ValueError` without a row.
    """
    known = points.dropna(subset=["gflops", "gb_per_s"])
    if known.empty:
        raise ValueError("no profile whose operations and bytes are both known")
    known = known.assign(intensity=known["gflops"] / known["gb_per_s"])
    ridge = peaks.gflops / peaks.gb_per_s
    low, high = (
        min(known["intensity"].min(), ridge) / ROOM,
        max(known["intensity"].max(), ridge) * ROOM,
    )
    roof = pd.DataFrame({"intensity": [low, ridge, high]})
    roof["gflops"] = (roof["intensity"] * peaks.gb_per_s).clip(upper=peaks.gflops)
    floor = min(known["gflops"].min(), roof["gflops"].min()) / ROOM
    across, up = (
        alt.Scale(type="log", domain=ends, nice=False)
        for ends in ([low, high], [floor, ROOM * peaks.gflops])
    )
    x = alt.X("intensity:Q", scale=across, axis=log_axis(low, high, "Operations per byte moved"))
    y = alt.Y(
        "gflops:Q",
        scale=up,
        axis=log_axis(floor, ROOM * peaks.gflops, "GFLOP/s while the device works"),
    )
    sides = [name for name in SIDE_COLORS if name in set(known["side"])]
    colors = alt.Scale(
        domain=sides, range=[(SIDE_COLORS | {"arm": color_of_arm})[name] for name in sides]
    )
    shapes = alt.Scale(domain=sides, range=[_SHAPES[name] for name in sides])
    legend = alt.Legend(title=None, orient="top")
    texts = [
        alt.Tooltip("label:N", title="Arm"),
        alt.Tooltip("gflops:Q", title="GFLOP/s", format=".3~r"),
        alt.Tooltip("gb_per_s:Q", title="GB/s", format=".3~r"),
        alt.Tooltip("intensity:Q", title="Operations per byte", format=".3~r"),
        alt.Tooltip("limit:N", title="Limit"),
    ]
    line = alt.Chart(roof).mark_line(color=GREY, strokeWidth=2).encode(x, y)
    marks = (
        alt.Chart(known)
        .mark_point(filled=True, size=90, opacity=1)
        .encode(
            *(
                x,
                y,
                alt.Color("side:N", scale=colors, legend=legend),
                alt.Shape("side:N", scale=shapes, legend=legend),
            ),
            tooltip=texts,
        )
    )
    # names of neighbours stand above and below their points in turn
    ordered = known.sort_values(["gflops", "intensity"])
    names = [
        alt.Chart(own)
        .mark_text(align="left", dx=8, dy=dy, fontSize=12, color=GREY, limit=260)
        .encode(x, y, alt.Text("name:N"))
        for own, dy in ((ordered.iloc[::2], 10), (ordered.iloc[1::2], -8))
        if len(own)
    ]
    note: dict[str, Any] = {"fontSize": 12, "color": GREY}
    notes = pd.DataFrame(
        {
            "intensity": [high, (low * ridge) ** 0.5],
            "gflops": [peaks.gflops, (low * ridge) ** 0.5 * peaks.gb_per_s],
            "text": [
                f"{peaks.gflops:.3g} GFLOP/s, measured",
                f"{peaks.gb_per_s:.3g} GB/s, measured",
            ],
        }
    )
    # the roof of computing, and that of memory
    over, under = (alt.Chart(notes.iloc[[row]]) for row in (0, 1))
    roofs = (
        over.mark_text(align="right", dy=-9, dx=-4, **note),
        under.mark_text(align="left", dy=12, dx=8, **note),
    )
    return alt.layer(
        line, marks, *names, *(each.encode(x, y, alt.Text("text:N")) for each in roofs)
    ).properties(height=height)
