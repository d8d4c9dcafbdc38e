"""Page: why an arm takes the time that it takes, from what was measured of it: promise, fit over
sizes, profiles, and the audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from store.read.audits import MAX_AUDITED, audit_of_sweep
from store.read.curves import curve_costs, with_ceilings
from store.read.profiling import (
    CLASSES_OF_TIME,
    EXPLAINED_METRICS,
    ProfileContext,
    ProfiledArm,
    ProfiledCondition,
    activity_differences,
    explain_profiles,
    join_sentences,
    operator_rows,
)
from store.read.queries import panel_rows, peaks_of_hosts
from store.rows.frames import rows_of
from sweeps.analysis.audit.report import AuditReport
from sweeps.analysis.labels import GAINS, PeaksOfHosts, peak_share
from sweeps.analysis.rows import CostModelRow
from sweeps.model.flags import split_flags, wrong
from sweeps.model.metrics import INTERVAL
from sweeps.number_format import count
from sweeps.stats.cost_model import RelativeCosts
from sweeps.text.condition_text import describe_peak
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
    promise_of,
)
from webapp import queries
from webapp.charts.explain import (
    activity_chart,
    activity_rows,
    cost_info,
    difference_chart,
    place_chart,
    roofline_info,
    saving_info,
    wall_chart,
    waterfall_chart,
    waterfall_rows,
)
from webapp.charts.panels import rows_by_arm
from webapp.charts.points import SIDE_COLORS, draw_points
from webapp.display import plain, texts
from webapp.display.arm_style import arm_styles
from webapp.display.links import POINT_KEY
from webapp.display.texts import PointRow
from webapp.queries import Scope, kept
from webapp.widgets import filters
from webapp.widgets.chart_block import show_chart
from webapp.widgets.words import show_glossary
from workers.methods import all_methods, purpose
from workers.methods.arm_labels import params_label

# Of the audit, in full; all of them are in a table.
MAX_FINDINGS = 5
# Flag of an arm that does what its baseline does at a size; such points are no part of a fit.
NO_EFFECT = "no_effect"
PHASES: Mapping[str, str] = {"forward": "", "prefill": "prefill", "decode": "decode step"}
_PLACE = ("device_name", "environment", "host")


class Sides(NamedTuple):
    """A condition with the profiles of an arm and of its baseline."""

    condition: ProfiledCondition
    baseline: ProfiledArm
    arm: ProfiledArm

    @property
    def place(self) -> str:
        """Size, phase and, of a file, the tool: `224 px (196 tokens)`, `64 prompt tokens,
        prefill`.
        """
        return profile_place(self.arm)


@kept
def profiled(engine: Any, scope: Scope) -> list[ProfiledCondition]:
    """The profiles of the scope's condition at all sizes, with what they show; those of imported
    files, which have no host, too.
    """
    open_names = (*_PLACE, "baseline_id", "exclusive")
    fixed = {name: value for name, value in scope.fixed.items() if name not in open_names}
    rows = panel_rows(engine, scope.sweep, "profile", fixed, {})
    here = pd.Series(data=True, index=rows.index)
    for name in ("environment", "host"):
        here &= rows[name] == scope.fixed[name] if name in scope.fixed else True
    own = rows[here | rows["attempt"].isna()]
    if own.empty:
        return []
    effects = panel_rows(engine, scope.sweep, "effect", scope.fixed, {"metric": EXPLAINED_METRICS})
    points = panel_rows(engine, scope.sweep, "speedup", scope.fixed, {})
    beside = ProfileContext(points, operator_rows(engine, own["profile_id"]), only_cuts)
    return explain_profiles(own, effects, params_label, beside)


@kept
def fitted_costs(engine: Any, scope: Scope, curve_id: str) -> RelativeCosts | None:
    """Of one curve of the scope, where its fit describes its points; see
    `store.read.curves.curve_costs`.
    """
    own = {**scope.chosen, "curve_id": (curve_id,)}
    fits, points = (
        panel_rows(engine, scope.sweep, view, scope.conditions, own)
        for view in ("cost_model", "speedup")
    )
    return next(iter(curve_costs(engine, fits, points).values()), None)


@kept
def activities(engine: Any, baseline: str, arm: str) -> pd.DataFrame:
    """Kernels or operators of two profiles side by side."""
    return activity_differences(engine, baseline, arm)


@kept
def measured_peaks(engine: Any, *places: tuple[str, str]) -> PeaksOfHosts:
    """Of environments and hosts."""
    return peaks_of_hosts(engine, places)


@kept
def audit_report(engine: Any, sweep: str) -> AuditReport:
    """The audit of a sweep, as `breakeven audit` makes it."""
    return audit_of_sweep(engine, sweep, params_label)


def only_cuts(method: str) -> bool:
    """Whether a method only cuts tokens, so that it is a ceiling of others."""
    return purpose(method) == "ceiling"


def profile_place(arm: ProfiledArm) -> str:
    """Size and phase of a profile: `224 px (196 tokens)`, `64 prompt tokens, decode step`; of a
    file its tool too.
    """
    tool = arm.profile.tool if arm.row.file else ""
    return ", ".join(filter(None, [arm.size, PHASES[arm.row.phase], tool])) or "forward"


def sides_of(found: Sequence[ProfiledCondition], arm_id: str, baseline_id: str) -> list[Sides]:
    """The conditions in which both were profiled, in order of size."""
    sides = []
    for condition in found:
        # a timeline, of which the classes of time are known, stands for an arm before kernels that
        # were recorded one by one
        ordered = sorted(condition.arms, key=lambda arm: bool(arm.profile.times))
        own = {arm.row.arm_id: arm for arm in ordered}
        if arm_id in own and baseline_id in own:
            sides.append(Sides(condition, own[baseline_id], own[arm_id]))
    return sorted(sides, key=lambda each: (_size(each.arm), each.place))


def _size(arm: ProfiledArm) -> float:
    return float(arm.row.image_size or arm.row.prompt_tokens or 0)


def wall_parts(sides: Sequence[Sides]) -> pd.DataFrame:
    """Rows for `wall_chart`: classes of time of baseline and arm under each condition."""
    rows = []
    for each in sides:
        names = CLASSES_OF_TIME[each.condition.device]
        for side, found in (("baseline", each.baseline), ("arm", each.arm)):
            times = {
                names[name]: 1e3 * seconds
                for name, seconds in found.profile.times.items()
                if seconds and name in names
            }
            wall = sum(times.values())
            rows += [(each.place, side, name, ms, wall) for name, ms in times.items()]
    return pd.DataFrame(rows, columns=["place", "side", "time_class", "ms", "wall_ms"])


def wall_differences(sides: Sequence[Sides]) -> pd.DataFrame:
    """Rows for `difference_chart`: by how much each class of the arm is longer, with its interval
    where there is one.
    """
    rows: list[tuple[object, ...]] = []
    for each in sides:
        arm, baseline = each.arm.profile, each.baseline.profile
        for name, label in CLASSES_OF_TIME[each.condition.device].items():
            change, own = arm.changes.get(name), (arm.times.get(name), baseline.times.get(name))
            if not any(own):
                continue
            # by pairs inside rounds, as a share of the baseline's wall
            if change is not None and baseline.wall_s:
                values = [
                    None if end is None else 1e3 * baseline.wall_s * end
                    for end in (change.value, change.low, change.high)
                ]
            else:
                values = [1e3 * ((own[0] or 0.0) - (own[1] or 0.0)), None, None]
            rows.append((each.place, label, *values))
    columns = ["place", "time_class", "ms", "ms_low", "ms_high"]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[2:], float))


def roofline_points(sides: Sides) -> pd.DataFrame:
    """Rows for `roofline_info`: all arms of a condition, each with its `name`; the arm and its
    baseline by their roles.
    """
    roles, rows = {id(sides.arm): "arm", id(sides.baseline): "baseline"}, []
    for each in sides.condition.arms:
        side = roles.get(id(each))
        if (found := each.roofline) is not None:
            named = (each.label, side or "other arm", side or each.label)
            rows.append((*named, found.gflops, found.gb_per_s, found.limit))
    columns = ["label", "side", "name", "gflops", "gb_per_s", "limit"]
    return pd.DataFrame(rows, columns=columns).astype({"gflops": float, "gb_per_s": float})


def with_promises(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `promised`, and `ceiling` (with its ends): that of a free cut
    of the same tokens.
    """
    promised = map(promise_of, texts.point_rows(points))
    series = pd.Series(promised, index=points.index, dtype=float)
    return with_ceilings(points, only_cuts).assign(promised=series)


def place_that_fails(sides: Sequence[Sides], points: pd.DataFrame) -> str:
    """The smallest place at which the points of the arm do not show that it pays; the largest where
    it pays at all.
    """
    paying = {
        row.condition_id for row in texts.point_rows(points) if texts.speed(row).finding in GAINS
    }
    failing = (each.place for each in sides if each.arm.row.condition_id not in paying)
    return next(failing, sides[-1].place)


def cost_points(points: pd.DataFrame, costs: CostModelRow) -> pd.DataFrame:
    """Rows for `cost_info` from the points of one arm: time and work of both sides at each size."""
    rows: list[tuple[object, ...]] = []
    for row in texts.point_rows(points):
        flags = split_flags(row.flags)
        in_fit = not wrong(flags) and NO_EFFECT not in flags
        work = (row.gmacs_baseline, row.gmacs_total)
        work = (row.tokens, row.tokens) if costs.work_unit == "token" else work
        beside = (name_size(row), in_fit, row.comparison_id, row.environment, row.host)
        rows.append(("baseline", work[0], row.baseline_ms, *beside))
        rows.append(("arm", work[1], row.arm_ms, *beside))
    return pd.DataFrame(rows, columns=["side", "work", "ms", "size", "in_fit", *POINT_KEY])


def most_surprising(points: pd.DataFrame) -> str:
    """The arm of rows of `with_promises` whose promise lies above its interval by the largest
    factor; flagged ones last.
    """
    known = points[~texts.undecided(points)].dropna(subset=["promised", "speedup_high"])
    known = known[~known["flags"].map(lambda flags: wrong(split_flags(flags))).astype(bool)]
    short = known["promised"] / known["speedup_high"]
    ordered = short.sort_values(ascending=False, kind="stable")
    return str(points.loc[(ordered if len(ordered) else points).index[0], "arm"])


def _size_lines(rows: Sequence[PointRow], sides: Sequence[Sides]) -> Iterator[str]:
    """At each profiled size what was timed and why, as in the report; without a profile what points
    and ceilings show at the largest size, and at the smallest at which the arm removes tokens.
    """
    for each in sides:
        for reason in each.condition.reasons:
            if reason.arm is each.arm:
                yield f"At {each.place}: {reason.text}."
    if sides:
        return
    removing = [row for row in rows if NO_EFFECT not in split_flags(row.flags)] or [rows[-1]]
    for row in removing[-1:] + removing[:-1][:1]:
        if few := texts.pairs_reached(row):
            yield f"At {name_size(row)}: {few}, from which nothing follows yet."
            continue
        free = "" if only_cuts(row.method) else explain_ceiling(row)
        yield f"At {name_size(row)}: {join_sentences([explain_promise(row), free])}."


def _fit_lines(largest: PointRow, costs: CostModelRow | None, scope: Scope) -> Iterator[str]:
    """What the method adds itself, and what the fit over sizes gives."""
    if own_work := explain_own_work(largest):
        yield f"At {name_size(largest)}: {own_work}."
    if costs is None:
        return
    relative = fitted_costs(scope, costs.curve_id)
    yield f"Cost model: {describe_fit(costs)}."
    yield from (f"{texts.capitalised(each)}." for each in explain_costs(costs, relative))
    if relative is not None:
        yield RATIOS_OF_COSTS
    if text := describe_cost_model(costs, token_unit(costs)):
        yield f"It {text[text.index('predicts') :] if 'predicts' in text else text}."


def _waterfall(rows: Sequence[PointRow], scope: Scope, color: str) -> None:
    """From the baseline's time to the arm's at one size, the largest by default."""
    sizes = {f"{row.tokens:,.0f}": row for row in rows if not waterfall_rows(row, color).empty}
    if not sizes:
        return
    last = list(sizes)[-1]
    chosen = (
        st.select_slider("Tokens", list(sizes), last, key="size", bind="query-params", width=420)
        if len(sizes) > 1
        else last
    )
    found = waterfall_rows(sizes.get(str(chosen), sizes[last]), color)
    show_chart(waterfall_chart(found), name="waterfall", data=found, scope_or_sweep=scope)


def _savings(own: pd.DataFrame, scope: Scope, color: str) -> None:
    """Reached, free and promised."""
    prompts = own["prompt_tokens"].notna().any()
    title = "Tokens of the prompt" if prompts else "Patch tokens per image"
    chart = draw_points(saving_info(texts.with_enough_pairs(own), title, color))
    show_chart(chart, name="savings", data=own, scope_or_sweep=scope)
    plain.sentence(
        f"Bars: {INTERVAL} interval. Promised: if time followed MACs. {_ceiling_words(own)}",
        "muted",
    )


def _ceiling_words(own: pd.DataFrame) -> str:
    """Whether a free cut bounds what the points of an arm reach, or what would show it; empty for
    models without this method.
    """
    rows = texts.point_rows(own)
    if known := [row for row in rows if row.ceiling is not None]:
        beaten = ", ".join(name_size(row) for row in known if not is_bound(row))
        return (
            "Free: the same tokens cut for nothing; no bound, because the arm is measured faster at"
            f" {beaten}."
            if beaten
            else "Free: the same tokens cut for nothing, measured: within both intervals no"
            " reduction with these counts is faster."
        )
    if any(row.ceiling_id for row in rows):
        return (
            "The same tokens cut for nothing were measured by too few pairs, or on a disturbed"
            " machine: they bound nothing yet."
        )
    if not any(row.image_size for row in rows):
        return ""
    names = [name for name in all_methods() if only_cuts(name)]
    return (
        "What these token counts could save at best is not known: add the method"
        f" {' or '.join(names)} with the same counts."
    )


def _cost_model(
    own: pd.DataFrame, costs: CostModelRow, claimed: pd.DataFrame, scope: Scope, color: str
) -> None:
    """Times against work with the fit, and the predicted break-even beside those `claimed` along
    the tokens.
    """
    st.subheader("Fixed cost and cost of work", anchor=False)
    plain.sentence(
        f"Lines: fixed cost + cost of work × {costs.work_unit}s. Each side stands at its own"
        f" {costs.work_unit}s: at one size (joined by a grey line) the arm lies left of its"
        " baseline, and it is faster where it also lies lower.",
        "muted",
    )
    frame = cost_points(own, costs)
    if not frame["in_fit"].all():
        plain.sentence(
            "Hollow points are no part of the fit: the method removes nothing there, or a flag"
            " marks them as wrong.",
            "muted",
        )
    chart = draw_points(cost_info(frame, costs, color))
    show_chart(chart, name="cost-model", data=frame, scope_or_sweep=scope)
    predicted = (costs.predicted_x, costs.predicted_x_low, costs.predicted_x_high)
    places = pd.DataFrame(
        [
            ("predicted by the fit", *predicted),
            *(
                ("the answer", row.x, row.x_low, row.x_high)
                for row in claimed.dropna(subset=["x_low", "x_high"], how="all").itertuples()
            ),
        ],
        columns=["label", "x", "low", "high"],
    ).astype({"x": float, "low": float, "high": float})
    plain.sentence(
        "Break-even: what the fit predicts, and the bracket between measured points.", "muted"
    )
    title = "Break-even in tokens, with its interval"
    try:
        drawn = place_chart(places, list(own["tokens"]), title, color)
    except ValueError as problem:
        plain.sentence(f"{problem}.".capitalize(), "muted")
        return
    show_chart(drawn, name="break-even-of-the-fit", data=places, scope_or_sweep=scope)


def _wall(sides: list[Sides], scope: Scope) -> None:
    """Classes of time of both sides, and what differs."""
    st.subheader("Where the wall time goes", anchor=False)
    parts, differences = wall_parts(sides), wall_differences(sides)
    if parts.empty:
        plain.sentence(
            "The profiles hold kernels one by one, without a timeline: gaps are not known.", "muted"
        )
        return
    show_chart(wall_chart(parts), name="wall", data=parts, scope_or_sweep=scope)
    chart = difference_chart(differences)
    show_chart(chart, name="wall-differences", data=differences, scope_or_sweep=scope)
    for note in dict.fromkeys(each.condition.note for each in sides):
        plain.sentence(f"Bars: {note}", "muted")


def _activities_and_roofline(
    sides: list[Sides], own: pd.DataFrame, scope: Scope, color: str
) -> None:
    """Kernels or operators of one condition, at first of the smallest at which the arm does not
    pay, and its roofline.
    """
    places = {each.place: each for each in sides}
    st.subheader("What runs longer, what shorter", anchor=False)
    default = place_that_fails(sides, own)
    chosen = places[filters.choose_one("At", list(places), "at", default)]
    found = activities(chosen.baseline.row.profile_id, chosen.arm.row.profile_id)
    if found.empty:
        plain.sentence("The profile holds no kernels or operators.", "muted")
    else:
        plain.sentence(
            "Totals of the profiled rounds, which have no intervals: small differences may be"
            " noise.",
            "muted",
        )
        chart = activity_chart(activity_rows(found))
        show_chart(chart, name="activities", data=found, scope_or_sweep=scope)
        with st.expander("All kernels and operators"):
            number = st.column_config.NumberColumn
            config = {
                "name": st.column_config.TextColumn("Name", width="large"),
                "baseline_ms": number("Baseline, ms", format="%.4f"),
                "arm_ms": number("Arm, ms", format="%.4f"),
                "difference_ms": number("Difference, ms", format="%+.4f"),
                "baseline_count": number("Runs, baseline", format="%.0f"),
                "arm_count": number("Runs, arm", format="%.0f"),
            }
            st.dataframe(found[list(config)], column_config=config, hide_index=True)
    st.subheader("Roofline", anchor=False)
    peaks = chosen.arm.peaks or chosen.baseline.peaks
    rates = roofline_points(chosen)
    if peaks is None or rates[["gflops", "gb_per_s"]].dropna().empty:
        plain.sentence(
            "The peaks of the machine, or operations and bytes of these profiles, are not known.",
            "muted",
        )
        return
    roofline = draw_points(roofline_info(rates, peaks, color))
    show_chart(roofline, name="roofline", data=rates, scope_or_sweep=scope)


def _not_profiled(arm: str) -> None:
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


def _what_to_do(report: AuditReport, arm: str) -> None:
    """What would settle the doubts that the audit has in an arm, or in the unmodified model."""
    doubts = [
        each
        for each in report.findings
        if each.severity != "note" and (not each.arms or arm in each.arms)
    ]
    if doubts:
        settled = "; ".join(dict.fromkeys(each.settles for each in doubts[:MAX_FINDINGS]))
        plain.sentence(
            "What to do: the audit of this sweep (at the end of the page) finds"
            f" {count(len(doubts), 'doubt')}. {texts.capitalised(settled)}."
        )


def _sweep_audit(sweep: str, points: int) -> None:
    """What the rules of `breakeven audit` find in this sweep."""
    st.subheader("Audit of this sweep", anchor=False)
    if points > MAX_AUDITED and not st.toggle(
        f"Audit {count(points, 'point')}", key="audit", bind="query-params"
    ):
        plain.sentence(f"The sweep is large; in a terminal: breakeven audit {sweep}", "muted")
        return
    report = audit_report(sweep)
    plain.sentence(f"{texts.capitalised(report.answer)}.")
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
            columns = ["Severity", "Rule", "Finding", "To settle it"]
            st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True)


def _show() -> None:
    """The page, from its answer down."""
    scope = filters.chosen_scope()
    points, break_evens = queries.scope_points(scope)
    points = with_promises(points)
    arms = list(dict.fromkeys(points["arm"]))
    arm = filters.choose_one("Arm", arms, "arm", most_surprising(points))
    own, curves = points[points["arm"] == arm], break_evens[break_evens["arm"] == arm]
    # of the unmodified model under another runtime the colour of an arm, else that of other pages
    dense = own["method"].iloc[0] == "dense"
    color = SIDE_COLORS["arm"] if dense else arm_styles(points)[arm].color
    if scope.facet is not None:
        value = own[scope.facet].value_counts().index[0]
        plain.sentence(f"One panel is explained: {scope.facet.replace('_', ' ')} {value}.", "muted")
        own, curves = own[own[scope.facet] == value], curves[curves[scope.facet] == value]
    fits = queries.scope_rows(scope, "cost_model")
    fits = fits[fits["curve_id"].isin(own["curve_id"])]
    costs = next(iter(rows_of(fits, CostModelRow)), None)
    rows = texts.point_rows(own.sort_values("tokens", kind="stable"))
    sides = sides_of(profiled(scope), rows[0].arm_id, rows[0].baseline_id)
    audited = int(queries.panels(scope.sweep)["points"].sum())

    plain.headline(f"{arm} against {rows[0].against}")
    curves = curves[curves["axis"] == "tokens"]
    for claims in rows_by_arm(curves).values():
        unit = token_unit(rows[0])
        sentence = f"Break-even along {unit}: {describe_break_even(claims, unit)}."
        plain.sentence(texts.typeset(sentence))
    _waterfall(rows, scope, color)
    _savings(own, scope, color)
    measured = texts.point_rows(points)
    peaks = measured_peaks(*{(row.environment, row.host) for row in measured})
    if (reached := peak_share(measured, peaks)) is not None:
        plain.sentence(f"{texts.capitalised(describe_peak(reached))}.")
    if not sides:
        plain.sentence(f"{texts.capitalised(profile_needed())}.")
    for line in _size_lines(rows, sides):
        plain.sentence(texts.typeset(line))
    plain.sentence("\n".join(map(texts.typeset, _fit_lines(rows[-1], costs, scope))))
    if audited <= MAX_AUDITED:
        _what_to_do(audit_report(scope.sweep), arm)
    if costs is not None:
        _cost_model(own, costs, curves, scope, color)
    if sides:
        _wall(sides, scope)
        _activities_and_roofline(sides, own, scope, color)
    else:
        _not_profiled(arm)
    _sweep_audit(scope.sweep, audited)
    show_glossary()


if __name__ == "__main__":
    _show()
