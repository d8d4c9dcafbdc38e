"""Page: the evidence of one point, so that every number can be doubted; text of the store is shown
as it is.
"""

import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from store.errors import StoreError
from store.read.evidence import evidence, evidence_checks
from store.read.evidence.evidence import PointEvidence, StoredAttempt, TimedPairs
from store.rows.row_mapping import condition_columns
from sweeps.analysis.labels import conclude, conclude_change
from sweeps.language.confirmation import sweep_of
from sweeps.model.flags import FLAGS, split_flags, wrong
from sweeps.model.metrics import METRICS, RATES, REASON, SYSTEM_METRICS
from sweeps.number_format import age, count, duration, image_text, moment, seconds_at
from sweeps.text.condition_text import describe_condition, values_text
from sweeps.text.effects import effect_phrase
from sweeps.text.evidence import (
    NoiseFinding,
    RuleLine,
    noise_in_words,
)
from webapp.charts.evidence import (
    PairFrames,
    attempt_info,
    pair_chart,
    reading_chart,
    time_chart,
)
from webapp.charts.points import Layers, PointsInfo
from webapp.display import plain, texts
from webapp.display.links import POINT_KEY, page_link, point_link
from webapp.queries import kept
from webapp.widgets import address
from webapp.widgets.chart_block import draw_chart, show_chart
from webapp.widgets.filters import choose_metric, choose_one
from webapp.widgets.tables import TINTS, grid_html
from workers.methods import all_methods
from workers.methods.arm_labels import arm_label, params_label


class PointFrames(NamedTuple):
    """What the page shows of a speed-up by one metric."""

    timed: TimedPairs
    pairs: PairFrames
    rule: list[RuleLine]
    findings: list[NoiseFinding]
    checks: list[evidence_checks.CountCheck]
    attempts: pd.DataFrame
    """Rows of `attempt_info`."""
    times: pd.DataFrame
    """Rows of `time_chart`."""
    readings: pd.DataFrame
    """`number`, `attempt`, `reading`, `value`."""


# See `store.read.evidence.evidence.point_evidence`, whose `StoreError` it raises.
read_point = kept(evidence.point_evidence)


@kept
def point_frames(
    _engine: Any, comparison_id: str, environment: str | None, host: str | None, metric: str
) -> PointFrames:
    """The frames behind the charts of a point, and what is worked out beside them."""
    found = read_point(comparison_id, environment, host)
    timed = next(each for each in found.timed if each.metric.name == metric)
    pairs = pd.DataFrame(evidence_checks.shown_pairs(timed))
    pairs = pairs.assign(
        ratio=np.exp(pairs["log"]),
        baseline_ms=1e3 * pairs["baseline_s"],
        arm_ms=1e3 * pairs["arm_s"],
    )
    running = [
        {"number": each.number, "attempt": each.attempt, **_speed(each.found)}
        for each in evidence_checks.running_speedups(timed)
    ]
    shown = pairs.drop(columns=["log", "baseline_s", "arm_s"])
    readings = evidence_checks.readings_by_pair(found, timed)
    return PointFrames(
        timed,
        PairFrames(shown, pd.DataFrame(running), timed.metric.floor),
        evidence_checks.worked_rule(timed),
        evidence_checks.findings(found, timed),
        evidence_checks.count_checks(found, timed),
        _attempts(timed),
        _times(timed),
        pd.DataFrame(readings, columns=["number", "attempt", "reading", "value"]),
    )


def _attempts(timed: TimedPairs) -> pd.DataFrame:
    rows = [
        {"row": f"Attempt {attempt}", "kind": "arm", **_speed(own)}
        for attempt, own in evidence_checks.attempt_speedups(timed)
    ]
    baselines = {each.row.attempt: each.row.baseline for each in timed.attempts}
    kind = "baseline against itself"
    for null in evidence_checks.null_contrasts(timed):
        if null.arm == baselines[null.attempt]:
            name = f"Attempt {null.attempt}, {kind}"
            rows.append({"row": name, "kind": kind, **_speed(null.found)})
    rows.append({"row": "Pooled: the answer", "kind": "pooled", **_speed(timed.pooling.speedup)})
    return pd.DataFrame(rows)


def _times(timed: TimedPairs) -> pd.DataFrame:
    parts = []
    for side in ("baseline", "arm"):
        attempts = [
            each.times(each.row.baseline if side == "baseline" else each.row.arm)
            for each in timed.attempts
        ]
        own = np.sort(1e3 * np.concatenate(attempts))
        share = np.arange(1, len(own) + 1) / len(own)
        parts.append(pd.DataFrame({"side": side, "ms": own, "share": share}))
    return pd.concat(parts, ignore_index=True)


def _speed(found: Any) -> Mapping[str, float]:
    """The speed-up with its interval; NaN where there is none."""
    known = np.isfinite(found.high)
    low, high = (found.low, found.high) if known else (np.nan, np.nan)
    return {"speedup": found.value, "low": low, "high": high}


# Answers whose ids begin with the words, or whose model, method or parameters hold each of them.
search_points = kept(evidence.similar_comparisons)


def single_sweep(found: PointEvidence) -> str:
    """A sweep file of this comparison alone; empty where a method of it is not installed here."""
    name = f"point-{found.question_id}"
    question = f"Is comparison {found.comparison_id} measured again the same?"
    try:
        return sweep_of([found.comparison], name, question, all_methods())
    except KeyError:
        return ""


# how the list of answers is sorted
ORDERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "newest": lambda _: 0,
    "largest speed-up": lambda row: -((row["compared"] == "ratio" and row["effect"]) or 0.0),
    "verdict": lambda row: row["verdict"] or "~",
    "flags": lambda row: -len(split_flags(row["flags"])),
}


def _search() -> None:
    """A field to find a comparison by words or by the beginning of its id, and what it finds."""
    with st.container(horizontal=True):
        words = "".join(address.asked("find"))
        st.text_input(
            "Find a comparison",
            placeholder="model, method, parameter such as keep_rate=0.5, size in px, or id",
            **address.widget("find", words, ""),
        )
        order = choose_one("Sort by", list(ORDERS), "sort", width=190)
    rows = sorted(search_points(words), key=ORDERS[order])
    if not rows:
        plain.sentence(
            "No answer whose id begins with these words, or whose model, method, parameters or"
            f" size hold each: {words}"
            if words
            else "No comparison of this store has an answer yet."
        )
        return
    lines = []
    for row in rows:
        size = (
            image_text(row["image_size"], row["image_shape"])
            if row["image_size"]
            else f"{row['prompt_tokens'] or 0:.0f} token{'' if row['prompt_tokens'] == 1 else 's'}"
        )
        size = values_text(row["axis_values"]) if row["axis_values"] else size
        label = params_label(row["method"], row["params"])
        link = point_link(row["comparison_id"], row["environment"], row["host"])
        where = f"{row['device_name']}, {moment(seconds_at(row['measured_at']))}"
        tint = TINTS.get(row["verdict"], "none")
        lines.append(
            [
                plain.link(label, link, plain.MAX_NAME),
                plain.name(f"{row['model']}, {size}, {METRICS[row['metric']].label}"),
                plain.name(row["baseline"]),
                f'<td style="background:{tint}">{plain.escaped(_answer_words(row, 0)[0])}</td>',
                escape(row["verdict"] or "–"),
                escape(", ".join(split_flags(row["flags"])) or "–"),
                plain.name(where),
            ]
        )
    heads = [
        "arm",
        "condition",
        "against",
        "speed-up, or change",
        "verdict",
        "flags",
        "measured, UTC",
    ]
    st.html(grid_html("Answers", heads, lines))


def _title(found: PointEvidence) -> None:
    """What was compared, in words."""
    comparison = found.comparison
    plain.heading(f"{arm_label(comparison.arm)} against {arm_label(comparison.baseline)}")
    ran = condition_columns(dict(comparison.arm.condition(comparison.condition)))
    condition = {name: value for name, value in ran.items() if value is not None}
    condition |= {"device_name": found.device_name, "kind": comparison.kind}
    if threads := next((row["threads"] for row in found.effects if row["threads"]), None):
        condition["threads"] = threads
    plain.sentence(f"{describe_condition(condition)}; {comparison.kind}", "muted")


def _answer_of(found: PointEvidence, metric: str) -> str:
    """Shows the answer by each metric, that of `metric` first, in words, which are returned."""
    failures = [each.failure for each in found.attempts if each.failure is not None]
    answer = ""
    if found.failed and failures:
        reason, message = failures[-1].reason.replace("_", " "), failures[-1].message
        answer = f"Failed, {reason}: {message}"
        plain.headline(answer)
    required = found.attempts[-1].protocol.pairs_min
    others = []
    for row in sorted(found.effects, key=lambda row: row["metric"] != metric):
        phrase, beside = _answer_words(row, required)
        label = texts.capitalised(METRICS[row["metric"]].label)
        if row["metric"] == metric:
            answer = texts.capitalised(phrase)
            plain.headline(answer)
            plain.sentence(f"{label}: {beside}")
        else:
            others.append("; ".join(filter(None, (f"{label}: {phrase}", beside))))
    if others:
        plain.sentence("\n".join(others), "muted")
    return answer


def _chips(found: PointEvidence, frames: PointFrames | None) -> None:
    """Each check and flag in a word, what it rests on as hover text; doubts first."""
    flags = dict.fromkeys(flag for row in found.effects for flag in split_flags(row["flags"]))
    chips = [
        (wrong([flag]), flag, f"{FLAGS[flag].meaning if flag in FLAGS else ''}; {_weight(flag)}")
        for flag in flags
    ]
    if frames:
        chips += [(line.noise, line.check, line.statement) for line in frames.findings]
        chips += [
            (line.holds is False, line.what, line.statement)
            for line in frames.checks
            if line.holds is not None
        ]
    plain.chips(sorted(chips, key=lambda chip: not chip[0]))


def _answer_words(row: Mapping[str, Any], required: int) -> tuple[str, str]:
    """What is concluded from a row of `effect_row`, and the values behind it."""
    spec, effect = METRICS[row["metric"]], row["effect"]
    if row["failure"] is not None:
        return "failed", ""
    values = [row["baseline_value"], row["arm_value"]]
    between = " → ".join(f"{value:,.4g}" for value in values if value is not None) + f" {spec.unit}"
    if effect is None:
        return between, ""
    ends = (effect, row["effect_low"], row["effect_high"])
    rule = {"verdict": row["verdict"], "floor": row["floor"]}
    if spec.compared == "difference":
        return texts.loss_phrase(conclude_change(spec, *ends, **rule)), between
    if spec.compared == "amount":
        return f"{row['verdict']}: {effect:.3f}×", between
    medians = f"{between} (medians of {count(row['n'], 'pair')})"
    if row["verdict"] == "insufficient":
        return texts.too_few(row["n"], required), medians
    if note := texts.ratio_note(values[0] / values[1], effect):
        medians += f"; {note}"
    return effect_phrase(conclude(texts.SHOWN, *ends, **rule)), medians


def _weight(flag: str) -> str:
    spec = FLAGS.get(flag)
    if spec is None or spec.wrong:
        quarantined = "; quarantined" if spec and spec.quarantine else ""
        return f"the figures are not those of the question{quarantined}"
    noisy = "the figures stand, with more noise or without a part"
    return "only information" if spec.harmless else noisy


def _pairs(found: PointEvidence, frames: PointFrames, answer: str) -> None:
    """Every pair in time order, and the readings of the machine below them."""
    metric = frames.timed.metric.name
    _draw(found, pair_chart(frames.pairs), "pairs", frames.pairs.pairs, answer)
    st.caption(
        "Each dot is a pair: the baseline's time over the arm's in one round. The line is the"
        " speed-up by all pairs until then, with the interval that it had; attempts are added one"
        " after the other. None is left out: triangles lie beyond the edge."
    )
    constant, by_reading = [], dict(list(frames.readings.groupby("reading")))
    for name, title in RATES.items():
        if name not in by_reading:
            continue
        rows = by_reading[name]
        if rows["value"].nunique() > 1:
            answer = texts.extremes(title, rows.assign(label="pair " + rows["number"].astype(str)))
            draw_chart(reading_chart(rows, title, frames.pairs), f"reading-{name}", answer)
        else:
            constant.append(f"{title} {rows['value'].iloc[0]:,.4g}")
    if constant:
        plain.sentence(f"Throughout: {'; '.join(constant)}.", "muted")
    if not set(RATES) & set(by_reading):
        plain.sentence("No readings between rounds: the machine offered none.", "muted")

    def raw() -> bytes:
        rows = evidence_checks.pair_rows(found, metric)
        return pd.DataFrame(rows).to_csv(index=False).encode()

    file = f"pairs-{found.comparison_id}-{metric}.csv"
    plain.download("All pairs as CSV, raw times in seconds", raw, file, "text/csv")


def _draw(
    found: PointEvidence, chart: Layers | PointsInfo, name: str, data: pd.DataFrame, conclusion: str
) -> None:
    """A chart with its files, which hold the newest sweep that requests the comparison."""
    sweep = found.requested_by[0].name if found.requested_by else "evidence"
    name = f"{name}-{found.comparison_id}"
    show_chart(chart, name, data, sweep, conclusion)


def _noise(found: PointEvidence, frames: PointFrames) -> None:
    """What would show that the speed-up is noise, and the same in a chart."""
    plain.table(
        (line.check, line.statement, "a doubt" if line.noise else "–") for line in frames.findings
    )
    st.caption(
        "Attempts by themselves, the baseline's two columns against each other (errors within the"
        " process alone), and the answer."
    )
    chart = attempt_info(frames.attempts, frames.timed.metric.floor)
    _draw(found, chart, "attempts", frames.attempts, noise_in_words(frames.findings))
    measured = max(each.ended_at for each in found.attempts)
    for each in found.calibrations.values():
        before = measured - each["created_at"]
        when = f"{age(abs(before))} {'before' if before >= 0 else 'after'} the newest attempt"
        plain.sentence(
            f"Calibration {each['calibration_id']}, made {when}: SD {each['process_sd']:.4f}"
            f" ({each['tau']:.4f} [{each['tau_low']:.4f}, {each['tau_high']:.4f}] estimated);"
            f" {each['processes']} {each['made_of']}, {each['contrasts']} contrasts, models"
            f" {each['size_class']}",
            "muted",
        )


def _counts(frames: PointFrames) -> None:
    marks = {True: "holds", False: "violated", None: ""}
    plain.table((line.what, line.statement, marks[line.holds]) for line in frames.checks)


def _failed_attempts(found: PointEvidence) -> None:
    """Failed attempts with message and traceback, the newest first."""
    for each in reversed(found.attempts):
        if each.failure is None:
            continue
        when = f"Attempt {each.attempt}, {moment(each.ended_at)} UTC"
        reason = each.failure.reason.replace("_", " ")
        plain.sentence(f"{when}: {reason}: {each.failure.message}")
        if each.failure.detail:
            plain.text_block(each.failure.detail)


def _provenance(found: PointEvidence) -> None:
    """Where every number comes from."""
    speeds = {
        row.attempt: part.speed
        for timed in found.timed[:1]
        for (row, *_), part in zip(timed.attempts, timed.pooling.parts, strict=True)
    }
    attempts = reversed(found.attempts)
    plain.table(_attempt_row(each, speeds.get(each.attempt)) for each in attempts)
    arms = (found.comparison.arm, found.comparison.baseline)
    versions = dict(pair for arm in arms for pair in arm.versions)
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    analysis = sorted({str(row["analysis_version"]) for row in found.effects})
    hashes = found.content_hashes
    ids = {
        "Comparison": found.comparison_id,
        "Question": found.question_id,
        "Environment": found.place.environment,
        "Host": found.place.host or "any: the answer does not depend on it",
        "Device": found.device_name,
        "Versions of methods": named or "none: no method",
        "Analysis version": ", ".join(analysis),
        "Content hashes": json.dumps(dict(hashes)) if hashes else "none",
        **{f"Environment: {name}": value for name, value in found.facts.items()},
    }
    plain.table(ids.items())


def _attempt_row(each: StoredAttempt, speed: float | None) -> tuple[str, str, str]:
    """`speed` of the machine in a visit that the answer rests on, as a share of the quickest known
    one.
    """
    span = f"{moment(each.started_at)}, {duration(each.ended_at - each.started_at)}"
    state = "the answer rests on it" if each.used else "not used"
    if each.failure is not None and not each.used:
        state = f"failed: {each.failure.reason}"
    state += "" if speed is None else f", at {speed:.2f} of the quickest known speed"
    precision = each.protocol
    ended = "" if each.stopped is None else f"; timing ended by {each.stopped.replace('_', ' ')}"
    joined = (each.flags, each.baseline_flags, each.arm_flags)
    flags = ", ".join(flag for text in joined for flag in split_flags(text)) or "none"
    notes = "".join(f"; {note}" for note in each.notes)
    return (
        f"Attempt {each.attempt}",
        f"{span}; {state}; flags: {flags}{notes}",
        f"job {each.job_id}, execution {each.n}, round {each.round}, process"
        f" {each.process or 'not known'}, {each.source}; commit {each.commit or 'not known'};"
        f" requested {precision.pairs_min} to {precision.pairs_max} pairs,"
        f" ±{100 * precision.half_width:g} %, {precision.budget_s:g} s{ended}",
    )


def _readings(found: PointEvidence) -> None:
    """What the monitors read around and between the rounds of each attempt, with what it means."""
    if known := [each for each in found.attempts if each.readings]:
        read = {name for each in known for name in each.readings}
        names = [name for name in SYSTEM_METRICS if name in read]
        names += sorted(name for name in read - set(names) if name.startswith(REASON))
        rows = [("", *(f"attempt {each.attempt}" for each in known), "")]
        for name in names:
            values = (
                f"{each.readings[name]:,.4g}" if name in each.readings else "–" for each in known
            )
            meaning = SYSTEM_METRICS.get(name, SYSTEM_METRICS[f"{REASON}*"])
            rows.append((name, *values, meaning))
        plain.table(rows)


def _again(found: PointEvidence) -> None:
    """How to measure it again, and the sweeps that request it."""
    if text := single_sweep(found):
        file = f"point-{found.question_id}.yaml"
        plain.command(f"breakeven run {file} --remeasure")
        plain.text_block(text)
        plain.download("This sweep file", text, file, "application/yaml")
    for sweep in found.requested_by:
        with st.expander(f"Sweep file of revision {sweep.revision} that requests it"):
            plain.sentence(sweep.name)
            plain.text_block(sweep.text)


def _elsewhere(found: PointEvidence) -> None:
    """Links to the other places that answer it, and to the history of its question."""
    links = []
    for row in found.elsewhere:
        environment, host = str(row["environment"]), str(row["host"])
        label = (
            f"{row['device_name']}, host {host or 'any'}, environment {environment[:8]},"
            f" {moment(seconds_at(row['measured_at']))}"
        )
        links.append(plain.link(label, point_link(found.comparison_id, environment, host)))
    history = plain.link(
        "History of this question", page_link("compare", question=found.question_id)
    )
    st.html(f"<p>{history}{'; also answered on ' if links else ''}{'; '.join(links)}</p>")


def _evidence(comparison_id: str, environment: str | None, host: str | None) -> None:
    """Answer, checks and pairs about one comparison; the rest in tabs."""
    found = read_point(comparison_id, environment, host)
    _title(found)
    names = [each.metric.name for each in found.timed]
    metric = choose_metric(names, names[0]) if names else ""
    frames = point_frames(comparison_id, environment, host, metric) if metric else None
    answer = _answer_of(found, metric)
    _chips(found, frames)
    tabs: dict[str, Callable[[], None]] = {}
    if frames:
        _pairs(found, frames, answer)
        tabs = {
            "Is it noise?": lambda: _noise(found, frames),
            "The rule": lambda: plain.table((row.what, row.value, row.how) for row in frames.rule),
            "Times": lambda: _draw(
                *(found, time_chart(frames.times, texts.time_title(metric)), "times"),
                *(frames.times, answer),
            ),
            "Counts": lambda: _counts(frames),
        }
    if any(each.failure for each in found.attempts):
        tabs["Failures"] = lambda: _failed_attempts(found)
    tabs |= {
        "Where it comes from": lambda: _provenance(found),
        "Readings": lambda: _readings(found),
        "Measure it again": lambda: _again(found),
    }
    for show, tab in zip(tabs.values(), st.tabs(list(tabs)), strict=True):
        with tab:
            show()
    _elsewhere(found)


def _show() -> None:
    requested = "".join(address.asked("id"))
    if not requested:
        plain.heading("Is it noise? Click on a point of any chart, or find a comparison here.")
        _search()
        return
    try:
        environment, host = (next(iter(address.asked(key)), None) for key in POINT_KEY[1:])
        _evidence(requested, environment, host)
    except StoreError as problem:
        plain.heading("No evidence")
        plain.sentence(str(problem))
        _search()


if __name__ == "__main__":
    _show()
