"""Charts of the pages Accuracy, Language and Choose: rows of figures with their intervals, images
that only one of two arms classifies correctly, corruptions by severity, and lines along the length
of the prompt.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import altair as alt
import pandas as pd

from webapp.charts.points import (
    GREY,
    ONE_COLOR,
    SIDE_COLORS,
    Layers,
    Measure,
    PointsInfo,
    Tips,
    bars,
    category,
    channel,
    draw_bars,
    layered,
    linked,
    no_difference,
    placed_texts,
    tips,
)
from webapp.charts.scales import row_axis, row_step
from webapp.display.arm_style import ArmStyle

_SIDES = {"only the baseline is right": SIDE_COLORS["arm"], "only the arm is right": "#00795a"}
ENDS = ("low", "high")
"""Columns of an interval."""
PARETO_HEIGHT = 400
"""Pixels."""
ALL_NAMED = 12
"""Points of which also those that others surpass are named, where there is room."""


def bar_chart(rows: pd.DataFrame, measure: Measure) -> Layers:
    """A bar for each `label`, one below the other in the order of `rows`, from no difference to its
    `value`, with its interval (`low`, `high`) where that is known; `color` is that of each, with
    `href` bars are links. Raises `ValueError` without a value.
    """
    drawn = rows.dropna(subset=["value"])
    if drawn.empty:
        raise ValueError("nothing was measured of it")
    drawn = drawn if "color" in drawn else drawn.assign(color=ONE_COLOR)
    titles = {"value": measure.title, "low": "at least", "high": "at most"}
    hover: Tips = {name: (title, ".3~r") for name, title in titles.items()}
    x, y = channel(alt.X, measure, drawn), channel(alt.Y, Measure("label", "", "", "rows"), drawn)
    none, color = alt.X2Datum(measure.none or 0), category(alt.Color, "color", None)
    mark = alt.Chart(drawn).mark_bar(height=14, opacity=0.5)
    bar = linked(mark.encode(x, none, y, color, tooltip=tips({"label": "Arm", **hover})))
    ends = bars(drawn, x, ENDS, y, strokeWidth=2, color=GREY)
    rule = no_difference(x, measure.floor, measure.none or 0)
    return layered(*rule, bar, *ends, height=row_step(list(drawn["label"])))


def length_info(
    rows: pd.DataFrame,
    title: str,
    styles: Mapping[str, ArmStyle],
    better: Literal["lower", "higher", ""] = "",
) -> PointsInfo:
    """`value` against `prompt_tokens`, both axes logarithmic, a line for each `arm` that `styles`
    names.

    `rows` have `arm`, `prompt_tokens`, `value`, and `flags`. Raises `ValueError` without a value.
    """
    drawn = rows[rows["value"] > 0].dropna(subset=["prompt_tokens"])
    if drawn.empty:
        raise ValueError("it was not measured")
    named = {name: style for name, style in styles.items() if name in set(drawn["arm"])}
    return PointsInfo(
        rows=drawn[["arm", "prompt_tokens", "value", "flags"]],
        x=Measure("prompt_tokens", "Tokens of the prompt", "", "log2", form="d"),
        y=Measure("value", title, better, "log", form="~s"),
        color="arm",
        colors={name: style.color for name, style in named.items()},
        joined="arm",
        dashes={name: style.dash for name, style in named.items()},
        legend={"columns": 2, "symbolType": "stroke"},
        height=360 + 10 * len(named),
        tips={
            "arm": "Arm",
            "prompt_tokens": ("Tokens of the prompt", ",.0f"),
            "value": (title, ",.4~r"),
            "flags": "Flags",
        },
    )


def disagreement_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each arm and side: `label`, `side`, the `number` of images that it alone has right,
    and `shown`, the same to the left of zero for the baseline.

    `rows` are those of the view `accuracy` with a `label` each: `only_baseline_correct`,
    `only_arm_correct`, `images`, `mcnemar_p` (a text). Raises `ValueError` where none is known.
    """
    columns = {"only_baseline_correct": -1, "only_arm_correct": 1}
    known = rows.dropna(subset=list(columns))
    if known.empty:
        raise ValueError("no images that only one of both classifies correctly were counted")
    return pd.concat(
        known.assign(side=side, number=known[name], shown=known[name] * sign)
        for side, (name, sign) in zip(_SIDES, columns.items(), strict=True)
    )


def disagreement_chart(drawn: pd.DataFrame) -> Layers:
    """Bars of `disagreement_rows`."""
    axis = alt.Axis(
        title="Images", labelExpr="format(abs(datum.value), ',')", tickMinStep=1, tickCount=8
    )
    hover = {
        "label": "Arm",
        "side": "Images",
        "number": ("Number", ",.0f"),
        "images": ("of", ",.0f"),
        "mcnemar_p": "McNemar's exact p",
    }
    color = category(alt.Color, "side", _SIDES, {})
    return draw_bars(drawn, alt.X("shown:Q", axis=axis), color, hover)


def corruption_chart(rows: pd.DataFrame) -> Layers:
    """Cells by `corruption` and `severity`, coloured by `top1_drop` in points (above 0: the arm
    loses), blank where not measured.

    `rows` are those of one arm in the view `accuracy`, with `word` (the verdict). Raises
    `ValueError` without a corruption.
    """
    drawn = rows.dropna(subset=["corruption", "severity", "top1_drop"])
    if drawn.empty:
        raise ValueError("accuracy on corrupted images was not measured")
    most = max(float(drawn["top1_drop"].abs().max()), 0.1)
    drawn = drawn.assign(strong=drawn["top1_drop"].abs() > 0.6 * most)
    names = sorted(drawn["corruption"].unique())
    x = alt.X("severity:O", title="Severity", axis=alt.Axis(labelAngle=0, orient="top", format="d"))
    base = alt.Chart(drawn).encode(x, row_axis(alt.Y, names, "corruption"))
    color = alt.Color(
        "top1_drop:Q",
        scale=alt.Scale(scheme="blueorange", domain=[-most, most], domainMid=0),
        legend=alt.Legend(
            title="Top-1 lost, points", orient="top", gradientLength=180, format="+.2~f"
        ),
    )
    hover = {
        "corruption": "Corruption",
        "severity": "Severity",
        "top1_baseline": ("Baseline, %", ".2f"),
        "top1": ("Arm, %", ".2f"),
        "top1_drop": ("Lost, points", "+.2f"),
        "top1_drop_low": ("at least", "+.2f"),
        "top1_drop_high": ("at most", "+.2f"),
        "word": "Verdict",
    }
    ink = alt.condition("datum.strong", alt.value("#ffffff"), alt.value("#1c2024"))
    return layered(
        base.mark_rect(cornerRadius=2).encode(color, tooltip=tips(hover)),
        base.mark_text(fontSize=12).encode(alt.Text("top1_drop:Q", format="+.1f"), color=ink),
        height=row_step(names),
    )


def pareto_info(
    points: pd.DataFrame,
    x: Measure,
    y: Measure,
    *,
    colors: Mapping[str, str],
) -> PointsInfo:
    """A point for each row at `x` and `y` with thin rules for the intervals of both.

    `points` has the columns of both measures (numbers; rows that lack one of the two are left out),
    `arm` (names the point) and `front` (bool: no other surpasses it, which the caller decides,
    since it takes intervals and more than two figures to know). Points of the front are filled and
    named beside the mark, where the names have room; the others are hollow and grey, and of many
    named in the hover text alone. `colors` maps an arm to its colour, others have one for all. A
    column `href`, if there is one, makes points links. Raises `ValueError` where no row has both
    figures.
    """
    drawn = points.dropna(subset=[x.column, y.column])
    if drawn.empty:
        raise ValueError(f"no arm has both: {x.title}; {y.title}")
    front = drawn["front"].astype(bool)
    drawn = drawn.assign(
        color=[
            colors.get(arm, ONE_COLOR) if best else GREY
            for arm, best in zip(drawn["arm"], front, strict=True)
        ],
        hollow=~front,
        text=drawn["arm"],
    )
    others = drawn[~front] if len(drawn) <= ALL_NAMED else drawn.iloc[:0]
    axes = [replace(measure, span=measure.extent(drawn)) for measure in (x, y)]
    return PointsInfo(
        rows=drawn,
        x=axes[0],
        y=axes[1],
        tips={"arm": "Arm"} | {each.column: (each.title, ".4~g") for each in axes},
        texts=list(placed_texts(pd.concat([drawn[front], others]), axes, PARETO_HEIGHT)),
        height=PARETO_HEIGHT,
    )
