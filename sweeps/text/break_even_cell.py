"""Break-even in a cell of a map: from how many tokens on a curve pays, in as few words as an
interval allows.
"""

from collections.abc import Sequence
from math import ceil, floor
from typing import Any, Literal, NamedTuple

from sweeps.number_format import is_missing
from sweeps.stats.curve import NEVER_GAIN
from sweeps.text.curve_labels import describe_break_even, token_unit

CellKind = Literal["pays", "limited", "never", "none", "unclear", "differs"]
"""`pays` from a size on; `limited`: up to a size, or at both ends; `never`: not shown to pay, and
gains little; `none`: does nothing; `differs`: several curves, not alike."""
ORDER: tuple[CellKind, ...] = ("pays", "limited", "unclear", "differs", "none", "never")
"""From what is to be preferred to what is not."""


class BreakEvenCell(NamedTuple):
    """What a cell shows."""

    text: str
    """`≤ 36`, `53 to 71`, `always`, `up to 100`, `gains ≤ 5 %`, `no effect`, `?` or `differs`."""
    kind: CellKind
    place: float | None
    """Tokens from which on it pays at the latest; 0 where it pays at every point, `None` where it
    does not."""
    sentence: str
    """The same with its reasons, for a hover text."""


def break_even_cell(rows: Sequence[Any]) -> BreakEvenCell:
    """The cell of one curve: its rows of the view `break_even` along the tokens."""
    first = rows[0]
    sentence = describe_break_even(rows, token_unit(first))
    if first.verdict in ("crossing", "pays_from"):
        if first.direction == "loses":
            return BreakEvenCell(f"up to {_number(floor(first.x_low))}", "limited", 0.0, sentence)
        high = _number(ceil(first.x_high))
        text = (
            f"≤ {high}" if is_missing(first.x_low) else f"{_number(floor(first.x_low))} to {high}"
        )
        return BreakEvenCell(text, "pays", float(first.x_high), sentence)
    if first.verdict == "pays_up_to":
        return BreakEvenCell(f"up to {_number(floor(first.x_low))}", "limited", 0.0, sentence)
    if first.verdict == "pays_at_both_ends":
        low = next(row.x_low for row in rows if row.direction == "loses")
        high = next(row.x_high for row in rows if row.direction == "gains")
        return BreakEvenCell(
            f"up to {_number(floor(low))}, from {_number(ceil(high))}", "limited", 0.0, sentence
        )
    words: dict[str, tuple[str, CellKind, float | None]] = {
        "always": ("always", "pays", 0.0),
        "pays_between": ("in part", "limited", 0.0),
        "same": ("no different", "never", None),
        "never": (f"gains ≤ {100 * NEVER_GAIN:g} %", "never", None),
        "no_effect": ("no effect", "none", None),
    }
    text, kind, place = words.get(first.verdict, ("?", "unclear", None))
    return BreakEvenCell(text, kind, place, sentence)


def earliest(cells: Sequence[BreakEvenCell]) -> int:
    """Place of the cell to prefer of several arms: the one that pays from the fewest tokens on."""
    return min(
        range(len(cells)),
        key=lambda at: (
            ORDER.index(cells[at].kind),
            cells[at].place if cells[at].place is not None else 0.0,
        ),
    )


def alike(cells: Sequence[BreakEvenCell]) -> BreakEvenCell:
    """The cell of several curves of one arm, such as those of several hosts: theirs where they
    agree.
    """
    if len({cell.text for cell in cells}) == 1:
        return cells[0]
    return BreakEvenCell(
        "differs", "differs", None, "\n".join(f"{cell.text}: {cell.sentence}" for cell in cells)
    )


def _number(value: int) -> str:
    return f"{value:,}"
