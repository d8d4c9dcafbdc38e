"""Section on why: where the time of a profiled arm goes beside its baseline's, the sentence that
follows, what is left to gain.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.report.data import Report
from orchestrator.report.section import Column, Section, TextLine, filled_columns
from store.read.profiling import (
    CLASSES_OF_TIME,
    ProfileContext,
    ProfiledArm,
    ProfiledCondition,
    explain_profiles,
)
from store.rows.frames import groups, rows_of
from sweeps.model.condition import Device
from sweeps.model.profile import COUNTERS, IntervalEstimate, TimeClass
from sweeps.number_format import is_missing
from sweeps.text.condition_text import describe_condition
from workers.methods import purpose
from workers.methods.arm_labels import params_label

_TITLE = (
    *("model", "weights", "image_size", "image_shape", "prompt_tokens", "new_tokens", "data"),
    *("decoding", "batch_size", "dtype", "attention"),
    *("kv_cache", "device_name", "exclusive", "inputs", "threads", "wait_policy", "pinning"),
)
MAX_KERNELS = 10
"""Kernels with counters of one file that a report lists."""


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


def _place(own: list[ProfiledArm]) -> str:
    plain = next((arm for arm in own if arm.row.method == "dense"), own[0])
    phase = {"forward": "", "prefill": ", prefill", "decode": ", one decode step"}[
        own[0].profile.phase
    ]
    if is_missing(plain.row.model):
        return f"{phase}: imported profiles"
    tokens = {"tokens": plain.tokens}
    return (
        f"{phase}:"
        f" {describe_condition({name: getattr(plain.row, name) for name in _TITLE} | tokens)}"
    )


def _columns(own: list[ProfiledArm], device: Device) -> Iterator[Column]:
    """The wall and the classes that some arm has, each with its change, and what was started."""
    yield Column("arm", lambda arm: arm.label, left=True)
    yield Column(
        "wall, ms",
        lambda arm: "-" if arm.profile.wall_s is None else f"{1e3 * arm.profile.wall_s:.3g}",
    )
    if any(arm.profile.speedup for arm in own):
        yield Column("change of wall, %", _wall_change)
    for name, label in CLASSES_OF_TIME[device].items():
        if any(arm.profile.times.get(name) for arm in own):
            yield _time_column(f"{label}, ms", name)
            if any(arm.profile.changes for arm in own):
                yield _change_column(f"change of {label}, % of wall", name)
    yield Column(
        "launches" if device == "cuda" else "operator calls",
        lambda arm: f"{arm.profile.launches:.0f}",
    )
    if any(arm.flags for arm in own):
        yield Column("flags", lambda arm: arm.flags, left=True, wraps=True)


def _rates(found: ProfiledCondition) -> Iterator[Column]:
    """Rates where they are known, and the limit that holds."""
    yield Column("arm", lambda arm: arm.label, left=True)
    for field, label in (("gflops", "GFLOP/s"), ("gb_per_s", "GB/s")):
        yield _rate_column(label, field)
    if any(arm.roofline is not None and arm.peaks is not None for arm in found.arms):
        yield Column(
            "limit", lambda arm: "-" if arm.roofline is None else arm.roofline.limit, left=True
        )
    yield Column(
        "without products",
        lambda arm: "-" if (most := _rate(arm, "ceiling")) is None else f"{most:.2f}x at most",
    )


def _time_column(label: str, name: TimeClass) -> Column:
    return Column(
        label,
        lambda arm: f"{1e3 * arm.profile.times[name]:.3g}" if name in arm.profile.times else "-",
    )


def _change_column(label: str, name: TimeClass) -> Column:
    return Column(label, lambda arm: _per_cent(arm.profile.changes.get(name)))


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


def _rate_column(label: str, field: str) -> Column:
    return Column(label, lambda arm: "-" if (rate := _rate(arm, field)) is None else f"{rate:.3g}")


def _rate(arm: ProfiledArm, field: str) -> float | None:
    found: float | None = getattr(arm.roofline, field, None)
    return found


def _counter_sections(counters: pd.DataFrame) -> Iterator[Section]:
    """Hardware counters of kernels, which ncu records one by one: a table for each file and arm,
    longest kernels first.
    """
    for _, own in groups(counters, ("profile_id",)):
        rows = rows_of(own.sort_values("rank"))
        first, kernel_time_share = rows[0], rows[0].kernel_time_share
        label = (
            str(first.label or first.file)
            if is_missing(first.method)
            else params_label(first.method, first.params)
        )
        share = (
            "is not known"
            if is_missing(kernel_time_share)
            else f"is {100 * kernel_time_share:.3g} %"
        )
        more = (
            f"; the view kernel has {len(rows) - MAX_KERNELS} more"
            if len(rows) > MAX_KERNELS
            else ""
        )
        columns = [
            Column("kernel", lambda row: row.name, left=True, wraps=True),
            Column("runs", lambda row: f"{row.count:.3g}"),
            Column("ms", lambda row: f"{row.ms:.3g}"),
            *(_counter_column(name) for name in COUNTERS),
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


def _counter_column(name: str) -> Column:
    def cell(row: Any) -> str:
        return "-" if is_missing(value := getattr(row, name)) else f"{value:.1f}"

    return Column(f"{name.replace('_', ' ')}, %", cell)
