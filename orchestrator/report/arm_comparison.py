"""Duels: one arm against one baseline in a language sweep, its speed-ups and its change in quality, in words."""

import json
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import pandas as pd

from orchestrator.report.labels import bounded, label, rows
from orchestrator.report.verdict_words import bits, speed
from store.quality_join import plain_baseline, without_speed
from sweeps.labels import BITS, SPEEDUP, Conclusion, Finding, conclude, unanswered
from sweeps.stats.classification import interval_verdict
from workers.methods.arm_labels import params_label

METRICS = {"ttft": "first token", "tpot": "output token", "time_per_char": "character"}
"""Metrics of the view `speedup`, and what one of each is the time of."""


class Duel:
    """One arm against one baseline under one condition: its speed-up by each metric, and its change in quality."""

    def __init__(self, speeds: pd.DataFrame, quality: Any, state: Conclusion, control: str = "") -> None:
        """`speeds` are rows of `speedup`, `quality` is one of `quality` or `None`; `state` is that of the comparison of quality.

        `control` is a clause on the control of an arm that tunes the model.
        """
        self.by_metric = {row.metric: row for row in rows(speeds)}
        self.any = next(rows(speeds))
        self.judged = quality
        self.quality = state if quality is None else bits(quality)
        self.control = control
        self.name = label(self.any)

    def speed(self, metric: str) -> Conclusion:
        """The speed-up by one metric."""
        row = self.by_metric.get(metric)
        return unanswered(SPEEDUP, "not asked") if row is None else speed(row)

    def promise(self, metric: str) -> str:
        """The speed-up that the MACs of what the metric times would give, such as `1.08`."""
        row = self.by_metric.get(metric)
        if row is None or pd.isna(row.gmacs) or pd.isna(row.gmacs_baseline):
            return "-"
        return f"{row.gmacs_baseline / (row.gmacs + row.gmacs_method):.2f}"

    def cells(self) -> tuple[str, ...]:
        row, judged = self.any, self.judged
        return (
            self.name,
            " / ".join(map(self.promise, METRICS)),
            *(self.speed(metric).numbers for metric in METRICS),
            f"{row.pairs:.0f}",
            ", ".join(self.speed(metric).word if metric in self.by_metric else "-" for metric in METRICS),
            self.quality.numbers,
            "-" if judged is None else bounded(judged.top1_agreement, None, None, ".1f"),
            self.quality.word,
            ", ".join((row.flags or "").split(",")),
        )

    def sentence(self, baseline: str) -> str:
        """Speed-ups by all metrics and the change in quality, against `baseline`, and against the control of a tuned arm."""
        speeds = ", ".join(self._metric(metric) for metric in METRICS if metric in self.by_metric)
        return f"{speeds}, quality {self.quality.phrase} against {baseline}{self.control}"

    def last(self) -> str:
        """The speed-up of the whole run's characters, or else of the last metric there is."""
        return self._metric(next(metric for metric in reversed(METRICS) if metric in self.by_metric))

    def _metric(self, metric: str) -> str:
        found = self.speed(metric)
        return f"{found.numbers} per {METRICS[metric]} ({found.word})"


def quality_of(duel: pd.DataFrame, qualities: pd.DataFrame) -> Any:
    """The newest row of `quality` for the same arm and baseline, whatever caches and runtimes they were timed with, or `None`."""
    found = _alike(duel, qualities)
    return next(rows(found.sort_values("measured_at").tail(1)), None) if len(found) else None


def quality_state(duel: pd.DataFrame, asked: pd.DataFrame) -> Conclusion:
    """Status of the quality comparison for the same arm and baseline (rows of `store.comparison_status`), if it has no numbers."""
    found = _alike(duel, asked)
    for state in ("queued", "failed"):
        if len(same := found[found["state"] == state]):
            return unanswered(BITS, state, str(same["reason"].iloc[0]) if state == "failed" else "")
    return unanswered(BITS, "not measured" if len(found) else "not asked")


def control_clause(duel: pd.DataFrame, controls: pd.DataFrame) -> str:
    """A tuned arm against the control of its tuning (rows of `store.quality_join.beside_controls`); empty for other arms."""
    found = _alike(duel, controls, baseline=False)
    if not len(found):
        return ""
    row = next(rows(found.tail(1)))
    control = f"the control of its tuning, {params_label(row.control, row.control_params)}"
    if pd.isna(row.change):
        return f"; {control}, was not measured beside it: what tuning alone changes is not subtracted"
    return f"; {against_control(row).phrase} against {control}"


def against_control(row: Any) -> Conclusion:
    """What a row of `store.quality_join.beside_controls` allows to conclude."""
    judged = interval_verdict(row.change_low, row.change_high, BITS.floor)
    return conclude(BITS, row.change, row.change_low, row.change_high, verdict=judged)


def _alike(duel: pd.DataFrame, others: pd.DataFrame, *, baseline: bool = True) -> pd.DataFrame:
    """The rows of the same arm (and baseline), but for what quality does not depend on."""
    if not len(others):
        return others
    row = next(rows(duel))
    same = pd.Series(data=True, index=others.index)
    for column in ("model", "weights", "method", "dtype", "attention"):
        same &= others[column] == getattr(row, column)
    same &= others["params"].map(without_speed) == without_speed(row.params)
    if baseline:
        same &= others["baseline"].map(plain_baseline) == plain_baseline(row.baseline)
    return others[same]


def stacks(duels: Sequence[Duel]) -> Iterator[str]:
    """For each stack the speed-up of each part alone, that of all together, and the product of the parts.

    The product needs every part measured, with an interval. Its own interval is the product of theirs: parts that were timed in
    the same rounds share the baseline's noise, so that their errors may add up.
    """
    alone = {_key(duel.any.method, json.loads(duel.any.params or "{}")): duel for duel in duels if "+" not in duel.any.method}
    for duel in duels:
        params = json.loads(duel.any.params or "{}")
        if not isinstance(params, list):
            continue
        keys = [_key(step["method"], {k: v for k, v in step.items() if k != "method"}) for step in params if "method" in step]
        keys += [_key("dense", {name: value}) for step in params if "method" not in step for name, value in step.items()]
        metric = "time_per_char" if "time_per_char" in duel.by_metric else "tpot"
        parts = [(key, alone[key] if key in alone and metric in alone[key].by_metric else None) for key in keys]
        clauses = [
            f"{key[0]} {key[1]} was not measured alone" if part is None else f"{part.name} alone {part.speed(metric).numbers}"
            for key, part in parts
        ]
        product = _product([None if part is None else part.by_metric[metric] for _, part in parts])
        together = f"all together {duel.speed(metric).numbers}"
        yield f"{duel.name}, per {METRICS[metric]}: {'; '.join(clauses)}; {together}{product}"


def _product(parts: Sequence[Any]) -> str:
    """The product of some rows of `speedup` as a clause, or why there is none."""
    measured = [speed(row) for row in parts if row is not None]
    if len(measured) < len(parts):
        return ""
    if any(found.finding in {Finding.NO_INTERVAL, Finding.INSUFFICIENT} for found in measured):
        return "; no product of the parts: not every part has enough pairs"
    ends = [prod(getattr(row, f"speedup{end}") for row in parts) for end in ("", "_low", "_high")]
    return f"; the product of the parts is {conclude(SPEEDUP, *ends, verdict=None).numbers}"


def _key(method: str, params: dict[str, Any]) -> tuple[str, str]:
    return method, json.dumps({name: value for name, value in params.items() if value is not None}, sort_keys=True)
