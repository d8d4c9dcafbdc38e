"""Delimited text as a table of cells, each kept as it is written."""

import re
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_TOO_WIDE = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
"""The message of pandas about a row that is longer than the first."""


class TableError(ValueError):
    """Text that is no table, and its row, from 1, where that is known."""

    def __init__(self, problem: str, row: int | None = None) -> None:
        super().__init__(problem)
        self.row = row


def parse_cells(text: str, delimiter: str) -> "pd.DataFrame":
    """The cells of a text without the space around them; the index is the number of the line, from
    1.

    The first row holds the names. Empty rows are left out; cells that a row lacks at its end are
    NaN. delimiter: one character, or a regular expression, with which quotation marks have no
    meaning. Raises `TableError` for a row that is longer than the first.
    """
    import pandas as pd

    try:
        cells = pd.read_csv(
            StringIO(text),
            sep=delimiter,
            header=None,
            dtype=str,
            na_filter=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            engine="python",  # the other one fills rows that are cut off with empty cells
        )
    except pd.errors.ParserError as error:
        wide = _TOO_WIDE.search(str(error))
        if wide is None:
            raise TableError(f"is no table: {error}") from None
        raise TableError(f"has {wide[3]} cells, the header has {wide[1]}", int(wide[2])) from None
    cells.index += 1
    stripped: pd.DataFrame = cells.apply(lambda column: column.str.strip())
    return stripped.loc[(stripped.fillna("") != "").any(axis=1)]
