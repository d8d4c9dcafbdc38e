"""Charts: pure functions from data frames to `alt.Chart`, used alike by the app, `breakeven plot` and notebooks."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt
import pandas as pd

from webapp import arms, wording

Axis = Literal["tokens", "gmacs"]
Chart = alt.Chart | alt.LayerChart | alt.VConcatChart

X_COLUMN: Mapping[Axis, str] = {"tokens": "tokens", "gmacs": "gmacs_baseline"}
X_TITLE: Mapping[Axis, str] = {
    "tokens": "Patch tokens per image",
    "gmacs": "GMACs per image of the unmodified model (papers say GFLOPs)",
}
PANEL = ("model", "weights", "batch_size", "device_name", "environment", "threads", "seed")
"""What stays fixed within one panel; every combination found gets a panel of its own."""

TOOLTIPS = (
    ("arm", "N", "Arm", ""),
    ("params", "N", "Parameters", ""),
    ("verdict", "N", "Verdict", ""),
    ("speedup", "Q", "Speed-up", ".3f"),
    ("interval", "N", "95 % interval", ""),
    ("theory", "Q", "If time followed MACs", ".3f"),
    ("baseline", "N", "Against", ""),
    ("baseline_ms", "Q", "Baseline, ms", ",.4~r"),
    ("method_ms", "Q", "This arm, ms", ",.4~r"),
    ("image_size", "Q", "Image size, px", "d"),
    ("tokens", "Q", "Patch tokens", "d"),
    ("tokens_final", "Q", "Tokens at the end", "d"),
    ("gmacs_baseline", "Q", "GMACs, baseline", ".3~r"),
    ("gmacs", "Q", "GMACs, this arm", ".3~r"),
    ("pairs", "Q", "Pairs", "d"),
    ("rounds", "Q", "Rounds", "d"),
    ("flags", "N", "Flags", ""),
)
"""Column of the points, type, title and number format."""

GREY = "#808591"
"""Reads on white and on black alike: rules, notes and the noise floor."""

VERDICTS: Mapping[str, str] = {
    "faster": "triangle-up",
    "same": "square",
    "slower": "triangle-down",
    "unclear": "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0ZM-0.55,0A0.55,0.55,0,1,0,0.55,0A0.55,0.55,0,1,0,-0.55,0Z",
}
"""Marks of the verdicts: clear ones are filled, unclear is a ring (an outline of its own, so that the legend shows it too)."""

WIDTH, HEIGHT, ROW = 660, 320, 24
"""Pixels: width and height of a panel's curves, height of one row of its strip."""


class _Range(NamedTuple):
    low: float
    high: float


def flagged(points: pd.DataFrame) -> pd.Series:
    """Which rows carry a reason for distrust."""
    return ~points["flags"].fillna("").astype(str).isin(["", "[]"])


def speedup_chart(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis = "tokens",
    *,
    show_flagged: bool = False,
    styles: Mapping[str, arms.Style] | None = None,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> alt.VConcatChart:
    """Speed-up against tokens or GMACs, one panel per model and condition, with the break-even of every arm in a strip below it.

    `points` holds rows of the view `speedup` and `break_evens` rows of the view `break_even`, both with all columns.
    Speed-ups lie on a logarithmic axis symmetric around 1; x is logarithmic to base 2. `width` and `height` (pixels) are those
    of one panel. `styles` fixes the look of arms (default: `arms.styles` of these points).
    Raises `ValueError` if there is no point to draw.
    """
    points, break_evens = arms.named(points, break_evens)
    styles = styles or arms.styles(points)
    distrusted = flagged(points)
    shown = points if show_flagged else points[~distrusted]
    if shown.empty:
        raise ValueError(f"no point to draw: {len(points)} measured, {int(distrusted.sum())} of them flagged and hidden")
    hidden = points[distrusted & (not show_flagged)]
    shown = shown.assign(
        x=shown[X_COLUMN[axis]].astype(float),
        theory=shown["gmacs_baseline"] / (shown["gmacs"] + shown["gmacs_method"]),
        distrusted=distrusted[shown.index],
        interval=[wording.interval(low, high) for low, high in zip(shown["speedup_low"], shown["speedup_high"], strict=True)],
    )
    x_range, y_range = _x_range(shown["x"]), _y_range(shown)
    scale = _color_scale(shown, styles)
    found = break_evens[break_evens["axis"] == axis]
    views: list[alt.VConcatChart] = []
    for fixed, panel in shown.groupby(list(PANEL), dropna=False, sort=True):
        about = dict(zip(PANEL, fixed, strict=True))
        lost = sum(_same(row, about) for row in hidden.to_dict("records"))
        own = found[[_same(row, about) for row in found.to_dict("records")]] if len(found) else found
        curves = _curves(panel, own, axis, x_range, y_range, scale, styles).properties(
            title=_title(panel, lost), width=width, height=height
        )
        strip = _strip(own, panel, axis, x_range, styles).properties(width=width)
        views.append(alt.vconcat(curves, strip, spacing=30, bounds="flush").resolve_legend(shape="independent"))
    return stacked(views)


def stacked(views: Sequence[alt.VConcatChart], title: str = "") -> alt.VConcatChart:
    """Charts one below the other, with the house's typography."""
    inner = [part for view in views for part in (view.vconcat if view.config is not alt.Undefined else [view])]
    chart = alt.vconcat(*inner, spacing=48, **({"title": alt.TitleParams(title, fontSize=20, offset=24)} if title else {}))
    return (
        chart.resolve_legend(shape="independent")
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=12, titleFontSize=12, titleFontWeight="normal", titlePadding=10, domain=False, gridOpacity=0.3
        )
        .configure_title(
            fontSize=16, subtitleFontSize=12, subtitleColor=GREY, anchor="start", frame="group", offset=16, subtitlePadding=6
        )
        .configure_legend(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", symbolSize=70, columnPadding=18, offset=12)
    )


def _curves(
    panel: pd.DataFrame,
    found: pd.DataFrame,
    axis: Axis,
    x_range: _Range,
    y_range: _Range,
    color: alt.Scale,
    styles: Mapping[str, arms.Style],
) -> alt.LayerChart:
    names = list(color.domain)  # type: ignore[arg-type]
    x = alt.X("x:Q", scale=_x_scale(x_range), axis=_x_axis(axis, panel["x"], bare=True))
    y = alt.Y(
        "speedup:Q",
        scale=alt.Scale(type="log", domain=list(y_range), nice=False),
        axis=alt.Axis(title="Speed-up", values=_ratio_ticks(y_range), labelExpr="format(datum.value, '.3~r') + '×'"),
    )
    hue = alt.Color("arm:N", scale=color, legend=None)
    dash = alt.StrokeDash("arm:N", scale=alt.Scale(domain=names, range=[styles[name].dash for name in names]), legend=None)
    floor = float(panel["floor"].max())
    band = pd.DataFrame({"floor_low": [1 / (1 + floor)], "floor_high": [1 + floor]})
    crossings = found.dropna(subset=["x"])[["arm", "x"]]
    return alt.layer(
        alt.Chart(band).mark_rect(color=GREY, opacity=0.25).encode(y=alt.Y("floor_low:Q"), y2="floor_high:Q"),
        alt.Chart(band).mark_rule(color=GREY, strokeWidth=1.2).encode(y=alt.YDatum(1)),
        alt.Chart(panel)
        .mark_line(strokeWidth=1.4, strokeDash=[1, 4], strokeCap="round", opacity=0.75)
        .encode(x, alt.Y("theory:Q"), hue),
        alt.Chart(panel).mark_line(strokeWidth=2).encode(x, y, hue, dash),
        alt.Chart(panel.dropna(subset=["speedup_low", "speedup_high"]))
        .mark_errorbar(ticks={"size": 7}, thickness=1.3)
        .encode(x, alt.Y("speedup_low:Q", title="Speed-up"), alt.Y2("speedup_high:Q"), hue),
        alt.Chart(crossings).mark_point(shape="diamond", filled=True, size=90, opacity=1).encode(x, alt.YDatum(1), hue),
        _points(panel, x, y, hue),
    )


def _points(panel: pd.DataFrame, x: alt.X, y: alt.Y, hue: alt.Color) -> alt.Chart:
    shape = alt.Shape(
        "verdict:N",
        scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values())),
        legend=alt.Legend(
            title=None,
            orient="top",
            symbolFillColor=GREY,
            symbolStrokeWidth=0,
            labelExpr="datum.value == 'unclear' ? 'cannot tell' : datum.value",
        ),
    )
    tooltips = [
        alt.Tooltip(f"{column}:{kind}", title=title, **({"format": form} if form else {})) for column, kind, title, form in TOOLTIPS
    ]
    return (
        alt.Chart(panel)
        .mark_point(filled=True, size=55)
        .encode(x, y, hue, shape=shape, opacity=alt.condition("datum.distrusted", alt.value(0.35), alt.value(1)), tooltip=tooltips)
    )


def _strip(
    found: pd.DataFrame, panel: pd.DataFrame, axis: Axis, x_range: _Range, styles: Mapping[str, arms.Style]
) -> alt.LayerChart:
    """One row per arm: break-evens as diamonds on their intervals; on the right the arm's line (this is the legend) and its verdict in words."""
    names = [name for name in styles if name in set(panel["arm"])]
    reach = panel.groupby("arm")["x"].max()
    words = {name: f"{name}: {wording.short(found[found['arm'] == name], axis, float(reach[name]))}" for name in names}
    crossings = found.dropna(subset=["x"])
    crossings = crossings.assign(row=crossings["arm"].map(words))
    looks = [(f"datum.value === {json.dumps(words[name])}", styles[name]) for name in names]
    right = alt.Axis(
        orient="right",
        title=None,
        offset=14,
        tickSize=26,
        tickWidth=3,
        tickColor={"condition": [{"test": test, "value": style.color} for test, style in looks], "value": GREY},
        tickDash={"condition": [{"test": test, "value": style.dash} for test, style in looks], "value": [1, 0]},
        labelLimit=0,
        labelPadding=8,
        grid=False,
    )
    row = alt.Y("row:N", scale=alt.Scale(domain=list(words.values())), axis=right)
    x = alt.X("x:Q", scale=_x_scale(x_range), axis=_x_axis(axis, panel["x"]))
    hue = alt.Color("arm:N", scale=alt.Scale(domain=names, range=[styles[name].color for name in names]), legend=None)
    heading = alt.TitleParams("Break-even, with its interval", fontSize=12, fontWeight="normal", color=GREY, offset=6)
    bars = alt.Chart(crossings.dropna(subset=["x_low", "x_high"])).mark_rule(strokeWidth=5, opacity=0.45, strokeCap="round")
    return alt.layer(
        bars.encode(alt.X("x_low:Q", scale=_x_scale(x_range)), alt.X2("x_high:Q"), row, hue),
        alt.Chart(crossings).mark_point(shape="diamond", filled=True, size=90, opacity=1).encode(x, row, hue),
    ).properties(height=ROW * len(names), title=heading)


def _title(panel: pd.DataFrame, hidden: int) -> alt.TitleParams:
    first = panel.iloc[0]
    weights = "random weights" if first["weights"] == "random" else f"weights: {first['weights']}"
    threads = [wording.counted(int(first["threads"]), "thread")] if first["device"] == "cpu" else []
    words = [first["device_name"], *_all(panel, "dtype"), *_all(panel, "attention"), *_all(panel, "runtime")]
    lines = [" · ".join(map(str, [*words, f"batch {first['batch_size']}", *threads, weights]))]
    lines.append(f"Bars: 95 % interval. Dotted: if time followed MACs. Grey: noise floor, ±{100 * panel['floor'].max():.2g} %.")
    if hidden:
        lines[-1] += f" {wording.counted(hidden, 'flagged point')} hidden."
    return alt.TitleParams(str(first["model"]), subtitle=lines)


def _all(panel: pd.DataFrame, column: str) -> list[str]:
    return sorted(set(map(str, panel[column])))


def _same(row: Mapping[Any, Any], about: Mapping[str, Any]) -> bool:
    """Whether a row belongs to the panel, by the columns that the row has."""
    return all(row[name] == value or (pd.isna(row[name]) and pd.isna(value)) for name, value in about.items() if name in row)


def _color_scale(points: pd.DataFrame, styles: Mapping[str, arms.Style]) -> alt.Scale:
    present = set(points["arm"])
    names = [name for name in styles if name in present]
    return alt.Scale(domain=names, range=[styles[name].color for name in names])


def _x_scale(x_range: _Range) -> alt.Scale:
    return alt.Scale(type="log", base=2, domain=list(x_range), nice=False)


def _x_axis(axis: Axis, values: pd.Series, *, bare: bool = False) -> alt.Axis:
    """Ticks at the tokens measured, or at 1, 2 and 5 times powers of ten GMACs; `bare` keeps only the grid."""
    if axis == "tokens":
        ticks = sorted({float(x) for x in values})
    else:
        low, high = math.floor(math.log10(values.min())), math.ceil(math.log10(values.max()))
        ticks = [float(f"{digit}e{power}") for power in range(low, high + 1) for digit in (1, 2, 5)]
    if bare:
        return alt.Axis(values=ticks, title=None, labels=False, ticks=False)
    return alt.Axis(values=ticks, title=X_TITLE[axis], format="d" if axis == "tokens" else "~r", labelOverlap="greedy")


def _x_range(values: pd.Series) -> _Range:
    low, high = float(values.min()), float(values.max())
    room = max((high / low) ** 0.04, 1.1)
    return _Range(low / room, high * room)


def _y_range(points: pd.DataFrame) -> _Range:
    """Symmetric around 1, so that twice as fast stands as far above the rule as half as fast stands below it."""
    columns = ["speedup", "speedup_low", "speedup_high", "theory"]
    logs = pd.concat([points[column] for column in columns]).dropna().astype(float)
    most = max(1.05, *(max(value, 1 / value) for value in logs if value > 0)) ** 1.08
    return _Range(1 / most, most)


def _ratio_ticks(y_range: _Range) -> list[float]:
    """Round ratios, from 1 outwards, far enough apart for their labels."""
    room = math.log(y_range.high / y_range.low) / 14
    ticks = [1.0]
    for steps in (
        (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100),
        (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02),
    ):
        last = 1.0
        for step in steps:
            if y_range.low <= step <= y_range.high and abs(math.log(step / last)) >= room:
                ticks.append(step)
                last = step
    return sorted(ticks)
