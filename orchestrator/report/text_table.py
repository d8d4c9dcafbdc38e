"""Text table: rows in columns of fixed width, one line for each row, written as it is made and never cut."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len

WIDEST = 80
"""Cells that a column is made wide for; a longer value is printed whole and moves the rest of its line to the right."""
GAP = "  "


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """A line of headings and one for each row, without line ends; numbers are aligned to the right, NULL is empty.

    Widths are those of all rows. What would break a line or steer a terminal (line ends, escape sequences) is printed as its
    Python escape, so that a result of n rows has n + 1 lines.
    """
    columns = [[cell(row[index]) for row in rows] for index in range(len(headings))]
    names = [cell(heading) for heading in headings]
    widths, right = [], []
    for index, (name, column) in enumerate(zip(names, columns, strict=True)):
        widths.append(max([_cells(name), *(size for size in map(_cells, column) if size <= WIDEST)]))
        kinds = {type(row[index]) for row in rows} - {type(None)}
        right.append(bool(kinds) and kinds <= {int, float, bool})
    for cells in (names, *zip(*columns, strict=True)):
        padded = []
        for text, width, to_right in zip(cells, widths, right, strict=True):
            filling = " " * (width - _cells(text))
            padded.append(filling + text if to_right else text + filling)
        yield GAP.join(padded).rstrip()


def cell(value: Any) -> str:
    """A value on one line; empty for NULL."""
    text = "" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _cells(text: str) -> int:
    """Terminal cells that a text takes: East Asian letters take two."""
    return len(text) if text.isascii() else cell_len(text)


def markdown_row(cells: Sequence[Any]) -> str:
    """One row of a table in GitHub-flavoured Markdown."""
    return "| " + " | ".join(cell(each).replace("|", "\\|") for each in cells) + " |"
