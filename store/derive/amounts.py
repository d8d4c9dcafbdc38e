"""Effects of amounts that an attempt reads once, such as peak memory and energy: baseline over arm,
from the metrics of both.
"""

from collections.abc import Iterator, Sequence
from math import exp, inf, log, sqrt
from statistics import mean, stdev
from typing import Any

from sqlalchemy import Row

from store.derive.payload_store import quarantined
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.stats.pooling import ALPHA, quantile, ratio_verdict

AMOUNTS = tuple(spec for spec in METRICS.values() if spec.compared == "amount")
"""The declared ones; `PAIRS` has a column of each for the arm, and one for the baseline that begins
with `baseline_`."""


def amount_figures(used: Sequence[Row[Any]]) -> Iterator[tuple[MetricSpec, dict[str, Any]]]:
    """For each amount that attempts read on both sides its columns of `effect_row`.

    One reading has no interval: what is repeatable gets its verdict by the floor alone, the rest is
    `insufficient`. Several have one: from the least to the largest ratio of what is repeatable,
    else by Student's t of their logarithms. What is not repeatable has no verdict where the machine
    was slowed in all of them.
    """
    for spec in AMOUNTS:
        read = [(getattr(row, f"baseline_{spec.name}"), getattr(row, spec.name)) for row in used]
        sides = [(base, own) for base, own in read if base and own and base > 0 and own > 0]
        if not sides:
            continue
        logs = [log(base / own) for base, own in sides]
        effect, single = mean(logs), len(logs) == 1
        if spec.repeatable:
            low, high = min(logs), max(logs)
        else:
            reach = (
                inf if single else quantile(ALPHA, len(logs) - 1) * stdev(logs) / sqrt(len(logs))
            )
            low, high = effect - reach, effect + reach
        enough = spec.repeatable or not single
        slowed = quarantined(used) and not spec.repeatable
        yield (
            spec,
            {
                "baseline_value": mean(base for base, _ in sides),
                "arm_value": mean(own for _, own in sides),
                "effect": exp(effect),
                "effect_low": None if single else exp(low),
                "effect_high": None if single else exp(high),
                "n": len(sides),
                "verdict": "quarantined"
                if slowed
                else ratio_verdict(exp(low), exp(high), spec.floor)
                if enough
                else "insufficient",
            },
        )
