"""Sections on language models: what each arm gains in speed, what it costs in quality, and what it
needs of memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from orchestrator.report.data import PointRow, Report
from orchestrator.report.section import (
    Column,
    Section,
    TextLine,
    filled_columns,
    join_flags,
    style_of,
)
from orchestrator.report.speedup import (
    by_shortfall,
    curve_label,
    curve_sections,
    realised_text,
    shown_curves,
    worst_first,
)
from store.read.curves import label_hosts
from store.read.quality import (
    conclude_quality,
    join_quality,
    quality_metrics,
    quality_rows,
    with_controls,
    with_states,
)
from store.rows.frames import rows_of
from sweeps.analysis.labels import (
    BITS,
    SPEEDUP,
    Conclusion,
    conclude_interval,
    conclude_speedup,
    stacks_of,
    unanswered,
)
from sweeps.analysis.rows import ArmRow, BreakEvenRow, JoinedQuality
from sweeps.model.job import DENSE
from sweeps.model.kinds import KINDS, THREAD_FIELDS
from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import format_number
from sweeps.text.condition_text import cautions, describe_condition
from sweeps.text.effects import effect_phrase, effect_word, stack_text
from workers.methods.arm_labels import params_label

BYTES_PER_MIB = 2**20
_WORKLOAD = (
    *("prompt_tokens", "new_tokens", "data", "decoding", "batch_size", "device_name", "exclusive"),
    *THREAD_FIELDS,
)
"""Fields of a condition's title that no arm overrides."""
_SETTINGS = ("dtype", "runtime", "kv_cache")
"""Those that arms override; the title has those of the unmodified model."""


@dataclass(frozen=True, kw_only=True)
class GeneratedRow(ArmRow):
    """View `generation`."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    tpot_p95_ms: float | None = None
    prefill_tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    chars_per_s: float | None = None
    kv_bytes_needed: float | None = None
    kv_bytes_resident: float | None = None
    kv_bytes_virtual: float | None = None
    peak_rss_isolated_bytes: float | None = None
    cuda_peak_allocated_isolated_bytes: float | None = None
    achieved_sparsity: float | None = None
    kernel_calls: float | None = None
    fallback_calls: float | None = None

    @property
    def arm_label(self) -> str:
        return params_label(self.method, self.params)


_Figure = Callable[[GeneratedRow], float | None]


@dataclass(frozen=True, kw_only=True)
class QualityPointRow(JoinedQuality, PointRow):
    """A row of `with_quality`."""

    quality_metric: str
    top1_agreement: float | None = None


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
        self,
        rows: Sequence[QualityPointRow],
        metrics: Sequence[str],
        arms: Mapping[str, GeneratedRow] | None = None,
    ) -> None:
        """`rows` are one for each metric; `metrics` those that the kind of job declares.

        `arms` are rows of the view `generation` under this condition, by `arm_id`.
        """
        self.by_metric = {row.metric: row for row in rows}
        self.metrics = [metric for metric in metrics if metric in self.by_metric]
        self.row = rows[0]
        self.label = params_label(self.row.method, self.row.params)
        self._arms = arms or {}

    def speedup(self, metric: str) -> Conclusion:
        """The speed-up by one metric."""
        row = self.by_metric.get(metric)
        return unanswered(SPEEDUP, "not requested") if row is None else conclude_speedup(row)

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
        control = ""
        if self.row.control is not None:
            label = params_label(self.row.control, self.row.control_params or "")
            control = f"; the control of its tuning, {label}, was not measured beside it: what" + (
                " tuning alone changes is not subtracted"
            )
            if (change := self._control_change) is not None:
                control = f"; {effect_phrase(change)} against the control of its tuning, {label}"
        return f"{speedups}, quality {effect_phrase(self.quality)} against {baseline}{control}"

    def describe_speedup(self, metric: str) -> str:
        """`1.27x [1.25, 1.30] in time per character (faster)`."""
        found = self.speedup(metric)
        return f"{found.numbers} in {METRICS[metric].label} ({effect_word(found)})"

    def memory(self, figure: _Figure, form: str) -> str:
        """A figure of baseline and arm in MiB: `1024 → 980`; a dash where one is not known."""
        both = [
            None if (arm := self._arms.get(key)) is None else figure(arm)
            for key in (self.row.baseline_id, self.row.arm_id)
        ]
        if None in both:
            return "-"
        return " → ".join(format_number(value, form, BYTES_PER_MIB) for value in both)

    @property
    def _control_change(self) -> Conclusion | None:
        """Against the control of its tuning; `None` where it was not measured."""
        row = self.row
        if row.change is None:
            return None
        return conclude_interval(BITS, row.change, row.change_low, row.change_high)

    @property
    def control(self) -> str:
        """The change in quality against the control of its tuning; empty for an arm that nothing
        tunes.
        """
        if self.row.control is None:
            return ""
        change = self._control_change
        return "control not measured" if change is None else change.numbers

    def by_metrics(self, cell: Callable[[QualityPointRow], str], metrics: Sequence[str]) -> str:
        """A text for each of the metrics, `0.91 / 1.20`; a dash where one was not measured."""
        rows = map(self.by_metric.get, metrics)
        return " / ".join("-" if row is None else cell(row) for row in rows)


def columns(metrics: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a table of `ArmComparison`s: times with what of the MACs' promise arrived,
    memory, and quality in one row.
    """

    def speedup_column(metric: str) -> Column:
        return Column(f"{metric} [{INTERVAL}]", lambda arm: arm.speedup(metric).numbers)

    def memory_column(label: str, figure: _Figure, form: str) -> Column:
        return Column(label, lambda arm: arm.memory(figure, form))

    def promise(row: QualityPointRow) -> str:
        return format_number(row.speedup_macs, ".2f")

    return (
        Column("method", lambda arm: arm.label, left=True),
        Column("MACs promise of each", lambda arm: arm.by_metrics(promise, metrics)),
        Column("realised", lambda arm: arm.by_metrics(realised_text, metrics)),
        *map(speedup_column, metrics),
        Column("pairs", lambda arm: f"{arm.row.pairs:.0f}"),
        Column(
            "verdicts",
            lambda arm: ", ".join(
                effect_word(arm.speedup(each)) if each in arm.by_metric else "-" for each in metrics
            ),
            left=True,
        ),
        memory_column("KV needed, MiB", lambda arm: arm.kv_bytes_needed, ".2f"),
        memory_column("peak RSS, MiB", lambda arm: arm.peak_rss_isolated_bytes, ".0f"),
        memory_column("peak CUDA, MiB", lambda arm: arm.cuda_peak_allocated_isolated_bytes, ".0f"),
        Column("bits per byte [95 %]", lambda arm: arm.quality.numbers),
        Column("against its control [95 %]", lambda arm: arm.control),
        Column("same top-1 %", lambda arm: format_number(arm.row.top1_agreement, ".1f")),
        Column("quality", lambda arm: effect_word(arm.quality), left=True),
        Column(
            "flags",
            lambda arm: join_flags(arm.row.flags, arm.row.system_notes),
            left=True,
            wraps=True,
        ),
    )


def by_baseline(
    rows: Sequence[QualityPointRow], arms: Mapping[str, GeneratedRow]
) -> list[tuple[bool, str, list[QualityPointRow]]]:
    """Whether a baseline is another than the unmodified model, its label and the rows against it,
    in this order.
    """
    found: dict[str, list[QualityPointRow]] = {}
    for row in rows:
        found.setdefault(row.baseline_id, []).append(row)
    labelled = [
        (
            own[0].baseline_method != DENSE.method,
            arms[key].arm_label if key in arms else min((row.baseline for row in own), key=len),
            own,
        )
        for key, own in found.items()
    ]
    return sorted(labelled, key=lambda each: (*each[:2], each[2][0].baseline_id))


def by_arm(rows: Sequence[QualityPointRow]) -> list[list[QualityPointRow]]:
    """The rows of each arm, in order of appearance."""
    found: dict[str, list[QualityPointRow]] = {}
    for row in rows:
        found.setdefault(row.arm_id, []).append(row)
    return list(found.values())


def describe_stacks(comparisons: Sequence[ArmComparison]) -> Iterator[str]:
    """For each stack the speed-up of each part alone, that of all together, and the product of the
    parts.
    """
    for comparison in comparisons:
        metric = comparison.metrics[0]
        rows = [other.by_metric[metric] for other in comparisons if metric in other.by_metric]
        for stack in stacks_of(rows, params_label):
            if stack.row.arm_id == comparison.row.arm_id:
                yield f"{stack.label}, {METRICS[metric].label}: {stack_text(stack)}"


def _flagged_label(row: GeneratedRow) -> str:
    flags = sorted({*filter(None, f"{row.arm_flags or ''},{row.job_flags or ''}".split(","))})
    return row.arm_label + (f" ({', '.join(flags)})" if flags else "")


def _figure(label: str, figure: _Figure, form: str, unit: float = 1) -> Column:
    return Column(label, lambda row: format_number(figure(row), form, unit))


_ARM_COLUMNS = (
    Column("arm", _flagged_label, left=True),
    _figure("first token, ms", lambda row: row.ttft_ms, ".1f"),
    _figure("output token, ms", lambda row: row.tpot_ms, ".2f"),
    _figure("p95, ms", lambda row: row.tpot_p95_ms, ".2f"),
    _figure("prefill tokens/s", lambda row: row.prefill_tokens_per_s, ".0f"),
    _figure("decode tokens/s", lambda row: row.decode_tokens_per_s, ".1f"),
    _figure("characters/s", lambda row: row.chars_per_s, ".1f"),
    Column(
        "read / machine, GB/s",
        lambda row: (
            f"{format_number(row.achieved_gb_per_s, '.1f')} /"
            f" {format_number(row.peak_gb_per_s, '.1f')}"
        ),
    ),
    _figure("KV resident, MiB", lambda row: row.kv_bytes_resident, ".2f", BYTES_PER_MIB),
    _figure("virtual", lambda row: row.kv_bytes_virtual, ".2f", BYTES_PER_MIB),
    _figure("sparsity", lambda row: row.achieved_sparsity, ".3f"),
    _figure("kernel calls", lambda row: row.kernel_calls, ".0f"),
    _figure("to dense", lambda row: row.fallback_calls, ".0f"),
)


def generation_sections(report: Report) -> Iterator[Section]:
    """Each condition with its arms, worst surprises first, then break-even points; quality by
    itself is in `differences`.
    """
    timed = report.speedups[report.speedups["prompt_tokens"].notna()]
    compared = with_quality(timed, report.effects, report.quality_states, report.controls)
    named = label_hosts(timed)
    for key, points in by_shortfall(compared, ("environment", "host", "condition_id")):
        arms = report.arms
        for name, value in key.items():
            arms = arms[arms[name] == value]
        yield from _condition(points, arms, named[key["environment"], key["host"]])
    labels = {row.arm_id: row.arm_label for row in rows_of(report.arms, GeneratedRow)}

    def label(row: BreakEvenRow) -> str:
        place = named.get((row.environment, row.host), "")
        against = f"against {labels.get(row.baseline_id, row.baseline)}"
        return f"{curve_label(row)}, {row.model}, {against}" + (place and f", on {place}")

    # GMACs grow with the prompt: break-even along them repeats that along tokens
    curves = shown_curves(report.break_evens[report.break_evens["kind"].isin(timed["kind"])])
    yield from curve_sections(curves[(curves["points"] > 1) & (curves["axis"] != "gmacs")], label)


def limits(report: Report) -> Iterator[Section]:
    """What small and random models cannot show."""
    timed = report.speedups[report.speedups["prompt_tokens"].notna()]
    models = pd.concat([frame[["model", "weights"]] for frame in (timed, report.qualities)])
    lines: list[TextLine] = []
    for model, weights in models.drop_duplicates().itertuples(index=False, name=None):
        own = report.arms[report.arms["model"] == model]
        dense = own[own["method"] == DENSE.method]  # other arms untie the head, or add adapters
        sizes = (dense if len(dense) else own)["parameters"]
        lines += map(TextLine, cautions(model, weights, sizes.min() if len(sizes) else None))
    if lines:
        yield Section(title="Limits of these results", lines=lines)


def _condition(points: pd.DataFrame, arms: pd.DataFrame, place: str) -> Iterator[Section]:
    title = _title(points, arms, place)
    metrics = KINDS[points["kind"].iloc[0]].metrics
    ran = rows_of(arms.sort_values(["method", "params"]), GeneratedRow)
    by_id = {row.arm_id: row for row in ran}
    stacks: list[TextLine] = []
    for modified, baseline, own in by_baseline(rows_of(points, QualityPointRow), by_id):
        ordered = worst_first(own, lambda row: row.metric)
        comparisons = [ArmComparison(rows, metrics, by_id) for rows in by_arm(ordered)]
        if not modified:  # only the unmodified model shows what a part gains alone
            stacks += [
                TextLine(f"{line}, against {baseline}") for line in describe_stacks(comparisons)
            ]
        yield Section(
            title=f"{title}, against {baseline}",
            columns=filled_columns(columns(metrics), comparisons),
            rows=comparisons,
            row_style=lambda comparison: style_of(effect_word(comparison.main_speedup)),
        )
    if ran:
        yield Section(title=f"{title}, each arm", columns=_ARM_COLUMNS, rows=ran)
    if stacks:
        yield Section(title=f"{title}: stacks and their parts", lines=stacks)


def _title(points: pd.DataFrame, arms: pd.DataFrame, place: str) -> str:
    row = points.iloc[0]
    plain = arms[arms["method"] == DENSE.method]
    ran = plain.iloc[int(plain["params"].fillna("").str.len().argmin())] if len(plain) else row
    # the attention that ran is not the condition's where transformers has no such implementation
    # for the model
    attention = (
        str(ran["implementation"]).removesuffix(" attention")
        if str(ran["implementation"]).endswith(" attention")
        else ran["attention"]
    )
    condition = {"model": row["model"], "weights": row["weights"], "attention": attention}
    condition |= {name: row[name] for name in _WORKLOAD} | {name: ran[name] for name in _SETTINGS}
    return describe_condition(condition, place)
