"""Raw samples as columns: packing them without loss, and reading them back as arrays, from the
store or from the Parquet file that `breakeven archive` moved them to.
"""

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, Row, Select, Table, bindparam, select

from store.errors import StoreError
from store.schema.tables import SAMPLE, SAMPLE_SERIES
from sweeps.model.outcome import Samples
from sweeps.stats.timing import Rounds

Times = NDArray[np.float64]
StoredSample = Row[Any] | SimpleNamespace
"""A row of table `sample` or `sample_series`; its arrays are packed, or flat as from an archive."""
ARRAYS: Mapping[str, str] = {
    "seconds": "<f8",
    "event_seconds": "<f8",
    "run_order": "<i4",
    "bursts": "<f8",
}
"""Columns that hold arrays, and the type of their elements."""


@dataclass
class Timings:
    """The samples of one attempt, arrays of shape [rounds, columns], in seconds per forward."""

    arms: list[int]
    """Index of the arm in each column; one with two columns was timed twice in every round."""
    seconds: Times
    event_seconds: Times | None
    series: Mapping[str, Times] = field(default_factory=dict)
    """Further times of the same runs, by metric."""
    _fitted: dict[tuple[str | None, bool], Rounds] = field(default_factory=dict)

    def of(self, arm: int, metric: str | None = None) -> Times:
        """The wall times of an arm, shape [samples], or with `metric` those of that series."""
        return self._of(arm, self.seconds if metric is None else self.series[metric])

    def on_device(self, arm: int) -> Times | None:
        """The device times of an arm, shape [samples]; `None` where they were not measured
        apart.
        """
        return None if self.event_seconds is None else self._of(arm, self.event_seconds)

    def rounds(self, metric: str | None = None, *, warmup_converged: bool = True) -> Rounds:
        """The times, or with `metric` those of that series, with estimates, made once;
        `warmup_converged` as for `Rounds`.
        """
        key = metric, warmup_converged
        if key not in self._fitted:
            self._fitted[key] = Rounds(
                self.seconds if metric is None else self.series[metric],
                self.arms,
                warmup_converged=warmup_converged,
            )
        return self._fitted[key]

    def _of(self, arm: int, table: Times) -> Times:
        times: Times = table[
            :, [column for column, each in enumerate(self.arms) if each == arm]
        ].ravel()
        return times


def timings(samples: Samples) -> Timings:
    """The arrays in `samples`. Raises `ValueError` for samples that are not rectangular."""
    device = samples.event_seconds
    columns = len(samples.arms)
    seconds = _table(samples.seconds, columns, "seconds")
    given = {"order": samples.order, **samples.series}
    given |= {} if device is None else {"event_seconds": device}
    rounds = {name: _table(values, columns, name) for name, values in given.items()}
    for name, table in rounds.items():
        if len(table) != len(seconds):
            raise ValueError(f"samples: {name} has {len(table)} rounds, seconds has {len(seconds)}")
    series = {name: rounds[name] for name in samples.series}
    return Timings(list(samples.arms), seconds, rounds.get("event_seconds"), series)


def pack_samples(samples: Samples) -> dict[str, Any]:
    """The columns of table `sample`. Raises `ValueError` for samples that are not rectangular."""
    arrays = timings(samples)
    rounds, columns = arrays.seconds.shape
    return {
        "rounds": rounds,
        "columns": columns,
        "arms": json.dumps(samples.arms),
        "inner": json.dumps(samples.inner),
        "stopped": samples.stopped,
        "seconds": _squeeze(arrays.seconds, "<f8"),
        "event_seconds": (
            None if arrays.event_seconds is None else _squeeze(arrays.event_seconds, "<f8")
        ),
        "run_order": _squeeze(np.array(samples.order), "<i4"),
        "bursts": None if samples.bursts is None else _squeeze(np.array(samples.bursts), "<f8"),
    }


def pack_series(samples: Samples) -> list[dict[str, Any]]:
    """The rows of table `sample_series`, but for the attempt. Raises as `pack_samples` does."""
    found = timings(samples).series
    return [{"metric": name, "seconds": _squeeze(found[name], "<f8")} for name in sorted(found)]


def unpack_samples(row: StoredSample, series: Iterable[StoredSample] = ()) -> Timings:
    """The timings in a row of table `sample`, with its rows of `sample_series`."""
    shape = (row.rounds, row.columns)
    device = unpack_array(row, "event_seconds")
    more = {str(each.metric): unpack_array(each, "seconds").reshape(shape) for each in series}
    return Timings(
        json.loads(row.arms),
        unpack_array(row, "seconds").reshape(shape),
        None if device is None else device.reshape(shape),
        more,
    )


def restore_samples(row: StoredSample, series: Iterable[StoredSample]) -> Samples:
    """What `pack_samples` and `pack_series` packed."""
    found, bursts = unpack_samples(row, series), unpack_array(row, "bursts")
    device, width = found.event_seconds, len(set(found.arms))
    return Samples.model_validate(
        {
            "arms": found.arms,
            "inner": json.loads(row.inner),
            "stopped": row.stopped,
            "seconds": found.seconds.tolist(),
            "event_seconds": None if device is None else device.tolist(),
            "order": unpack_order(row),
            "series": {name: times.tolist() for name, times in found.series.items()},
            "bursts": None if bursts is None else bursts.reshape(-1, width).tolist(),
        }
    )


def unpack_order(row: StoredSample) -> tuple[tuple[int, ...], ...]:
    """For each round the columns in the order they ran, from a row of table `sample`."""
    order = unpack_array(row, "run_order").reshape(row.rounds, row.columns)
    return tuple(map(tuple, order.tolist()))


def unpack_array(row: StoredSample, name: str) -> Any:
    """The flat array in a column; `None` for NULL."""
    found = getattr(row, name)
    packed = isinstance(found, bytes)
    return np.frombuffer(zlib.decompress(found), dtype=ARRAYS[name]) if packed else found


def _table(values: tuple[tuple[float, ...], ...], columns: int, name: str) -> Times:
    widths = {len(line) for line in values} - {columns}
    if widths:
        raise ValueError(
            f"samples: a round of {name} has {widths.pop()} values, but there are {columns} columns"
            " of arms"
        )
    return np.array(values, dtype=np.float64).reshape(len(values), columns)


def _squeeze(array: NDArray[Any], dtype: str) -> bytes:
    return zlib.compress(np.ascontiguousarray(array, dtype=dtype).tobytes(), level=1)


WALL = "wall"
"""In the column `metric` of a file: the arrays of table `sample`; else those of a series."""
GROUP = 64
"""Attempts in a row group, which is the least that is read."""


def _of(table: Table) -> Select[Any]:
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
    columns = {name: [each.values for each in table.column(name)] for name in ARRAYS}
    keys = zip(table["attempt"].to_pylist(), table["metric"].to_pylist(), strict=True)
    return {
        key: {
            name: None if values[place] is None else values[place].to_numpy()
            for name, values in columns.items()
        }
        for place, key in enumerate(keys)
    }
