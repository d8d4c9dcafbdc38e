"""The result of a user's query as a table that every format can hold."""

import io

import pandas as pd

from store.read.user_sql import Result


def frame_of(result: Result) -> pd.DataFrame:
    """The rows as a table: blobs by their length, columns of one name numbered, columns of several
    types as text.
    """
    names: list[str] = []
    for name in result.columns:
        alike = sum(known == name or known.startswith(f"{name} (") for known in names)
        names.append(f"{name} ({alike + 1})" if alike else name)
    rows = [
        [f"{len(value):,} bytes" if isinstance(value, bytes) else value for value in row]
        for row in result.rows
    ]
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    for name, values in columns.items():
        kinds = {type(value) for value in values} - {type(None)}
        if len(kinds) > 1 and not kinds <= {int, float}:
            columns[name] = [None if value is None else str(value) for value in values]
    return pd.DataFrame(columns, columns=names)


def parquet(frame: pd.DataFrame) -> bytes:
    """The table as a Parquet file."""
    into = io.BytesIO()
    frame.to_parquet(into, index=False)
    return into.getvalue()
