"""Sections of the page with the evidence of one point; all text of the store is shown as it is."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from store.read.evidence.evidence import PointEvidence, StoredAttempt
from store.rows.row_mapping import condition_columns, timestamp
from sweeps.analysis.labels import conclude, conclude_change
from sweeps.model.flags import FLAGS, split_flags
from sweeps.model.metrics import METRICS, RATES, REASON, SYSTEM_METRICS
from sweeps.number_format import age, count, duration
from sweeps.text.condition_text import describe_condition
from webapp.charts.pair_series import attempt_chart, pair_chart, reading_chart, time_chart
from webapp.display import plain, texts
from webapp.display.links import page_link, point_link
from webapp.queries import queries_point
from webapp.queries.queries_point import PointFrames
from webapp.widgets.chart_block import draw_chart, show_chart
from workers.methods.arm_labels import arm_label

DIFFERING = 0.005
"""From this share on it is explained why the ratio of medians is not the speed-up."""
TABLE_STYLE = (
    "<style>.rows{border-collapse:collapse;width:100%;margin:0}.rows td,.rows"
    " th{text-align:left;vertical-align:top;padding:6px 20px 6px 0;border:0;border-bottom:1px solid"
    " rgba(128,133,145,.25);overflow-wrap:anywhere;font-size:.9rem}.rows"
    " th{font-weight:600;width:13rem}.rows td:last-child{padding-right:0}.rows"
    " .mark{white-space:nowrap;overflow-wrap:normal}.rows .quiet{opacity:.68}</style>"
)


def show_rows(
    rows: Iterable[Sequence[str]], *, quiet: int | None = None, mark: int | None = None
) -> None:
    """A table of texts that wrap, the first of each row as its head; column `quiet` is muted,
    `mark` holds a word in one line.
    """
    lines, looks = [], {quiet: " class=quiet", mark: " class=mark"}
    for head, *cells in rows:
        own = [
            f"<td{looks.get(place, '')}>{escape(cell)}</td>" for place, cell in enumerate(cells, 1)
        ]
        lines.append(f"<tr><th>{escape(head)}</th>{''.join(own)}</tr>")
    st.html(f"{TABLE_STYLE}<table class=rows>{''.join(lines)}</table>")


def title(found: PointEvidence) -> None:
    """What was compared, in words."""
    comparison = found.comparison
    plain.heading(f"{arm_label(comparison.arm)} against {arm_label(comparison.baseline)}")
    ran = condition_columns(dict(comparison.arm.condition(comparison.condition)))
    condition = {name: value for name, value in ran.items() if value is not None}
    threads = next((row["threads"] for row in found.effects if row["threads"]), None)
    condition |= {"device_name": found.device_name, "kind": comparison.kind} | (
        {"threads": threads} if threads else {}
    )
    plain.sentence(f"{describe_condition(condition)}; {comparison.kind}", "muted")


def answer_of(found: PointEvidence, metric: str) -> None:
    """The answer by each metric, that of `metric` first, and what its flags mean."""
    flags: dict[str, None] = {}
    newest = next(
        (each.failure for each in reversed(found.attempts) if each.failure is not None), None
    )
    if found.failed and newest is not None:
        plain.sentence(f"Failed, {newest.reason.replace('_', ' ')}: {newest.message}", "strong")
    for row in sorted(found.effects, key=lambda row: row["metric"] != metric):
        flags |= dict.fromkeys(split_flags(row["flags"]))
        phrase, beside = _answer_words(
            dict(row) | {"pairs_min": found.attempts[-1].protocol.pairs_min, "pairs": row["n"]}
        )
        spec = METRICS[row["metric"]]
        if row["metric"] == metric:
            plain.sentence(f"{phrase[:1].upper()}{phrase[1:]}", "strong")
            plain.sentence(f"{spec.label[:1].upper()}{spec.label[1:]}: {beside}")
        else:
            plain.sentence(
                "; ".join(
                    filter(None, (f"{spec.label[:1].upper()}{spec.label[1:]}: {phrase}", beside))
                ),
                "muted",
            )
    if flags:
        show_rows(
            (flag, FLAGS[flag].meaning if flag in FLAGS else "not declared", _weight(flag))
            for flag in flags
        )


def _answer_words(row: Mapping[str, Any]) -> tuple[str, str]:
    """What is concluded from a row of `effect_row`, and the values behind it."""
    spec = METRICS[row["metric"]]
    if row["failure"] is not None:
        return "failed", ""
    values = [row["baseline_value"], row["arm_value"]]
    between = " → ".join(f"{value:,.4g}" for value in values if value is not None) + f" {spec.unit}"
    if row["effect"] is None:
        return between, ""
    ends, rule_of = (
        (row["effect"], row["effect_low"], row["effect_high"]),
        {"verdict": row["verdict"], "floor": row["floor"]},
    )
    if spec.compared == "difference":
        return texts.loss_phrase(conclude_change(spec, *ends, **rule_of)), between
    if spec.compared == "amount":
        return f"{row['verdict']}: {row['effect']:.3f}×", between
    medians = f"{between} (medians of {row['n']:,} pairs)"
    if few := texts.pairs_reached(row):
        return few, medians
    ratio = values[0] / values[1]
    if abs(ratio / row["effect"] - 1) >= DIFFERING and row["verdict"] != "insufficient":
        medians += (
            f"; the ratio of these medians is {ratio:.3f}×, the speed-up is that of the pairs, in"
            " which drift cancels"
        )
    return conclude(texts.SHOWN, *ends, **rule_of).phrase, medians


def _weight(flag: str) -> str:
    spec = FLAGS.get(flag)
    if spec is None or spec.wrong:
        return "the figures are not those of the question" + (
            "; quarantined" if spec and spec.quarantine else ""
        )
    return (
        "only information"
        if spec.harmless
        else "the figures stand, with more noise or without a part"
    )


def pairs(found: PointEvidence, frames: PointFrames) -> None:
    """Every pair in time order, and the readings of the machine below them."""
    st.subheader("Every pair in the order of time", anchor=False)
    st.caption(
        "Each dot is a pair: the baseline's time over the arm's in one round. The line is the"
        " speed-up by all pairs until then, with the interval that it had; attempts are added one"
        " after the other. None is left out: triangles lie beyond the edge."
    )
    metric = frames.timed.metric.name
    _draw(found, pair_chart(frames.pairs), "pairs", frames.pairs.pairs)
    present = [name for name in RATES if name in set(frames.readings["reading"])]
    changing = [
        name
        for name in present
        if frames.readings.loc[frames.readings["reading"] == name, "value"].nunique() > 1
    ]
    for name in changing:
        rows = frames.readings[frames.readings["reading"] == name]
        draw_chart(reading_chart(rows, RATES[name], frames.pairs), f"reading-{name}")
    constant = [name for name in present if name not in changing]
    values = frames.readings.drop_duplicates("reading").set_index("reading")["value"]
    if constant:
        plain.sentence(
            "Throughout: "
            + "; ".join(f"{RATES[name]} {values[name]:,.4g}" for name in constant)
            + ".",
            "muted",
        )
    if not present:
        plain.sentence("No readings between rounds: the machine offered none.", "muted")
    st.download_button(
        "All pairs as CSV, raw times in seconds",
        lambda: queries_point.pairs_csv(found, metric),
        f"pairs-{found.comparison_id}-{metric}.csv",
        "text/csv",
        on_click="ignore",
        icon=":material/download:",
    )


def _draw(found: PointEvidence, chart: alt.LayerChart, name: str, data: pd.DataFrame) -> None:
    """A chart with its files, which hold the newest sweep that requests the comparison; without
    them where none does.
    """
    sweep = found.requested_by[0].name if found.requested_by else ""
    show_chart(
        chart,
        name=f"{name}-{found.comparison_id}",
        data=data,
        scope_or_sweep=sweep,
        downloads=bool(sweep),
    )


def rule(frames: PointFrames) -> None:
    """The rule of the verdict, worked out."""
    st.subheader("The rule, worked out", anchor=False)
    show_rows((line.what, line.value, line.how) for line in frames.rule)


def noise(found: PointEvidence, frames: PointFrames) -> None:
    """What would show that the speed-up is noise, and the same in a chart."""
    st.subheader("What would convince me that this is noise?", anchor=False)
    marks = {True: "a doubt", False: "–"}
    show_rows(((line.check, line.statement, marks[line.noise]) for line in frames.findings), mark=2)
    st.caption(
        "Attempts by themselves, the baseline's two columns against each other (errors within the"
        " process alone), and the answer."
    )
    _draw(
        found,
        attempt_chart(frames.attempts, frames.timed.metric.floor),
        "attempts",
        frames.attempts,
    )
    measured = max(each.ended_at for each in found.attempts)
    for each in found.calibrations.values():
        sd = (
            f"SD {each['process_sd']:.4f} ({each['tau']:.4f} [{each['tau_low']:.4f},"
            f" {each['tau_high']:.4f}] estimated)"
        )
        made = (
            f"{each['processes']} processes, {each['contrasts']} contrasts, models"
            f" {each['size_class']}"
        )
        before = measured - each["created_at"]
        when = f"{age(abs(before))} {'before' if before >= 0 else 'after'} the newest attempt"
        plain.sentence(f"Calibration {each['calibration_id']}, made {when}: {sd}; {made}", "muted")


def times(found: PointEvidence, frames: PointFrames) -> None:
    """The distribution of the two arms' times."""
    st.subheader("Times of both arms", anchor=False)
    _draw(found, time_chart(frames.times), "times", frames.times)


def counts(frames: PointFrames) -> None:
    """Counts that must agree."""
    st.subheader("Counts that must agree", anchor=False)
    marks = {True: "holds", False: "violated", None: ""}
    show_rows(((line.what, line.statement, marks[line.holds]) for line in frames.checks), mark=2)


def failed_attempts(found: PointEvidence) -> None:
    """Failed attempts with message and traceback."""
    failed = [each for each in found.attempts if each.failure is not None]
    if not failed:
        return
    st.subheader("Failures", anchor=False)
    for each in reversed(failed):
        if each.failure is not None:
            when = f"Attempt {each.attempt}, {timestamp(each.ended_at)[:19]}Z"
            plain.sentence(
                f"{when}: {each.failure.reason.replace('_', ' ')}: {each.failure.message}"
            )
            if each.failure.detail:
                plain.text_block(each.failure.detail)


def provenance(found: PointEvidence) -> None:
    """Where every number comes from."""
    st.subheader("Where it comes from", anchor=False)
    speeds = {
        row.attempt: part.speed
        for timed in found.timed[:1]
        for (row, *_), part in zip(timed.attempts, timed.pooling.parts, strict=True)
    }
    show_rows(
        (_attempt_row(each, speeds.get(each.attempt)) for each in reversed(found.attempts)), quiet=2
    )
    versions = {
        step: str(version)
        for arm in (found.comparison.arm, found.comparison.baseline)
        for step, version in arm.versions
    }
    ids = {
        "Comparison": found.comparison_id,
        "Question": found.question_id,
        "Environment": found.place.environment,
        "Host": found.place.host or "any: the answer does not depend on it",
        "Device": found.device_name,
        "Versions of methods": (
            ", ".join(f"{name} {version}" for name, version in versions.items())
            or "none: no method"
        ),
        "Analysis version": ", ".join(
            sorted({str(row["analysis_version"]) for row in found.effects})
        ),
        "Content hashes": (
            json.dumps(dict(found.content_hashes)) if found.content_hashes else "none"
        ),
        **{f"Environment: {name}": value for name, value in found.facts.items()},
    }
    show_rows(ids.items())


def _attempt_row(each: StoredAttempt, speed: float | None) -> tuple[str, str, str]:
    """`speed` of the machine in a visit that the answer rests on, as a share of the quickest known
    one.
    """
    span = f"{timestamp(each.started_at)[:19]}Z, {duration(each.ended_at - each.started_at)}"
    state = (
        "the answer rests on it"
        if each.used
        else "not used"
        if each.failure is None
        else f"failed: {each.failure.reason}"
    )
    state += "" if speed is None else f", at {speed:.2f} of the quickest known speed"
    precision = each.protocol
    requested = (
        f"{precision.pairs_min} to {precision.pairs_max} pairs, ±{100 * precision.half_width:g} %,"
        f" {precision.budget_s:g} s"
    )
    ended = "" if each.stopped is None else f"; timing ended by {each.stopped.replace('_', ' ')}"
    own = [
        flag
        for joined in (each.flags, each.baseline_flags, each.arm_flags)
        for flag in split_flags(joined)
    ]
    ran = (
        f"job {each.job_id}, execution {each.n}, round {each.round}, process"
        f" {each.process or 'not known'}, {each.source}"
    )
    notes = "".join(f"; {note}" for note in each.notes)
    return (
        f"Attempt {each.attempt}",
        f"{span}; {state}; flags: {', '.join(own) or 'none'}{notes}",
        f"{ran}; commit {each.commit or 'not known'}; requested {requested}{ended}",
    )


def readings(found: PointEvidence) -> None:
    """What the monitors read around and between the rounds of each attempt, with what it means."""
    known = [each for each in found.attempts if each.readings]
    if not known:
        return
    with st.expander(f"Readings of the machine in {count(len(known), 'attempt')}"):
        names = [name for name in SYSTEM_METRICS if any(name in each.readings for each in known)]
        names += sorted(
            {name for each in known for name in each.readings if name.startswith(REASON)}
            - set(names)
        )
        heads = ("", *(f"attempt {each.attempt}" for each in known), "")
        rows = []
        for name in names:
            values = (
                f"{each.readings[name]:,.4g}" if name in each.readings else "–" for each in known
            )
            rows.append((name, *values, SYSTEM_METRICS.get(name, SYSTEM_METRICS[f"{REASON}*"])))
        show_rows([heads, *rows])


def again(found: PointEvidence) -> None:
    """How to measure it again, and the sweeps that request it."""
    st.subheader("Measure it again", anchor=False)
    text = queries_point.single_sweep(found)
    if text:
        st.code(f"breakeven run point-{found.question_id}.yaml --remeasure", language="bash")
        plain.text_block(text)
        file = f"point-{found.question_id}.yaml"
        st.download_button(
            "This sweep file",
            text,
            file,
            "application/yaml",
            on_click="ignore",
            icon=":material/download:",
        )
    for sweep in found.requested_by:
        with st.expander(f"Sweep file of revision {sweep.revision} that requests it"):
            plain.sentence(sweep.name)
            plain.text_block(sweep.text)


def elsewhere(found: PointEvidence) -> None:
    """Links to the other places that answer it, and to the history of its question."""
    links = []
    for row in found.elsewhere:
        environment, host = str(row["environment"]), str(row["host"])
        label = (
            f"{row['device_name']}, host {host or 'any'}, environment {environment[:8]},"
            f" {str(row['measured_at'])[:10]}"
        )
        links.append(plain.link(label, point_link(found.comparison_id, environment, host)))
    history = plain.link(
        "History of this question", page_link("compare", question=found.question_id)
    )
    st.html(f"<p>{history}{'; also answered on ' if links else ''}{'; '.join(links)}</p>")
