"""Raw samples of an attempt, from the store or from the Parquet file that `breakeven archive` moved
them to.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, Engine, Row, Table, bindparam, select

from store.errors import StoreError
from store.rows.sample_codec import ARRAYS, StoredSample
from store.schema.tables import SAMPLE, SAMPLE_SERIES

WALL = "wall"
"""In the column `metric` of a file: the arrays of table `sample`; else those of a series."""
GROUP = 64
"""Attempts in a row group, which is the least that is read."""


def _of(table: Table) -> Any:
    return select(table).where(table.c.attempt == bindparam("attempt"))


_SAMPLES, _SERIES = _of(SAMPLE), _of(SAMPLE_SERIES)


def stored_samples(
    connection: Connection, attempt: int
) -> tuple[StoredSample, Sequence[StoredSample]] | None:
    """The row of `sample` with its rows of `sample_series`, arrays from the archive among them;
    `None` without samples.

    Raises `StoreError` if the archive is not there.
    """
    of = {"attempt": attempt}
    row = connection.execute(_SAMPLES, of).one_or_none()
    if row is None:
        return None
    series = connection.execute(_SERIES, of).all()
    if row.archive is None:
        return row, series
    kept = _archived(archive_path(connection.engine, row.archive), attempt)
    return _with_arrays(row, kept[WALL]), [_with_arrays(each, kept[each.metric]) for each in series]


def archive_path(engine: Engine, name: str) -> Path:
    """The file behind the column `archive`."""
    return Path(engine.url.database or "").parent / name


def _with_arrays(row: Row[Any], arrays: Mapping[str, Any]) -> SimpleNamespace:
    columns = dict(row._mapping)
    return SimpleNamespace(**columns | {name: arrays[name] for name in ARRAYS if name in columns})


def _archived(path: Path, attempt: int) -> Mapping[str, Mapping[str, Any]]:
    """The flat arrays of an attempt by the column `metric`; `None` for what was not measured."""
    try:
        group = _row_group(path, bisect_right(_first_attempts(path), attempt) - 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise StoreError(
            f"the samples of attempt {attempt} were archived in {path}, which cannot be read"
            f" ({why}); bring the folder {path.parent} back"
        ) from None
    found = {metric: arrays for (of, metric), arrays in group.items() if of == attempt}
    if WALL not in found:
        raise StoreError(f"{path} is another file: it has no samples of attempt {attempt}")
    return found


@lru_cache(maxsize=100)
def _first_attempts(path: Path) -> list[int]:
    """The first attempt of each row group."""
    from pyarrow.parquet import read_metadata

    found = read_metadata(path)
    groups = (found.row_group(number) for number in range(found.num_row_groups))
    return [int(group.column(0).statistics.min) for group in groups]


@lru_cache(maxsize=4)
def _row_group(path: Path, number: int) -> Mapping[tuple[int, str], Mapping[str, Any]]:
    """The arrays of the attempts of a row group, by attempt and metric."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read_row_group(max(0, number))
    columns = [[each.values for each in table.column(name)] for name in ARRAYS]
    keys = zip(table["attempt"].to_pylist(), table["metric"].to_pylist(), strict=True)
    arrays = zip(*columns, strict=True)
    return {
        key: {
            name: None if each is None else each.to_numpy()
            for name, each in zip(ARRAYS, found, strict=True)
        }
        for key, found in zip(keys, arrays, strict=True)
    }
