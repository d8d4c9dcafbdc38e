"""Page: the answer of a sweep in one sentence, a card for each method, and the chart behind
them.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape

import streamlit as st

from store.read.curves import label_hosts
from store.read.quality import quality_metrics
from store.rows.frames import rows_of
from sweeps.number_format import AXIS_LABELS, count, is_missing
from sweeps.text.condition_text import (
    cautions,
    load_caution,
    mean_caution,
    slow_caution,
    states_caution,
)
from webapp import queries
from webapp.charts import curves
from webapp.charts.emphasis import ranked_arms
from webapp.charts.published import published_points
from webapp.display import links, plain, texts
from webapp.display.arm_style import ArmStyle, arm_styles
from webapp.display.axis_curves import Axis, curves_along, size_of
from webapp.display.scope import Scope
from webapp.queries import answers
from webapp.widgets import filters
from webapp.widgets.chart_block import draw_chart, offer_files
from webapp.widgets.glossary import show_glossary
from webapp.widgets.running import running_strip
from webapp.widgets.tables import point_table

MAX_PANELS = 12  # drawn at once
_CARDS = (
    "display:grid; grid-template-columns:repeat(auto-fit,minmax(16rem,1fr)); gap:1rem 2rem;"
    " line-height:1.5"
)


def show_answer(
    panel: curves.Panel,
    condition: str,
    axis: Axis,
    scope: Scope,
    styles: Mapping[str, ArmStyle],
    *,
    quality: Mapping[str, str] | None,
) -> None:
    """The sentence, what it was measured on, and the cards if the cost in quality is given."""
    known = answers.answers_of_panel(panel, axis)
    plain.sentence(answers.answer_sentence(known), "strong")
    span = answers.measured_span(known)
    plain.sentence(
        f"Measured on {condition} · {panel.about['model']} · {span} · against"
        f" {panel.about['against']}",
        "muted",
    )
    if quality is None:
        return
    cards = [
        card_html(card, styles[card.arm], scope) for card in answers.method_cards(known, quality)
    ]
    st.html(f'<div style="{_CARDS}">{"".join(cards)}</div>')
    about, tokens = panel.about, answers.first_clear_tokens(known)
    choose = links.page_link(
        "choose", sweep=scope.sweep, model=about["model"], batch=about["batch_size"], tokens=tokens
    )
    words = "Another number of tokens, or a limit on quality: choose an arm"
    st.html(f"<p>{plain.link(words, choose)}</p>")


def card_html(card: answers.MethodCard, style: ArmStyle, scope: Scope) -> str:
    """One card; all of its words are escaped."""
    why = links.page_link("explain", **_address(scope) | {"arm": card.arm})
    lines = "".join(f"<div>{escape(line)}</div>" for line in card.lines)
    return (
        f'<div style="border-left:4px solid {style.color}; padding-left:0.9rem;'
        f' overflow-wrap:anywhere" title="{escape(card.why)}"><div style="opacity:.68;'
        f' font-size:.875rem">{escape(card.method)}</div><div><b>{escape(card.arm)}</b></div><div'
        f' style="font-size:1.1rem; margin:.15rem 0 .35rem">{escape(card.headline)}</div><div'
        f' style="font-size:.875rem; opacity:.85">{lines}</div><div style="font-size:.875rem;'
        f' margin-top:.25rem">{plain.link("Why?", why)}</div></div>'
    )


def _address(scope: Scope) -> dict[str, str]:
    """The choices of this page, for links to others that have the same filters."""
    keys = [key for key in st.query_params if key not in {"arm", "axis", "flagged", "references"}]
    return {key: st.query_params[key] for key in keys} | {"sweep": scope.sweep}


def notes(panels: Sequence[curves.Panel], reading: Sequence[str], scope: Scope, axis: Axis) -> None:
    """How the chart is read, and limits of the answers above."""
    lines = list(dict.fromkeys(reading))
    if any(panel.single(axis) for panel in panels):
        lines.append(
            f"One {size_of(panels[0].points).one_size} was measured; a break-even needs several."
        )
    parameters = queries.parameters(scope)
    models = {(str(panel.about["model"]), str(panel.about["weights"])) for panel in panels}
    for model, weights in sorted(models):
        lines += cautions(model, weights, parameters[model]) if model in parameters else []
    points = [row for panel in panels for row in rows_of(panel.points)]
    loaded, slow = (
        load_caution(row.flags for row in points),
        slow_caution(row.host_speed for row in points if not is_missing(row.host_speed)),
    )
    named = [(row.arm, row) for row in points]
    found = (*mean_caution(named), *states_caution(named), *loaded, *slow)
    lines += [f"{texts.typeset(line[:1].upper() + line[1:])}." for line in found]
    plain.sentence("\n".join(lines), "muted")


@st.fragment
def points_as_table() -> None:
    """The table, which is made once it is opened."""
    with st.expander(
        "Points as a table", key="table", on_change="rerun", bind="query-params"
    ) as box:
        if box.open:
            point_table(_listed)


running_strip()
_scope = filters.chosen_scope()
points, break_evens = queries.scope_points(_scope)
_top = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    _axis = filters.choose_axis(curves.curve_axes(points, break_evens))
    all_styles, _timed = arm_styles(points), points
    points, break_evens = curves_along(points, break_evens, _axis)
    if points.empty:
        plain.sentence("No point lies on a curve along this axis.")
        st.stop()
    _styles = arm_styles(points) if _axis == "gmacs_saved" else all_styles
    _selected = filters.choose_highlight(ranked_arms(points, break_evens))
    _show_flagged = filters.choose_flagged(int(curves.flagged(points).sum()))
    _published = queries.references()
    _references = filters.choose_references(len(published_points(_published, points, _axis)))
_by = _scope.facet if _scope.facet in {"dtype", "runtime"} else None
_draw = partial(curves.panel_views, points, break_evens, _axis, styles=_styles, by=_by)
_panels = list(curves.curve_panels(points, break_evens, _axis, _by))
_hosts = label_hosts(points)
_quality: dict[str, str] = {}
for _kind, _spec in quality_metrics(points["kind"].iloc[0]):
    _quality |= answers.quality_words(
        points, queries.model_effects(_scope, _kind.name, _spec.name), _spec
    )
_alone = _timed.loc[~_timed["comparison_id"].isin(points["comparison_id"]), "arm"].nunique()
with _top:
    if _alone:
        along = AXIS_LABELS[_axis].along
        plain.sentence(
            f"{count(_alone, 'more arm')} without a curve along {along}: another axis below shows"
            " them.",
            "muted",
        )
    for panel in _panels[:MAX_PANELS]:
        condition = curves.condition_words(panel, _axis, _hosts)
        show_answer(
            panel,
            condition,
            _axis,
            _scope,
            _styles,
            quality=_quality if len(_panels) == 1 else None,
        )
_beside = _published if _references else None
_listed = points if _show_flagged else points[~curves.flagged(points)]
try:
    views = list(
        _draw(
            show_flagged=_show_flagged,
            references=_beside,
            selected=_selected,
            links=True,
            width="container",
        )
    )[:MAX_PANELS]
except ValueError as problem:
    views = []
    plain.sentence(f"{str(problem).capitalize()}.")
for number, view in enumerate(views):
    if len(views) > 1:
        plain.sentence(f"{view.title} · {view.condition}")
    draw_chart(view.curves, f"curves-{number}")
    if view.strip is not None:
        draw_chart(view.strip, f"strip-{number}")
if len(_panels) > MAX_PANELS:
    plain.sentence(
        f"{MAX_PANELS} of {len(_panels)} panels are shown; choose above to see the others."
    )
notes(_panels, [line for view in views for line in view.notes], _scope, _axis)
if views:
    offer_files(
        lambda: curves.speedup_chart(
            *(points, break_evens, _axis),
            styles=_styles,
            by=_by,
            show_flagged=_show_flagged,
            references=_beside,
            selected=_selected,
        ),
        name=f"speedup-{_axis}",
        data=_listed,
        scope_or_sweep=_scope,
    )
    points_as_table()
show_glossary()
