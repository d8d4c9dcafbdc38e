"""Rendering of a report: for a terminal, as Markdown, HTML, LaTeX, JSON and CSV."""

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Literal

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.report import (
    answers,
    differences,
    generation,
    html_page,
    latex_table,
    speedup,
    summary,
    why,
)
from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section
from orchestrator.text_table import markdown_row
from store.rows.frames import rows_of
from sweeps.analysis.rows import FailureRow
from sweeps.text.condition_text import size_text
from workers.methods.arm_labels import params_label

HEADING_WIDTH = 22
"""Characters after which the heading of a column continues on another line of a terminal."""
ReportFormat = Literal["table", "markdown", "html", "latex", "json", "csv"]


def _batch(row: FailureRow) -> str:
    return "-" if size_text(row) == "-" else f"{row.batch_size:.0f}"


_FAILURE_COLUMNS = (
    Column("method", lambda row: params_label(row.method, row.params), left=True),
    Column("kind", lambda row: row.kind, left=True),
    Column("model", lambda row: row.model, left=True),
    Column("size", size_text, left=True),
    Column("batch", _batch, left=True),
    Column("reason", lambda row: row.reason, left=True),
    Column("message", lambda row: row.message, left=True, wraps=True),
)


def _failure_sections(report: Report) -> Iterator[Section]:
    if failures := rows_of(report.failures, FailureRow):
        yield Section(title="No measurement", columns=_FAILURE_COLUMNS, rows=failures)
    if not failures and not report.holds_values:
        yield Section(title="nothing measured yet")


PARTS: Sequence[Callable[[Report], Iterator[Section]]] = (
    summary.runtime_sections,
    answers.answer_sections,
    speedup.speedup_sections,
    speedup.field_sections,
    answers.amount_sections,
    generation.generation_sections,
    differences.difference_sections,
    differences.zeroshot_sections,
    _failure_sections,
    speedup.ceiling_sections,
    why.why_sections,
    why.cost_model_sections,
    why.audit_sections,
    generation.limits,
)
"""The answer, the points, and why they are so, in this order."""


def sections(report: Report, todo: Iterable[str] | None = None) -> Iterator[Section]:
    """The whole report, with what to do next at its end (default: `answers.next_steps_of`)."""
    yield from chain.from_iterable(part(report) for part in PARTS)
    yield from answers.step_sections(report, todo)


def render_table(
    report: Report,
    todo: Iterable[str] | None = None,
    *,
    detail: bool = False,
    reasons: bool = False,
) -> RenderableType:
    """The report for a terminal, with next steps at its end (default: `answers.next_steps_of`).

    One screen, with `reasons` where the time goes too, or with `detail` all of it.
    """
    parts: list[RenderableType] = [Text(f"{report.name}: {report.question}", style="bold")]
    shown = sections(report, todo) if detail else summary.summary_sections(report, todo)
    for section in (*shown, *(why.why_sections(report) if reasons and not detail else ())):
        parts += [Text()] if section.level == 2 else []
        parts += [Text(section.title, style="bold")] if section.title else []
        if section.rows:
            parts.append(_table(section))
        parts += [Text(f"  {line.text}", style=line.style) for line in section.lines]
        if section.note:
            parts.append(Text(section.note, style="dim"))
    return Group(*parts)


def _table(section: Section) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in section.columns:
        heading = textwrap.fill(column.label, HEADING_WIDTH)
        table.add_column(
            heading, justify="left" if column.left else "right", no_wrap=not column.wraps
        )
    before = ""
    for row, (first, *rest) in zip(section.rows, section.cells(), strict=True):
        # `Text`, because a plain string would lose its brackets as markup; a label that repeats is
        # left out
        styles = (
            "" if column.style is None else column.style(row) for column in section.columns[1:]
        )
        table.add_row(
            Text("" if first == before else first),
            *map(Text, rest, styles),
            style=section.row_style(row),
        )
        before = first
    return table


def render_markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown."""
    lines = [f"# {report.name}", "", report.question, ""]
    for section in sections(report):
        lines += [f"{'#' * section.level} {section.title}", ""]
        if section.rows:
            labels = [column.label for column in section.columns]
            lines += [
                markdown_row(labels),
                markdown_row(["---"] * len(labels)),
                *map(markdown_row, section.cells()),
                "",
            ]
        if section.lines:
            lines += [*(f"- {line.text}" for line in section.lines), ""]
        if section.note:
            lines += [section.note, ""]
    return "\n".join(lines)


def render_json(report: Report) -> str:
    """The report as one JSON object: name, question, and the rows of every frame; missing values
    are null.
    """
    values = ((field.name, vars(report)[field.name]) for field in fields(report))
    records = {
        name: json.loads(value.to_json(orient="records"))
        for name, value in values
        if isinstance(value, pd.DataFrame)
    }
    found = {"name": report.name, "question": report.question, **records}
    return json.dumps(found, indent=2) + "\n"


def render_csv(report: Report) -> str:
    """A row for each comparison; the column `kind` distinguishes those of speed, accuracy and
    quality.
    """
    frames = [frame for frame in report.compared if len(frame)] or [report.speedups]
    return pd.concat(frames, ignore_index=True).to_csv(index=False)


def write_report(
    report: Report,
    form: ReportFormat,
    console: Console,
    db: str | None = None,
    *,
    detail: bool = False,
    reasons: bool = False,
    columns: Sequence[str] = (),
) -> None:
    """Print the report in the requested format: `table` for people, the others for files and
    programs.

    `db` is the store, of which the charts of `html` are drawn; `detail` and `reasons` are those of
    `render_table`, `columns` those of the tables of `latex`.
    """
    if form == "table":
        console.print(render_table(report, detail=detail, reasons=reasons))
    elif form == "html":
        charts = html_page.draw_charts(report, db)
        console.file.write(html_page.render_html(report, list(sections(report)), charts))
    elif form == "latex":
        console.file.write(latex_table.render_latex(report, columns))
    else:
        console.file.write(RENDERERS[form](report))


RENDERERS: Mapping[ReportFormat, Callable[[Report], str]] = {
    "markdown": render_markdown,
    "json": render_json,
    "csv": render_csv,
}
