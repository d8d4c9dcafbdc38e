"""Rules on sizes: with more tokens the unmodified model takes no less time, and an arm that removes
none is as fast as it.
"""

import math
from collections.abc import Iterator

import numpy as np

from sweeps.analysis.audit.frame import SAME_ARM, AuditColumn, AuditFrame
from sweeps.analysis.audit.rule import Checked, MeasurementFinding, members
from sweeps.analysis.audit.tolerance import in_words, quantile_of, roundings
from sweeps.analysis.labels import SPEEDUP, conclude_interval
from sweeps.importers.measurement import Measurement
from sweeps.number_format import count

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
        return Checked(0)
    groups = frame.codes((*SAME_ARM, "batch"), rows)
    curves = [
        _medians(frame, rows[own], times[own])
        for own in members(groups, range(int(groups.max()) + 1))
    ]
    curves = [curve for curve in curves if len(curve[0]) > 1]
    pairs = sum(len(sizes) * (len(sizes) - 1) // 2 for sizes, _, _ in curves)
    noise = frame.job_noise or frame.noise_at(rows)
    return Checked(
        pairs,
        (
            found
            for curve in curves
            if (found := _out_of_order(frame, *curve[1:], noise, pairs)) is not None
        ),
    )


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
) -> MeasurementFinding | None:
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
        return None
    worst = broken[np.argsort(-ratio[broken], kind="stable")][:MAX_SIZES]
    first = [frame.row(int(each[0])) for each in (rows[place] for place in (*worst, *large[worst]))]
    places = [_place(row) for row in first]
    facts = [
        f"{ms[small]:.3g} ms at {place}, {ms[large[small]]:.3g} ms at {other} "
        f"({100 * (ratio[small] - 1):.0f} % longer with fewer tokens)"
        for small, place, other in zip(worst, places, places[len(worst) :], strict=False)
    ]
    more = f"; and {count(len(broken) - MAX_SIZES, 'more size')}" if len(broken) > MAX_SIZES else ""
    row = first[0]
    where = ", ".join(filter(None, (row.model, f"batch {row.batch}" if row.batch else "")))
    return MeasurementFinding(
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
    tokens = "" if row.tokens is None else f"{row.tokens:,} tokens"
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
    return Checked(len(idle), _moved(frame, idle))


def _moved(frame: AuditFrame, idle: AuditColumn) -> Iterator[MeasurementFinding]:
    curve = frame.codes((*SAME_ARM, "batch"), idle)
    size = frame.codes((*SAME_ARM, "batch", "image_size", "tokens"), idle)
    among = len(np.unique(size))
    for own in members(curve, range(int(curve.max()) + 1 if len(idle) else 0)):
        by_size = dict(zip(size[own].tolist(), idle[own].tolist(), strict=True))
        found = {place: frame.row(place) for place in by_size.values()}
        clear = [place for place, row in found.items() if _clear(row)]
        if not clear:
            continue
        rows = [found[place] for place in clear]
        others = [row for place, row in found.items() if place not in clear]
        same = (
            f" Where it removes nothing too: {', '.join(map(_speedup, others))}." if others else ""
        )
        slower = any(row.paired is not None and row.paired.value < 1 for row in rows)
        cost = "its own code costs this, or " if slower else ""
        chance = f"{MISS * among:.2g} of {count(among, 'such comparison')}"
        yield MeasurementFinding(
            "doubtful",
            clear,
            f"{rows[0].label} removes nothing, and yet was measured at"
            f" {', '.join(map(_speedup, rows))}: {cost}the measurement is biased (by chance alone"
            f" {chance} would stand out).{same} This is no effect of fewer tokens",
            "a cost of its own code stays when the sweep is measured again (run it with"
            " --remeasure), chance does not",
        )


def _clear(row: Measurement) -> bool:
    """Whether the interval of the speed-up excludes 1 and reaches beyond the floor."""
    if row.paired is None or row.paired.low is None or row.paired.high is None:
        return False
    low, high = row.paired.low, row.paired.high
    return (low > 1 or high < 1) and not SPEEDUP.within(low, high, SPEEDUP.floor)


def _speedup(row: Measurement) -> str:
    found = row.paired
    written = (
        ""
        if found is None
        else conclude_interval(SPEEDUP, found.value, found.low, found.high).numbers
    )
    return f"{written} at {_place(row)}"
