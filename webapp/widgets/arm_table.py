"""The table of arms below the curves: the curve of each in small, its break-even as a bar, its
speed-up at the largest size, what it costs in quality, and where its evidence is.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import quote

import pandas as pd

from webapp.charts.scales import Extent, x_span
from webapp.display import plain
from webapp.display.arm_style import ArmStyle
from webapp.widgets.answers import Overview
from webapp.widgets.tables import TINTS, grid_html

LINE_MARK = "display:inline-block;width:14px;height:4px;vertical-align:middle"
"""Of the colour of an arm."""
CURVE, BAR = (112, 26), (128, 12)
"""Width and height in pixels of a small curve and of a bar."""


class ArmRow(NamedTuple):
    """What the table has of an arm."""

    label: str
    role: str
    """Empty for an optimisation, else what it is."""
    style: ArmStyle
    curve: Sequence[tuple[float, float | None]]
    """Places on the axis, each with its speed-up where that is known."""
    claim: str
    """The break-even in a cell; empty where one size was measured."""
    sentence: str
    """The same with its reasons."""
    bracket: tuple[float | None, float | None, float | None]
    """Where it begins to pay: low, likeliest, high."""
    everywhere: bool
    last: str
    """The speed-up at the largest size, in words."""
    word: str
    quality: str
    why: str
    evidence: str
    """Addresses of pages; empty where there is none."""


def arm_table_html(rows: Sequence[ArmRow], span: Extent, at: str, along: str) -> str:
    """One row an arm, in order; `at` is the largest size in words, `span` that of the axis `along`
    which curves and bars lie.
    """
    several = len({place for row in rows for place, _ in row.curve}) > 1
    most = curve_span([(row.style.color, row.curve) for row in rows])
    qualities = any(row.quality for row in rows)
    heads = [
        "arm",
        *(["speed-up", f"break-even, {along}"] if several else []),
        f"at {at}",
        *(["quality"] if qualities else []),
        "",
    ]
    body = []
    for row in rows:
        role = f' <span style="opacity:.7">({escape(row.role)})</span>' if row.role else ""
        mark = f'<span style="{LINE_MARK};background:{row.style.color}"></span>'
        shown = [f"<th scope=row>{mark} {escape(row.label)}{role}</th>"]
        if several:
            curve = [(row.style.color, row.curve)]
            shown.append(f"<td>{small_curves(curve, span, most, CURVE)}</td>")
            shown.append(
                f'<td title="{escape(row.sentence)}">{_bar(row, span)}{escape(row.claim)}</td>'
            )
        tint = TINTS.get(row.word, "none")
        shown.append(f'<td style="background:{tint}">{escape(row.last)}</td>')
        if qualities:
            shown.append(f"<td>{escape(row.quality)}</td>")
        named = {"Why?": row.why, "Evidence": row.evidence}
        links = [plain.link(label, address) for label, address in named.items() if address]
        shown.append(f'<td style="white-space:nowrap">{" · ".join(links)}</td>')
        body.append(shown)
    return grid_html("Arms", heads, body)


def _place(value: float, span: Extent, width: float) -> float:
    """Pixels from the left, as the axis of the curves has it."""
    low, high, at = (
        (math.log(span.low), math.log(span.high), math.log(max(value, span.low)))
        if span.low > 0
        else (span.low, span.high, value)
    )
    return round(min(max((at - low) / (high - low), 0.0), 1.0) * width, 1)


Curves = Sequence[tuple[str, Sequence[tuple[float, float | None]]]]
"""Of each arm its colour, and places on the axis, each with its speed-up where that is known."""


def curve_span(curves: Curves) -> float:
    """The largest logarithm of a speed-up, either way."""
    known = [value for _, points in curves for _, value in points if value]
    return max((abs(math.log(value)) for value in known), default=0.0) or 1.0


def small_curves(
    curves: Curves, span: Extent, most: float, size: tuple[int, int], alt: str = ""
) -> str:
    """An image of curves above and below no change; `most` is the logarithm at its edge."""
    width, height = size
    middle = height / 2
    parts = [f'<line x1="0" x2="{width}" y1="{middle}" y2="{middle}" stroke="#808591"/>']
    for color, known in reversed(curves):
        points = [
            (_place(at, span, width), middle - (middle - 3) * math.log(value) / most)
            for at, value in known
            if value
        ]
        dots = [f'<circle cx="{x}" cy="{y:.1f}" r="1.8" fill="{color}"/>' for x, y in points]
        line = " ".join(f"{x},{y:.1f}" for x, y in points)
        parts.append(
            f'{"".join(dots)}<polyline points="{line}" fill="none" stroke="{color}"'
            ' stroke-width="1.8"/>'
        )
    return _drawing(size, "".join(parts), alt)


def overview_image(found: Overview, size: tuple[int, int]) -> str:
    """The curves of a sweep in small, described by its headline."""
    span = x_span(pd.Series([at for _, points in found.curves for at, _ in points]), found.axis)
    return small_curves(found.curves, span, curve_span(found.curves), size, found.headline)


def _bar(row: ArmRow, span: Extent) -> str:
    """The bracket thick, where it pays thin, the likeliest place as a dot; nothing where it is not
    known to pay.
    """
    low, likely, high = row.bracket
    if high is None and not row.everywhere:
        return ""
    width, height = BAR
    middle, color = height / 2, row.style.color
    first = _place(span.low if low is None else low, span, width)
    last = 0.0 if high is None else _place(high, span, width)
    parts = [
        f'<line x1="0" x2="{width}" y1="{middle}" y2="{middle}" stroke="#808591" opacity=".4"/>',
        f'<line x1="{last}" x2="{width}" y1="{middle}" y2="{middle}" stroke="{color}"'
        ' stroke-width="2"/>',
    ]
    if high is not None:
        parts.append(
            f'<line x1="{first}" x2="{last}" y1="{middle}" y2="{middle}" stroke="{color}"'
            ' stroke-width="7" opacity=".45"/>'
        )
    if likely is not None:
        at = _place(likely, span, width)
        parts.append(f'<circle cx="{at}" cy="{middle}" r="3.5" fill="{color}"/>')
    return _drawing(BAR, "".join(parts))


def _drawing(size: tuple[int, int], parts: str, alt: str = "") -> str:
    """An image: the browser removes drawings that are part of a page's text."""
    width, height = size
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{parts}</svg>'
    source = f"data:image/svg+xml,{quote(svg)}"
    return f'<img alt="{escape(alt)}" width={width} height={height} src="{source}">'
