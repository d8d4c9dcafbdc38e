"""Page: the answer of a sweep in a headline, the curves behind it along tokens and GMACs, and a
table of all arms.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pandas as pd
import streamlit as st

from store.read.curves import label_hosts
from store.read.evidence.history import measured_days
from store.read.quality import conclude_quality, join_quality, quality_metrics, quality_rows
from store.rows.frames import rows_of
from sweeps.model.flags import contended, split_flags, wrong
from sweeps.model.metrics import MetricSpec
from sweeps.number_format import AXIS_LABELS, axis_label, count
from sweeps.text.condition_text import (
    cautions,
    load_caution,
    mean_caution,
    slow_caution,
    states_caution,
)
from sweeps.text.curves import (
    axis_place,
    axis_span,
    break_even_headline,
    runtime_table,
    share_that_pays,
)
from webapp import queries
from webapp.charts import curves, panels
from webapp.charts.panels import Panel, PanelInfo, flagged
from webapp.charts.scales import x_span
from webapp.display import links, plain, texts
from webapp.display.arm_style import ArmStyle, arm_styles
from webapp.display.axis_curves import Axis, curves_along, free_axis, size_of
from webapp.queries import Scope, kept
from webapp.widgets import address, filters
from webapp.widgets.answers import (
    ArmRow,
    PanelAnswers,
    answers_of_panel,
    arm_table_html,
    best_arm,
    gains,
    place_of,
    speeds,
)
from webapp.widgets.chart_block import draw_chart, offer_files
from webapp.widgets.quality import QualityOfPoint, data_text
from webapp.widgets.tables import grid_html
from webapp.widgets.words import MEANING, show_running_sweeps
from workers.methods import purpose
from workers.methods.arm_labels import params_label

# Streamlit would show a text below a constant: drawn at once,
MAX_PANELS = 12
# and axes whose charts stand side by side.
BESIDE: tuple[Axis, ...] = ("tokens", "gmacs")

# See `store.read.evidence.history.measured_days`.
sweep_days = kept(measured_days)


def measured_span(known: PanelAnswers) -> str:
    """What was measured along the axis, such as `4 to 196 tokens`."""
    values = [place_of(row, known.axis) for row in known.counted]
    unit = size_of(known.panel.points).token_unit
    return axis_span(min(values), max(values), known.axis, unit)


def first_clear_tokens(known: PanelAnswers) -> int:
    """The fewest tokens at which the best arm clearly gains, else the most that were measured."""
    own = next(iter(known.points.values()))
    tokens = sorted(row.tokens or 0 for row in own)
    clear = sorted(row.tokens or 0 for row in own if gains(row))
    return clear[0] if clear else tokens[-1]


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


def break_evens_by_runtime(known: PanelAnswers) -> pd.DataFrame | None:
    """The break-even in tokens of each method, a row for each runtime and dtype; `None` with one
    runtime, or along another axis.
    """
    if not known.curves or known.axis != "tokens":
        return None
    firsts = {arm: known.points[arm][0] for arm in known.rows}
    table = runtime_table(
        (first, params_label(first.method, first.params), known.rows[arm])
        for arm, first in firsts.items()
    )
    return pd.DataFrame.from_dict(table, orient="index").rename_axis("runtime") if table else None


def arm_rows(
    known: PanelAnswers,
    styles: Mapping[str, ArmStyle],
    quality: Mapping[str, str],
    sweep: str,
    kept: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[ArmRow]:
    """The table's rows, best first; `quality` has the cost in quality of arms in words, where it is
    known. `kept`: choices that links to other pages keep.
    """
    found = []
    for arm, own in known.points.items():
        role, last, rows = purpose(own[0].method), own[-1], known.rows.get(arm, [])
        gains = next((row for row in rows if row.direction != "loses"), None)
        flags = ", flagged" if any(wrong(split_flags(row.flags)) for row in own) else ""
        found.append(
            ArmRow(
                label=arm,
                role="" if role == "optimisation" else f"a {role}",
                style=styles[arm],
                curve=speeds(own, known.axis),
                claim=break_even_headline(rows, size_of(known.panel.points).token_unit),
                sentence=known.curves[arm].sentence if known.curves else texts.single_point(last),
                bracket=(gains.x_low, gains.x, gains.x_high) if gains else (None, None, None),
                everywhere=bool(rows) and rows[0].verdict == "always",
                last=f"{texts.speed_numbers(last)}{flags}"
                if known.curves
                else texts.single_point(last),
                word=last.verdict or "",
                quality=quality.get(arm, "not measured" if quality else ""),
                why=links.page_link("explain", sweep=sweep, **kept, arm=arm),
                evidence=links.point_link(last.comparison_id, last.environment, last.host),
            )
        )
    return found


def _address() -> dict[str, Sequence[str]]:
    """The choices that other pages take too."""
    return {key: address.asked(key) for key in filters.PARAMETERS}


def _show_headline(known: PanelAnswers, condition: str) -> None:
    """The answer, and what it was measured on."""
    about = known.panel.about
    plain.headline(best_arm(known))
    claims = list(known.curves.values())
    share = [share_that_pays(claims)] if len(claims) > 1 else []
    where = [condition, str(about["model"]), measured_span(known), f"against {about['against']}"]
    plain.sentence(" · ".join([*share, *where]), "muted")
    flags = [row.flags for row in known.counted]
    if all(contended(split_flags(each)) for each in flags):
        plain.sentence("\n".join(f"{texts.capitalised(line)}." for line in load_caution(flags)))


def _show_table(known: PanelAnswers, rows: Sequence[ArmRow], sweep: str) -> None:
    """All arms, and the break-evens by runtime where there are several."""
    places = [place_of(row, known.axis) for row in known.counted]
    unit = size_of(known.panel.points).token_unit
    at = axis_place(max(places), known.axis, unit)
    span = x_span(pd.Series(places), known.axis)
    along = axis_label(known.axis, x_axis=free_axis(known.panel.points)).along
    st.html(arm_table_html(rows, span, at, along))
    if (table := break_evens_by_runtime(known)) is not None:
        lines = [
            list(map(plain.escaped, row)) for row in table.fillna("–").reset_index().to_numpy()
        ]
        heads = ["runtime", *map(str, table)]
        st.html(grid_html("Break-evens by runtime", heads, lines))
    choose = links.page_link(
        "choose",
        sweep=sweep,
        model=known.panel.about["model"],
        batch=known.panel.about["batch_size"],
        tokens=first_clear_tokens(known),
    )
    words = "Another number of tokens, or a limit on quality: choose an arm"
    found = [plain.link(words, choose)]
    if days := sweep_days(sweep):
        history = links.page_link("history", sweep=sweep, **_address())
        found.append(plain.link(f"How it moved in {count(days + 1, 'day')}", history))
    st.html(f"<p>{' · '.join(found)}</p>")


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
        lines.append(f"{texts.capitalised(line)}.")
    with st.expander("How to read this"):
        plain.sentence("\n".join(lines), "muted")
        plain.sentence(MEANING, "muted")


def _show() -> None:
    show_running_sweeps()
    scope = filters.chosen_scope()
    timed, all_break_evens = queries.scope_points(scope)
    top, below = st.container(), st.container()
    axes = panels.curve_axes(timed, all_break_evens)
    with below, st.container(horizontal=True, vertical_alignment="bottom"):
        axis = filters.choose_axis(axes)
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
    infos: dict[Axis, list[PanelInfo]] = {}
    # the mission's two axes stand side by side, the chosen one first
    pair = sorted((each for each in axes if each in BESIDE), key=lambda each: each != axis)
    for each in pair if axis in BESIDE else [axis]:
        try:
            infos[each] = list(
                panels.panel_infos(
                    *(*curves_along(timed, all_break_evens, each), each),
                    styles=styles,
                    by=by,
                    show_flagged=show_flagged,
                    references=beside,
                    selected=selected,
                )
            )
        except ValueError as problem:
            infos[each] = []
            if each == axis:
                plain.sentence(f"{str(problem).capitalize()}.")
    with top:
        for number, panel in enumerate(found[:MAX_PANELS]):
            known = answers_of_panel(panel, axis)
            _show_headline(known, panels.condition_words(panel, axis, hosts))
            _show_charts(infos, panel, number, best_arm(known))
            if len(found) == 1:
                arms = arm_rows(known, styles, quality, scope.sweep, _address())
                _show_table(known, arms, scope.sweep)
    with below:
        if len(found) > MAX_PANELS:
            plain.sentence(
                f"{MAX_PANELS} of {len(found)} panels are shown; choose above to see the others."
            )
        alone = timed.loc[~timed["comparison_id"].isin(points["comparison_id"]), "arm"].nunique()
        if alone:
            plain.sentence(
                f"{count(alone, 'more arm')} without a curve along {AXIS_LABELS[axis].along}:"
                " another axis shows them.",
                "muted",
            )
        shown = infos[axis]
        if shown:
            listed = points if show_flagged else points[~doubtful]
            offer_files(
                lambda: curves.speedup_chart(shown),
                name=f"speedup-{axis}",
                data=listed,
                scope_or_sweep=scope,
            )
        _notes(found, [line for info in shown[:MAX_PANELS] for line in info.notes], scope, axis)


def _show_charts(
    infos: Mapping[Axis, Sequence[PanelInfo]], panel: Panel, number: int, answer: str
) -> None:
    """The curves of a panel along each axis, side by side; rows for one size fill the width."""
    # as text, since values that are missing do not equal each other
    drawn = [
        info
        for own in infos.values()
        for info in own
        if list(map(str, info.panel.about.values())) == list(map(str, panel.about.values()))
    ]
    if any(info.single for info in drawn):
        drawn = drawn[:1]
    for info, place in zip(drawn, st.columns(len(drawn)) if drawn else [], strict=True):
        with place:
            chart = curves.draw_panel(info, links=True, width="container")
            along = AXIS_LABELS[info.axis].along
            words = "; ".join([answer, *panels.limit_words(info.panel.points)])
            draw_chart(chart, f"{info.axis}-{number}", f"Speed-up along {along}: {words}")


if __name__ == "__main__":
    _show()
