"""Section on the cost model of curves: launch and work of arm and baseline, and the break-even that they predict."""

from collections.abc import Iterator
from typing import Any

from orchestrator.report.conditions import distinctions
from orchestrator.report.data import Report
from orchestrator.report.section import Section, TextLine
from store.explanations import predicted_break_evens
from store.host_labels import label_hosts
from sweeps.metrics import METRICS
from workers.methods.arm_labels import params_label


def cost_model_sections(report: Report) -> Iterator[Section]:
    """A line for each curve whose cost model predicts a break-even."""
    models = report.cost_models
    hosts = label_hosts(report.speedups)

    def label(row: Any) -> str:
        place = hosts.get((row.environment, row.host), "")
        more = [METRICS[row.metric].label] if models["metric"].nunique() > 1 else []
        more += [*distinctions(row, models), *([f"on {place}"] if place else [])]
        return ", ".join([params_label(row.method, row.params), *more])

    found = predicted_break_evens(models, report.break_evens)
    if lines := [TextLine(f"{label(row)}: {text}", "dim") for row, text in found]:
        yield Section(title="Cost model: time = launch + work", lines=lines)
