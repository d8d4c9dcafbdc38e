"""First and last lines of a report: the answer in one sentence, at most one line for each method,
what the verdict words mean, and what to do next.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import log
from shlex import quote

from orchestrator.report.data import MAIN_METRICS, PointRow, Report
from orchestrator.report.differences import change_of
from orchestrator.report.generation import (
    ArmComparison,
    GeneratedRow,
    QualityPointRow,
    by_arm,
    by_baseline,
    with_quality,
)
from orchestrator.report.section import Section, TextLine, style_of
from orchestrator.report.speedup import (
    arm_label_of,
    curve_label,
    distinctions,
    shortfall,
    shown_curves,
)
from store.read.profiling import CLASSES_OF_TIME, explain_profiles
from store.rows.frames import groups, rows_of
from sweeps.analysis.labels import (
    GAINS,
    PROBABLE,
    SMALL,
    Finding,
    conclude_speedup,
    peak_share,
)
from sweeps.analysis.rows import BreakEvenRow, EffectRow
from sweeps.model.flags import FLAGS, split_flags, wrong
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS, Compared
from sweeps.number_format import count
from sweeps.text.condition_text import (
    load_caution,
    mean_caution,
    peak_caution,
    slow_caution,
    states_caution,
)
from sweeps.text.curves import (
    BREAK_EVEN_NOTE,
    CurveAnswer,
    answer_of_curve,
    answer_of_curves,
    answer_of_points,
    tally,
)
from sweeps.text.effects import effect_phrase, effect_word
from workers.methods import purpose
from workers.methods.arm_labels import params_label

AXES = ("tokens", "gmacs_saved", "parameter", "batch_size", "threads")
"""In the order in which they are chosen."""
MAX_CURVES = 2
"""Curves of a method that its line has in full; more are counted, and the best one is named."""
MAX_PROFILED = 4
"""Profiled conditions whose time the first lines split."""
CLEARLY_LESS = 1.1
"""By this factor the promise must lie above the interval before another runtime is worth a try."""
MAX_NAMED = 6
"""Arms that one sentence names."""


def answer_sections(report: Report) -> Iterator[Section]:
    """Break-evens in time along the first of `AXES` that has a curve; without curves the speed-ups,
    or else the losses.
    """
    if curves := _curves(report, "ratio"):
        lines = _method_lines(curves, _losses(report))
        lines = [TextLine(answer_of_curves(curves), "bold"), *lines] if len(curves) > 1 else lines
    else:
        lines = _arm_lines(report) if report.points else _loss_lines(report)
    if lines:
        lines += [*_ceiling_lines(report), *_time_lines(report)]
        lines += [TextLine(line, "yellow") for line in cautions_of(report)]
        yield Section(title="Answers", lines=lines, note=BREAK_EVEN_NOTE if curves else "")


def cautions_of(report: Report, *, load: bool = True) -> Iterator[str]:
    """What the speed-ups do not show, a sentence for each reason; of `load` and a slow host only
    where no other line is about them.
    """
    points = [(arm_label_of(row), row) for row in report.points]
    yield from peak_caution(peak_share(rows_of(report.main_speedups, PointRow), report.peaks))
    yield from mean_caution(points)
    yield from states_caution(points)
    if load:
        yield from load_caution(row.flags for row in report.points)
        yield from slow_caution(report.speedups["host_speed"].dropna())


def answers_elsewhere(report: Report) -> Iterator[str]:
    """The answer along another axis than tokens where there is none along tokens, and what each
    method loses in quality.
    """
    curves = _curves(report, "ratio")
    if curves and not (shown_curves(report.break_evens)["axis"] == "tokens").any():
        yield answer_of_curves(curves)
    for method, text in _losses(report).items() if report.points else ():
        yield f"{method}: {text}"


def amount_sections(report: Report) -> Iterator[Section]:
    """The same in peak memory and energy, where curves of them were measured."""
    if curves := _curves(report, "amount"):
        yield Section(title="Memory and energy", lines=_method_lines(curves, {}))


def _curves(report: Report, compared: Compared) -> list[CurveAnswer]:
    """Curves of two points or more along the first axis that has one: of times by the first metric
    of their kind.
    """
    shown = shown_curves(report.break_evens)
    metrics = [
        name
        for name, spec in METRICS.items()
        if spec.compared == compared and (compared != "ratio" or name in MAIN_METRICS)
    ]
    shown = shown[
        shown["metric"].isin(metrics) & ((shown["points"] > 1) | (shown["verdict"] == "no_effect"))
    ]
    axis = next((axis for axis in AXES if (shown["axis"] == axis).any()), "")
    found = shown[shown["axis"] == axis]
    named = found["metric"].nunique() > 1 or compared == "amount"
    curves = []
    for _, own in groups(found, ("curve_id", "metric", "environment", "host")):
        first, *_ = rows = rows_of(own, BreakEvenRow)
        parts = [curve_label(first), *([METRICS[first.metric].label] if named else [])]
        parts += distinctions(first, found, axis)
        if place := report.hosts.get((first.environment, first.host), ""):
            parts.append(f"on {place}")
        for_use = purpose(first.method) == "optimisation"
        curves.append(answer_of_curve(first.method, ", ".join(parts), rows, for_use=for_use))
    return curves


def _method_lines(curves: Sequence[CurveAnswer], losses: Mapping[str, str]) -> list[TextLine]:
    by_method: dict[str, list[CurveAnswer]] = {}
    for curve in sorted(curves, key=lambda curve: not curve.for_use):
        by_method.setdefault(curve.method, []).append(curve)
    lines = []
    for method, own in by_method.items():
        role = purpose(method)
        if role == "ceiling" and len(by_method) > 1:
            continue  # what it bounds stands in a line of its own
        best = max(own, key=lambda curve: curve.merit)
        if len(own) <= MAX_CURVES:
            text = "; ".join(curve.line for curve in own)
        else:
            text = f"{method}: {count(len(own), 'curve')}: {tally(own)}" + (
                f"; best {best.line}" if best.merit[0] else ""
            )
        text += f"; {losses[method]}" if method in losses else ""
        control = "" if role == "optimisation" else f" (a {role})"
        lines.append(TextLine(text + control, style_of(best.verdict)))
    return lines


def _ceiling_lines(report: Report) -> Iterator[TextLine]:
    """What the token counts can give at best, from the slowest to the fastest point of the arms
    that only cut.
    """
    cut = [row for row in report.points if purpose(row.method) == "ceiling"]
    known = [row for row in cut if row.speedup_low is not None]
    known.sort(key=lambda row: row.speedup or 0.0)
    methods = {row.method for row in report.points}
    if known and len({row.method for row in cut}) < len(methods):
        texts = [
            f"{conclude_speedup(row).numbers} ({arm_label_of(row)}, {row.tokens:.0f} tokens)"
            for row in dict.fromkeys((known[0], known[-1]))
        ]
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


def _arm_lines(report: Report) -> list[TextLine]:
    """Speed-ups at single points: of each method the arm whose interval lies highest, with its cost
    in quality.
    """
    best: dict[str, list[tuple[float, str, ArmComparison]]] = defaultdict(list)
    ran = {row.arm_id: row for row in rows_of(report.arms, GeneratedRow)}
    for kind, rows in report.speedups.groupby("kind", sort=False):
        compared = with_quality(rows, report.effects, report.quality_states, report.controls)
        for _, points in groups(compared, ("environment", "host", "condition_id", "model")):
            _, baseline, own = by_baseline(rows_of(points, QualityPointRow), ran)[0]
            for found in by_arm(own):
                arm = ArmComparison(found, KINDS[str(kind)].metrics)
                low = arm.by_metric[arm.metrics[0]].speedup_low
                flagged = wrong(split_flags(arm.by_metric[arm.metrics[0]].flags))
                known = -1.0 if low is None or flagged else low
                best[arm.row.method].append((known, baseline, arm))
    losses = report.effects[report.effects["compared"] == "difference"]
    data = len(losses[["data", "corruption", "severity"]].drop_duplicates())
    lines = []
    tops = [max(arms, key=lambda each: each[0]) for arms in best.values()]
    for method, (_, baseline, arm) in zip(best, tops, strict=True):
        text = f"{arm.label}: {_gain_and_cost(arm, baseline, data=data)}{_more(best[method])}"
        lines.append(TextLine(text, style_of(effect_word(arm.main_speedup))))
    gains = GAINS - {Finding.SMALL_GAIN}
    faster = [
        (known, baseline, arm)
        for known, baseline, arm in tops
        if purpose(arm.row.method) == "optimisation" and arm.main_speedup.finding in gains
    ]
    if len(tops) > 1:
        highest = ""
        if faster:
            _, baseline, arm = max(faster, key=lambda each: each[0])
            highest = f"{arm.label}, {arm.describe_speedup(arm.metrics[0])} against {baseline}"
        answer = answer_of_points(sum(map(len, best.values())), highest)
        lines.insert(0, TextLine(answer, "bold"))
    return lines


def _more(compared: Sequence[object]) -> str:
    """How many comparisons a line leaves to the tables."""
    others = len(compared) - 1
    return f"; {count(others, 'more comparison')} below" if others else ""


def _gain_and_cost(arm: ArmComparison, baseline: str, *, data: int) -> str:
    """Speed-ups, and the cost in quality where it is that of one data set alone."""
    if arm.row.image_size is not None and (
        data > 1 or arm.quality.finding is Finding.NOT_REQUESTED
    ):
        return f"{', '.join(map(arm.describe_speedup, arm.metrics))} against {baseline}"
    return arm.describe(baseline)


def _losses(report: Report) -> dict[str, str]:
    """By method the range of what its arms lose in quality, wherever the sweep measured it."""
    found = {}
    for method, own in _difference_rows(report).items():
        changes = [change_of(row) for row in own]
        known = [each.value for each in changes if each.value is not None]
        if not known:
            continue
        spec, unit = METRICS[own[0].metric], changes[0].effect.unit
        form = f"+.{spec.digits}f"
        text = effect_phrase(changes[0])
        if len(own) > 1:
            named = "" if unit in {"", spec.label} else f" {unit}"
            text = f"changes by {min(known):{form}} to {max(known):{form}}{named} (above 0: worse)"
        data = ", ".join(sorted({f"{row.data}" for row in own}))
        found[method] = f"{spec.label} {text} on {data}"
    return found


def _difference_rows(report: Report) -> dict[str, list[EffectRow]]:
    """The effects that are compared by difference, but for those of zero-shot tasks, by method."""
    found: dict[str, list[EffectRow]] = {}
    rows = report.effects[report.effects["compared"] == "difference"]
    for row in rows_of(rows, EffectRow):
        if row.metric in METRICS and row.effect is not None:
            found.setdefault(row.method, []).append(row)
    return found


def _loss_lines(report: Report) -> list[TextLine]:
    """A sweep that times nothing: of each method the arm that loses least."""

    def loss(row: EffectRow) -> float:
        effect = row.effect or 0.0
        return effect if METRICS[row.metric].better == "lower" else -effect

    by_method = _difference_rows(report)
    lines = []
    for own in by_method.values():
        least = min(own, key=loss)
        found = change_of(least)
        label = f"{params_label(least.method, least.params)} on {least.data}"
        text = f"{label}: {METRICS[least.metric].label} {effect_phrase(found)}{_more(own)}"
        lines.append(TextLine(text, style_of(effect_word(found))))
    if len(lines) > 1:
        words = Counter(effect_word(change_of(row)) for own in by_method.values() for row in own)
        counted = ", ".join(f"{number} × {word}" for word, number in words.items())
        lines.insert(0, TextLine(f"Quality against the baseline: {counted}.", "bold"))
    return lines


def next_steps_of(report: Report, sweep: str = "") -> Iterator[str]:
    """Sentences on a whole report; `sweep` is how commands name it. Nothing on results that more
    time cannot change.
    """
    file = sweep or f"{quote(report.name)}{report.options}"
    yield from flag_steps(report, file)
    short: set[str] = set()
    unclear: set[str] = set()
    for row in report.points:
        finding = conclude_speedup(row).finding
        if finding is Finding.INSUFFICIENT:
            short.add(row.comparison_id)
        elif finding in PROBABLE | {Finding.UNCLEAR, Finding.NO_INTERVAL} and not row.flags:
            unclear.add(row.comparison_id)
    if short:
        yield (
            f"{_comparisons_have(short)} too few pairs; the same command adds pairs: breakeven run"
            f" {file}"
        )
    if unclear := unclear - short:
        yield (
            f"{_comparisons_have(unclear)} an unclear speed-up; this adds pairs, until they are"
            f" clear or as precise as the sweep requests: breakeven run {file} --refine"
        )


def decisions_of(report: Report) -> Iterator[str]:
    """What clear answers lead to: another runtime where little of the promise arrived, the
    unmodified model where arms lose.
    """
    rows = rows_of(report.main_speedups, PointRow)
    rows = [row for row in rows if purpose(row.method) == "optimisation"]
    short = {(row.method, row.params) for row in rows if shortfall(row) > log(CLEARLY_LESS)}
    if short and {row.runtime for row in rows} == {"eager"}:
        gpu = {row.device for row in rows} == {"cuda"}
        prompted = any(row.prompt_tokens is not None for row in rows)
        own = any(row.x_axis is not None for row in rows)
        on_cpu = "compile" if prompted or own else "compile, openvino"
        other = "cudagraph, compiled_graph" if gpu else on_cpu
        yield (
            f"{count(len(short), 'arm')} gained clearly less than their MACs suggest; try"
            f" `runtime: [eager, {other}]` under `axes`"
            f"{' with `kv_cache: static`' if prompted else ''}"
        )
    findings: dict[str, set[Finding]] = defaultdict(set)
    for row in rows:
        findings[arm_label_of(row)].add(conclude_speedup(row).finding)
    slower = [label for label, found in findings.items() if found == {Finding.LOSS}]
    if slower:
        more = f" and {len(slower) - MAX_NAMED} more" if len(slower) > MAX_NAMED else ""
        yield (
            f"use the unmodified model instead of {', '.join(slower[:MAX_NAMED])}{more}: slower"
            " wherever it was measured"
        )


def legend(report: Report) -> Iterator[str]:
    """Explanations of the words in a report that stand instead of the verdict, and of what its
    intervals count.
    """
    differences = report.effects[report.effects["compared"] == "difference"]
    findings = {conclude_speedup(row).finding for row in report.points}
    findings |= {change_of(row).finding for row in rows_of(differences, EffectRow)}
    if findings & PROBABLE:
        yield (
            "probably: the 95 % interval excludes no difference, but not as clearly as a verdict"
            " needs (the verdict is `unclear`)"
        )
    if findings & SMALL:
        yield (
            "within floor: the interval excludes no difference, but lies within the floor (the"
            " verdict is `same`)"
        )
    if Finding.QUARANTINED in findings:
        yield (
            "quarantined: measured only while heat, hardware or a quota slowed the machine (see the"
            " flags), so that there is no verdict; the next run measures it again"
        )
    for flag in sorted(_flagged(report).keys() & FLAGS.keys()):
        left_out = " (left out of curves)" if FLAGS[flag].wrong else ""
        yield f"flag {flag}: {FLAGS[flag].meaning}{left_out}"


def flag_steps(report: Report, sweep: str = "") -> Iterator[str]:
    """Sentences on flagged results alone."""
    file, flagged = sweep or f"{quote(report.name)}{report.options}", _flagged(report)
    advice = {flag: FLAGS[flag].advice for flag in flagged if flag in FLAGS and FLAGS[flag].advice}
    if advice:
        named, many = sorted(advice), len(advice) > 1
        affected = set().union(*(flagged[flag] for flag in named))
        right = "run again when the machine is quiet" if many else advice[named[0]]
        yield (
            f"{_comparisons_have(affected)} the flag{'s' if many else ''} {' or '.join(named)}:"
            f" {right}: breakeven run {file} --retry-flagged"
        )
    if others := sorted(
        set(flagged) - set(advice) - {name for name, flag in FLAGS.items() if flag.harmless}
    ):
        affected = set().union(*(flagged[flag] for flag in others))
        yield (
            f"{_comparisons_have(affected)} the flag {' or '.join(others)}, which workers/README.md"
            " explains (Flags)"
        )


def _flagged(report: Report) -> Mapping[str, set[str]]:
    """The comparisons that have an effect by their flags."""
    found: dict[str, set[str]] = defaultdict(set)
    for frame in report.compared:
        for comparison_id, flags in zip(frame["comparison_id"], frame["flags"], strict=True):
            for flag in split_flags(flags):
                found[flag].add(comparison_id)
    return found


def step_sections(report: Report, steps: Iterable[str] | None) -> Iterator[Section]:
    """The words that need an explanation, and what to do next (default: `next_steps_of`)."""
    if words := list(legend(report)):
        yield Section(title="Verdicts", lines=[TextLine(line, "dim") for line in words])
    if lines := [*decisions_of(report), *(next_steps_of(report) if steps is None else steps)]:
        yield Section(title="What to do next", lines=[TextLine(line, "yellow") for line in lines])


def _comparisons_have(comparisons: Collection[str]) -> str:
    return f"{count(len(comparisons), 'comparison')} {'has' if len(comparisons) == 1 else 'have'}"
