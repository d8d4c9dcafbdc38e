"""A table of measurements in columns: what rules need of millions of rows at once, and single rows
for sentences; how far its numbers may lie apart by rounding and noise; what a rule is.
"""

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from sweeps.importers.measurement import (
    TEXTS,
    LatencyUnit,
    Measurement,
    MeasurementTable,
    StatedBreakEven,
    names_baseline,
)
from sweeps.importers.tables import CsvColumns, measurement_at
from sweeps.model.identity import FrozenModel
from sweeps.model.method import doc_summary
from sweeps.model.profile import COUNTERS

TYPICAL_NOISE = 0.03
"""Relative standard deviation of a time in a table that states none. A median of 30 forwards on a
shared CPU is known to 3.6 % (half of its 95 % interval; our own quickstart), GPU reports state up
to 2 %."""
FAMILY_ERROR = 1e-4
"""Chance that a rule finds something in a whole table where only noise is at work."""


@cache
def quantile_of(comparisons: int) -> float:
    """Standard deviations that one of so many comparisons exceeds by chance with `FAMILY_ERROR`."""
    return float(-ndtri(FAMILY_ERROR / (2 * max(comparisons, 1))))


def rounding(value: float) -> float:
    """Relative half step of a number as it is written: of 7.6 that is 0.05 / 7.6. Zeros at the end
    are lost.
    """
    return float(roundings(np.array([float(value)]))[0])


def roundings(values: Any) -> "np.ndarray[Any, Any]":
    """`rounding` of each number; 0 below 1e-4, where numbers are written with exponents, and where
    there is none.
    """
    sizes = np.abs(np.asarray(values, dtype=float))
    found = np.zeros(sizes.shape)
    left = np.flatnonzero((sizes >= 1e-4) & (sizes < 1e16))
    for decimals in range(18):
        if not len(left):
            break
        here = sizes[left]
        done = np.round(here, decimals) == here
        found[left[done]] = 0.5 * 10.0**-decimals / here[done]
        left = left[~done]
    return found


def allowed(values: Sequence[float], noise: float, comparisons: int) -> float:
    """How far the logarithm of a product or ratio of these numbers may be from its true value, one
    of so many `comparisons`.
    """
    return float(allowed_each([np.array([value]) for value in values], noise, comparisons)[0])


def allowed_each(columns: Sequence[Any], noise: Any, comparisons: int) -> "np.ndarray[Any, Any]":
    """`allowed` for each row of columns of numbers."""
    spread = quantile_of(comparisons) * noise * math.sqrt(len(columns))
    return np.asarray(spread + sum(np.log1p(roundings(column)) for column in columns))


def place_of_row(row: Measurement) -> str:
    """`with_tr, 448 px, batch 8`."""
    parts = [*_of_curve(row), f"batch {row.batch}" if row.batch else ""]
    return ", ".join(filter(None, parts)) or "a row"


def place_of_curve(row: Measurement) -> str:
    """The same of rows that differ in their batch."""
    return ", ".join(filter(None, _of_curve(row))) or "all rows"


def _of_curve(row: Measurement) -> list[str]:
    parts = [row.label or row.method or "", row.model or "", row.setting or ""]
    size = f"{row.tokens} token{'' if row.tokens == 1 else 's'}" if row.tokens else ""
    return [*parts, f"{row.image_size} px" if row.image_size else size]


def in_words(values: Iterable[object]) -> str:
    """`1, 2 and 4`, each once."""
    words = list(dict.fromkeys(map(str, values)))
    return (
        words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
    )


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
    unclear: frozenset[str] = frozenset()
    """Fields whose unit is not known: their ratios are."""
    median: bool = True
    """Whether a latency is known to be a median."""

    @cached_property
    def with_units(self) -> "AuditFrame":
        """The columns whose unit is known."""
        known = {name: each for name, each in self.values.items() if name not in self.unclear}
        return replace(self, values=known)

    def row(self, place: Any) -> Measurement:
        return self.rows[place] if self.rows else measurement_at(self.values, int(place))

    def place(self, row: int) -> str:
        """The arm and condition of a row: `with_tr, 448 px, batch 8`."""
        return place_of_row(self.row(row))

    def column(self, name: str) -> AuditColumn:
        """Numbers of a field; NaN where it is not stated."""
        found = self.values.get(name)
        return np.full(self.length, np.nan) if found is None else found

    def at(self, rows: AuditColumn, *names: str) -> list[AuditColumn]:
        """`column` of each of these fields at some rows."""
        return [self.column(name)[rows] for name in names]

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
        name,
        found.values,
        found.length,
        (),
        found.others,
        unit,
        found.items,
        steps,
        flops,
        unclear=found.unclear,
        median=found.median,
    )


Severity = Literal["contradiction", "doubtful", "note"]
SEVERITIES: tuple[Severity, ...] = ("contradiction", "doubtful", "note")
"""Worst first. `contradiction`: the numbers cannot all be true of what they are called; `doubtful`:
they need an explanation that the table does not give; `note`: they do not bear out what a reader
may take from them."""
MAX_OF_A_RULE = 30
"""Findings of one rule that are worked out."""


class AuditFinding(FrozenModel):
    """What a rule found in some rows of a table."""

    rule: str
    severity: Severity
    rows: tuple[int, ...]
    """Numbers of the rows, from 1."""
    arms: tuple[str, ...] = ()
    """Labels of the arms in these rows; none where they are of the unmodified model alone."""
    sentence: str
    """The numbers, worked out."""
    settles: str
    """What would settle it."""


class MeasurementFinding(NamedTuple):
    """A finding before it has its rule's name."""

    severity: Severity
    rows: Any
    """Places of the rows, from 0."""
    sentence: str
    settles: str


Checked = Generator[MeasurementFinding, None, int]
"""What a rule finds; in the end it returns how often it compared something."""


class RuleCheck(Protocol):
    """What a table shows in those of its rows that hold what the rule needs; a function, whose name
    is the rule's.
    """

    __name__: str

    def __call__(self, frame: AuditFrame, places: AuditColumn, /) -> Checked: ...


class AuditRule:
    """A rule: its name, what rows it needs, and the check, whose docstring states the source and
    what it cannot decide.
    """

    def __init__(
        self, check: RuleCheck, needs: Iterable[str], compares: str, *, beside: Sequence[str] = ()
    ) -> None:
        self.name = check.__name__
        self.check = check
        self.needs = tuple(needs)
        """Fields that a row must have; `a|b`: one of them."""
        self.compares = compares
        """What a comparison is, without which a table lacks something."""
        self.beside = tuple(beside)
        """What the whole table must have: `break_evens`, or a `baseline`."""

    @property
    def purpose(self) -> str:
        """The first paragraph of the check's docstring."""
        return doc_summary(self.check)

    def missing(self, frame: AuditFrame) -> list[str]:
        """What the table lacks for the rule; empty where it may be applied."""
        stated = {field: frame.stated(field) for field in self.needs}
        lacking = [field for field in self.needs if not stated[field].any()]
        if "break_evens" in self.beside and not frame.break_evens:
            lacking.append("break_evens")
        if "baseline" in self.beside and not frame.is_baseline.any():
            lacking.append("rows of a baseline")
        if not lacking and not np.all(list(stated.values()), axis=0).any():
            lacking.append(f"{' and '.join(self.needs)} in one row")
        return [
            f"{field.replace('|', ' or ')}"
            f"{'' if frame.unclear.isdisjoint(field.split('|')) else ' in a known unit'}"
            for field in lacking
        ]

    def apply(self, frame: AuditFrame) -> tuple[int, list[AuditFinding]]:
        """How often the check compared something in the rows that hold what it needs, and what it
        found: the first findings, and one that has the rows of all others.
        """
        rows = np.flatnonzero(np.all([frame.stated(field) for field in self.needs], axis=0))
        checked, found, comparisons = self.check(frame, rows), list[MeasurementFinding](), None
        while comparisons is None:
            try:
                found.append(next(checked))
            except StopIteration as end:
                comparisons = int(end.value)
        if rest := found[MAX_OF_A_RULE:]:
            places = np.unique(np.concatenate([np.asarray(noticed.rows) for noticed in rest]))
            worst = min((noticed.severity for noticed in rest), key=SEVERITIES.index)
            words = f"and {len(rest):,} more of this kind"
            found[MAX_OF_A_RULE:] = [MeasurementFinding(worst, places, words, rest[0].settles)]
        return comparisons, [self._finding(frame, noticed) for noticed in found]

    def _finding(self, frame: AuditFrame, noticed: MeasurementFinding) -> AuditFinding:
        places = np.unique(np.asarray(noticed.rows, dtype=np.int64))
        labels = frame.text("label")[places[~frame.is_baseline[places]]]
        return AuditFinding(
            rule=self.name,
            severity=noticed.severity,
            rows=tuple((places + 1).tolist()),
            arms=tuple(dict.fromkeys(label for label in labels if label)),
            sentence=noticed.sentence,
            settles=noticed.settles,
        )


def members(groups: AuditColumn, wanted: Sequence[int] | AuditColumn) -> Iterator[AuditColumn]:
    """Places of the rows of each wanted group, in the order of the rows."""
    order = np.argsort(groups, kind="stable")
    starts = (
        np.searchsorted(groups[order], np.arange(int(groups.max()) + 2))
        if len(groups)
        else np.zeros(1, dtype=int)
    )
    for group in wanted:
        yield order[starts[group] : starts[group + 1]]
