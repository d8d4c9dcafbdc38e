"""The pages of a publication: that of a sweep (answer, curves, table of arms, points, environment,
sweep file), that of a point (verdict, checks, every pair), the home page, the feed and the dataset
card.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from store.read.curves import label_hosts
from store.read.evidence import evidence_checks
from store.read.evidence.evidence import PointEvidence, StoredAttempt, TimedPairs
from store.read.quality import quality_metrics
from store.rows.row_mapping import condition_columns, timestamp
from sweeps.model.metrics import METRICS
from sweeps.number_format import AXIS_LABELS, count, duration, moment
from sweeps.text.condition_text import describe_condition
from sweeps.text.curves import axis_place, break_even_cell, break_even_headline
from sweeps.text.evidence import noise_in_words
from webapp import queries
from webapp.charts import curves, panels
from webapp.charts.panels import RUNTIME, PanelInfo
from webapp.charts.scales import Extent, ratio_ticks, x_span
from webapp.display import texts
from webapp.display.arm_style import ArmStyle, arm_styles
from webapp.display.axis_curves import curves_along, size_of
from webapp.publish import html
from webapp.publish.folder import Redaction
from webapp.screens import answer
from webapp.widgets import answers
from webapp.widgets.answers import arm_table_html, overview_image, overviews
from workers.methods.arm_labels import arm_label

MAX_COLUMNS = 8
"""Arms beside each other in the overview."""
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
CARD_CURVES = (360, 90)
"""Pixels of curves in small."""
QUESTION = "From where on does an optimisation that saves FLOPs also save time?"


class PublishedPanel(NamedTuple):
    """One model and condition by one metric, with all that its part of a page is made from."""

    known: answers.PanelAnswers
    condition: str
    infos: list[PanelInfo]
    """Its charts, one for each axis."""
    styles: Mapping[str, ArmStyle]
    quality: Mapping[str, str]

    @property
    def answer(self) -> str:
        return texts.typeset(answers.best_arm(self.known))

    @property
    def unit(self) -> str:
        return size_of(self.known.panel.points).token_unit

    @property
    def claims(self) -> dict[str, str]:
        """The break-even of each arm, or its speed-up where there is one size."""
        known = self.known
        return {
            arm: texts.typeset(break_even_headline(known.rows.get(arm, []), self.unit))
            if known.curves
            else texts.speed_numbers(own[-1])
            for arm, own in known.points.items()
        }


class PublishedSweep(NamedTuple):
    """A sweep without names of hosts, users and paths."""

    name: str
    row: Mapping[str, Any]
    """Of `webapp.queries.sweeps`, with the `text` of its file."""
    panels: list[PublishedPanel]
    environments: list[dict[str, Any]]
    """Rows of `provenance_rows` with `facts` as mappings."""

    @property
    def address(self) -> str:
        return html.sweep_address(self.name)

    @property
    def measured_at(self) -> float:
        return max(float(row["last"]) for row in self.environments)

    @property
    def answer(self) -> str:
        """That of its one condition, or in how many of several the arm pays that does in most."""
        if len(self.panels) < 2:
            return "".join(panel.answer for panel in self.panels) or "nothing was timed"
        claims = [claim for panel in self.panels for claim in panel.known.curves.values()]
        pays = Counter(claim.label for claim in claims if claim.for_use and claim.merit[0])
        if not pays:
            return f"{self.names[0]}: {self.panels[0].answer}"
        arm, number = pays.most_common(1)[0]
        return f"{arm} pays in at least a part of {number} of {len(self.panels)} conditions"

    @property
    def names(self) -> list[str]:
        """In what each panel differs from the others; the one panel has none."""
        abouts = [
            {"metric": panel.known.panel.metric.label, **panel.known.panel.about}
            for panel in self.panels
        ]
        frame = pd.DataFrame(abouts).astype(str)
        differ = frame.loc[:, frame.nunique() > 1]
        return [" · ".join(row) for row in differ.itertuples(index=False)]

    @property
    def badges(self) -> Iterator[tuple[str, str, str]]:
        """The address of a badge for the claim of each arm, with arm and claim."""
        for number, (panel, name) in enumerate(zip(self.panels, self.names, strict=True)):
            for place, (arm, claim) in enumerate(panel.claims.items()):
                yield f"badges/{number}-{place}.svg", f"{arm} {name}".strip(), claim


def published_panels(sweep: str, redaction: Redaction) -> Iterator[PublishedPanel]:
    """The panels of a sweep in reading order; none where nothing was timed."""
    timed, break_evens = map(redaction.clean, queries.labelled_speedups(sweep))
    effects = queries.view_rows(sweep, "effect")
    for metric in texts.metrics_in(timed["metric"]):
        own, claims = (frame[frame["metric"] == metric] for frame in (timed, break_evens))
        yield from _of_metric(own, claims, effects)


def _of_metric(
    timed: pd.DataFrame, break_evens: pd.DataFrame, effects: pd.DataFrame
) -> Iterator[PublishedPanel]:
    by = RUNTIME if min(timed["runtime"].nunique(), timed["tokens"].nunique()) > 1 else ()
    if by:
        timed, break_evens = map(panels.under_each_runtime, (timed, break_evens))
    axes = panels.curve_axes(timed, break_evens)
    axis, beside = axes[0], [each for each in axes if each in answer.BESIDE]
    along, hosts = curves_along(timed, break_evens, axis), label_hosts(timed)
    saved = axis == "gmacs_saved"
    styles = arm_styles(along[0] if saved else timed)
    quality: dict[str, str] = {}
    for kind, spec in quality_metrics(timed["kind"].iloc[0]):
        rows = effects[(effects["kind"] == kind.name) & (effects["metric"] == spec.name)]
        quality |= answer.quality_words(timed, rows, spec)
    for panel in panels.curve_panels(*along, axis, by):
        own = panel.points if saved else timed.loc[panel.points.index]
        # each chart has the extent of its own points; of one size the first shows all
        shown = [axis] if saved or panel.single(axis) else beside
        infos: list[PanelInfo] = []
        for each in shown:
            here = curves_along(own, break_evens, each)
            with suppress(ValueError):  # a flag hides every point
                infos += panels.panel_infos(*here, each, styles=styles, by=by)
        condition = panels.condition_words(panel, axis, hosts)
        known = answers.answers_of_panel(panel, axis)
        yield PublishedPanel(known, condition, infos, styles, quality)


def sweep_page(sweep: PublishedSweep, failures: pd.DataFrame) -> str:
    """The page; `failures` are its rows of that view."""
    row, several = sweep.row, len(sweep.panels) > 1
    progress = f"{row['measured']} of {count(row['comparisons'], 'comparison')} measured"
    body = [
        f"<h1>{escape(row['question'])}</h1><p class=soft>{escape(sweep.name)} ·"
        f" {html.dated(sweep.measured_at)} · {progress}, {count(row['failures'], 'failure')}</p>",
        *([f"<h2>{escape(sweep.answer)}</h2>{_overview(sweep)}"] if several else []),
    ]
    for number, panel in enumerate(sweep.panels):
        body.append(f"<section id=panel-{number}>{''.join(_panel(panel, sweep.name))}</section>")
    columns = ["method", "params", "image_size", "reason", "message"]
    failed = failures[columns].astype(str).itertuples(index=False)
    badges = "".join(
        f'<p><img alt="{escape(f"{arm}: {claim}")}" src="{path}"> <code>{path}</code></p>'
        for path, arm, claim in sweep.badges
    )
    environments = html.code_block(json.dumps(sweep.environments, indent=1))
    again = (
        "<p>Save it as <code>sweep.yaml</code> and run <code>breakeven run"
        f" sweep.yaml</code>.</p>{html.code_block(row['text'])}"
    )
    body.append(
        f"<section>{html.fold('Failures', html.text_table(columns, failed))}"
        f"{html.fold('Environment', environments)}{html.fold('Badges', badges)}"
        f"{html.fold('Measure it again: the sweep file', again)}<p>Files: <a download"
        ' href="sweep.yaml">sweep.yaml</a>, <a download'
        ' href="environment.json">environment.json</a></p></section>'
    )
    return html.page(sweep.name, body, "../../")


def _overview(sweep: PublishedSweep) -> str:
    """What each arm claims in each condition, or the best of each where there are many arms."""
    arms = list(dict.fromkeys(arm for panel in sweep.panels for arm in panel.known.points))
    few, rows = len(arms) <= MAX_COLUMNS, []
    for number, (panel, name) in enumerate(zip(sweep.panels, sweep.names, strict=True)):
        cells = panel.claims
        if panel.known.curves and panel.known.axis == "tokens":
            cells |= {arm: break_even_cell(own).text for arm, own in panel.known.rows.items()}
        link = f"<a href=#panel-{number}>{escape(name)}</a>"
        rows.append([link, *([cells.get(arm, "–") for arm in arms] if few else [panel.answer])])
    heads = ["condition", *(arms if few else ["answer"])]
    words = "What each arm gains, or from how many tokens on it pays; conditions follow below."
    return f"<p class=soft>{words}</p>{html.text_table(heads, rows, raw=0)}"


def _panel(panel: PublishedPanel, sweep: str) -> Iterator[str]:
    known, about = panel.known, panel.known.panel.about
    span = f"{answer.measured_span(known)} · against {about['against']}"
    where = f"{panel.condition} · {about['model']} · {span}"
    yield f"<h2>{escape(panel.answer)}</h2><p class=soft>{escape(where)}</p><div class=pair>"
    for info in panel.infos:
        title = f"{info.measure} against {AXIS_LABELS[info.axis].along}. {panel.answer}"
        yield html.chart(curves.draw_panel(info, links=True, width="container"), title)
    rows = []
    for row in answer.arm_rows(known, panel.styles, panel.quality, sweep):
        last = known.points[row.label][-1]
        address = html.point_address(last.comparison_id, last.environment, last.host)
        rows.append(row._replace(why="", evidence=f"../../{address}"))
    places = known.panel.points[panels.X_COLUMN[known.axis]].astype(float)
    at, along = axis_place(places.max(), known.axis, panel.unit), AXIS_LABELS[known.axis].along
    notes = dict.fromkeys(escape(line) for info in panel.infos for line in info.notes)
    yield f"</div>{arm_table_html(rows, x_span(places, known.axis), at, along)}"
    yield html.fold("How to read this", f"<p>{'<br>'.join(notes)}</p>")
    yield html.fold("Points as a table", "<div class=points></div>")


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
    rests = f"{timed.metric.label}, {count(speedup.pairs, 'pair')} in {count(visits, 'visit')}"
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
        count(each.pairs or 0, "pair") if each.used else "not used",
        f"{asked.pairs_min} to {asked.pairs_max} pairs, ±{100 * asked.half_width:g} %,"
        f" {asked.budget_s:g} s",
        ", ".join(filter(None, (each.flags, each.baseline_flags, each.arm_flags))) or "none",
    ]


def home_page(sweeps: Iterable[PublishedSweep]) -> str:
    """Every sweep with its curves in small, the answer, age and environment."""
    listed, cards = list(sweeps), []
    known = overviews(tuple(sweep.name for sweep in listed))
    for sweep in listed:
        image = overview_image(known[sweep.name], CARD_CURVES) if sweep.name in known else ""
        devices = dict.fromkeys(f"{row['device_name']} {row['host']}" for row in sweep.environments)
        cards.append(
            f"<article class=card><p class=soft>{escape(sweep.name)}</p><h2><a"
            f" href={sweep.address}>{escape(sweep.answer)}</a></h2>{image}<p>"
            f"{escape(sweep.row['question'])}</p><p class=soft>{escape(', '.join(devices))} ·"
            f" {html.dated(sweep.measured_at)} · {count(sweep.row['measured'], 'comparison')}</p>"
            "</article>"
        )
    return html.page(QUESTION, [f"<h1>{QUESTION}</h1><div class=cards>", *cards, "</div>"])


def feed(sweeps: Iterable[PublishedSweep], site: str) -> str:
    """A JSON Feed of what was measured; `site` begins its addresses, empty where it is not
    known.
    """
    items = [
        {
            "id": f"{site}{sweep.address}",
            "url": f"{site}{sweep.address}",
            "title": f"{sweep.name}: {sweep.answer}",
            "content_text": sweep.row["question"],
            "date_modified": timestamp(sweep.measured_at),
        }
        for sweep in sweeps
    ]
    version = "https://jsonfeed.org/version/1.1"
    return json.dumps({"version": version, "title": "Breakeven", "items": items}, indent=1)


def dataset_card(views: Sequence[str], sweeps: Iterable[PublishedSweep]) -> str:
    """`README.md` with the front matter by which a dataset hub finds the Parquet files."""
    configs = [f"- config_name: {name}\n  data_files: data/{name}.parquet" for name in views]
    listed = [f"- [{sweep.name}]({sweep.address}): {sweep.answer}" for sweep in sweeps]
    return html.fill_template("card.md", configs="\n".join(configs), sweeps="\n".join(listed))
