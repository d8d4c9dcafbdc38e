"""Rules on batches and sizes: throughput, latency and batch size of one run are tied to each other;
with more tokens the unmodified model takes no less time, and an arm that removes none is as fast.
"""

import math
from collections.abc import Iterator

import numpy as np

from sweeps.analysis.audit.frame import (
    SAME_ARM,
    SAME_CURVE,
    AuditColumn,
    AuditFrame,
    Checked,
    MeasurementFinding,
    allowed_each,
    in_words,
    members,
    place_of_curve,
    place_of_row,
    quantile_of,
    roundings,
)
from sweeps.analysis.labels import SPEEDUP, conclude_interval
from sweeps.importers.measurement import LatencyUnit, Measurement
from sweeps.number_format import count

FLAT_SLOPE = 0.1
"""Slope of a logarithm over that of the batch up to which a quantity counts as flat, noise apart: 2
% more for each 20 %."""
MIN_SPAN = 4
"""A batch must grow by this factor before flatness is looked for."""
LARGEST_DROP = 1.5
"""By which a throughput may drop from one batch to a larger one: a batch that needs one more wave
of tiles than the one before loses at most a third (from one wave to two with hardly more work)."""
SETTLES_BATCH = (
    "count the images of one forward with a hook, and time at least 30 forwards of each batch"
)
MAX_LISTED = 12
"""AuditColumn that one sentence lists."""


def _products(frame: AuditFrame, rows: AuditColumn) -> AuditColumn:
    throughput, latency = frame.at(rows, "throughput", "latency_ms")
    return throughput * latency / 1e3


def _near(frame: AuditFrame, rows: AuditColumn) -> tuple[AuditColumn, AuditColumn]:
    """Whether throughput × latency is one image, and whether it is the batch."""
    columns = frame.at(rows, "throughput", "latency_ms")
    allowed = allowed_each(columns, frame.noise_at(rows), len(rows))
    products = np.log(_products(frame, rows))
    return (
        np.abs(products) <= allowed,
        np.abs(products - np.log(frame.column("batch")[rows])) <= allowed,
    )


def throughput_times_latency(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """Throughput times latency is the batch (latency per batch), or 1 (latency per image).

    Source: both are the same images over the same time. A product of 1 at every batch size, with
    the latency of a batch, means that one image was timed each time. Of tokens it holds for the
    time of a step. Cannot decide: where the latency's unit is not stated, whether a product of 1 is
    that, or the latency of an image.
    """
    if frame.items != "images" and not frame.steps:
        return 0
    one, whole_batch = _near(frame, rows)
    batch, products = frame.column("batch")[rows], _products(frame, rows)
    single, other = rows[(batch > 1) & one], ~one & ~whole_batch
    item = "image" if frame.items == "images" else "token"
    if frame.latency == "per_batch" and len(single):
        row = frame.row(int(single[np.argmax(frame.column("batch")[single])]))
        low, high = np.min(_products(frame, single)), np.max(_products(frame, single))
        shown = f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
        product = (row.throughput or math.nan) * (row.latency_ms or math.nan) / 1e3
        yield MeasurementFinding(
            "contradiction",
            single,
            f"throughput × latency is one {item} ({shown}) at every one of the batch sizes"
            f" {_batches(frame, single)}: {row.throughput:g}/s × {row.latency_ms:g} ms ="
            f" {product:.3f} {item} at batch {row.batch}; {row.batch} {item}s in {row.latency_ms:g}"
            f" ms would be {(row.batch or 1) / (row.latency_ms or 1) * 1e3:,.0f}/s. One {item} was"
            " timed at each of them",
            SETTLES_BATCH,
        )
    whole = rows[(batch > 1) & whole_batch] if frame.latency == "per_image" else rows[:0]
    if len(whole):
        yield MeasurementFinding(
            "doubtful",
            whole,
            f"throughput × latency is the batch size at {_batches(frame, whole)}, so the latency is"
            " of a batch, though it is stated per image",
            "state what the latency is the time of",
        )
    if other.any():
        worst = np.flatnonzero(other)[np.argmax(np.abs(np.log(products[other] / batch[other])))]
        row = frame.row(rows[worst])
        yield MeasurementFinding(
            "contradiction",
            rows[other],
            f"{place_of_row(row)}: {row.throughput:g}/s × {row.latency_ms:g} ms ="
            f" {products[worst]:.3g} {item}s, neither the batch of {row.batch} nor one {item},"
            f" beyond rounding and a noise of {100 * frame.noise_at(rows):.2g} %",
            "state whether both come from the same run; report the raw times",
        )
    return len(rows)


def _batches(frame: AuditFrame, rows: AuditColumn) -> str:
    batches = list(dict.fromkeys(frame.column("batch")[rows].astype(int).tolist()))
    return in_words(
        batches
        if len(batches) <= MAX_LISTED
        else [*batches[:MAX_LISTED], f"{len(batches) - MAX_LISTED} more"]
    )


def inferred_latency(frame: AuditFrame) -> LatencyUnit | None:
    """What the latency is the time of where that is not stated, by its product with the throughput
    at batches above 1.

    A product of 1 throughout does not decide: `None`.
    """
    known = frame.stated("throughput") & frame.stated("latency_ms") & (frame.column("batch") > 1)
    rows = np.flatnonzero(known)
    return (
        "per_batch"
        if len(rows) and frame.items == "images" and _near(frame, rows)[1].all()
        else None
    )


def flat_throughput(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """Throughput and the latency of a batch are not both flat over batch sizes.

    Source: batch = throughput × latency of a batch, so that the slopes of their logarithms over
    that of the batch add up to 1. A throughput that is flat because the device is saturated has a
    latency that grows with the batch, and is right. Cannot decide: without a latency, whether a
    flat throughput is a saturated device or a batch that was not run.
    """
    groups, x = frame.codes(SAME_CURVE, rows), np.log(frame.column("batch")[rows])
    if not len(rows):
        return 0
    number = np.bincount(groups)
    low, high = np.full(len(number), np.inf), np.full(len(number), -np.inf)
    np.minimum.at(low, groups, x)
    np.maximum.at(high, groups, x)
    wide = high - low >= math.log(MIN_SPAN) - 1e-12
    if not wide.any():
        return 0
    latency = frame.column("latency_ms")[rows] * (
        frame.column("batch")[rows] if frame.latency == "per_image" else 1
    )
    centred = x - (np.bincount(groups, x) / number)[groups]
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.bincount(groups, centred**2)
        slopes = [
            np.bincount(groups, centred * np.log(y)) / square
            for y in (frame.column("throughput")[rows], latency)
        ]
        noise = np.zeros(len(number))
        noise[groups] = frame.noise_of_groups(rows, groups)
        least = FLAT_SLOPE + quantile_of(2 * len(rows)) * noise / np.sqrt(square)
        flat = wide & (np.abs(slopes[0]) <= least) & (np.abs(slopes[1]) <= least)
    for own in members(groups, np.flatnonzero(flat)):
        yield _flat(frame, rows[own], latency[own])
    return int(wide.sum())


def _flat(frame: AuditFrame, own: AuditColumn, latencies: AuditColumn) -> MeasurementFinding:
    throughputs, batches = frame.at(own, "throughput", "batch")
    spread = throughputs.max() / throughputs.min() - 1
    middle = float(np.mean(throughputs))
    around = np.abs(throughputs / middle - 1).max()
    fact = (
        f"{place_of_curve(frame.row(own[0]))}: throughput"
        f" is flat within {100 * around:.1f} % ({throughputs.min():g} to {throughputs.max():g}/s,"
        f" {100 * spread:.1f} % apart) over a batch that grows {batches.max() / batches.min():g}"
        f" times, and so is the latency ({latencies.min():g} to {latencies.max():g} ms)"
    )
    if frame.latency is None:
        fact = (
            f"{fact}: of a batch that contradicts itself, per image it means a device that one"
            " image saturates"
        )
        return MeasurementFinding(
            "doubtful", own, fact, "state what the latency is the time of; " + SETTLES_BATCH
        )
    return MeasurementFinding(
        "contradiction",
        own,
        f"{fact}: more images took no more time; the batch was not run",
        SETTLES_BATCH,
    )


def steady_state(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """Over batch sizes a machine in a steady state takes no less time for more items, and its
    throughput does not break down.

    Source: a larger batch is more work, so its time is not shorter; and a batch that needs one wave
    of tiles more loses at most a third of the throughput (`LARGEST_DROP`). Cannot decide: which of
    the rows is wrong, nor whether a library chose another algorithm for one of them.
    """
    groups, (batch, rate) = frame.codes(SAME_CURVE, rows), frame.at(rows, "batch", "throughput")
    order = np.lexsort((batch, groups))
    small, large = order[:-1], order[1:]
    pairs = (groups[small] == groups[large]) & (batch[small] != batch[large])
    small, large = small[pairs], large[pairs]
    if not len(small):
        return 0
    allowed = allowed_each(
        (rate[small], rate[large]), frame.noise_of_groups(rows, groups)[small], 2 * len(rows)
    )
    shorter = np.log(batch[small] / rate[small] / (batch[large] / rate[large])) > allowed
    falls = ~shorter & (np.log(rate[small] / rate[large]) > math.log(LARGEST_DROP) + allowed)
    broken = np.flatnonzero(shorter | falls)
    wanted = np.unique(groups[small[broken]])
    of_group = members(groups[small[broken]], wanted)
    for own, places in zip(members(groups, wanted), of_group, strict=True):
        facts, pairs = [], broken[places]
        for pair in pairs[:MAX_LISTED]:
            one, other = small[pair], large[pair]
            if shorter[pair]:
                times = [1e3 * batch[each] / rate[each] for each in (one, other)]
                facts.append(
                    f"batch {batch[other]:.0f} would take {times[1]:.0f} ms, batch {batch[one]:.0f}"
                    f" {times[0]:.0f} ms"
                )
            else:
                facts.append(
                    f"from batch {batch[one]:.0f} to {batch[other]:.0f} throughput falls"
                    f" {rate[one] / rate[other]:.1f} times"
                )
        more = len(pairs) - MAX_LISTED
        ranked = own[np.argsort(batch[own], kind="stable")][:MAX_LISTED]
        yield MeasurementFinding(
            "contradiction",
            rows[np.unique(np.concatenate((small[pairs], large[pairs])))],
            f"{place_of_curve(frame.row(rows[ranked[0]]))}:"
            f" {', '.join(f'{rate[each]:g}' for each in ranked)}/s at batch"
            f" {in_words(batch[ranked].astype(int).tolist())} cannot be one machine's steady state:"
            f" {'; '.join(facts)}" + (f"; and {more} more" if more > 0 else ""),
            "repeat each batch several times in random order, with warm-up, clocks and other"
            " processes recorded",
        )
    return len(small)


def counted_items(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A forward holds as many items as its batch size.

    Source: a hook that counts what enters the model. Cannot decide: which of both numbers the times
    belong to.
    """
    wrong = rows[np.not_equal(*frame.at(rows, "batch_counted", "batch"))]
    if len(wrong):
        row = frame.row(wrong[0])
        yield MeasurementFinding(
            "contradiction",
            wrong,
            f"{place_of_row(row)}: {count(row.batch_counted or 0, 'item')}"
            f" {'was' if row.batch_counted == 1 else 'were'} counted in a forward of batch"
            f" {row.batch}"
            + (f", and so in {count(len(wrong) - 1, 'more row')}" if len(wrong) > 1 else ""),
            "time the batch that is named",
        )
    return len(rows)


MIN_SLOWDOWN = 1.1
"""From this factor on a smaller size that takes longer is a finding. The medians of two jobs differ
by 5 % by chance (each is known to 3.6 %, half of its 95 % interval on a shared CPU); a tenth is
twice as much, and as large as the speed-ups that break-evens and fits are about. Where the noise of
a table allows more, its tolerance counts."""
MAX_SIZES = 4
"""Sizes that one sentence works out."""
MISS = 0.01
"""Share of the intervals of speed-ups that miss by chance (`sweeps.stats.pooling.ALPHA`)."""


def time_of_sizes(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """The unmodified model does not take notably longer with fewer tokens than with more.

    Source: more tokens of one model are more work of the same kind. Notably is `MIN_SLOWDOWN`, and
    beyond what noise does between jobs. Cannot decide: whether the machine was in another state
    while one of the sizes was measured, or handles that size worse (kernels and caches prefer some
    sizes). A speed-up is formed inside a job and stands in both cases; break-evens and fits join
    sizes.
    """
    rows = rows[frame.is_baseline[rows]]
    times = frame.batch_ms[rows]
    by_rate = (
        1e3 * np.nan_to_num(frame.column("batch")[rows], nan=1) / frame.column("throughput")[rows]
    )
    times = np.where(np.isnan(times), by_rate, times)
    if not len(rows):
        return 0
    groups = frame.codes((*SAME_ARM, "batch"), rows)
    curves = [
        _medians(frame, rows[own], times[own])
        for own in members(groups, range(int(groups.max()) + 1))
    ]
    curves = [curve for curve in curves if len(curve[0]) > 1]
    pairs = sum(len(sizes) * (len(sizes) - 1) // 2 for sizes, _, _ in curves)
    noise = frame.job_noise or frame.noise_at(rows)
    for _, ms, own_rows in curves:
        yield from _out_of_order(frame, ms, own_rows, noise, pairs)
    return pairs


def _medians(
    frame: AuditFrame, rows: AuditColumn, times: AuditColumn
) -> tuple[AuditColumn, AuditColumn, list[AuditColumn]]:
    """Sizes of one curve by their tokens, or pixels where tokens are not known; the median of their
    times; their rows.
    """
    sizes = frame.column("tokens")[rows]
    if np.isnan(sizes).any():
        sizes = frame.column("image_size")[rows]
    known = ~np.isnan(times) & (sizes > 0)
    rows, times, sizes = rows[known], times[known], sizes[known]
    found, codes = np.unique(sizes, return_inverse=True)
    own = list(members(codes, range(len(found))))
    return found, np.array([np.median(times[each]) for each in own]), [rows[each] for each in own]


def _out_of_order(
    frame: AuditFrame, ms: AuditColumn, rows: list[AuditColumn], noise: float, pairs: int
) -> Iterator[MeasurementFinding]:
    """The sizes that take notably longer than the quickest larger one."""
    quickest = len(ms) - 1 - _argmin_so_far(ms[::-1])[::-1]  # of each size and those above
    large = np.append(quickest[1:], len(ms) - 1)
    ratio = ms / ms[large]
    chance = (
        quantile_of(pairs) * noise * math.sqrt(2)
        + np.log1p(roundings(ms))
        + np.log1p(roundings(ms[large]))
    )
    broken = np.flatnonzero(np.log(ratio) > np.maximum(math.log(MIN_SLOWDOWN), chance))
    if not len(broken):
        return
    worst = broken[np.argsort(-ratio[broken], kind="stable")][:MAX_SIZES]
    first = [frame.row(each[0]) for each in (rows[place] for place in (*worst, *large[worst]))]
    places = [_place(row) for row in first]
    facts = [
        f"{ms[small]:.3g} ms at {place}, {ms[large[small]]:.3g} ms at {other} "
        f"({100 * (ratio[small] - 1):.0f} % longer with fewer tokens)"
        for small, place, other in zip(worst, places, places[len(worst) :], strict=False)
    ]
    more = f"; and {count(len(broken) - MAX_SIZES, 'more size')}" if len(broken) > MAX_SIZES else ""
    row = first[0]
    where = ", ".join(filter(None, (row.model, f"batch {row.batch}" if row.batch else "")))
    yield MeasurementFinding(
        "doubtful",
        np.concatenate([rows[place] for place in {*broken.tolist(), *large[broken].tolist()}]),
        f"{where + ': ' if where else ''}the unmodified model takes {'; '.join(facts)}{more}: the"
        " machine was in another state at one of these sizes, or handles it worse. Each speed-up"
        " is formed inside its job and stands, but break-evens and fits join these sizes",
        "measure the sweep again (run it with --remeasure), and see whether"
        f" {in_words(places[: len(worst)])} still stand out",
    )


def _argmin_so_far(values: AuditColumn) -> AuditColumn:
    least = np.minimum.accumulate(values)
    new = np.concatenate(([True], least[1:] < least[:-1]))
    return np.maximum.accumulate(np.where(new, np.arange(len(values)), 0))


def _place(row: Measurement) -> str:
    """`192 px (144 tokens)`."""
    tokens = "" if row.tokens is None else count(row.tokens, "token")
    if row.image_size is None:
        return tokens
    return f"{row.image_size} px" + (f" ({tokens})" if tokens else "")


def nothing_removed(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """An arm that removes nothing at a size is neither clearly faster nor slower there.

    Source: the arm and its baseline do the same work. Cannot decide: whether the arm's own code
    costs the difference, or it is chance or a bias of the measurement; in each case it is no effect
    of fewer tokens.
    """
    idle = rows[frame.column("no_effect")[rows] == 1]
    curve = frame.codes((*SAME_ARM, "batch"), idle)
    size = frame.codes((*SAME_ARM, "batch", "image_size", "tokens"), idle)
    among = len(np.unique(size))
    for own in members(curve, range(int(curve.max()) + 1 if len(idle) else 0)):
        by_size = dict(zip(size[own].tolist(), idle[own].tolist(), strict=True))
        found = {place: frame.row(place) for place in by_size.values()}
        clear = [place for place, row in found.items() if _clear(row)]
        if not clear:
            continue
        own_rows = [found[place] for place in clear]
        others = [row for place, row in found.items() if place not in clear]
        same = (
            f" Where it removes nothing too: {', '.join(map(_speedup, others))}." if others else ""
        )
        slower = any(row.paired is not None and row.paired.value < 1 for row in own_rows)
        cost = "its own code costs this, or " if slower else ""
        chance = f"{MISS * among:.2g} of {count(among, 'such comparison')}"
        yield MeasurementFinding(
            "doubtful",
            clear,
            f"{own_rows[0].label} removes nothing, and yet was measured at"
            f" {', '.join(map(_speedup, own_rows))}: {cost}the measurement is biased (by chance"
            f" alone {chance} would stand out).{same} This is no effect of fewer tokens",
            "a cost of its own code stays when the sweep is measured again (run it with"
            " --remeasure), chance does not",
        )
    return len(idle)


def _clear(row: Measurement) -> bool:
    """Whether the interval of the speed-up excludes 1 and reaches beyond the floor."""
    if row.paired is None or row.paired.low is None or row.paired.high is None:
        return False
    low, high = row.paired.low, row.paired.high
    return (low > 1 or high < 1) and not SPEEDUP.within(low, high, SPEEDUP.floor)


def _speedup(row: Measurement) -> str:
    found = row.paired
    if found is None:
        return f" at {_place(row)}"
    numbers = conclude_interval(SPEEDUP, found.value, found.low, found.high).numbers
    return f"{numbers} at {_place(row)}"
