"""The rule behind the verdict of a speed-up, worked out in numbers: from the contrast of each attempt to what decides."""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, inf
from typing import NamedTuple

from sweeps.metrics import SPEED_FLOOR
from sweeps.number_format import count
from sweeps.stats.pooling import Pooling, ProcessTerm, Verdict, Visited
from sweeps.stats.two_way import MIN_ROUNDS, Contrast
from sweeps.stats.visits import FLOOR_FREEDOM, LOWEST


class WorkedAttempt(NamedTuple):
    """The log speed-up of one attempt by itself."""

    attempt: int
    process: str
    rounds: int
    contrast: Contrast
    settled: bool


class RuleLine(NamedTuple):
    """One step of the rule: what is computed, how, and the number."""

    what: str
    how: str
    value: str


def rule_lines(
    attempts: Sequence[WorkedAttempt],
    pooling: Pooling,
    verdict: Verdict,
    *,
    pairs_min: int,
    floor: float = SPEED_FLOOR,
    calibrated: Mapping[str, str] | None = None,
) -> list[RuleLine]:
    """The steps in order; the last is the comparison that gives the verdict.

    `calibrated` has for each calibration's id when it was made, in words.
    """
    if pooling.visited is not None:
        lines = list(_visit_lines(pooling, pooling.visited))
    else:
        processes = list(dict.fromkeys(each.process for each in attempts))
        weights = {process: part.weight for process, part in zip(processes, pooling.parts, strict=True)}
        alone = 1 < len(processes) == len(attempts)
        lines = [
            _attempt_line(each, weights[each.process] if alone else None, first=not place) for place, each in enumerate(attempts)
        ]
        terms = list(dict.fromkeys(part.term for part in pooling.parts))
        lines += [_term_line(term, calibrated or {}) for term in terms]
        lines += _pooled_lines(pooling, attempts)
    lines += _interval_lines(pooling)
    ends = f"{1 / (1 + floor):.4f} to {1 + floor:.4f}"
    lines.append(RuleLine("No difference", f"speed-ups within {100 * floor:.3g} % of 1 count as none, on either side", ends))
    return [*lines, RuleLine("Verdict", verdict_reason(pooling, verdict, pairs_min=pairs_min, floor=floor), verdict)]


def verdict_reason(pooling: Pooling, verdict: Verdict, *, pairs_min: int, floor: float = SPEED_FLOOR) -> str:
    """The comparison of numbers that gives the verdict, such as `1.021 > 1 and 1.080 > 1.020`."""
    found = pooling.found
    if verdict == "quarantined":
        return "the machine was slowed in every attempt: there is no verdict, whatever the interval"
    if verdict == "insufficient":
        return f"{count(found.pairs, 'pair')}, fewer than the {pairs_min} requested of each process: no verdict"
    if found.half_width == inf:
        return f"no interval: too few pairs, or times that vary too much; at least {MIN_ROUNDS} pairs are needed"
    low, high, inner, outer = found.low, found.high, 1 / (1 + floor), 1 + floor
    one, other, least, most = _apart(low, high, inner, outer)
    return {
        "same": f"{one} ≥ {least} and {other} ≤ {most}: the interval lies within the floor",
        "faster": f"low end {one} > 1: the interval excludes 1, and reaches above {most}",
        "slower": f"high end {other} < 1: the interval excludes 1, and reaches below {least}",
    }.get(verdict, f"low end {one} ≤ 1 ≤ high end {other}: the interval holds 1, and reaches beyond {least} to {most}")


def _apart(*numbers: float) -> tuple[str, ...]:
    """The numbers with as many decimals as distinguish each from the others and from 1, at least 3."""
    for digits in range(3, 13):
        written = [f"{number:.{digits}f}" for number in numbers]
        if len(set(written)) == len(set(numbers)) and all(
            number == 1 or float(text) != 1 for number, text in zip(numbers, written, strict=False)
        ):
            break
    return tuple(written)


def _attempt_line(attempt: WorkedAttempt, weight: float | None, *, first: bool) -> RuleLine:
    contrast = attempt.contrast
    how = "robust two-way fit of the log times of all arms; " if first else "the same fit; "
    if contrast.se == inf:
        how += f"no standard error below {MIN_ROUNDS} rounds"
    else:
        how += f"standard error by the jackknife over {contrast.freedom + 1:.0f} groups of rounds"
    if not attempt.settled:
        how += "; warm-up had not converged: the later half, and twice its distance from the earlier one in the error"
    share = "" if weight is None else f"; weight {100 * weight:.1f} %"
    return RuleLine(f"Attempt {attempt.attempt}, {count(attempt.rounds, 'round')}", how, f"{_contrast(contrast)}{share}")


def _visit_lines(pooling: Pooling, visited: Visited) -> Iterator[RuleLine]:
    found, term = pooling.found, pooling.parts[0].term
    own = [exp(part.contrast.effect) for part in pooling.parts if part.weight]
    state = f"{visited.rounds} of {found.pairs} in the {visited.state} state of the machine"
    how = f"{count(found.pairs, 'round')}, {state}; the newest run at {visited.host_speed:.2f} of the quickest known speed"
    yield RuleLine(count(len(pooling.parts), "visit"), how, f"{min(own):.3f}× to {max(own):.3f}×")
    how = f"mean of the lowest {100 * LOWEST:.0f} % of the log times of each column in that state"
    yield RuleLine("Estimate", how, f"log {found.log:+.5f}: {found.value:.3f}×")
    how = f"each left out once: SD {visited.between:.5f}, {_freedom(visited.freedom)}; before any is known {visited.floor_sd:g}, "
    yield RuleLine("Between visits", f"{how}{_freedom(FLOOR_FREEDOM)}", f"SD {term.sd:.5f} of the log, {_freedom(term.freedom)}")
    how = "that SD × √(sum of the squared shares of the visits in these rounds)"
    yield RuleLine(f"Pooled, {count(found.pairs, 'pair')}", how, _contrast(Contrast(found.log, found.se, found.freedom)))


def _term_line(term: ProcessTerm, calibrated: Mapping[str, str]) -> RuleLine:
    if term.calibration_id is None:
        how = "what differs between processes: the stated default, no calibration of this device and size of model was carried"
    else:
        made = calibrated.get(term.calibration_id, "")
        how = f"what differs between processes: calibration {term.calibration_id}{made and f', {made}'}"
    freedom = "" if term.freedom == inf else f" ({_freedom(term.freedom)})"
    return RuleLine("Between processes", how, f"SD {term.sd:.5f} of the log{freedom}")


def _pooled_lines(pooling: Pooling, attempts: Sequence[WorkedAttempt]) -> Iterator[RuleLine]:
    found, parts = pooling.found, pooling.parts
    processes = list(dict.fromkeys(each.process for each in attempts))
    if 1 < len(parts) < len(attempts):
        for part, process in zip(parts, processes, strict=True):
            own = ", ".join(str(each.attempt) for each in attempts if each.process == process)
            how = f"attempt {own}; weight 1 / (SE² + SD²), SE = {part.contrast.se:.5f}, SD = {part.term.sd:.5f}"
            yield RuleLine(f"Process {process[:12]}", how, f"{100 * part.weight:.1f} % of the whole")
    elif len(parts) < len(attempts):
        how = "attempts of one process share what is particular to it: weighted by 1 / SE²"
        yield RuleLine("One process", how, _contrast(parts[0].contrast))
    if pooling.agreement is not None:
        alike = f"differ by as much or more with probability {pooling.agreement:.2g} by their errors and terms alone"
        if pooling.spread > 1:
            how = f"{alike}: their own spread is the error"
            yield RuleLine("Agreement of processes", how, f"SE raised {pooling.spread:.2f} times")
        else:
            yield RuleLine("Agreement of processes", alike, "SE as it is")
    if len(parts) == 1 and found.se < inf:
        how = f"√(SE² + SD²) = √({parts[0].contrast.se:.5f}² + {parts[0].term.sd:.5f}²)"
    else:
        how = "processes weighted by 1 / (SE² + SD²), with the SE 1 / √(sum of weights)" + (
            f" × {pooling.spread:.2f}" if pooling.spread > 1 else ""
        )
    yield RuleLine(f"Pooled, {count(found.pairs, 'pair')}", how, _contrast(Contrast(found.log, found.se, found.freedom)))


def _interval_lines(pooling: Pooling) -> Iterator[RuleLine]:
    found = pooling.found
    looks = found.looks
    alpha = f"{100 * found.alpha:g} %"
    how = f"{alpha} over all attempts ever; with {count(looks, 'attempt')} {alpha} / ({looks} × {looks + 1})"
    if pooling.visited is not None:
        how = f"{alpha} over all runs ever, of which the visits so far spend half"
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
    return f"{freedom:,.0f} degrees of freedom" if freedom >= 1e3 else f"{freedom:.3g} degrees of freedom"
