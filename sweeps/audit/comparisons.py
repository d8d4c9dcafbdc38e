"""Rules on comparisons: speed-ups against MACs and against their own rows, break-evens against data, tokens against keep rates."""

import math
from collections.abc import Iterator, Sequence

from sweeps.audit.rule import Noticed
from sweeps.audit.tolerance import allowed, arm_of, grouped, noise_of, place_of_row, rounding
from sweeps.references.measurement import Measurement, MeasurementTable, StatedBreakEven, condition_of

SLACK = 0.005
"""Of ratios stated beside rounded numbers: they may have been made of throughputs or of latencies, before rounding or after."""
CLOSE = 2.0
"""A break-even is borne out where the measured places on both sides of it are within this factor of each other: a doubling of the
size of the work brackets it."""


def beside_of(table: MeasurementTable, row: Measurement) -> Measurement | None:
    """The only row of the unmodified model at the row's condition."""
    found = table.baselines.get(condition_of(row), [])
    return found[0] if len(found) == 1 and not table.is_baseline(row) else None


def measured_speedup(row: Measurement, baseline: Measurement) -> float | None:
    """Time per item of the baseline over that of the row, both by throughput or both by latency."""
    if row.throughput and baseline.throughput:
        return row.throughput / baseline.throughput
    if row.latency_ms and baseline.latency_ms:
        return baseline.latency_ms / row.latency_ms
    return None


def beyond_macs(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """No arm is faster than its MACs promise, unless the table explains it.

    Source: fewer operations of the same kind save at most their share of the time. Memory traffic that falls faster than MACs
    (attention matrices, a working set that comes to fit a cache) can exceed it, so this is doubtful, no contradiction. Cannot
    decide: which of both times is wrong.
    """
    noise = noise_of(table, rows)
    wrong = []
    for row in rows:
        baseline = beside_of(table, row)
        if baseline is None or baseline.gmacs is None or row.gmacs is None:
            continue
        speedup, promise = measured_speedup(row, baseline) or row.speedup, baseline.gmacs / row.gmacs
        if speedup and math.log(speedup / promise) > allowed((speedup, promise), noise, len(rows)):
            wrong.append((speedup / promise, row, baseline, speedup, promise))
    if wrong:
        _, row, baseline, speedup, promise = max(wrong, key=lambda one: one[0])
        yield Noticed(
            "doubtful",
            tuple(found for one in wrong for found in one[1:3]),
            f"{place_of_row(row)} is {speedup:.1f} times as fast as the unmodified model where its MACs ({baseline.gmacs:g} to "
            f"{row.gmacs:g}) promise {promise:.2f} at most",
            "measure the unmodified model again, side by side with the arm",
        )


def stated_ratio(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """A stated speed-up or change of the time follows from the rows that it is about.

    Source: baseline over arm; a change of c per cent is a speed-up of 1 / (1 + c / 100). Tolerance: the rounding of all numbers,
    and `SLACK`. Cannot decide: which number was copied wrongly, or what a per cent is of.
    """
    wrong: list[tuple[Measurement, str]] = []
    for row in rows:
        baseline, stated = beside_of(table, row), _stated(row)
        measured = _measured_ratios(row, baseline) if baseline else []
        for number, half_step, words in stated:
            if measured and not any(abs(math.log(number / ratio)) <= half_step + error + SLACK for ratio, error in measured):
                ratio = measured[0][0]
                wrong.append((row, f"{place_of_row(row)}: {words}, its rows are {ratio:.3g}x apart"))
        if len(stated) == 2:
            (one, half, words), (other, half_other, words_other) = stated
            if abs(math.log(one / other)) > half + half_other + SLACK:
                wrong.append((row, f"{place_of_row(row)}: {words} and {words_other} ({other:.3g}x) are not the same"))
    if wrong:
        found = {id(row): row for row, _ in wrong}
        yield Noticed(
            "contradiction",
            tuple(found.values()),
            "; ".join(sentence for _, sentence in wrong[:3]) + (f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""),
            "state the times from which the ratio was made, and what it is of",
        )


def _stated(row: Measurement) -> list[tuple[float, float, str]]:
    """Each stated figure as a speed-up, the relative half step of its last digit, and in words."""
    found = []
    if row.speedup is not None:
        found.append((row.speedup, rounding(row.speedup), f"a speed-up of {row.speedup:g}x is stated"))
    if row.latency_change is not None:
        factor = 1 + row.latency_change / 100
        step = rounding(row.latency_change) * abs(row.latency_change) / 100 if row.latency_change else SLACK
        found.append((1 / factor, step / factor, f"a time that changes by {row.latency_change:+g} % is stated"))
    return found


def _measured_ratios(row: Measurement, baseline: Measurement) -> list[tuple[float, float]]:
    """Speed-up by throughputs and by latencies, each with its rounding."""
    found = []
    for own, other, inverse in (
        (row.throughput, baseline.throughput, False),
        (row.latency_ms, baseline.latency_ms, True),
    ):
        if own and other:
            found.append((other / own if inverse else own / other, rounding(own) + rounding(other)))
    return found


def break_even_without_data(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """A claimed break-even has measured points close to it on both sides, between which the effect changes its sign.

    Source: between two places any crossing fits what was measured; beyond them none follows. Close is `CLOSE`. Cannot decide: where
    the break-even is, nor of which arm a claim is: it holds if one arm of the table bears it out.
    """
    arms = list(grouped((row for row in rows if not table.is_baseline(row)), arm_of).values())
    for claim in table.break_evens:
        found = [_unborne(table, group, claim) for group in arms if any(getattr(row, claim.axis) is not None for row in group)]
        if found and None not in found:
            yield next(noticed for noticed in found if noticed is not None)


def _unborne(table: MeasurementTable, group: Sequence[Measurement], claim: StatedBreakEven) -> Noticed | None:
    """What is wrong with a claim by the rows of one arm."""
    axis = claim.axis.replace("_", " ")
    places = sorted({float(x) for row in group if (x := getattr(row, claim.axis)) is not None})
    name, settles = f"the break-even at {claim.at:g} {axis}", f"measure at {axis} around {claim.at:g}"
    below, above = [x for x in places if x <= claim.at], [x for x in places if x >= claim.at]
    if not below or not above:
        side = f"above the largest measured, {places[-1]:g}" if not above else f"below the smallest measured, {places[0]:g}"
        return Noticed("doubtful", tuple(group), f"{name} lies {side}: it is extrapolated", settles)
    low, high = below[-1], above[0]
    beside = tuple(row for row in group if getattr(row, claim.axis) in (low, high))
    if high / low > CLOSE:
        fact = f"{name} has no data between {low:g} and {high:g}: any crossing in between fits the table"
        return Noticed("doubtful", beside, fact, settles)
    signs = _signs(table, group, claim, (low, high)) if low < high else set()
    if len(signs) == 1:
        word = "faster" if signs == {True} else "slower"
        return Noticed("contradiction", beside, f"{name} is no crossing: the arm is {word} at {low:g} and at {high:g}", settles)
    return None


def _signs(table: MeasurementTable, group: Sequence[Measurement], claim: StatedBreakEven, places: tuple[float, float]) -> set[bool]:
    """Whether the arm is clearly faster at the places; empty where that is not known at both or not clear."""
    noise = noise_of(table, group)
    found: list[bool] = []
    for place in places:
        at_place = [row for row in group if getattr(row, claim.axis) == place]
        speedups = []
        for row in at_place:
            baseline = beside_of(table, row)
            speedups.append((measured_speedup(row, baseline) if baseline else None) or row.speedup)
        known = [speedup for speedup in speedups if speedup]
        if not known or any(abs(math.log(speedup)) <= allowed((1.0001, 1.0001), noise, 2) for speedup in known):
            return set()
        found += [speedup > 1 for speedup in known]
    return set(found)


def stage_tokens(_: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """Tokens that are stated to be left agree with a keep rate that is applied in several stages.

    Source: each stage keeps its share of what the one before left (`ceil` or `floor`), or the i-th stage its rate to the power of
    i of all: both are counted, with one token for each stage that fuses what it drops, and one for the class token. Cannot
    decide: a keep rate that is stated of all stages together.
    """
    wrong = []
    for row in rows:
        tokens, rate, stages, final = row.tokens or 0, row.keep_rate or 1.0, row.stages or 1, row.tokens_final or 0
        left = _left(tokens, rate, stages)
        if stages > 1 and not min(left) - 1 <= final <= max(left) + stages + 1:
            wrong.append((row, left))
    for group in grouped([row for row, _ in wrong], lambda row: (row.tokens, row.keep_rate, row.stages, row.tokens_final)).values():
        row = group[0]
        tokens, rate, stages = row.tokens or 0, row.keep_rate or 1.0, row.stages or 1
        steps = [tokens]
        for _stage in range(stages):
            steps.append(math.ceil(rate * steps[-1] - 1e-9))
        one = row.tokens_final in _left(tokens, rate, 1)
        end = "one patch token" if steps[-1] == 1 else f"{steps[-1]} patch tokens"
        yield Noticed(
            "contradiction",
            tuple(group),
            f"keep rate {rate:g} in {stages} stages ends with {end} ({' → '.join(map(str, steps))}), not {row.tokens_final}"
            + (", which is what one stage leaves" if one else ""),
            "print the tokens of each block in one forward",
        )


def _left(tokens: int, rate: float, stages: int) -> set[int]:
    """Patch tokens after so many stages by each convention."""
    found = {int(tokens * rate**stages), math.ceil(tokens * rate**stages - 1e-9), round(tokens * rate**stages)}
    for rounded in (math.ceil, math.floor):
        left = tokens
        for _ in range(stages):
            left = rounded(rate * left + (1e-9 if rounded is math.floor else -1e-9))
        found.add(left)
    return found
