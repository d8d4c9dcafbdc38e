"""A report as LaTeX for a paper: a paragraph on the method, and a booktabs table for each
condition.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

from orchestrator.host.package_version import source_version
from orchestrator.report.data import ProvenanceRow, Report, day, facts_text
from orchestrator.report.differences import difference_sections
from orchestrator.report.generation import generation_sections
from orchestrator.report.section import Column, Section, filled_columns
from orchestrator.report.speedup import speedup_sections
from store.read.quality import quality_metrics
from store.rows.frames import rows_of
from sweeps.errors import UserError
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import INTERVAL, METRICS, SPEED_FLOOR
from sweeps.number_format import count
from sweeps.stats.pooling import ALPHA
from sweeps.stats.timing import CONFIDENCE

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


PACKAGES = r"\usepackage{booktabs,tabularx,array,siunitx}\usepackage[T1]{fontenc}"
LEFT_OUT = (
    *("macs-promise", "macs-promise-of-each", "realised", "px", "pairs", "verdict", "verdicts"),
    *("notes", "flags", "quality", "kv-needed-mib", "peak-rss-mib", "peak-cuda-mib"),
)
"""Columns that a table has only where they are asked for: with them it does not fit an article."""
ROWS = 40
"""Of a table on one page."""
LETTER, GAP, TEXT = 4.4, 6, 70
"""Points: width of a letter in a table, of the room between columns, and of texts, which wrap."""
NARROW, ARTICLE = 241, 345
"""Points: width of a column of a page that has two (acmart), and of the text of an article."""
WRAPPED = r">{\raggedright\arraybackslash}X"
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_FORMS = (
    (rf"{_NUMBER}(x| %)?", "{}"),
    (rf"{_NUMBER}(x| %)? (\[.*\])", "{}l"),
    (rf"{_NUMBER} → {_NUMBER}", r"{}@{{${{}}\rightarrow{{}}$}}{}"),
)
"""What a cell of numbers looks like, and the columns that it has in LaTeX."""


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is; what is no printable letter becomes a space."""
    return "".join(_ESCAPES.get(letter, letter if letter.isprintable() else " ") for letter in text)


def render_latex(report: Report, names: Sequence[str] = ()) -> str:
    """The paragraph and the tables, for a document with the `PACKAGES`.

    `names`: the columns of the tables in their order, as `column_name` has them; default: those
    that fit an article, without those `LEFT_OUT`. Raises `UserError` for one that no table has.
    """
    parts = chain(
        speedup_sections(report), generation_sections(report), difference_sections(report)
    )
    found = [section for section in parts if section.rows]
    tables = [
        {column_name(each): each for each in filled_columns(section.columns, section.rows)}
        for section in found
    ]
    known = list(dict.fromkeys(chain.from_iterable(tables)))
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"no table has a column '{unknown[0]}'; choose from {', '.join(known)}")
    chosen = [[own[name] for name in names if name in own] for own in tables]
    if not names:
        chosen = [_fitting(own, section.rows) for own, section in zip(tables, found, strict=True)]
    pages = [
        section._replace(
            columns=columns,
            rows=section.rows[first : first + ROWS],
            title=f"{section.title}, continued" if first else section.title,
        )
        for section, columns in zip(found, chosen, strict=True)
        for first in range(0, len(section.rows) if columns else 0, ROWS)
    ]
    lines = [
        f"% breakeven report {_comment(report.name)} --format latex; it needs {PACKAGES}",
        f"% {_comment(report.question)}",
        r"\paragraph{Method.}",
        *(escape_latex(sentence) for sentence in _method(report)),
    ]
    name = re.sub(r"[^A-Za-z0-9]+", "-", report.name)
    for number, section in enumerate(pages, 1):
        lines += ["", *_table(section, f"tab:breakeven-{name}-{number}")]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def column_name(column: Column) -> str:
    """What a column is called on the command line: `speed-up` for `speed-up [99.5 %]`."""
    return "-".join(re.findall(r"[a-z0-9_]+", column.label.partition(" [")[0].lower()))


def _width(column: Column, rows: Sequence[Any]) -> float:
    """Points."""
    letters = max(len(column.label), *(len(column.cell(row)) for row in rows))
    return TEXT if column.left else LETTER * letters + GAP


def _fitting(columns: Mapping[str, Column], rows: Sequence[Any]) -> list[Column]:
    """The first of these columns that fit an article, without those `LEFT_OUT`."""
    usual = [column for name, column in columns.items() if name not in LEFT_OUT]
    widths = accumulate(_width(column, rows) for column in usual)
    return [column for column, width in zip(usual, widths, strict=True) if width < ARTICLE]


def _table(section: Section, label: str) -> Iterator[str]:
    """A table as wide as a column of text where it fits there, else as wide as the page; texts
    wrap, numbers are aligned at their points.
    """
    cells = [[column.cell(row) for row in section.rows] for column in section.columns]
    if section.columns[0].left:  # what one arm did stands below its name
        cells[0] = [text if text != above else "" for above, text in pairwise(["", *cells[0]])]
    columns = [
        (WRAPPED, list(map(_escaped, [column.label, *texts])))
        if column.left
        else _numbers(column.label, texts)
        for column, texts in zip(section.columns, cells, strict=True)
    ]
    widths = (_width(column, section.rows) for column in section.columns)
    star = "*" * (sum(widths) > NARROW)
    yield rf"\begin{{table{star}}}"
    yield r"\centering\footnotesize\setlength{\tabcolsep}{3pt}"
    yield rf"\caption{{{_escaped(section.title)}.}}"
    yield rf"\label{{{label}}}"
    yield rf"\begin{{tabularx}}{{\linewidth}}{{{''.join(form for form, _ in columns)}}}"
    yield r"\toprule"
    for number, row in enumerate(zip(*(texts for _, texts in columns), strict=True)):
        yield " & ".join(row) + r" \\"
        if not number:
            yield r"\midrule"
    yield r"\bottomrule"
    yield r"\end{tabularx}"
    yield rf"\end{{table{star}}}"


def _numbers(label: str, texts: Sequence[str]) -> tuple[str, list[str]]:
    """A column of numbers, with an interval or two with an arrow, and its cells below its head;
    other texts stand at the right.
    """
    for pattern, form in _FORMS:
        found = [re.fullmatch(pattern, text) for text in texts]
        groups = [each.groups() for each in found if each]
        if len(groups) + sum(text in {"-", ""} for text in texts) < len(texts) or not groups:
            continue
        aligned = [
            _aligned([group[place] for group in groups])
            for place in ((0, 1) if "→" in pattern else (0,))
        ]
        several = rf"\multicolumn{{{1 + (form == '{}l' or len(aligned) == 2)}}}{{c}}"
        unit = ", %" if " %" in groups[0] else ""
        cells = [
            " & ".join(part for part in each.groups() if part and part not in {"x", " %"})
            if each
            else rf"{several}{{--}}"
            for each in found
        ]
        head = rf"{several}{{{_escaped(label + unit)}}}"
        return form.format(*aligned), [head, *cells]
    return "r", list(map(_escaped, [label, *texts]))


def _aligned(numbers: Sequence[str]) -> str:
    """A column of siunitx that has room for these numbers."""
    parts = [number.lstrip("-").partition(".") for number in numbers]
    whole, _, digits = (max(map(len, each)) for each in zip(*parts, strict=True))
    sign = "-" * any(number.startswith("-") for number in numbers)
    return f"S[table-format={sign}{whole}.{digits}]"


def _escaped(text: str) -> str:
    """A text in which an arrow is one: `baseline > arm`."""
    return escape_latex(text).replace("→", r"$\rightarrow$")


def _method(report: Report) -> Iterator[str]:
    """What was measured, how, on how many pairs, and which intervals, in sentences."""
    yield f"All figures were measured with Breakeven {source_version()}."
    for row in rows_of(report.provenance, ProvenanceRow):
        where = f"{count(int(row.attempts), 'job')} ran on {row.device_name} ({facts_text(row)})"
        commit, dirty, _ = (row.commit or "unknown").partition("-dirty")
        changed = " with changes" if dirty else ""
        yield (
            f"From {day(row.first)} to {day(row.last)} UTC, {where}, of the source at commit"
            f" {commit[:12]}{changed}."
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
        "A speed-up is the time of the baseline over that of the arm, by the mean times of each in"
        f" one state of the machine, outliers clipped; its {INTERVAL} interval comes from leaving"
        " out one visit at a time and from what runs differ by; over all runs that are ever made"
        f" of a comparison it holds with {100 * (1 - ALPHA):g} %."
    )
    yield f"Speed-ups whose interval lies within {100 * SPEED_FLOOR:g} % of 1 are called the same."
    if "random" in set(rows.loc[rows["x_axis"].isna(), "weights"]):
        yield "Weights are random where a table states so: times do not depend on their values."


def _span(least: float, most: float, unit: str) -> str:
    return f"{least:.0f} {unit}" if least == most else f"{least:.0f} to {most:.0f} {unit}"
