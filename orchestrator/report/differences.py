"""Sections on what arms lose: a table for each metric that is compared by difference, and zero-shot
tasks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, NamedTuple

import pandas as pd

from orchestrator.report.data import Report
from orchestrator.report.section import (
    Column,
    Section,
    TextLine,
    filled_columns,
    join_flags,
    style_of,
)
from store.read.quality import quality_rows
from store.rows.frames import groups, rows_of
from sweeps.analysis.labels import TASK, Conclusion, conclude_change, conclude_interval
from sweeps.analysis.rows import EffectRow
from sweeps.model.kinds import KINDS, KindSpec, kinds_of
from sweeps.model.metrics import METRICS, MetricSpec, compared
from sweeps.number_format import count, format_number, with_interval
from sweeps.stats.quality import KL_COVERAGE
from sweeps.text.condition_text import describe_condition
from sweeps.text.effects import effect_word
from workers.methods.arm_labels import params_label

_CONDITION = (
    *("device_name", "model", "weights", "data", "corruption", "severity", "dtype", "attention"),
    *("image_size", "image_shape", "n", "baseline", "seed", "environment"),
)
_TASK_CONDITION = ("model", "weights", "device_name", "environment", "baseline")
NOTE = (
    "Top-1, KL and margin are over the {:.0f} outputs that stand for the classes of the data (those"
    " that class_map.txt names, where there is one); KL is that of the softmax over these outputs"
    " alone."
)


class ChangedArm(NamedTuple):
    """An arm with its change by one metric, and what else was read of the same answers."""

    row: EffectRow
    figures: Mapping[str, Any]
    """By the columns of `store.read.quality.quality_rows`."""
    speedups: str

    @property
    def change(self) -> Conclusion:
        return change_of(self.row)


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """A row of `store.read.queries.zeroshot_rows`."""

    method: str
    params: str
    metric: str
    value_baseline: float
    value: float
    n: float
    task_drop: float | None
    task_drop_low: float | None
    task_drop_high: float | None


def change_of(row: EffectRow) -> Conclusion:
    """What an effect that is compared by difference allows to conclude."""
    return conclude_change(
        METRICS[row.metric],
        nan if row.effect is None else row.effect,
        row.effect_low,
        row.effect_high,
        verdict=row.verdict,
        floor=row.floor,
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
                measured = {
                    kind.payload: condition["n"],
                    **{name: points[name].iloc[0] for name in METRICS if name in points},
                }
                outputs = classes.reindex(points["comparison_id"]).dropna()
                rows = _changed_arms(points, report.speedups, kind)
                yield Section(
                    title=f"{kind.name.capitalize()} of {describe_condition(measured | condition)}",
                    columns=filled_columns(_columns(spec, points), rows),
                    rows=rows,
                    row_style=lambda arm: style_of(effect_word(arm.change)),
                    note=" ".join(_notes(outputs, points)),
                )


def _changed_arms(points: pd.DataFrame, speedups: pd.DataFrame, kind: KindSpec) -> list[ChangedArm]:
    ordered = points.sort_values(["method", "params"])
    named = ordered.rename(columns={"quality_verdict": "verdict", "quality_floor": "floor"})
    metric = kinds_of(kind.modality)[0].metrics[0]
    timed = speedups[speedups["metric"] == metric].groupby("quality_pair_id")["speedup"]
    known = {key: (found.iloc[0], found.min(), found.max(), len(found)) for key, found in timed}
    cells = ordered.astype(object).where(ordered.notna(), None)
    return [
        ChangedArm(row, dict(zip(map(str, cells), values, strict=True)), _speedups(known.get(key)))
        for row, key, values in zip(
            rows_of(named, EffectRow),
            ordered["quality_pair_id"],
            cells.itertuples(index=False, name=None),
            strict=True,
        )
    ]


def _notes(outputs: "pd.Series[Any]", points: pd.DataFrame) -> Iterator[str]:
    """What must be known to read the table."""
    if len(outputs):
        yield NOTE.format(outputs.iloc[0])
    if "kl_low" in points and points["kl_low"].notna().any():
        yield f"Of KL {KL_COVERAGE}."


def _columns(spec: MetricSpec, points: pd.DataFrame) -> list[Column]:
    """Those of all metrics that are read for each item beside the one that is compared."""
    others = [
        each
        for name, each in METRICS.items()
        if each.read == "item" and each != spec and name in points
    ]
    return [
        Column("method", lambda arm: params_label(arm.row.method, arm.row.params), left=True),
        Column("tokens at the end", lambda arm: format_number(arm.row.tokens_final, ".0f")),
        Column("GMACs", _gmacs_text),
        Column(
            _heading(spec),
            lambda arm: (
                f"{arm.row.baseline_value:.{spec.digits}f} → {arm.row.arm_value:.{spec.digits}f}"
            ),
        ),
        Column(
            f"{'drop' if spec.better == 'higher' else 'change'} [95 %]",
            lambda arm: arm.change.numbers,
        ),
        Column("verdict", lambda arm: effect_word(arm.change), left=True),
        *(
            Column(_heading(each), partial(_figure_text, name=each.name))
            for each in others
            if each.better or points[f"{each.name}_baseline"].notna().any()
        ),
        Column("speed-up", lambda arm: arm.speedups),
        Column("flags", lambda arm: join_flags(arm.row.flags), left=True, wraps=True),
    ]


def _heading(spec: MetricSpec) -> str:
    return spec.label if spec.unit in {"1", "bit"} else f"{spec.label}, {spec.unit}"


def _gmacs_text(arm: ChangedArm) -> str:
    row = arm.row
    return "-" if row.gmacs is None else f"{row.gmacs_baseline:.3g} → {row.gmacs_total:.3g}"


def _figure_text(arm: ChangedArm, name: str) -> str:
    """A metric that is not compared: of baseline and arm, or with its interval."""
    baseline, value, low, high = (
        arm.figures[f"{name}{end}"] for end in ("_baseline", "", "_low", "_high")
    )
    if baseline is None:
        return with_interval(value, low, high, ".4g")
    return f"{baseline:.4g} → {value:.4g}"


def _speedups(known: tuple[float, float, float, int] | None) -> str:
    """The speed-ups of the arm over the same baseline, by the first metric.

    One, or the range over batch sizes, threads, runtimes and machines.
    """
    if known is None:
        return "-"
    only, least, most, number = known
    return f"{only:.2f}x" if number == 1 else f"{least:.2f}x to {most:.2f}x"


def zeroshot_sections(report: Report) -> Iterator[Section]:
    """A line for each arm, by model and baseline; nothing where no task was run."""
    for condition, found in groups(report.zeroshot, _TASK_CONDITION):
        by_arm: dict[str, list[str]] = {}
        for row in rows_of(found, TaskRow):
            by_arm.setdefault(params_label(row.method, row.params), []).append(_task(row))
        lines = [TextLine(f"{arm}: {'; '.join(tasks)}") for arm, tasks in by_arm.items()]
        yield Section(title=f"Zero-shot tasks of {describe_condition(condition)}", lines=lines)


def _task(row: TaskRow) -> str:
    """`piqa_acc 0.612 → 0.598, drop +0.014 [-0.002, +0.030] on 1838 documents: unclear`."""
    values = f"{row.metric.removeprefix('zeroshot_')} {row.value_baseline:.3f} → {row.value:.3f}"
    if row.task_drop is None:
        return f"{values} on {count(int(row.n), 'document')}"
    drop = conclude_interval(TASK, row.task_drop, row.task_drop_low, row.task_drop_high)
    return f"{values}, drop {drop.numbers} on {count(int(row.n), 'document')}: {effect_word(drop)}"
