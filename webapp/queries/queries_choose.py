"""What the page Choose reads: what there is advice on, the advice, the policy, and the sweeps that
would measure more.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import pandas as pd

from store.read.advice.advice import (
    AdviceRequest,
    RefusedError,
    answers_of,
    at_batch,
    checked,
    condition_arms,
)
from store.read.advice.condition_arms import ConditionArms, MethodFacts
from store.read.advice.policy_file import PolicyFile, policy_file
from store.read.advice.timed_arms import (
    TimedCondition,
    measured_conditions,
    timed_conditions,
    timed_sizes,
)
from sweeps.errors import UserError
from sweeps.language.confirmation import comparison_at, sweep_of
from sweeps.model.job import Comparison
from sweeps.text.advice_text import Advice
from webapp.queries import kept
from workers.methods import all_methods, purpose
from workers.methods.arm_labels import params_label

METHODS = MethodFacts(params_label, purpose)
MAX_POINTS = 2000
"""Of the conditions that are read at once, but for the fullest, which is always; all are where
there is a request for them."""


def known_conditions(url: str | None = None) -> pd.DataFrame:
    """See `store.read.advice.timed_arms.measured_conditions`."""
    return kept(measured_conditions, "measured_conditions", url=url)


def model_sizes(model: str, batch: int, url: str | None = None) -> dict[int, int]:
    """See `store.read.advice.timed_arms.timed_sizes`."""
    return kept(
        lambda engine: timed_sizes(engine, model, batch), "timed_sizes", model, batch, url=url
    )


class FullestAdvice(NamedTuple):
    """What the page shows on a request."""

    found: Sequence[Advice]
    hidden: int
    """Conditions that were not read, since they have fewer points than those that were."""


def advice(request: AdviceRequest, *, every: bool = False, url: str | None = None) -> FullestAdvice:
    """What `breakeven advise --pareto` prints, for the conditions with the most points, or for
    `every` condition.

    Others are read as well where none of these has an answer. Raises `StoreError`, and
    `RefusedError` where nothing measured answers it.
    """
    only = None if every else _fullest(request, url)
    if only is not None:
        with suppress(RefusedError):
            hidden = len(_timed_conditions(request, url)) - len(only)
            return FullestAdvice(answers_of(conditions(request, only, url), request), hidden)
    return FullestAdvice(answers_of(conditions(request, url=url), request), 0)


def checked_advice(advice: Advice, url: str | None = None) -> Advice:
    """See `store.read.advice.advice.checked`."""
    if advice.winner is None or advice.winner.interpolated:
        return advice
    (row,) = advice.winner.rows
    place = (row.comparison_id, row.environment, row.host, advice.metric)
    checks = kept(lambda engine: checked(engine, advice).checks, "checked_advice", *place, url=url)
    return replace(advice, checks=checks)


def _fullest(request: AdviceRequest, url: str | None) -> tuple[TimedCondition, ...] | None:
    """The conditions with the most points where all together have too many."""
    known = _timed_conditions(request, url)
    sums = list(accumulate(each.points for each in known))
    few = max(1, sum(points <= MAX_POINTS for points in sums))
    return tuple(known[:few]) if few < len(known) else None


def _timed_conditions(request: AdviceRequest, url: str | None) -> Sequence[TimedCondition]:
    limits = {"device": request.device, "runtime": request.runtime, "metric": request.metric}

    def read(engine: Any) -> Sequence[TimedCondition]:
        return timed_conditions(engine, request.model, request.batch, **limits)

    return kept(read, "timed_conditions", request.model, request.batch, *limits.values(), url=url)


def conditions(
    request: AdviceRequest, only: tuple[TimedCondition, ...] | None = None, url: str | None = None
) -> Sequence[ConditionArms]:
    """What a request rests on at all sizes, which is read once for all of them. Raises as `advice`
    does.
    """
    same = request._replace(tokens=0, max_drop=None, pareto=False)
    return kept(
        lambda engine: at_batch(engine, same, METHODS, only), "conditions", same, only, url=url
    )


def policy(request: AdviceRequest, created: float, url: str | None = None) -> PolicyFile:
    """What `breakeven export-policy` writes for the model of a request at all sizes and batches."""

    def read(engine: Any) -> PolicyFile:
        found = condition_arms(
            engine,
            METHODS,
            model=request.model,
            device=request.device,
            runtime=request.runtime,
            data=request.data,
            metric=request.metric,
        )
        return policy_file(engine, found, max_drop=request.max_drop, created=created)

    return kept(read, "policy", request._replace(tokens=0, batch=0, pareto=False), url=url)


def winner_sweep(advice: Advice) -> str:
    """The sweep file that measures the first arm again at this size; empty where the unmodified
    model comes first.

    Raises `UserError` where no input has the size, or a method is not installed.
    """
    winner = advice.winner
    if winner is None:
        return ""
    comparison = comparison_at(winner.comparison, int(winner.rows[-1].tokens), advice.tokens)
    question = f"Is {winner.label} as fast on fresh pairs as when it was chosen?"
    return _written([comparison], f"confirm-{comparison.question_id}", question)


def sweep_for_missing_points(
    request: AdviceRequest,
    chosen: Advice | None,
    batches: Sequence[int] = (),
    url: str | None = None,
) -> str:
    """The sweep file that measures at this size what is not known there; empty where nothing is
    missing.

    In the condition of the advice, or else in the first one of the model, at the nearest of the
    `batches` where its own is none. Raises `UserError` where no input has the size, or a method is
    not installed.
    """
    near = request._replace(batch=batches[0]) if batches else request
    same: list[ConditionArms] = []
    try:
        for only in dict.fromkeys((_fullest(near, url), None)):
            if not same:
                found = conditions(near, only, url)
                same = [
                    each
                    for each in found
                    if chosen is None or each.title(request.tokens) == chosen.title
                ]
    except RefusedError:
        return ""
    missing = same[0].missing_at(request.tokens, request.batch) if same else []
    if not missing:
        return ""
    question = (
        f"What does {request.model} gain at {request.tokens} tokens and batch {request.batch}?"
    )
    return _written(missing, f"measure-{missing[0].question_id}", question)


def _written(comparisons: Sequence[Comparison], name: str, question: str) -> str:
    known = all_methods()
    for each in comparisons:
        for step in (*each.arm.stack, *each.baseline.stack):
            if step.method not in known:
                raise UserError(f"the method {step.method} is not installed here")
    return sweep_of(comparisons, name, question, known)
