"""Page: why an arm takes the time that it takes, from what was measured of it: promise, fit over
sizes, profiles, and the audit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import streamlit as st

from store.read.audits import MAX_AUDITED
from store.read.profiling import join_sentences
from store.rows.frames import rows_of
from sweeps.analysis.rows import CeilingRow, ClaimRow, CostModelRow, SizedRow, SpeedupRow
from sweeps.model.metrics import INTERVAL
from sweeps.number_format import count, is_missing
from sweeps.text.curves import describe_break_even, describe_cost_model, token_unit
from sweeps.text.reasons import (
    PROFILE_SECTION,
    RATIOS_OF_COSTS,
    describe_fit,
    explain_ceiling,
    explain_costs,
    explain_own_work,
    explain_promise,
    is_bound,
    name_size,
    profile_needed,
)
from webapp import queries
from webapp.blocks import explained
from webapp.charts.activity_bars import activity_chart
from webapp.charts.cost_lines import cost_chart, place_chart
from webapp.charts.roofline_chart import roofline_chart
from webapp.charts.saving_lines import saving_chart
from webapp.charts.wall_bars import difference_chart, wall_chart
from webapp.display import plain, texts
from webapp.display.scope import Scope
from webapp.queries import queries_explain
from webapp.widgets import filters
from webapp.widgets.chart_block import show_chart
from webapp.widgets.choices import choose_one
from webapp.widgets.glossary import show_glossary
from workers import methods

MAX_FINDINGS = 5  # of the audit, in full; all of them are in a table
ACTIVITY_COLUMNS = {
    "name": st.column_config.TextColumn("Name", width="large"),
    "baseline_ms": st.column_config.NumberColumn("Baseline, ms", format="%.4f"),
    "arm_ms": st.column_config.NumberColumn("Arm, ms", format="%.4f"),
    "difference_ms": st.column_config.NumberColumn("Difference, ms", format="%+.4f"),
    "baseline_count": st.column_config.NumberColumn("Runs, baseline", format="%.0f"),
    "arm_count": st.column_config.NumberColumn("Runs, arm", format="%.0f"),
}


def break_even_lines(own: pd.DataFrame, break_evens: pd.DataFrame) -> Iterator[str]:
    """The answer along tokens."""
    along = break_evens[break_evens["axis"] == "tokens"]
    if len(along):
        unit = token_unit(rows_of(own.head(1), SizedRow)[0])
        yield f"Break-even along {unit}: {describe_break_even(rows_of(along, ClaimRow), unit)}."


def size_lines(own: pd.DataFrame, sides: Sequence[explained.Sides]) -> Iterator[str]:
    """At each profiled size what was timed and why, as in the report; without a profile what points
    and ceilings show.
    """
    for each in sides:
        for reason in each.condition.reasons:
            if reason.arm is each.arm:
                yield f"At {each.place}: {reason.text}."
    if sides:
        return
    for row in explained.shown_sizes(own):
        if few := texts.pairs_reached(asdict(row)):
            yield f"At {name_size(row)}: {few}, from which nothing follows yet."
            continue
        free = "" if queries_explain.only_cuts(row.method) else explain_ceiling(row)
        yield f"At {name_size(row)}: {join_sentences([explain_promise(row), free])}."


def fit_lines(own: pd.DataFrame, costs: CostModelRow | None, scope: Scope) -> Iterator[str]:
    """What the method adds itself, and what the fit over sizes gives."""
    largest = rows_of(own.sort_values("tokens"), SpeedupRow)[-1]
    if own_work := explain_own_work(largest):
        yield f"At {name_size(largest)}: {own_work}."
    if costs is None:
        return
    relative = queries_explain.fitted_costs(scope, costs.curve_id)
    yield f"Cost model: {describe_fit(costs)}."
    yield from (f"{each[:1].upper()}{each[1:]}." for each in explain_costs(costs, relative))
    if relative is not None:
        yield RATIOS_OF_COSTS
    if text := describe_cost_model(costs, token_unit(costs)):
        yield f"It {text[text.index('predicts') :] if 'predicts' in text else text}."


def savings(own: pd.DataFrame, scope: Scope, color: str) -> None:
    """Reached, free and promised."""
    free = own["ceiling"].notna().any()
    st.subheader(f"Speed-up: reached, {'free, ' if free else ''}promised", anchor=False)
    plain.sentence(
        f"Bars: {INTERVAL} interval. Promised: if time followed MACs. {ceiling_words(own)}", "muted"
    )
    title = (
        "Tokens of the prompt" if own["prompt_tokens"].notna().any() else "Patch tokens per image"
    )
    chart = saving_chart(texts.with_enough_pairs(own), title, color)
    show_chart(chart, name="savings", data=own, scope_or_sweep=scope)


def ceiling_words(own: pd.DataFrame) -> str:
    """Whether a free cut bounds what the points of an arm reach, or what would show it; empty for
    models without this method.
    """
    known, measured = own[own["ceiling"].notna()], own["ceiling_id"].notna()
    if len(known):
        beaten = [name_size(row) for row in rows_of(known, CeilingRow) if not is_bound(row)]
        if beaten:
            return (
                "Free: the same tokens cut for nothing; no bound, because the arm is measured"
                f" faster at {', '.join(beaten)}."
            )
        return (
            "Free: the same tokens cut for nothing, measured: within both intervals no reduction"
            " with these counts is faster."
        )
    if measured.any():
        return (
            "The same tokens cut for nothing were measured by too few pairs, or on a disturbed"
            " machine: they bound nothing yet."
        )
    if own["image_size"].isna().all():
        return ""
    names = [
        name for name, method in methods.all_methods().items() if method.Params.purpose == "ceiling"
    ]
    return (
        "What these token counts could save at best is not known: add the method"
        f" {' or '.join(names)} with the same counts."
    )


def cost_model(
    own: pd.DataFrame, costs: Any, break_evens: pd.DataFrame, scope: Scope, color: str
) -> None:
    """Times against work with the fit, and the predicted break-even beside the measured ones."""
    st.subheader("Fixed cost and cost of work", anchor=False)
    plain.sentence(
        f"Lines: fixed cost + cost of work × {costs.work_unit}s. Each side stands at its own"
        f" {costs.work_unit}s: at one size (joined by a grey line) the arm lies left of its"
        " baseline, and it is faster where it also lies lower.",
        "muted",
    )
    frame = explained.cost_points(own, costs)
    if not frame["in_fit"].all():
        plain.sentence(
            "Hollow points are no part of the fit: the method removes nothing there, or a flag"
            " marks them as wrong.",
            "muted",
        )
    show_chart(cost_chart(frame, costs, color), name="cost-model", data=frame, scope_or_sweep=scope)
    places = [
        ("predicted by the fit", costs.predicted_x, costs.predicted_x_low, costs.predicted_x_high),
        *(
            ("the answer", row.x, row.x_low, row.x_high)
            for row in break_evens[break_evens["axis"] == "tokens"].itertuples()
            if not (is_missing(row.x_low) and is_missing(row.x_high))
        ),
    ]
    plain.sentence(
        "Break-even: what the fit predicts, and the bracket between measured points.",
        "muted",
    )
    try:
        chart = place_chart(
            places, list(own["tokens"]), "Break-even in tokens, with its interval", color
        )
    except ValueError as problem:
        plain.sentence(f"{problem}.".capitalize(), "muted")
        return
    names = ["label", "x", "low", "high"]
    show_chart(
        chart,
        name="break-even-of-the-fit",
        data=pd.DataFrame(places, columns=names),
        scope_or_sweep=scope,
    )


def wall(sides: list[explained.Sides], scope: Scope) -> None:
    """Classes of time of both sides, and what differs."""
    st.subheader("Where the wall time goes", anchor=False)
    parts = explained.wall_parts(sides)
    if parts.empty:
        plain.sentence(
            "The profiles hold kernels one by one, without a timeline: gaps are not known.", "muted"
        )
        return
    show_chart(wall_chart(parts), name="wall", data=parts, scope_or_sweep=scope)
    differences = explained.wall_differences(sides)
    show_chart(
        difference_chart(differences),
        name="wall-differences",
        data=differences,
        scope_or_sweep=scope,
    )
    for note in dict.fromkeys(each.condition.note for each in sides):
        plain.sentence(f"Bars: {note}", "muted")


def activities_and_roofline(
    sides: list[explained.Sides], own: pd.DataFrame, scope: Scope, color: str
) -> None:
    """Kernels or operators of one condition, at first of the smallest at which the arm does not
    pay, and its roofline.
    """
    places = {each.place: each for each in sides}
    st.subheader("What runs longer, what shorter", anchor=False)
    chosen = places[choose_one("At", list(places), "at", explained.place_that_fails(sides, own))]
    found = queries_explain.activities(chosen.baseline.row.profile_id, chosen.arm.row.profile_id)
    if found.empty:
        plain.sentence("The profile holds no kernels or operators.", "muted")
    else:
        plain.sentence(
            "Totals of the profiled rounds, which have no intervals: small differences may be"
            " noise.",
            "muted",
        )
        show_chart(activity_chart(found), name="activities", data=found, scope_or_sweep=scope)
        with st.expander("All kernels and operators"):
            st.dataframe(
                found[list(ACTIVITY_COLUMNS)], column_config=ACTIVITY_COLUMNS, hide_index=True
            )
    st.subheader("Roofline", anchor=False)
    peaks = chosen.arm.peaks or chosen.baseline.peaks
    rates = explained.roofline_points(chosen)
    if peaks is None or rates[["gflops", "gb_per_s"]].dropna().empty:
        plain.sentence(
            "The peaks of the machine, or operations and bytes of these profiles, are not known.",
            "muted",
        )
        return
    show_chart(
        roofline_chart(rates, peaks, color), name="roofline", data=rates, scope_or_sweep=scope
    )


def not_profiled(arm: str) -> None:
    """What is not known without a profile, and what would show it."""
    st.subheader("Where the wall time goes", anchor=False)
    plain.sentence(
        f"{arm} was not profiled under this condition: what its operators and launches take is not"
        " known."
    )
    plain.sentence(
        "Add these lines to the sweep file, or the key profile to its jobs, and run it again; what"
        " is measured stays:"
    )
    plain.command(PROFILE_SECTION)


def audited_by_itself(sweep: str) -> bool:
    """Whether the sweep is small enough to be audited without a request."""
    return int(queries.panels(sweep)["points"].sum()) <= MAX_AUDITED


def what_to_do(sweep: str, arm: str) -> Iterator[str]:
    """What would settle the doubts that the audit has in an arm, or in the unmodified model."""
    found = queries_explain.audit_report(sweep).findings if audited_by_itself(sweep) else ()
    doubts = [
        each for each in found if each.severity != "note" and (not each.arms or arm in each.arms)
    ]
    if doubts:
        settled = "; ".join(dict.fromkeys(each.settles for each in doubts[:MAX_FINDINGS]))
        finds = (
            f"the audit of this sweep (at the end of the page) finds {count(len(doubts), 'doubt')}"
        )
        yield f"What to do: {finds}. {settled[:1].upper()}{settled[1:]}."


def sweep_audit(sweep: str) -> None:
    """What the rules of `breakeven audit` find in this sweep."""
    st.subheader("Audit of this sweep", anchor=False)
    comparisons = int(queries.panels(sweep)["points"].sum())
    if not audited_by_itself(sweep) and not st.toggle(
        f"Audit {count(comparisons, 'point')}", key="audit", bind="query-params"
    ):
        plain.sentence(f"The sweep is large; in a terminal: breakeven audit {sweep}", "muted")
        return
    report = queries_explain.audit_report(sweep)
    plain.sentence(f"{report.answer[:1].upper()}{report.answer[1:]}.")
    for note in report.notes:
        plain.sentence(note, "muted")
    for found in report.findings[:MAX_FINDINGS]:
        plain.sentence(f"{found.severity}: {found.rule}", "strong")
        plain.sentence(f"{texts.typeset(found.sentence)}.")
        plain.sentence(f"To settle it: {found.settles}.", "muted")
    if len(report.findings) > MAX_FINDINGS:
        with st.expander("All findings"):
            rows = [
                (each.severity, each.rule, each.sentence, each.settles) for each in report.findings
            ]
            st.dataframe(
                pd.DataFrame(rows, columns=["Severity", "Rule", "Finding", "To settle it"]),
                hide_index=True,
            )


def _show() -> None:
    """The page, from its answer down."""
    scope = filters.chosen_scope()
    points, break_evens = queries.scope_points(scope)
    points = explained.with_promises(points)
    arm = choose_one(
        "Arm", list(dict.fromkeys(points["arm"])), "arm", explained.most_surprising(points)
    )
    color = explained.own_color(points, arm)
    own, curves = points[points["arm"] == arm], break_evens[break_evens["arm"] == arm]
    if scope.facet is not None:
        value = own[scope.facet].value_counts().index[0]
        plain.sentence(f"One panel is explained: {scope.facet.replace('_', ' ')} {value}.", "muted")
        own, curves = own[own[scope.facet] == value], curves[curves[scope.facet] == value]
    fits = queries.scope_rows(scope, "cost_model")
    fits = fits[fits["curve_id"].isin(own["curve_id"])]
    costs = next(iter(rows_of(fits, CostModelRow)), None)
    found = queries_explain.profiled(scope)
    sides = explained.sides_of(found, str(own["arm_id"].iloc[0]), str(own["baseline_id"].iloc[0]))

    plain.sentence(f"{arm} against {own['against'].iloc[0]}", "strong")
    for line in break_even_lines(own, curves):
        plain.sentence(texts.typeset(line))
    if not sides:
        needed = profile_needed()
        plain.sentence(f"{needed[:1].upper()}{needed[1:]}.")
    for line in size_lines(own, sides):
        plain.sentence(texts.typeset(line))
    plain.sentence("\n".join(map(texts.typeset, fit_lines(own, costs, scope))))
    for line in what_to_do(scope.sweep, arm):
        plain.sentence(line)
    savings(own, scope, color)
    if costs is not None:
        cost_model(own, costs, curves, scope, color)
    if sides:
        wall(sides, scope)
        activities_and_roofline(sides, own, scope, color)
    else:
        not_profiled(arm)
    sweep_audit(scope.sweep)
    show_glossary()


_show()
