"""A report as one HTML page that needs nothing else: no script, no font, no request.

Its charts are drawn by the web app in a process of its own, since this package does not import it.
"""

import re
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup, escape

from orchestrator.report.data import ProvenanceRow, Report, day, facts_text
from orchestrator.report.section import Column, Section, TextLine
from store.rows.frames import rows_of
from sweeps.model.metrics import COMPARED_BY, METRICS
from sweeps.number_format import axis_label

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Content security policy: whatever a name in the data looks like, the page loads and runs
nothing."""
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

    @property
    def data(self) -> str:
        """The SVG in base64."""
        return b64encode(self.svg.encode()).decode()


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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    answer = [section for section in sections if section.title == "Answers"]
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters["whole"] = _whole
    return pages.get_template("report.html.j2").render(
        report=report,
        policy=POLICY,
        answer=answer,
        charts=list(charts),
        rest=[section for section in sections if section not in answer] + _provenance(report),
    )


_WHOLE = (
    (", ", ",&nbsp;"),
    (" %", "&nbsp;%"),
    ("&lt; ", "&lt;&nbsp;"),
    (" &gt; ", "&nbsp;&gt;&nbsp;"),
)
"""Where a cell of numbers does not break, and what stands there."""


def _whole(text: str) -> Markup:
    """A cell of numbers, escaped; it may break before an interval, and neither inside it nor
    between baseline and arm.
    """
    cell = str(escape(text))
    for broken, whole in _WHOLE:
        cell = cell.replace(broken, whole)
    return Markup(cell)  # noqa: S704 - escaped above


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


def _provenance(report: Report) -> list[Section]:
    """A row for each environment, host, commit and source, and the facts of each environment."""
    rows = rows_of(report.provenance, ProvenanceRow)
    facts = {row.environment: f"{row.environment}: {facts_text(row)}" for row in rows}
    lines = [TextLine(line, "dim") for line in facts.values()]
    found = Section(title="Provenance", columns=_PROVENANCE, rows=rows, lines=lines)
    return [found] if rows else []
