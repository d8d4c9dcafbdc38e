"""Curves in words: where a break-even lies, in a sentence, in the answer of a sweep and in the cell
of a map.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import ceil, floor, log10
from typing import Any, Literal, NamedTuple

from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import WHOLE, axis_label, axis_value, count, is_missing
from sweeps.stats.curve import NEVER_GAIN, Curve, Point
from sweeps.stats.pooling import Verdict

LEFT_OUT = "Wrong by a flag, and left out: "
"""Begins the sentence on the points that do not count."""
LEFT_OUT_SENTENCE = re.compile(rf" ?{LEFT_OUT}(.+?)\.(?= |$)")
"""In the column `why` of the view `break_even`."""
NOT_SHOWN = "not shown to pay"
"""Of a curve of which no point is faster, and none can gain much."""
BREAK_EVEN_NOTE = (
    "A break-even is a bracket between measured points, wrong for at most 1 curve in 20; speed-ups"
    f" have {INTERVAL} intervals. The likeliest place in it comes from the cost model, time ="
    " launch + work × MACs, where that fits."
)
"""How claims about curves are read, next to intervals of another level."""


def axis_place(x: float, axis: str, token_unit: str, parameter: str | None = None) -> str:
    """A place on an axis with its unit, such as `36 prompt tokens`, `42 % of GMACs saved`, `batch
    size 8` or `keep_rate 0.5`.
    """
    label = axis_label(axis, parameter)
    unit = token_unit if axis == "tokens" else label.unit
    return f"{label.before}{axis_value(x, axis)} {unit}".rstrip()


def token_unit(row: Any) -> str:
    """What the tokens of a row of a view are, in a sentence."""
    return "tokens" if is_missing(row.prompt_tokens) else "prompt tokens"


def _place(x: float, row: Any, token_unit: str) -> str:
    return axis_place(x, row.axis, token_unit, row.varied_parameter)


def describe_break_even(rows: Sequence[Any], token_unit: str, *, brief: bool = False) -> str:
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
    ends = (
        [_claimed(row, token_unit) for row in sorted(rows, key=_order)]
        if not is_missing(first.direction)
        else []
    )
    more = ""
    if first.verdict == "pays_between":
        text = f"pays at some sizes only, {first.why[:1].lower()}{first.why[1:].removesuffix('.')}"
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


def _order(row: Any) -> float:
    """By which the crossings of a curve are in the order of x."""
    return float(row.x_high if is_missing(row.x_low) else row.x_low)


def _claimed(row: Any, token_unit: str) -> str:
    """A bracket or a bound: `pays from 36 tokens on (slower at 16; likely from 19)`, `pays up to at
    least 9 tokens`.
    """
    gains = row.direction != "loses"
    _, loss = _sides(row)
    low, high = (
        None if is_missing(end) else _place(_bound(end, row.axis, to), row, token_unit)
        for end, to in ((row.x_low, floor), (row.x_high, ceil))
    )
    if low is None or high is None:
        return f"pays from at most {high} on" if gains else f"pays up to at least {low}"
    text = (
        f"pays from {high} on ({loss} at {_number(row.x_low, row, floor)}"
        if gains
        else f"pays up to {low} ({loss} at "
    )
    text += "" if gains else _number(row.x_high, row, ceil)
    return (
        text
        + (
            ""
            if is_missing(row.x)
            else f"; likely {'from' if gains else 'to'} {axis_value(row.x, row.axis)}"
        )
        + ")"
    )


def _number(x: float, row: Any, outward: Callable[[float], int]) -> str:
    return axis_value(_bound(x, row.axis, outward), row.axis)


def _span(row: Any, token_unit: str) -> str:
    """The points that a claim rests on: `4 to 196 tokens`."""
    before = axis_label(row.axis, row.varied_parameter).before
    last = _place(row.x_last, row, token_unit)
    return (
        last
        if row.x_first == row.x_last
        else f"{before}{axis_value(row.x_first, row.axis)} to {last.removeprefix(before)}"
    )


def _beyond(row: Any, where: str) -> str:
    """What may be lost on the other side of a bound, where no point is clearly slower."""
    if is_missing(row.worst_loss):
        return f"; {where}, nothing bounds the loss"
    _, loss = _sides(row)
    return f"; {where}, " + (
        f"perhaps {loss}, by {_percent(row.worst_loss)} at most"
        if row.worst_loss > 0
        else f"not {loss}"
    )


def _sides(row: Any) -> tuple[str, str]:
    """A point that gains, and one that loses, by the metric of a curve."""
    return ("faster", "slower") if METRICS[row.metric].compared == "ratio" else ("less", "more")


def _possible(gain: float | None) -> str:
    """What a method that is not shown to pay can still gain."""
    if gain is None or is_missing(gain):
        return ""
    return f"; it can gain {_percent(gain)} at most" if gain > 0 else "; it can gain nothing"


def _percent(share: float) -> str:
    """Rounded up, because it bounds: two digits below 10 %, else whole per cent."""
    percent = 100 * share
    digits = 0 if percent >= 10 else 1 - floor(log10(percent))
    step = 10**-digits
    return f"{ceil(percent / step - 1e-9) * step:.{digits}f} %"


def _bound(x: float, axis: str, outward: Callable[[float], int]) -> float:
    """The end of an interval as it is printed: whole numbers are rounded so that the interval does
    not shrink.
    """
    return outward(x) if axis in WHOLE else x


def describe_missing(row: Any) -> str:
    """What a curve in the view `break_even` lacks, such as `incomplete, 5 of 8 points are missing
    on host a`; empty if nothing.
    """
    missing, points = int(row.points_missing or 0), int(row.points)
    return (
        f"incomplete, {missing} of {points + missing} points are missing on host {row.host}"
        if missing
        else ""
    )


def _left_out(row: Any) -> str:
    """The points that a flag excludes, such as `left out by a flag: 9, 64`; empty where there are
    none, or the claim names them.
    """
    if row.verdict == "pays_between" or not row.points:
        return ""
    found = LEFT_OUT_SENTENCE.search(str(row.why))
    return f"left out by a flag: {found[1]}" if found else ""


def describe_cost_model(row: Any, token_unit: str) -> str:
    """A row of the view `cost_model` as the rest of a sentence; empty where the model predicts no
    break-even.
    """
    predicted = _range(row.predicted_x, row.predicted_x_low, row.predicted_x_high, token_unit)
    if not predicted or is_missing(row.alpha):
        return ""
    launch, work = (f"{1e3 * own:.3g} ms (baseline {1e3 * base:.3g})" for own, base in _costs(row))
    text = f"launch {launch}, work per {row.work_unit} {work}: predicts break-even {predicted}"
    return text + (f"; it does not fit (p = {row.misfit_p:.2g})" if row.verdict == "misfit" else "")


def _costs(row: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Launch and work in seconds, each of the arm and the baseline."""
    return (row.alpha, row.alpha_baseline), (row.beta, row.beta_baseline)


def _range(x: float | None, low: float | None, high: float | None, token_unit: str) -> str:
    """`at 36 (30 to 41) tokens`, `at most 41 tokens`, `at least 30 tokens`; empty where nothing is
    known.
    """
    lows, highs = (
        None if end is None or is_missing(end) else _bound(end, "tokens", to)
        for end, to in ((low, floor), (high, ceil))
    )
    if lows is None or highs is None:
        bound, side = (highs, "most") if lows is None else (lows, "least")
        return "" if bound is None else f"at {side} {axis_place(bound, 'tokens', token_unit)}"
    place = "" if x is None or is_missing(x) else f"{axis_value(x, 'tokens')} "
    return f"at {place}({axis_value(lows, 'tokens')} to {axis_value(highs, 'tokens')}) {token_unit}"


CLAIMS: Mapping[str, str] = {
    "always": "pays everywhere",
    "crossing": "has a break-even",
    "pays_from": "pays from some point on",
    "pays_up_to": "pays up to some point",
    "pays_at_both_ends": "pays at both ends",
    "pays_between": "pays at some sizes only",
    "same": "is no different",
    "never": f"gains {100 * NEVER_GAIN:g} % at most",
    "no_effect": "does nothing",
    "unclear": "cannot tell",
}
"""What a verdict of a curve claims, without numbers."""


class CurveAnswer(NamedTuple):
    """A curve and what it claims."""

    method: str
    label: str
    """The arm, and what distinguishes its curve from others."""
    sentence: str
    """The break-even in the words of `sweeps.text.curves.describe_break_even`."""
    verdict: str
    merit: tuple[int, float]
    """See `merit_of`."""
    for_use: bool
    """Whether it is an optimisation; controls are not recommended."""

    @property
    def line(self) -> str:
        return f"{self.label}: {self.sentence}"


def merit_of(rows: Sequence[Any]) -> tuple[int, float]:
    """The larger, the better a curve: whether it pays everywhere, from some point on, only
    elsewhere, or nowhere; then how early.

    `rows` are those of the curve in the view `break_even`.
    """
    first = rows[0]
    place = next((float(x) for x in (first.x, first.x_high, first.x_low) if not is_missing(x)), 0.0)
    if first.verdict == "always":
        return 3, 0.0
    if first.verdict == "pays_from" or (first.verdict == "crossing" and first.direction == "gains"):
        return 2, -place
    return (
        (1, place)
        if first.verdict in {"pays_up_to", "pays_at_both_ends", "pays_between", "crossing"}
        else (0, 0.0)
    )


def pays_at(rows: Sequence[Any], x: float) -> bool:
    """Whether the break-even of a curve, its rows of the view `break_even`, claims that it pays at
    `x`.
    """
    if not rows or rows[0].verdict == "pays_between":
        return False
    bounded = [row for row in rows if not is_missing(row.direction)]
    claimed = any(
        x <= row.x_low if row.direction == "loses" else x >= row.x_high for row in bounded
    )
    return claimed or rows[0].verdict == "always"


def answer_of_curves(curves: Sequence[CurveAnswer]) -> str:
    """All curves in a sentence, but for those of controls; one curve alone is its line."""
    for_use = [curve for curve in curves if curve.for_use] or list(curves)
    if len(curves) == 1:
        return f"{curves[0].line}."
    best = max(for_use, key=lambda curve: curve.merit)
    if not best.merit[0]:
        return f"No arm is known to pay in what was measured: {tally(for_use)}."
    pays = sum(curve.merit[0] > 0 for curve in for_use)
    return (
        f"{pays} of {count(len(for_use), 'curve')} pay in at least a part of what was measured;"
        f" best {best.line}."
    )


def tally(curves: Sequence[CurveAnswer]) -> str:
    """`3 × has a break-even, 1 × gains 5 % at most`."""
    found = Counter(curve.verdict for curve in curves).most_common()
    return ", ".join(f"{number} × {CLAIMS[verdict]}" for verdict, number in found)


def answer_of_points(compared: int, best: str) -> str:
    """Speed-ups at single points; `best` is the one with a gain whose interval lies highest, in
    words, or empty.
    """
    among = count(compared, "comparison")
    return (
        f"Of {among} the one whose interval lies highest: {best}."
        if best
        else f"None of {among} shows a gain."
    )


CellKind = Literal["pays", "limited", "never", "none", "unclear", "differs"]
"""`pays` from a size on; `limited`: up to a size, or at both ends; `never`: not shown to pay, and
gains little; `none`: does nothing; `differs`: several curves, not alike."""
ORDER: tuple[CellKind, ...] = ("pays", "limited", "unclear", "differs", "none", "never")
"""From what is to be preferred to what is not."""


class BreakEvenCell(NamedTuple):
    """What a cell shows."""

    text: str
    """`≤ 36`, `53 to 71`, `always`, `up to 100`, `gains ≤ 5 %`, `no effect`, `?` or `differs`."""
    kind: CellKind
    place: float | None
    """Tokens from which on it pays at the latest; 0 where it pays at every point, `None` where it
    does not."""
    sentence: str
    """The same with its reasons, for a hover text."""


def break_even_cell(rows: Sequence[Any]) -> BreakEvenCell:
    """The cell of one curve: its rows of the view `break_even` along the tokens."""
    first = rows[0]
    sentence = describe_break_even(rows, token_unit(first))
    if first.verdict in ("crossing", "pays_from"):
        if first.direction == "loses":
            return BreakEvenCell(f"up to {_grouped(floor(first.x_low))}", "limited", 0.0, sentence)
        high = _grouped(ceil(first.x_high))
        text = (
            f"≤ {high}" if is_missing(first.x_low) else f"{_grouped(floor(first.x_low))} to {high}"
        )
        return BreakEvenCell(text, "pays", float(first.x_high), sentence)
    if first.verdict == "pays_up_to":
        return BreakEvenCell(f"up to {_grouped(floor(first.x_low))}", "limited", 0.0, sentence)
    if first.verdict == "pays_at_both_ends":
        low = next(row.x_low for row in rows if row.direction == "loses")
        high = next(row.x_high for row in rows if row.direction == "gains")
        return BreakEvenCell(
            f"up to {_grouped(floor(low))}, from {_grouped(ceil(high))}", "limited", 0.0, sentence
        )
    words: dict[str, tuple[str, CellKind, float | None]] = {
        "always": ("always", "pays", 0.0),
        "pays_between": ("in part", "limited", 0.0),
        "same": ("no different", "never", None),
        "never": (f"gains ≤ {100 * NEVER_GAIN:g} %", "never", None),
        "no_effect": ("no effect", "none", None),
    }
    text, kind, place = words.get(first.verdict, ("?", "unclear", None))
    return BreakEvenCell(text, kind, place, sentence)


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


def _grouped(value: int) -> str:
    return f"{value:,}"


PLACE_DIGITS = 4
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
    curve: Curve, parameter: str | None = None, words: Mapping[Verdict, str] = WORDS
) -> str:
    """The stretches of equal verdict along the axis in a sentence, and which points do not count.

    `parameter` is the one that varies along the axis `parameter`.
    """
    usable = curve.usable()
    points = [point for point in usable if not point.no_op]
    runs = [
        (verdict, list(run)) for verdict, run in groupby(points, key=lambda point: point.verdict)
    ]
    stretches = [f"{words[verdict]} at {_stretch(run, curve.axis)}" for verdict, run in runs]
    if nothing := [point for point in usable if point.no_op]:
        stretches.append(f"removes nothing at {_stretch(nothing, curve.axis)}")
    sentences = (
        [f"Along {axis_label(curve.axis, parameter).along}: {', '.join(stretches)}."]
        if stretches
        else ["No points were measured."]
    )
    if wrong := [
        axis_value(point.x, curve.axis, PLACE_DIGITS) for point in curve.points if point.wrong
    ]:
        sentences.append(f"{LEFT_OUT}{', '.join(wrong)}.")
    return " ".join(sentences)


def _stretch(points: Sequence[Point], axis: str) -> str:
    """The first and the last x, or the only one."""
    first, last = (axis_value(point.x, axis, PLACE_DIGITS) for point in (points[0], points[-1]))
    return first if len(points) == 1 else f"{first} to {last}"
