"""Rules on batches: throughput, latency and batch size of one run are tied to each other."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from sweeps.audit.rule import Noticed
from sweeps.audit.tolerance import allowed, curve_of_batches, grouped, in_words, noise_of, place_of_row, quantile_of
from sweeps.number_format import count
from sweeps.references.measurement import LatencyUnit, Measurement, MeasurementTable

FLAT_SLOPE = 0.1
"""Slope of a logarithm over that of the batch up to which a quantity counts as flat, noise apart: 2 % more for each 20 %."""
LEAST_SPAN = 4
"""A batch must grow by this factor before flatness is looked for."""
LARGEST_DROP = 1.5
"""By which a throughput may drop from one batch to a larger one: a batch that needs one more wave of tiles than the one before
loses at most a third (from one wave to two with hardly more work)."""
SETTLES_BATCH = "count the images of one forward with a hook, and time at least 30 forwards of each batch"


def throughput_times_latency(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """Throughput times latency is the batch (latency per batch), or 1 (latency per image).

    Source: both are the same images over the same time. A product of 1 at every batch size, with the latency of a batch, means that
    one image was timed each time. Cannot decide: where the latency's unit is not stated, whether a product of 1 is that, or the
    latency of an image.
    """
    if table.items != "images":
        return
    noise = noise_of(table, rows)
    several = [row for row in rows if row.batch and row.batch > 1]
    single = [row for row in several if _near(row, 1, noise, len(rows))]
    other = [row for row in rows if not _near(row, 1, noise, len(rows)) and not _near(row, row.batch or 1, noise, len(rows))]
    if table.latency == "per_batch" and single:
        row = max(single, key=lambda row: row.batch or 0)
        products = [_product(row) for row in single]
        low, high = min(products), max(products)
        shown = f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
        yield Noticed(
            "contradiction",
            tuple(single),
            f"throughput × latency is one image ({shown}) at every one of the batch sizes {in_words(row.batch for row in single)}: "
            f"{row.throughput:g}/s × {row.latency_ms:g} ms = {_product(row):.3f} image at batch {row.batch}; "
            f"{row.batch} images in {row.latency_ms:g} ms would be {(row.batch or 1) / (row.latency_ms or 1) * 1e3:,.0f}/s. "
            "One image was timed at each of them",
            SETTLES_BATCH,
        )
    whole = [row for row in several if table.latency == "per_image" and _near(row, row.batch or 1, noise, len(rows))]
    if whole:
        yield Noticed(
            "doubtful",
            tuple(whole),
            f"throughput × latency is the batch size at {in_words(row.batch for row in whole)}, so the latency is of a batch, "
            "though it is stated per image",
            "state what the latency is the time of",
        )
    if other:
        row = max(other, key=lambda row: abs(math.log(_product(row) / (row.batch or 1))))
        yield Noticed(
            "contradiction",
            tuple(other),
            f"{place_of_row(row)}: {row.throughput:g}/s × {row.latency_ms:g} ms = {_product(row):.3g} images, neither the batch of "
            f"{row.batch} nor one image, beyond rounding and a noise of {100 * noise:.2g} %",
            "state whether both come from the same run; report the raw times",
        )


def _product(row: Measurement) -> float:
    return (row.throughput or math.nan) * (row.latency_ms or math.nan) / 1e3


def _near(row: Measurement, items: int, noise: float, comparisons: int) -> bool:
    values = (row.throughput or math.nan, row.latency_ms or math.nan)
    return abs(math.log(_product(row) / items)) <= allowed(values, noise, comparisons)


def inferred_latency(table: MeasurementTable) -> LatencyUnit | None:
    """What the latency is the time of where that is not stated, by its product with the throughput at batches above 1.

    A product of 1 throughout does not decide: `None`.
    """
    rows = [row for row in table.rows if row.throughput and row.latency_ms and row.batch and row.batch > 1]
    noise = noise_of(table, rows)
    if rows and all(_near(row, row.batch or 1, noise, len(rows)) for row in rows):
        return "per_batch"
    return None


def flat_throughput(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """Throughput and the latency of a batch are not both flat over batch sizes.

    Source: batch = throughput × latency of a batch, so that the slopes of their logarithms over that of the batch add up to 1.
    A throughput that is flat because the device is saturated has a latency that grows with the batch, and is right. Cannot decide:
    without a latency, whether a flat throughput is a saturated device or a batch that was not run.
    """
    for group in grouped(rows, curve_of_batches).values():
        batches = sorted({row.batch for row in group if row.batch})
        if len(batches) < 2 or batches[-1] < LEAST_SPAN * batches[0]:
            continue
        noise = noise_of(table, group)
        throughputs = [row.throughput or math.nan for row in group]
        latencies = [row.latency_ms or math.nan for row in group]
        if table.latency == "per_image":
            latencies = [latency * (row.batch or 1) for latency, row in zip(latencies, group, strict=True)]
        slope_of_throughput, error = _slope(group, throughputs, noise)
        slope_of_latency, _ = _slope(group, latencies, noise)
        least = FLAT_SLOPE + quantile_of(2 * len(rows)) * error
        if abs(slope_of_throughput) > least or abs(slope_of_latency) > least:
            continue
        spread = max(throughputs) / min(throughputs) - 1
        middle = float(np.mean(throughputs))
        around = max(abs(value / middle - 1) for value in throughputs)
        ratio = batches[-1] / batches[0]
        fact = (
            f"{place_of_row(group[0]).rpartition(', batch')[0] or 'all rows'}: throughput is flat within {100 * around:.1f} % "
            f"({min(throughputs):g} to {max(throughputs):g}/s, {100 * spread:.1f} % apart) over a batch that grows {ratio:g} "
            f"times, and so is the latency ({min(latencies):g} to {max(latencies):g} ms)"
        )
        if table.latency is None:
            yield Noticed(
                "doubtful",
                tuple(group),
                f"{fact}: of a batch that contradicts itself, per image it means a device that one image saturates",
                "state what the latency is the time of; " + SETTLES_BATCH,
            )
        else:
            yield Noticed(
                "contradiction", tuple(group), f"{fact}: more images took no more time; the batch was not run", SETTLES_BATCH
            )


def _slope(rows: Sequence[Measurement], values: Sequence[float], noise: float) -> tuple[float, float]:
    """Slope of log value over log batch, and its standard error where only noise is at work."""
    x = np.log([float(row.batch or 1) for row in rows])
    centred = x - x.mean()
    square = float(centred @ centred)
    return float(centred @ np.log(values)) / square, noise / math.sqrt(square)


def steady_state(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """Over batch sizes a machine in a steady state takes no less time for more items, and its throughput does not break down.

    Source: a larger batch is more work, so its time is not shorter; and a batch that needs one wave of tiles more loses at most a
    third of the throughput (`LARGEST_DROP`). Cannot decide: which of the rows is wrong, nor whether a library chose another
    algorithm for one of them.
    """
    for group in grouped(rows, curve_of_batches).values():
        by_batch = sorted((row for row in group if row.batch), key=lambda row: row.batch or 0)
        noise = noise_of(table, group)
        broken: list[Measurement] = []
        facts: list[str] = []
        for smaller, larger in pairwise(by_batch):
            if smaller.batch == larger.batch:
                continue
            rates = [row.throughput or math.nan for row in (smaller, larger)]
            times = [(row.batch or 1) / rate * 1e3 for row, rate in zip((smaller, larger), rates, strict=True)]
            room = allowed(rates, noise, 2 * len(rows))
            if math.log(times[0] / times[1]) > room:
                facts.append(f"batch {larger.batch} would take {times[1]:.0f} ms, batch {smaller.batch} {times[0]:.0f} ms")
            elif math.log(rates[0] / rates[1]) > math.log(LARGEST_DROP) + room:
                facts.append(f"from batch {smaller.batch} to {larger.batch} throughput falls {rates[0] / rates[1]:.1f} times")
            else:
                continue
            broken += [row for row in (smaller, larger) if not any(row is other for other in broken)]
        if facts:
            rates_shown = ", ".join(f"{row.throughput:g}" for row in by_batch)
            yield Noticed(
                "contradiction",
                tuple(broken),
                f"{place_of_row(by_batch[0]).rpartition(', batch')[0]}: {rates_shown}/s at batch "
                f"{in_words(row.batch for row in by_batch)} "
                f"cannot be one machine's steady state: {'; '.join(facts)}",
                "repeat each batch several times in random order, with warm-up, clocks and other processes recorded",
            )


def counted_items(_: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """A forward holds as many items as its batch size.

    Source: a hook that counts what enters the model. Cannot decide: which of both numbers the times belong to.
    """
    wrong = [row for row in rows if row.batch_counted != row.batch]
    if wrong:
        row = wrong[0]
        yield Noticed(
            "contradiction",
            tuple(wrong),
            f"{place_of_row(row)}: {row.batch_counted} items were counted in a forward of batch {row.batch}"
            + (f", and so in {count(len(wrong) - 1, 'more row')}" if len(wrong) > 1 else ""),
            "time the batch that is named",
        )
