"""The rule behind the verdict of a speed-up, worked out in numbers: from the visits to what
decides.
"""

from collections.abc import Iterator
from math import exp, inf
from typing import NamedTuple

from sweeps.model.metrics import SPEED_FLOOR
from sweeps.number_format import count
from sweeps.stats.pooling import ALPHA, SPENT_NOW, Verdict
from sweeps.stats.timing import Contrast
from sweeps.stats.visits import FLOOR_FREEDOM, LOWEST, Pooling


class RuleLine(NamedTuple):
    """One step of the rule: what is computed, how, and the number."""

    what: str
    how: str
    value: str


def rule_lines(
    pooling: Pooling, verdict: Verdict, *, pairs_min: int, floor: float = SPEED_FLOOR
) -> list[RuleLine]:
    """The steps in order; the last is the comparison that gives the verdict."""
    ends = f"{1 / (1 + floor):.4f} to {1 + floor:.4f}"
    return [
        *_visit_lines(pooling),
        *_interval_lines(pooling),
        RuleLine(
            "No difference",
            f"speed-ups within {100 * floor:.3g} % of 1 count as none, on either side",
            ends,
        ),
        RuleLine(
            "Verdict", verdict_reason(pooling, verdict, pairs_min=pairs_min, floor=floor), verdict
        ),
    ]


def verdict_reason(
    pooling: Pooling, verdict: Verdict, *, pairs_min: int, floor: float = SPEED_FLOOR
) -> str:
    """The comparison of numbers that gives the verdict, such as `1.021 > 1 and 1.080 > 1.020`."""
    found = pooling.speedup
    if verdict == "quarantined":
        return "the machine was slowed in every attempt: there is no verdict, whatever the interval"
    if verdict == "insufficient":
        return (
            f"{count(found.pairs, 'pair')}, fewer than the {pairs_min} requested of each run: no"
            " verdict"
        )
    if found.half_width == inf:
        return "no interval: too few pairs, or times that vary too much"
    low, high, inner, outer = found.low, found.high, 1 / (1 + floor), 1 + floor
    one, other, least, most = _apart(low, high, inner, outer)
    return {
        "same": f"{one} ≥ {least} and {other} ≤ {most}: the interval lies within the floor",
        "faster": f"low end {one} > 1: the interval excludes 1, and reaches above {most}",
        "slower": f"high end {other} < 1: the interval excludes 1, and reaches below {least}",
    }.get(
        verdict,
        f"low end {one} ≤ 1 ≤ high end {other}: the interval holds 1, and reaches beyond {least} to"
        f" {most}",
    )


def _apart(*numbers: float) -> tuple[str, ...]:
    """The numbers with as many decimals as distinguish each from the others and from 1, at
    least 3.
    """
    for digits in range(3, 13):
        written = [f"{number:.{digits}f}" for number in numbers]
        if len(set(written)) == len(set(numbers)) and all(
            number == 1 or float(text) != 1 for number, text in zip(numbers, written, strict=False)
        ):
            break
    return tuple(written)


def _visit_lines(pooling: Pooling) -> Iterator[RuleLine]:
    found, between, counted = pooling.speedup, pooling.between, pooling.counted
    own = [exp(part.log) for part in pooling.parts if part.weight]
    state = f"{pooling.rounds} of {found.pairs} in the {pooling.state} state of the machine"
    how = (
        f"{count(found.pairs, 'round')}, {state}; the newest run at {pooling.host_speed:.2f} of the"
        " quickest known speed"
    )
    yield RuleLine(count(len(pooling.parts), "visit"), how, f"{min(own):.3f}× to {max(own):.3f}×")
    how = f"mean of the lowest {100 * LOWEST:.0f} % of the log times of each column in that state"
    yield RuleLine("Estimate", how, f"log {found.log:+.5f}: {found.value:.3f}×")
    shown = (
        f"each left out once: SD {between.sd:.5f}, {_freedom(between.freedom)}; "
        if between.freedom > 0
        else "one visit; "
    )
    how = f"{shown}before any are compared {pooling.floor_sd:g}, {_freedom(FLOOR_FREEDOM)}"
    yield RuleLine(
        "Between visits", how, f"SD {counted.sd:.5f} of the log, {_freedom(counted.freedom)}"
    )
    if pooling.runs_p is not None:
        how = (
            f"they differ by as much or more with probability {pooling.runs_p:.2g} by what visits"
            " differ by"
        )
        yield RuleLine(
            "Agreement of runs",
            how,
            "their own spread is the error" if pooling.disagree else "they agree",
        )
    how = "that SD × √(sum of the squared shares of the visits in these rounds)"
    yield RuleLine(
        f"Pooled, {count(found.pairs, 'pair')}",
        how,
        _contrast(Contrast(found.log, found.se, found.freedom)),
    )
    if (slow := pooling.slow) is not None:
        apart = "clearly another one" if pooling.states_differ else "not clearly another one"
        value = f"{slow.value:.3f}× [{slow.low:.3f}, {slow.high:.3f}]"
        yield RuleLine("In the slow state", f"{count(slow.pairs, 'round')}; {apart}", value)


def _interval_lines(pooling: Pooling) -> Iterator[RuleLine]:
    found = pooling.speedup
    how = (
        f"{100 * ALPHA:g} % over all runs ever, of which what was measured so far spends"
        f" {100 * SPENT_NOW:g} %"
    )
    yield RuleLine("Level", how, f"{100 * found.spent:.3g} %")
    if found.half_width == inf:
        yield RuleLine("Interval", "there is none", f"{found.value:.3f}×")
        return
    how = f"Student's t at that level, {_freedom(found.freedom)}"
    yield RuleLine("Reach", how, f"{found.quantile:.3f} standard errors")
    how = f"exp({found.log:.5f} ± {found.quantile:.3f} × {found.se:.5f})"
    yield RuleLine("Interval", how, f"{found.value:.3f}× [{found.low:.3f}, {found.high:.3f}]")


def _contrast(contrast: Contrast) -> str:
    error = "" if contrast.se == inf else f", SE {contrast.se:.5f}, {_freedom(contrast.freedom)}"
    return f"log {contrast.effect:+.5f}{error}: {exp(contrast.effect):.3f}×"


def _freedom(freedom: float) -> str:
    if freedom >= 1e6:
        return "normal"
    return (
        f"{freedom:,.0f} degrees of freedom"
        if freedom >= 1e3
        else f"{freedom:.3g} degrees of freedom"
    )
