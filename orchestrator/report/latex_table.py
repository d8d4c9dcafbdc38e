"""A report as LaTeX for a paper: a paragraph on the method, and a booktabs table for each
condition.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from orchestrator.host.package_version import source_version
from orchestrator.report.data import ProvenanceRow, Report, day, facts_text
from orchestrator.report.differences import difference_sections
from orchestrator.report.generation import generation_sections
from orchestrator.report.section import Section, filled_columns
from orchestrator.report.speedup import speedup_sections
from store.read.quality import quality_metrics
from store.rows.frames import rows_of
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import INTERVAL, METRICS, SPEED_FLOOR
from sweeps.number_format import count
from sweeps.stats.pooling import ALPHA
from sweeps.stats.timing import CONFIDENCE
from sweeps.stats.visits import LOWEST

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "×": r"$\times$",
    "±": r"$\pm$",
    "–": "--",
}


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is; what is no printable letter becomes a space."""
    return "".join(_ESCAPES.get(letter, letter if letter.isprintable() else " ") for letter in text)


def render_latex(report: Report) -> str:
    """The paragraph and the tables, for a document with the packages booktabs and fontenc (T1)."""
    parts = chain(
        speedup_sections(report), generation_sections(report), difference_sections(report)
    )
    tables = [section for section in parts if section.rows]
    lines = [
        (
            f"% breakeven report {_comment(report.name)} --format latex; it needs the packages"
            " booktabs, and fontenc with T1"
        ),
        f"% {_comment(report.question)}",
        r"\paragraph{Method.}",
        *(escape_latex(sentence) for sentence in _method(report)),
    ]
    for number, section in enumerate(tables, 1):
        lines += [
            "",
            *_table(
                section, f"tab:breakeven-{re.sub(r'[^A-Za-z0-9]+', '-', report.name)}-{number}"
            ),
        ]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _table(section: Section, label: str) -> Iterator[str]:
    columns = filled_columns(section.columns, section.rows)
    yield r"\begin{table*}"
    yield r"\centering\footnotesize"
    yield rf"\caption{{{escape_latex(section.title)}.}}"
    yield rf"\label{{{label}}}"
    yield rf"\begin{{tabular}}{{{''.join('rl'[column.left] for column in columns)}}}"
    yield r"\toprule"
    yield _row([column.label for column in columns])
    yield r"\midrule"
    for row in section.rows:
        yield _row([column.cell(row) for column in columns])
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table*}"


def _row(cells: Sequence[str]) -> str:
    """One row; `baseline > arm` has an arrow."""
    return " & ".join(escape_latex(cell).replace("→", r"$\rightarrow$") for cell in cells) + r" \\"


def _method(report: Report) -> Iterator[str]:
    """What was measured, how, on how many pairs, and which intervals, in sentences."""
    yield f"All figures were measured with Breakeven {source_version()}."
    for row in rows_of(report.provenance, ProvenanceRow):
        where = f"{count(int(row.attempts), 'job')} ran on {row.device_name} ({facts_text(row)})"
        yield (
            f"From {day(row.first)} to {day(row.last)} UTC, {where}, of the source at commit"
            f" {row.commit or 'unknown'}."
        )
    if len(report.speedups):
        yield from _timing(report)
    kinds = set(report.speedups["kind"]) | set(report.effects["kind"])
    names = {spec.name for kind in kinds for _, spec in quality_metrics(kind)} & set(
        report.effects["metric"]
    )
    for name in sorted(names):
        rows = report.effects[(report.effects["metric"] == name) & report.effects["n"].notna()]
        data = ", ".join(sorted({str(each) for each in rows["data"].dropna()}))
        spec, kind = METRICS[name], next(kind for kind in KINDS.values() if name in kind.metrics)
        items = "images" if kind.payload == "predictions" else "windows of text"
        sizes = _span(rows["n"].min(), rows["n"].max(), items)
        yield (
            f"Arms were compared by their {spec.label} on the same {sizes} ({data}), with paired"
            f" {100 * CONFIDENCE:g} % intervals; changes within {spec.floor:g}"
            f" {'points' if spec.unit == '%' else spec.unit} count as none."
        )


def _timing(report: Report) -> Iterator[str]:
    rows = report.speedups
    pairs = _span(rows["pairs"].min(), rows["pairs"].max(), "pairs")
    yield (
        "Each arm was timed beside its baseline in the same process, in rounds that run every arm"
        f" and the baseline in random order: {pairs} for each of {count(len(rows), 'comparison')}"
        " by metric."
    )
    yield (
        "A speed-up is the time of the baseline over that of the arm, estimated by the mean of the"
        f" lowest {100 * LOWEST:g} % of the log times of each in one state of the machine; its"
        f" {INTERVAL} interval comes from leaving out one visit at a time; over all runs that are"
        f" ever made of a comparison it holds with {100 * (1 - ALPHA):g} %."
    )
    yield f"Speed-ups whose interval lies within {100 * SPEED_FLOOR:g} % of 1 are called the same."
    weights = sorted(set(rows["weights"]))
    if "random" in weights:
        yield "Weights are random where a table states so: times do not depend on their values."


def _span(least: float, most: float, unit: str) -> str:
    return f"{least:.0f} {unit}" if least == most else f"{least:.0f} to {most:.0f} {unit}"
