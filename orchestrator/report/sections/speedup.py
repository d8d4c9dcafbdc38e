"""Sections on speed-ups of vision models: a table of points and the break-even points for each
condition.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, TextLine, flags_of, style_of
from orchestrator.report.sections.conditions import (
    FIELD_AXES,
    break_even_line,
    curve_label,
    shown_curves,
)
from orchestrator.report.sections.surprises import realised_text, worst_first, worst_shortfall
from store.read.curves import label_hosts
from store.rows.frames import groups, rows_of
from sweeps.analysis.labels import SPEEDUP, Conclusion, conclude_row
from sweeps.analysis.rows import BreakEvenRow
from sweeps.model.kinds import THREAD_FIELDS
from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import axis_label, count, image_text, is_missing
from sweeps.text.condition_text import describe_condition
from workers.methods.arm_labels import params_label

POINTS_SHARE = (
    *(
        "metric",
        "device_name",
        "model",
        "weights",
        "dtype",
        "attention",
        "runtime",
        *THREAD_FIELDS,
        "batch_size",
    ),
    *("baseline", "environment", "host", "exclusive"),
)
"""Columns that are equal for all rows of one section; ratios are never mixed across these."""

MAX_LINES = 12
"""Curves along a number of the condition that a report lists."""


def speedup_of(row: Any) -> Conclusion:
    """What a row of the view `speedup` allows to conclude."""
    return conclude_row(SPEEDUP, row, "speedup")


def _notes(row: Any) -> str:
    """The implementation that ran, where it is not torch's operators, the flags, and what stood out
    of the machine.
    """
    implementation = (
        ""
        if is_missing(row.implementation) or row.implementation == "torch"
        else f"implementation: {row.implementation}"
    )
    return ", ".join(filter(None, (implementation, flags_of(row))))


_COLUMNS = (
    Column("method", lambda row: params_label(row.method, row.params), left=True),
    Column("tokens", lambda row: f"{row.tokens:.0f}"),
    Column("px", lambda row: image_text(row.image_size, row.image_shape).removesuffix(" px")),
    Column("GMACs", lambda row: f"{row.gmacs_baseline:.3g} → {row.gmacs:.3g}"),
    Column("MACs promise", lambda row: f"{row.speedup_macs:.2f}x"),
    Column("realised", realised_text),
    Column("ms", lambda row: f"{row.baseline_ms:.3g} → {row.arm_ms:.3g}"),
    Column(f"speed-up [{INTERVAL}]", lambda row: speedup_of(row).numbers),
    Column("pairs", lambda row: f"{row.pairs:.0f}"),
    Column("verdict", lambda row: speedup_of(row).word, left=True),
    Column("notes", _notes, left=True, wraps=True),
)


def speedup_sections(report: Report) -> Iterator[Section]:
    """The points of every condition, worst surprises first, each followed by its break-even
    points.
    """
    named = label_hosts(report.speedups)
    break_evens = shown_curves(report.break_evens)
    found = list(groups(report.speedups[report.speedups["image_size"].notna()], POINTS_SHARE))
    for condition, points in sorted(found, key=lambda each: -worst_shortfall(each[1])):
        label = METRICS[condition["metric"]].label
        title = describe_condition(condition, named[condition["environment"], condition["host"]])
        yield Section(
            title=title if label == "latency" else f"{title}: {label}",
            columns=_COLUMNS,
            rows=rows_of(worst_first(points)),
            row_style=lambda row: style_of(speedup_of(row).word),
        )
        for key, curves in groups(_curves_of(break_evens, condition, points), ("axis",)):
            own = [rows_of(curve, BreakEvenRow) for _, curve in groups(curves, ("curve_id",))]
            lines = [
                TextLine(
                    f"{curve_label(rows[0])}: {break_even_line(rows)}", style_of(rows[0].verdict)
                )
                for rows in own
            ]
            yield Section(
                title=f"Break-even in {axis_label(key['axis']).title}", lines=lines, level=3
            )


def field_sections(report: Report) -> Iterator[Section]:
    """Break-even points along numbers of the condition, each at a fixed size: at most `MAX_LINES`
    along each.
    """
    named = label_hosts(report.speedups)
    vision = report.break_evens[
        report.break_evens["image_size"].notna() & report.break_evens["axis"].isin(FIELD_AXES)
    ]
    vision = vision[
        vision["metric"].isin([name for name, spec in METRICS.items() if spec.compared == "ratio"])
    ]
    for key, found in groups(vision, ("axis", "metric")):
        curves = [
            rows_of(curve, BreakEvenRow)
            for _, curve in groups(found, ("curve_id", "environment", "host"))
        ]
        lines = []
        for rows in curves[:MAX_LINES]:
            place = named.get((rows[0].environment, rows[0].host), "")
            label = ", ".join(
                filter(None, (curve_label(rows[0]), rows[0].model, place and f"on {place}"))
            )
            lines.append(TextLine(f"{label}: {break_even_line(rows)}", style_of(rows[0].verdict)))
        if len(curves) > MAX_LINES:
            lines.append(
                TextLine(
                    f"and {count(len(curves) - MAX_LINES, 'curve')} more, in the view break_even",
                    "dim",
                )
            )
        yield Section(
            title=(
                f"Break-even in {axis_label(key['axis']).title}, by {METRICS[key['metric']].label}"
            ),
            lines=lines,
        )


def _curves_of(
    break_evens: pd.DataFrame, condition: dict[str, Any], points: pd.DataFrame
) -> pd.DataFrame:
    """The rows of the same condition, without single points along tokens and GMACs where something
    else varies at one size.
    """
    of_fields = break_evens["axis"].isin(FIELD_AXES)
    same = break_evens["kind"].isin(points["kind"]) & ~of_fields
    for field in set(POINTS_SHARE) & set(break_evens.columns):
        same &= (
            break_evens[field].isna()
            if is_missing(condition[field])
            else break_evens[field] == condition[field]
        )
    found = break_evens[same]
    varied = found["axis"].isin(("gmacs_saved", "parameter"))
    return found[varied | (found["points"] > 1)] if varied.any() or of_fields.any() else found
