"""Labels of rows: long ones continue on further lines, so that charts keep their width and nothing
is cut.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt

LINE_LETTERS = 38
"""Of one line."""
LINE, ROOM = 14, 14
"""Pixels of a line, and between rows."""
CENTRED: dict[str, Any] = {"labelBaseline": "middle", "labelFlush": False}
"""Of labels: also the first and the last stand in the middle of their rows."""


def wrapped(label: str) -> str:
    """A label with a line break after at most `LINE_LETTERS` characters, at spaces where there are
    some.
    """
    return "\n".join(textwrap.wrap(label, LINE_LETTERS) or [""])


def plain_rows(**more: Any) -> alt.Axis:
    """The axis of rows with short labels: each in the middle of its row, without lines."""
    look: dict[str, Any] = {"labelLimit": 300, "ticks": False, "domain": False, "grid": False}
    return alt.Axis(**look | CENTRED | more)


def row_axis(labels: Sequence[str], title: str | None = None, **more: Any) -> alt.Y:
    """An encoding of `row`, whose values are `wrapped` labels, in the order of `labels`."""
    axis = alt.Axis(
        labelExpr="split(datum.label, '\\n')",
        labelLimit=0,
        ticks=False,
        domain=False,
        **CENTRED,
        **more,
    )
    return alt.Y(
        "row:N",
        scale=alt.Scale(domain=[wrapped(label) for label in labels]),
        title=title,
        axis=axis,
    )


def row_step(labels: Sequence[str]) -> alt.Step:
    """Height of a chart with these rows: every row is as high as the highest label."""
    lines = max((wrapped(label).count("\n") + 1 for label in labels), default=1)
    return alt.Step(lines * LINE + ROOM)
