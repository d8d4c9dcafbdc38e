"""Page: the answer of a sweep in one sentence, a card for each method, and the chart behind
them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import pandas as pd
import streamlit as st

from store.read.curves import label_hosts
from store.read.quality import conclude_quality, join_quality, quality_metrics, quality_rows
from store.rows.frames import rows_of
from sweeps.analysis.labels import GAINS, Finding
from sweeps.analysis.rows import ClaimRow
from sweeps.model.flags import split_flags, wrong
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.number_format import AXIS_LABELS, count
from sweeps.text.condition_text import (
    cautions,
    load_caution,
    mean_caution,
    slow_caution,
    states_caution,
)
from sweeps.text.curves import (
    CurveAnswer,
    answer_of_curve,
    answer_of_curves,
    answer_of_points,
    axis_place,
    axis_span,
    break_even_cell,
    merit_of,
)
from sweeps.text.effects import effect_word
from webapp import queries
from webapp.charts import curves, panels
from webapp.charts.panels import X_COLUMN, Panel, flagged
from webapp.display import links, plain, texts
from webapp.display.arm_style import ArmStyle, arm_styles
from webapp.display.axis_curves import Axis, curves_along, size_of
from webapp.display.texts import PointRow
from webapp.queries import Scope
from webapp.widgets import filters
from webapp.widgets.chart_block import draw_chart, offer_files
from webapp.widgets.quality import QualityOfPoint, data_text
from webapp.widgets.tables import point_table
from webapp.widgets.words import running_strip, show_glossary
from workers.methods import purpose
from workers.methods.arm_labels import params_label

# Drawn at once.
MAX_PANELS = 12
_CARDS = (
    "display:grid; grid-template-columns:repeat(auto-fit,minmax(16rem,1fr)); gap:1rem 2rem;"
    " line-height:1.5"
)


@dataclass(frozen=True)
class MethodCard:
    """What the best arm of a method does."""

    method: str
    arm: str
    headline: str
    lines: list[str]
    why: str
    """The reason of the analysis for its break-even; empty where there is none."""


class PanelAnswers(NamedTuple):
    """What sentence and cards of a panel are made from, read once for both."""

    panel: Panel
    axis: Axis
    points: Mapping[str, list[PointRow]]
    """Those of each arm that no flag marks as wrong, or all where each is; arms best first, points
    in order along the axis."""
    rows: Mapping[str, list[ClaimRow]]
    """By arm."""
    curves: Mapping[str, CurveAnswer]
    """What the curve of each arm claims; empty for a panel with one size."""

    @property
    def counted(self) -> list[PointRow]:
        return [row for own in self.points.values() for row in own]


def answers_of_panel(panel: Panel, axis: Axis) -> PanelAnswers:
    right = panel.points[~flagged(panel.points)]
    counted = pd.concat([right, panel.points[~panel.points["arm"].isin(right["arm"])]])
    ordered = counted.sort_values(X_COLUMN[axis], kind="stable")
    points: dict[str, list[PointRow]] = {
        arm: [] for arm in panels.ranked_arms(panel.points, panel.break_evens)
    }
    for row in texts.point_rows(ordered):
        points[row.arm].append(row)
    rows = panels.rows_by_arm(panel.break_evens)
    known = PanelAnswers(panel, axis, points, rows, {})
    return known if panel.single(axis) else known._replace(curves=_curves(known))


def _curves(known: PanelAnswers) -> dict[str, CurveAnswer]:
    """What the curve of each arm claims, best first."""
    found = {}
    for arm, (first, *_) in known.points.items():
        for_use, rows = purpose(first.method) == "optimisation", known.rows.get(arm, [])
        found[arm] = answer_of_curve(first.method, arm, rows, for_use=for_use)
    return found


def answer_sentence(known: PanelAnswers) -> str:
    """One sentence, the same as in the terminal's report of a sweep with this panel alone."""
    if known.curves:
        return answer_of_curves(list(known.curves.values()))
    gains = [row for row in known.counted if _gain(row)]
    best = max(gains, key=lambda row: row.speedup_low or 0.0, default=None)
    if best is None:
        return answer_of_points(len(known.counted), "")
    found = texts.speed(best)
    return answer_of_points(
        len(known.counted),
        f"{best.arm}, {found.numbers} in {METRICS[best.metric].label} ({effect_word(found)})"
        f" against {best.against}",
    )


def measured_span(known: PanelAnswers) -> str:
    """What was measured along the axis, such as `4 to 196 tokens`."""
    values = [_at(row, known.axis) for row in known.counted]
    unit = size_of(known.panel.points).token_unit
    return axis_span(min(values), max(values), known.axis, unit)


def first_clear_tokens(known: PanelAnswers) -> int:
    """The fewest tokens at which the best arm clearly gains, else the most that were measured."""
    own = next(iter(known.points.values()))
    tokens = sorted(row.tokens or 0 for row in own)
    clear = sorted(row.tokens or 0 for row in own if _gain(row))
    return clear[0] if clear else tokens[-1]


def method_cards(known: PanelAnswers, quality: Mapping[str, str]) -> list[MethodCard]:
    """A card for each method, best first; `quality` has the cost in quality of arms in words, where
    it is known.
    """
    families: dict[str, list[str]] = {}
    for arm, (first, *_) in known.points.items():
        families.setdefault(first.method, []).append(arm)
    random = known.panel.about["weights"] == "random" and not quality
    why = "not known, the weights are random" if random else "not measured in this sweep"
    return [
        _card(known, method, arms, quality.get(arms[0], f"quality: {why}"))
        for method, arms in families.items()
    ]


def quality_words(points: pd.DataFrame, effects: pd.DataFrame, spec: MetricSpec) -> dict[str, str]:
    """The change in quality of each arm that was evaluated, with the data; `effects` are rows of
    the view `effect`.
    """
    rows = quality_rows(effects, spec.name)
    if rows.empty:
        return {}
    own = points.drop(columns=["data", "corruption", "severity"], errors="ignore")
    found = join_quality(own, rows).drop_duplicates("arm").dropna(subset=["effect"])
    words = {}
    for row in rows_of(found, QualityOfPoint):
        loss = texts.loss_phrase(conclude_quality(row, spec))
        words[row.arm] = f"{spec.label} {loss} on {data_text(row)}"
    return words


def _card(known: PanelAnswers, method: str, arms: Sequence[str], quality: str) -> MethodCard:
    arm = arms[0]
    own, rows = known.points[arm], known.rows.get(arm, [])
    single = known.panel.single(known.axis)
    headline = texts.single_point(own[0]) if single else known.curves[arm].sentence
    pairs = sorted({row.pairs or 0 for row in own})
    span = " to ".join(f"{number:,}" for number in dict.fromkeys((pairs[0], pairs[-1])))
    noted = ", flagged" if any(wrong(split_flags(row.flags)) for row in own) else ""
    lines = [
        *([] if single else _speeds(known, own, rows)),
        f"{count(len(own), 'point')} of {span} pairs{noted}",
        quality,
        *([f"{count(len(arms) - 1, 'more arm')} below"] if len(arms) > 1 else []),
    ]
    role = purpose(method)
    title = method if role == "optimisation" else f"{method} (a {role})"
    return MethodCard(title, arm, headline, lines, rows[0].why if rows else "")


def _speeds(known: PanelAnswers, points: Sequence[PointRow], rows: Sequence[ClaimRow]) -> list[str]:
    """The first clear gain of a curve that pays from some point on, and the best speed-up; `points`
    are in order along the axis.
    """
    unit = size_of(known.panel.points).token_unit
    decided = [row for row in points if row.verdict not in texts.UNDECIDED]
    best = (
        max(decided, key=lambda row: row.speedup or 0.0)
        if decided
        else max(points, key=lambda row: row.pairs or 0)
    )
    chosen = {"best speed-up" if decided else "no speed-up yet": best}
    first = next((row for row in points if _gain(row)), None)
    if rows and merit_of(rows)[0] >= 2 and first is not None and first is not best:
        chosen = {"first clear gain": first} | chosen
    return [
        f"{word}, at {axis_place(_at(row, known.axis), known.axis, unit)}:"
        f" {texts.speed_numbers(row)}"
        for word, row in chosen.items()
    ]


def _at(row: PointRow, axis: Axis) -> float:
    places = {"tokens": row.tokens, "gmacs": row.gmacs_baseline, "gmacs_saved": row.gmacs_saved}
    return float(places[axis] or 0.0)


def _gain(row: PointRow) -> bool:
    return texts.speed(row).finding in GAINS - {Finding.SMALL_GAIN}


def break_evens_by_runtime(known: PanelAnswers) -> pd.DataFrame | None:
    """The break-even in tokens of each method, a row for each runtime and dtype; `None` with one
    runtime, or along another axis.
    """
    cells: dict[str, dict[str, str]] = {}
    runtimes = set()
    for arm, rows in known.rows.items():
        first, *_ = known.points[arm]
        runtimes.add(first.runtime)
        own = cells.setdefault(f"{first.runtime} {first.dtype}", {})
        own[params_label(first.method, first.params)] = break_even_cell(rows).text
    if len(runtimes) < 2 or not known.curves or known.axis != "tokens":
        return None
    return pd.DataFrame.from_dict(cells, orient="index").rename_axis("runtime")


def _show_answer(
    panel: Panel,
    condition: str,
    axis: Axis,
    scope: Scope,
    styles: Mapping[str, ArmStyle],
    *,
    quality: Mapping[str, str] | None,
) -> None:
    """The sentence, what it was measured on, and the cards if the cost in quality is given."""
    known, about = answers_of_panel(panel, axis), panel.about
    plain.sentence(answer_sentence(known), "strong")
    plain.sentence(
        f"Measured on {condition} · {about['model']} · {measured_span(known)} · against"
        f" {about['against']}",
        "muted",
    )
    if (table := break_evens_by_runtime(known)) is not None:
        st.dataframe(table, placeholder="–")
    if quality is None:
        return
    cards = [_card_html(card, styles[card.arm], scope) for card in method_cards(known, quality)]
    st.html(f'<div style="{_CARDS}">{"".join(cards)}</div>')
    choose = links.page_link(
        "choose",
        sweep=scope.sweep,
        model=about["model"],
        batch=about["batch_size"],
        tokens=first_clear_tokens(known),
    )
    words = "Another number of tokens, or a limit on quality: choose an arm"
    st.html(f"<p>{plain.link(words, choose)}</p>")


def _card_html(card: MethodCard, style: ArmStyle, scope: Scope) -> str:
    """One card; all of its words are escaped."""
    keys = [key for key in st.query_params if key not in {"arm", "axis", "flagged", "references"}]
    address = {key: st.query_params[key] for key in keys}
    why = links.page_link("explain", **address | {"sweep": scope.sweep, "arm": card.arm})
    lines = "".join(f"<div>{escape(line)}</div>" for line in card.lines)
    return (
        f'<div style="border-left:4px solid {style.color}; padding-left:0.9rem;'
        f' overflow-wrap:anywhere" title="{escape(card.why)}"><div style="opacity:.68;'
        f' font-size:.875rem">{escape(card.method)}</div><div><b>{escape(card.arm)}</b></div><div'
        f' style="font-size:1.1rem; margin:.15rem 0 .35rem">{escape(card.headline)}</div><div'
        f' style="font-size:.875rem; opacity:.85">{lines}</div><div style="font-size:.875rem;'
        f' margin-top:.25rem">{plain.link("Why?", why)}</div></div>'
    )


def _notes(found: Sequence[Panel], reading: Sequence[str], scope: Scope, axis: Axis) -> None:
    """How the chart is read, and limits of the answers above."""
    lines = list(dict.fromkeys(reading))
    if any(panel.single(axis) for panel in found):
        size = size_of(found[0].points).one_size
        lines.append(f"One {size} was measured; a break-even needs several.")
    parameters = queries.parameters(scope)
    models = {(str(panel.about["model"]), str(panel.about["weights"])) for panel in found}
    for model, weights in sorted(models):
        lines += cautions(model, weights, parameters[model]) if model in parameters else []
    points = [row for panel in found for row in texts.point_rows(panel.points)]
    named = [(row.arm, row) for row in points]
    for line in (
        *mean_caution(named),
        *states_caution(named),
        *load_caution(row.flags for row in points),
        *slow_caution(row.host_speed for row in points),
    ):
        lines.append(f"{texts.typeset(texts.capitalised(line))}.")
    plain.sentence("\n".join(lines), "muted")


@st.fragment
def _points_as_table(listed: pd.DataFrame) -> None:
    """The table, which is made once it is opened."""
    with st.expander(
        "Points as a table", key="table", on_change="rerun", bind="query-params"
    ) as box:
        if box.open:
            point_table(listed)


def _show() -> None:
    running_strip()
    scope = filters.chosen_scope()
    timed, all_break_evens = queries.scope_points(scope)
    top = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        axis = filters.choose_axis(panels.curve_axes(timed, all_break_evens))
        points, break_evens = curves_along(timed, all_break_evens, axis)
        if points.empty:
            plain.sentence("No point lies on a curve along this axis.")
            return
        styles = arm_styles(points if axis == "gmacs_saved" else timed)
        selected = filters.choose_highlight(panels.ranked_arms(points, break_evens))
        doubtful = flagged(points)
        show_flagged = filters.choose_shown(int(doubtful.sum()), "flagged", "flagged")
        published = queries.references()
        number = len(panels.published_points(published, points, axis))
        beside = published if filters.choose_shown(number, "published", "references") else None
    by = [scope.facet] if scope.facet in {"dtype", "runtime"} else []
    found = list(panels.curve_panels(points, break_evens, axis, by))
    hosts = label_hosts(points)
    quality: dict[str, str] = {}
    for kind, spec in quality_metrics(points["kind"].iloc[0]):
        effects = queries.model_effects(scope, kind.name, spec.name)
        quality |= quality_words(points, effects, spec)
    alone = timed.loc[~timed["comparison_id"].isin(points["comparison_id"]), "arm"].nunique()
    with top:
        if alone:
            plain.sentence(
                f"{count(alone, 'more arm')} without a curve along {AXIS_LABELS[axis].along}:"
                " another axis below shows them.",
                "muted",
            )
        for panel in found[:MAX_PANELS]:
            condition = panels.condition_words(panel, axis, hosts)
            words = quality if len(found) == 1 else None
            _show_answer(panel, condition, axis, scope, styles, quality=words)
    infos: list[panels.PanelInfo] = []
    try:
        infos += panels.panel_infos(
            *(points, break_evens, axis),
            styles=styles,
            by=by,
            show_flagged=show_flagged,
            references=beside,
            selected=selected,
        )
    except ValueError as problem:
        plain.sentence(f"{str(problem).capitalize()}.")
    for number, info in enumerate(infos[:MAX_PANELS]):
        if len(infos) > 1:
            plain.sentence(f"{info.title} · {info.condition}")
        drawn = curves.draw_panel(info, links=True, width="container")
        draw_chart(drawn, f"curves-{number}")
        if info.strip is not None:
            draw_chart(curves.draw_strip(info, "container"), f"strip-{number}")
    if len(found) > MAX_PANELS:
        plain.sentence(
            f"{MAX_PANELS} of {len(found)} panels are shown; choose above to see the others."
        )
    _notes(found, [line for info in infos[:MAX_PANELS] for line in info.notes], scope, axis)
    if infos:
        listed = points if show_flagged else points[~doubtful]
        offer_files(
            lambda: curves.speedup_chart(infos),
            name=f"speedup-{axis}",
            data=listed,
            scope_or_sweep=scope,
        )
        _points_as_table(listed)
    show_glossary()


if __name__ == "__main__":
    _show()
