"""Section on ceilings: what reductions reached beside the same tokens cut for nothing, and what
MACs promise.
"""

from collections.abc import Iterator
from math import inf
from typing import Any

import pandas as pd

from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, TextLine
from orchestrator.report.sections.speedup import POINTS_SHARE, speedup_of
from store.read.curves import label_hosts, with_ceilings
from store.rows.frames import groups, rows_of
from sweeps.analysis.rows import CeilingRow
from sweeps.model.metrics import INTERVAL
from sweeps.number_format import image_text
from sweeps.text.condition_text import describe_condition
from sweeps.text.reasons import ceiling_of, left_to_gain
from workers.methods import purpose
from workers.methods.arm_labels import params_label


def _left_text(row: Any) -> str:
    value, low, high = left_to_gain(row)
    if high == inf:
        return f"{value:.3f}x, no interval"
    return f"{value:.3f}x [{low:.3f}, {high:.3f}]"


_COLUMNS = (
    Column("method", lambda row: params_label(row.method, row.params), left=True),
    Column("tokens", lambda row: f"{row.tokens:.0f}"),
    Column("px", lambda row: image_text(row.image_size, row.image_shape).removesuffix(" px")),
    Column(f"reached [{INTERVAL}]", lambda row: speedup_of(row).numbers),
    Column(f"cut for nothing [{INTERVAL}]", lambda row: ceiling_of(row).numbers),
    Column("MACs promise", lambda row: f"{row.speedup_macs:.2f}x"),
    Column("left at most", _left_text),
)
_NOTE = (
    "Cut for nothing: the same token counts, where nothing is scored, matched or gathered: no"
    " reduction with these counts can be faster. Left at most: how much faster than now one could"
    " become; its interval allows the errors of both to add up."
)


def reached_and_free(points: pd.DataFrame) -> pd.DataFrame:
    """Points of reductions of one condition beside whose counts a ceiling was measured, in order of
    arms and sizes.
    """
    found = with_ceilings(points, lambda method: purpose(method) == "ceiling")
    shown = found[
        found["ceiling"].notna()
        & found["method"].map(lambda method: purpose(method) == "optimisation").astype(bool)
    ]
    return shown.sort_values(["method", "params", "tokens"])


def ceiling_sections(report: Report) -> Iterator[Section]:
    """Of each condition one table: reached, free and promised, with what is left."""
    named = label_hosts(report.speedups)
    for condition, points in groups(
        report.speedups[report.speedups["image_size"].notna()], POINTS_SHARE
    ):
        shown = reached_and_free(points)
        if len(shown):
            rows = rows_of(shown, CeilingRow)
            title = describe_condition(
                condition, named[condition["environment"], condition["host"]]
            )
            beyond = [TextLine(line, "yellow") for row in rows if (line := _impossible(row))]
            yield Section(
                title=f"Reached, free, promised: {title}",
                columns=_COLUMNS,
                rows=rows,
                lines=beyond,
                note=_NOTE,
            )


def _impossible(row: Any) -> str:
    """A reduction clearly faster than its ceiling: one of the two is not what it seems."""
    _, _, high = left_to_gain(row)
    if high >= 1:
        return ""
    label = params_label(row.method, row.params)
    return (
        f"{label} at {image_text(row.image_size, row.image_shape)} is measured faster than the same"
        " tokens cut for nothing, which is impossible: one of both was disturbed, or runs other"
        " kernels; measure both again"
    )
