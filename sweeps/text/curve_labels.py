"""Break-evens of curves in words, for the report and the web app."""

import re
from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import Any

from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import WHOLE, axis_label, axis_value, is_missing
from sweeps.stats.curve import LEFT_OUT

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
