"""Marks: what curves and rows draw alike: points with everything known of them, arms' colours, and the names at the right."""

import json
from collections.abc import Mapping

import altair as alt
import pandas as pd

from webapp import arm_style

WORDS: Mapping[str, str] = {
    "faster": "triangle-up",
    "probably faster": "M0,-0.87L-1,0.87L1,0.87ZM0,-0.29L0.5,0.58L-0.5,0.58Z",
    "same": "square",
    "within floor": "M-1,-0.4L1,-0.4L1,0.4L-1,0.4Z",
    "slower": "triangle-down",
    "probably slower": "M0,0.87L-1,-0.87L1,-0.87ZM0,0.29L0.5,-0.58L-0.5,-0.58Z",
    "unclear": "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0ZM-0.55,0A0.55,0.55,0,1,0,0.55,0A0.55,0.55,0,1,0,-0.55,0Z",
    "too few pairs": "cross",
    "no interval": "M-1,-0.6L-0.6,-1L0,-0.4L0.6,-1L1,-0.6L0.4,0L1,0.6L0.6,1L0,0.4L-0.6,1L-1,0.6L-0.4,0Z",
}
"""Marks of the words of `sweeps.labels`; hollow ones (not clear) are outlines of their own, so that the legend has them too."""
ALWAYS = frozenset({"faster", "same", "slower", "unclear"})
"""Words that the legend has even if no point has them."""

TOOLTIPS = (
    ("arm", "N", "Arm", ""),
    ("against", "N", "Against", ""),
    ("params", "N", "Parameters", ""),
    ("word", "N", "Verdict", ""),
    ("estimate", "N", "Speed-up", ""),
    ("interval", "N", "95 % interval", ""),
    ("theory", "Q", "If time followed MACs", ".3f"),
    ("baseline_ms", "Q", "Baseline, ms", ",.4~r"),
    ("method_ms", "Q", "This arm, ms", ",.4~r"),
    ("image_size", "Q", "Image size, px", "d"),
    ("prompt_tokens", "Q", "Tokens of the prompt", "d"),
    ("tokens", "Q", "Tokens", "d"),
    ("tokens_final", "Q", "Tokens at the end", "d"),
    ("new_tokens", "Q", "New tokens", "d"),
    ("kv_cache", "N", "KV cache", ""),
    ("gmacs_baseline", "Q", "GMACs, baseline", ".3~r"),
    ("gmacs", "Q", "GMACs, this arm", ".3~r"),
    ("gmacs_method", "Q", "GMACs, method's own", ".3~r"),
    ("pairs", "Q", "Pairs", "d"),
    ("rounds", "Q", "Rounds", "d"),
    ("flags", "N", "Flags", ""),
)
"""Column of the points, type, title and number format; those without a value are left out."""

GREY = "#808591"
"""Reads on white and on black alike: rules, notes and the noise floor."""


def hue(look: Mapping[str, arm_style.Style]) -> alt.Color:
    """The arm's colour; the names at the right are its legend."""
    return alt.Color("arm:N", scale=alt.Scale(domain=list(look), range=[style.color for style in look.values()]), legend=None)


def marks(points: pd.DataFrame) -> alt.Chart:
    """The points themselves, with everything known of them at a touch; x, y and colour are the caller's."""
    legend = alt.Legend(title=None, orient="top", symbolFillColor=GREY, symbolStrokeWidth=0)
    shown = ALWAYS | set(points["word"])
    known = {word: mark for word, mark in WORDS.items() if word in shown}
    spoken = bool(points["prompt_tokens"].notna().any())
    made: alt.Chart = (
        alt.Chart(points)
        .mark_point(filled=True, size=65)
        .encode(
            shape=alt.Shape("word:N", scale=alt.Scale(domain=list(known), range=list(known.values())), legend=legend),
            opacity=alt.condition("datum.distrusted", alt.value(0.35), alt.value(1)),
            tooltip=[
                alt.Tooltip(f"{column}:{kind}", title=title, format=form or alt.Undefined)
                for column, kind, title, form in TOOLTIPS
                if points[column].replace("", None).notna().any() and not (spoken and column == "tokens")
            ],
        )
    )
    return made


def names(words: Mapping[str, str], look: Mapping[str, arm_style.Style]) -> alt.Axis:
    """An axis on the right: the `words` of every arm, with a tick that is drawn like its line."""
    tests = [(f"datum.value === {json.dumps(words[name])}", style) for name, style in look.items()]
    return alt.Axis(
        orient="right",
        title=None,
        grid=False,
        ticks=True,
        labelFlush=False,
        labelBaseline="middle",
        offset=14,
        tickSize=26,
        tickWidth=3,
        tickColor={"condition": [{"test": test, "value": style.color} for test, style in tests], "value": GREY},
        tickDash={"condition": [{"test": test, "value": style.dash} for test, style in tests], "value": [1, 0]},
        labelLimit=0,
        labelPadding=8,
    )
