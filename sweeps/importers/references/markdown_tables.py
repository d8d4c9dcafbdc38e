"""Pipe tables of a Markdown report, each read as a table of measurements."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sweeps.errors import UserError
from sweeps.importers.references.csv_table import CsvColumns, named_cells, read_cells, text_of

_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
"""The line between header and rows, which makes lines with pipes a table."""
_BAR = r"(?<!\\)\|"
_MARKUP = re.compile(r"\*\*|__|`")


def read_markdown_tables(
    path: Path, *, mapping: Mapping[str, str] | None = None
) -> Iterator[tuple[int, CsvColumns | UserError]]:
    """The tables of a Markdown file, each with the line of its header; an error for one that has no
    measurements.

    Emphasis and code marks in cells are dropped, cells that are missing at the end of a row are
    empty. `mapping` as in `read_csv_rows`. Raises `UserError` for a file that cannot be read or has
    no table.
    """
    lines = text_of(path).splitlines()
    tables = 0
    for place in range(1, len(lines)):
        if "|" in lines[place] and "|" in lines[place - 1] and _RULE.fullmatch(lines[place]):
            tables += 1
            try:
                yield place, _table_at(path, lines, place, mapping)
            except UserError as error:
                yield place, error
    if not tables:
        raise UserError(
            f"{path} has no table: a line of names, one of dashes, and rows, all with | between"
            " cells"
        )


def _table_at(
    path: Path, lines: list[str], rule: int, mapping: Mapping[str, str] | None
) -> CsvColumns:
    """The table whose line of dashes has this index."""
    end = next(
        (place for place in range(rule + 1, len(lines)) if "|" not in lines[place]), len(lines)
    )
    rows = [lines[rule - 1], "", *lines[rule + 1 : end]]  # the empty row stands for the dashes
    cells = (
        named_cells(path, "\n".join(map(_bare, rows)), _BAR, rule - 1)
        .fillna("")
        .replace(r"\\\|", "|", regex=True)
    )
    cells.columns = cells.columns.str.replace("\\|", "|", regex=False)
    return read_cells(path, cells, mapping=mapping)


def _bare(line: str) -> str:
    """A line without markup and without the bars around it."""
    return _MARKUP.sub("", re.sub(rf"{_BAR}$", "", line.strip().removeprefix("|")))
