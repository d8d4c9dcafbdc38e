"""Advice from a store: the arms of each condition that was timed, ranked at a requested size, with
the rows that show it.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from typing import Any, NamedTuple

import pandas as pd

from store.open.engine import Engine
from store.read.advice.condition_arms import (
    ConditionArms,
    FailedArm,
    MethodFacts,
    failures_by_condition,
)
from store.read.advice.timed_arms import (
    TimedCondition,
    amounts_of,
    failed_arms,
    qualities_of,
    timed_arms,
    timed_batches,
)
from store.read.curves import claims_of_curves
from store.read.evidence.evidence import point_evidence
from store.read.evidence.evidence_checks import findings
from store.rows.frames import groups, rows_of
from store.rows.placement import Place
from sweeps.analysis.advice import QualityCost
from sweeps.analysis.labels import effect_of
from sweeps.errors import UserError, did_you_mean
from sweeps.model.condition import Device
from sweeps.model.job import DENSE
from sweeps.model.metrics import METRICS
from sweeps.number_format import is_missing
from sweeps.text.advice_text import Advice, Amount

CONDITION_KEY = ("environment", "host", "condition_group", "baseline_id")
"""Equal for arms that may be ranked together: they have the same unmodified model beside them."""


class AdviceRequest(NamedTuple):
    """What is requested of a store."""

    model: str
    tokens: int
    batch: int
    device: Device | None = None
    runtime: str | None = None
    data: str | None = None
    metric: str | None = None
    """By which arms are ranked; default: the first of the kind."""
    max_drop: float | None = None
    pareto: bool = False


class RefusedError(UserError):
    """What was measured does not answer the question; the message names what was measured
    instead.
    """

    def __init__(
        self, message: str, *, tokens: Sequence[int] = (), batches: Sequence[int] = ()
    ) -> None:
        super().__init__(message)
        self.tokens, self.batches = tuple(tokens), tuple(batches)
        """The nearest sizes, or batch sizes, that were measured."""


def advice_of(engine: Engine, request: AdviceRequest, methods: MethodFacts) -> list[Advice]:
    """The arms of each condition that answers the request, ranked.

    Raises `StoreError` for a model, device or metric that was not timed, and `RefusedError` where
    what was measured does not answer it: nothing is extrapolated.
    """
    return answers_of(at_batch(engine, request, methods), request)


def answers_of(conditions: Sequence[ConditionArms], request: AdviceRequest) -> list[Advice]:
    """The conditions of one batch that have an arm at the size, ranked there. Raises `RefusedError`
    where none has.
    """
    found = [
        each.advice(request.tokens, max_drop=request.max_drop, with_pareto=request.pareto)
        for each in conditions
    ]
    if answered := [each for each in found if each.found]:
        return answered
    sizes = sorted({size for each in conditions for size in each.sizes})
    out_of_range = "measured at "  # the sizes are named anyway
    reasons = {
        f"{label}: {reason}"
        for each in found
        for label, reason in each.left_out
        if not reason.startswith(out_of_range)
    }
    listed = f" ({'; '.join(sorted(reasons)[:6])})" if reasons else ""
    known = [
        size
        for size in sizes
        if size != request.tokens and any(each.at(size, between=False).found for each in conditions)
    ]
    nearest = sorted(sorted(known, key=lambda size: abs(size - request.tokens))[:2])
    near = (
        f", nearest {' and '.join(map(str, nearest))}"
        if nearest
        else ", none of which has an answer"
    )
    if len(nearest) == len(sizes):
        near = ""  # they are named just before
    raise RefusedError(
        f"no arm of {request.model} is known at {request.tokens} tokens and batch {request.batch},"
        f" and nothing is extrapolated; measured at {', '.join(map(str, sizes))}"
        f" tokens{near}{listed}",
        tokens=nearest,
    )


def at_batch(
    engine: Engine,
    request: AdviceRequest,
    methods: MethodFacts,
    only: Sequence[TimedCondition] | None = None,
) -> list[ConditionArms]:
    """The conditions of one batch size, all or some of them.

    Raises `RefusedError` that names the batch sizes that were measured, and what failed.
    """
    limits = {
        "device": request.device,
        "runtime": request.runtime,
        "data": request.data,
        "metric": request.metric,
    }
    if found := condition_arms(
        engine, methods, model=request.model, batch=request.batch, only=only, **limits
    ):
        return list(_with_claims(engine, found))
    known = timed_batches(engine, request.model, request.device, metric=request.metric)
    listed = ", ".join(map(str, known)) or "none against the unmodified model"
    failed = failed_arms(engine, request.model, request.device, batch=request.batch)
    own = {
        f"{methods.label(row.method, row.params)}: {FailedArm.of(row).reason}"
        for row in rows_of(failed)
    }
    nearest = sorted(sorted(known, key=lambda batch: abs(log(batch / request.batch)))[:2])
    raise RefusedError(
        f"nothing was measured at batch {request.batch}, and nothing is extrapolated; measured"
        f" batches: {listed}" + (f" ({'; '.join(sorted(own)[:6])})" if own else ""),
        batches=nearest,
    )


def _with_claims(engine: Engine, conditions: Sequence[ConditionArms]) -> Iterator[ConditionArms]:
    """With what the curves of the arms claim over all sizes."""
    metrics = {each.metric for each in conditions}
    curves = {
        name: {key for each in conditions if each.metric == name for key in each.rows["curve_id"]}
        for name in metrics
    }
    claims = {name: claims_of_curves(engine, curves[name], name) for name in metrics}
    for each in conditions:
        place = Place(str(each.rows["environment"].iloc[0]), str(each.rows["host"].iloc[0]))
        known = {
            key: claims[each.metric].get((key, place), ()) for key in each.rows["curve_id"].unique()
        }
        yield replace(each, break_evens={key: rows for key, rows in known.items() if rows})


def checked(engine: Engine, advice: Advice) -> Advice:
    """With the checks of the evidence of its first arm, where that was measured at the size:
    whether it may be noise.
    """
    winner = advice.winner
    if winner is None or winner.interpolated:
        return advice
    (row,) = winner.rows
    evidence = point_evidence(engine, row.comparison_id, row.environment, row.host)
    timed = next((each for each in evidence.timed if each.metric.name == advice.metric), None)
    return advice if timed is None else replace(advice, checks=tuple(findings(evidence, timed)))


def command_line(command: Sequence[str], request: AdviceRequest) -> str:
    """A command of the terminal with what is requested; `command` begins it."""
    given: dict[str, Any] = {
        "--device": request.device,
        "--runtime": request.runtime,
        "--metric": request.metric,
    }
    given["--data"] = request.data
    given["--max-drop"] = None if request.max_drop is None else f"{request.max_drop:g}"
    words = [*command, "--model", request.model]
    if command[0] == "advise":
        words += ["--tokens", str(request.tokens), "--batch", str(request.batch)]
    for option, value in given.items():
        words += [] if value is None else [option, value]
    return shlex.join(["breakeven", *words])


def condition_arms(
    engine: Engine,
    methods: MethodFacts,
    *,
    model: str | None = None,
    batch: int | None = None,
    device: str | None = None,
    runtime: str | None = None,
    data: str | None = None,
    metric: str | None = None,
    only: Sequence[TimedCondition] | None = None,
) -> list[ConditionArms]:
    """The conditions of a store in which arms were timed against the unmodified model, by model and
    batch.

    `only` reads some conditions of `store.read.advice.timed_arms.timed_conditions`
    (default: all of them). `runtime` keeps the arms that run with it, `data` the quality on this
    data set. Raises `StoreError` for a model, device or metric that was not timed, and
    `RefusedError` for a runtime or data set that was not measured.
    """
    rows = timed_arms(engine, model, device, metric=metric, batch=batch, only=only)
    rows = rows[[not _is_replicate(params) for params in rows["params"]]]
    if rows.empty:
        return []
    if runtime is not None:
        rows = _chosen(rows, "runtime", runtime)
    qualities = qualities_of(engine, rows)
    if data is not None:
        qualities = _chosen(qualities, "data", data)
    costs: dict[str, list[QualityCost]] = {}
    for row in rows_of(qualities):
        costs.setdefault(row.quality_pair_id, []).append(_cost(row))
    amounts: dict[tuple[str, str], dict[str, dict[str, Amount]]] = {}
    for row in rows_of(amounts_of(engine, rows)):
        amounts.setdefault((row.environment, row.host), {}).setdefault(row.comparison_id, {})[
            row.metric
        ] = _amount(row)
    failed = failed_arms(engine, model, device, batch=batch, only=only)
    failures = failures_by_condition(
        failed if runtime is None else failed[failed["runtime"] == runtime], rows, CONDITION_KEY
    )
    conditions = [
        ConditionArms(
            rows=own,
            qualities={key: tuple(own) for key, own in costs.items()},
            amounts=amounts.get((key["environment"], key["host"]), {}),
            failures=failures.get(tuple(key.values()), ()),
            methods=methods,
        )
        for key, own in groups(rows, CONDITION_KEY)
    ]
    return sorted(_plain_baselines(conditions), key=lambda each: (each.condition.model, each.batch))


def _plain_baselines(conditions: Sequence[ConditionArms]) -> Iterator[ConditionArms]:
    """Without those against the unmodified model under another setting, where the same condition
    has the plain one.
    """

    def place(each: ConditionArms) -> tuple[Any, ...]:
        return tuple(each.rows[name].iloc[0] for name in CONDITION_KEY[:-1])

    plain = {place(each) for each in conditions if each.rows["baseline_id"].iloc[0] == DENSE.arm_id}
    yield from (
        each
        for each in conditions
        if each.rows["baseline_id"].iloc[0] == DENSE.arm_id or place(each) not in plain
    )


def _chosen(rows: pd.DataFrame, column: str, value: str) -> pd.DataFrame:
    found = rows[rows[column] == value]
    if found.empty:
        known = sorted({str(each) for each in rows[column].dropna()})
        raise RefusedError(
            f"nothing was measured with {column}"
            f" {value!r}{did_you_mean(value, known) if known else ''}"
        )
    return found


def _is_replicate(params: str | None) -> bool:
    """Whether an arm is a repeated one of an A/A test."""
    requested = json.loads(params) if params else {}
    return any(
        "replicate" in step for step in (requested if isinstance(requested, list) else [requested])
    )


def _cost(row: Any) -> QualityCost:
    """By how much the arm is worse, from a row of the view `effect`."""
    spec = METRICS[row.metric]
    sign = -1 if spec.better == "higher" else 1
    value, low, high = (
        None if is_missing(each) else sign * each
        for each in (row.effect, row.effect_low, row.effect_high)
    )
    low, high = (high, low) if sign < 0 else (low, high)
    data = (
        str(row.data)
        if is_missing(row.corruption)
        else f"{row.data} with {row.corruption}, severity {row.severity:.0f}"
    )
    return QualityCost(
        row.metric,
        effect_of(spec).unit,
        data,
        value or 0.0,
        low,
        high,
        0 if is_missing(row.n) else int(row.n),
    )


def _amount(row: Any) -> Amount:
    """From a row of the view `effect`."""
    baseline, arm = (
        None if is_missing(each) else each for each in (row.baseline_value, row.arm_value)
    )
    return Amount(row.effect, baseline, arm, row.unit)
