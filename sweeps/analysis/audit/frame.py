"""A table of measurements in columns: what rules need of millions of rows at once, and single rows
for sentences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sweeps.analysis.audit.tolerance import TYPICAL_NOISE
from sweeps.importers.csv_names import TEXTS
from sweeps.importers.csv_table import CsvColumns, measurement_at
from sweeps.importers.measurement import (
    LatencyUnit,
    Measurement,
    MeasurementTable,
    StatedBreakEven,
    names_baseline,
)
from sweeps.model.profile import COUNTERS

AuditColumn = np.ndarray[Any, Any]
SAME_CONDITION = ("device", "model", "setting", "image_size", "tokens", "batch")
"""What the baseline of a row has in common with it."""
SAME_ARM = ("label", "method", "device", "model", "setting", "keep_rate", "stages", "r", "sparsity")
"""What rows that differ in their size and batch alone have in common."""
SAME_CURVE = (*SAME_ARM, "image_size", "tokens", "gmacs")
"""What rows that differ in their batch alone have in common."""
_FIELDS = tuple(name for name in Measurement.model_fields if name not in {"counters", "paired"})


@dataclass
class AuditFrame:
    """Columns by field, each of all rows: numbers with NaN, texts with `None`, where nothing is
    stated.
    """

    name: str
    values: Mapping[str, AuditColumn]
    length: int
    rows: Sequence[Measurement] = ()
    """The same rows one by one, where the table was made of them."""
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns that are no field, which may distinguish rows."""
    latency: LatencyUnit | None = None
    items: Literal["images", "tokens"] = "images"
    steps: bool = False
    """Whether a latency is that of a step, in which each sequence of a batch gets a token."""
    flops: bool = False
    """Whether MACs stand in a column of FLOPs, which may count two of each."""
    baseline: str | None = None
    noise: float | None = None
    job_noise: float | None = None
    break_evens: tuple[StatedBreakEven, ...] = ()

    def row(self, place: int) -> Measurement:
        return self.rows[place] if self.rows else measurement_at(self.values, place)

    def column(self, name: str) -> AuditColumn:
        """Numbers of a field; NaN where it is not stated."""
        found = self.values.get(name)
        return np.full(self.length, np.nan) if found is None else found

    def text(self, name: str) -> AuditColumn:
        found = self.values.get(name)
        return np.full(self.length, None, dtype=object) if found is None else found

    def stated(self, name: str) -> AuditColumn:
        """Whether a row states a field; `a|b`: one of them."""
        import pandas as pd

        found = np.zeros(self.length, dtype=bool)
        for each in name.split("|"):
            if each == "counters":
                found |= np.any([~np.isnan(self.column(counter)) for counter in COUNTERS], axis=0)
            elif each in self.values:
                found |= pd.notna(self.values[each])
        return found

    def codes(self, names: Sequence[str], places: AuditColumn | None = None) -> AuditColumn:
        """A number for each row, equal where all of these fields are, from 0 in the order of the
        rows.
        """
        import pandas as pd

        found = np.zeros(self.length if places is None else len(places), dtype=np.int64)
        for name in names:
            column: Any = self.values.get(name)
            if column is None and name in self.others:
                column = np.asarray(self.others[name], dtype=object)
            if column is not None and len(found):
                own = pd.factorize(column if places is None else column[places])[0] + 1
                found = pd.factorize(found * (int(own.max()) + 1) + own)[0]
        return found

    @cached_property
    def is_baseline(self) -> AuditColumn:
        """Rows of the unmodified model: by their name, else by parameters that remove nothing."""
        names = self.text("label")
        if not self.baseline and "method" in self.values:
            names = np.where(names == None, self.text("method"), names)  # noqa: E711 - elementwise
        known = {
            name: name == self.baseline if self.baseline else names_baseline(name)
            for name in set(names)
            if name
        }
        found = np.array([known.get(name, False) for name in names], dtype=bool)
        if not self.baseline and not found.any():
            found = (
                (self.column("r") == 0)
                | (self.column("keep_rate") == 1)
                | (self.column("sparsity") == 0)
            )
        return found

    @cached_property
    def unmodified(self) -> AuditColumn:
        """Baselines; every row of a table that names neither arms nor parameters."""
        return (
            self.is_baseline
            if any(map(self.values.__contains__, ("label", "method", "keep_rate", "r", "sparsity")))
            else np.ones(self.length, dtype=bool)
        )

    @cached_property
    def beside(self) -> AuditColumn:
        """For each row the only row of the unmodified model under its condition; -1 where there is
        none, and of baselines.
        """
        codes, own = self.codes(SAME_CONDITION), self.is_baseline
        size = int(codes.max()) + 1 if self.length else 0
        number = np.bincount(codes[own], minlength=size)
        place = np.full(size, -1)
        place[codes[own]] = np.flatnonzero(own)
        return np.where(~own & (number[codes] == 1), place[codes], -1)

    @cached_property
    def batch_ms(self) -> AuditColumn:
        """Milliseconds of a whole forward by its latency; NaN where that or its unit is not
        known.
        """
        latency, batch = self.column("latency_ms"), self.column("batch")
        if self.latency is None:
            return np.where(batch == 1, latency, np.nan)
        return (
            latency * np.where(np.isnan(batch), 1, batch)
            if self.latency == "per_image"
            else latency
        )

    @cached_property
    def item_seconds(self) -> AuditColumn:
        """Seconds per item, by the throughput if there is one, else by the latency."""
        batch = np.nan_to_num(self.column("batch"), nan=1)
        rate = self.column("throughput")
        return np.where(np.isnan(rate), self.batch_ms / 1e3 / batch, 1 / rate)

    def noise_at(self, places: AuditColumn) -> float:
        """Relative standard deviation of a time: the largest that the rows state, else the table's,
        else `TYPICAL_NOISE`.
        """
        stated = self.column("noise")[places]
        return (
            float(np.nanmax(stated)) if np.isfinite(stated).any() else self.noise or TYPICAL_NOISE
        )

    def noise_of_groups(self, places: AuditColumn, groups: AuditColumn) -> AuditColumn:
        """The same by group of rows, for each row."""
        stated = self.column("noise")[places]
        if not np.isfinite(stated).any():
            return np.full(len(places), self.noise or TYPICAL_NOISE)
        largest = np.full(int(groups.max()) + 1, -np.inf)
        np.maximum.at(largest, groups, np.nan_to_num(stated, nan=-np.inf))
        return np.where(np.isfinite(largest), largest, self.noise or TYPICAL_NOISE)[groups]


def frame_of_table(table: MeasurementTable) -> AuditFrame:
    """The columns of a table of rows."""
    columns: dict[str, AuditColumn] = {}
    for name in _FIELDS:
        column = [getattr(row, name) for row in table.rows]
        if name in TEXTS:
            columns[name] = np.array([each or None for each in column] or [None], dtype=object)[
                : len(column)
            ]
        else:
            columns[name] = np.array([np.nan if each is None else float(each) for each in column])
    for name in COUNTERS:
        columns[name] = np.array([row.counters.get(name, np.nan) for row in table.rows])
    for name in ("value", "low", "high"):
        found = [None if row.paired is None else getattr(row.paired, name) for row in table.rows]
        columns["paired" if name == "value" else f"paired_{name}"] = np.array(
            [np.nan if x is None else x for x in found], dtype=float
        )
    known = {
        name: column
        for name, column in columns.items()
        if (any(column != None) if name in TEXTS else not np.isnan(column).all())  # noqa: E711
    }
    about = {
        name: getattr(table, name)
        for name in ("latency", "items", "baseline", "noise", "job_noise", "break_evens")
    }
    return AuditFrame(table.name, known, len(table.rows), table.rows, **about)


def frame_of_csv(name: str, found: CsvColumns) -> AuditFrame:
    """The columns of a CSV file."""
    flops = any(
        field == "gmacs" and "mac" not in column.lower() for column, field in found.columns.items()
    )
    steps = found.latency == "per_token"
    unit: Any = "per_batch" if steps else found.latency
    return AuditFrame(
        name, found.values, found.length, (), found.others, unit, found.items, steps, flops
    )
