"""Break-evens of curves in words, for the report and the web app."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import Any, NamedTuple

from sweeps.metrics import METRICS
from sweeps.number_format import WHOLE, axis_label, axis_value, duration, is_missing

MOST_FACTOR = 50
"""Times as many pairs that are worth a try."""
NOT_SHOWN = "not shown to pay"
"""Of a curve of which no point is faster, and none can gain much."""
BY_MODEL, BY_POINTS = "by the cost model", "by the points alone"
"""What a place of a break-even rests on."""
BREAK_EVEN_NOTE = (
    "A break-even is wrong for at most 1 curve in 20, while speed-ups have 99 % intervals. The cost model, time = launch + work × "
    "MACs, is fitted to all points of a curve; the points alone are their verdicts."
)
"""How claims about curves are read, beside intervals of another level."""


def axis_place(x: float, axis: str, token_unit: str, parameter: str | None = None) -> str:
    """A place on an axis with its unit, such as `36 prompt tokens`, `42 % of GMACs saved`, `batch size 8` or `keep_rate 0.5`."""
    label = axis_label(axis, parameter)
    return f"{label.before}{axis_value(x, axis)} {token_unit if axis == 'tokens' else label.unit}".rstrip()


def token_unit(row: Any) -> str:
    """What the tokens of a row of a view are, in a sentence."""
    return "tokens" if is_missing(row.prompt_tokens) else "prompt tokens"


def _place(x: float, row: Any, token_unit: str) -> str:
    return axis_place(x, row.axis, token_unit, row.varied_parameter)


def describe_break_even(
    rows: Sequence[Any], token_unit: str, measured: tuple[float, float] | None = None, *, brief: bool = False
) -> str:
    """The break-even of one curve, its rows of the view `break_even`, as the rest of a sentence that begins with the arm's label.

    `measured` is the smallest and the largest x, where they are known. A `brief` one has no reasons. Each place has its basis: the
    cost model, or the points alone. Rows with the columns that `store.queries.sweep_rows` adds state both where the model counts.
    """
    if not rows:
        return "not analysed"
    first = rows[0]
    span = _span(measured, first, token_unit) if measured else ""
    if first.verdict == "crossing":
        text = _crossings(sorted(rows, key=lambda row: float(row.x if not is_missing(row.x) else row.x_low)), token_unit)
    elif first.verdict == "pays_from":
        bound = _bound(first.x_high, first.axis, ceil)
        text = f"pays from at most {_place(bound, first, token_unit)} on {_basis(first)}" + _beyond(first, "below", brief)
    elif first.verdict == "pays_up_to":
        bound = _bound(first.x_low, first.axis, floor)
        text = f"pays up to at least {_place(bound, first, token_unit)} {_basis(first)}" + _beyond(first, "beyond", brief)
    elif first.verdict == "pays_at_both_ends":
        low, high = (next(end for end in ends if not is_missing(end)) for ends in _ends(rows))
        low, high = _bound(low, first.axis, floor), _bound(high, first.axis, ceil)
        text = f"pays up to at least {_place(low, first, token_unit)}, and from at most {_place(high, first, token_unit)} on"
        text += f" {BY_POINTS}" + _beyond(first, "between", brief)
    elif first.verdict == "always":
        text = "pays at every point measured" + (f", {span}" if span and not brief else "")
    elif first.verdict == "never":
        text = (
            f"{NOT_SHOWN} at any point measured" + (f", {span}" if span else "") + ("" if brief else _possible(first.largest_gain))
        )
    elif first.verdict == "no_effect":
        text = "does nothing here" + ("" if brief else ": at every point it processes what the baseline does")
    else:
        text = "cannot tell" + ("" if brief else _needed(first))
    return "; ".join(filter(None, (text, describe_missing(first))))


def _ends(rows: Sequence[Any]) -> tuple[list[float], list[float]]:
    return [row.x_low for row in rows], [row.x_high for row in rows]


def _span(measured: tuple[float, float], row: Any, token_unit: str) -> str:
    before = axis_label(row.axis, row.varied_parameter).before
    return f"{before}{axis_value(measured[0], row.axis)} to {_place(measured[1], row, token_unit).removeprefix(before)}"


def _beyond(row: Any, where: str, brief: bool) -> str:
    """What may be lost on the other side of a bound, where no point is clearly slower."""
    if brief:
        return ""
    if is_missing(row.worst_loss):
        return f"; {where}, nothing bounds the loss"
    _, loss = _sides(row)
    return f"; {where}, " + (f"perhaps {loss}, by {_percent(row.worst_loss)} at most" if row.worst_loss > 0 else f"not {loss}")


def _sides(row: Any) -> tuple[str, str]:
    """A point that gains, and one that loses, by the metric of a curve."""
    return ("faster", "slower") if METRICS[row.metric].compared == "ratio" else ("less", "more")


def _basis(row: Any) -> str:
    """What a bound on one side rests on; beside the model's, which lies beyond what the points show, that of the points."""
    if not row.fitted:
        return BY_POINTS
    from_most = row.verdict == "pays_from"
    alone = _points_alone(row)
    if alone is None or is_missing(alone.high if from_most else alone.low):
        return f"{BY_MODEL}, {'later' if from_most else 'less far'} {BY_POINTS}"
    return f"{BY_MODEL}, {_where(alone, row, gains=from_most)} {BY_POINTS}"


class _Alone(NamedTuple):
    """Where the verdicts of the points put a break-even without the cost model; nothing where they show none."""

    x: float | None
    low: float | None
    high: float | None


def _points_alone(row: Any) -> _Alone | None:
    """`None` where it is not known, and where the break-even rests on the points anyway."""
    if not row.fitted or is_missing(getattr(row, "cost_model", None)):
        return None
    return _Alone(*(None if is_missing(end) else float(end) for end in (row.measured_x, row.measured_x_low, row.measured_x_high)))


def _where(alone: _Alone, row: Any, *, gains: bool) -> str:
    """`from 17 (9 to 36)`, `from at most 100`, `up to at least 9`; empty where nothing is known."""
    low, high = (
        None if end is None else axis_value(_bound(end, row.axis, to), row.axis)
        for end, to in ((alone.low, floor), (alone.high, ceil))
    )
    if low is None or high is None:
        return f"from at most {high}" if high else f"up to at least {low}" if low else ""
    at = "from" if gains else "at"
    return f"{at} between {low} and {high}" if alone.x is None else f"{at} {axis_value(alone.x, row.axis)} ({low} to {high})"


def _possible(gain: float | None) -> str:
    """What a method that is not shown to pay can still gain."""
    if gain is None or is_missing(gain):
        return ""
    return f"; it can gain {_percent(gain)} at most" if gain > 0 else "; it can gain nothing"


def _needed(row: Any) -> str:
    """What would decide an unclear curve."""
    factor: float | None = row.pairs_factor
    if not row.points:
        return "; a flag marks every point as wrong"
    if factor is None or is_missing(factor):
        return "; more points or pairs are needed"
    if factor > MOST_FACTOR:
        return f"; not even {MOST_FACTOR} times as many pairs would decide it"
    times = f"{max(2, ceil(factor))} times as many pairs"
    if is_missing(row.more_seconds):
        return f"; about {times} would decide it"
    return f"; about {duration(row.more_seconds)} more ({times}) would decide it"


def _percent(share: float) -> str:
    """Rounded up, because it bounds: two digits below 10 %, else whole per cent."""
    percent = 100 * share
    digits = 0 if percent >= 10 else 1 - floor(log10(percent))
    step = 10**-digits
    return f"{ceil(percent / step - 1e-9) * step:.{digits}f} %"


def _bound(x: float, axis: str, outward: Callable[[float], int]) -> float:
    """The end of an interval as it is printed: whole numbers are rounded so that the interval does not shrink."""
    return outward(x) if axis in WHOLE else x


def describe_missing(row: Any) -> str:
    """What a curve in the view `break_even` lacks, such as `incomplete, 5 of 8 points are missing on host a`; empty if nothing."""
    missing, points = int(row.points_missing or 0), int(row.points)
    return f"incomplete, {missing} of {points + missing} points are missing on host {row.host}" if missing else ""


def _crossings(rows: Sequence[Any], token_unit: str) -> str:
    if len(rows) > 1:
        places = [
            f"between {' and '.join(_interval(row))} {_unit(row, token_unit)}".rstrip()
            if row.grid_limited
            else "at {} {}".format(*_located(row, token_unit)).rstrip()
            for row in rows
        ]
        return f"crosses 1× {', '.join(places)}, {BY_POINTS}"
    (row,) = rows
    gains = row.direction != "loses"
    if row.grid_limited:
        return _neighbours(row, token_unit, gains=gains)
    place, interval = _located(row, token_unit)
    text = f"{f'pays from {place} on' if gains else f'stops paying at {place}'} {interval}".rstrip()
    if not row.fitted:
        return f"{text} {BY_POINTS}"
    alone = _points_alone(row)
    if alone is None:
        return f"{text} {BY_MODEL}"
    where = _where(alone, row, gains=gains)
    return f"{text} {BY_MODEL}, " + (f"{where} {BY_POINTS}" if where else "which the points alone do not show")


def _located(row: Any, token_unit: str) -> tuple[str, str]:
    """The place of a crossing, and its interval in brackets, if it has one."""
    if is_missing(row.x_low) or is_missing(row.x_high):
        return _place(row.x, row, token_unit), ""
    x = row.x
    if is_missing(x):  # where it pays for sure
        x = _bound(row.x_low, row.axis, floor) if row.direction == "loses" else _bound(row.x_high, row.axis, ceil)
    return _place(x, row, token_unit), f"({' to '.join(_interval(row))})"


def _interval(row: Any) -> tuple[str, str]:
    low, high = _bound(row.x_low, row.axis, floor), _bound(row.x_high, row.axis, ceil)
    return axis_value(low, row.axis), axis_value(high, row.axis)


def _unit(row: Any, token_unit: str) -> str:
    return token_unit if row.axis == "tokens" else axis_label(row.axis, row.varied_parameter).unit


def _neighbours(row: Any, token_unit: str, *, gains: bool) -> str:
    """A crossing between two neighbouring points, of which nothing is known but these."""
    gain, loss = _sides(row)
    low, (_, high) = _place(_bound(row.x_low, row.axis, floor), row, token_unit), _interval(row)
    if row.points == 2:
        text = f"{loss} at {low}, {gain} at {high}" if gains else f"{gain} at {low}, {loss} at {high}"
    else:
        text = f"{loss} at {low}, pays from {high} on" if gains else f"pays up to {low}, {loss} at {high}"
    return f"{text}; where between was not measured"


def describe_cost_model(row: Any, token_unit: str) -> str:
    """A row of the view `cost_model` as the rest of a sentence; empty where the model predicts no break-even."""
    predicted = _range(row.predicted_x, row.predicted_x_low, row.predicted_x_high, token_unit)
    if not predicted or is_missing(row.alpha):
        return ""
    launch, work = (f"{1e3 * own:.3g} ms (baseline {1e3 * base:.3g})" for own, base in _costs(row))
    measured = _range(row.measured_x, row.measured_x_low, row.measured_x_high, token_unit)
    text = f"launch {launch}, work per {row.work_unit} {work}: predicts break-even {predicted}"
    text += f", {BY_POINTS} {measured}" if measured else ", the points alone show none"
    return text + (f"; it does not fit (p = {row.misfit_p:.2g})" if row.verdict == "misfit" else "")


def _costs(row: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Launch and work in seconds, each of the arm and the baseline."""
    return (row.alpha, row.alpha_baseline), (row.beta, row.beta_baseline)


def _range(x: float | None, low: float | None, high: float | None, token_unit: str) -> str:
    """`at 36 (30 to 41) tokens`, `at most 41 tokens`, `at least 30 tokens`; empty where nothing is known."""
    lows, highs = (
        None if end is None or is_missing(end) else _bound(end, "tokens", to) for end, to in ((low, floor), (high, ceil))
    )
    if lows is None or highs is None:
        bound, side = (highs, "most") if lows is None else (lows, "least")
        return "" if bound is None else f"at {side} {axis_place(bound, 'tokens', token_unit)}"
    place = "" if x is None or is_missing(x) else f"{axis_value(x, 'tokens')} "
    return f"at {place}({axis_value(lows, 'tokens')} to {axis_value(highs, 'tokens')}) {token_unit}"
