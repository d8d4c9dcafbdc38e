"""What a panel answers: the curve of each arm, the best in a headline, the table of all; and the
same of all sweeps at once.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd

from store.read import queries as stored
from sweeps.analysis.labels import GAINS, Finding
from sweeps.analysis.rows import ClaimRow
from sweeps.number_format import seconds_at
from sweeps.text.curves import CurveAnswer, answer_of_curve, headline_of_curves, no_gain
from webapp.charts import panels
from webapp.charts.panels import X_COLUMN, Panel, flagged
from webapp.charts.scales import Extent, x_span
from webapp.display import plain, texts
from webapp.display.arm_style import ArmStyle, arm_styles, label_arms
from webapp.display.axis_curves import Axis, curves_along
from webapp.display.texts import PointRow
from webapp.queries import kept
from webapp.widgets.filters import plan_choices
from webapp.widgets.tables import TINTS, grid_html
from workers.methods import purpose

Line = Sequence[tuple[float, float | None]]
"""Places on the axis, each with its speed-up where that is known."""
Curves = Sequence[tuple[str, Line]]
"""Of each arm its colour and its line."""
LINE_MARK = "display:inline-block;width:14px;height:4px;vertical-align:middle"
"""Of the colour of an arm."""
CURVE, BAR = (112, 26), (128, 12)
"""Width and height in pixels of a small curve and of a bar."""


class PanelAnswers(NamedTuple):
    """What sentence and cards of a panel are made from, read once for both."""

    panel: Panel
    axis: Axis
    points: Mapping[str, list[PointRow]]
    """Those of each arm that no flag marks as wrong, or all where each is; arms best first, points
    in order along the axis."""
    rows: Mapping[str, list[ClaimRow]]
    """By arm."""
    curves: Mapping[str, CurveAnswer]
    """What the curve of each arm claims; empty for a panel with one size."""

    @property
    def counted(self) -> list[PointRow]:
        return [row for own in self.points.values() for row in own]


def answers_of_panel(panel: Panel, axis: Axis) -> PanelAnswers:
    right = panel.points[~flagged(panel.points)]
    counted = pd.concat([right, panel.points[~panel.points["arm"].isin(right["arm"])]])
    ordered = counted.sort_values(X_COLUMN[axis], kind="stable")
    points: dict[str, list[PointRow]] = {
        arm: [] for arm in panels.ranked_arms(panel.points, panel.break_evens)
    }
    for row in texts.point_rows(ordered):
        points[row.arm].append(row)
    rows = panels.rows_by_arm(panel.break_evens)
    known = PanelAnswers(panel, axis, points, rows, {})
    return known if panel.single(axis) else known._replace(curves=_curves(known))


def _curves(known: PanelAnswers) -> dict[str, CurveAnswer]:
    """What the curve of each arm claims, best first."""
    found = {}
    for arm, (first, *_) in known.points.items():
        for_use, rows = purpose(first.method) == "optimisation", known.rows.get(arm, [])
        found[arm] = answer_of_curve(first.method, arm, rows, for_use=for_use)
    return found


def best_arm(known: PanelAnswers) -> str:
    """The best arm in about twelve words."""
    if known.curves:
        return headline_of_curves(list(known.curves.values()))
    winners = [row for row in known.counted if gains(row)]
    best = max(winners, key=lambda row: row.speedup_low or 0.0, default=None)
    if best is None:
        return no_gain(len(known.counted))
    return f"{best.arm} {texts.single_point(best)}"


def place_of(row: PointRow, axis: Axis) -> float:
    places = {"tokens": row.tokens, "gmacs": row.gmacs_baseline, "gmacs_saved": row.gmacs_saved}
    return float(places[axis] or 0.0)


def gains(row: PointRow) -> bool:
    return texts.speed(row).finding in GAINS - {Finding.SMALL_GAIN}


class Overview(NamedTuple):
    """A sweep in a line: what the page Answer shows of it first."""

    headline: str
    measured_at: float
    """Of its newest answer, in seconds since the epoch."""
    axis: Axis
    curves: Curves


@kept
def overviews(engine: Any, names: tuple[str, ...]) -> dict[str, Overview]:
    """Those of these sweeps that have a speed-up, read by one query for each view."""
    counts = stored.panel_counts(engine, names)
    scopes = {
        str(name): plan_choices(str(name), own, {}).scope
        for name, own in counts.groupby("sweep", sort=False)
    }
    last = counts.groupby("sweep")["measured_at"].max()
    if not scopes:
        return {}
    wanted = [(name, scope.conditions) for name, scope in scopes.items()]
    points, break_evens = (
        stored.rows_of_panels(engine, wanted, view) for view in ("speedup", "break_even")
    )
    found = {}
    for name in scopes:
        own = label_arms(*(rows[rows["of_sweep"] == name] for rows in (points, break_evens)))
        axis = panels.curve_axes(*own)[0]
        drawn = curves_along(*own, axis)
        known = answers_of_panel(next(panels.curve_panels(*drawn, axis)), axis)
        styles = arm_styles(drawn[0])
        lines = [(styles[arm].color, speeds(rows, axis)) for arm, rows in known.points.items()]
        found[name] = Overview(best_arm(known), seconds_at(last[name]), axis, lines)
    return found


def speeds(rows: Sequence[PointRow], axis: Axis) -> Line:
    """The places of points, each with its speed-up where that is known."""
    return [
        (place_of(row, axis), None if row.verdict in texts.UNDECIDED else row.speedup)
        for row in rows
    ]


class ArmRow(NamedTuple):
    """What the table has of an arm."""

    label: str
    role: str
    """Empty for an optimisation, else what it is."""
    style: ArmStyle
    curve: Line
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
