"""`breakeven archive`: raw samples of old attempts moved from the store into Parquet files, from
which everything that reads samples has them.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import Connection, Engine, Row, bindparam, select, update

from store.errors import StoreError
from store.rows.location import display_name
from store.rows.samples import ARRAYS, GROUP, WALL, unpack_array
from store.rows.transactions import batches, writing
from store.schema.tables import ATTEMPT, SAMPLE, SAMPLE_SERIES

ATTEMPTS_IN_A_FILE = 1000
"""Attempts in one file, which one transaction moves."""
UNFINISHED = ".unfinished"
"""Ends the name of a mark that stands beside a file until the transaction is over that names it."""


class Archived(NamedTuple):
    """What was moved."""

    folder: Path
    attempts: int = 0
    stored_bytes: int = 0
    """That they took in the store."""
    file_bytes: int = 0
    """That they take in files."""


def archive_samples(engine: Engine, before: float, folder: Path | None = None) -> Archived:
    """Move the samples of attempts that ended before so many seconds since the epoch into files in
    `folder`, by default beside the store.

    A file is whole before the transaction that takes its samples out of the store, and named in
    that, so that a kill loses nothing; a file without its transaction is removed by the next call.
    Raises `StoreError` if the folder cannot be written, or none is named and the store is no file.
    """
    database = engine.url.database if engine.dialect.name == "sqlite" else None
    if folder is None and database is None:
        raise StoreError(
            f"{display_name(engine.url)} is no file: name the folder of archives (--to)"
        )
    store = Path(database or "").absolute()
    place = (folder or store.with_name(f"{store.stem}-samples")).expanduser().absolute()
    near = database is not None and place.is_relative_to(store.parent)
    prefix = place.relative_to(store.parent) if near else place
    moved = Archived(place)
    try:
        with writing(engine) as connection:
            _remove_unfinished(connection, place, prefix)
        while True:
            path = place / f"samples-{uuid4().hex}.parquet"
            mark = path.with_name(path.name + UNFINISHED)
            with writing(engine) as connection:
                rows = connection.execute(
                    _OLDEST.limit(ATTEMPTS_IN_A_FILE), {"before": before}
                ).all()
                if not rows:
                    return moved
                place.mkdir(parents=True, exist_ok=True)
                mark.write_text(display_name(engine.url))
                stored = _write(path, connection, rows)
                _forget(connection, rows, str(prefix / path.name))
            mark.unlink(missing_ok=True)
            moved = moved._replace(
                attempts=moved.attempts + len(rows),
                stored_bytes=moved.stored_bytes + stored,
                file_bytes=moved.file_bytes + path.stat().st_size,
            )
    except OSError as error:
        raise StoreError(f"{place} cannot be written: {error.strerror or error}") from None


_OLDEST = (
    select(SAMPLE)
    .join(ATTEMPT)
    .where(SAMPLE.c.archive.is_(None), ATTEMPT.c.ended_at < bindparam("before"))
    .order_by(SAMPLE.c.attempt)
)


def _remove_unfinished(connection: Connection, place: Path, prefix: Path) -> None:
    """Remove files that were written for this store and are not named in it."""
    for mark in place.glob(f"*{UNFINISHED}"):
        if mark.read_text() == display_name(connection.engine.url):
            path = mark.with_name(mark.name.removesuffix(UNFINISHED))
            named = select(SAMPLE.c.attempt).where(SAMPLE.c.archive == str(prefix / path.name))
            if connection.execute(named.limit(1)).first() is None:
                path.unlink(missing_ok=True)
            mark.unlink(missing_ok=True)


def _write(path: Path, connection: Connection, rows: Sequence[Row[Any]]) -> int:
    """Write the samples of these attempts with their series, and wait until the disk has them.
    Returns the bytes that they take in the store.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    lists = {"<f8": pa.list_(pa.float64()), "<i4": pa.list_(pa.int32())}
    shape = {"rounds": pa.int32(), "columns": pa.int32(), "arms": pa.string()}
    arrays = {name: lists[kind] for name, kind in ARRAYS.items()}
    schema = pa.schema({"attempt": pa.int64(), "metric": pa.string(), **shape, **arrays})
    taken = 0
    with ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=["metric", "arms"],
        use_byte_stream_split=[f"{name}.list.element" for name in ARRAYS if name != "run_order"],
        write_page_checksum=True,
    ) as writer:
        for group in batches(rows, GROUP):
            of_group = SAMPLE_SERIES.c.attempt.in_([row.attempt for row in group])
            series = connection.execute(select(SAMPLE_SERIES).where(of_group)).all()
            found = [row._mapping for row in (*group, *series)]
            taken += sum(len(row.get(name) or b"") for row in found for name in ARRAYS)
            own = {row.attempt: row._mapping for row in group}
            written = [
                {
                    **{name: own[row.attempt][name] for name in shape},
                    "attempt": row.attempt,
                    "metric": row._mapping.get("metric", WALL),
                    **{name: unpack_array(row, name) for name in ARRAYS if name in row._mapping},
                }
                for row in (*group, *series)
            ]
            ordered = sorted(written, key=lambda columns: columns["attempt"])
            columns = {name: [row.get(name) for row in ordered] for name in schema.names}
            writer.write_table(pa.table(columns, schema))
    for each in (path, path.parent):
        handle = os.open(each, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    return taken


def _forget(connection: Connection, rows: Sequence[Row[Any]], archive: str) -> None:
    """Take the arrays of these attempts out of the store, which names their file."""
    attempts = [row.attempt for row in rows]
    for table, columns in ((SAMPLE, {"archive": archive}), (SAMPLE_SERIES, {})):
        cleared = {**dict.fromkeys(name for name in ARRAYS if name in table.c), **columns}
        connection.execute(update(table).where(table.c.attempt.in_(attempts)).values(cleared))
