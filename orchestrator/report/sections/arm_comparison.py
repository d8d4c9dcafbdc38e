"""One arm against one baseline in a language sweep: its speed-ups by every metric and its change in
quality, in words.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from orchestrator.report.section import Column, flags_of
from orchestrator.report.sections.speedup import speedup_of
from orchestrator.report.sections.surprises import realised_text
from store.read.quality import (
    conclude_quality,
    join_quality,
    quality_metrics,
    quality_rows,
    with_controls,
    with_states,
)
from store.rows.frames import groups, rows_of
from sweeps.analysis.labels import (
    BITS,
    SPEEDUP,
    Conclusion,
    conclude_interval,
    stacks_of,
    unanswered,
)
from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import format_number, is_missing
from workers.methods.arm_labels import params_label

BYTES_PER_MIB = 2**20


def with_quality(
    speedups: pd.DataFrame, effects: pd.DataFrame, states: pd.DataFrame, controls: pd.DataFrame
) -> pd.DataFrame:
    """Rows of the view `speedup`, each with the quality of the same arm and baseline and with the
    control of its tuning.

    `effects` are rows of the view `effect`, `states` of `store.read.quality` with their
    `kind`, and `controls` of `store.read.quality.beside_controls`.
    """
    if speedups.empty:
        return speedups
    ((kind, spec),) = quality_metrics(speedups["kind"].iloc[0])
    joined = join_quality(speedups, quality_rows(effects[effects["kind"] == kind.name], spec.name))
    return with_controls(with_states(joined, states[states["kind"] == kind.name]), controls).assign(
        quality_metric=spec.name
    )


class ArmComparison:
    """One arm against one baseline under one condition."""

    def __init__(
        self, rows: pd.DataFrame, metrics: Sequence[str], arms: Mapping[str, Any] | None = None
    ) -> None:
        """`rows` are those of `with_quality`, one for each metric; `metrics` those that the kind of
        job declares.

        `arms` are rows of the view `generation` under this condition, by `arm_id`.
        """
        self.by_metric = {row.metric: row for row in rows_of(rows)}
        self.metrics = [metric for metric in metrics if metric in self.by_metric]
        self.row = next(iter(self.by_metric.values()))
        self.label = params_label(self.row.method, self.row.params)
        self._arms = arms or {}

    def speedup(self, metric: str) -> Conclusion:
        """The speed-up by one metric."""
        row = self.by_metric.get(metric)
        return unanswered(SPEEDUP, "not requested") if row is None else speedup_of(row)

    @property
    def main_speedup(self) -> Conclusion:
        """The speed-up by the first metric that was measured."""
        return self.speedup(self.metrics[0])

    @property
    def quality(self) -> Conclusion:
        """The change in quality, or why there is none."""
        return conclude_quality(self.row, METRICS[self.row.quality_metric])

    def describe(self, baseline: str) -> str:
        """Speed-ups by all metrics and the change in quality against `baseline`, and that against
        the control of a tuned arm.
        """
        speedups = ", ".join(map(self.describe_speedup, self.metrics))
        return (
            f"{speedups}, quality {self.quality.phrase} against"
            f" {baseline}{self._describe_control()}"
        )

    def describe_speedup(self, metric: str) -> str:
        """`1.27x [1.25, 1.30] in time per character (faster)`."""
        found = self.speedup(metric)
        return f"{found.numbers} in {METRICS[metric].label} ({found.word})"

    def _describe_control(self) -> str:
        row = self.row
        if is_missing(row.control):
            return ""
        control = f"the control of its tuning, {params_label(row.control, row.control_params)}"
        if is_missing(row.change):
            return (
                f"; {control}, was not measured beside it: what tuning alone changes is not"
                " subtracted"
            )
        return (
            f"; {conclude_interval(BITS, row.change, row.change_low, row.change_high).phrase}"
            f" against {control}"
        )

    def realised(self, metric: str) -> str:
        """How much of the saving that the MACs of what the metric times promise arrived, such as
        `37 %`.
        """
        row = self.by_metric.get(metric)
        return "-" if row is None else realised_text(row)

    def memory(self, name: str, form: str) -> str:
        """Bytes in a column of the view `generation`, of baseline and arm in MiB: `1024 → 980`; a
        dash where one is not known.
        """
        both = [
            getattr(self._arms.get(key), name, None)
            for key in (self.row.baseline_id, self.row.arm_id)
        ]
        return (
            "-"
            if any(map(is_missing, both))
            else " → ".join(format_number(value, form, BYTES_PER_MIB) for value in both)
        )

    @property
    def control(self) -> str:
        """The change in quality against the control of its tuning; empty for an arm that nothing
        tunes.
        """
        if is_missing(self.row.control):
            return ""
        if is_missing(self.row.change):
            return "control not measured"
        return conclude_interval(
            BITS, self.row.change, self.row.change_low, self.row.change_high
        ).numbers

    def macs_promise(self, metric: str) -> str:
        """The speed-up that the MACs of what the metric times would give, such as `1.08`."""
        row = self.by_metric.get(metric)
        return format_number(None if row is None else row.speedup_macs, ".2f")


def columns(metrics: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a table of `ArmComparison`s: times with what of the MACs' promise arrived,
    memory, and quality in one row.
    """

    def speedup_column(metric: str) -> Column:
        return Column(f"{metric} [{INTERVAL}]", lambda arm: arm.speedup(metric).numbers)

    return (
        Column("method", lambda arm: arm.label, left=True),
        Column("MACs promise of each", lambda arm: " / ".join(map(arm.macs_promise, metrics))),
        Column("realised", lambda arm: " / ".join(map(arm.realised, metrics))),
        *map(speedup_column, metrics),
        Column("pairs", lambda arm: f"{arm.row.pairs:.0f}"),
        Column(
            "verdicts",
            lambda arm: ", ".join(
                arm.speedup(each).word if each in arm.by_metric else "-" for each in metrics
            ),
            left=True,
        ),
        Column("KV needed, MiB", lambda arm: arm.memory("kv_bytes_needed", ".2f")),
        Column("peak RSS, MiB", lambda arm: arm.memory("peak_rss_isolated_bytes", ".0f")),
        Column(
            "peak CUDA, MiB", lambda arm: arm.memory("cuda_peak_allocated_isolated_bytes", ".0f")
        ),
        Column("bits per byte [95 %]", lambda arm: arm.quality.numbers),
        Column("against its control [95 %]", lambda arm: arm.control),
        Column(
            "same top-1 %",
            lambda arm: format_number(getattr(arm.row, "top1_agreement", None), ".1f"),
        ),
        Column("quality", lambda arm: arm.quality.word, left=True),
        Column("flags", lambda arm: flags_of(arm.row), left=True, wraps=True),
    )


def labels_of(arms: pd.DataFrame) -> dict[str, str]:
    """The label of each arm in rows of the view `generation`, by `arm_id`."""
    return {row.arm_id: params_label(row.method, row.params) for row in rows_of(arms)}


def by_baseline(points: pd.DataFrame, labels: Mapping[str, str]) -> list[tuple[str, pd.DataFrame]]:
    """The rows against each baseline with its label; those against the unmodified model first."""
    found = [
        (labels.get(key["baseline_id"], min(own["baseline"], key=len)), key["baseline_id"], own)
        for key, own in groups(points, ("baseline_id",))
    ]
    ordered = sorted(found, key=lambda each: (not each[0].startswith("dense"), each[:2]))
    return [(label, own) for label, _, own in ordered]


def describe_stacks(comparisons: Sequence[ArmComparison]) -> Iterator[str]:
    """For each stack the speed-up of each part alone, that of all together, and the product of the
    parts.
    """
    for comparison in comparisons:
        metric = comparison.metrics[0]
        rows = [other.by_metric[metric] for other in comparisons if metric in other.by_metric]
        for stack in stacks_of(rows, params_label):
            if stack.row.arm_id == comparison.row.arm_id:
                yield f"{stack.label}, {METRICS[metric].label}: {stack.text}"
