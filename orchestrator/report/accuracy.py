"""Sections on accuracy: what each arm loses on the same images as its baseline, and its speed-up beside that."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.report.conditions import describe_condition
from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, flags_of, groups, rows_of, style_of
from store.quality_ids import without_speed
from sweeps.labels import TOP1, Conclusion, conclude_row
from sweeps.number_format import with_interval
from workers.methods.arm_labels import params_label

_CONDITION = (
    *("device_name", "model", "weights", "data", "corruption", "severity", "dtype", "attention", "image_size"),
    *("images", "baseline", "seed", "environment"),
)
SAME_ARM = ("model", "weights", "method", "dtype", "attention", "image_size")
NOTE = (
    "Top-1, KL and margin are over the {:.0f} outputs that stand for the classes of the data (those that class_map.txt names, "
    "where there is one); KL is that of the softmax over these outputs alone."
)


def top1_drop_of(row: Any) -> Conclusion:
    """What a row of the view `accuracy` allows to conclude about top-1 accuracy."""
    return conclude_row(TOP1, row, "top1_drop")


_COLUMNS = (
    Column("method", lambda row: params_label(row.method, row.params), left=True),
    Column("tokens at the end", lambda row: f"{row.tokens_final:.0f}"),
    Column("GMACs", lambda row: f"{row.gmacs_baseline:.3g} > {row.gmacs_total:.3g}"),
    Column("top-1 %", lambda row: f"{row.top1_baseline:.2f} > {row.top1:.2f}"),
    Column("drop, points [95 %]", lambda row: top1_drop_of(row).numbers),
    Column("verdict", lambda row: top1_drop_of(row).word, left=True),
    Column("top-5 %", lambda row: f"{row.top5_baseline:.2f} > {row.top5:.2f}"),
    Column("KL, nats [95 %]", lambda row: with_interval(row.kl, row.kl_low, row.kl_high, ".4f")),
    Column(
        "margin change [95 %]", lambda row: with_interval(row.margin_change, row.margin_change_low, row.margin_change_high, "+.3f")
    ),
    Column("speed-up", lambda row: row.speedups),
    Column("flags", flags_of, left=True, wraps=True),
)


def accuracy_sections(report: Report) -> Iterator[Section]:
    """A table for each condition; nothing if no accuracy was measured."""
    for condition, points in groups(report.accuracies, _CONDITION):
        ordered = points.sort_values(["method", "params"])
        yield Section(
            title=f"Accuracy of {describe_condition(condition)}",
            columns=_COLUMNS,
            rows=rows_of(ordered.assign(speedups=[_speedups(row, report.speedups) for row in rows_of(ordered)])),
            row_style=lambda row: style_of(top1_drop_of(row).word),
            note=NOTE.format(points["classes"].iloc[0]),
        )


def _speedups(row: Any, speedups: pd.DataFrame) -> str:
    """The speed-ups of the same arm: one, or the range over batch sizes, threads, runtimes and machines."""
    same = speedups["params"].map(without_speed) == without_speed(row.params)
    for column in SAME_ARM:
        same &= speedups[column] == getattr(row, column)
    found = speedups.loc[same, "speedup"]
    if not len(found):
        return "-"
    return f"{found.iloc[0]:.2f}x" if len(found) == 1 else f"{found.min():.2f}x to {found.max():.2f}x"
