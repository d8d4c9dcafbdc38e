"""Rules on sizes: with more tokens the unmodified model takes no less time, and an arm that removes none is as fast as it."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import median

from sweeps.audit.rule import Noticed
from sweeps.audit.tolerance import allowed, arm_of, grouped, in_words, noise_of
from sweeps.labels import SPEEDUP, conclude_interval
from sweeps.number_format import count
from sweeps.references.measurement import Measurement, MeasurementTable

NOTABLY_LONGER = 1.1
"""From this factor on a smaller size that takes longer is a finding. The medians of two jobs differ by 5 % by chance (each is known
to 3.6 %, half of its 95 % interval on a shared CPU); a tenth is twice as much, and as large as the speed-ups that break-evens
and fits are about. Where the noise of a table allows more, its tolerance counts."""
MOST_SIZES = 4
"""Sizes that one sentence works out."""
MISS = 0.01
"""Share of the intervals of speed-ups that miss by chance (`sweeps.stats.pooling.ALPHA`)."""


def time_of_sizes(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """The unmodified model does not take notably longer with fewer tokens than with more.

    Source: more tokens of one model are more work of the same kind. Notably is `NOTABLY_LONGER`, and beyond what noise does between
    jobs. Cannot decide: whether the machine was in another state while one of the sizes was measured, or handles that size worse
    (kernels and caches prefer some sizes). A speed-up is formed inside a job and stands in both cases; break-evens and fits
    join sizes.
    """
    groups = [_by_size(table, group) for group in grouped(filter(table.is_baseline, rows), _curve).values()]
    pairs = sum(len(sizes) * (len(sizes) - 1) // 2 for sizes in groups)
    noise = table.job_noise or noise_of(table, rows)
    for sizes in groups:
        broken: dict[int, tuple[float, int]] = {}
        for small, large in combinations(sorted(sizes), 2):
            ratio = sizes[small].ms / sizes[large].ms
            room = max(math.log(NOTABLY_LONGER), allowed((sizes[small].ms, sizes[large].ms), noise, pairs))
            if math.log(ratio) > room and ratio > broken.get(small, (0.0, 0))[0]:
                broken[small] = (ratio, large)
        if not broken:
            continue
        worst = sorted(broken, key=lambda size: -broken[size][0])[:MOST_SIZES]
        facts = [
            f"{sizes[size].ms:.3g} ms at {sizes[size].place}, {sizes[large].ms:.3g} ms at {sizes[large].place} "
            f"({100 * (ratio - 1):.0f} % longer with fewer tokens)"
            for size in worst
            for ratio, large in [broken[size]]
        ]
        more = f"; and {count(len(broken) - MOST_SIZES, 'more size')}" if len(broken) > MOST_SIZES else ""
        involved = {size for small, (_, large) in broken.items() for size in (small, large)}
        first = sizes[min(sizes)].rows[0]
        where = ", ".join(filter(None, (first.model, f"batch {first.batch}" if first.batch else "")))
        yield Noticed(
            "doubtful",
            tuple(row for size in sorted(involved) for row in sizes[size].rows),
            f"{where + ': ' if where else ''}the unmodified model takes {'; '.join(facts)}{more}: the machine was in another state "
            "at one of these sizes, or handles it worse. Each speed-up is formed inside its job and stands, but break-evens and "
            "fits join these sizes",
            "measure the sweep again (run it with --again), and see whether "
            f"{in_words(sizes[size].place for size in worst)} still stand out",
        )


class _Size:
    """The rows of one size, and the median of their times."""

    def __init__(self, place: str, rows: list[Measurement], ms: float) -> None:
        self.place, self.rows, self.ms = place, rows, ms


def _by_size(table: MeasurementTable, group: Sequence[Measurement]) -> dict[int, _Size]:
    """Sizes by their tokens, or pixels where tokens are not known, whose time of a forward is known."""
    found: dict[int, _Size] = {}
    in_pixels = any(row.tokens is None for row in group)
    for size, own in grouped(group, lambda row: row.image_size if in_pixels else row.tokens).items():
        times = [ms for row in own if (ms := _forward_ms(table, row)) is not None]
        if size and times:
            found[size] = _Size(_place(own[0]), own, median(times))
    return found


def _forward_ms(table: MeasurementTable, row: Measurement) -> float | None:
    """Of a whole batch, by the latency if that is known, else by the throughput."""
    seconds = table.batch_seconds(row)
    if seconds is None and row.throughput:
        seconds = (row.batch or 1) / row.throughput
    return None if seconds is None else 1e3 * seconds


def _curve(row: Measurement) -> tuple[object, ...]:
    """What sizes of one curve have in common."""
    return (*arm_of(row), row.batch)


def _place(row: Measurement) -> str:
    """`192 px (144 tokens)`."""
    tokens = "" if row.tokens is None else f"{row.tokens:,} tokens"
    if row.image_size is None:
        return tokens
    return f"{row.image_size} px" + (f" ({tokens})" if tokens else "")


def nothing_removed(_: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """An arm that removes nothing at a size is neither clearly faster nor slower there.

    Source: the arm and its baseline do the same work. Cannot decide: whether the arm's own code costs the difference, or it is
    chance or a bias of the measurement; in each case it is no effect of fewer tokens.
    """
    idle = [row for row in rows if row.no_effect]
    for group in grouped(idle, lambda row: (*arm_of(row), row.batch)).values():
        by_size = {(row.image_size, row.tokens): row for row in group}
        clear = [row for row in by_size.values() if _clear(row)]
        if not clear:
            continue
        others = [row for row in by_size.values() if row not in clear]
        same = f" Where it removes nothing too: {', '.join(map(_speedup, others))}." if others else ""
        among = len({(*arm_of(row), row.batch, row.image_size, row.tokens) for row in idle})
        slower = any(row.paired is not None and row.paired.value < 1 for row in clear)
        cost = "its own code costs this, or " if slower else ""
        chance = f"{MISS * among:.2g} of {count(among, 'such comparison')}"
        yield Noticed(
            "doubtful",
            tuple(clear),
            f"{clear[0].label} removes nothing, and yet was measured at {', '.join(map(_speedup, clear))}: {cost}the measurement "
            f"is biased (by chance alone {chance} would stand out).{same} This is no effect of fewer tokens",
            "a cost of its own code stays when the sweep is measured again (run it with --again), chance does not",
        )


def _clear(row: Measurement) -> bool:
    """Whether the interval of the speed-up excludes 1 and reaches beyond the floor."""
    if row.paired is None or row.paired.low is None or row.paired.high is None:
        return False
    low, high = row.paired.low, row.paired.high
    return (low > 1 or high < 1) and not SPEEDUP.within(low, high, SPEEDUP.floor)


def _speedup(row: Measurement) -> str:
    found = row.paired
    written = "" if found is None else conclude_interval(SPEEDUP, found.value, found.low, found.high).numbers
    return f"{written} at {_place(row)}"
