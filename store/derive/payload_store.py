"""Payload stores: what is common to all ways of storing and comparing the raw data of a kind of
job.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Row, TableClause

from sweeps.model.flags import quarantine_reasons, split_flags, wrong
from sweeps.model.kinds import KindSpec
from sweeps.model.metrics import MetricSpec
from sweeps.model.outcome import Outcome

T = TypeVar("T")
StoredPair = Row[Any]
"""What one attempt holds for a comparison: a row of `store.derive.effects.PAIRS`."""
Load = Callable[[int], T]
"""Reads the raw data of an attempt."""
Figures = Iterator[tuple[MetricSpec, dict[str, Any]]]
"""For each metric its columns of `effect_row`."""


class PayloadStore(ABC, Generic[T]):
    """How one field of `Outcome` with raw data is stored and compared, for a kind of job."""

    analysis_version: int
    """Raised when a derived number may change."""
    table: TableClause
    """Has a row or more for each attempt with such data."""
    size: str
    """Column of `table` that counts what was measured; of several rows the largest."""

    def __init__(self, kind: KindSpec) -> None:
        self.kind = kind

    @abstractmethod
    def read(self, outcome: Outcome) -> T | None:
        """The raw data of an outcome. Raises `ValueError` if they contradict themselves."""

    @abstractmethod
    def rows(self, outcome: Outcome) -> list[tuple[TableClause, dict[str, Any]]]:
        """The rows that store them, without the attempt."""

    @abstractmethod
    def load(self, connection: Connection, attempt: int) -> T:
        """What `rows` stored."""

    @abstractmethod
    def missing(self, data: T | None, arm: int) -> str | None:
        """What an outcome holds of an arm instead of a measurement; `None` if it holds one."""

    @abstractmethod
    def used(self, pairs: Sequence[StoredPair]) -> list[StoredPair]:
        """The rows that a comparison is derived from, oldest first; empty where none was
        measured.
        """

    @abstractmethod
    def compare(self, used: Sequence[StoredPair], load: Load[T]) -> Figures:
        """The figures of a comparison."""


def measured_pairs(pairs: Sequence[StoredPair]) -> list[StoredPair]:
    """The rows that hold a measurement; those of quarantined attempts only if there are no
    others.
    """
    measured = [row for row in pairs if row.failure is None]
    return [row for row in measured if not quarantine_reasons(split_flags(row.flags))] or measured


def trusted_pairs(pairs: Sequence[StoredPair]) -> list[StoredPair]:
    """The rows whose measurement no flag marks as wrong; all of `measured_pairs` if there are no
    others.
    """
    measured = measured_pairs(pairs)
    columns = ("flags", "baseline_flags", "arm_flags")
    return [
        row
        for row in measured
        if not any(wrong(split_flags(getattr(row, name))) for name in columns)
    ] or measured


def quarantined(used: Sequence[StoredPair]) -> bool:
    """Whether all that a comparison is derived from was measured while the machine was slowed, so
    that it has no verdict.
    """
    return all(quarantine_reasons(split_flags(row.flags)) for row in used)
