"""How a figure for a paper is set: its size, font and layout, as the command line states them."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sweeps.errors import UserError

Axes = Literal["tokens", "gmacs", "gmacs_saved", "both"]
Venue = Literal["icml", "icml-wide", "neurips", "acm", "acm-wide", "beamer", "beamer-wide"]
Legend = Literal["right", "bottom", "labels", "none"]
INCH = 72.0
"""Points; the units of a figure are those of PDF and CSS."""
UNITS = {"in": INCH, "cm": INCH / 2.54, "mm": INCH / 25.4, "pt": INCH / 72.27}
"""Points of each unit of length; `pt` is that of TeX, as it prints lengths."""
SERIF = "Times, Times New Roman, Nimbus Roman, Liberation Serif, TeX Gyre Termes, serif"
LIBERTINE = f"Linux Libertine O, Linux Libertine, Libertinus Serif, {SERIF}"
SANS = "Latin Modern Sans, Helvetica, Arial, Liberation Sans, sans-serif"


class Setting(NamedTuple):
    """What a template gives: the width of a column or of the text, in points, size and font."""

    width: float
    font_size: float
    font: str


VENUES: Mapping[Venue, Setting] = {
    # icml2024.sty: \textwidth 6.75in, \columnsep 0.25in
    "icml": Setting(3.25 * INCH, 8, SERIF),
    "icml-wide": Setting(6.75 * INCH, 8, SERIF),
    # neurips_2024.sty: \textwidth 5.5in
    "neurips": Setting(5.5 * INCH, 8, SERIF),
    # acmart.cls, sigconf: text of 506.295pt, \columnsep 2pc
    "acm": Setting(241.1475 * UNITS["pt"], 8, LIBERTINE),
    "acm-wide": Setting(506.295 * UNITS["pt"], 8, LIBERTINE),
    # beamer.cls: pages of 128 mm (4:3) and 160 mm (16:9), margins of 1 cm
    "beamer": Setting(108 * UNITS["mm"], 9, SANS),
    "beamer-wide": Setting(140 * UNITS["mm"], 9, SANS),
}
PLAIN = Setting(3.25 * INCH, 8, "sans-serif")
SHORT_NAMES = {"device": "device_name"}
"""Columns of the views that have a shorter name on the command line."""


class PaperError(UserError):
    """There is no such figure; the message is one line with the reason and what would be right."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """How a figure is set; lengths in points."""

    width: float
    font_size: float
    font: str
    height: float | None = None
    legend: Legend | None = None
    """`labels` at the ends of lines; `None`: these for one panel, else below the panels."""
    rows: str = ""
    """The column whose values have a row of panels each."""
    columns: str = ""
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None
    title: str = ""


def paper_of(
    venue: Venue | None,
    size: tuple[str, str],
    font: tuple[float | None, str],
    *,
    split: tuple[str, str] = ("", ""),
    limits: tuple[str, str] = ("", ""),
    legend: Legend | None = None,
    title: str = "",
) -> Paper | None:
    """How a figure is set by options of the command line, empty ones where nothing is stated;
    `None` without any.

    `size`: width and height, `font`: size and name, `split`: of rows and of columns, `limits`: of x
    and of y. Raises `PaperError`.
    """
    if {venue, *size, *font, *split, *limits, legend, title} <= {None, ""}:
        return None
    usual = VENUES[venue] if venue else PLAIN
    if font[0] is not None and not 4 <= font[0] <= 40:
        raise PaperError(f"--font-size {font[0]:g}: write points from 4 to 40")
    return Paper(
        width=_points("--width", size[0]) or usual.width,
        height=_points("--height", size[1]),
        font_size=font[0] or usual.font_size,
        font=font[1] or usual.font,
        legend=legend,
        rows=SHORT_NAMES.get(split[0], split[0]),
        columns=SHORT_NAMES.get(split[1], split[1]),
        xlim=_limits("--xlim", limits[0]),
        ylim=_limits("--ylim", limits[1]),
        title=title,
    )


def _points(option: str, text: str) -> float | None:
    """A length in points; none where nothing is stated."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(in|cm|mm|pt)\s*", text)
    if text and not (found and 20 < (points := float(found[1]) * UNITS[found[2]]) < 5000):
        raise PaperError(
            f"{option} {text}: no length of a figure; write 3.3in, 84mm, 8.4cm or 241pt"
        )
    return points if found else None


def _limits(option: str, text: str) -> tuple[float, float] | None:
    """Two positive numbers, the lower first; none where nothing is stated."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = 0.0
    if text and not 0 < low < high < math.inf:
        raise PaperError(f"{option} {text}: write two positive numbers, the lower first: 0.5,2")
    return (low, high) if text else None
