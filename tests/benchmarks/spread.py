"""How much speed-ups differ between processes beyond the errors within each, from stores of repeated runs of one sweep.

uv run python -m tests.benchmarks.spread STORE STORE … (those that `tests.benchmarks.answers --keep FOLDER` leaves), in seconds:
for arms that do the work of their baseline and for others, the ground for the defaults of `sweeps/stats/pooling.py`.
"""

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from store.user_sql import run_query

SPEEDUPS = """
SELECT comparison_id, s.speedup, e.effect_se, s.process_sd, s.gmacs_total = s.gmacs_baseline FROM speedup AS s
JOIN effect_row AS e USING (comparison_id, environment, metric)
WHERE metric = 'latency' AND s.rounds = 1 AND e.effect_se IS NOT NULL"""


class Repeat(NamedTuple):
    """A log speed-up of one process, and the error within it."""

    log: float
    se: float


def excess(repeats: Sequence[Repeat]) -> float:
    """Variance of the repeats beyond the mean of that within them; negative where they differ by less."""
    return statistics.variance(one.log for one in repeats) - statistics.fmean(one.se**2 for one in repeats)


def alike(comparisons: Sequence[dict[Path, Repeat]]) -> float:
    """Variance of what all comparisons of a store have in common, beyond what their mean has by chance."""
    apart: dict[Path, list[float]] = defaultdict(list)
    for found in comparisons:
        mean = statistics.fmean(one.log for one in found.values())
        for store, one in found.items():
            apart[store].append(one.log - mean)
    means = [statistics.fmean(values) for values in apart.values()]
    chance = statistics.fmean(statistics.variance(values) / len(values) for values in apart.values())
    return statistics.variance(means) - chance


def sd(variance: float) -> str:
    return f"{100 * math.sqrt(max(variance, 0.0)):.2f} %"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.spread", description=__doc__)
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    stores = parser.parse_args(arguments).stores
    found: dict[tuple[bool, str], dict[Path, Repeat]] = defaultdict(dict)
    for store in stores:
        for comparison, speedup, se, term, same in run_query(str(store), SPEEDUPS).rows:
            found[bool(same), comparison][store] = Repeat(math.log(speedup), math.sqrt(max(se**2 - term**2, 0.0)))
    for same, name in ((True, "the same work as the baseline"), (False, "other work")):
        repeated = [each for (kind, _), each in found.items() if kind == same and len(each) > 1]
        if not repeated:
            print(f"{name}: nothing was measured twice")
            continue
        variance = statistics.fmean(excess(list(each.values())) for each in repeated)
        common = f", alike in all of a process {sd(alike(repeated))}" if len(repeated) > 1 else ""
        print(f"{name}: {len(repeated)} comparisons in up to {max(map(len, repeated))} processes: {sd(variance)}{common}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
