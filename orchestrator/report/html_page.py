"""A report as one HTML page that needs nothing else: no script, no font, no request.

Its charts are drawn by the web app in a process of its own, since this package does not import it.
"""

import re
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from orchestrator.report.data import ProvenanceRow, Report, day, facts_text
from orchestrator.report.section import Column, Section, TextLine
from store.rows.frames import rows_of
from sweeps.model.metrics import COMPARED_BY, METRICS
from sweeps.number_format import axis_label

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Content security policy: whatever a name in the data looks like, the page loads and runs
nothing."""
STYLE = """
:root { color-scheme: light dark; --text: #1c2024; --soft: #5b6470; --line: #d9dde3;
  --page: #fff; --raised: #f5f7f9;
  --green: #0b6e3c; --red: #b3261e; --yellow: #7a5b00; --accent: #1a70b8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7eb; --soft: #9aa4b0; --line: #343a42; --page: #14171b; --raised: #1d2126;
    --green: #57c98a; --red: #ff8a80; --yellow: #e3b341; --accent: #6cb2f0; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1360px; margin: 0 auto; padding: 28px 32px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
.question { color: var(--soft); font-size: 17px; margin: 0 0 24px; max-width: 80ch;
  overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 36px 0 10px; padding-top: 10px; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
h3 { font-size: 15px; margin: 18px 0 6px; overflow-wrap: anywhere; }
.answer { background: var(--raised); border-left: 4px solid var(--accent); padding: 14px 18px;
  border-radius: 4px; }
.answer h2 { margin: 0 0 8px; padding: 0; border: 0; }
.answer li:first-child.bold { font-size: 18px; list-style: none; margin: 0 0 8px -20px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 12px 4px 0; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { vertical-align: bottom; color: var(--soft); font-weight: 600; min-width: 5ch; }
th.left, td.left { text-align: left; }
td.left { overflow-wrap: break-word; }
td.left:first-child { overflow-wrap: anywhere; min-width: 16ch; }
ul { margin: 6px 0; padding-left: 20px; max-width: 130ch; }
li { margin: 3px 0; overflow-wrap: anywhere; }
.note { color: var(--soft); font-size: 13px; max-width: 110ch; }
.green { color: var(--green); } .red { color: var(--red); }
.yellow { color: var(--yellow); } .dim { color: var(--soft); }
.bold { font-weight: 600; }
figure { margin: 12px 0; background: #fff; color: #1c2024; padding: 8px;
  border: 1px solid var(--line); border-radius: 4px; }
figure img { display: block; max-width: 100%; height: auto; }
figcaption { font-size: 13px; padding: 2px 4px 6px; }
pre { background: var(--raised); padding: 14px; overflow-x: auto; font-size: 13px;
  line-height: 1.4; border-radius: 4px; }
@media (max-width: 1000px) {
  main { padding: 20px 14px 48px; }
  table { font-size: 11.5px; }
  th, td { padding-right: 6px; }
}
@media print { main { max-width: none; padding: 0; } .scroll, pre { overflow: visible; } }
"""
TIMEOUT_S = 120.0
_AXES = ("tokens", "gmacs_saved")
_SIZE = re.compile(r'(<svg[^>]*?) width="([\d.]+)"([^>]*?) viewBox="0 0 ([\d.]+) ([\d.]+)"')
MARGIN = 1.12
"""By this factor a chart is made wider: a browser's letters may be wider than those that its labels
were measured with."""


class ReportChart(NamedTuple):
    """A chart, or why there is none."""

    title: str
    svg: str
    """Empty where there is none."""
    problem: str = ""


def draw_charts(report: Report, db: str | None) -> Iterator[ReportChart]:
    """The speed-up by each metric of the sweep against tokens, and against the MACs saved where a
    parameter varies.
    """
    known = set(report.speedups["metric"])
    along = set(report.break_evens["axis"])
    for metric in filter(known.__contains__, COMPARED_BY):
        for axis in _AXES:
            if axis == "tokens" or axis in along:
                title = f"Speed-up in {METRICS[metric].label} against {axis_label(axis).along}"
                yield _drawn(title, ["--axis", axis, "--metric", metric], report.name, db)


def _drawn(title: str, options: list[str], name: str, db: str | None) -> ReportChart:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "chart.svg"
        command = [sys.executable, "-P", "-m", "webapp", "plot", "-o", str(out)]
        command += [*(["--db", db] if db else []), *options, "--", name]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ReportChart(title, "", f"drawing took longer than {TIMEOUT_S:g} s")
        if done.returncode == 0 and out.exists():
            return ReportChart(title, _with_margin(out.read_text(encoding="utf-8")))
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return ReportChart(title, "", last.removeprefix("breakeven: "))


def _with_margin(svg: str) -> str:
    """The SVG with room at its right end; as it is where its size is written in another way."""

    def widened(found: re.Match[str]) -> str:
        start, width, between, box, height = found.groups()
        return (
            f'{start} width="{float(width) * MARGIN:g}"{between} viewBox="0 0'
            f' {float(box) * MARGIN:g} {height}"'
        )

    return _SIZE.sub(widened, svg, count=1)


def render_html(
    report: Report, sections: Sequence[Section], charts: Iterable[ReportChart] = ()
) -> str:
    """The page: question, answer, charts, the other sections, provenance, and the sweep file that
    measures it again.

    `sections` are those of `render.sections`; the first one is the answer. All text is escaped.
    """
    answer = [section for section in sections if section.title == "Answers"]
    rest = [section for section in sections if section not in answer]
    title = escape(report.name)
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}: Breakeven report</title><style>{STYLE}</style></head><body><main>",
        f'<h1>{title}</h1><p class="question">{escape(report.question)}</p>',
        *(f'<section class="answer">{"".join(_section(section))}</section>' for section in answer),
        *_charts(list(charts)),
        *(
            f"<section>{''.join(_section(section))}</section>"
            for section in (*rest, *_provenance(report))
        ),
        *_reproduce(report),
        "</main></body></html>\n",
    ]
    return "\n".join(parts)


_WHOLE = (
    (", ", ",&nbsp;"),
    (" %", "&nbsp;%"),
    ("&lt; ", "&lt;&nbsp;"),
    (" &gt; ", "&nbsp;&gt;&nbsp;"),
)
"""Where a cell of numbers does not break, and what stands there."""


def _charts(charts: Sequence[ReportChart]) -> Iterator[str]:
    if charts:
        yield "<h2>Charts</h2>"
    for chart in charts:
        if chart.svg:
            data = b64encode(chart.svg.encode()).decode()
            image = f'<img alt="{escape(chart.title)}" src="data:image/svg+xml;base64,{data}">'
            yield f"<figure>{image}<figcaption>{escape(chart.title)}</figcaption></figure>"
        else:
            yield f'<p class="note">{escape(chart.title)}: no chart: {escape(chart.problem)}</p>'


def _section(section: Section) -> Iterator[str]:
    yield f"<h{section.level}>{escape(section.title)}</h{section.level}>"
    if section.rows:
        yield from _table(section)
    if section.lines:
        lines = (
            f'<li class="{escape(line.style)}">{escape(line.text)}</li>' for line in section.lines
        )
        yield f"<ul>{''.join(lines)}</ul>"
    if section.note:
        yield f'<p class="note">{escape(section.note)}</p>'


def _table(section: Section) -> Iterator[str]:
    kinds = ["left" if column.left else "" for column in section.columns]
    heads = (
        f'<th scope="col" class="{kind}">{escape(column.label)}</th>'
        for kind, column in zip(kinds, section.columns, strict=True)
    )
    yield f'<div class="scroll"><table><thead><tr>{"".join(heads)}</tr></thead><tbody>'
    for row, cells in zip(section.rows, section.cells(), strict=True):
        inner = "".join(
            f'<td class="{kind}">{_cell(text, kind)}</td>'
            for kind, text in zip(kinds, cells, strict=True)
        )
        yield f'<tr class="{escape(section.row_style(row))}">{inner}</tr>'
    yield "</tbody></table></div>"


def _cell(text: str, kind: str) -> str:
    """A cell; one of numbers may break before an interval, and neither inside it nor between
    baseline and arm.
    """
    found = escape(text)
    for broken, whole in () if kind else _WHOLE:
        found = found.replace(broken, whole)
    return found


def _reproduce(report: Report) -> Iterator[str]:
    yield "<section><h2>Measure it again</h2>"
    yield (
        "<p>Save this sweep as <code>sweep.yaml</code> and run <code>breakeven run"
        " sweep.yaml</code>.</p>"
    )
    yield f"<pre>{escape(report.text)}</pre></section>"


_PROVENANCE = (
    Column("environment", lambda row: row.environment, left=True),
    Column("device", lambda row: row.device_name, left=True),
    Column("host", lambda row: row.host, left=True),
    Column("from (UTC)", lambda row: day(row.first), left=True),
    Column("to (UTC)", lambda row: day(row.last), left=True),
    Column("attempts", lambda row: f"{row.attempts:.0f}"),
    Column("source", lambda row: row.source, left=True),
    Column("commit", lambda row: row.commit or "-", left=True),
)


def _provenance(report: Report) -> Iterator[Section]:
    """A row for each environment, host, commit and source, and the facts of each environment."""
    rows = rows_of(report.provenance, ProvenanceRow)
    facts = {row.environment: f"{row.environment}: {facts_text(row)}" for row in rows}
    if rows:
        lines = [TextLine(line, "dim") for line in facts.values()]
        yield Section(title="Provenance", columns=_PROVENANCE, rows=rows, lines=lines)
