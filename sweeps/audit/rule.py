"""Rule: one identity or limit of tables of measurements, and what it finds."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from sweeps.identity import FrozenModel
from sweeps.references.measurement import Measurement, MeasurementTable

Severity = Literal["contradiction", "doubtful", "note"]
SEVERITIES: tuple[Severity, ...] = ("contradiction", "doubtful", "note")
"""Worst first. `contradiction`: the numbers cannot all be true of what they are called; `doubtful`: they need an explanation
that the table does not give; `note`: they do not bear out what a reader may take from them."""


class AuditFinding(FrozenModel):
    """What a rule found in some rows of a table."""

    rule: str
    severity: Severity
    rows: tuple[int, ...]
    """Numbers of the rows, from 1."""
    sentence: str
    """The numbers, worked out."""
    settles: str
    """What would settle it."""


class Noticed(NamedTuple):
    """A finding before it has its rule's name."""

    severity: Severity
    rows: tuple[Measurement, ...]
    sentence: str
    settles: str


class RuleCheck(Protocol):
    """What a table shows in those of its rows that hold what the rule needs; a function, whose name is the rule's."""

    __name__: str

    def __call__(self, table: MeasurementTable, rows: Sequence[Measurement], /) -> Iterator[Noticed]: ...


class AuditRule:
    """A rule: its name, what rows it needs, and the check, whose docstring states the source and what it cannot decide."""

    def __init__(self, check: RuleCheck, needs: Iterable[str], *, beside: Sequence[str] = ()) -> None:
        self.name = check.__name__
        self.check = check
        self.needs = tuple(needs)
        """Fields that a row must have; `a|b`: one of them."""
        self.beside = tuple(beside)
        """What the whole table must have: `break_evens`, or a `baseline`."""

    @property
    def purpose(self) -> str:
        """The first sentence of the check's docstring."""
        return (self.check.__doc__ or "").strip().partition("\n")[0]

    def rows_of_table(self, table: MeasurementTable) -> list[Measurement]:
        """The rows that hold what the rule needs."""
        return [row for row in table.rows if all(_has(row, field) for field in self.needs)]

    def missing(self, table: MeasurementTable) -> list[str]:
        """What the table lacks for the rule; empty where it can be applied."""
        lacking = [field for field in self.needs if not any(_has(row, field) for row in table.rows)]
        if "break_evens" in self.beside and not table.break_evens:
            lacking.append("break_evens")
        if "baseline" in self.beside and not any(map(table.is_baseline, table.rows)):
            lacking.append("rows of a baseline")
        if not lacking and not self.rows_of_table(table):
            lacking.append(f"{' and '.join(self.needs)} in one row")
        return [field.replace("|", " or ") for field in lacking]

    def findings(self, table: MeasurementTable) -> list[AuditFinding]:
        """What the rule finds; nothing where it cannot be applied."""
        if self.missing(table):
            return []
        number = {id(row): place for place, row in enumerate(table.rows, 1)}
        return [
            AuditFinding(
                rule=self.name,
                severity=found.severity,
                rows=tuple(sorted(number[id(row)] for row in found.rows)),
                sentence=found.sentence,
                settles=found.settles,
            )
            for found in self.check(table, self.rows_of_table(table))
        ]


def _has(row: Measurement, field: str) -> bool:
    return any(getattr(row, name) is not None and getattr(row, name) != "" for name in field.split("|"))
