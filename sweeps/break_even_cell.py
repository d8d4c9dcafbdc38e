"""Break-even in a cell of a map: from how many tokens on a curve pays, in as few words as an interval allows."""

from collections.abc import Sequence
from math import ceil, floor
from typing import Any, Literal, NamedTuple

from sweeps.curve_labels import describe_break_even, token_unit
from sweeps.number_format import is_missing
from sweeps.stats.breakeven import NEVER_GAIN

CellKind = Literal["pays", "limited", "never", "none", "unclear", "differs"]
"""`pays` from a size on; `limited`: up to a size, or at both ends; `never`: not shown to pay, and gains little;
`none`: does nothing; `differs`: several curves, not alike."""
ORDER: tuple[CellKind, ...] = ("pays", "limited", "unclear", "differs", "none", "never")
"""From what is to be preferred to what is not."""


class BreakEvenCell(NamedTuple):
    """What a cell shows."""

    text: str
    """`≤ 36`, `53 to 71`, `always`, `up to 100`, `gains ≤ 5 %`, `no effect`, `?` or `differs`."""
    kind: CellKind
    place: float | None
    """Tokens from which on it pays at the latest; 0 where it pays at every point, `None` where it does not."""
    sentence: str
    """The same with its reasons, for a hover text."""


def break_even_cell(rows: Sequence[Any]) -> BreakEvenCell:
    """The cell of one curve: its rows of the view `break_even` along the tokens."""
    first = rows[0]
    sentence = describe_break_even(rows, token_unit(first))
    if first.verdict == "crossing":
        ordered = sorted(rows, key=lambda row: float(row.x if not is_missing(row.x) else row.x_low))
        gains = [row for row in ordered if row.direction != "loses"]
        text = ", ".join(_crossing(row) for row in ordered)
        kind: CellKind = "pays" if len(gains) == len(ordered) == 1 else "limited"
        return BreakEvenCell(text, kind, _latest(gains[0]) if gains else 0.0, sentence)
    if first.verdict == "pays_from":
        return BreakEvenCell(f"≤ {_number(ceil(first.x_high))}", "pays", float(first.x_high), sentence)
    if first.verdict == "pays_up_to":
        return BreakEvenCell(f"up to {_number(floor(first.x_low))}", "limited", 0.0, sentence)
    if first.verdict == "pays_at_both_ends":
        low, high = (
            next(end for end in ends if not is_missing(end))
            for ends in zip(*((row.x_low, row.x_high) for row in rows), strict=True)
        )
        return BreakEvenCell(f"up to {_number(floor(low))}, from {_number(ceil(high))}", "limited", 0.0, sentence)
    words: dict[str, tuple[str, CellKind, float | None]] = {
        "always": ("always", "pays", 0.0),
        "never": (f"gains ≤ {100 * NEVER_GAIN:g} %", "never", None),
        "no_effect": ("no effect", "none", None),
    }
    text, kind, place = words.get(first.verdict, ("?", "unclear", None))
    return BreakEvenCell(text, kind, place, sentence)


def earliest(cells: Sequence[BreakEvenCell]) -> int:
    """Place of the cell to prefer of several arms: the one that pays from the fewest tokens on."""
    return min(
        range(len(cells)), key=lambda at: (ORDER.index(cells[at].kind), cells[at].place if cells[at].place is not None else 0.0)
    )


def alike(cells: Sequence[BreakEvenCell]) -> BreakEvenCell:
    """The cell of several curves of one arm, such as those of several hosts: theirs where they agree."""
    if len({cell.text for cell in cells}) == 1:
        return cells[0]
    return BreakEvenCell("differs", "differs", None, "\n".join(f"{cell.text}: {cell.sentence}" for cell in cells))


def _crossing(row: Any) -> str:
    low, high = (None if is_missing(end) else float(end) for end in (row.x_low, row.x_high))
    if low is None and high is None:
        low = high = float(row.x)
    if row.direction == "loses":
        return f"not from {_number(ceil(high or 0.0))}" if low is None else f"up to {_number(floor(low))}"
    if low is None:
        return f"≤ {_number(ceil(high or 0.0))}"
    if high is None:
        return f"≥ {_number(floor(low))}"
    return " to ".join(dict.fromkeys((_number(floor(low)), _number(ceil(high)))))


def _latest(row: Any) -> float:
    return float(next(end for end in (row.x_high, row.x, row.x_low) if not is_missing(end)))


def _number(value: int) -> str:
    return f"{value:,}"
