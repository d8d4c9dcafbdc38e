"""Summary: the answer of a sweep on one screen, one table for each condition with sizes as
columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from math import sqrt
from shlex import quote
from statistics import median
from typing import Any, NamedTuple, get_args

import pandas as pd

from orchestrator.report import answers, differences, speedup
from orchestrator.report.data import PointRow, Report
from orchestrator.report.section import (
    Column,
    Section,
    TextLine,
    filled_columns,
    hint_lines,
    style_of,
)
from store.rows.frames import groups, rows_of
from sweeps.analysis.labels import Finding, conclude_speedup
from sweeps.analysis.memory_limits import memory_limits
from sweeps.analysis.rows import BreakEvenRow, FailureRow
from sweeps.model.condition import Runtime
from sweeps.model.flags import FLAGS, split_flags
from sweeps.model.metrics import INTERVAL, SPEED_FLOOR
from sweeps.number_format import count
from sweeps.text.condition_text import limit_text
from sweeps.text.curves import NO_MERIT, axis_place, merit_of, with_likely_place
from sweeps.text.effects import effect_word
from workers.methods import purpose
from workers.methods.arm_labels import params_label

MAX_CONDITIONS, MAX_ARMS, MAX_SIZES, MAX_NOTES = 3, 12, 9, 3
"""What one screen has room for; the rest is counted."""
_SHARE = (*speedup.POINTS_SHARE, "data", "new_tokens", "kv_cache", "decoding")
_RUNTIME = ("runtime", "dtype", "baseline")
_RUNTIME_NOTE = (
    "each method against the unmodified model under the same runtime; gain: the unmodified model"
    " against the sweep's other baseline, from the fewest to the most tokens; repaid: images after"
    " which the time to compile or export is saved, at the most tokens"
)
_SIGNS = {
    Finding.GAIN: ("↑", "faster"),
    Finding.LOSS: ("↓", "slower"),
    **dict.fromkeys(
        (Finding.SAME, Finding.SMALL_GAIN, Finding.SMALL_LOSS),
        ("=", f"within {100 * SPEED_FLOOR:g} % of 1"),
    ),
}
_NOT_CLEAR = ("?", "not clear")


class ArmSummary(NamedTuple):
    """One arm under one condition."""

    label: str
    points: Mapping[float, PointRow]
    """Rows of the view `speedup` by tokens, ascending."""
    break_even: Sequence[BreakEvenRow]
    """Rows of the view `break_even` of its curve along tokens; empty for a single point."""

    @property
    def half_width(self) -> float | None:
        """Median over the points, as a share; `None` where no point has an interval."""
        known = [
            sqrt(row.speedup_high / row.speedup_low) - 1
            for row in self.points.values()
            if row.speedup_low is not None and row.speedup_high is not None
        ]
        return median(known) if known else None

    @property
    def merit(self) -> tuple[bool, tuple[int, float, float], float]:
        """By which arms are ordered: optimisations first, then by break-even, then by the largest
        point.
        """
        merit = merit_of(self.break_even) if self.break_even else NO_MERIT
        return purpose(self.last.method) == "optimisation", merit, self.last.speedup or 0.0

    @property
    def last(self) -> PointRow:
        """The point of most tokens."""
        return list(self.points.values())[-1]


class RuntimeSummary(NamedTuple):
    """The arms under one runtime and dtype."""

    title: str
    arms: dict[str, ArmSummary]
    """By label."""
    gains: list[ArmSummary]
    """The unmodified model against the sweep's other baselines."""


def summary_sections(report: Report, todo: Iterable[str] | None = None) -> Iterator[Section]:
    """The tables, what limits them, and what to do next (default: `next_steps.next_steps_of`)."""
    conditions = _conditions(report)
    yield from runtime_sections(report)
    for condition, points in conditions[:MAX_CONDITIONS]:
        title = speedup.condition_title(report, condition)
        yield _table(title, _arm_rows(report, condition, points))
    if len(conditions) > MAX_CONDITIONS:
        yield Section(
            title=f"and {count(len(conditions) - MAX_CONDITIONS, 'condition')} more: --detail"
        )
    if not conditions:
        yield from islice(differences.difference_sections(report), MAX_CONDITIONS)
    lines = [TextLine(line) for line in answers.answers_elsewhere(report)]
    notes = chain.from_iterable(map(hint_lines, _notes(report, todo)))
    lines += [TextLine(line, "yellow") for line in notes]
    command = f"breakeven report {quote(report.name)}{report.options} --detail"
    rest = f"every point, cost model, memory, audit: {command}"
    lines += [TextLine(line, "dim") for line in hint_lines(rest)]
    yield Section(title="", lines=lines)


def _arm_rows(
    report: Report, condition: Mapping[str, Any], points: pd.DataFrame
) -> list[ArmSummary]:
    curves = report.break_evens[report.break_evens["axis"] == "tokens"]
    same = (curves["environment"] == condition["environment"]) & (
        curves["host"] == condition["host"]
    )
    curves = curves[same & (curves["metric"] == condition["metric"])]
    found = []
    for _, own in groups(points, ("curve_id", "arm_id")):
        by_size = {_size(row): row for row in sorted(rows_of(own, PointRow), key=_size)}
        row = next(iter(by_size.values()))
        claimed = curves[(curves["curve_id"] == row.curve_id) & (len(by_size) > 1)]
        found.append(ArmSummary(speedup.arm_label_of(row), by_size, rows_of(claimed, BreakEvenRow)))
    return sorted(found, key=lambda arm: arm.merit, reverse=True)


def _conditions(report: Report) -> list[tuple[Mapping[str, Any], pd.DataFrame]]:
    """What was measured together; comparisons with the unmodified model first."""
    found = list(groups(report.main_speedups, _SHARE))
    return sorted(found, key=lambda group: group[0]["baseline"] != "dense")


def runtime_sections(report: Report) -> Iterator[Section]:
    """Of conditions that differ in runtime and dtype alone one table: the break-even of each method
    against the unmodified model there, and what the runtime gains over another.
    """
    alike: dict[tuple[str, ...], list[tuple[Mapping[str, Any], pd.DataFrame]]] = {}
    for condition, points in _conditions(report):
        rest = tuple(str(condition[name]) for name in _SHARE if name not in _RUNTIME)
        alike.setdefault(rest, []).append((condition, points))
    for same in alike.values():
        rows: dict[tuple[int, str], RuntimeSummary] = {}
        for condition, points in same:
            runtime, dtype = condition["runtime"], condition["dtype"]
            key = get_args(Runtime).index(runtime), dtype
            row = rows.setdefault(key, RuntimeSummary(f"{runtime} {dtype}", {}, []))
            for arm in _arm_rows(report, condition, points):
                if condition["baseline"] == "dense":
                    row.arms[arm.label] = arm
                elif arm.last.method == "dense":
                    row.gains.append(arm)
        shown = [rows[key] for key in sorted(rows) if rows[key].arms]
        if len({condition["runtime"] for condition, _ in same}) < 2 or len(shown) < 2:
            continue
        columns = [Column("runtime", lambda row: row.title, left=True)]
        labels = dict.fromkeys(label for row in shown for label in row.arms)
        columns += [Column(label, partial(_pays, label=label), left=True) for label in labels]
        columns.append(Column("gain", _runtime_gain, left=True))
        columns.append(Column("repaid", partial(_repaid, report=report), left=True))
        shared = {name: value for name, value in same[0][0].items() if name not in _RUNTIME}
        yield Section(
            title=f"break-even in tokens by runtime: {speedup.condition_title(report, shared)}",
            columns=filled_columns(columns, shown),
            rows=shown,
            note=_RUNTIME_NOTE,
        )


def _pays(row: RuntimeSummary, label: str) -> str:
    return _break_even_text(row.arms[label]) if label in row.arms else "-"


def _runtime_gain(row: RuntimeSummary) -> str:
    """The speed-ups of the unmodified model at the fewest and the most tokens."""
    ends = [(next(iter(arm.points.values())), arm.last) for arm in row.gains]
    texts = [
        " to ".join(f"{point.speedup:.2f}{_sign(point)[0]}" for point in dict.fromkeys(points))
        for points in ends
    ]
    return ", ".join(texts) or "-"


def _repaid(row: RuntimeSummary, report: Report) -> str:
    """Images after which the time to compile or export is saved, at the most tokens."""
    texts = []
    for point in (arm.last for arm in row.gains):
        saved_ms = (point.baseline_ms or 0.0) - (point.arm_ms or 0.0)
        took_s, against_s = (
            report.compile_s.get((point.condition_id, arm), 0.0)
            for arm in (point.arm_id, point.baseline_id)
        )
        if took_s > against_s and saved_ms > 0:
            images = 1e3 * (took_s - against_s) * (point.batch_size or 1) / saved_ms
            texts.append(f"{images:,.0f}")
    return ", ".join(texts) or "-"


def _size(row: PointRow) -> float:
    return float(row.prompt_tokens or row.tokens or 0)


def _table(title: str, arms: Sequence[ArmSummary]) -> Section:
    sizes = sorted({size for arm in arms for size in arm.points})
    unit = arms[0].last.x_axis or "tokens"
    common = [size for size in sizes if all(size in arm.points for arm in arms)]
    # of too many sizes not those that were added inside the bracket of one arm
    shown = _spread(common if len(sizes) > MAX_SIZES and len(common) > 1 else sizes)
    columns = [Column("method", lambda arm: arm.label, left=True)]
    if len(sizes) > 1:
        columns.append(Column(f"break-even, {unit}", _break_even_text, left=True))
    columns += [
        Column(f"{size:,.0f}", partial(_speedup_cell, size=size), style=partial(_style, size=size))
        for size in shown
    ]
    columns += [
        Column("± %", _half_width_cell),
        Column("realised", partial(_realised_cell, size=shown[-1])),
    ]
    points = [row for arm in arms for row in arm.points.values()]
    found = [*map(_sign, points), *([("*", "flagged")] if any(map(_is_flagged, points)) else [])]
    legend = ", ".join(f"{sign} {meaning}" for sign, meaning in dict.fromkeys(found))
    lines = (
        [TextLine(f"and {count(len(arms) - MAX_ARMS, 'arm')} more: --detail", "dim")]
        if len(arms) > MAX_ARMS
        else []
    )
    if len(shown) < len(sizes):
        lines.append(TextLine(f"{len(shown)} of {len(sizes)} sizes are shown: --detail", "dim"))
    realised = f"realised: % of MACs' promise at {axis_place(shown[-1], 'tokens', unit)}"
    note = f"{legend}; ± %: median half-width, {INTERVAL}; {realised}"
    return Section(title=title, columns=columns, rows=arms[:MAX_ARMS], lines=lines, note=note)


def _break_even_text(arm: ArmSummary) -> str:
    return with_likely_place(arm.break_even)


def _spread(sizes: Sequence[float]) -> list[float]:
    """At most `MAX_SIZES` of them, both ends included."""
    steps = min(len(sizes), MAX_SIZES) - 1
    if not steps:
        return [*sizes]
    return [sizes[round(step * (len(sizes) - 1) / steps)] for step in range(steps + 1)]


def _speedup_cell(arm: ArmSummary, size: float) -> str:
    row = arm.points.get(size)
    return (
        "" if row is None else f"{row.speedup:.2f}{_sign(row)[0]}{'*' if _is_flagged(row) else ''}"
    )


def _is_flagged(row: PointRow) -> bool:
    """Whether a flag of its own needs a look; that the machine was slow stands below the table."""
    return any(
        flag in FLAGS and not FLAGS[flag].harmless
        for flag in split_flags(row.flags)
        if flag != "slow_state"
    )


def _style(arm: ArmSummary, size: float) -> str:
    row = arm.points.get(size)
    return "" if row is None else style_of(effect_word(conclude_speedup(row)))


def _sign(row: PointRow) -> tuple[str, str]:
    return _SIGNS.get(conclude_speedup(row).finding, _NOT_CLEAR)


def _half_width_cell(arm: ArmSummary) -> str:
    if arm.half_width is None:
        return "-"
    return "> 100" if arm.half_width > 1 else f"{100 * arm.half_width:.2g}"


def _realised_cell(arm: ArmSummary, size: float) -> str:
    row = arm.points.get(size)
    found = None if row is None else speedup.realised_interval(row)
    return "-" if found is None else f"{round(100 * found[0]):d} %"


def _notes(report: Report, todo: Iterable[str] | None) -> Iterator[str]:
    """What limits the answer, what failed, and the first step to do next."""
    flagged = any(True for _ in answers.flag_steps(report))
    cautions = list(answers.cautions_of(report, load=not flagged))
    yield from cautions[:MAX_NOTES]
    if len(cautions) > MAX_NOTES:
        yield f"and {count(len(cautions) - MAX_NOTES, 'caution')} more: --detail"
    limits = memory_limits(rows_of(report.failures, FailureRow), report.points)
    for limit in list(limits.values())[:MAX_NOTES]:
        yield limit_text(limit, params_label(limit.row.method, limit.row.params))
    if len(report.failures):
        reasons = ", ".join(
            f"{number} × {reason}"
            for reason, number in report.failures["reason"].value_counts().items()
        )
        nothing = "" if report.holds_values else "nothing has a measured value: "
        yield (
            f"{nothing}{count(len(report.failures), 'comparison')} without a measurement"
            f" ({reasons}): --detail"
        )
    elif not report.holds_values:
        run = f"breakeven run {quote(report.name)}{report.options}"
        yield f"nothing is measured yet; this measures it: {run}"
    if len(limits) > MAX_NOTES:
        yield f"and {count(len(limits) - MAX_NOTES, 'arm')} more out of memory: --detail"
    steps = answers.next_steps_of(report) if todo is None else todo
    yield from islice((*steps, *answers.decisions_of(report)), 1)
