"""The audit on sixty tables as users bring them: thirty with a fault, thirty without."""

from pathlib import Path

import pytest

from sweeps.analysis.audit.frame import frame_of_csv
from sweeps.analysis.audit.report import AuditReport, audit_table
from sweeps.importers.csv_table import read_csv_rows
from tests.fixtures.corpus_tables import CLEAN, FAULTS, Entry


def audited(folder: Path, entry: Entry) -> AuditReport:
    path = folder / "table.csv"
    path.write_text(entry["table"], encoding="utf-8")
    return audit_table(frame_of_csv(entry["name"], read_csv_rows(path)))


def is_found(report: AuditReport, entry: Entry) -> bool:
    """A rule that is to find the fault, and no mere note of it, names the row."""
    return any(
        each.rule in entry["by"] and each.severity != "note" and entry["row"] in each.rows
        for each in report.findings
    )


@pytest.mark.parametrize("entry", FAULTS, ids=[entry["name"] for entry in FAULTS])
def test_a_fault_is_found(tmp_path: Path, entry: Entry) -> None:
    report = audited(tmp_path, entry)
    assert is_found(report, entry), [
        (each.severity, each.rule, each.rows) for each in report.findings
    ]


@pytest.mark.parametrize("entry", CLEAN, ids=[entry["name"] for entry in CLEAN])
def test_a_clean_table_is_silent(tmp_path: Path, entry: Entry) -> None:
    found = [
        (each.severity, each.rule, each.rows, each.sentence)
        for each in audited(tmp_path, entry).findings
    ]
    assert [
        each for each in found if not (each[0] == "note" and each[1] in entry.get("notes", ()))
    ] == []


def test_the_corpus_is_whole() -> None:
    """Thirty of each, a third of each held out while rules were written."""
    assert [len(each) for each in (FAULTS, CLEAN)] == [30, 30]
    assert [sum(bool(entry.get("held")) for entry in each) for each in (FAULTS, CLEAN)] == [10, 10]
