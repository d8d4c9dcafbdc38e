"""Break-evens of curves in words, for the report and the web app."""

from collections.abc import Sequence
from typing import Any

from sweeps.number_format import AXIS_LABELS, axis_value, is_missing


def axis_place(x: float, axis: str, token_unit: str) -> str:
    """A place on an axis with its unit, such as `36 prompt tokens`, `0.3 GMACs` or `42 % of GMACs saved`."""
    return f"{axis_value(x, axis)} {token_unit if axis == 'tokens' else AXIS_LABELS[axis].unit}"


def describe_break_even(
    rows: Sequence[Any], token_unit: str, measured: tuple[float, float] | None = None, *, brief: bool = False
) -> str:
    """The break-even of one curve, its rows of the view `break_even`, as the rest of a sentence that begins with the arm's label.

    `measured` is the smallest and the largest x, where they are known. A `brief` one has no reasons and no notes on flagged points.
    """
    if not rows:
        return "not analysed"
    first = rows[0]
    if first.verdict == "crossing":
        text = _crossings(sorted(rows, key=lambda row: float(row.x)), token_unit)
    elif first.verdict == "always":
        span = f", {axis_value(measured[0], first.axis)} to {axis_place(measured[1], first.axis, token_unit)}" if measured else ""
        text = f"pays at every point measured{'' if brief else span}"
    elif first.verdict == "never":
        text = "never pays" + (f" up to {axis_place(measured[1], first.axis, token_unit)}" if measured else "")
    else:
        reason = str(first.why).partition(". ")[0].rstrip(".")
        text = "unclear" + ("" if brief else f": {reason[:1].lower()}{reason[1:]}")
    all_flagged = not brief and "All points are flagged" in str(first.why)
    return "; ".join(filter(None, (text, "all points are flagged" if all_flagged else "", describe_missing(first))))


def describe_missing(row: Any) -> str:
    """What a curve in the view `break_even` lacks, such as `incomplete, 5 of 8 points are missing on host a`; empty if nothing."""
    missing, points = int(row.points_missing or 0), int(row.points)
    return f"incomplete, {missing} of {points + missing} points are missing on host {row.host}" if missing else ""


def _crossings(rows: Sequence[Any], token_unit: str) -> str:
    places = []
    for row in rows:
        ends = "" if is_missing(row.x_low) else f"{axis_value(row.x_low, row.axis)} to {axis_value(row.x_high, row.axis)}"
        limited = ", neighbouring points" if row.grid_limited else ""
        interval = f" ({ends}{limited})" if ends else ""
        places.append((axis_place(row.x, row.axis, token_unit), interval))
    if len(places) > 1:
        return f"crosses 1× at {', '.join(place + interval for place, interval in places)}"
    ((place, interval),) = places
    return f"stops paying at {place}{interval}" if rows[0].direction == "loses" else f"pays from {place} on{interval}"
