"""Advice from a store: the arms of each condition that was timed, ranked at a requested size, with the rows that show it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

import pandas as pd

from store.engine import Engine
from store.frames import groups, rows_of
from store.timed_arms import amounts_of, qualities_of, timed_arms
from sweeps.advice import MeasuredArm, QualityCost, Ranking, rank
from sweeps.condition_text import describe_condition
from sweeps.errors import UserError
from sweeps.flags import quarantine_reasons, split_flags, wrong
from sweeps.job import DENSE, Comparison, Condition, Device
from sweeps.labels import effect_of
from sweeps.metrics import METRICS
from sweeps.number_format import is_missing
from sweeps.stats.curve import Point
from sweeps.stats.interpolation import MeasuredPoint, interpolate
from sweeps.stats.pooling import SpeedUp
from sweeps.suggestions import did_you_mean
from workers.methods import purpose
from workers.methods.arm_labels import params_label

_CONDITION = ("environment", "host", "condition_group", "baseline_id")
"""Equal for arms that may be ranked together: they have the same unmodified model beside them."""


class RefusedError(UserError):
    """What was measured does not answer the question; the message names what was measured instead."""


@dataclass(frozen=True)
class Evidence:
    """An arm that is ranked: its label and the rows of the view `speedup` that it rests on."""

    label: str
    runtime: str
    rows: tuple[Any, ...]
    """One row, or those of the two neighbours between which it is interpolated."""
    arm: MeasuredArm

    @property
    def interpolated(self) -> bool:
        return len(self.rows) > 1


@dataclass(frozen=True)
class ConditionArms:
    """The arms of one condition at all sizes; ratios are formed inside it alone."""

    rows: pd.DataFrame
    """Of `store.timed_arms.timed_arms`, with the unmodified model of the condition as their baseline."""
    qualities: Mapping[str, tuple[QualityCost, ...]]
    """By `quality_pair_id`."""
    amounts: Mapping[str, Mapping[str, float]]
    """By `comparison_id`: peak memory and energy of the baseline over those of the arm."""

    @property
    def batch(self) -> int:
        return int(self.rows["batch_size"].iloc[0])

    @property
    def comparison(self) -> Comparison:
        """One of its questions: they share all of the condition but the size."""
        found: Comparison = self.rows["comparison"].iloc[-1]
        return found

    @property
    def condition(self) -> Condition:
        return self.comparison.condition

    @property
    def metric(self) -> str:
        return str(self.rows["metric"].iloc[0])

    def title(self, tokens: int | None = None) -> str:
        """The condition in words, at a size where one is given."""
        row = self.rows.iloc[-1]
        known = self.condition.model_dump() | {"device_name": row["device_name"], "threads": row["threads"]}
        size = {"image_size": None, "prompt_tokens": None}
        text = describe_condition(known | size | {"data": None, "corruption": None})
        if (new := self.condition.new_tokens) is not None:
            text += f", {new} new tokens of {self.condition.data} ({self.condition.decoding})"
        text += f", environment {row['environment'][:8]} on host {row['host']}"
        return text if tokens is None else f"{tokens} tokens, {text}"

    @property
    def sizes(self) -> list[int]:
        """Tokens at which an arm of it was timed."""
        return sorted({int(tokens) for tokens in self.rows["tokens"].dropna()})

    def at(self, tokens: int, *, between: bool = True) -> "SizeArms":
        """Its arms at a size; with `between` also those whose curve has points on both sides of it."""
        found, left_out = [], []
        for _, own in groups(self.rows, ("curve_id",)):
            rows = [row for row in rows_of(own) if not is_missing(row.tokens)]
            label = arm_text(rows[-1])
            here = [row for row in rows if int(row.tokens) == tokens]
            problem = _unusable(here[-1]) if here else ""
            if here and not problem:
                found.append(self._evidence(label, here[-1:], _speedup(here[-1])))
            elif here:
                left_out.append((label, problem))
            elif between and (inside := interpolate([_measured(row) for row in rows if not _unusable(row)], tokens)):
                neighbours = {inside.left.point.comparison_id, inside.right.point.comparison_id}
                chosen = [row for row in rows if row.comparison_id in neighbours]
                found.append(self._evidence(label, chosen, inside.speedup))
            else:
                left_out.append((label, _not_here([int(row.tokens) for row in rows], tokens, between=between)))
        return SizeArms(self, tokens, tuple(found), tuple(left_out))

    def _evidence(self, label: str, rows: Sequence[Any], speedup: SpeedUp) -> Evidence:
        last = rows[-1]
        exact = len(rows) == 1
        # quality at one image size is none at another; that of a language model does not depend on the length of the prompt, and
        # with random weights it has no meaning
        known = (exact or is_missing(last.image_size)) and last.weights != "random"
        arm = MeasuredArm(
            key=last.curve_id,
            speedup=speedup,
            costs=self.qualities.get(last.quality_pair_id, ()) if known else (),
            amounts=self.amounts.get(last.comparison_id, {}) if exact else {},
            obstacle=_obstacle(last) if exact else _control(last),
        )
        return Evidence(label, str(last.runtime), tuple(rows), arm)


@dataclass(frozen=True)
class SizeArms:
    """The arms of one condition at one size."""

    of: ConditionArms
    tokens: int
    found: tuple[Evidence, ...]
    left_out: tuple[tuple[str, str], ...] = field(default=())
    """Label of each arm that is not ranked, and why."""

    def ranked(self, max_drop: float | None = None, compared: int | None = None) -> Ranking:
        return rank([each.arm for each in self.found], max_drop=max_drop, compared=compared)

    @property
    def by_key(self) -> dict[str, Evidence]:
        return {each.arm.key: each for each in self.found}


def condition_arms(
    engine: Engine,
    *,
    model: str | None = None,
    device: Device | None = None,
    runtime: str | None = None,
    data: str | None = None,
) -> list[ConditionArms]:
    """The conditions of a store in which arms were timed against the unmodified model, by model and batch.

    `runtime` keeps the arms that run with it, `data` the quality on this data set. Raises `StoreError` for a model that was not
    timed, and `RefusedError` for a runtime or data set that was not measured.
    """
    rows = timed_arms(engine, model, device)
    rows = rows[rows["baseline"].str.partition(" [")[0] == DENSE.method]
    rows = rows[[not _is_replicate(params) for params in rows["params"]]]
    if runtime is not None:
        rows = _chosen(rows, "runtime", runtime)
    qualities = qualities_of(engine, rows)
    if data is not None:
        qualities = _chosen(qualities, "data", data)
    costs = {key["quality_pair_id"]: tuple(map(_cost, rows_of(own))) for key, own in groups(qualities, ("quality_pair_id",))}
    found = amounts_of(engine, rows)
    amounts = {
        (key["environment"], key["host"]): {
            own_key["comparison_id"]: dict(zip(own["metric"], own["effect"], strict=True))
            for own_key, own in groups(here, ("comparison_id",))
        }
        for key, here in groups(found, ("environment", "host"))
    }
    conditions = [
        ConditionArms(own, costs, amounts.get((key["environment"], key["host"]), {})) for key, own in groups(rows, _CONDITION)
    ]
    return sorted(_plain_baselines(conditions), key=lambda each: (each.condition.model, each.batch))


def at_batch(conditions: Sequence[ConditionArms], batch: int) -> list[ConditionArms]:
    """Those of one batch size. Raises `RefusedError` that names the batch sizes that were measured."""
    found = [each for each in conditions if each.batch == batch]
    if not found:
        known = sorted({each.batch for each in conditions})
        listed = ", ".join(map(str, known)) or "none against the unmodified model"
        raise RefusedError(f"nothing was measured at batch {batch}, and nothing is extrapolated; measured batches: {listed}")
    return found


def arm_text(row: Any) -> str:
    """The label of an arm of the views, which has the overrides that were requested of it."""
    return params_label(row.method, row.params)


def _plain_baselines(conditions: Sequence[ConditionArms]) -> Iterator[ConditionArms]:
    """Without those against the unmodified model under another setting, where the same condition has the plain one."""

    def place(each: ConditionArms) -> tuple[Any, ...]:
        return tuple(each.rows[name].iloc[0] for name in _CONDITION[:-1])

    plain = {place(each) for each in conditions if each.rows["baseline_id"].iloc[0] == DENSE.arm_id}
    yield from (each for each in conditions if each.rows["baseline_id"].iloc[0] == DENSE.arm_id or place(each) not in plain)


def _chosen(rows: pd.DataFrame, column: str, value: str) -> pd.DataFrame:
    found = rows[rows[column] == value]
    if found.empty:
        known = sorted({str(each) for each in rows[column].dropna()})
        raise RefusedError(f"nothing was measured with {column} {value!r}{did_you_mean(value, known) if known else ''}")
    return found


def _is_replicate(params: str | None) -> bool:
    """Whether an arm is a repeated one of an A/A test."""
    requested = json.loads(params) if params else {}
    return any("replicate" in step for step in (requested if isinstance(requested, list) else [requested]))


def _unusable(row: Any) -> str:
    """Why a row of the view `speedup` cannot be ranked; empty if it can."""
    flags = split_flags(row.flags)
    if reasons := quarantine_reasons(flags):
        return f"quarantined: {', '.join(reasons)}"
    if wrong(flags):
        return f"flagged as wrong: {', '.join(flags)}"
    if row.verdict == "insufficient" or is_missing(row.verdict) or is_missing(row.effect_se) or is_missing(row.speedup_low):
        return "too few pairs"
    return ""


def _obstacle(row: Any) -> str:
    return "it does nothing at this size" if "no_effect" in split_flags(row.flags) else _control(row)


def _control(row: Any) -> str:
    """Why a control is not advised: it exists for what it shows of other methods."""
    found = purpose(row.method)
    return "" if found == "optimisation" else f"{row.method} is a {found}, not for use"


def _not_here(sizes: Sequence[int], tokens: int, *, between: bool) -> str:
    if min(sizes) < tokens < max(sizes) and between:
        near = max(size for size in sizes if size < tokens), min(size for size in sizes if size > tokens)
        return f"not measured at {tokens} tokens, and no cost model fits between {near[0]} and {near[1]}"
    nearest = min(sizes, key=lambda size: abs(log(max(size, 1) / max(tokens, 1))))
    return f"measured at {min(sizes)} to {max(sizes)} tokens, nearest {nearest}; nothing is extrapolated"


def _speedup(row: Any) -> SpeedUp:
    return SpeedUp(log(row.speedup), row.effect_se, row.effect_freedom, int(row.pairs), int(row.rounds))


def _measured(row: Any) -> MeasuredPoint:
    speedup = _speedup(row)
    point = Point(
        x=row.tokens,
        speedup=row.speedup,
        se=row.effect_se,
        loads=json.loads(row.process_loads or "{}"),
        verdict=row.verdict,
        pairs=int(row.pairs),
        gmacs_baseline=None if is_missing(row.gmacs_baseline) else row.gmacs_baseline,
        gmacs=None if is_missing(row.gmacs_total) else row.gmacs_total,
        no_op="no_effect" in split_flags(row.flags),
        comparison_id=row.comparison_id,
    )
    return MeasuredPoint(point, speedup)


def _cost(row: Any) -> QualityCost:
    """By how much the arm is worse, from a row of the view `effect`."""
    spec = METRICS[row.metric]
    sign = -1 if spec.better == "higher" else 1
    value, low, high = (None if is_missing(each) else sign * each for each in (row.effect, row.effect_low, row.effect_high))
    low, high = (high, low) if sign < 0 else (low, high)
    data = str(row.data) if is_missing(row.corruption) else f"{row.data} with {row.corruption}, severity {row.severity:.0f}"
    return QualityCost(row.metric, effect_of(spec).unit, data, value or 0.0, low, high, 0 if is_missing(row.n) else int(row.n))
