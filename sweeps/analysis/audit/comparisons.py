"""Rules on comparisons: speed-ups against MACs and against their own rows, tokens against keep
rates, and break-evens that a source claims against measured points on both sides.
"""

import math
from collections.abc import Iterator

import numpy as np

from sweeps.analysis.audit.frame import (
    SAME_ARM,
    AuditColumn,
    AuditFrame,
    Checked,
    MeasurementFinding,
    allowed_each,
    members,
    place_of_row,
    rounding,
    roundings,
)
from sweeps.importers.measurement import Measurement, StatedBreakEven

SLACK = 0.005
"""Of ratios stated beside rounded numbers: they may have been made of throughputs or of latencies,
before rounding or after."""


def measured_speedups(frame: AuditFrame, rows: AuditColumn) -> AuditColumn:
    """Time per item of the only baseline over that of each row, both by throughput or both by
    latency; or NaN.

    Of our own rows it is the speed-up by pairs alone: their times may be of different runs.
    """
    if frame.job_noise is not None:
        return frame.column("paired")[rows]
    beside = frame.beside[rows]
    rate, latency = (frame.column(name) for name in ("throughput", "latency_ms"))
    ratio = rate[rows] / rate[beside]
    ratio = np.where(np.isnan(ratio), latency[beside] / latency[rows], ratio)
    return np.asarray(np.where(beside < 0, np.nan, ratio))


def beyond_macs(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """No arm is faster than its MACs promise, unless the table explains it.

    Source: fewer operations of the same kind save at most their share of the time. Memory traffic
    that falls faster than MACs (attention matrices, a working set that comes to fit a cache) can
    exceed it, so this is doubtful, no contradiction. Cannot decide: which of both times is wrong.
    """
    gmacs, beside = frame.column("gmacs"), frame.beside[rows]
    speedups = measured_speedups(frame, rows)
    speedups = np.where(np.isnan(speedups), frame.column("speedup")[rows], speedups)
    promises = np.where(beside < 0, np.nan, gmacs[beside] / gmacs[rows])
    compared = ~np.isnan(speedups) & ~np.isnan(promises)
    rows, beside, speedups, promises = (
        rows[compared],
        beside[compared],
        speedups[compared],
        promises[compared],
    )
    wrong = np.log(speedups / promises) > allowed_each(
        (speedups, promises), frame.noise_at(rows), len(rows)
    )
    if wrong.any():
        worst = int(np.argmax(np.where(wrong, speedups / promises, -np.inf)))
        row, baseline = frame.row(rows[worst]), frame.row(beside[worst])
        yield MeasurementFinding(
            "doubtful",
            np.concatenate((rows[wrong], beside[wrong])),
            f"{place_of_row(row)} is {speedups[worst]:.1f} times as fast as the unmodified model"
            f" where its MACs ({baseline.gmacs:g} to {row.gmacs:g}) promise {promises[worst]:.2f}"
            " at most",
            "measure the unmodified model again, side by side with the arm",
        )
    return len(rows)


def stated_ratio(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A stated speed-up or change of the time follows from the rows that it is about.

    Source: baseline over arm; a change of c per cent is a speed-up of 1 / (1 + c / 100). Tolerance:
    the rounding of all numbers, and `SLACK`. Cannot decide: which number was copied wrongly, or
    what a per cent is of.
    """
    beside = frame.beside[rows]
    speedup, change = frame.at(rows, "speedup", "latency_change")
    factor = 1 + change / 100
    half = np.where(change == 0, SLACK, roundings(change) * np.abs(change) / 100) / factor
    stated = ((speedup, roundings(speedup)), (1 / factor, half))
    near, known = [], []
    for name, inverse in (("throughput", False), ("latency_ms", True)):
        own, other = (
            frame.column(name)[rows],
            np.where(beside < 0, np.nan, frame.column(name)[beside]),
        )
        known.append((other / own if inverse else own / other, roundings(own) + roundings(other)))
    measured = ~np.isnan(known[0][0]) | ~np.isnan(known[1][0])
    for number, step in stated:
        fits = [np.abs(np.log(number / ratio)) <= step + error + SLACK for ratio, error in known]
        near.append(~np.isnan(number) & measured & ~fits[0] & ~fits[1])
    both = ~np.isnan(speedup) & ~np.isnan(change)
    apart = both & (np.abs(np.log(speedup * factor)) > stated[0][1] + stated[1][1] + SLACK)
    comparisons = int(
        sum((~np.isnan(number) & measured).sum() for number, _ in stated) + both.sum()
    )
    wrong = near[0] | near[1] | apart
    ratios = np.where(np.isnan(known[0][0]), known[1][0], known[0][0])
    yield from _misstated(frame, rows[wrong], np.array((*near, apart))[:, wrong], ratios[wrong])
    return comparisons


def _misstated(
    frame: AuditFrame, rows: AuditColumn, wrong: AuditColumn, ratios: AuditColumn
) -> Iterator[MeasurementFinding]:
    """`wrong`: whether the speed-up, the change, and both together are."""
    by_ratio, by_change, apart = wrong
    if not len(rows):
        return
    facts: list[str] = []
    for place in range(min(3, len(rows))):
        row = frame.row(rows[place])
        where, words = place_of_row(row), _words(row)
        for differs, stated in ((by_ratio, words[0]), (by_change, words[1])):
            if differs[place]:
                facts.append(f"{where}: {stated}, its rows are {ratios[place]:.3g}x apart")
        if apart[place]:
            other = 1 / (1 + (row.latency_change or 0) / 100)
            facts.append(f"{where}: {words[0]} and {words[1]} ({other:.3g}x) are not the same")
    number = int(by_ratio.sum() + by_change.sum() + apart.sum())
    yield MeasurementFinding(
        "contradiction",
        rows,
        "; ".join(facts[:3]) + (f"; and {number - 3} more" if number > 3 else ""),
        "state the times from which the ratio was made, and what it is of",
    )


def _words(row: Measurement) -> tuple[str, str]:
    change = 0.0 if row.latency_change is None else row.latency_change
    return (
        f"a speed-up of {row.speedup or math.nan:g}x is stated",
        f"a time that changes by {change:+g} % is stated",
    )


def stage_tokens(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """Tokens that are stated to be left agree with a keep rate that is applied in several stages.

    Source: each stage keeps its share of what the one before left (`ceil` or `floor`), or the i-th
    stage its rate to the power of i of all: both are counted, with one token for each stage that
    fuses what it drops, and one for the class token. Cannot decide: a keep rate that is stated of
    all stages together.
    """
    rows = rows[frame.column("stages")[rows] > 1]
    groups = frame.codes(("tokens", "keep_rate", "stages", "tokens_final"), rows)
    firsts: list[int] = np.unique(groups, return_index=True)[1].tolist()
    for place in firsts:
        row = frame.row(rows[place])
        tokens, rate, stages, final = (
            row.tokens or 0,
            row.keep_rate or 1.0,
            row.stages or 1,
            row.tokens_final or 0,
        )
        left = _left(tokens, rate, stages)
        if min(left) - 1 <= final <= max(left) + stages + 1:
            continue
        steps = [tokens]
        for _stage in range(stages):
            steps.append(math.ceil(rate * steps[-1] - 1e-9))
        one = final in _left(tokens, rate, 1)
        end = "one patch token" if steps[-1] == 1 else f"{steps[-1]} patch tokens"
        yield MeasurementFinding(
            "contradiction",
            rows[groups == groups[place]],
            f"keep rate {rate:g} in {stages} stages ends with {end}"
            f" ({' → '.join(map(str, steps))}), not {final}"
            + (", which is what one stage leaves" if one else ""),
            "print the tokens of each block in one forward",
        )
    return len(rows)


def _left(tokens: int, rate: float, stages: int) -> set[int]:
    """Patch tokens after so many stages by each convention."""
    found = {
        int(tokens * rate**stages),
        math.ceil(tokens * rate**stages - 1e-9),
        round(tokens * rate**stages),
    }
    for rounded in (math.ceil, math.floor):
        left = tokens
        for _ in range(stages):
            left = rounded(rate * left + (1e-9 if rounded is math.floor else -1e-9))
        found.add(left)
    return found


def half_step(value: float) -> float:
    """Half of the last written digit of a number."""
    return rounding(value) * abs(value)


CLOSE = 2.0
"""A break-even is borne out where the measured places on both sides of it are within this factor of
each other: a doubling of the size of the work brackets it."""


def break_even_without_data(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A claimed break-even has measured points close to it on both sides, between which the effect
    changes its sign.

    Source: between two places any crossing fits what was measured; beyond them none follows. Close
    is `CLOSE`. Cannot decide: where the break-even is, nor of which arm a claim is: it holds if one
    arm of the table bears it out.
    """
    rows = rows[~frame.is_baseline[rows]]
    claims = 0
    for claim in frame.break_evens:
        own = rows[frame.stated(claim.axis)[rows]]
        if len(own):
            claims += 1
            yield from _unborne_claim(frame, own, claim)
    return claims


def _unborne_claim(
    frame: AuditFrame, rows: AuditColumn, claim: StatedBreakEven
) -> Iterator[MeasurementFinding]:
    """What is wrong with a claim by the first arm, where no arm bears it out."""
    groups = frame.codes(SAME_ARM, rows)
    first = None
    for own in members(groups, range(int(groups.max()) + 1)):
        wrong = _unborne(frame, rows[own], claim)
        if wrong is None:
            return
        first = first or wrong
    if first is not None:
        yield first


def _unborne(
    frame: AuditFrame, group: AuditColumn, claim: StatedBreakEven
) -> MeasurementFinding | None:
    """What is wrong with a claim by the rows of one arm."""
    axis = claim.axis.replace("_", " ")
    at = frame.column(claim.axis)[group]
    places = np.unique(at)
    name, settles = (
        f"the break-even at {claim.at:g} {axis}",
        f"measure at {axis} around {claim.at:g}",
    )
    below, above = places[places <= claim.at], places[places >= claim.at]
    if not len(below) or not len(above):
        side = (
            f"above the largest measured, {places[-1]:g}"
            if not len(above)
            else f"below the smallest measured, {places[0]:g}"
        )
        return MeasurementFinding(
            "doubtful", group, f"{name} lies {side}: it is extrapolated", settles
        )
    low, high = float(below[-1]), float(above[0])
    beside = group[(at == low) | (at == high)]
    if high / low > CLOSE:
        fact = (
            f"{name} has no data between {low:g} and {high:g}: any crossing in between fits the"
            " table"
        )
        return MeasurementFinding("doubtful", beside, fact, settles)
    signs = _signs(frame, group, at, (low, high)) if low < high else set()
    if len(signs) == 1:
        word = "faster" if signs == {True} else "slower"
        return MeasurementFinding(
            "contradiction",
            beside,
            f"{name} is no crossing: the arm is {word} at {low:g} and at {high:g}",
            settles,
        )
    return None


def _signs(
    frame: AuditFrame, group: AuditColumn, at: AuditColumn, places: tuple[float, float]
) -> set[bool]:
    """Whether the arm is clearly faster at the places; empty where that is not known at both or not
    clear.
    """
    allowed = float(allowed_each((np.array([1.0001]),) * 2, frame.noise_at(group), 2)[0])
    found: set[bool] = set()
    for place in places:
        own = group[at == place]
        speedups = measured_speedups(frame, own)
        speedups = np.where(np.isnan(speedups), frame.column("speedup")[own], speedups)
        known = speedups[~np.isnan(speedups)]
        if not len(known) or (np.abs(np.log(known)) <= allowed).any():
            return set()
        found |= set((known > 1).tolist())
    return found
