"""First lines of a report: the answer in one sentence, and at most one line for each method."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.report.data import Report
from orchestrator.report.section import Section, TextLine, style_of
from orchestrator.report.sections.arm_comparison import (
    ArmComparison,
    by_baseline,
    labels_of,
    with_quality,
)
from orchestrator.report.sections.conditions import (
    break_even_sentence,
    curve_label,
    distinctions,
    shown_curves,
)
from orchestrator.report.sections.differences import change_of
from orchestrator.report.sections.speedup import speedup_of
from store.read.curves import label_hosts
from store.read.profiling import CLASSES_OF_TIME, explain_profiles
from store.rows.frames import groups, rows_of
from sweeps.analysis.labels import GAINS, Finding
from sweeps.analysis.rows import BreakEvenRow
from sweeps.model.flags import split_flags, wrong
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS, Compared
from sweeps.number_format import count, is_missing
from sweeps.text.condition_text import load_caution, mean_caution, slow_caution, states_caution
from sweeps.text.curves import (
    BREAK_EVEN_NOTE,
    CurveAnswer,
    answer_of_curves,
    answer_of_points,
    merit_of,
    tally,
)
from workers.methods import purpose
from workers.methods.arm_labels import params_label

AXES = ("tokens", "gmacs_saved", "parameter", "batch_size", "threads")
"""In the order in which they are chosen."""
MAX_CURVES = 2
"""Curves of a method that its line has in full; more are counted, and the best one is named."""
MAX_PROFILED = 4
"""Profiled conditions whose time the first lines split."""
_CURVE = ("curve_id", "metric", "environment", "host")


def answer_sections(report: Report) -> Iterator[Section]:
    """Break-evens in time along the first of `AXES` that has a curve; without curves the speed-ups,
    or else the losses.
    """
    if curves := _curves(report, "ratio"):
        lines = _method_lines(curves, _losses(report))
        lines = [TextLine(answer_of_curves(curves), "bold"), *lines] if len(curves) > 1 else lines
    else:
        lines = _arm_lines(report) if len(report.speedups) else _loss_lines(report)
    if lines:
        lines += [*_ceiling_lines(report), *_time_lines(report)]
        lines += [TextLine(line, "yellow") for line in cautions_of(report)]
        yield Section(title="Answers", lines=lines, note=BREAK_EVEN_NOTE if curves else "")


def cautions_of(report: Report) -> Iterator[str]:
    """What the speed-ups do not show, a sentence for each reason."""
    points = [(params_label(row.method, row.params), row) for row in rows_of(report.speedups)]
    yield from mean_caution(points)
    yield from states_caution(points)
    yield from load_caution(report.speedups["flags"])
    yield from slow_caution(report.speedups["host_speed"].dropna())


def answers_elsewhere(report: Report) -> Iterator[str]:
    """The answer along another axis than tokens where there is none along tokens, and what each
    method loses in quality.
    """
    curves = _curves(report, "ratio")
    if curves and not (shown_curves(report.break_evens)["axis"] == "tokens").any():
        yield answer_of_curves(curves)
    for method, text in _losses(report).items() if len(report.speedups) else ():
        yield method + text.replace(";", ":", 1)


def amount_sections(report: Report) -> Iterator[Section]:
    """The same in peak memory and energy, where curves of them were measured."""
    if curves := _curves(report, "amount"):
        yield Section(title="Memory and energy", lines=_method_lines(curves, {}))


def _curves(report: Report, compared: Compared) -> list[CurveAnswer]:
    """Curves of two points or more along the first axis that has one: of times by the first metric
    of their kind.
    """
    shown = shown_curves(report.break_evens)
    first = {kind.metrics[0] for kind in KINDS.values() if kind.metrics}
    metrics = [
        name
        for name, spec in METRICS.items()
        if spec.compared == compared and (compared != "ratio" or name in first)
    ]
    shown = shown[
        shown["metric"].isin(metrics) & ((shown["points"] > 1) | (shown["verdict"] == "no_effect"))
    ]
    axis = next((axis for axis in AXES if (shown["axis"] == axis).any()), None)
    found = shown[shown["axis"] == axis]
    hosts = label_hosts(report.speedups)
    curves = []
    for _, own in groups(found, _CURVE):
        rows = rows_of(own, BreakEvenRow)
        place = hosts.get((rows[0].environment, rows[0].host), "")
        metric = (
            [METRICS[rows[0].metric].label]
            if found["metric"].nunique() > 1 or compared == "amount"
            else []
        )
        label = ", ".join(
            [
                curve_label(rows[0]),
                *metric,
                *distinctions(rows[0], found),
                *([f"on {place}"] if place else []),
            ]
        )
        sentence = break_even_sentence(rows)
        for_use = purpose(rows[0].method) == "optimisation"
        curves.append(
            CurveAnswer(rows[0].method, label, sentence, rows[0].verdict, merit_of(rows), for_use)
        )
    return curves


def _method_lines(curves: Sequence[CurveAnswer], losses: Mapping[str, str]) -> list[TextLine]:
    by_method: dict[str, list[CurveAnswer]] = {}
    for curve in sorted(curves, key=lambda curve: not curve.for_use):
        by_method.setdefault(curve.method, []).append(curve)
    lines = []
    for method, own in by_method.items():
        if purpose(method) == "ceiling" and len(by_method) > 1:
            continue  # what it bounds stands in a line of its own
        best = max(own, key=lambda curve: curve.merit)
        if len(own) <= MAX_CURVES:
            text = "; ".join(curve.line for curve in own)
        else:
            text = f"{method}: {count(len(own), 'curve')}: {tally(own)}" + (
                f"; best {best.line}" if best.merit[0] else ""
            )
        control = "" if purpose(method) == "optimisation" else f" (a {purpose(method)})"
        lines.append(TextLine(text + losses.get(method, "") + control, style_of(best.verdict)))
    return lines


def _ceiling_lines(report: Report) -> Iterator[TextLine]:
    """What the token counts can give at best, from the slowest to the fastest point of the arms
    that only cut.
    """
    if report.speedups.empty:
        return
    points = report.speedups[[purpose(method) == "ceiling" for method in report.speedups["method"]]]
    known = points[points["speedup_low"].notna()].sort_values("speedup")
    if len(known) and points["method"].nunique() < report.speedups["method"].nunique():
        ends = [rows_of(known)[place] for place in sorted({0, len(known) - 1})]
        texts = [f"{speedup_of(row).numbers} ({_where(row)})" for row in ends]
        yield TextLine(
            f"the same tokens cut for nothing, which no reduction can beat: {' to '.join(texts)}"
        )


def _time_lines(report: Report) -> Iterator[TextLine]:
    """Where the time of the profiled baselines goes: a line for each phase, the conditions side by
    side.
    """
    phases: dict[str, list[str]] = {}
    profiled = [
        found
        for found in explain_profiles(report.profiles, report.effects, params_label)
        if found.precise
    ]
    for found in profiled[:MAX_PROFILED]:
        compared = {arm.row.baseline_arm_id for arm in found.arms}
        for arm in found.arms:
            if arm.row.arm_id in compared and arm.profile.wall_s and arm.profile.times:
                shares = [
                    f"{label} {100 * arm.profile.times[name] / arm.profile.wall_s:.0f} %"
                    for name, label in CLASSES_OF_TIME[found.device].items()
                    if arm.profile.times.get(name)
                ]
                of = {"forward": "a forward", "prefill": "a prefill", "decode": "a decode step"}[
                    arm.profile.phase
                ]
                place = f" at {arm.size}" if arm.size else ""
                text = f"{1e3 * arm.profile.wall_s:.3g} ms{place}: {', '.join(shares)}"
                phases.setdefault(f"where the time of {of} goes, {arm.label}", []).append(text)
    for title, texts in phases.items():
        yield TextLine(f"{title}: {'; '.join(texts)}")


def _where(row: Any) -> str:
    return f"{params_label(row.method, row.params)}, {row.tokens:.0f} tokens"


def _arm_lines(report: Report) -> list[TextLine]:
    """Speed-ups at single points: of each method the arm whose interval lies highest, with its cost
    in quality.
    """
    best: dict[str, list[tuple[float, str, ArmComparison]]] = {}
    for kind, rows in report.speedups.groupby("kind", sort=False):
        compared = with_quality(rows, report.effects, report.quality_states, report.controls)
        for _, points in groups(compared, ("environment", "host", "condition_id", "model")):
            for baseline, own in by_baseline(points, labels_of(report.arms))[:1]:
                for _, found in groups(own, ("arm_id",)):
                    arm = ArmComparison(found, KINDS[str(kind)].metrics)
                    row = arm.by_metric[arm.metrics[0]]
                    known = (
                        -1.0
                        if is_missing(row.speedup_low) or wrong(split_flags(row.flags))
                        else float(row.speedup_low)
                    )
                    best.setdefault(arm.row.method, []).append((known, baseline, arm))
    losses = report.effects[report.effects["compared"] == "difference"]
    data = len(losses[["data", "corruption", "severity"]].drop_duplicates())
    lines = []
    tops = [max(arms, key=lambda each: each[0]) for arms in best.values()]
    for method, (_, baseline, arm) in zip(best, tops, strict=True):
        others = len(best[method]) - 1
        more = f"; {count(others, 'more comparison')} below" if others else ""
        lines.append(
            TextLine(
                f"{arm.label}: {_gain_and_cost(arm, baseline, data=data)}{more}",
                style_of(arm.main_speedup.word),
            )
        )
    gains = GAINS - {Finding.SMALL_GAIN}
    for_use = [each for each in tops if purpose(each[2].row.method) == "optimisation"]
    faster = [each for each in for_use if each[2].main_speedup.finding in gains]
    if len(tops) > 1:
        compared_arms = sum(map(len, best.values()))
        highest = ""
        if faster:
            _, baseline, arm = max(faster, key=lambda each: each[0])
            highest = f"{arm.label}, {arm.describe_speedup(arm.metrics[0])} against {baseline}"
        lines.insert(0, TextLine(answer_of_points(compared_arms, highest), "bold"))
    return lines


def _gain_and_cost(arm: ArmComparison, baseline: str, *, data: int) -> str:
    """Speed-ups, and the cost in quality where it is that of one data set alone."""
    if not is_missing(arm.row.image_size) and (
        data > 1 or arm.quality.finding is Finding.NOT_REQUESTED
    ):
        return f"{', '.join(map(arm.describe_speedup, arm.metrics))} against {baseline}"
    return arm.describe(baseline)


def _losses(report: Report) -> dict[str, str]:
    """By method the range of what its arms lose in quality, wherever the sweep measured it, as the
    end of its line.
    """
    by_method: dict[str, list[Any]] = {}
    for row in _difference_rows(report):
        by_method.setdefault(row.method, []).append(row)
    found = {}
    for method, own in by_method.items():
        changes = [change_of(row) for row in own]
        known = [each.value for each in changes if each.value is not None]
        if not known:
            continue
        spec, data = METRICS[own[0].metric], ", ".join(sorted({str(row.data) for row in own}))
        unit = (
            f" {changes[0].effect.unit}" if changes[0].effect.unit not in {"", spec.label} else ""
        )
        form = f"+.{spec.digits}f"
        many = (
            f"{spec.label} changes by {min(known):{form}} to {max(known):{form}}{unit} (above 0:"
            " worse)"
        )
        found[method] = (
            f"; {f'{spec.label} {changes[0].phrase}' if len(own) == 1 else many} on {data}"
        )
    return found


def _difference_rows(report: Report) -> list[Any]:
    """The rows of the view `effect` that are compared by difference, but for those of zero-shot
    tasks.
    """
    rows = rows_of(report.effects[report.effects["compared"] == "difference"])
    return [row for row in rows if row.metric in METRICS and not is_missing(row.effect)]


def _loss_lines(report: Report) -> list[TextLine]:
    """A sweep that times nothing: of each method the arm that loses least."""
    rows = _difference_rows(report)
    by_method: dict[str, list[Any]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    lines = []
    for own in by_method.values():
        least = min(
            own,
            key=lambda row: row.effect if METRICS[row.metric].better == "lower" else -row.effect,
        )
        more = f"; {count(len(own) - 1, 'more comparison')} below" if len(own) > 1 else ""
        found = change_of(least)
        label = f"{params_label(least.method, least.params)} on {least.data}"
        lines.append(
            TextLine(
                f"{label}: {METRICS[least.metric].label} {found.phrase}{more}", style_of(found.word)
            )
        )
    if len(lines) > 1:
        words = Counter(change_of(row).word for row in rows)
        counted = ", ".join(f"{number} × {word}" for word, number in words.items())
        lines.insert(0, TextLine(f"Quality against the baseline: {counted}.", "bold"))
    return lines
