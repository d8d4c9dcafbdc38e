"""Duels: one arm against one baseline in a language sweep, its speed-ups and its cost in quality, in words."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from orchestrator.phrases import bounded, label, ratio, rows, steps_of
from store.costs import plain_baseline, without_speed

METRICS = {"ttft": "first token", "tpot": "output token", "time_per_char": "character"}
"""Metrics of the view `speedup`, and what one of each is the time of."""


class Duel:
    """One arm against one baseline under one condition: a row of `speedup` for each metric, and of `quality` if it was judged."""

    def __init__(self, speeds: pd.DataFrame, quality: Any) -> None:
        self.by_metric = {row.metric: row for row in rows(speeds)}
        self.any = next(rows(speeds))
        self.quality = quality
        self.name = label(self.any)

    def verdict(self, metric: str) -> str:
        """In a word; `unclear` where it was not measured."""
        return str(self.by_metric[metric].verdict) if metric in self.by_metric else "unclear"

    def ratio(self, metric: str) -> str:
        row = self.by_metric.get(metric)
        return "-" if row is None else ratio(row.speedup, row.speedup_low, row.speedup_high)

    def promise(self, metric: str) -> str:
        """The speed-up that the MACs of what the metric times would give, such as `1.08`."""
        row = self.by_metric.get(metric)
        if row is None or pd.isna(row.gmacs) or pd.isna(row.gmacs_baseline):
            return "-"
        return f"{row.gmacs_baseline / (row.gmacs + row.gmacs_method):.2f}"

    def cells(self) -> tuple[str, ...]:
        row, judged = self.any, self.quality
        return (
            self.name,
            " / ".join(map(self.promise, METRICS)),
            *(self.ratio(metric) for metric in METRICS),
            f"{row.pairs:.0f}",
            ", ".join(self.verdict(metric) if metric in self.by_metric else "-" for metric in METRICS),
            "-" if judged is None else change(judged),
            "-" if judged is None else bounded(judged.top1_agreement, None, None, ".1f"),
            "not asked" if judged is None else judged.verdict,
            row.flags or "",
        )

    def sentence(self) -> str:
        """What the arm buys and what it costs, in words."""
        said = ", ".join(self._metric(metric) for metric in METRICS if metric in self.by_metric)
        if self.quality is None:
            cost = "quality not asked"
        elif self.quality.verdict == "same":
            cost = f"costs nothing that shows: {change(self.quality)} bits per byte"
        else:
            meant = {"worse": "costs", "better": "gains", "unclear": "cannot tell what it costs:"}[self.quality.verdict]
            cost = f"{meant} {change(self.quality)} bits per byte"
        return f"{said}, {cost}"

    def last(self) -> str:
        """The speed-up of the whole run's characters, or else of the last metric there is."""
        return self._metric(next(metric for metric in reversed(METRICS) if metric in self.by_metric))

    def _metric(self, metric: str) -> str:
        return f"{self.ratio(metric)} per {METRICS[metric]} ({self.verdict(metric)})"


def change(judged: Any) -> str:
    """Bits per byte that a row of `quality` costs, with their interval."""
    return bounded(judged.bits_per_byte_change, judged.bits_per_byte_change_low, judged.bits_per_byte_change_high, "+.4f")


def quality_of(duel: pd.DataFrame, qualities: pd.DataFrame) -> Any:
    """The newest row of `quality` for the same arm and baseline, whatever caches and runtimes they were timed with, or `None`."""
    row = next(rows(duel))
    if not len(qualities):
        return None
    same = (qualities["model"] == row.model) & (qualities["weights"] == row.weights) & (qualities["method"] == row.method)
    same &= (qualities["dtype"] == row.dtype) & (qualities["attention"] == row.attention)
    same &= qualities["params"].map(without_speed) == without_speed(row.params)
    same &= qualities["baseline"].map(plain_baseline) == plain_baseline(row.baseline)
    found = qualities[same].sort_values("measured_at")
    return next(rows(found.tail(1)), None)


def stacks(duels: Sequence[Duel]) -> Iterator[str]:
    """For each stack what its parts bring alone, their product, and all together."""
    alone = {_key(duel.any.method, json.loads(duel.any.params or "{}")): duel for duel in duels if "+" not in duel.any.method}
    for duel in duels:
        params = json.loads(duel.any.params or "{}")
        if not isinstance(params, list):
            continue
        keys = [_key(step["method"], {k: v for k, v in step.items() if k != "method"}) for step in steps_of(params)]
        keys += [_key("dense", {name: value}) for step in params if "method" not in step for name, value in step.items()]
        metric = "time_per_char" if "time_per_char" in duel.by_metric else "tpot"
        told, product, whole = [], 1.0, True
        for key in keys:
            part = alone.get(key)
            if part is None or metric not in part.by_metric:
                told.append(f"{key[0]} {key[1]} was not measured alone")
                whole = False
                continue
            product *= part.by_metric[metric].speedup
            told.append(f"{part.name} alone {part.ratio(metric)}")
        together = f"all together {duel.ratio(metric)}"
        beside = f", and the product of the parts would be {product:.3f}x" if whole else ""
        yield f"{duel.name}, per {METRICS[metric]}: {'; '.join(told)}; {together}{beside}"


def _key(method: str, params: dict[str, Any]) -> tuple[str, str]:
    return method, json.dumps({name: value for name, value in params.items() if value is not None}, sort_keys=True)
