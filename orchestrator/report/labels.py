"""Phrases: how a report and a progress line name arms, ratios, places on an axis and verdicts."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from store.host_labels import incomplete
from workers.methods.arm_labels import params_label

if TYPE_CHECKING:
    import pandas as pd

STYLES = {
    "faster": "green",
    "slower": "red",
    "better": "green",
    "worse": "red",
    "same": "",
    "within floor": "",
    "unclear": "dim",
    **{f"probably {side}": "dim" for side in ("faster", "slower", "better", "worse")},
    "too few pairs": "dim",
    "no interval": "dim",
    "crossing": "bold",
    "always": "green",
    "never": "red",
}
"""How each word of a verdict (`sweeps.labels`) or of a break-even looks on a terminal."""


def absent(value: Any) -> bool:
    """Whether a cell holds nothing: `None`, or what a frame has in a column of numbers for it."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def of_several(exclusive: Any) -> str:
    """What follows the name of a GPU that was timed beside others of its node."""
    return ", one GPU of several at work (exclusive: device)" if exclusive == "device" else ""


def rows(frame: "pd.DataFrame") -> Iterator[Any]:
    """The rows of a frame as named tuples, whose fields have no types."""
    yield from frame.itertuples()


def amount(value: float | None, axis: str) -> str:
    """A position on an axis: whole tokens, GMACs with three significant digits, or a share saved in per cent."""
    if value is None or absent(value):
        return "?"
    if axis == "gmacs_saved":
        return f"{100 * value:.3g} %"
    return f"{value:.0f}" if axis == "tokens" else f"{value:.3g}"


def label(row: Any, without: str | None = None) -> str:
    """The arm of a row of a view; `without` leaves out one of its parameters."""
    return params_label(row.method, row.params, without=without or "")


UNITS = {"tokens": "tokens", "gmacs": "GMACs of the baseline", "gmacs_saved": "of the baseline's GMACs saved"}
AXES = {"tokens": "tokens", "gmacs": "GMACs", "gmacs_saved": "GMACs saved"}


def named(row: Any) -> str:
    """The arm of a break-even; along GMACs saved the parameter that moves is named without a value."""
    if absent(row.varies):
        return label(row)
    return f"{label(row, row.varies)}, {row.varies} moving"


def sentence(row: Any) -> str:
    """The break-even of one curve along one axis, in words; first what the curve lacks."""
    lacking = incomplete(row)
    return f"{lacking}; {_crossing(row)}" if lacking else _crossing(row)


def _crossing(row: Any) -> str:
    unit = UNITS[row.axis]
    if row.verdict == "crossing":
        what = "pays from" if row.direction == "gains" else "stops paying at"
        limited = ", neighbours on the grid" if row.grid_limited else ""
        between = f"between {amount(row.x_low, row.axis)} and {amount(row.x_high, row.axis)}{limited}"
        on = " on" if row.direction == "gains" else ""
        return f"{what} {amount(row.x, row.axis)} {unit}{on} ({between}){_flagged(row.why)}"
    return {"always": "always pays", "never": "never pays", "unclear": "cannot tell"}[row.verdict] + (
        f": {row.why}" if row.why else ""
    )


def _flagged(why: str) -> str:
    """The sentence of `why` on flagged points, which the others carry in full."""
    return "".join(f". {part.rstrip('.')}" for part in why.split(". ") if "flagged" in part.lower())


def bounded(value: float | None, low: float | None, high: float | None, form: str = ".2f") -> str:
    """`1.10 [0.31, 1.92]` in the given format, or without the interval where there is none."""
    if value is None or absent(value):
        return "-"
    interval = "" if absent(low) or absent(high) else f" [{low:{form}}, {high:{form}}]"
    return f"{value:{form}}{interval}"


def markdown_row(cells: Any) -> str:
    """One row of a table in GitHub-flavoured Markdown."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
