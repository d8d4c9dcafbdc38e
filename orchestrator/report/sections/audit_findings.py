"""Section on the audit: what in the numbers of a sweep contradicts itself, or needs an
explanation.
"""

from collections.abc import Iterator

from orchestrator.report.data import Report
from orchestrator.report.section import Section, TextLine

FULL_FINDINGS = 6
"""Findings that a report has in full; `breakeven audit` has all of them."""


def audit_sections(report: Report) -> Iterator[Section]:
    """Each contradiction and each doubtful finding with its numbers, and what would settle it;
    `breakeven audit` has the notes.
    """
    found = (
        []
        if report.audit is None
        else [each for each in report.audit.findings if each.severity != "note"]
    )
    if found:
        lines = [
            TextLine(f"{each.severity}: {each.sentence}. To settle it: {each.settles}", "yellow")
            for each in found[:FULL_FINDINGS]
        ]
        more = (
            f"{len(found) - FULL_FINDINGS} more: breakeven audit {report.name}{report.options}"
            if len(found) > FULL_FINDINGS
            else ""
        )
        yield Section(title="Audit of these numbers", lines=lines, note=more)
