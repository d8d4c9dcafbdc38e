"""Section of a report: a title, a table of described columns and lines of text, independent of the
format it is rendered in.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

STYLES: Mapping[str, str] = {
    **dict.fromkeys(("faster", "better", "always"), "green"),
    **dict.fromkeys(("slower", "worse", "never"), "red"),
    **dict.fromkeys(("same", "within floor"), ""),
    "crossing": "bold",
}
"""How the word of a verdict (`sweeps.analysis.labels`) or of a break-even looks on a terminal."""
UNCERTAIN = "dim"
"""How all other words look."""


class Column(NamedTuple):
    """A column of a table."""

    label: str
    cell: Callable[[Any], str]
    """The text of a cell, from its row."""
    left: bool = False
    wraps: bool = False
    style: Callable[[Any], str] | None = None
    """How a cell looks on a terminal, from its row; `None`: as the row."""


class TextLine(NamedTuple):
    """A line of text below a table."""

    text: str
    style: str = ""


class Section(NamedTuple):
    """A part of a report."""

    title: str
    columns: Sequence[Column] = ()
    rows: Sequence[Any] = ()
    row_style: Callable[[Any], str] = lambda _: ""
    lines: Sequence[TextLine] = ()
    note: str = ""
    """What the columns mean, where their labels are too short for it."""
    level: int = 2
    """Depth of the title: 2 for a section, 3 for a part of the one before."""

    def cells(self) -> list[tuple[str, ...]]:
        """The text of every cell, by row."""
        return [tuple(column.cell(row) for column in self.columns) for row in self.rows]


HINT_WIDTH = 118
"""Characters of a line of a hint, behind its indent."""
_COMMAND = ": breakeven "


def hint_lines(hint: str) -> list[str]:
    """A hint in lines of `HINT_WIDTH`; a command at its end is in one line, however long it is."""
    words, _, command = hint.rpartition(_COMMAND)
    lines = textwrap.wrap(words or command, HINT_WIDTH - 1, break_long_words=False)
    if words and len(lines[-1] + _COMMAND + command) > HINT_WIDTH:
        return [*lines[:-1], f"{lines[-1]}:", f"  breakeven {command}"]
    return [*lines[:-1], lines[-1] + _COMMAND + command] if words else lines


def style_of(word: str) -> str:
    return STYLES.get(word, UNCERTAIN)


def join_flags(flags: str | None, *notes: str) -> str:
    """Flags as they are stored, and what stood out besides, separated by a comma and a space."""
    return ", ".join(filter(None, (*(flags or "").split(","), *notes)))


def filled_columns(columns: Sequence[Column], rows: Sequence[Any]) -> list[Column]:
    """The columns that have a text other than a dash in some row."""
    return [column for column in columns if any(column.cell(row) not in {"-", ""} for row in rows)]
