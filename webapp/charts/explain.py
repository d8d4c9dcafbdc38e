"""Charts of the page Explain: speed-ups beside their promise, the cost model, where the wall time
goes, what runs longer, and the roofline.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from sweeps.analysis.rows import CostModelRow
from sweeps.analysis.waterfall import TimeStep
from sweeps.model.condition import Device
from sweeps.model.profile import Peaks
from sweeps.text.explanation import step_label
from webapp.charts.points import (
    BLUE,
    GREY,
    ORANGE,
    SIDE_COLORS,
    Extra,
    Layers,
    Measure,
    PointsInfo,
    category,
    draw_bars,
    layered,
    placed_texts,
    with_links,
)
from webapp.charts.scales import Extent, row_axis, row_step
from webapp.display.texts import time_title, typeset

CLASS_COLORS = {
    "device": "#1a70b8",
    "operators": "#1a70b8",
    "launch": "#c2500c",
    "host": "#994691",
    "Python, dispatch": "#994691",
    "waits": "#8a7000",
    "idle": "#808591",
}
"""By the names of `store.read.profiling.CLASSES_OF_TIME`: contrast 3 or more on white
and on the dark theme."""
MAX_ACTIVITIES = 12
"""Bars of one chart: the largest differences."""
NAME_LETTERS = 44
"""Characters of a name beside its bar; hover text and table have all of it."""
STEPS_OF_LINE = 64
"""Of a line, between the first and the last point."""
ROOF_HEIGHT = 360
"""Pixels."""
ROOF_ROOM = 2.0
"""Factor of room beside the points under a roof."""


def waterfall_rows(steps: Sequence[TimeStep], device: Device, color: str) -> pd.DataFrame:
    """`label`, `start`, `end` (ms), `words` and `color` of each step; `color` is the arm's."""
    ends = {"baseline": SIDE_COLORS["baseline"], "arm": color}
    rows = [
        (
            step_label(step, device),
            step.start,
            step.end,
            typeset(f"{step.ms:{'' if step.kind in ends else '+'}.3g} ms"),
            ends.get(step.kind, BLUE if step.ms < 0 else ORANGE),
        )
        for step in steps
    ]
    return pd.DataFrame(rows, columns=["label", "start", "end", "words", "color"])


def waterfall_chart(rows: pd.DataFrame, title: str) -> Layers:
    """The steps of `waterfall_rows`, one below the other; `title` is that of the times."""
    y = row_axis(alt.Y, list(rows["label"]))
    axis = alt.Axis(title=title, tickCount=8)
    x = alt.X("start:Q", axis=axis, scale=alt.Scale(zero=True))
    color = alt.Color("color:N", scale=None)
    bar = alt.Chart(rows).mark_bar(height=18).encode(x, alt.X2("end:Q"), y, color)
    ends = rows.assign(start=rows[["start", "end"]].max(axis=1))
    words = (
        alt.Chart(ends)
        .mark_text(align="left", dx=6, fontSize=12, color=GREY)
        .encode(x, y, text="words:N")
    )
    return layered(bar, words, height=row_step(list(rows["label"])))


def cost_info(
    points: pd.DataFrame, costs: CostModelRow, color_of_arm: str = SIDE_COLORS["arm"]
) -> PointsInfo:
    """Times of baseline and arm against their work, and fixed cost + cost of work as lines between
    the points, not beyond.

    `points` has two rows for each size: `side` (`baseline` or `arm`), `work` (GMACs or tokens of a
    forward), `ms`, `size` (in words, which a thin line joins) and `in_fit` (whether the fit rests
    on it; others are hollow); with `comparison_id`, `environment` and `host` points link to their
    evidence. Without a fit only points are drawn. Raises `ValueError` without a row.
    """
    drawn = with_links(points.dropna(subset=["work", "ms"]))
    if drawn.empty:
        raise ValueError("no time with its work to draw")
    joined = drawn[["work", "ms"]].assign(line=drawn["size"])
    thin = Extra(joined, {"strokeWidth": 1, "opacity": 0.6})
    fitted = _fitted_lines(drawn[drawn["in_fit"]], costs)
    return PointsInfo(
        rows=drawn.assign(hollow=~drawn["in_fit"].astype(bool)),
        x=Measure("work", f"{costs.work_unit}s of a forward, of each side its own", "", "log"),
        y=Measure("ms", time_title(costs.metric), "", "log"),
        color="side",
        colors={"baseline": SIDE_COLORS["baseline"], "arm": color_of_arm},
        lines=[thin, *([Extra(fitted, {"strokeWidth": 2})] if len(fitted) else [])],
        tips={
            "size": "Size",
            "side": "Side",
            "work": (f"{costs.work_unit}s", ".3~g"),
            "ms": ("ms", ".3~g"),
        },
        height=340,
    )


def _fitted_lines(points: pd.DataFrame, costs: CostModelRow) -> pd.DataFrame:
    """The fitted times of both sides between their first and their last point; empty where there is
    no fit.
    """
    found = []
    for side, fixed, work in (
        ("baseline", costs.alpha_baseline, costs.beta_baseline),
        ("arm", costs.alpha, costs.beta),
    ):
        own = points.loc[points["side"] == side, "work"]
        if own.empty or fixed is None or work is None:
            return pd.DataFrame()
        at = np.geomspace(own.min(), own.max(), STEPS_OF_LINE)
        found.append(pd.DataFrame({"side": side, "work": at, "ms": 1e3 * (fixed + work * at)}))
    return pd.concat(found, ignore_index=True)


def wall_chart(parts: pd.DataFrame) -> Layers:
    """Stacked bars, one for each `place` and `side`, in the order of the rows.

    `parts` has a row for each class of time: `place` (such as `224 px`), `side` (`baseline` or
    `arm`), `time_class` (a name of `CLASS_COLORS`), `ms`, and `wall_ms` (the sum). Raises
    `ValueError` without a row.
    """
    if parts.empty:
        raise ValueError("no profile to draw")
    found = set(parts["time_class"])
    colors = {name: color for name, color in CLASS_COLORS.items() if name in found}
    rows = parts.assign(
        label=parts["place"] + ", " + parts["side"],
        order=parts["time_class"].map(list(colors).index),
    )
    title = "Wall time of one forward without a profiler, ms"
    x = alt.X("ms:Q", stack="zero", title=title, axis=alt.Axis(tickCount=8))
    totals = alt.Chart(rows.drop_duplicates("label")).mark_text(align="left", dx=5, color=GREY)
    y = row_axis(alt.Y, list(dict.fromkeys(rows["label"])))
    hover = {
        "label": "Forward",
        "time_class": "Class of time",
        "ms": ("ms", ".3~g"),
        "wall_ms": ("Wall time, ms", ".3~g"),
    }
    beside = totals.encode(alt.X("wall_ms:Q"), y, alt.Text("wall_ms:Q", format=".3~g"))
    color = category(alt.Color, "time_class", colors, {})
    return draw_bars(rows, x, color, hover, alt.Order("order:Q"), above=[beside])


def activity_rows(differences: pd.DataFrame) -> pd.DataFrame:
    """The largest differences of time per forward, longer ones first, with a `label` beside the bar
    and whether they are `longer`.

    `differences` has a row for each kernel or operator: `name`, `baseline_ms`, `arm_ms`,
    `difference_ms`, `baseline_count`, `arm_count` (runs in a forward; 0 where it does not run).
    Raises `ValueError` without a row.
    """
    if differences.empty:
        raise ValueError("no kernel or operator to draw")
    order = differences["difference_ms"].abs().sort_values(ascending=False, kind="stable").index
    drawn = differences.loc[order[:MAX_ACTIVITIES]]
    drawn = drawn.sort_values("difference_ms", ascending=False, kind="stable")
    labels = _distinct_names(list(drawn["name"]))
    return drawn.assign(label=labels, longer=drawn["difference_ms"] > 0)


def activity_chart(drawn: pd.DataFrame) -> Layers:
    """Bars of `activity_rows`."""
    colors = alt.Scale(domain=[True, False], range=[SIDE_COLORS["arm"], "#00795a"])
    title = "Arm less baseline, time of one forward, ms"
    hover = {
        "name": "Name",
        "baseline_ms": ("Baseline, ms", ".3~g"),
        "arm_ms": ("Arm, ms", ".3~g"),
        "difference_ms": ("Difference, ms", "+.3~g"),
        "baseline_count": ("Runs, baseline", ",.0f"),
        "arm_count": ("Runs, arm", ",.0f"),
    }
    x = alt.X("difference_ms:Q", title=title, axis=alt.Axis(tickCount=8))
    return draw_bars(drawn, x, alt.Color("longer:N", scale=colors, legend=None), hover)


def _distinct_names(names: list[str]) -> list[str]:
    """Names as short as they may be beside a bar; those that become equal get a number."""
    found: list[str] = []
    for name in names:
        short = name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 12]}…{name[-11:]}"
        found.append(short if short not in found else f"{short} ({found.count(short) + 1})")
    return found


def roofline_info(
    points: pd.DataFrame, peaks: Peaks, color_of_arm: str = SIDE_COLORS["arm"]
) -> PointsInfo:
    """Points under the roof that `peaks` make, both axes logarithmic.

    `points` has a row for each profile with both rates: `label`, `name` (beside the point), `side`
    (a name of `SIDE_COLORS`), `gflops`, `gb_per_s` and `limit`. Bytes are counted once per
    operator, so that caches can lift a point above the roof of memory. Raises `ValueError` without
    a row.
    """
    known = points.dropna(subset=["gflops", "gb_per_s"])
    if known.empty:
        raise ValueError("no profile whose operations and bytes are both known")
    known = known.assign(intensity=known["gflops"] / known["gb_per_s"], text=known["name"])
    ridge = peaks.gflops / peaks.gb_per_s
    across = Extent(
        min(known["intensity"].min(), ridge) / ROOF_ROOM,
        max(known["intensity"].max(), ridge) * ROOF_ROOM,
    )
    at = pd.Series([across.low, ridge, across.high])
    roof = pd.DataFrame({"intensity": at, "gflops": (at * peaks.gb_per_s).clip(upper=peaks.gflops)})
    floor = min(known["gflops"].min(), roof["gflops"].min()) / ROOF_ROOM
    up = Extent(floor, ROOF_ROOM * max(peaks.gflops, known["gflops"].max()))
    axes = (
        Measure("intensity", "Operations per byte moved", "", "log", span=across),
        Measure("gflops", "GFLOP/s while the device works", "", "log", span=up),
    )
    texts = list(placed_texts(known, axes, ROOF_HEIGHT))
    middle = (across.low * ridge) ** 0.5
    for intensity, gflops, text, look in (
        (
            across.high,
            peaks.gflops,
            f"{peaks.gflops:.3g} GFLOP/s, measured",
            {"align": "right", "dy": -9, "dx": -4},
        ),
        (
            middle,
            middle * peaks.gb_per_s,
            f"{peaks.gb_per_s:.3g} GB/s, measured",
            {"align": "left", "dy": 12, "dx": 8},
        ),
    ):
        note = pd.DataFrame({"intensity": [intensity], "gflops": [gflops], "text": [text]})
        texts.append(Extra(note, look))
    sides = [name for name in SIDE_COLORS if name in set(known["side"])]
    colors = SIDE_COLORS | {"arm": color_of_arm}
    shapes = {"baseline": "square", "arm": "circle", "other arm": "diamond"}
    return PointsInfo(
        rows=known,
        x=axes[0],
        y=axes[1],
        height=ROOF_HEIGHT,
        color="side",
        colors={name: colors[name] for name in sides},
        shape="side",
        shapes={name: shapes[name] for name in sides},
        lines=[Extra(roof, {"strokeWidth": 2})],
        texts=texts,
        tips={
            "label": "Arm",
            "gflops": ("GFLOP/s", ".3~r"),
            "gb_per_s": ("GB/s", ".3~r"),
            "intensity": ("Operations per byte", ".3~r"),
            "limit": "Limit",
        },
    )
