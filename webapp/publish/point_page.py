"""The page of one point: the verdict, what would show that it is noise, every pair, and how it was
measured.
"""

from collections.abc import Iterator
from html import escape
from math import inf

import numpy as np

from store.read.evidence import evidence_checks
from store.read.evidence.evidence import PointEvidence, StoredAttempt, TimedPairs
from store.rows.row_mapping import condition_columns
from sweeps.model.metrics import METRICS
from sweeps.number_format import duration, moment
from sweeps.text.condition_text import describe_condition
from sweeps.text.evidence import noise_in_words
from webapp.charts.scales import Extent, ratio_ticks
from webapp.display import texts
from webapp.publish import html
from workers.methods.arm_labels import arm_label

OF_MONITORS = "Readings of the machine"
"""The check that readings make, which are not published."""
WIDTH, HEIGHT, LEFT = 900, 250, 54
"""Pixels of the drawing of pairs, and of the room for its ticks."""
EFFECTS = ("metric", "baseline", "arm", "effect", "pairs or items", "verdict")
ATTEMPTS = ("attempt", "when", "used", "requested", "flags")
FAILURES = ("failure", "message")
CHECKS = ("check", "finding", "a doubt")
RULE = ("step", "how", "value")
COUNTS = ("count", "both sides", "holds")


def point_page(found: PointEvidence, sweeps: list[str]) -> str:
    """The page; `sweeps` are the names of those that request it."""
    comparison, timed = found.comparison, found.timed
    ran = condition_columns(dict(comparison.arm.condition(comparison.condition)))
    given = {name: value for name, value in ran.items() if value is not None}
    about = describe_condition(given | {"device_name": found.device_name, "kind": comparison.kind})
    title = f"{arm_label(comparison.arm)} against {arm_label(comparison.baseline)}"
    links = " · ".join(
        f"<a href=../{html.sweep_address(name)}>{escape(name)}</a>" for name in sweeps
    )
    ids = f"comparison {found.comparison_id}, environment {found.place.environment}"
    effects = html.text_table(EFFECTS, _effects(found))
    attempts = html.text_table(ATTEMPTS, map(_attempt, found.attempts))
    failures = [each.failure for each in found.attempts if each.failure is not None]
    failed = html.text_table(FAILURES, ((each.reason, each.message) for each in failures))
    body = [
        f"<p class=soft>{links} · {ids} · {found.place.host}</p>",
        f"<h1>{escape(title)}, {escape(about)}</h1>",
        *("".join(_timed(found, each)) for each in timed),
        f"<h3>All effects</h3>{effects}<h3>How it was measured</h3>{attempts}{failed}",
    ]
    return html.page(title, body, "../")


def _timed(found: PointEvidence, timed: TimedPairs) -> Iterator[str]:
    """A speed-up by one metric."""
    speedup, visits = timed.pooling.speedup, len(timed.attempts)
    ends = f" [{speedup.low:.3f}, {speedup.high:.3f}]" if speedup.high < inf else ""
    every = evidence_checks.findings(found, timed)
    checks = [each for each in every if each.check != OF_MONITORS]
    doubts = [f"<li class=doubt>✗ {each.check}</li>" for each in checks if each.noise]
    passed = [f"<li>✓ {each.check}</li>" for each in checks if not each.noise]
    rests = f"{timed.metric.label}, {speedup.pairs:,} pairs in {visits} visits"
    words = f"{texts.capitalised(rests)}. {noise_in_words(checks)}"
    rule = html.text_table(RULE, evidence_checks.worked_rule(timed))
    counts = html.text_table(COUNTS, evidence_checks.count_checks(found, timed))
    yield f"<h2>{timed.verdict}: {speedup.value:.3f}×{ends}</h2><p class=soft>{escape(words)}</p>"
    yield f"<ul class=chips>{''.join(doubts + passed)}</ul>{_pairs(timed)}"
    yield f"<h3>What would show that it is noise</h3>{html.text_table(CHECKS, checks)}"
    yield html.fold("The rule, worked out", rule) + html.fold("Counts that must agree", counts)


def _pairs(timed: TimedPairs) -> str:
    """Every pair in the order of time, those beyond the axis at its edge; the answer as a band."""
    found = timed.pooling.speedup
    ratios = np.exp([each.log for each in evidence_checks.shown_pairs(timed)])
    known = [end for end in (found.low, found.value, found.high) if 0 < end < inf]
    low, high = np.quantile(ratios, [0.01, 0.99]).tolist()
    span = Extent(min(low, 0.97, *known) / 1.02, max(high, 1.03, *known) * 1.02)
    step = (WIDTH - LEFT) / len(ratios)

    def y(ratio: float) -> int:
        return 8 + round(html.log_place(ratio, *span, HEIGHT - 16))

    def line(ratio: float, kind: str) -> str:
        return f"<path class={kind} d='M{LEFT} {y(ratio)}H{WIDTH}'/>"

    dots = "".join(f"M{LEFT + step * (at + 0.5):.0f} {y(each)}h0" for at, each in enumerate(ratios))
    ticks = [
        line(tick, "grid") + f"<text y={y(tick) + 4}>{tick:g}×</text>" for tick in ratio_ticks(span)
    ]
    band = f"M{LEFT} {y(known[0])}H{WIDTH}V{y(known[-1])}H{LEFT}"
    beyond = int(((ratios < span.low) | (ratios > span.high)).sum())
    words = (
        "Every pair in the order of time: the baseline's time over the arm's, above 1 the arm is"
        f" faster. Line and band: the answer. {beyond} beyond the axis, drawn at its edge."
    )
    marks = [
        *ticks,
        line(1, "rule"),
        f"<path class=band d='{band}'/>",
        f"<path class=dots d='{dots}'/>",
    ]
    return (
        f"<figure><svg viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label=Pairs>{''.join(marks)}"
        f"{line(found.value, 'answer')}</svg></figure><p class=soft>{words}</p>"
    )


def _effects(found: PointEvidence) -> Iterator[list[str]]:
    for row in found.effects:
        spec = METRICS[row["metric"]]
        numbers = [row[name] for name in ("effect", "effect_low", "effect_high")]
        effect, low, high = ("–" if each is None else f"{each:.4g}" for each in numbers)
        sides = [
            "–" if row[name] is None else f"{row[name]:,.4g} {spec.unit}"
            for name in ("baseline_value", "arm_value")
        ]
        label = texts.capitalised(spec.label)
        yield [
            label,
            *sides,
            f"{effect} [{low}, {high}]",
            str(row["n"] or ""),
            row["verdict"] or "",
        ]


def _attempt(each: StoredAttempt) -> list[str]:
    asked, spent = each.protocol, duration(each.ended_at - each.started_at)
    return [
        f"{each.attempt}, {each.source}, commit {(each.commit or 'not known')[:9]}",
        f"{moment(each.started_at)}, {spent}",
        f"{each.pairs or 0} pairs" if each.used else "not used",
        f"{asked.pairs_min} to {asked.pairs_max} pairs, ±{100 * asked.half_width:g} %,"
        f" {asked.budget_s:g} s",
        ", ".join(filter(None, (each.flags, each.baseline_flags, each.arm_flags))) or "none",
    ]
