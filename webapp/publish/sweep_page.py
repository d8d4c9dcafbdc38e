"""The page of one sweep: the answer, its curves, a table of arms, and below them points,
environment and sweep file.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import escape
from typing import Any, NamedTuple

import pandas as pd

from store.read.curves import label_hosts
from store.read.quality import quality_metrics
from sweeps.number_format import AXIS_LABELS, count
from sweeps.text.curves import axis_place, break_even_cell, break_even_headline
from webapp import queries
from webapp.charts import curves, panels
from webapp.charts.panels import RUNTIME, PanelInfo
from webapp.charts.scales import x_span
from webapp.display import texts
from webapp.display.arm_style import ArmStyle, arm_styles
from webapp.display.axis_curves import curves_along, size_of
from webapp.publish import html
from webapp.publish.redaction import Redaction
from webapp.screens import answer
from webapp.widgets import answers
from webapp.widgets.arm_table import arm_table_html

MAX_COLUMNS = 8
"""Arms beside each other in the overview."""


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
