"""Curves in words: where a break-even lies, in a sentence, in the answer of a sweep and in the cell
of a map.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil, floor, log10
from typing import Literal, NamedTuple, get_args

from sweeps.analysis.rows import ClaimRow, ConditionRow, CostModelRow, SizedRow
from sweeps.model.condition import Runtime
from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import WHOLE, axis_label, axis_value, count, p_text
from sweeps.stats.curve import Curve, Point, break_even
from sweeps.stats.pooling import Verdict

RUNTIMES: tuple[str, ...] = get_args(Runtime)
NOT_SHOWN = "not shown to pay"
"""Of a curve of which no point is faster, and none can gain much."""
BREAK_EVEN_NOTE = (
    "A break-even is a bracket between measured points, wrong for at most 1 curve in 20; speed-ups"
    f" have {INTERVAL} intervals. The likeliest place in it comes from the cost model, time ="
    " launch + work × MACs, where that fits, else from the line through its ends, where the points"
    " between agree with it."
)
"""How claims about curves are read, next to intervals of another level."""


def axis_place(x: float, axis: str, token_unit: str, parameter: str | None = None) -> str:
    """A place on an axis with its unit, such as `36 prompt tokens`, `42 % of GMACs saved`, `batch
    size 8` or `keep_rate 0.5`.
    """
    return axis_span(x, x, axis, token_unit, parameter)


def axis_span(
    first: float | None, last: float, axis: str, token_unit: str, parameter: str | None = None
) -> str:
    """From one place to another, such as `4 to 196 tokens`."""
    label = axis_label(axis, parameter)
    unit = token_unit if axis == "tokens" else label.unit
    ends = " to ".join(dict.fromkeys(axis_value(x, axis) for x in (first, last)))
    if axis == "tokens" and not unit.endswith("tokens"):
        return f"{unit} {ends}"
    return f"{label.before}{ends} {unit}".rstrip()


def token_unit(row: SizedRow) -> str:
    """What the tokens of a row of a view are, in a sentence."""
    return row.x_axis or ("tokens" if row.prompt_tokens is None else "prompt tokens")


def describe_break_even(rows: Sequence[ClaimRow], token_unit: str, *, brief: bool = False) -> str:
    """The break-even of one curve, its rows of the view `break_even`, as the rest of a sentence
    that begins with the arm's label.

    A `brief` one has no reasons.
    """
    if not rows:
        return "not analysed"
    first = rows[0]
    elsewhere = {"pays_from": "below", "pays_up_to": "beyond", "pays_at_both_ends": "between"}.get(
        first.verdict
    )
    ends = [_claimed(row, token_unit) for row in sorted(rows, key=_order) if row.direction]
    more = ""
    if first.verdict == "pays_between":
        brackets = [_bracket(row, token_unit) for row in rows if row.direction]
        text = f"{first.why[:1].lower()}{first.why[1:].removesuffix('.')}"
        text += "; break-even " * bool(brackets) + ", ".join(brackets)
        if len(brackets) > 1:  # clear points of opposite verdict on both sides of others
            text = f"pays at some sizes only, {text}"
    elif ends:
        text = ", and ".join(ends)
        more = _beyond(first, elsewhere) if elsewhere else ""
    elif first.verdict == "always":
        text = f"pays at every point measured, {_span(first, token_unit)}"
    elif first.verdict == "same":
        text = f"no different at any point measured, {_span(first, token_unit)}"
        more = _possible(first.largest_gain)
    elif first.verdict == "never":
        text = f"{NOT_SHOWN} at any point measured, {_span(first, token_unit)}"
        more = _possible(first.largest_gain)
    elif first.verdict == "no_effect":
        text, more = "does nothing here", ": at every point it processes what the baseline does"
    else:
        text, more = (
            "cannot tell",
            (
                "; more points or pairs are needed"
                if first.points
                else "; a flag marks every point as wrong"
            ),
        )
    return "; ".join(
        filter(
            None,
            (
                text if brief else text + more,
                "" if brief else _left_out(first),
                describe_missing(first),
            ),
        )
    )


def break_even_headline(rows: Sequence[ClaimRow], token_unit: str) -> str:
    """The break-even of one curve in a few words that follow the arm's label, such as `pays at 36
    to 196 tokens, likely from 19`.
    """
    ends = [
        _claimed(row, token_unit, sides=False) for row in sorted(rows, key=_order) if row.direction
    ]
    if rows and rows[0].verdict == "pays_between":
        return CLAIMS[rows[0].verdict]
    return " and ".join(ends) or describe_break_even(rows, token_unit, brief=True)


def _known(*ends: float | None) -> float:
    """The first that is known."""
    return next((end for end in ends if end is not None), 0.0)


def _order(row: ClaimRow) -> float:
    """By which the crossings of a curve are in the order of x."""
    return _known(row.x_low, row.x_high)


def _claimed(row: ClaimRow, token_unit: str, *, sides: bool = True) -> str:
    """The measured points that pay, beyond a bracket or a bound: `pays at every point measured from
    36 to 196 tokens (slower at 16; likely from 19)`, without `sides` `pays at 36 to 196 tokens,
    likely from 19`.
    """
    gains = row.direction != "loses"
    low, high = _outward(row.x_low, floor, row.axis), _outward(row.x_high, ceil, row.axis)
    first, last = (high, _known(row.x_last, high)) if gains else (_known(row.x_first, low), low)
    paying = axis_span(first, _known(last), row.axis, token_unit, row.varied_parameter)
    likely = f"likely {'from' if gains else 'to'} {axis_value(_known(row.x), row.axis)}"
    known = [] if row.x is None else [likely]
    if not sides:
        return ", ".join([f"pays at {paying}", *known])
    claim = f"pays at {paying if first == last else f'every point measured from {paying}'}"
    other = low if gains else high
    if other is None:
        return claim
    slower = f"{_sides(row)[1]} at {axis_value(other, row.axis)}"
    return f"{claim} ({'; '.join([slower, *known])})"


def _bracket(row: ClaimRow, token_unit: str) -> str:
    """Between which points a break-even lies: `between 9 and 36 tokens`."""
    low, high = _outward(row.x_low, floor, row.axis), _outward(row.x_high, ceil, row.axis)
    span = axis_span(low, _known(high), row.axis, token_unit, row.varied_parameter)
    return f"between {span.replace(' to ', ' and ')}"


def _span(row: ClaimRow, token_unit: str) -> str:
    """The points that a claim rests on: `4 to 196 tokens`."""
    ends = row.x_first, _known(row.x_last)
    return axis_span(*ends, row.axis, token_unit, row.varied_parameter)


def _beyond(row: ClaimRow, where: str) -> str:
    """What may be lost on the other side of a bound, where no point is clearly slower."""
    if row.worst_loss is None:
        return f"; {where}, nothing bounds the loss"
    loss = _sides(row)[1]
    if not row.worst_loss > 0:
        return f"; {where}, not {loss}"
    return f"; {where}, perhaps {loss}, by {_percent(row.worst_loss)} at most"


def _sides(row: ClaimRow) -> tuple[str, str]:
    """A point that gains, and one that loses, by the metric of a curve."""
    return ("faster", "slower") if METRICS[row.metric].compared == "ratio" else ("less", "more")


def _possible(gain: float | None) -> str:
    """What a method that is not shown to pay can still gain."""
    if gain is None:
        return ""
    return f"; it can gain {_percent(gain)} at most" if gain > 0 else "; it can gain nothing"


def _percent(share: float) -> str:
    """Rounded up, because it bounds: two digits below 10 %, else whole per cent."""
    percent = 100 * share
    digits = 0 if percent >= 10 else 1 - floor(log10(percent))
    step = 10**-digits
    return f"{ceil(percent / step - 1e-9) * step:.{digits}f} %"


def _outward(x: float | None, outward: Callable[[float], int], axis: str) -> float | None:
    """The end of an interval as it is printed: whole numbers are rounded so that the interval does
    not shrink.
    """
    return x if x is None or axis not in WHOLE else outward(x)


def describe_missing(row: ClaimRow) -> str:
    """What a curve lacks, such as `incomplete, 5 of 8 points are missing on host a`; empty if
    nothing.
    """
    missing = row.points_missing
    return (
        f"incomplete, {missing} of {row.points + missing} points are missing on host {row.host}"
        if missing
        else ""
    )


def _left_out(row: ClaimRow) -> str:
    """The points that a flag excludes, such as `left out by a flag: 9, 64`."""
    return f"left out by a flag: {row.left_out}" if row.left_out else ""


def describe_cost_model(row: CostModelRow, token_unit: str) -> str:
    """A cost model as the rest of a sentence; empty where it predicts no break-even."""
    predicted = _range(row.predicted_x, row.predicted_x_low, row.predicted_x_high, token_unit)
    sides = ((row.alpha, row.alpha_baseline), (row.beta, row.beta_baseline))
    if not predicted or row.alpha is None:
        return ""
    launch, work = (
        f"{1e3 * _known(own):.3g} ms (baseline {1e3 * _known(base):.3g})" for own, base in sides
    )
    text = f"launch {launch}, work per {row.work_unit} {work}: predicts break-even {predicted}"
    misfit = f"; it does not fit (p {p_text(_known(row.misfit_p), '= ')})"
    return text + (misfit if row.verdict == "misfit" else "")


def _range(x: float | None, low: float | None, high: float | None, token_unit: str) -> str:
    """`at 36 (30 to 41) tokens`, `at most 41 tokens`, `at least 30 tokens`; empty where nothing is
    known.
    """
    low, high = _outward(low, floor, "tokens"), _outward(high, ceil, "tokens")
    if low is None or high is None:
        bound, side = (high, "most") if low is None else (low, "least")
        return "" if bound is None else f"at {side} {axis_place(bound, 'tokens', token_unit)}"
    place = "" if x is None else f"{axis_value(x, 'tokens')} "
    return f"at {place}({axis_value(low, 'tokens')} to {axis_value(high, 'tokens')}) {token_unit}"


CLAIMS: Mapping[str, str] = {
    "always": "pays everywhere",
    "crossing": "has a break-even",
    "pays_from": "pays from some point on",
    "pays_up_to": "pays up to some point",
    "pays_at_both_ends": "pays at both ends",
    "pays_between": "is faster at some sizes",
    "same": "is no different",
    "never": f"is {NOT_SHOWN}",
    "no_effect": "does nothing",
    "unclear": "cannot tell",
}
"""What a verdict of a curve claims, without numbers."""


class CurveAnswer(NamedTuple):
    """A curve and what it claims."""

    method: str
    label: str
    """The arm, and what distinguishes its curve from others."""
    headline: str
    """The break-even in a few words."""
    sentence: str
    """The break-even in the words of `sweeps.text.curves.describe_break_even`."""
    verdict: str
    merit: tuple[int, float, float]
    """See `merit_of`."""
    for_use: bool
    """Whether it is an optimisation; controls are not recommended."""

    @property
    def line(self) -> str:
        return f"{self.label}: {self.sentence}"


def answer_of_curve(
    method: str, label: str, rows: Sequence[ClaimRow], *, for_use: bool
) -> CurveAnswer:
    """What a curve claims by its rows of the view `break_even`; without any, nothing."""
    unit = token_unit(rows[0]) if rows else ""
    verdict, merit = (rows[0].verdict, merit_of(rows)) if rows else ("unclear", NO_MERIT)
    few, whole = break_even_headline(rows, unit), describe_break_even(rows, unit)
    return CurveAnswer(method, label, few, whole, verdict, merit, for_use)


NO_MERIT = (0, 0.0, 0.0)


def merit_of(rows: Sequence[ClaimRow]) -> tuple[int, float, float]:
    """The larger, the better the curve of these rows: whether it pays everywhere, from some point
    on, only elsewhere, or nowhere; then from how early a measured point on, and how early likely.
    """
    first = rows[0]
    shown = _known(first.x_high, first.x_low)
    likely = _known(first.x, shown)
    if first.verdict == "always":
        return 3, 0.0, 0.0
    if first.verdict == "pays_from" or (first.verdict == "crossing" and first.direction == "gains"):
        return 2, -shown, -likely
    elsewhere = {"pays_up_to", "pays_at_both_ends", "pays_between", "crossing"}
    return (1, likely, 0.0) if first.verdict in elsewhere else NO_MERIT


def pays_at(rows: Sequence[ClaimRow], x: float) -> bool:
    """Whether the break-even of a curve, by its rows, claims that it pays at `x`."""
    if not rows or rows[0].verdict == "pays_between":
        return False
    return rows[0].verdict == "always" or any(
        x <= _known(row.x_low) if row.direction == "loses" else x >= _known(row.x_high)
        for row in rows
        if row.direction
    )


def answer_of_curves(curves: Sequence[CurveAnswer]) -> str:
    """All curves in a sentence, but for those of controls; one curve alone is its line."""
    for_use = _without_controls(curves)
    if len(curves) == 1:
        return f"{curves[0].line}."
    best = max(for_use, key=lambda curve: curve.merit)
    if not best.merit[0]:
        return f"No arm is known to pay in what was measured: {tally(for_use)}."
    return f"{share_that_pays(for_use)}; best {best.line}."


def _without_controls(curves: Sequence[CurveAnswer]) -> list[CurveAnswer]:
    """Those of optimisations, or all where there are none."""
    return [curve for curve in curves if curve.for_use] or list(curves)


def share_that_pays(curves: Sequence[CurveAnswer]) -> str:
    """`2 of 4 curves pay in at least a part of what was measured`, but for those of controls."""
    for_use = _without_controls(curves)
    pays = sum(curve.merit[0] > 0 for curve in for_use)
    return f"{pays} of {count(len(for_use), 'curve')} pay in at least a part of what was measured"


def headline_of_curves(curves: Sequence[CurveAnswer]) -> str:
    """The best of some curves in about twelve words."""
    for_use = _without_controls(curves)
    best = max(for_use, key=lambda curve: curve.merit)
    if len(curves) > 1 and not best.merit[0]:
        return "No arm is known to pay in what was measured"
    return f"{best.label} {best.headline}"


def tally(curves: Sequence[CurveAnswer]) -> str:
    """`3 × has a break-even, 1 × is not shown to pay`."""
    found = Counter(curve.verdict for curve in curves).most_common()
    return ", ".join(f"{number} × {CLAIMS[verdict]}" for verdict, number in found)


def answer_of_points(compared: int, best: str) -> str:
    """Speed-ups at single points; `best` is the one with a gain whose interval lies highest, in
    words, or empty.
    """
    return (
        f"Of {count(compared, 'comparison')} the one whose interval lies highest: {best}."
        if best
        else f"{no_gain(compared)}."
    )


def no_gain(compared: int) -> str:
    return f"None of {count(compared, 'comparison')} shows a gain"


CellKind = Literal["pays", "limited", "never", "none", "unclear", "differs"]
"""`pays` from a size on; `limited`: up to a size, or at both ends; `never`: not shown to pay, and
gains little; `none`: does nothing; `differs`: several curves, not alike."""
ORDER: tuple[CellKind, ...] = ("pays", "limited", "unclear", "differs", "none", "never")
"""From what is to be preferred to what is not."""


class BreakEvenCell(NamedTuple):
    """What a cell shows."""

    text: str
    """`≤ 36`, `53 to 71`, `always`, `up to 100`, `not shown to pay`, `no effect`, `?` or
    `differs`."""
    kind: CellKind
    place: float | None
    """Tokens from which on it pays at the latest; 0 where it pays at every point, `None` where it
    does not."""
    sentence: str
    """The same with its reasons, for a hover text."""


def runtime_table(
    curves: Iterable[tuple[ConditionRow, str, Sequence[ClaimRow]]],
) -> dict[str, dict[str, str]]:
    """Break-evens in cells: for each runtime and dtype, in the order of the runtimes, those of the
    arms by label; empty with one runtime.

    Of each curve a point, the label of its arm, and its claims, none where it has one size.
    """
    cells: dict[tuple[int, str], dict[str, str]] = {}
    for point, label, claims in curves:
        place = RUNTIMES.index(point.runtime or "")
        cells.setdefault((place, point.dtype), {})[label] = with_likely_place(claims)
    several = len({place for place, _ in cells}) > 1
    return {f"{RUNTIMES[key[0]]} {key[1]}": cells[key] for key in sorted(cells) if several}


def with_likely_place(claims: Sequence[ClaimRow]) -> str:
    """The cell of one curve, with the likeliest place where there is one; `-` without a claim."""
    if not claims:
        return "-"
    likely = claims[0].x
    return break_even_cell(claims).text + ("" if likely is None else f", likely {likely:,.0f}")


def break_even_cell(rows: Sequence[ClaimRow]) -> BreakEvenCell:
    """The cell of one curve, by its rows along the tokens."""
    first = rows[0]
    sentence = describe_break_even(rows, token_unit(first))
    bounds = {row.direction: row for row in rows}
    low = f"{floor(_known(bounds.get('loses', first).x_low)):,}"
    high = f"{ceil(_known(bounds.get('gains', first).x_high)):,}"
    if first.verdict == "pays_at_both_ends":
        return BreakEvenCell(f"up to {low}, from {high}", "limited", 0.0, sentence)
    if first.verdict == "pays_up_to" or (
        first.verdict == "crossing" and first.direction == "loses"
    ):
        return BreakEvenCell(f"up to {low}", "limited", 0.0, sentence)
    if first.verdict in ("crossing", "pays_from"):
        text = f"≤ {high}" if first.x_low is None else f"{floor(first.x_low):,} to {high}"
        return BreakEvenCell(text, "pays", first.x_high, sentence)
    words: dict[str, tuple[str, CellKind, float | None]] = {
        "always": ("always", "pays", 0.0),
        "pays_between": ("in part", "limited", 0.0),
        "same": ("no different", "never", None),
        "never": (NOT_SHOWN, "never", None),
        "no_effect": ("no effect", "none", None),
    }
    return BreakEvenCell(*words.get(first.verdict, ("?", "unclear", None)), sentence)


def earliest(cells: Sequence[BreakEvenCell]) -> int:
    """Place of the cell to prefer of several arms: the one that pays from the fewest tokens on."""
    return min(
        range(len(cells)),
        key=lambda at: (
            ORDER.index(cells[at].kind),
            cells[at].place if cells[at].place is not None else 0.0,
        ),
    )


def alike(cells: Sequence[BreakEvenCell]) -> BreakEvenCell:
    """The cell of several curves of one arm, such as those of several hosts: theirs where they
    agree.
    """
    if len({cell.text for cell in cells}) == 1:
        return cells[0]
    return BreakEvenCell(
        "differs", "differs", None, "\n".join(f"{cell.text}: {cell.sentence}" for cell in cells)
    )


X_DIGITS = 4
"""Of a place that is not a whole number."""
WORDS: dict[Verdict, str] = {
    "faster": "faster",
    "slower": "slower",
    "same": "no different",
    "unclear": "not clear",
    "insufficient": "measured by too few pairs",
    "quarantined": "measured on a slowed machine alone",
}

AMOUNT_WORDS: dict[Verdict, str] = {
    **WORDS,
    "faster": "less",
    "slower": "more",
    "insufficient": "read once, which is too little",
}
"""Of amounts such as peak memory and energy."""


def describe_curve(
    curve: Curve,
    parameter: str | None = None,
    words: Mapping[Verdict, str] = WORDS,
    *,
    x_axis: str | None = None,
) -> str:
    """The stretches of each verdict along the axis in a sentence, such as `Along tokens: not clear
    at 4 and 16, faster at 9 and 36 to 196.`

    `parameter` is the one that varies along the axis `parameter`, `x_axis` what tokens are.
    """
    usable = curve.usable()
    points = [point for point in usable if not point.no_op]
    runs: dict[Verdict, list[str]] = {}
    for verdict, run in groupby(points, key=lambda point: point.verdict):
        runs.setdefault(verdict, []).append(_stretch(list(run), curve.axis))
    stretches = [f"{words[verdict]} at {_listed(places)}" for verdict, places in runs.items()]
    if nothing := [point for point in usable if point.no_op]:
        stretches.append(f"removes nothing at {_stretch(nothing, curve.axis)}")
    if not stretches:
        return "No points were measured."
    along = axis_label(curve.axis, parameter, x_axis).along
    return f"Along {along}: {', '.join(stretches)}."


def claim_text(curve: Curve, axis: str | None) -> str:
    """What a curve along `axis` of its search, or the size of the input, allows to claim so far, in
    the words of the report.
    """
    found = break_even(curve)
    whole = ClaimRow(
        metric="latency",
        axis=curve.axis,
        varied_parameter=axis,
        why=describe_curve(curve, axis),
        left_out=points_left_out(curve),
        **found.model_dump(exclude={"crossings"}),
    )
    rows = [
        replace(whole, x=at.x, x_low=at.low, x_high=at.high, direction=at.direction)
        for at in found.crossings
    ]
    return describe_break_even(rows or [whole], "tokens", brief=True)


def points_left_out(curve: Curve) -> str | None:
    """Where the points lie that do not count as a flag marks them as wrong, such as `9, 64`."""
    wrong = [point.x for point in curve.points if point.wrong]
    return ", ".join(axis_value(x, curve.axis, X_DIGITS) for x in wrong) or None


def _listed(places: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))


def _stretch(points: Sequence[Point], axis: str) -> str:
    """The first and the last x, or the only one."""
    first, last = (axis_value(point.x, axis, X_DIGITS) for point in (points[0], points[-1]))
    return first if len(points) == 1 else f"{first} to {last}"
