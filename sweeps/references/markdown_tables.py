"""Pipe tables of a Markdown report, each read as a table of measurements."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sweeps.errors import UserError
from sweeps.references.csv_table import CsvColumns, read_cells, text_of

_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
"""The line between header and rows, which makes lines with pipes a table."""
_BAR = re.compile(r"(?<!\\)\|")
_MARKUP = re.compile(r"\*\*|__|`")


def read_markdown_tables(path: Path, *, mapping: Mapping[str, str] | None = None) -> Iterator[tuple[int, CsvColumns | UserError]]:
    """The tables of a Markdown file, each with the line of its header; an error for one that has no measurements.

    Emphasis and code marks in cells are dropped, cells that are missing at the end of a row are empty. `mapping` as in
    `read_csv_rows`. Raises `UserError` for a file that cannot be read or has no table.
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
        raise UserError(f"{path} has no table: a line of names, one of dashes, and rows, all with | between cells")


def _table_at(path: Path, lines: list[str], rule: int, mapping: Mapping[str, str] | None) -> CsvColumns:
    """The table whose line of dashes has this index."""
    header = _cells(lines[rule - 1])
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise UserError(f"{path}:{rule}: the column {twice[0]!r} stands there twice")
    numbers, rows = list[int](), list[list[str]]()
    for place in range(rule + 1, len(lines)):
        if "|" not in lines[place]:
            break
        cells = _cells(lines[place])
        if len(cells) > len(header):
            raise UserError(f"{path}:{place + 1}: has {len(cells)} cells, the header has {len(header)}")
        numbers.append(place + 1)
        rows.append(cells + [""] * (len(header) - len(cells)))
    if not rows:
        raise UserError(f"{path}:{rule}: the table has no rows")
    return read_cells(path, header, numbers, rows, ",", mapping=mapping)


def _cells(line: str) -> list[str]:
    """The cells of a line, without markup."""
    inner = re.sub(r"(?<!\\)\|$", "", line.strip().removeprefix("|"))
    return [_MARKUP.sub("", cell).replace("\\|", "|").strip() for cell in _BAR.split(inner)]
