"""A report as one HTML page that needs nothing else: no script, no font, no request."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from orchestrator.report.charts import ReportChart
from orchestrator.report.data import Report
from orchestrator.report.section import Section
from orchestrator.report.sections.provenance import provenance_sections

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


def render_html(
    report: Report, sections: Sequence[Section], charts: Iterable[ReportChart] = ()
) -> str:
    """The page: question, answer, charts, the other sections, provenance, and the sweep file that
    measures it again.

    `sections` are those of `render.sections`; the first one is the answer. All text is escaped.
    """
    answer, rest = (
        (sections[:1], sections[1:])
        if sections and sections[0].title == "Answers"
        else ((), sections)
    )
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
            for section in (*rest, *provenance_sections(report))
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
