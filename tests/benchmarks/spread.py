"""How much speed-ups of runs differ beyond what the visits in each of them show, from stores of
repeated runs of one sweep.

uv run python -m tests.benchmarks.spread STORE STORE … (those that `tests.benchmarks.answers --keep FOLDER` leaves), in seconds:
for arms that do the work of their baseline and for others. Runs of one visit each show how much visits differ, which is the ground
for `FLOOR.sd` in `sweeps/stats/visits.py`.
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
SELECT comparison_id, s.speedup, e.effect_se, s.gmacs_total = s.gmacs_baseline FROM speedup AS s
JOIN effect_row AS e USING (comparison_id, environment, metric)
WHERE metric = 'latency' AND e.effect_se IS NOT NULL"""


class Repeat(NamedTuple):
    """A log speed-up of one run, and the error that its interval counts."""

    log: float
    se: float


def excess(repeats: Sequence[Repeat]) -> float:
    """Variance of the repeats beyond the mean of that which their intervals count; negative where
    they differ by less.
    """
    return statistics.variance(one.log for one in repeats) - statistics.fmean(
        one.se**2 for one in repeats
    )


def alike(comparisons: Sequence[dict[Path, Repeat]]) -> float:
    """Variance of what all comparisons of a store have in common, beyond what their mean has by
    chance.
    """
    apart: dict[Path, list[float]] = defaultdict(list)
    for found in comparisons:
        mean = statistics.fmean(one.log for one in found.values())
        for store, one in found.items():
            apart[store].append(one.log - mean)
    means = [statistics.fmean(values) for values in apart.values()]
    chance = statistics.fmean(
        statistics.variance(values) / len(values) for values in apart.values()
    )
    return statistics.variance(means) - chance


def sd(variance: float) -> str:
    return f"{100 * math.sqrt(max(variance, 0.0)):.2f} %"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.spread", description=__doc__)
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    stores = parser.parse_args(arguments).stores
    found: dict[tuple[bool, str], dict[Path, Repeat]] = defaultdict(dict)
    for store in stores:
        for comparison, speedup, se, same in run_query(str(store), SPEEDUPS).rows:
            found[bool(same), comparison][store] = Repeat(math.log(speedup), se)
    for same, name in ((True, "the same work as the baseline"), (False, "other work")):
        repeated = [each for (kind, _), each in found.items() if kind == same and len(each) > 1]
        if not repeated:
            print(f"{name}: nothing was measured twice")
            continue
        apart = statistics.fmean(
            statistics.variance(one.log for one in each.values()) for each in repeated
        )
        beyond = statistics.fmean(excess(list(each.values())) for each in repeated)
        common = f", alike in all of a run {sd(alike(repeated))}" if len(repeated) > 1 else ""
        print(f"{name}: {len(repeated)} comparisons in up to {max(map(len, repeated))} runs")
        print(
            f"  they differ by {sd(apart)}, beyond what their intervals count by"
            f" {sd(beyond)}{common}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
