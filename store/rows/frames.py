"""Rows and groups of the frames that queries return."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from sqlalchemy import ColumnElement, Engine, Executable, Select

from store.rows.transactions import batches, reading, retried

if TYPE_CHECKING:
    import pandas as pd

_R = TypeVar("_R")


def rows_of(frame: "pd.DataFrame", kind: type[_R]) -> list[_R]:
    """The rows of a frame as values of a dataclass (`sweeps.analysis.rows`) that names the columns
    to take; `None` for NULL and NaN.

    Raises `KeyError` where the frame lacks a column without a default.
    """
    columns = {
        name: _cells(frame[name], convert)
        for name, convert, required in _fields(kind)
        if required or name in frame.columns
    }
    cells = zip(*columns.values(), strict=True)
    return [kind(**dict(zip(columns, row, strict=True))) for row in cells]


def _fields(kind: Any) -> list[tuple[str, Callable[[Any], object] | None, bool]]:
    """Of each field its name, what makes its values Python's, and whether it has no default."""
    hints = get_type_hints(kind)
    found = []
    for field in fields(kind):
        hint = hints[field.name]
        kinds = {each for each in get_args(hint) or (hint,) if each in (bool, int, float)}
        convert = kinds.pop() if len(kinds) == 1 else None
        found.append((field.name, convert, field.default is field.default_factory is MISSING))
    return found


def _cells(column: "pd.Series[Any]", convert: Callable[[Any], object] | None) -> list[object]:
    return [
        None if not there else cell if convert is None else convert(cell)
        for cell, there in zip(column.tolist(), column.notna().tolist(), strict=True)
    ]


@retried
def read_frame(engine: Engine, statement: Executable) -> "pd.DataFrame":
    """The rows that a statement selects, as a frame."""
    import pandas as pd  # takes half a second, which commands without frames are to be spared

    with reading(engine) as connection:
        found = connection.execute(statement)
        return pd.DataFrame.from_records(
            [tuple(row) for row in found], columns=list(found.keys()), coerce_float=True
        )


def typed_rows(
    engine: Engine,
    statement: Select[Any],
    column: ColumnElement[str],
    ids: Iterable[str],
    kind: type[_R],
) -> list[_R]:
    """The rows of a statement whose `column` is one of the ids, however many these are, as
    `rows_of` makes them.
    """
    return [
        row
        for part in batches(sorted(set(ids)))
        for row in rows_of(read_frame(engine, statement.where(column.in_(part))), kind)
    ]


def groups(
    frame: "pd.DataFrame", columns: Sequence[str]
) -> Iterator[tuple[dict[str, Any], "pd.DataFrame"]]:
    """The rows of a frame by equal values of `columns`, which come first as a mapping; in order of
    appearance.
    """
    import pandas as pd

    if len(frame):
        for key, found in frame.groupby(list(columns), sort=False, dropna=False):
            values: dict[str, Any] = dict(zip(columns, key, strict=True))
            yield {name: None if pd.isna(cell) else cell for name, cell in values.items()}, found
