"""Ceilings: what the same tokens give when they are cut for nothing, and what follows for an arm
and for every other method.
"""

from math import inf, log
from typing import Any

from sweeps.analysis.labels import SPEEDUP, Conclusion, conclude_interval
from sweeps.model.metrics import SPEED_FLOOR
from sweeps.number_format import is_missing
from sweeps.text.curve_labels import token_unit
from sweeps.text.reasons import promise_of


def ceiling_of(row: Any) -> Conclusion:
    """The speed-up of a free cut beside a row of the view `speedup` with `ceiling` and its ends
    (`store.read.curves`).
    """
    return conclude_interval(SPEEDUP, row.ceiling, row.ceiling_low, row.ceiling_high)


def left_to_gain(row: Any) -> tuple[float, float, float]:
    """The ceiling over what was reached, with the ends that both intervals allow together."""
    low, high = row.ceiling_low, row.ceiling_high
    known = not any(map(is_missing, (low, high, row.speedup_low, row.speedup_high)))
    return (
        row.ceiling / row.speedup,
        low / row.speedup_high if known else 0.0,
        high / row.speedup_low if known else inf,
    )


def is_bound(row: Any) -> bool:
    """Whether the free cut bounds what others reach: it has an interval, and the arm beside it is
    not measured clearly faster.
    """
    if any(map(is_missing, (row.ceiling, row.ceiling_low, row.ceiling_high))):
        return False
    return bool(is_missing(row.speedup_low) or row.speedup_low <= row.ceiling_high)


def explain_ceiling(row: Any) -> str:
    """What a free cut of the same tokens shows, as a sentence without its end; empty where none was
    measured.

    `Cut for nothing, the same tokens give 1.021x [0.978, 1.066]: at 16 tokens no method with these
    token counts gains more than 6.6 %`. Where the ceiling is a clear gain, it states whose the rest
    of the promise is, where both intervals allow that.
    """
    if is_missing(row.ceiling):
        return ""
    free = ceiling_of(row)
    text = f"cut for nothing, the same tokens give {free.numbers}"
    if free.high is None or is_missing(row.ceiling_low) or is_missing(row.ceiling_high):
        return f"{text}, without an interval, from which nothing follows"
    if not is_bound(row):
        return (
            f"{text}, slower than this arm is measured, which is impossible: one of both was"
            " disturbed, or runs other kernels"
        )
    if row.ceiling_low <= 1:
        most = (
            f"gains more than {100 * (free.high - 1):.1f} %" if free.high > 1 else "gains anything"
        )
        return (
            f"{text}: at {row.tokens:,.0f} {token_unit(row)} no method with these token counts"
            f" {most}"
        )
    promise = promise_of(row)
    if promise is None or promise <= (1 + SPEED_FLOOR) * row.ceiling_high:
        return text
    return f"{text}, of {promise:.2f}x promised{_missing_part(row, promise)}"


def _missing_part(row: Any, promise: float) -> str:
    """Whether most of what is missing of the promise is the method's own cost, where the ends of
    the intervals agree on it.
    """
    value, low, high = left_to_gain(row)
    most = (
        f"without its own cost it would be {value:.3f}x [{low:.3f}, {high:.3f}] as fast as now"
        if high < inf
        else ""
    )
    if not most:
        return ""
    if log(promise / row.ceiling_high) > log(high):
        return f": most of what is missing is not its own cost ({most})"
    if log(promise / row.ceiling_low) < log(max(low, 1.0)):
        return f": most of what is missing is its own cost ({most})"
    return f" ({most})"
