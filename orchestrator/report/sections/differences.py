"""Sections on what arms lose: a table for each metric that is compared by difference, and zero-shot
tasks.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.report.data import Report
from orchestrator.report.section import (
    Column,
    Section,
    TextLine,
    filled_columns,
    flags_of,
    style_of,
)
from store.read.quality import quality_rows
from store.rows.frames import groups, rows_of
from sweeps.analysis.labels import TASK, Conclusion, conclude_change, conclude_interval
from sweeps.model.kinds import KINDS, KindSpec, kinds_of
from sweeps.model.metrics import METRICS, MetricSpec, compared
from sweeps.number_format import is_missing, with_interval
from sweeps.stats.quality import KL_COVERAGE
from sweeps.text.condition_text import describe_condition
from workers.methods.arm_labels import params_label

_CONDITION = (
    *(
        "device_name",
        "model",
        "weights",
        "data",
        "corruption",
        "severity",
        "dtype",
        "attention",
        "image_size",
        "image_shape",
    ),
    *("n", "baseline", "seed", "environment"),
)
_TASK_CONDITION = ("model", "weights", "device_name", "environment", "baseline")
NOTE = (
    "Top-1, KL and margin are over the {:.0f} outputs that stand for the classes of the data (those"
    " that class_map.txt names, where there is one); KL is that of the softmax over these outputs"
    " alone."
)


def change_of(row: Any) -> Conclusion:
    """What a row of the view `effect`, compared by difference, allows to conclude."""
    verdict, floor = (
        getattr(row, name, None) or getattr(row, f"quality_{name}") for name in ("verdict", "floor")
    )
    return conclude_change(
        METRICS[row.metric],
        row.effect,
        row.effect_low,
        row.effect_high,
        verdict=verdict,
        floor=floor,
    )


def difference_sections(report: Report) -> Iterator[Section]:
    """A table for each condition; nothing if no such metric was measured."""
    classes = report.accuracies.drop_duplicates("comparison_id").set_index("comparison_id")[
        "classes"
    ]
    for kind in KINDS.values():
        effects = report.effects[report.effects["kind"] == kind.name]
        for spec in compared(kind.metrics, "difference"):
            for condition, points in groups(quality_rows(effects, spec.name), _CONDITION):
                ordered = points.sort_values(["method", "params"])
                rows = rows_of(
                    ordered.assign(
                        speedups=[_speedups(row, report.speedups, kind) for row in rows_of(ordered)]
                    )
                )
                columns = filled_columns(_columns(spec, points), rows)
                measured = {
                    kind.payload: condition["n"],
                    **{name: points[name].iloc[0] for name in METRICS if name in points},
                }
                outputs = classes.reindex(points["comparison_id"]).dropna()
                yield Section(
                    title=f"{kind.name.capitalize()} of {describe_condition(measured | condition)}",
                    columns=columns,
                    rows=rows,
                    row_style=lambda row: style_of(change_of(row).word),
                    note=" ".join(_notes(outputs, points)),
                )


def _notes(outputs: "pd.Series[Any]", points: pd.DataFrame) -> Iterator[str]:
    """What must be known to read the table."""
    if len(outputs):
        yield NOTE.format(outputs.iloc[0])
    if "kl_low" in points and points["kl_low"].notna().any():
        yield f"Of KL {KL_COVERAGE}."


def _columns(spec: MetricSpec, points: pd.DataFrame) -> list[Column]:
    """Those of all metrics that are read for each item beside the one that is compared."""
    beside = [
        each
        for name, each in METRICS.items()
        if each.read == "item" and each != spec and name in points
    ]
    beside = [
        each for each in beside if each.better or points[f"{each.name}_baseline"].notna().any()
    ]
    return [
        Column("method", lambda row: params_label(row.method, row.params), left=True),
        Column(
            "tokens at the end",
            lambda row: "-" if is_missing(row.tokens_final) else f"{row.tokens_final:.0f}",
        ),
        Column(
            "GMACs",
            lambda row: (
                "-"
                if is_missing(row.gmacs)
                else f"{row.gmacs_baseline:.3g} → {row.gmacs_total:.3g}"
            ),
        ),
        Column(
            _heading(spec),
            lambda row: f"{row.baseline_value:.{spec.digits}f} → {row.arm_value:.{spec.digits}f}",
        ),
        Column(
            f"{'drop' if spec.better == 'higher' else 'change'} [95 %]",
            lambda row: change_of(row).numbers,
        ),
        Column("verdict", lambda row: change_of(row).word, left=True),
        *map(_figure, beside),
        Column("speed-up", lambda row: row.speedups),
        Column("flags", flags_of, left=True, wraps=True),
    ]


def _heading(spec: MetricSpec) -> str:
    return spec.label if spec.unit in {"1", "bit"} else f"{spec.label}, {spec.unit}"


def _figure(spec: MetricSpec) -> Column:
    """A metric that is not compared: of baseline and arm, or with its interval."""

    def cell(row: Any) -> str:
        baseline, value, low, high = (
            getattr(row, f"{spec.name}{end}") for end in ("_baseline", "", "_low", "_high")
        )
        return (
            with_interval(value, low, high, ".4g")
            if is_missing(baseline)
            else f"{baseline:.4g} → {value:.4g}"
        )

    return Column(_heading(spec), cell)


def _speedups(row: Any, speedups: pd.DataFrame, kind: KindSpec) -> str:
    """The speed-ups of the arm over the same baseline, by the first metric.

    One, or the range over batch sizes, threads, runtimes and machines.
    """
    metric = kinds_of(kind.modality)[0].metrics[0]
    found = speedups.loc[
        (speedups["quality_pair_id"] == row.quality_pair_id) & (speedups["metric"] == metric),
        "speedup",
    ]
    if not len(found):
        return "-"
    return (
        f"{found.iloc[0]:.2f}x" if len(found) == 1 else f"{found.min():.2f}x to {found.max():.2f}x"
    )


def zeroshot_sections(report: Report) -> Iterator[Section]:
    """A line for each arm, by model and baseline; nothing where no task was run."""
    for condition, found in groups(report.zeroshot, _TASK_CONDITION):
        by_arm: dict[str, list[str]] = {}
        for row in rows_of(found):
            by_arm.setdefault(params_label(row.method, row.params), []).append(_task(row))
        lines = [TextLine(f"{arm}: {'; '.join(tasks)}") for arm, tasks in by_arm.items()]
        yield Section(title=f"Zero-shot tasks of {describe_condition(condition)}", lines=lines)


def _task(row: Any) -> str:
    """`piqa_acc 0.612 → 0.598, drop +0.014 [-0.002, +0.030] on 1838 documents: unclear`."""
    values = f"{row.metric.removeprefix('zeroshot_')} {row.value_baseline:.3f} → {row.value:.3f}"
    if is_missing(row.task_drop):
        return f"{values} on {row.n:.0f} documents"
    drop = conclude_interval(TASK, row.task_drop, row.task_drop_low, row.task_drop_high)
    return f"{values}, drop {drop.numbers} on {row.n:.0f} documents: {drop.word}"
