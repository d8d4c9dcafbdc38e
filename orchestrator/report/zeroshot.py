"""Sections on zero-shot tasks: what each arm reaches in them, and what it loses on the documents of its baseline."""

from collections.abc import Iterator
from typing import Any

from orchestrator.report.conditions import describe_condition
from orchestrator.report.data import Report
from orchestrator.report.section import Section, TextLine, groups, rows_of
from sweeps.labels import TASK, conclude_interval
from sweeps.number_format import is_missing
from workers.methods.arm_labels import params_label

_CONDITION = ("model", "weights", "device_name", "environment", "baseline")


def zeroshot_sections(report: Report) -> Iterator[Section]:
    """A line for each arm, by model and baseline; nothing where no task was run."""
    for condition, found in groups(report.zeroshot, _CONDITION):
        by_arm: dict[str, list[str]] = {}
        for row in rows_of(found):
            by_arm.setdefault(params_label(row.method, row.params), []).append(_task(row))
        lines = [TextLine(f"{arm}: {'; '.join(tasks)}") for arm, tasks in by_arm.items()]
        yield Section(title=f"Zero-shot tasks of {describe_condition(condition)}", lines=lines)


def _task(row: Any) -> str:
    """`piqa_acc 0.612 > 0.598, drop +0.014 [-0.002, +0.030] on 1838 documents: unclear`."""
    values = f"{row.metric.removeprefix('zeroshot_')} {row.value_baseline:.3f} > {row.value:.3f}"
    if is_missing(row.task_drop):
        return f"{values} on {row.n:.0f} documents"
    drop = conclude_interval(TASK, row.task_drop, row.task_drop_low, row.task_drop_high)
    return f"{values}, drop {drop.numbers} on {row.n:.0f} documents: {drop.word}"
