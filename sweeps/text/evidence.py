"""The evidence of a speed-up: the rule behind its verdict, worked out in numbers, and what would
show that it is noise.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, inf
from typing import NamedTuple

from sweeps.model.metrics import SPEED_FLOOR, has_clock, notes_on
from sweeps.number_format import count
from sweeps.stats.evidence import Halves, Signs, no_effect_p
from sweeps.stats.pooling import ALPHA, SPENT_NOW, Verdict, mean_disagrees
from sweeps.stats.timing import Contrast
from sweeps.stats.visits import RUN_FREEDOM, RUN_SD, Pooling

UNUSUAL = 0.01
"""Less probable than this by chance alone, over all attempts that a statement is about: no
chance."""


class NoiseFinding(NamedTuple):
    """One check: what was found, and whether that raises a doubt: it may be noise, or more
    uncertain than its interval.
    """

    check: str
    statement: str
    noise: bool


class AttemptChecks(NamedTuple):
    """What is checked of the rounds of one attempt."""

    attempt: int
    null: Contrast | None
    """The baseline's second column over its first; `None` where it has one."""
    halves: Halves | None
    signs: Signs
    outlying: int
    rounds: int
    readings: Mapping[str, float]
    """By the names of `sweeps.model.metrics.SYSTEM_METRICS`."""


def noise_findings(
    attempts: Sequence[AttemptChecks],
    pooling: Pooling,
    mean: Contrast,
    device_nulls: Sequence[tuple[float, str]] = (),
) -> list[NoiseFinding]:
    """All checks of a speed-up.

    `mean` is that of `sweeps.stats.pooling`; `device_nulls` are the speed-ups of equal arms at
    the same place, with verdicts.
    """
    return [
        *_interval(pooling),
        _nulls(attempts, pooling),
        *_equal_arms(pooling),
        *_visits(pooling),
        _halves(attempts),
        _signs(attempts, pooling),
        _outliers(attempts),
        _mean(mean, pooling),
        _device(device_nulls),
        *_readings(attempts),
    ]


def noise_in_words(findings: Iterable[NoiseFinding]) -> str:
    """How many of the checks raise a doubt, and which."""
    listed = list(findings)
    found = [finding.check.lower() for finding in listed if finding.noise]
    if not found:
        return f"None of {count(len(listed), 'check')} raises a doubt."
    verb = "raises" if len(found) == 1 else "raise"
    return f"{len(found)} of {count(len(listed), 'check')} {verb} a doubt: {', '.join(found)}."


def _interval(pooling: Pooling) -> Iterator[NoiseFinding]:
    found = pooling.speedup
    if found.half_width == inf:
        yield NoiseFinding(
            "Interval", "There is no interval: so few pairs can show anything.", True
        )
        return
    ends = f"[{found.low:.3f}, {found.high:.3f}]"
    if found.low <= 1 <= found.high:
        yield NoiseFinding(
            "Interval",
            f"The interval {ends} holds 1: noise alone may have made {found.value:.3f}×.",
            True,
        )
    else:
        errors = abs(found.log) / found.se if found.se else inf
        statement = (
            f"The interval {ends} excludes 1: {found.value:.3f}× lies {errors:.1f} standard errors"
            " from it."
        )
        yield NoiseFinding("Interval", statement, False)


def _nulls(attempts: Sequence[AttemptChecks], pooling: Pooling) -> NoiseFinding:
    check = "Baseline against itself"
    if (null := pooling.null) is not None:
        p, far = no_effect_p(null), abs(null.effect)
        times = f"{exp(null.effect):.4f}×, {_likely(p)}"
        statement = (
            f"The ratio of two equal columns of the baseline is {times}; half of a clear one is"
            " part of the interval."
        )
        return NoiseFinding(
            check, statement, (p is not None and p < UNUSUAL) or far >= abs(pooling.speedup.log)
        )
    known = [(each, null) for each in attempts if (null := each.null) is not None]
    if not known:
        statement = (
            "The baseline had one column in each round: no attempt measured it against itself."
        )
        return NoiseFinding(check, statement, False)
    each, worst = min(known, key=lambda one: _rank(no_effect_p(one[1])))
    p = no_effect_p(worst)
    far = max(abs(null.effect) for _, null in known)
    times = f"{exp(worst.effect):.4f}×, {_likely(p)}" + (
        f", in attempt {each.attempt}" if len(known) > 1 else ""
    )
    sizes = f"the arm lies {_size(pooling.speedup.log)} from 1, they at most {_size(far)}"
    statement = f"The ratio of two equal columns of the baseline is {times}; {sizes}."
    unlikely = p is not None and p < UNUSUAL / len(known)
    return NoiseFinding(check, statement, unlikely or far >= abs(pooling.speedup.log))


def _equal_arms(pooling: Pooling) -> Iterator[NoiseFinding]:
    if not pooling.equal:
        return
    values = [f"{exp(null.effect):.4f}×, {_likely(no_effect_p(null))}" for null in pooling.equal]
    unlikely = [
        p
        for null in pooling.equal
        if (p := no_effect_p(null)) is not None and p < UNUSUAL / len(values)
    ]
    statement = (
        f"Other arms that do the work of the baseline: {'; '.join(values)}; half of a clear ratio"
        " is part of the interval."
    )
    yield NoiseFinding("Arms without effect", statement, bool(unlikely))


def _visits(pooling: Pooling) -> Iterator[NoiseFinding]:
    own = [exp(part.log) for part in pooling.parts if part.weight]
    assumed = f"an SD of {100 * pooling.counted.sd:.2g} %"
    if len(own) == 1:
        statement = (
            f"One visit measured it. That others would differ by {assumed} is assumed; only another"
            " visit can show it."
        )
        yield NoiseFinding("Agreement of visits", statement, False)
        return
    spread = f"{min(own):.3f}× to {max(own):.3f}×, with an SD of {100 * pooling.between.sd:.2g} %"
    spread += " inside runs" * (pooling.runs_p is not None)
    statement = f"{count(len(own), 'visit')} measured {spread}; the interval counts {assumed}."
    yield NoiseFinding(
        "Agreement of visits", statement, pooling.between.sd > abs(pooling.speedup.log)
    )
    if pooling.runs_p is not None:
        statement = f"Runs lie so far apart by chance alone {_chance(pooling.runs_p)}."
        yield NoiseFinding("Agreement of runs", statement, pooling.disagree)


def _halves(attempts: Sequence[AttemptChecks]) -> NoiseFinding:
    check = "Earlier and later half"
    known = [
        (each, each.halves, each.halves.p)
        for each in attempts
        if each.halves is not None and each.halves.p is not None
    ]
    if not known:
        return NoiseFinding(check, "A half has too few rounds for an estimate of its own.", False)
    each, found, p = min(known, key=lambda one: one[2])
    where = f"Attempt {each.attempt}: the" if len(known) > 1 else "The"
    values = f"{exp(found.earlier.effect):.3f}×, the later one {exp(found.later.effect):.3f}×"
    statement = (
        f"{where} earlier half of the rounds measures {values}; by chance alone they lie so far"
        f" apart {_chance(p)}."
    )
    unlikely = p < UNUSUAL / len(known)
    if unlikely:
        statement += (
            " The speed-up changed meanwhile, by more than the errors within the attempt explain;"
            " measure it again."
        )
    return NoiseFinding(check, statement, unlikely)


def _signs(attempts: Sequence[AttemptChecks], pooling: Pooling) -> NoiseFinding:
    faster, slower = (
        sum(each.signs.faster for each in attempts),
        sum(each.signs.slower for each in attempts),
    )
    p = Signs.of(faster, slower).p
    pairs = count(faster + slower, "pair")
    statement = (
        f"The arm was faster in {faster} of {pairs}; a coin is as uneven {_chance(p)} (of"
        " independent pairs)."
    )
    against = (faster - slower) * pooling.speedup.log < 0
    if against:
        statement += " Most pairs point the other way than the speed-up."
    return NoiseFinding("Sign of each pair", statement, p >= UNUSUAL or against)


def _outliers(attempts: Sequence[AttemptChecks]) -> NoiseFinding:
    outlying, rounds = (
        sum(each.outlying for each in attempts),
        sum(each.rounds for each in attempts),
    )
    if not outlying:
        return NoiseFinding(
            "Outliers", f"None of {count(rounds, 'pair')} lies far outside the others.", False
        )
    verb = "lies" if outlying == 1 else "lie"
    kept = "all are kept and shown, with little weight in the fit"
    statement = f"{outlying} of {count(rounds, 'pair')} {verb} far outside the others; {kept}."
    return NoiseFinding("Outliers", statement, outlying > rounds / 10)


def _mean(mean: Contrast, pooling: Pooling) -> NoiseFinding:
    uneven = mean_disagrees(mean, pooling.speedup)
    statement = (
        f"The ratio of mean times is {exp(mean.effect):.3f}×, that of typical forwards"
        f" {pooling.speedup.value:.3f}×."
    )
    if uneven:
        statement += (
            " Some forwards take much longer, which counts where all of them are waited for."
        )
    return NoiseFinding("Mean times", statement, uneven)


def _device(nulls: Sequence[tuple[float, str]]) -> NoiseFinding:
    check = "Null comparisons of the machine"
    if not nulls:
        statement = (
            "No sweep measured the unmodified model against itself here; this one does: breakeven"
            " run null"
        )
        return NoiseFinding(check, statement, False)
    wrong = sum(verdict in {"faster", "slower"} for _, verdict in nulls)
    values = [value for value, _ in nulls]
    spread = f"{min(values):.3f}× to {max(values):.3f}×" if len(values) > 1 else f"{values[0]:.3f}×"
    statement = (
        f"Equal arms measured here: {count(len(nulls), 'speed-up')}, {spread}; {wrong} called"
        " faster or slower."
    )
    return NoiseFinding(check, statement, wrong > 0)


def _readings(attempts: Sequence[AttemptChecks]) -> Iterator[NoiseFinding]:
    check = "Readings of the machine"
    if not any(each.readings for each in attempts):
        yield NoiseFinding(check, "The machine offered no readings.", False)
        return
    notes = {each.attempt: list(notes_on(each.readings)) for each in attempts}
    if not any(notes.values()):
        steady = (
            "Steady clocks"
            if all(has_clock(each.readings) for each in attempts)
            else "Clocks could not be read"
        )
        yield NoiseFinding(check, f"{steady}; no other work worth a note.", False)
        return
    listed = [
        f"attempt {attempt}: {', '.join(own)}" if len(attempts) > 1 else ", ".join(own)
        for attempt, own in notes.items()
        if own
    ]
    yield NoiseFinding(check, f"Stands out: {'; '.join(listed)}.", True)


def _likely(p: float | None) -> str:
    return "without an error of it" if p is None else f"by chance alone as far {_chance(p)}"


def _chance(p: float) -> str:
    return "in less than 0.1 % of cases" if p < 1e-3 else f"in {100 * p:.2g} % of cases"


def _size(log: float) -> str:
    return f"{100 * (exp(abs(log)) - 1):.2g} %"


def _rank(p: float | None) -> float:
    return 1.0 if p is None else p


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
    how = (
        "location (Huber) of the log ratios of all pairs of a round in that state, whose error is"
        " smaller than that of mean times"
        if pooling.by_pairs
        else "mean times of each column in that state; what lies far from its visit's median is"
        " clipped"
    )
    yield RuleLine("Estimate", how, f"log {found.log:+.5f}: {found.value:.3f}×")
    shown = (
        f"each left out once: SD {between.sd:.5f}, {_freedom(between.freedom)}; "
        if between.freedom > 0
        else "one visit of a run; "
    )
    how = (
        f"{shown}before any are compared {pooling.floor.sd:.3g}, {_freedom(pooling.floor.freedom)}"
    )
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
    if (runs := pooling.between_runs).sd:
        how = f"beyond their visits; before any are compared {RUN_SD:g}, {_freedom(RUN_FREEDOM)}"
        yield RuleLine("Between runs", how, f"SD {runs.sd:.5f}, {_freedom(runs.freedom)}")
    how = "the SD between visits × √(sum of their squared shares of these rounds)"
    yield RuleLine("Inside runs", how, f"±{pooling.inside:.5f}")
    how = "both SDs by their shares; of the k-th run by the k-th part of the level"
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
