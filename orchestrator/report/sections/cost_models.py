"""Section on the cost model of curves: launch and work of arm and baseline, and the break-even that
they predict.
"""

from collections.abc import Iterator
from typing import Any

from orchestrator.report.data import Report
from orchestrator.report.section import Section, TextLine
from orchestrator.report.sections.conditions import distinctions
from store.read.curves import label_hosts, predicted_break_evens
from sweeps.model.metrics import METRICS
from sweeps.text.reasons import RATIOS_OF_COSTS, explain_costs
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
    lines, noted = [], False
    for row, text in found:
        lines.append(TextLine(f"{label(row)}: {text}", "dim"))
        costs = report.relative_costs.get((row.curve_id, row.environment, row.host, row.metric))
        if costs is not None:
            noted = True
            lines += [
                TextLine(f"{label(row)}: {each}", "dim") for each in explain_costs(row, costs)
            ]
    if lines:
        yield Section(
            title="Cost model: time = launch + work",
            lines=lines,
            note=RATIOS_OF_COSTS if noted else "",
        )
