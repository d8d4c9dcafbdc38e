"""Advice from a store: the arms of each condition that was timed, ranked at a requested size, with
the rows that show it.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from typing import Any, NamedTuple

from store.open.engine import Engine
from store.read.advice.condition_arms import (
    ConditionArms,
    MethodFacts,
    condition_key,
    failures_by_condition,
)
from store.read.advice.timed_arms import (
    TimedArm,
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
from store.rows.placement import Place
from sweeps.analysis.advice import QualityCost
from sweeps.analysis.labels import effect_of
from sweeps.analysis.rows import EffectRow
from sweeps.errors import UserError, did_you_mean
from sweeps.model.condition import Device
from sweeps.model.job import DENSE
from sweeps.model.metrics import METRICS
from sweeps.text.advice_text import Advice, Amount


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
    reasons = {
        f"{label}: {reason}"
        for each in found
        for label, reason, beyond in each.left_out
        if not beyond  # the sizes are named anyway
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
    own = {f"{methods.label(row.method, row.params)}: {row.explanation}" for row in failed}
    nearest = sorted(sorted(known, key=lambda batch: abs(log(batch / request.batch)))[:2])
    raise RefusedError(
        f"nothing was measured at batch {request.batch}, and nothing is extrapolated; measured"
        f" batches: {listed}" + (f" ({'; '.join(sorted(own)[:6])})" if own else ""),
        batches=nearest,
    )


def _with_claims(engine: Engine, conditions: Sequence[ConditionArms]) -> Iterator[ConditionArms]:
    """With what the curves of the arms claim over all sizes."""
    curves: dict[str, set[str]] = {}
    for each in conditions:
        curves.setdefault(each.metric, set()).update(row.curve_id for row in each.rows)
    claims = {name: claims_of_curves(engine, ids, name) for name, ids in curves.items()}
    for each in conditions:
        place = Place(each.rows[0].environment, each.rows[0].host)
        known = {
            row.curve_id: claims[each.metric].get((row.curve_id, place), ()) for row in each.rows
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
    if not rows:
        return []
    failed = failed_arms(engine, model, device, batch=batch, only=only)
    if runtime is not None:
        _check_measured("runtime", runtime, {row.runtime for row in rows})
        rows = [row for row in rows if row.runtime == runtime]
        failed = [row for row in failed if row.runtime == runtime]
    qualities = qualities_of(engine, rows)
    if data is not None:
        _check_measured("data", data, {row.data for row in qualities})
    costs: dict[str, tuple[QualityCost, ...]] = {}
    for row in qualities:
        if data in {None, row.data}:
            costs[row.quality_pair_id] = (*costs.get(row.quality_pair_id, ()), _cost(row))
    amounts: dict[tuple[str, str], dict[str, dict[str, Amount]]] = {}
    for row in amounts_of(engine, rows):
        here = amounts.setdefault((row.environment, row.host), {})
        here.setdefault(row.comparison_id, {})[row.metric] = Amount(
            row.effect or 0.0, row.baseline_value, row.arm_value, row.unit
        )
    failures = failures_by_condition(failed, rows)
    conditions: dict[tuple[str, str, str, str], list[TimedArm]] = {}
    for timed in rows:
        conditions.setdefault(condition_key(timed), []).append(timed)
    plain = {key[:-1] for key in conditions if key[-1] == DENSE.arm_id}
    found = [
        ConditionArms(
            rows=tuple(own),
            qualities=costs,
            amounts=amounts.get(key[:2], {}),
            failures=failures.get(key, ()),
            methods=methods,
        )
        for key, own in conditions.items()
        # not against another setting of the unmodified model, where there is the plain one
        if key[-1] == DENSE.arm_id or key[:-1] not in plain
    ]
    return sorted(found, key=lambda each: (each.condition.model, each.batch))


def _check_measured(column: str, value: str, known: set[str | None]) -> None:
    if value not in known:
        near = sorted(str(each) for each in known if each is not None)
        hint = did_you_mean(value, near) if near else ""
        raise RefusedError(f"nothing was measured with {column} {value!r}{hint}")


def _cost(row: EffectRow) -> QualityCost:
    """By how much the arm is worse."""
    spec = METRICS[row.metric]
    ends = (row.effect, row.effect_low, row.effect_high)
    if spec.better == "higher":
        ends = (row.effect, row.effect_high, row.effect_low)
    sign = -1 if spec.better == "higher" else 1
    value, low, high = (None if each is None else sign * each for each in ends)
    data = str(row.data)
    if row.corruption is not None:
        data += f" with {row.corruption}, severity {row.severity}"
    unit = effect_of(spec).unit
    return QualityCost(row.metric, unit, data, value or 0.0, low, high, row.n or 0)
