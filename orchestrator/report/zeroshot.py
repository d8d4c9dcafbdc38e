"""Zero-shot tasks in a report: what each arm reaches in them, and what it loses on the very documents of its baseline."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.report.labels import label, rows
from sweeps.labels import TASK, conclude
from sweeps.stats.classification import interval_verdict

ROWS = """
SELECT q.environment, q.device_name, q.model, q.weights, q.baseline, q.method, q.params, m.metric, m.value, m.n,
       b.value AS value_baseline, d.value AS lost, d.low AS lost_low, d.high AS lost_high
FROM quality AS q
JOIN pairing AS p ON p.comparison_id = q.comparison_id
JOIN attempt AS t ON t.id = p.attempt AND t.environment = q.environment
JOIN metric AS m ON m.attempt = p.attempt AND m.arm = p.arm AND m.metric LIKE 'zeroshot%' AND m.metric NOT LIKE '%_drop'
JOIN metric AS b ON b.attempt = p.attempt AND b.arm = p.baseline AND b.metric = m.metric
LEFT JOIN metric AS d ON d.attempt = p.attempt AND d.arm = p.arm AND d.metric = m.metric || '_drop'
WHERE q.comparison_id IN (SELECT comparison_id FROM sweep_comparison WHERE sweep = :name)
  AND NOT EXISTS (SELECT 1 FROM pairing AS o WHERE o.attempt = p.attempt AND o.arm = p.arm AND o.baseline < p.baseline)
  AND NOT EXISTS (
    SELECT 1 FROM pairing AS o JOIN attempt AS u ON u.id = o.attempt JOIN metric AS s ON s.attempt = o.attempt AND s.arm = o.arm
    WHERE o.comparison_id = p.comparison_id AND u.environment = t.environment AND u.id > t.id AND s.metric = m.metric)
ORDER BY q.model, q.method, q.params, m.metric"""
"""For `store.queries.table`: each task's numbers of the newest attempt, beside those of the arm's first baseline.

What an arm loses is measured against that one alone.
"""
CONDITION = ("model", "weights", "device_name", "environment", "baseline")


def told(found: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """A headline for each model and baseline of the rows of `ROWS`, and a line for each arm; nothing where no task was run."""
    if not len(found):
        return
    for key, group in found.groupby(list(CONDITION), sort=False, dropna=False):
        about = dict(zip(CONDITION, key, strict=True))
        lines: dict[str, list[str]] = {}
        for row in rows(group):
            lines.setdefault(label(row), []).append(_said(row))
        headline = f"Zero-shot tasks of {about['model']} (weights {about['weights']}), on {about['device_name']}"
        yield f"{headline}, against {about['baseline']}", [f"{name}: {'; '.join(said)}" for name, said in lines.items()]


def _said(row: Any) -> str:
    """`piqa_acc 0.612 > 0.598, drop +0.014 [-0.002, +0.030] on 1838 documents: unclear`."""
    name = row.metric.removeprefix("zeroshot_")
    values = f"{name} {row.value_baseline:.3f} > {row.value:.3f}"
    if pd.isna(row.lost):
        return f"{values} on {row.n:.0f} documents"
    found = conclude(TASK, row.lost, row.lost_low, row.lost_high, verdict=interval_verdict(row.lost_low, row.lost_high, TASK.floor))
    return f"{values}, drop {found.numbers} on {row.n:.0f} documents: {found.word}"
