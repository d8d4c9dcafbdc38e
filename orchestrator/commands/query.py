"""The command `query`: rows of a statement printed while they are found, in four formats."""

import csv
import io
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from orchestrator.commands.options import Database
from orchestrator.text_table import markdown_row, table_lines
from store.errors import StoreError
from store.read.user_sql import RESULT_BYTES, open_query
from sweeps.number_format import count

QueryFormat = Literal["table", "csv", "json", "markdown"]
Rows = Iterable[Sequence[Any]]
JSON_COLUMNS = frozenset({"params", "system_metrics", "counters"})
"""Columns of the views whose text is JSON."""
ENDED_BY: Mapping[str, str] = {
    "rows": "--rows takes more",
    "bytes": (
        f"their texts and blobs are {RESULT_BYTES // 1_000_000} MB, the most that a query returns;"
        " narrow it down"
    ),
}
"""What to do about each limit that ends a result."""


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT statement.")],
    db: Database = None,
    form: Annotated[QueryFormat, typer.Option("--format")] = "table",
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit.")] = 10.0,
    rows: Annotated[int, typer.Option(min=1, help="Row limit.")] = 10_000,
) -> None:
    """Run one read-only statement and print each row when it is found; why there are no more
    follows on stderr.

    Raises `StoreError`; where rows are printed by then, it states how many.
    """
    printed = False
    try:
        with open_query(db, sql, seconds=seconds, rows=rows) as found:
            coming = iter(found)
            # what is refused at once leaves no headings behind
            first = list(itertools.islice(coming, 1))
            for text in FORMS[form](found.columns, itertools.chain(first, coming)):
                sys.stdout.write(text)
                sys.stdout.flush()
                printed = True
    except StoreError as error:
        if not printed:
            raise
        raise StoreError(
            f"{error}; only the first {count(found.returned, 'row')} are printed"
        ) from error
    if found.limit:
        typer.secho(
            f"only the first {count(found.returned, 'row')}; {ENDED_BY[found.limit]}",
            fg="yellow",
            err=True,
        )


def _table(columns: Sequence[str], rows: Rows) -> Iterator[str]:
    return (f"{line}\n" for line in table_lines(columns, rows))


def _markdown(columns: Sequence[str], rows: Rows) -> Iterator[str]:
    return (
        f"{markdown_row(cells)}\n"
        for cells in itertools.chain([columns, ["---"] * len(columns)], rows)
    )


def _csv(columns: Sequence[str], rows: Rows) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for cells in itertools.chain([columns], rows):
        writer.writerow(cells)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _json(columns: Sequence[str], rows: Rows) -> Iterator[str]:
    """A list of objects; one that is cut off has no end, so that no reader takes it for whole."""
    before = "[\n "
    for row in rows:
        record = {name: _decoded(name, value) for name, value in zip(columns, row, strict=True)}
        yield before + json.dumps(record, indent=1, default=str).replace("\n", "\n ")
        before = ",\n "
    yield "[]\n" if before.startswith("[") else "\n]\n"


def _decoded(name: str, value: Any) -> Any:
    """The value of a column that holds JSON as an object or list; others, and what is no JSON, as
    they are.
    """
    if name not in JSON_COLUMNS or not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        return value
    return found if isinstance(found, dict | list) else value


FORMS: Mapping[QueryFormat, Callable[[Sequence[str], Rows], Iterator[str]]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
}
"""The text of a result in each format, in pieces of whole lines."""
