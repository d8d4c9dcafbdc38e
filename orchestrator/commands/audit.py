"""Command `audit`: tables of measurements, published or of the store, against identities that they
must hold.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import typer

from orchestrator.commands.options import Database
from orchestrator.text_table import markdown_row
from sweeps.analysis.audit.frame import AuditFinding, AuditFrame, frame_of_csv, frame_of_table
from sweeps.analysis.audit.report import AUDIT_RULES, AuditReport, audit_table, profile_notes
from sweeps.errors import UserError
from sweeps.importers.measurement import LatencyUnit, MeasurementTable, StatedBreakEven
from sweeps.importers.tables import (
    SUFFIXES_OF_REFERENCES,
    CsvColumns,
    load_reference,
    parse_mapping,
    read_csv_rows,
    read_markdown_tables,
    read_reference,
    shipped_references,
)
from sweeps.number_format import count

CSV_SUFFIXES = (".csv", ".tsv", ".txt")
MARKDOWN_SUFFIXES = (".md", ".markdown")
LATENCIES: Mapping[str, LatencyUnit] = {"per-batch": "per_batch", "per-image": "per_image"}
COLORS = {"contradiction": "red", "doubtful": "yellow", "note": None}
MAX_SPANS = 20
"""Places of rows that a line lists; JSON has all of them."""
AuditFormat = Literal["table", "markdown", "json"]


class StatedFacts(NamedTuple):
    """What the command line states of a table."""

    latency: Literal["per-batch", "per-image"] | None
    items: Literal["images", "tokens"] | None
    baseline: str | None
    break_evens: tuple[StatedBreakEven, ...]
    peak_gflops: float | None

    def added_to(self, frame: AuditFrame) -> AuditFrame:
        """The rows with it. Raises `UserError` for a baseline that is none of them."""
        labels = sorted({name for name in frame.text("label") if name})
        if self.baseline and self.baseline not in labels:
            raise UserError(
                f"--baseline {self.baseline}: no row has this label; labels are {', '.join(labels)}"
            )
        if self.peak_gflops:
            peak = np.full(frame.length, self.peak_gflops)
            frame = replace(frame, values={**frame.values, "peak_gflops": peak}, rows=())
        return replace(
            frame,
            latency=LATENCIES[self.latency] if self.latency else frame.latency,
            items=self.items or frame.items,
            baseline=self.baseline or frame.baseline,
            break_evens=self.break_evens or frame.break_evens,
        )


def audit(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="A reference, a sweep of the store, or a CSV or Markdown file.",
        ),
    ],
    *,
    db: Database = None,
    form: Annotated[AuditFormat, typer.Option("--format")] = "table",
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="COLUMN=FIELD", help="What a CSV column is; others are guessed."
        ),
    ] = None,
    latency: Annotated[
        Literal["per-batch", "per-image"] | None,
        typer.Option(help="What latencies are the time of."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Label of the rows of the unmodified model.")
    ] = None,
    break_even: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=VALUE", help="A claim of the source, such as tokens=400."),
    ] = None,
    peak_gflops: Annotated[
        float | None,
        typer.Option(min=0, help="1e9 operations per second that the device can reach."),
    ] = None,
    items: Annotated[
        Literal["images", "tokens"] | None, typer.Option(help="What throughputs count.")
    ] = None,
) -> None:
    """Audit what `source` names and print the report, of a Markdown file one for each table (in
    JSON a list).

    Exit code 1 for a contradiction, 2 if no rule applied.
    """
    columns = parse_mapping(mapping or ())
    stated = StatedFacts(
        latency, items, baseline, tuple(map(_break_even, break_even or ())), peak_gflops
    )
    several = Path(source).suffix.lower() in MARKDOWN_SUFFIXES
    if several:
        reports = _markdown_reports(Path(source), columns, stated)
    else:
        frame, notes = _table(source, db, columns)
        reports = [audit_table(stated.added_to(frame), tuple(notes))]
    if form == "json":
        found = [
            {**each.model_dump(mode="json"), "contradictions": each.contradictions}
            for each in reports
        ]
        typer.echo(json.dumps(found if several else found[0], indent=1))
    for report in reports if form == "markdown" else ():
        typer.echo("\n".join(_markdown(report)))
    for report in reports if form == "table" else ():
        for text, color in _lines(report):
            typer.secho(text, fg=color)
    if any(report.contradictions for report in reports):
        raise typer.Exit(1)
    raise typer.Exit(0 if any(report.applied for report in reports) else 2)


def _markdown_reports(
    path: Path, columns: dict[str, str], stated: StatedFacts
) -> list[AuditReport]:
    """The reports of the tables of a Markdown file; those that cannot be audited are named on
    stderr.

    Raises `UserError` where there is none that can.
    """
    reports = []
    for line, found in read_markdown_tables(path, mapping=columns):
        try:
            if isinstance(found, UserError):
                raise found
            frame = stated.added_to(frame_of_csv(f"{path.name}:{line}", found))
            reports.append(audit_table(frame, tuple(_column_notes(found, columns))))
        except UserError as error:
            typer.echo(f"the table at line {line} is left out: {error}", err=True)
    if not reports:
        raise UserError(f"{path}: none of its tables can be audited")
    return reports


def _table(source: str, db: str | None, mapping: dict[str, str]) -> tuple[AuditFrame, list[str]]:
    """The rows that `source` names, and what was assumed of them."""
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in CSV_SUFFIXES or (path.is_file() and suffix not in SUFFIXES_OF_REFERENCES):
        found = read_csv_rows(path, mapping=mapping)
        return frame_of_csv(path.name, found), _column_notes(found, mapping)
    if mapping:
        raise UserError(f"--map is for CSV files; {source} has its columns")
    if suffix in SUFFIXES_OF_REFERENCES:
        return frame_of_table(read_reference(path)), []
    if source in shipped_references():
        return frame_of_table(load_reference(source)), []
    table, notes = _stored(source, db)
    return frame_of_table(table), notes


def _stored(name: str, db: str | None) -> tuple[MeasurementTable, list[str]]:
    """A published table or a sweep of the store, with its profiles."""
    from store.errors import StoreError
    from store.open.engine import connect_readonly, disposing
    from store.read.audits import measured_sweep
    from store.write.references import stored_references
    from workers.methods.arm_labels import params_label

    known = f"it is no file, and no reference that ships ({', '.join(shipped_references())})"
    try:
        with disposing(connect_readonly(db)) as engine:
            imported = {each.name: each for each in stored_references(engine)}
            found = imported.get(name) or measured_sweep(engine, name, params_label)
    except StoreError as error:
        raise UserError(f"{name}: {known}; {error}") from None
    if not found.rows:
        raise UserError(f"sweep {name} has no measurement yet")
    return found, list(profile_notes(found))


def _break_even(text: str) -> StatedBreakEven:
    axis, _, at = text.partition("=")
    try:
        return StatedBreakEven.model_validate({"axis": axis, "at": float(at)})
    except ValueError:
        raise UserError(
            f"--break-even {text}: write AXIS=VALUE, such as tokens=400; axes are tokens,"
            " image_size, batch, gmacs"
        ) from None


def _column_notes(found: CsvColumns, mapping: dict[str, str]) -> list[str]:
    """How the columns of a CSV file were understood."""
    notes = [
        f"{name!r} is {found.columns[name]}{'' if name in mapping else ' (guessed by its name)'}"
        for name in found.columns
    ]
    lines = [f"columns: {', '.join(notes)}"]
    if found.unknown:
        lines.append(
            f"columns that are no field: {', '.join(map(repr, found.unknown))}; --map COLUMN=FIELD"
            " uses one"
        )
    return [*lines, *found.notes]


def _row_numbers(finding: AuditFinding) -> str:
    """`rows 3, 4 and 7 to 10`."""
    spans: list[list[int]] = []
    for number in finding.rows:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = [
        str(low) if low == high else f"{low} to {high}" if high > low + 1 else f"{low}, {high}"
        for low, high in spans
    ]
    words = (
        [*words[:MAX_SPANS], f"{len(words) - MAX_SPANS} more places"]
        if len(words) > MAX_SPANS
        else words
    )
    return f"row{'' if len(finding.rows) == 1 else 's'} {', '.join(words)}"


def _purposes() -> dict[str, str]:
    return {rule.name: rule.purpose for rule in AUDIT_RULES}


def _lines(report: AuditReport) -> Iterator[tuple[str, str | None]]:
    yield f"{report.name}: {report.answer}", "red" if report.contradictions else None
    for note in report.notes:
        yield f"  {note}", None
    for found in report.findings:
        yield "", None
        yield f"{found.severity}: {found.rule} ({_row_numbers(found)})", COLORS[found.severity]
        yield f"  {found.sentence}", None
        yield f"  to settle it: {found.settles}", None
    yield "", None
    yield "checked:", None
    purposes = _purposes()
    for name, rows in report.applied.items():
        yield f"  {name} ({count(rows, 'comparison')}): {purposes[name]}", None
    if report.not_applied:
        yield "could not be checked, for lack of:", None
        for name, lacking in report.not_applied.items():
            yield f"  {name}: {lacking}", None


def _markdown(report: AuditReport) -> Iterator[str]:
    yield f"# Audit of {report.name}"
    yield ""
    yield f"{report.name}: {report.answer}."
    yield from (f"\n{note}" for note in report.notes)
    findings = [
        (
            found.severity,
            found.rule,
            _row_numbers(found).partition(" ")[2],
            found.sentence,
            found.settles,
        )
        for found in report.findings
    ]
    purposes = _purposes()
    checked = [(name, rows, purposes[name]) for name, rows in report.applied.items()]
    if findings:
        headings = ("severity", "rule", "rows", "finding", "what would settle it")
        yield from _markdown_table(headings, findings)
    yield from _markdown_table(("checked", "comparisons", "what holds"), checked)
    if report.not_applied:
        yield from _markdown_table(("not checked", "for lack of"), report.not_applied.items())


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str | int]]) -> Iterator[str]:
    yield f"\n{markdown_row(headings)}"
    yield from map(markdown_row, (["---"] * len(headings), *rows))
