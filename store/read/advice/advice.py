"""Advice from a store: the arms of each condition that was timed, ranked at a requested size
(measured, or between two), with the rows that show it and why others are left out.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log, sqrt
from typing import NamedTuple

from store.open.engine import Engine
from store.read.advice.timed_arms import (
    FailedArm,
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
from sweeps.analysis.advice import Amount, MeasuredArm, Obstacle, QualityCost, Ranking, pareto, rank
from sweeps.analysis.labels import effect_of
from sweeps.analysis.rows import ClaimRow, EffectRow
from sweeps.errors import UserError, did_you_mean
from sweeps.language.confirmation import comparison_at
from sweeps.model.condition import Condition, Device, ImageSize, image_shape, square_side
from sweeps.model.flags import quarantine_reasons, split_flags, wrong
from sweeps.model.identity import canonical
from sweeps.model.job import DENSE, Comparison
from sweeps.model.metrics import METRICS
from sweeps.stats.curve import MeasuredPoint, Point, interpolate
from sweeps.stats.pooling import SpeedUp
from sweeps.text.advice_text import Advice, Evidence, LeftOut, ranked_by_runtime
from sweeps.text.condition_text import condition_parts


def condition_key(row: TimedArm | FailedArm) -> tuple[str, str, str, str]:
    """Equal for arms that may be ranked together: they have the same unmodified model beside
    them.
    """
    return row.environment, row.host, row.condition_group, row.baseline_id


def failures_by_condition(
    failed: Sequence[FailedArm], timed: Sequence[TimedArm]
) -> dict[tuple[str, str, str, str], tuple[FailedArm, ...]]:
    """The newest failure of each arm and size, by `condition_key`; `timed` show a model's tokens at
    a size.
    """
    known: dict[str, dict[ImageSize, int]] = {}
    for row in timed:
        if row.condition.image_size is not None and row.tokens is not None:
            known.setdefault(row.model, {})[row.condition.image_size] = row.tokens
    newest: dict[tuple[str, str, str, str], dict[tuple[str, int | None], FailedArm]] = {}
    for failure in failed:
        tokens = _tokens(failure.condition, known.get(failure.model, {}))
        own = newest.setdefault(condition_key(failure), {})
        own[failure.curve_id, tokens] = replace(failure, tokens=tokens)
    return {key: tuple(own.values()) for key, own in newest.items()}


def _tokens(condition: Condition, known: Mapping[ImageSize, int]) -> int | None:
    """Tokens of the unmodified model at the size of a condition; patches are as large at all sizes
    of a model.
    """
    if condition.image_size is None:
        return condition.prompt_tokens
    if condition.image_size in known:
        return known[condition.image_size]
    patches = {round(square_side(size) / sqrt(tokens)) for size, tokens in known.items() if tokens}
    height, width = image_shape(condition.image_size)
    (patch, *more) = patches or {0}
    return None if more or not patch else (height // patch) * (width // patch)


class MethodFacts(NamedTuple):
    """What methods declare; the store has no method."""

    label: Callable[[str, str | None], str]
    """The label of a method and its parameters (JSON)."""
    purpose: Callable[[str], str]
    """`optimisation`, or what a control is for."""


class SizeArms(NamedTuple):
    """The arms of one condition at one size."""

    tokens: int
    found: tuple[Evidence, ...]
    left_out: tuple[LeftOut, ...]
    """Label of each arm that is not ranked, and why."""

    def ranked(self, max_drop: float | None = None, compared: int | None = None) -> Ranking:
        return rank([each.arm for each in self.found], max_drop=max_drop, compared=compared)

    @property
    def by_key(self) -> dict[str, Evidence]:
        return {each.arm.key: each for each in self.found}


@dataclass(frozen=True)
class ConditionArms:
    """The arms of one condition at all sizes; ratios are formed inside it alone."""

    rows: tuple[TimedArm, ...]
    """With the unmodified model of the condition as their baseline."""
    qualities: Mapping[str, tuple[QualityCost, ...]]
    """By `quality_pair_id`."""
    amounts: Mapping[str, Mapping[str, Amount]]
    """By `comparison_id`: peak memory and energy."""
    failures: tuple[FailedArm, ...]
    methods: MethodFacts
    break_evens: Mapping[str, tuple[ClaimRow, ...]] = field(default_factory=dict)
    """By `curve_id`: rows of `store.read.curves.claims_of_curves`."""

    @property
    def batch(self) -> int:
        return int(self.rows[0].batch_size or 1)

    @property
    def condition(self) -> Condition:
        """That of one of its questions: they share all but the size."""
        return self.rows[-1].condition

    @property
    def metric(self) -> str:
        return self.rows[0].metric

    def parts(self, tokens: int | None = None) -> tuple[str, ...]:
        """The condition in words, one by one, at a size where one is given."""
        row = self.rows[-1]
        known = self.condition.model_dump() | {
            "device_name": row.device_name,
            "threads": row.threads,
            "kind": row.kind,
        }
        size = {"image_size": None, "prompt_tokens": None}
        axis, fixed = self.condition.x_axis, self.condition.fixed_values
        if fixed is not None:
            known["fixed_values"] = canonical(dict(fixed))
        at = f"{tokens} tokens" if axis is None else f"{axis[0]} {tokens}"
        parts = [] if tokens is None else [at]
        parts += condition_parts(known | size | {"data": None, "corruption": None})
        if (new := self.condition.new_tokens) is not None:
            parts += [f"{new} new tokens of {self.condition.data} ({self.condition.decoding})"]
        return (*parts, f"environment {row.environment[:8]} on host {row.host}")

    @property
    def sizes(self) -> list[int]:
        """Tokens at which an arm of it was timed."""
        return sorted({row.tokens for row in self.rows if row.tokens is not None})

    @cached_property
    def _curves(self) -> dict[str, list[TimedArm]]:
        """Rows with their tokens, by `curve_id`, in the order of `rows`."""
        found: dict[str, list[TimedArm]] = {}
        for row in self.rows:
            if row.tokens is not None:
                found.setdefault(row.curve_id, []).append(row)
        return found

    def at(self, tokens: int, *, between: bool = True) -> SizeArms:
        """Its arms at a size; with `between` also those whose curve has points on both sides of it,
        and no failure at it.
        """
        found: list[Evidence] = []
        left_out: list[LeftOut] = []
        failed = {each.curve_id: each for each in self.failures if each.tokens == tokens}
        for curve_id, rows in self._curves.items():
            label = self.methods.label(rows[-1].method, rows[-1].params)
            here = [row for row in rows if row.tokens == tokens]
            judged = _judge(here[-1]) if here else ""
            failure = failed.pop(curve_id, None)
            if isinstance(judged, SpeedUp):
                found.append(self._evidence(label, here[-1:], judged))
            elif here or failure is not None:
                left_out.append(LeftOut(label, judged if failure is None else failure.explanation))
            elif between and (inside := interpolate(list(_measured(rows)), tokens)):
                neighbours = {inside.left.point.comparison_id, inside.right.point.comparison_id}
                chosen = [row for row in rows if row.comparison_id in neighbours]
                found.append(self._evidence(label, chosen, inside.speedup))
            else:
                sizes = [row.tokens for row in rows if row.tokens is not None]
                within = between and min(sizes) < tokens < max(sizes)
                reason = _no_model(sizes, tokens) if within else _out_of_range(sizes, tokens)
                left_out.append(LeftOut(label, reason, beyond=not within))
        left_out += [
            LeftOut(self.methods.label(each.method, each.params), each.explanation)
            for each in failed.values()
        ]
        return SizeArms(tokens, tuple(found), tuple(left_out))

    def advice(
        self, tokens: int, *, max_drop: float | None = None, with_pareto: bool = False
    ) -> Advice:
        """Its arms ranked at a size."""
        arms, last = self.at(tokens), self.rows[-1]
        return Advice(
            parts=self.parts(tokens),
            tokens=tokens,
            condition=self.condition,
            environment=last.environment,
            host=last.host,
            metric=self.metric,
            found=arms.found,
            left_out=arms.left_out,
            ranking=arms.ranked(max_drop),
            max_drop=max_drop,
            pareto=pareto([each.arm for each in arms.found]) if with_pareto else None,
            break_evens=self.break_evens,
        )

    def missing_at(self, tokens: int, batch: int | None = None) -> list[Comparison]:
        """The questions of its optimisations that are not measured at a size (and batch), where
        they have not failed.

        Raises `UserError` where no input has the size.
        """
        failed = {
            each.curve_id
            for each in self.failures
            if each.tokens == tokens and batch in {None, self.batch}
        }
        found = []
        for curve_id, rows in self._curves.items():
            here = [row for row in rows if row.tokens == tokens and batch in {None, self.batch}]
            answered = here and isinstance(_judge(here[-1]), SpeedUp)
            if answered or curve_id in failed or self._control(rows[-1].method):
                continue
            last = (here or rows)[-1]
            stored = Comparison.model_validate_json(last.payload)
            comparison = comparison_at(stored, last.tokens or 0, tokens)
            size = {} if batch is None else {"batch_size": batch}
            condition = comparison.condition.model_copy(update=size)
            found.append(comparison.model_copy(update={"condition": condition}))
        return found

    def _evidence(self, label: str, rows: Sequence[TimedArm], speedup: SpeedUp) -> Evidence:
        last = rows[-1]
        exact = len(rows) == 1
        # quality at one image size is none at another; that of a language model does not depend on
        # the length of the prompt, and
        # with random weights it has no meaning
        known = (exact or last.image_size is None) and last.weights != "random"
        amounts = self.amounts.get(last.comparison_id, {}) if exact else {}
        idle = exact and "no_effect" in split_flags(last.flags)
        arm = MeasuredArm(
            key=last.curve_id,
            speedup=speedup,
            costs=self.qualities.get(last.quality_pair_id, ()) if known else (),
            amounts=amounts,
            obstacle=Obstacle("no_effect") if idle else self._control(last.method),
        )
        return Evidence(label, str(last.runtime), tuple(rows), arm, amounts)

    def _control(self, method: str) -> Obstacle | None:
        """Why a control is not advised: it exists for what it shows of other methods."""
        found = self.methods.purpose(method)
        return None if found == "optimisation" else Obstacle("not_for_use", found, method)


def _judge(row: TimedArm) -> SpeedUp | str:
    """The speed-up of a row, or why it cannot be ranked."""
    flags = split_flags(row.flags)
    if reasons := quarantine_reasons(flags):
        return f"quarantined: {', '.join(reasons)}"
    if wrong(flags):
        return f"flagged as wrong: {', '.join(flags)}"
    if (
        row.verdict == "insufficient"
        or row.effect_se is None
        or row.effect_freedom is None
        or row.speedup_low is None
    ):
        return "too few pairs"
    return SpeedUp(log(row.speedup), row.effect_se, row.effect_freedom, row.pairs)


def _no_model(sizes: Sequence[int], tokens: int) -> str:
    below = max(size for size in sizes if size < tokens)
    above = min(size for size in sizes if size > tokens)
    return f"not measured at {tokens} tokens, and no cost model fits between {below} and {above}"


def _out_of_range(sizes: Sequence[int], tokens: int) -> str:
    nearest = min(sizes, key=lambda size: abs(log(max(size, 1) / max(tokens, 1))))
    return (
        f"measured at {min(sizes)} to {max(sizes)} tokens, nearest {nearest}; nothing is"
        " extrapolated"
    )


def _measured(rows: Sequence[TimedArm]) -> Iterator[MeasuredPoint]:
    """Those that can be ranked."""
    for row in rows:
        speedup = _judge(row)
        if isinstance(speedup, SpeedUp) and row.tokens is not None:
            point = Point(
                x=row.tokens,
                speedup=row.speedup,
                se=row.effect_se,
                verdict=row.verdict,
                pairs=row.pairs,
                gmacs_baseline=row.gmacs_baseline,
                gmacs=row.gmacs_total,
                no_op="no_effect" in split_flags(row.flags),
                comparison_id=row.comparison_id,
            )
            yield MeasuredPoint(point, speedup)


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
    """The conditions of one batch that have an arm at the size, ranked there, as
    `ranked_by_runtime` orders them. Raises `RefusedError` where none has.
    """
    found = [
        each.advice(request.tokens, max_drop=request.max_drop, with_pareto=request.pareto)
        for each in conditions
    ]
    if answered := [each for each in found if each.found]:
        return ranked_by_runtime(answered)
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
    given = {
        "--device": request.device,
        "--runtime": request.runtime,
        "--metric": request.metric,
        "--data": request.data,
        "--max-drop": None if request.max_drop is None else f"{request.max_drop:g}",
    }
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
            row.effect or 0.0,
            row.baseline_value,
            row.arm_value,
            row.unit,
            row.effect_low,
            row.effect_high,
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
