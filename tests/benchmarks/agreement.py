"""Whether runs of one sweep agree as their intervals claim, and how narrow these are, from their
stores.

uv run python -m tests.benchmarks.agreement STORE STORE … (one of each run, as `breakeven run --db`
leaves them), in seconds: each run against the mean of the others that claim the same state of the
machine, first as it claims alone, then by the quickest level that all of them saw: what is quick in
one run may be slow beside another.
"""

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from store.open.engine import connect_readonly, disposing
from store.read.evidence.evidence import point_evidence
from store.read.user_sql import run_query
from sweeps.stats.visits import Visit, pool_visits, quickest_levels

SPEEDUPS = (
    "SELECT comparison_id, tokens FROM speedup WHERE metric = 'latency' AND speedup_high IS NOT"
    " NULL"
)
MIDDLE = 64
"""Tokens from which on half-widths are shown apart."""
OWN_MOST, DIFFERENCE_MOST = 0.03, 0.02
"""Shares of 99 % intervals that may miss the mean of the others, by their own width and by both."""


class Interval(NamedTuple):
    """Of a log speed-up."""

    log: float
    half_width: float
    verdict: str
    slow: bool


def misses(runs: Sequence[Interval]) -> list[tuple[bool, bool]]:
    """For each run whether the mean of the others lies beyond its own interval, and beyond that of
    the difference.
    """
    found = []
    for place, one in enumerate(runs):
        others = [other for at, other in enumerate(runs) if at != place and other.slow == one.slow]
        if others:
            far = abs(one.log - statistics.fmean(other.log for other in others))
            error = math.sqrt(sum(other.half_width**2 for other in others)) / len(others)
            found.append((far > one.half_width, far > math.hypot(one.half_width, error)))
    return found


def visits_of(stores: Sequence[Path]) -> dict[tuple[str, float], list[list[Visit]]]:
    """By comparison and tokens the visits of each run, oldest first."""
    found: dict[tuple[str, float], list[list[Visit]]] = defaultdict(list)
    for store in stores:
        with disposing(connect_readonly(str(store))) as engine:
            for comparison, tokens in run_query(str(store), SPEEDUPS).rows:
                timed = next(
                    each
                    for each in point_evidence(engine, comparison).timed
                    if each.metric.name == "latency"
                )
                found[comparison, tokens].append([each.visit for each in timed.attempts])
    return {key: runs for key, runs in found.items() if len(runs) > 1}


def claims(runs: Sequence[Sequence[Visit]], *, shared: bool) -> list[Interval]:
    """What each run claims, by the quickest level that it saw, or (`shared`) that any of them
    saw.
    """
    tables = [np.log(np.hstack([visit.baseline, visit.arm])) for run in runs for visit in run]
    levels = quickest_levels(np.vstack(tables)) if shared else None
    pooled = [pool_visits(run, range(len(run)), levels=levels) for run in runs]
    return [
        Interval(
            each.speedup.log, each.speedup.half_width, each.speedup.verdict(), each.state == "slow"
        )
        for each in pooled
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the shares; 1 where more intervals miss than may, or a comparison is faster in one run
    and slower in another.

    Both are judged by the shared level, among runs that claim one state.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.agreement", description=__doc__
    )
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    stores = parser.parse_args(arguments).stores
    repeats = visits_of(stores)
    if not repeats:
        print("the stores have no comparison in common")
        return 2
    print(f"{len(stores)} runs, {len(repeats)} comparisons in two runs or more")
    for shared in (False, True):
        several = {key: claims(runs, shared=shared) for key, runs in repeats.items()}
        found = [each for runs in several.values() for each in misses(runs)]
        own, differences = (statistics.fmean(each[index] for each in found) for index in (0, 1))
        opposite = sum(
            {"faster", "slower"} <= {one.verdict for one in runs if one.slow == slow}
            for runs in several.values()
            for slow in (True, False)
        )
        widths = [one.half_width for runs in several.values() for one in runs]
        middle = [
            one.half_width
            for (_, tokens), runs in several.items()
            if tokens >= MIDDLE
            for one in runs
        ]
        print(
            "by the quickest level of all runs:"
            if shared
            else "each run by its own quickest level:"
        )
        print(f"  half-width, median: {100 * statistics.median(widths):.2f} %", end="")
        print(
            f", from {MIDDLE} tokens on {100 * statistics.median(middle):.2f} %" if middle else ""
        )
        print(
            f"  beyond the own interval {100 * own:.1f} %, beyond that of the difference"
            f" {100 * differences:.1f} %, of {len(found)}"
        )
        print(f"  faster in one run and slower in another that claims the same state: {opposite}")
    return int(own > OWN_MOST or differences > DIFFERENCE_MOST or opposite > 0)


if __name__ == "__main__":
    raise SystemExit(main())
