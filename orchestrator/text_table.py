"""Where commands print for people, and text tables: rows in columns of fixed width, one line for
each row, written as it is made and never cut.
"""

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

if TYPE_CHECKING:
    from rich.console import Console

UNCUT = 10_000
"""Cells of a line in a file or a pipe: wider than any table, so that neither a heading nor a cell
is cut or folded."""
WIDEST = 80
"""Cells that a column is made wide for; a longer value is printed whole and moves the rest of its
line to the right."""
GAP = "  "
FIRST_ROWS = 1000
FIRST_SECONDS = 0.5
"""How many rows, or of how long, a table waits for before its widths stand."""


def table_lines(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A line of headings and one for each row, without line ends; numbers are aligned to the right,
    NULL is empty.

    Widths are those of the first rows: `FIRST_ROWS`, or as many as come within `FIRST_SECONDS`; a
    longer value that follows is printed whole. Rows after them are read one by one, each when its
    line is taken. What would break a line or steer a terminal (line ends, escape sequences) is
    printed as its Python escape, so that a result of n rows has n + 1 lines.
    """
    coming = iter(rows)
    first = list(_first(coming))
    names = [cell(heading) for heading in headings]
    shown = [[cell(value) for value in row] for row in first]
    widths, right = [], []
    for index, name in enumerate(names):
        sizes = [size for row in shown if (size := _cells(row[index])) <= WIDEST]
        widths.append(max([_cells(name), *sizes]))
        kinds = {type(row[index]) for row in first} - {type(None)}
        right.append(bool(kinds) and kinds <= {int, float, bool})
    for cells in itertools.chain(
        [names], shown, ([cell(value) for value in row] for row in coming)
    ):
        padded = []
        for text, width, to_right in zip(cells, widths, right, strict=True):
            filling = " " * (width - _cells(text))
            padded.append(filling + text if to_right else text + filling)
        yield GAP.join(padded).rstrip()


def _first(rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """As many rows as the widths are made of."""
    until = time.monotonic() + FIRST_SECONDS
    for row in itertools.islice(rows, FIRST_ROWS):
        yield row
        if time.monotonic() > until:
            return


def cell(value: Any) -> str:
    """A value on one line; empty for NULL."""
    text = "" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _cells(text: str) -> int:
    """Terminal cells that a text takes: East Asian letters take two."""
    return len(text) if text.isascii() else cell_len(text)


def markdown_row(cells: Sequence[Any]) -> str:
    """One row of a table in GitHub-flavoured Markdown."""
    return "| " + " | ".join(cell(each).replace("|", "\\|") for each in cells) + " |"


def output() -> "Console":
    """The console for people; what goes to a file or a pipe has the width that it needs."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=UNCUT)
