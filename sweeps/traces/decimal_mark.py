"""Numbers as a profiler writes them in the locale of its user: decimal point or comma, with or without groups of thousands."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from sweeps.traces.device_trace import TraceError

DecimalMark = Literal[".", ","]

SPACES = re.compile(r"[\s\u00a0\u2009\u202f'\u2019]")
"""They separate thousands in some locales, and decide nothing."""
PLAIN = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?")
NOTHING = frozenset({"", "n/a", "na", "nan", "-nan", "inf", "-inf", "(null)", "null", "-"})
"""Cells without a number."""


class NumberCell(NamedTuple):
    """A cell that should hold a number."""

    text: str
    percent: bool = False
    """It is a percentage, so that it is below a thousand."""


def find_mark(cells: Iterable[NumberCell]) -> DecimalMark:
    """The decimal mark of a file from all its numbers; a point where no number has any mark.

    Raises `TraceError` if numbers contradict each other, or if all of them may be read either way, such as `1,234`.
    """
    example: dict[DecimalMark, str] = {}
    unclear = ""
    for each in cells:
        text = _bare(each.text)
        if not PLAIN.fullmatch(text):
            continue
        mark = _mark(text, each.percent)
        if mark is not None:
            example.setdefault(mark, each.text)
        elif "," in text or "." in text:
            unclear = unclear or each.text
    if len(example) == 2:
        raise TraceError(f"its numbers have two decimal marks: {example['.']!r} a point, {example[',']!r} a comma; expected one")
    if not example and unclear:
        raise TraceError(
            f"{unclear!r} may be a number with decimals or one with a group of thousands, and no other number in it decides; "
            "export it again with LC_ALL=C, or with a metric in per cent such as the SM throughput"
        )
    return next(iter(example), ".")


def parse_number(text: str, mark: DecimalMark) -> float | None:
    """The number in a cell whose decimal mark is known; `None` for a cell without one. Raises `ValueError` for anything else."""
    bare = _bare(text)
    if bare.lower() in NOTHING:
        return None
    if not PLAIN.fullmatch(bare):
        raise ValueError(f"{text!r} is no number")
    group = "," if mark == "." else "."
    whole, _, rest = bare.partition(mark)
    if group in rest or mark in rest or (group in whole and not re.fullmatch(rf"[+-]?\d{{1,3}}(\{group}\d{{3}})+", whole)):
        raise ValueError(f"{text!r} is no number with the decimal mark {mark!r}")
    if "e" in bare.lower():
        return float(bare.replace(group, "").replace(mark, "."))
    return float(f"{whole.replace(group, '')}.{rest or '0'}")


def _bare(text: str) -> str:
    """Without spaces, and without what newer versions add to a sum in brackets: `158 (0: 158)`."""
    return SPACES.sub("", text.partition(" (")[0])


def _mark(text: str, percent: bool) -> DecimalMark | None:
    """The decimal mark of one number, if it can be no other."""
    points, commas = text.count("."), text.count(",")
    if points and commas:
        return "." if text.rindex(".") > text.rindex(",") else ","
    if points + commas == 0:
        return None
    own: DecimalMark = "." if points else ","
    other: DecimalMark = "," if points else "."
    if points + commas > 1:
        return other  # only thousands have several marks
    before, _, after = re.split(r"[eE]", text)[0].lstrip("+-").partition(own)
    grouped = len(after) == 3 and 1 <= len(before) <= 3 and not before.startswith("0")
    return None if grouped and not percent else own
