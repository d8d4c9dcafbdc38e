"""Sections on language models: what each arm gains in speed, what it costs in quality, and what it
needs of memory.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, TextLine, filled_columns, style_of
from orchestrator.report.sections.arm_comparison import (
    BYTES_PER_MIB,
    ArmComparison,
    by_baseline,
    columns,
    describe_stacks,
    labels_of,
    with_quality,
)
from orchestrator.report.sections.conditions import break_even_line, curve_label, shown_curves
from orchestrator.report.sections.surprises import worst_first, worst_shortfall
from store.read.curves import label_hosts
from store.rows.frames import groups, rows_of
from sweeps.analysis.rows import BreakEvenRow
from sweeps.model.kinds import KINDS, THREAD_FIELDS
from sweeps.model.metrics import METRICS
from sweeps.number_format import axis_label, format_number
from sweeps.text.condition_text import cautions, describe_condition
from workers.methods.arm_labels import params_label

_WORKLOAD = (
    "prompt_tokens",
    "new_tokens",
    "data",
    "decoding",
    "batch_size",
    "device_name",
    "exclusive",
    *THREAD_FIELDS,
)
"""Fields of a condition's title that no arm overrides."""
_SETTINGS = ("dtype", "runtime", "kv_cache")
"""Those that arms override; the title has those of the unmodified model."""


def _arm_label(row: Any) -> str:
    flags = sorted({*filter(None, f"{row.arm_flags},{row.job_flags}".split(","))})
    return params_label(row.method, row.params) + (f" ({', '.join(flags)})" if flags else "")


def _figure(label: str, name: str, form: str, unit: float = 1) -> Column:
    return Column(label, lambda row: format_number(getattr(row, name), form, unit))


_ARM_COLUMNS = (
    Column("arm", _arm_label, left=True),
    _figure("first token, ms", "ttft_ms", ".1f"),
    _figure("output token, ms", "tpot_ms", ".2f"),
    _figure("p95, ms", "tpot_p95_ms", ".2f"),
    _figure("prefill tokens/s", "prefill_tokens_per_s", ".0f"),
    _figure("decode tokens/s", "decode_tokens_per_s", ".1f"),
    _figure("characters/s", "chars_per_s", ".1f"),
    Column(
        "read / machine, GB/s",
        lambda row: (
            f"{format_number(row.achieved_gb_per_s, '.1f')} /"
            f" {format_number(row.peak_gb_per_s, '.1f')}"
        ),
    ),
    _figure("KV resident, MiB", "kv_bytes_resident", ".2f", BYTES_PER_MIB),
    _figure("virtual", "kv_bytes_virtual", ".2f", BYTES_PER_MIB),
    _figure("sparsity", "achieved_sparsity", ".3f"),
    _figure("kernel calls", "kernel_calls", ".0f"),
    _figure("to dense", "fallback_calls", ".0f"),
)


def generation_sections(report: Report) -> Iterator[Section]:
    """Each condition with its arms, worst surprises first, then break-even points; quality by
    itself is in `differences`.
    """
    timed = report.speedups[report.speedups["image_size"].isna()]
    compared = with_quality(timed, report.effects, report.quality_states, report.controls)
    named = label_hosts(timed)
    found = list(groups(compared, ("environment", "host", "condition_id")))
    for key, points in sorted(found, key=lambda each: -worst_shortfall(each[1])):
        arms = report.arms
        for name, value in key.items():
            arms = arms[arms[name] == value]
        yield from _condition(points, arms, named[key["environment"], key["host"]])
    break_evens = report.break_evens[report.break_evens["kind"].isin(timed["kind"])]
    yield from _break_evens(break_evens, report.arms, named)


def limits(report: Report) -> Iterator[Section]:
    """What small and random models cannot show."""
    timed = report.speedups[report.speedups["image_size"].isna()]
    models = pd.concat(
        [frame[["model", "weights"]] for frame in (timed, report.qualities)]
    ).drop_duplicates()
    lines: list[TextLine] = []
    for row in rows_of(models):
        own = report.arms[report.arms["model"] == row.model]
        dense = own[own["method"] == "dense"]  # other arms untie the head, or add adapters
        sizes = (dense if len(dense) else own)["parameters"]
        lines += map(
            TextLine, cautions(row.model, row.weights, sizes.min() if len(sizes) else None)
        )
    if lines:
        yield Section(title="Limits of these results", lines=lines)


def _condition(points: pd.DataFrame, arms: pd.DataFrame, place: str) -> Iterator[Section]:
    title = _title(points, arms, place)
    metrics = KINDS[points["kind"].iloc[0]].metrics
    rows = {row.arm_id: row for row in rows_of(arms)}
    stacks: list[TextLine] = []
    for baseline, own in by_baseline(points, labels_of(arms)):
        ordered = worst_first(own, ("metric",))
        comparisons = [
            ArmComparison(found, metrics, rows) for _, found in groups(ordered, ("arm_id",))
        ]
        if baseline.startswith("dense"):  # only the unmodified model shows what a part gains alone
            stacks += [
                TextLine(f"{line}, against {baseline}") for line in describe_stacks(comparisons)
            ]
        yield Section(
            title=f"{title}, against {baseline}",
            columns=filled_columns(columns(metrics), comparisons),
            rows=comparisons,
            row_style=lambda comparison: style_of(comparison.main_speedup.word),
        )
    if len(arms):
        yield Section(
            title=f"{title}, each arm",
            columns=_ARM_COLUMNS,
            rows=rows_of(arms.sort_values(["method", "params"])),
        )
    if stacks:
        yield Section(title=f"{title}: stacks and their parts", lines=stacks)


def _title(points: pd.DataFrame, arms: pd.DataFrame, place: str) -> str:
    row = points.iloc[0]
    plain = arms[arms["method"] == "dense"]
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


def _break_evens(
    break_evens: pd.DataFrame, arms: pd.DataFrame, named: Mapping[tuple[str, str], str]
) -> Iterator[Section]:
    labels = labels_of(arms)
    # GMACs grow with the prompt: break-even along them repeats that along tokens
    curves = shown_curves(break_evens)
    curves = curves[
        curves["metric"].isin([name for name, spec in METRICS.items() if spec.compared == "ratio"])
    ]
    curves = curves[(curves["points"] > 1) & (curves["axis"] != "gmacs")]
    for key, found in groups(curves, ("axis", "metric")):
        lines = []
        for _, curve in groups(found, ("curve_id", "environment", "host")):
            row, *_ = rows = rows_of(curve, BreakEvenRow)
            place = named.get((row.environment, row.host), "")
            against = f"against {labels.get(row.baseline_id, row.baseline)}" + (
                place and f", on {place}"
            )
            lines.append(
                TextLine(
                    f"{curve_label(row)}, {row.model}, {against}: {break_even_line(rows)}",
                    style_of(row.verdict),
                )
            )
        yield Section(
            title=(
                f"Break-even in {axis_label(key['axis']).title}, by {METRICS[key['metric']].label}"
            ),
            lines=lines,
        )
