"""Number format: how counts, durations, values, intervals and places on an axis are printed, in the
report and in the web app.
"""

import math
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple


class AxisLabel(NamedTuple):
    """An axis of curves in words."""

    title: str
    unit: str = ""
    """After a number in a sentence."""
    before: str = ""
    """In front of it, instead of a unit."""

    @property
    def along(self) -> str:
        """After `Along`."""
        return "the share of GMACs saved" if self.title == "GMACs saved" else self.title


AXIS_LABELS: Mapping[str, AxisLabel] = {
    "tokens": AxisLabel("tokens", "tokens"),
    "gmacs": AxisLabel("GMACs", "GMACs"),
    "gmacs_saved": AxisLabel("GMACs saved", "of GMACs saved"),
    "image_size": AxisLabel("image size", "px"),
    "batch_size": AxisLabel("batch size", before="batch size "),
    "threads": AxisLabel("threads", "threads"),
}
"""The axes of the view `break_even`, in the order in which they are shown; along `parameter` come
those that vary."""
WHOLE = frozenset({"tokens", "image_size", "batch_size", "threads"})
"""Axes of whole numbers."""

MIN_P = 1e-300
"""Smaller p values are printed as such."""


def axis_label(axis: str, parameter: str | None = None, x_axis: str | None = None) -> AxisLabel:
    """An axis in words; along `parameter` that of the name of the parameter that varies, along
    tokens `x_axis` where that is what they are.
    """
    if axis == "tokens" and x_axis is not None:
        return AxisLabel(x_axis, x_axis)
    if axis != "parameter":
        return AXIS_LABELS[axis]
    name = parameter or "a parameter"
    return AxisLabel(name, before=f"{name} ")


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: `None`, or NaN, which a column of numbers has instead."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def axis_value(value: float | None, axis: str, digits: int = 3) -> str:
    """A place on an axis: whole numbers, also of a parameter, or GMACs and (from a share of 1) per
    cent saved with so many significant digits.
    """
    if value is None or is_missing(value):
        return "?"
    if axis in WHOLE or (axis == "parameter" and value % 1 == 0):
        return f"{value:,.0f}"
    rounded = float(f"{100 * value if axis == 'gmacs_saved' else value:.{digits}g}")
    return f"{rounded:g} %" if axis == "gmacs_saved" else f"{rounded:,g}"


def pixels_text(size: float, shape: Any = None) -> str:
    """The columns `image_size` and `image_shape`: `64`, `64x96`."""
    return f"{size:.0f}" if is_missing(shape) else f"{shape}"


def image_text(size: float, shape: Any = None) -> str:
    """The same with the unit: `64 px`, `64x96 px`."""
    return f"{pixels_text(size, shape)} px"


def count(number: int, unit: str) -> str:
    """`1 point`, `2 points`, `12,000 points`."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """`45 s`, `12 min` or `3.4 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def age(seconds: float) -> str:
    """`45 s`, `12 min`, `3.4 h` or `12 days`."""
    return duration(seconds) if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def moment(seconds: float) -> str:
    """`23 Nov 07:23`, in UTC, of seconds since the epoch."""
    return time.strftime("%-d %b %H:%M", time.gmtime(seconds))


def seconds_at(timestamp: str) -> float:
    """Seconds since the epoch of a time as views have it (ISO 8601)."""
    return datetime.fromisoformat(timestamp).timestamp()


def format_number(value: float | None, form: str, unit: float = 1) -> str:
    """A value in multiples of `unit` in the given format; a dash where it is missing."""
    return "-" if value is None or is_missing(value) else f"{value / unit:{form}}"


def p_text(p: float, equal: str = "") -> str:
    """A p value: `0.042`, `= 0.042` with an `equal` sign, or `< 1e-300` where it underflows."""
    return f"{equal}{p:.2g}" if p >= MIN_P else f"< {MIN_P:g}"


def with_interval(
    value: float | None, low: float | None, high: float | None, form: str = ".2f"
) -> str:
    """`1.10 [0.31, 1.92]` in the given format, without the interval where there is none; a dash
    where the value is missing.
    """
    interval = "" if is_missing(low) or is_missing(high) else f" [{low:{form}}, {high:{form}}]"
    return "-" if is_missing(value) else f"{format_number(value, form)}{interval}"
