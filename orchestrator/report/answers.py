"""First lines of a report: for each curve what to do, in one sentence, along its most important axis."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.report.conditions import break_even_sentence, curve_label, shown_curves
from orchestrator.report.data import Report
from orchestrator.report.section import Section, TextLine, groups, rows_of, style_of
from store.host_labels import label_hosts
from sweeps.metrics import METRICS, Compared
from sweeps.number_format import count, is_missing

AXES = ("tokens", "gmacs_saved", "parameter", "batch_size", "threads")
"""In the order in which they are chosen."""
MOST_ANSWERS = 16
"""Lines; what more there are stands below."""
_CURVE = ("curve_id", "metric", "environment", "host")
_NAMED = (("model", "{}"), ("batch_size", "batch {:.0f}"), ("threads", "{:.0f} threads"), ("baseline", "against {}"))
"""Columns that are named where they differ between the curves shown."""


def answer_sections(report: Report) -> Iterator[Section]:
    """The break-even in time of every curve along the first of `AXES` that has a curve of two points or more."""
    yield from _section(report, "ratio", "Answers")


def amount_sections(report: Report) -> Iterator[Section]:
    """The same in peak memory and energy, where they were measured."""
    yield from _section(report, "amount", "Memory and energy")


def _section(report: Report, compared: Compared, title: str) -> Iterator[Section]:
    curves = shown_curves(report.break_evens)
    curves = curves[curves["metric"].isin([name for name, spec in METRICS.items() if spec.compared == compared])]
    curves = curves[(curves["points"] > 1) | (curves["verdict"] == "no_effect")]
    axis = next((axis for axis in AXES if (curves["axis"] == axis).any()), None)
    if axis is None:
        return
    found = curves[curves["axis"] == axis]
    hosts = label_hosts(report.speedups)
    lines = []
    for _, own in groups(found, _CURVE):
        rows = rows_of(own)
        label = ", ".join([curve_label(rows[0]), *_details(rows[0], found), *filter(None, [_place(rows[0], hosts)])])
        lines.append(TextLine(f"{label}: {break_even_sentence(rows, report.speedups)}", style_of(rows[0].verdict)))
    if len(lines) > MOST_ANSWERS:
        lines[MOST_ANSWERS:] = [TextLine(f"and {count(len(lines) - MOST_ANSWERS, 'answer')} more below", "dim")]
    yield Section(title=title, lines=lines)


def _details(row: Any, found: pd.DataFrame) -> Iterator[str]:
    """What distinguishes the curve of a row from the others."""
    if found["metric"].nunique() > 1 or METRICS[row.metric].compared == "amount":
        yield METRICS[row.metric].label
    for name, form in _NAMED:
        value = getattr(row, name)
        if name != row.axis and found[name].nunique() > 1 and not is_missing(value):
            yield form.format(value)


def _place(row: Any, hosts: dict[tuple[str, str], str]) -> str:
    place = hosts.get((row.environment, row.host), "")
    return place and f"on {place}"
