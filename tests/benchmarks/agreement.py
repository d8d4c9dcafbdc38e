"""Whether runs of one sweep agree as their intervals claim, and how narrow these are, from their stores.

uv run python -m tests.benchmarks.agreement STORE STORE … (those that `tests.benchmarks.answers --keep FOLDER` leaves), in seconds:
each run against the mean of the others that claim the same state of the machine.
"""

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from store.read.user_sql import run_query

SPEEDUPS = """
SELECT comparison_id, tokens, speedup, speedup_low, speedup_high, verdict, flags FROM speedup
WHERE metric = 'latency' AND speedup_high IS NOT NULL"""
MIDDLE = 64
"""Tokens from which on half-widths are shown by themselves."""
OWN_MOST, DIFFERENCE_MOST = 0.03, 0.02
"""Shares of 99 % intervals that may miss the mean of the others, by their own width and by both."""


class Interval(NamedTuple):
    """Of a log speed-up."""

    log: float
    half_width: float
    verdict: str
    slow: bool


def misses(runs: Sequence[Interval]) -> list[tuple[bool, bool]]:
    """For each run whether the mean of the others lies beyond its own interval, and beyond that of the difference."""
    found = []
    for place, one in enumerate(runs):
        others = [other for at, other in enumerate(runs) if at != place and other.slow == one.slow]
        if others:
            far = abs(one.log - statistics.fmean(other.log for other in others))
            error = math.sqrt(sum(other.half_width**2 for other in others)) / len(others)
            found.append((far > one.half_width, far > math.hypot(one.half_width, error)))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the shares; 1 where more intervals miss than may, or a comparison is faster in one run and slower in another."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.agreement", description=__doc__)
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    stores = parser.parse_args(arguments).stores
    repeats: dict[tuple[str, float], list[Interval]] = defaultdict(list)
    for store in stores:
        for key, tokens, value, _, high, verdict, flags in run_query(str(store), SPEEDUPS).rows:
            slow = "slow_state" in flags
            repeats[key, tokens].append(Interval(math.log(value), math.log(high / value), verdict, slow))
    several = [runs for runs in repeats.values() if len(runs) > 1]
    if not several:
        print("the stores have no comparison in common")
        return 2
    found = [each for runs in several for each in misses(runs)]
    own, differences = (statistics.fmean(each[index] for each in found) for index in (0, 1))
    opposite = sum({"faster", "slower"} <= {one.verdict for one in runs} for runs in several)
    widths = [one.half_width for runs in several for one in runs]
    middle = [one.half_width for (_, tokens), runs in repeats.items() if tokens >= MIDDLE for one in runs]
    print(f"{len(stores)} runs, {len(several)} comparisons in two runs or more")
    print(f"half-width of 99 % intervals, median: {100 * statistics.median(widths):.2f} %")
    if middle:
        print(f"  from {MIDDLE} tokens on: {100 * statistics.median(middle):.2f} %")
    print(f"beyond the own interval {100 * own:.1f} %, beyond that of the difference {100 * differences:.1f} %, of {len(found)}")
    print(f"faster in one run and slower in another: {opposite}")
    return int(own > OWN_MOST or differences > DIFFERENCE_MOST or opposite > 0)


if __name__ == "__main__":
    raise SystemExit(main())
