"""Sections on speed-ups of vision models: a table of points and the break-even points for each
condition, what the same tokens cut for nothing reach, and curves in words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, log
from typing import Any, TypeVar

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
from store.read.curves import with_ceilings
from store.rows.frames import groups, rows_of
from sweeps.analysis.labels import conclude_speedup
from sweeps.analysis.rows import BreakEvenRow, CeilingRow, CostModelRow, SpeedupRow
from sweeps.model.flags import split_flags, wrong
from sweeps.model.kinds import THREAD_FIELDS
from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import axis_label, count, image_text, pixels_text
from sweeps.stats.pooling import realised_share
from sweeps.text.condition_text import describe_condition, size_text
from sweeps.text.curves import describe_break_even, token_unit
from sweeps.text.effects import effect_word
from sweeps.text.reasons import ceiling_of, left_to_gain
from workers.methods import purpose
from workers.methods.arm_labels import params_label

_P = TypeVar("_P", bound=SpeedupRow)
FIELD_AXES = ("batch_size", "threads")
"""Axes that are numbers of the condition, the size being fixed."""
_NAMED = (
    ("model", str),
    ("batch_size", "batch {:.0f}".format),
    ("threads", lambda number: count(int(number), "thread")),
    ("baseline", "against {}".format),
)
"""Columns that are named where they differ between curves."""
POINTS_SHARE = (
    *("kind", "metric", "device_name", "model", "weights", "dtype", "attention", "runtime"),
    *THREAD_FIELDS,
    *("batch_size", "baseline", "environment", "host", "exclusive", "fixed_values", "x_axis"),
)
"""Columns that are equal for all rows of one section; ratios are never mixed across these."""
MAX_LINES = 12
"""Curves along a number of the condition that a report lists."""


def arm_label_of(row: SpeedupRow) -> str:
    return params_label(row.method, row.params)


def _pixels(row: SpeedupRow) -> str:
    return "-" if row.image_size is None else pixels_text(row.image_size, row.image_shape)


def _tokens(row: SpeedupRow) -> str:
    return "-" if row.tokens is None or row.x_axis not in (None, "tokens") else f"{row.tokens:.0f}"


def _values(row: SpeedupRow) -> str:
    return "-" if row.axis_values is None else size_text(row)


def _gmacs(row: SpeedupRow) -> str:
    return "." if row.gmacs is None else f"{row.gmacs_baseline:.3g} → {row.gmacs:.3g}"


def _promise(row: SpeedupRow) -> str:
    return "." if row.speedup_macs is None else f"{row.speedup_macs:.2f}x"


def realised_interval(row: SpeedupRow) -> tuple[float, float, float] | None:
    """The share of the promised saving that arrived (1: all of it) and its interval.

    See `sweeps.stats.pooling.realised_share`. `None` where the speed-up has no interval.
    """
    if row.speedup_macs is None or row.verdict == "insufficient":
        return None
    shares = [
        None if speedup is None else realised_share(speedup, row.speedup_macs)
        for speedup in (row.speedup, row.speedup_low, row.speedup_high)
    ]
    known = [share for share in shares if share is not None]
    return (known[0], min(known), max(known)) if len(known) == len(shares) else None


def realised_text(row: SpeedupRow) -> str:
    """`37 % [30, 44]`; a dash where there is no such share."""
    found = realised_interval(row)
    if found is None:
        return "-"
    share, low, high = (f"{100 * each + 0.0:.0f}" for each in found)
    return f"{share} % [{low}, {high}]"


def shortfall(row: SpeedupRow) -> float:
    """By how much the log of the promised speed-up lies above the interval at least; 0 where the
    interval reaches it.

    Below all others where it is not known, or a flag marks the figures as wrong.
    """
    promise, high = row.speedup_macs, row.speedup_high
    if promise is None or high is None or promise <= 0 or wrong(split_flags(row.flags)):
        return -inf
    return max(0.0, log(promise / high))


def worst_first(rows: Sequence[_P], then: Callable[[_P], float | str]) -> list[_P]:
    """Points with the arms that fall short most first; those of one arm stay together, in the order
    of `then`.
    """
    worst: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row.method, row.params
        worst[key] = max(worst.get(key, -inf), shortfall(row))
    return sorted(
        rows,
        key=lambda row: (-worst[row.method, row.params], row.method, row.params, then(row)),
    )


def by_shortfall(
    points: pd.DataFrame, columns: Sequence[str]
) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """The points by condition, those with the worst `shortfall` first."""
    return sorted(
        groups(points, columns),
        key=lambda group: -max(map(shortfall, rows_of(group[1], SpeedupRow))),
    )


def _notes(row: PointRow) -> str:
    """The implementation that ran, where it is not torch's operators, the flags, and what stood out
    of the machine.
    """
    ran, found = row.implementation, join_flags(row.flags, row.system_notes)
    named = "" if ran in (None, "torch") else f"implementation: {ran}"
    return ", ".join(filter(None, (named, found)))


_COLUMNS = (
    Column("method", arm_label_of, left=True),
    Column("tokens", _tokens),
    Column("px", _pixels),
    Column("values", _values, left=True),
    Column("GMACs", _gmacs),
    Column("MACs promise", _promise),
    Column("realised", realised_text),
    Column("ms", lambda row: f"{row.baseline_ms:.3g} → {row.arm_ms:.3g}"),
    Column(f"speed-up [{INTERVAL}]", lambda row: conclude_speedup(row).numbers),
    Column("pairs", lambda row: f"{row.pairs:.0f}"),
    Column("verdict", lambda row: effect_word(conclude_speedup(row)), left=True),
    Column("notes", _notes, left=True, wraps=True),
)


def condition_title(report: Report, condition: Mapping[str, Any]) -> str:
    """The title of a group by `POINTS_SHARE`."""
    place = report.hosts[condition["environment"], condition["host"]]
    title, label = describe_condition(condition, place), METRICS[condition["metric"]].label
    return title if label == "latency" else f"{title}: {label}"


def speedup_sections(report: Report) -> Iterator[Section]:
    """The points of every condition, worst surprises first, each followed by its break-even
    points.
    """
    break_evens = shown_curves(report.break_evens)
    vision = report.speedups[report.speedups["prompt_tokens"].isna()]
    for condition, points in by_shortfall(vision, POINTS_SHARE):
        yield Section(
            title=condition_title(report, condition),
            columns=filled_columns(_COLUMNS, rows_of(points, PointRow)),
            rows=worst_first(rows_of(points, PointRow), lambda row: row.tokens or 0),
            row_style=lambda row: style_of(effect_word(conclude_speedup(row))),
        )
        for key, curves in groups(_curves_of(break_evens, condition, points), ("axis",)):
            yield Section(
                title=f"Break-even in {_axis_title(key['axis'], curves)}",
                lines=curve_lines(curves, curve_label),
                level=3,
            )


def field_sections(report: Report) -> Iterator[Section]:
    """Break-even points along numbers of the condition, each at a fixed size: at most `MAX_LINES`
    along each.
    """

    def label(row: BreakEvenRow) -> str:
        place = report.hosts.get((row.environment, row.host), "")
        return ", ".join(filter(None, (curve_label(row), row.model, place and f"on {place}")))

    found = report.break_evens
    found = found[found["prompt_tokens"].isna() & found["axis"].isin(FIELD_AXES)]
    for section in curve_sections(found, label):
        if len(section.lines) > MAX_LINES:
            more = (
                f"and {count(len(section.lines) - MAX_LINES, 'curve')} more, in the view break_even"
            )
            yield section._replace(lines=[*section.lines[:MAX_LINES], TextLine(more, "dim")])
        else:
            yield section


def curve_sections(
    break_evens: pd.DataFrame, label: Callable[[BreakEvenRow], str]
) -> Iterator[Section]:
    """Curves of times by axis and metric."""
    ratios = [name for name, spec in METRICS.items() if spec.compared == "ratio"]
    timed = break_evens[break_evens["metric"].isin(ratios)]
    for key, found in groups(timed, ("axis", "metric")):
        axis, metric = _axis_title(key["axis"], found), METRICS[key["metric"]].label
        yield Section(title=f"Break-even in {axis}, by {metric}", lines=curve_lines(found, label))


def _axis_title(axis: str, curves: pd.DataFrame) -> str:
    """What the axis of these curves is called."""
    return axis_label(axis, x_axis=curves["x_axis"].iloc[0]).title


def curve_lines(curves: pd.DataFrame, label: Callable[[BreakEvenRow], str]) -> list[TextLine]:
    """Each curve with its break-even in a line."""
    lines = []
    for _, curve in groups(curves, ("curve_id", "environment", "host")):
        first, *_ = rows = rows_of(curve, BreakEvenRow)
        lines.append(TextLine(f"{label(first)}: {break_even_line(rows)}", style_of(first.verdict)))
    return lines


def _curves_of(
    break_evens: pd.DataFrame, condition: Mapping[str, Any], points: pd.DataFrame
) -> pd.DataFrame:
    """The rows of the same condition, without single points along tokens and GMACs where something
    else varies at one size.
    """
    of_fields = break_evens["axis"].isin(FIELD_AXES)
    same = break_evens["kind"].isin(points["kind"]) & ~of_fields
    for field in set(POINTS_SHARE) & set(break_evens.columns):
        same &= (
            break_evens[field].isna()
            if pd.isna(condition[field])
            else break_evens[field] == condition[field]
        )
    found = break_evens[same]
    varied = found["axis"].isin(("gmacs_saved", "parameter"))
    return found[varied | (found["points"] > 1)] if varied.any() or of_fields.any() else found


def curve_label(row: BreakEvenRow) -> str:
    """The arm of a curve; a parameter that varies is named without a value, and with another number
    the size.
    """
    if row.varied_parameter is not None:
        arm = params_label(row.method, row.params, without=row.varied_parameter)
        return f"{arm}, {row.varied_parameter} varies"
    parts = [params_label(row.method, row.params)]
    if row.axis in FIELD_AXES and row.image_size is not None:
        parts.append(image_text(row.image_size, row.image_shape))
    if row.axis in FIELD_AXES and row.prompt_tokens is not None:
        parts.append(f"{row.prompt_tokens:.0f} prompt tokens")
    if row.axis in FIELD_AXES and row.axis_values is not None:
        parts.append(size_text(row))
    return ", ".join(parts)


def distinctions(
    row: SpeedupRow | BreakEvenRow | CostModelRow, among: pd.DataFrame, axis: str = ""
) -> Iterator[str]:
    """What distinguishes a row from others of its view: model, batch, threads, baseline; without
    what varies along `axis`.
    """
    for name, form in _NAMED:
        value = vars(row)[name]
        if name != axis and among[name].nunique() > 1 and value is not None:
            yield form(value)


def shown_curves(break_evens: pd.DataFrame) -> pd.DataFrame:
    """Rows of `break_even` without what repeats others: along the image size, and the parameter
    where it saves GMACs.
    """
    saved = set(break_evens.loc[break_evens["axis"] == "gmacs_saved", "curve_id"])
    repeated = (break_evens["axis"] == "parameter") & break_evens["curve_id"].isin(saved)
    return break_evens[~repeated & (break_evens["axis"] != "image_size")]


def break_even_line(rows: Sequence[BreakEvenRow]) -> str:
    """The break-even of one curve along one axis with its reason, once; points that a flag excludes
    stand in the sentence.
    """
    first = rows[0]
    sentence = describe_break_even(rows, token_unit(first))
    return f"{sentence}." if first.verdict == "pays_between" else f"{sentence}. {first.why}"


def _left_text(row: CeilingRow) -> str:
    value, low, high = left_to_gain(row)
    return f"{value:.3f}x, no interval" if high == inf else f"{value:.3f}x [{low:.3f}, {high:.3f}]"


_CEILING_COLUMNS = (
    *_COLUMNS[:3],
    Column(f"reached [{INTERVAL}]", lambda row: conclude_speedup(row).numbers),
    Column(f"cut for nothing [{INTERVAL}]", lambda row: ceiling_of(row).numbers),
    Column("MACs promise", lambda row: f"{row.speedup_macs:.2f}x"),
    Column("left at most", _left_text),
)
_CEILING_NOTE = (
    "Cut for nothing: the same token counts, where nothing is scored, matched or gathered: no"
    " reduction with these counts can be faster. Left at most: how much faster than now one could"
    " become; its interval allows the errors of both to add up."
)


def ceiling_sections(report: Report) -> Iterator[Section]:
    """Of each condition one table of reductions beside whose counts a ceiling was measured:
    reached, free and promised, with what is left.
    """
    vision = report.speedups[report.speedups["prompt_tokens"].isna()]
    for condition, points in groups(vision, POINTS_SHARE):
        found = with_ceilings(points, lambda method: purpose(method) == "ceiling")
        reductions = found["method"].map(lambda method: purpose(method) == "optimisation")
        shown = found[found["ceiling"].notna() & reductions.astype(bool)]
        if len(shown):
            rows = rows_of(shown.sort_values(["method", "params", "tokens"]), CeilingRow)
            place = report.hosts[condition["environment"], condition["host"]]
            yield Section(
                title=f"Reached, free, promised: {describe_condition(condition, place)}",
                columns=_CEILING_COLUMNS,
                rows=rows,
                lines=[
                    TextLine(_beyond(row), "yellow") for row in rows if left_to_gain(row)[2] < 1
                ],
                note=_CEILING_NOTE,
            )


def _beyond(row: CeilingRow) -> str:
    """A reduction clearly faster than its ceiling: one of the two is not what it seems."""
    return (
        f"{arm_label_of(row)} at {image_text(row.image_size or 0, row.image_shape)} is measured"
        " faster than the same tokens cut for nothing, which is impossible: one of both was"
        " disturbed, or runs other kernels; measure both again"
    )
