"""Sections on why: where the time of a profiled arm goes beside its baseline's and what is left to
gain, what the cost model predicts, and what in the numbers needs an explanation.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, TextLine, filled_columns
from orchestrator.report.speedup import distinctions
from store.read.curves import predicted_break_evens
from store.read.profiling import (
    CLASSES_OF_TIME,
    ProfileContext,
    ProfiledArm,
    ProfiledCondition,
    explain_profiles,
)
from store.rows.frames import groups, rows_of
from sweeps.analysis.rows import KernelRow
from sweeps.model.condition import Device
from sweeps.model.metrics import METRICS
from sweeps.model.profile import COUNTERS, IntervalEstimate, TimeClass
from sweeps.number_format import format_number
from sweeps.stats.roofline import Roofline
from sweeps.text.condition_text import describe_condition
from sweeps.text.reasons import RATIOS_OF_COSTS, explain_costs
from workers.methods import purpose
from workers.methods.arm_labels import params_label

_TITLE = (
    *("model", "weights", "image_size", "image_shape", "prompt_tokens", "new_tokens", "data"),
    *("decoding", "batch_size", "dtype", "attention"),
    *("kv_cache", "device_name", "exclusive", "inputs", "threads", "wait_policy", "pinning"),
)
MAX_KERNELS = 10
"""Kernels with counters of one file that a report lists."""
FULL_FINDINGS = 6
"""Findings of the audit that a report has in full; `breakeven audit` has all of them."""


@dataclass(frozen=True, kw_only=True)
class CounterRow(KernelRow):
    """View `kernel` with the counters of ncu."""

    sm_throughput: float | None = None
    memory_throughput: float | None = None
    achieved_occupancy: float | None = None
    l1_hit_rate: float | None = None
    l2_hit_rate: float | None = None


def why_sections(report: Report) -> Iterator[Section]:
    """For each condition and phase that was profiled its classes of time, the sentences that
    follow, and the limits that hold.
    """
    noted: set[str] = set()
    beside = ProfileContext(
        report.speedups, report.operators, lambda method: purpose(method) == "ceiling"
    )
    for found in explain_profiles(report.profiles, report.effects, params_label, beside):
        notes = [note for note in found.notes if note not in noted]
        noted.update(notes)
        limits = [
            reason
            for reason in found.reasons
            if reason.baseline is None and reason.arm.profile.tool == "torch"
        ]
        yield Section(
            title=f"Why{_place(found.arms)}",
            columns=list(_columns(found.arms, found.device)),
            rows=found.arms,
            lines=[TextLine(reason.line) for reason in found.reasons if reason not in limits],
            note=" ".join(notes),
        )
        columns = filled_columns(list(_rates(found)), found.arms)
        if len(columns) > 1 and found.precise:
            lines = [TextLine(reason.line) for reason in limits]
            yield Section(
                title=f"Limits{_place(found.arms)}",
                columns=columns,
                rows=found.arms,
                lines=lines,
                level=3,
            )
    yield from _counter_sections(report.counters)


def _place(own: Sequence[ProfiledArm]) -> str:
    plain = next((arm for arm in own if arm.row.method == "dense"), own[0])
    phase = {"forward": "", "prefill": ", prefill", "decode": ", one decode step"}[
        own[0].profile.phase
    ]
    condition = {name: vars(plain.row)[name] for name in _TITLE}
    if plain.row.model is None:
        return f"{phase}: imported profiles"
    return f"{phase}: {describe_condition(condition | {'tokens': plain.tokens})}"


def _columns(own: Sequence[ProfiledArm], device: Device) -> Iterator[Column]:
    """The wall and the classes that some arm has, each with its change, and what was started."""
    yield Column("arm", lambda arm: arm.label, left=True)
    yield Column("wall, ms", lambda arm: format_number(arm.profile.wall_s, ".3g", 1e-3))
    if any(arm.profile.speedup for arm in own):
        yield Column("change of wall, %", _wall_change)
    for name, label in CLASSES_OF_TIME[device].items():
        if any(arm.profile.times.get(name) for arm in own):
            yield Column(f"{label}, ms", partial(_time_text, name=name))
            if any(arm.profile.changes for arm in own):
                yield Column(f"change of {label}, % of wall", partial(_change_text, name=name))
    yield Column(
        "launches" if device == "cuda" else "operator calls",
        lambda arm: f"{arm.profile.launches:.0f}",
    )
    if any(arm.flags for arm in own):
        yield Column("flags", lambda arm: arm.flags, left=True, wraps=True)


def _rates(found: ProfiledCondition) -> Iterator[Column]:
    """Rates where they are known, and the limit that holds."""
    yield Column("arm", lambda arm: arm.label, left=True)
    yield Column("GFLOP/s", _of_roofline(lambda roofline: format_number(roofline.gflops, ".3g")))
    yield Column("GB/s", _of_roofline(lambda roofline: format_number(roofline.gb_per_s, ".3g")))
    if any(arm.roofline is not None and arm.peaks is not None for arm in found.arms):
        yield Column("limit", _of_roofline(lambda roofline: roofline.limit), left=True)
    yield Column("without products", _of_roofline(_ceiling_text))


def _of_roofline(text: Callable[[Roofline], str]) -> Callable[[ProfiledArm], str]:
    """A cell of an arm's roofline; a dash where there is none."""
    return lambda arm: "-" if arm.roofline is None else text(arm.roofline)


def _ceiling_text(roofline: Roofline) -> str:
    return "-" if roofline.ceiling is None else f"{roofline.ceiling:.2f}x at most"


def _time_text(arm: ProfiledArm, name: TimeClass) -> str:
    return format_number(arm.profile.times.get(name), ".3g", 1e-3)


def _change_text(arm: ProfiledArm, name: TimeClass) -> str:
    return _per_cent(arm.profile.changes.get(name))


def _wall_change(arm: ProfiledArm) -> str:
    found = arm.profile.speedup
    if found is None or found.low is None or found.high is None:
        return _per_cent(found and IntervalEstimate(value=1 / found.value - 1))
    return _per_cent(
        IntervalEstimate(value=1 / found.value - 1, low=1 / found.high - 1, high=1 / found.low - 1)
    )


def _per_cent(found: IntervalEstimate | None) -> str:
    """`-34.1 [-37.0, -31.2]`; a dash where nothing is compared."""
    if found is None:
        return "-"
    value = f"{100 * found.value + 0.0:+.1f}"
    if found.low is None or found.high is None:
        return f"{value} (no interval)"
    return f"{value} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _counter_sections(counters: pd.DataFrame) -> Iterator[Section]:
    """Hardware counters of kernels, which ncu records one by one: a table for each file and arm,
    longest kernels first.
    """
    for _, own in groups(counters, ("profile_id",)):
        first, *_ = rows = rows_of(own.sort_values("rank"), CounterRow)
        label = (
            f"{first.label or first.file}"
            if first.method is None
            else params_label(first.method, first.params or "")
        )
        covered = first.kernel_time_share
        share = "is not known" if covered is None else f"is {100 * covered:.3g} %"
        left_out = len(rows) - MAX_KERNELS
        more = f"; the view kernel has {left_out} more" if left_out > 0 else ""
        columns = [
            Column("kernel", lambda row: row.name, left=True, wraps=True),
            Column("runs", lambda row: f"{row.count:.3g}"),
            Column("ms", lambda row: f"{row.ms:.3g}"),
            *(
                Column(f"{name.replace('_', ' ')}, %", partial(_counter_text, name=name))
                for name in COUNTERS
            ),
        ]
        yield Section(
            title=f"Kernels of {label} in {first.file}",
            columns=filled_columns(columns, rows),
            rows=rows[:MAX_KERNELS],
            note=(
                "Counters of ncu in per cent. The share of the arm's kernel time that these"
                f" kernels take {share}{more}."
            ),
        )


def _counter_text(row: CounterRow, name: str) -> str:
    return format_number(vars(row)[name], ".1f")


def cost_model_sections(report: Report) -> Iterator[Section]:
    """A line for each curve whose cost model predicts a break-even."""
    models, noted = report.cost_models, False
    lines: list[TextLine] = []
    for row, text in predicted_break_evens(models, report.break_evens):
        place = report.hosts.get((row.environment, row.host), "")
        parts = [params_label(row.method, row.params)]
        parts += [METRICS[row.metric].label] if models["metric"].nunique() > 1 else []
        parts += [*distinctions(row, models), *([f"on {place}"] if place else [])]
        costs = report.relative_costs.get((row.curve_id, row.environment, row.host, row.metric))
        noted |= costs is not None
        more = () if costs is None else explain_costs(row, costs)
        lines += [TextLine(f"{', '.join(parts)}: {each}", "dim") for each in (text, *more)]
    if lines:
        yield Section(
            title="Cost model: time = launch + work",
            lines=lines,
            note=RATIOS_OF_COSTS if noted else "",
        )


def audit_sections(report: Report) -> Iterator[Section]:
    """Each contradiction and each doubtful finding with its numbers, and what would settle it;
    `breakeven audit` has the notes.
    """
    findings = () if report.audit is None else report.audit.findings
    found = [each for each in findings if each.severity != "note"]
    if found:
        lines = [
            TextLine(f"{each.severity}: {each.sentence}. To settle it: {each.settles}", "yellow")
            for each in found[:FULL_FINDINGS]
        ]
        left_out = len(found) - FULL_FINDINGS
        more = f"{left_out} more: breakeven audit {report.name}{report.options}"
        title = "Audit of these numbers"
        yield Section(title=title, lines=lines, note=more if left_out > 0 else "")
