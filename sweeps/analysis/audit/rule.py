"""Rule: one identity or limit of tables of measurements, and what it finds."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from sweeps.analysis.audit.frame import AuditColumn, AuditFrame
from sweeps.model.identity import FrozenModel
from sweeps.model.method import doc_summary

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


class Checked(NamedTuple):
    """How often a rule compared something, and what it found, lazily."""

    comparisons: int
    found: Iterable[MeasurementFinding] = ()


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
        return [field.replace("|", " or ") for field in lacking]

    def apply(self, frame: AuditFrame) -> Checked:
        """The check on the rows that hold what it needs."""
        return self.check(
            frame, np.flatnonzero(np.all([frame.stated(field) for field in self.needs], axis=0))
        )

    def findings(
        self, frame: AuditFrame, found: Iterable[MeasurementFinding]
    ) -> Iterator[AuditFinding]:
        """The first findings, worked out, and one that has the rows of all others."""
        each = iter(found)
        for noticed in islice(each, MAX_OF_A_RULE):
            yield self._finding(frame, noticed)
        rest = list(each)
        if rest:
            rows = np.unique(np.concatenate([np.asarray(noticed.rows) for noticed in rest]))
            worst = min((noticed.severity for noticed in rest), key=SEVERITIES.index)
            yield self._finding(
                frame,
                MeasurementFinding(
                    worst, rows, f"and {len(rest):,} more of this kind", rest[0].settles
                ),
            )

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
