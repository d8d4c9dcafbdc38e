"""Page: why an arm takes the time that it takes, from what was measured of it: promise, fit over
sizes, profiles, and the audit.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
    pairs_of,
)
from store.read.queries import panel_rows, peaks_of_hosts
from store.rows.frames import rows_of
from store.rows.location import database_option
from sweeps.analysis.audit.report import AuditReport
from sweeps.analysis.labels import GAINS, PeaksOfHosts, peak_share
from sweeps.analysis.rows import CostModelRow
from sweeps.analysis.waterfall import (
    TimeStep,
    model_parts,
    operator_reasons,
    profile_parts,
    promise_of,
    waterfall,
)
from sweeps.model.condition import Device
from sweeps.model.flags import split_flags, wrong
from sweeps.model.profile import IntervalEstimate
from sweeps.number_format import count
from sweeps.stats.cost_model import RelativeCosts
from sweeps.text.condition_text import describe_peak
from sweeps.text.curves import describe_break_even, describe_cost_model, token_unit
from sweeps.text.explanation import explains, operator_words, waterfall_headline
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
from webapp.charts.explain import (
    activity_chart,
    activity_rows,
    cost_info,
    roofline_info,
    wall_chart,
    waterfall_chart,
    waterfall_rows,
)
from webapp.charts.panels import rows_by_arm
from webapp.charts.points import SIDE_COLORS
from webapp.display import plain, texts
from webapp.display.arm_style import arm_styles
from webapp.display.links import POINT_KEY
from webapp.display.texts import PointRow
from webapp.queries import Scope, kept
from webapp.widgets import address, filters
from webapp.widgets.chart_block import show_chart
from webapp.widgets.words import show_glossary
from workers.methods import all_methods, purpose
from workers.methods.arm_labels import params_label

# Flag of an arm that does what its baseline does at a size; such points are no part of a fit.
NO_EFFECT = "no_effect"
PHASES: Mapping[str, str] = {"forward": "", "prefill": "prefill", "decode": "decode step"}
# The metric whose time is that of a profiled phase.
METRIC_OF_PHASE = {"forward": "latency", "decode": "tpot"}
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
        row = self.arm.row
        tool = self.arm.profile.tool if row.file else ""
        return ", ".join(filter(None, [self.arm.size, PHASES[row.phase], tool])) or "forward"


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


# Kernels or operators of two profiles side by side.
activities = kept(activity_differences)


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


def add_promises(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `promised`, and `ceiling` (with its ends): that of a free cut
    of the same tokens.
    """
    promised = map(promise_of, texts.point_rows(points))
    series = pd.Series(promised, index=points.index, dtype=float)
    return with_ceilings(points, only_cuts).assign(promised=series)


def first_size(rows: Sequence[PointRow], profiled_ids: Collection[str | None]) -> PointRow:
    """The largest size at which an arm is not shown to pay, of those with enough pairs, and of
    those that were profiled, if there are any; where it always pays, the largest.
    """
    known = [row for row in rows if row.verdict not in texts.UNDECIDED] or list(rows)
    known = [row for row in known if row.condition_id in profiled_ids] or known
    failing = [row for row in known if texts.speed(row).finding not in GAINS]
    return (failing or known)[-1]


def steps_of(row: PointRow, sides: Sequence[Sides], costs: CostModelRow | None) -> list[TimeStep]:
    """The waterfall of a point: by the profile of its condition where that does not contradict it,
    else by the cost model; empty where nothing follows from its times.
    """
    if row.verdict in texts.UNDECIDED:
        return []
    if only_cuts(row.method):  # it is the ceiling itself
        row = replace(row, ceiling=None)
    timed = IntervalEstimate(value=row.speedup, low=row.speedup_low, high=row.speedup_high)
    parts = [] if costs is None else model_parts(row, costs)
    for each in sides:
        own = each.arm.row
        same = own.condition_id == row.condition_id and METRIC_OF_PHASE.get(own.phase) == row.metric
        if same and explains(each.arm.profile, timed):
            parts = profile_parts(row, each.baseline.profile, each.arm.profile) or parts
    return waterfall(row, parts)


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
    """The arm of rows of `add_promises` whose promise lies above its interval by the largest
    factor; flagged ones last.
    """
    for_use = points[~points["method"].map(only_cuts).astype(bool)]
    points = for_use if len(for_use) else points
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
    removing = [row for row in rows if NO_EFFECT not in split_flags(row.flags)] or [rows[-1]]
    for row in [] if sides else removing[-1:] + removing[:-1][:1]:
        if few := texts.pairs_reached(row):
            yield f"At {name_size(row)}: {few}, from which nothing follows yet."
            continue
        free = "" if only_cuts(row.method) else explain_ceiling(row)
        yield f"At {name_size(row)}: {join_sentences([explain_promise(row), free])}."
    if own_work := explain_own_work(rows[-1]):
        yield f"At {name_size(rows[-1])}: {own_work}."
    if bound := _ceiling_words(rows):
        yield bound


def _fit_lines(costs: CostModelRow, scope: Scope) -> Iterator[str]:
    """What the fit over sizes gives."""
    relative = fitted_costs(scope, costs.curve_id)
    yield f"Cost model: {describe_fit(costs)}."
    yield from (f"{texts.capitalised(each)}." for each in explain_costs(costs, relative))
    if relative is not None:
        yield RATIOS_OF_COSTS
    if text := describe_cost_model(costs, token_unit(costs)):
        yield f"It {text[text.index('predicts') :] if 'predicts' in text else text}."


def _ceiling_words(rows: Sequence[PointRow]) -> str:
    """Whether a free cut bounds what the points of an arm reach, or what would show it; empty for
    models without this method.
    """
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


def _cost_model(own: pd.DataFrame, costs: CostModelRow, scope: Scope, color: str) -> None:
    """Times against work with the fit."""
    frame = cost_points(own, costs)
    chart = cost_info(frame, costs, color)
    lines = list(_fit_lines(costs, scope))
    show_chart(chart, "cost-model", frame, scope, lines[0])
    unit = costs.work_unit
    plain.sentence(
        f"Lines: fixed cost + cost of work × {unit}s. Each side stands at its own {unit}s: at one"
        " size (joined by a grey line) the arm lies left of its baseline, and it is faster where it"
        " also lies lower. Hollow points are no part of the fit: the method removes nothing there,"
        " or a flag marks them as wrong.",
        "muted",
    )
    plain.sentence("\n".join(lines))


def _wall(sides: Sequence[Sides], scope: Scope) -> None:
    """Classes of time of both sides at every size."""
    parts = wall_parts(sides)
    if parts.empty:
        plain.sentence(
            "The profiles hold kernels one by one, without a timeline: gaps are not known.", "muted"
        )
        return
    answer = texts.extremes("Wall time of a forward, ms", parts, "side", "wall_ms")
    show_chart(wall_chart(parts), "wall", parts, scope, answer)
    for note in dict.fromkeys(each.condition.note for each in sides):
        plain.sentence(f"Bars: {note}", "muted")


def _operators(side: Sides, size: str, scope: Scope) -> None:
    """Why, by operator, and the kernels or operators that run longer or shorter."""
    found = activities(side.baseline.row.profile_id, side.arm.row.profile_id)
    if found.empty:
        plain.sentence("The profile holds no kernels or operators.", "muted")
        return
    reasons = operator_reasons(pairs_of(found))
    plain.sentence("\n".join(f"• {operator_words(each, size)}." for each in reasons))
    answer = texts.extremes("Arm less baseline, ms", found, "name", "difference_ms")
    chart = activity_chart(activity_rows(found))
    show_chart(chart, "activities", found, scope, answer)
    plain.sentence(
        f"{side.place}: totals of the profiled rounds, which have no intervals; small differences"
        " may be noise. The file has all of them.",
        "muted",
    )


def _roofline(side: Sides, scope: Scope, color: str) -> None:
    peaks = side.arm.peaks or side.baseline.peaks
    rates = roofline_points(side)
    if peaks is None or rates[["gflops", "gb_per_s"]].dropna().empty:
        plain.sentence(
            "The peaks of the machine, or operations and bytes of these profiles, are not known.",
            "muted",
        )
        return
    roofline = roofline_info(rates, peaks, color)
    answer = texts.extremes("GFLOP/s", rates, "name", "gflops")
    show_chart(roofline, "roofline", rates, scope, answer)


def _not_profiled() -> None:
    """What is not known without a profile, and what would show it."""
    plain.sentence(f"{texts.capitalised(profile_needed())}.")
    plain.command(PROFILE_SECTION)


def _audit(sweep: str, arm: str) -> None:
    """A badge with the doubts that `breakeven audit` has in this arm, which opens their list."""
    if int(queries.panels(sweep)["points"].sum()) > MAX_AUDITED:
        return
    report = audit_report(sweep)
    own = [each for each in report.findings if arm in each.arms]
    doubts = sum(each.severity != "note" for each in own)
    badge = count(doubts, "doubt") if doubts else "no doubt"
    with st.popover(f"Audit: {badge}", icon=":material/fact_check:"):
        plain.sentence(f"{texts.capitalised(report.answer)}.")
        for found in own:
            plain.sentence(f"{found.severity}: {found.rule}", "strong")
            plain.sentence(f"{found.sentence}.")
            plain.sentence(f"To settle it: {found.settles}.", "muted")
        others = count(len(report.findings) - len(own), "finding")
        command = f"breakeven audit {sweep}{database_option(None)}"
        plain.sentence(f"{others} on other arms, or on the sweep: {command}", "muted")


def _words(rows: Sequence[PointRow], sides: Sequence[Sides], points: pd.DataFrame) -> None:
    """Every sentence of the report on this arm, and where the unmodified model stands."""
    measured = texts.point_rows(points)
    peaks = measured_peaks(*{(row.environment, row.host) for row in measured})
    if (reached := peak_share(measured, peaks)) is not None:
        plain.sentence(f"{texts.capitalised(describe_peak(reached))}.")
    for line in _size_lines(rows, sides):
        plain.sentence(line)


class Subject(NamedTuple):
    """The arm that the page explains."""

    arm: str
    color: str
    own: pd.DataFrame
    """Its points, with promises."""
    curves: pd.DataFrame
    """Its break-evens along the tokens."""
    costs: CostModelRow | None
    rows: list[PointRow]
    """Its points in order of size."""
    sides: list[Sides]


def _choose_arm(scope: Scope, points: pd.DataFrame, break_evens: pd.DataFrame) -> Subject:
    arm = filters.choose_one(
        "Arm", list(dict.fromkeys(points["arm"])), "arm", most_surprising(points)
    )
    own, curves = points[points["arm"] == arm], break_evens[break_evens["arm"] == arm]
    # of the unmodified model under another runtime the colour of an arm, else that of other pages
    dense = own["method"].iloc[0] == "dense"
    color = SIDE_COLORS["arm"] if dense else arm_styles(points)[arm].color
    if scope.facet is not None:  # one panel is explained, the one with the most points
        value = own[scope.facet].value_counts().index[0]
        own, curves = own[own[scope.facet] == value], curves[curves[scope.facet] == value]
    fits = queries.scope_rows(scope, "cost_model")
    fits = fits[fits["curve_id"].isin(own["curve_id"])]
    costs = next(iter(rows_of(fits, CostModelRow)), None)
    rows = texts.point_rows(own.sort_values("tokens", kind="stable"))
    sides = sides_of(profiled(scope), rows[0].arm_id, rows[0].baseline_id)
    return Subject(arm, color, own, curves[curves["axis"] == "tokens"], costs, rows, sides)


def _choose_size(subject: Subject) -> PointRow:
    first = first_size(subject.rows, {each.arm.row.condition_id for each in subject.sides})
    sizes = {f"{row.tokens:,.0f}": row for row in subject.rows}
    if len(sizes) < 2:
        return first
    chosen = address.one_of("size", sizes, f"{first.tokens:,.0f}")
    shown = address.widget("size", chosen)
    st.select_slider(first.x_axis or "Tokens", list(sizes), width=300, **shown)
    return sizes[chosen]


def _show_waterfall(subject: Subject, row: PointRow, scope: Scope) -> None:
    """The answer, and the steps from the baseline's time to the arm's."""
    device: Device = "cuda" if row.device == "cuda" else "cpu"
    steps = steps_of(row, subject.sides, subject.costs)
    known = waterfall_headline(subject.arm, steps, device) if steps else ""
    answer = known or f"{subject.arm}: nothing follows from its times here"
    if known and row.verdict == "unclear":
        answer = f"{subject.arm}: cannot tell, {texts.speed_numbers(row)}"
    plain.headline(answer)
    unit = token_unit(row)
    where = "" if scope.facet is None else f", {scope.facet.replace('_', ' ')} "
    where += "" if scope.facet is None else str(subject.own[scope.facet].iloc[0])
    for claims in rows_by_arm(subject.curves).values():
        claim = describe_break_even(claims, unit)
        plain.sentence(f"Against {row.against}{where}: {claim}.", "muted")
    if steps:
        frame = waterfall_rows(steps, device, subject.color)
        chart = waterfall_chart(frame, texts.time_title(row.metric))
        show_chart(chart, "waterfall", frame, scope, answer)


def _show_more(subject: Subject, side: Sides | None, points: pd.DataFrame, scope: Scope) -> None:
    """The rest of what is known, one part at a time."""
    own, color = subject.own, subject.color
    parts: dict[str, Callable[[], None]] = {
        "In words": partial(_words, subject.rows, subject.sides, points),
    }
    if subject.costs is not None:
        parts["Cost model"] = partial(_cost_model, own, subject.costs, scope, color)
    if side is not None:
        parts["Classes of time"] = partial(_wall, subject.sides, scope)
        parts["Roofline"] = partial(_roofline, side, scope, color)
    shown = address.one_of("more", parts, None)
    st.segmented_control("More", list(parts), **address.widget("more", shown))
    if shown:
        parts[shown]()


def _show() -> None:
    """The page, from its answer down."""
    scope = filters.chosen_scope()
    points, break_evens = queries.scope_points(scope)
    points = add_promises(points)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        subject = _choose_arm(scope, points, break_evens)
        row = _choose_size(subject)
        _audit(scope.sweep, subject.arm)
    _show_waterfall(subject, row, scope)
    same = [each for each in subject.sides if each.arm.row.condition_id == row.condition_id]
    places = {each.place: each for each in same or subject.sides}
    side = places[filters.choose_one("Profile", list(places), "profile")] if places else None
    if side is None:
        _not_profiled()
    else:
        _operators(side, name_size(row), scope)
    _show_more(subject, side, points, scope)
    show_glossary()


if __name__ == "__main__":
    _show()
