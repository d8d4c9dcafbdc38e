"""What would show that a speed-up is noise: checks as plain statements with their numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, inf
from typing import NamedTuple

from sweeps.model.metrics import has_clock, notes_on
from sweeps.number_format import count
from sweeps.stats.noise_checks import Halves, Signs, no_effect_p
from sweeps.stats.pooling import mean_disagrees
from sweeps.stats.timing import Contrast
from sweeps.stats.visits import Pooling

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
