"""Section on provenance: where, when, by which versions and on what a sweep was measured."""

import json
from collections.abc import Iterator
from typing import Any

from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, TextLine
from store.rows.frames import rows_of
from store.rows.row_mapping import timestamp

_COLUMNS = (
    Column("environment", lambda row: row.environment, left=True),
    Column("device", lambda row: row.device_name, left=True),
    Column("host", lambda row: row.host, left=True),
    Column("from (UTC)", lambda row: day(row.first), left=True),
    Column("to (UTC)", lambda row: day(row.last), left=True),
    Column("attempts", lambda row: f"{row.attempts:.0f}"),
    Column("source", lambda row: row.source, left=True),
    Column("commit", lambda row: row.commit or "-", left=True),
)


def provenance_sections(report: Report) -> Iterator[Section]:
    """A row for each environment, host, commit and source, and the facts of each environment."""
    rows = rows_of(report.provenance)
    if not rows:
        return
    facts = {row.environment: f"{row.environment}: {facts_text(row)}" for row in rows}
    yield Section(
        title="Provenance",
        columns=_COLUMNS,
        rows=rows,
        lines=[TextLine(line, "dim") for line in facts.values()],
    )


def facts_text(row: Any) -> str:
    """The facts of an environment in a line: `cores 2, python 3.12.1, torch 2.8`."""
    return ", ".join(f"{name} {value}" for name, value in sorted(json.loads(row.facts).items()))


def day(seconds: float) -> str:
    """A time in UTC to the minute."""
    return timestamp(seconds)[:16].replace("T", " ")
