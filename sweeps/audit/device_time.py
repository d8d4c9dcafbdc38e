"""Rules on the time of the device: kernels against wall time, against MACs, and against what the device can do."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from sweeps.audit.rule import Noticed
from sweeps.audit.tolerance import allowed, arm_of, grouped, in_words, noise_of, place_of_row
from sweeps.number_format import count
from sweeps.references.measurement import Measurement, MeasurementTable

LARGEST_GAIN = 4.0
"""By which kernels may get more efficient as work grows, where no peak is known: DeiT-B on an RTX 2080 Ti goes from 5.0 TFLOP/s
(224 pixels, batch 1, 7.0 ms of kernels) to 17.1 (448 pixels, batch 8), 3.4 times."""
LEAST_COVERED = 0.5
"""Share of the kernel time from which on profiled kernels stand for a forward."""
SHORTEST_KERNEL_MS = 0.005
"""About what a kernel takes that has next to nothing to do; the background reports estimate 3 to 15 µs for small ones."""


def device_work(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """Time of the kernels of one arm grows with its MACs.

    Source: kernels on more work are at best more efficient by `LARGEST_GAIN`, less `SHORTEST_KERNEL_MS` for each, or by what is
    left to the device's peak where that is known; without a count of kernels or a peak it is doubtful. Where forwards are not
    stated, rows are compared as if they covered equally many, which equal counts of kernels bear out. Cannot decide: which of the
    rows is wrong; whether other kernels ran.
    """
    for group in grouped(rows, arm_of).values():
        noise = noise_of(table, group)
        found = []
        pairs = list(combinations(sorted(group, key=_work), 2))
        for small, large in pairs:
            if (small.forwards is None) != (large.forwards is None):
                continue
            times = [(row.kernel_ms or math.nan) / (row.forwards or 1) for row in (small, large)]
            grown, work = times[1] / times[0], _work(large) / _work(small)
            room = math.exp(allowed(times, noise, len(pairs)))
            if times[1] * room < _least_ms(small, times[0], work) or grown > work * LARGEST_GAIN * room:
                found.append((work / grown, small, large, grown, work))
        if found:
            _, small, large, grown, work = max(found, key=lambda one: abs(math.log(one[0])))
            alone = (large.gmacs or math.nan) / (small.gmacs or math.nan)
            single = large.batch != small.batch and grown < work and 0.5 < grown / alone < 2
            kernels = f", with {small.kernels:,} and {large.kernels:,} kernels" if small.kernels and large.kernels else ""
            yield Noticed(
                "contradiction" if grown < work and (small.kernels or small.peak_gflops) else "doubtful",
                tuple(row for row in group if any(row is one for each in found for one in each[1:3])),
                f"kernels take {grown:.1f} times as long at {place_of_row(large)} as at {place_of_row(small)} "
                f"({small.kernel_ms:g} and {large.kernel_ms:g} ms{kernels}) where MACs state {work:.1f} times "
                f"({small.gmacs:g} × {small.batch} and {large.gmacs:g} × {large.batch})"
                + (f"; with one image in both MACs grow {alone:.1f} times, which fits" if single else ""),
                "divide by the number of forwards, and count the images of one of them",
            )


def _work(row: Measurement) -> float:
    return (row.gmacs or math.nan) * (row.batch or 1)


def _least_ms(row: Measurement, kernel_ms: float, work: float) -> float:
    """The least that kernels can take for so many times the work of a row, whose forward has so many ms of them."""
    if row.peak_gflops and row.forwards:
        return min(kernel_ms, 2e3 * _work(row) / row.peak_gflops) * work
    idle_ms = SHORTEST_KERNEL_MS * (row.kernels or 0) / (row.forwards or 1)
    return max(0.0, kernel_ms - idle_ms) * work / LARGEST_GAIN


def device_within_wall(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """The device is not busy for longer than a forward takes.

    Source: a forward ends when its kernels have. Kernels of several streams may overlap, and a profiler lengthens kernels a little:
    only what exceeds noise is reported. Cannot decide: streams that really ran side by side.
    """
    noise = noise_of(table, rows)
    wrong = []
    for row in rows:
        wall, busy_ms = table.batch_seconds(row), row.device_ms
        if row.kernel_ms is not None and row.forwards is not None:
            busy_ms = max(busy_ms or 0.0, row.kernel_ms / row.forwards)
        if wall is not None and busy_ms is not None:
            ratio = busy_ms / (1e3 * wall)
            if math.log(ratio) > allowed((busy_ms, row.latency_ms or 1.0), noise, len(rows)):
                wrong.append((ratio, row, busy_ms, 1e3 * wall))
    if wrong:
        ratio, row, busy_ms, wall_ms = max(wrong, key=lambda one: one[0])
        yield Noticed(
            "contradiction",
            tuple(one[1] for one in wrong),
            f"{place_of_row(row)}: the device is busy for {busy_ms:.3g} ms of a forward that takes {wall_ms:.3g} ms, {ratio:.2f} "
            "times as long",
            "take both from the same run, and the union of kernel intervals in place of their sum",
        )


def totals_per_forward(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """A total over several forwards states how many they are, before it is set beside the time of one.

    Source: kernels of one forward fit into its wall time. Cannot decide: how many forwards there were (warm-up, timed ones and
    those that counted FLOPs are all in a trace).
    """
    noise = noise_of(table, rows)
    wrong = []
    for row in rows:
        wall = table.batch_seconds(row)
        if row.forwards is None and wall is not None and row.kernel_ms is not None:
            ratio = row.kernel_ms / (1e3 * wall)
            if math.log(ratio) > allowed((row.kernel_ms, row.latency_ms or 1.0), noise, len(rows)):
                wrong.append((ratio, row, 1e3 * wall))
    if wrong:
        ratio, row, wall_ms = max(wrong, key=lambda one: one[0])
        yield Noticed(
            "doubtful",
            tuple(one[1] for one in wrong),
            f"{place_of_row(row)}: {row.kernel_ms:g} ms of kernels are {ratio:.1f} times the wall time of one forward "
            f"({wall_ms:.3g} ms): a total over at least {math.ceil(ratio * 0.95)} forwards, whose number is not stated; a "
            "difference of such totals is no time that one forward saves",
            "divide by the forwards in the trace (launches of a kernel that runs once in each block, over the blocks)",
        )


def beyond_peak(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """No row does more operations per second than its device can.

    Source: 2 × MACs × throughput against the stated or measured peak. Cannot decide: whether the MACs, the throughput or the peak
    (of another dtype) is wrong.
    """
    noise = noise_of(table, rows)
    wrong = []
    for row in rows:
        seconds = table.item_seconds(row)
        if seconds is None:
            continue
        reached = 2 * (row.gmacs or math.nan) / seconds
        if math.log(reached / (row.peak_gflops or math.nan)) > allowed(
            (row.throughput or row.latency_ms or 1.0,), noise, len(rows)
        ):
            wrong.append((reached / (row.peak_gflops or math.nan), row, reached))
    if wrong:
        ratio, row, reached = max(wrong, key=lambda one: one[0])
        yield Noticed(
            "contradiction",
            tuple(one[1] for one in wrong),
            f"{place_of_row(row)}: {row.gmacs:g} GMACs every {1e3 * (table.item_seconds(row) or math.nan):.3g} ms are "
            f"{reached:,.0f} GFLOP/s, {ratio:.2f} times the {row.peak_gflops:,.0f} that {row.device or 'the device'} reaches"
            + (f"; {len(wrong)} rows do more than it" if len(wrong) > 1 else ""),
            "check the unit of the MACs, the batch that ran, and that the device was waited for before the clock was read",
        )


def profile_coverage(_: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """The kernels of a profile take most of the kernel time of the forward that it stands for.

    Source: means over a few kernels are about these alone: three casts of weights with 3 % utilisation do not make a forward with
    3 %. Most is `LEAST_COVERED`. Cannot decide: what the kernels that were not profiled would show.
    """
    for row in rows:
        share = row.covered or 0.0
        if share < LEAST_COVERED:
            kernels = count(round((row.kernels or 0) / (row.forwards or 1)), "kernel")
            yield Noticed(
                "doubtful" if row.counters else "note",
                (row,),
                f"{place_of_row(row)}: {kernels} profiled, which take {100 * share:.2g} % of the kernel time of a forward"
                + (f"; {in_words(row.counters)} are about these alone" if row.counters else ""),
                "profile all kernels of one forward, or name the kernels beside their numbers",
            )
