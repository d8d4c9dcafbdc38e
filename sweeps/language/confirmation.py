"""Confirmation: the sweep file that measures known comparisons of one condition once more, or at
another size, and nothing else.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from math import isqrt, sqrt
from typing import Any

import yaml
from pydantic import ValidationError

from sweeps.errors import UserError
from sweeps.language.arm_parser import CALLABLE
from sweeps.language.condition_parser import FILL, LIST, PER_BLOCK, form_of
from sweeps.model.condition import Condition, Rectangle, square_side
from sweeps.model.job import Arm, Comparison
from sweeps.model.kinds import KINDS, OWN_FIELDS, THREAD_FIELDS
from sweeps.model.method import AnyMethod

ALWAYS = ("device", "weights")
"""Fields that are written at their defaults too: what stands in their place may depend on the
machine and the model."""
BUDGET_MINUTES = 2
"""Time that each arm may take: enough for the least number of pairs on a machine that is slower
than expected."""
VISITS = 6
"""To the one job, so that its interval rests on how far visits differ."""
_DEFAULTS = Condition(model="")


def sweep_of(
    comparisons: Sequence[Comparison], name: str, question: str, methods: Mapping[str, AnyMethod]
) -> str:
    """A sweep file with one point, one baseline and the arms of `comparisons`, which share kind,
    condition and baseline.

    Every field of the condition that is not at its default is written, and every parameter that is
    not. Expanded with the same methods it requests the same questions. Raises `KeyError` for a
    method that is not among `methods`.
    """
    first = comparisons[0]
    content = {
        "schema": 1,
        "name": name,
        "question": question,
        "defaults": _condition(first.condition, KINDS[first.kind].independent_of),
        **_own_axes(first.condition),
        "methods": [_arm(each.arm, methods) for each in comparisons],
        "baselines": [_arm(first.baseline, methods)],
        "jobs": {
            KINDS[first.kind].section: {
                "budget": f"{BUDGET_MINUTES * len(comparisons)}m",
                "passes": VISITS,
            }
        },
    }
    return yaml.safe_dump(
        content, sort_keys=False, default_flow_style=None, width=1000, allow_unicode=True
    )


def comparison_at(comparison: Comparison, measured: int, tokens: int) -> Comparison:
    """The same question at another size: `measured` are the tokens of its own. Raises `UserError`
    where no input has the size.
    """
    condition = comparison.condition
    if measured == tokens:
        return comparison
    changed: dict[str, Any]
    if condition.x_axis is not None:
        name, *tied = condition.x_axis
        if tied:
            raise UserError(f"{', '.join(tied)} make the size; only measured ones can be repeated")
        changed = {"values": tuple(sorted((dict(condition.values or ()) | {name: tokens}).items()))}
    elif condition.image_size is None:
        changed = {"prompt_tokens": tokens}
    else:
        if isqrt(tokens) ** 2 != tokens:
            raise UserError(
                f"no square image has {tokens} patch tokens; request a square number, such as"
                f" {isqrt(tokens) ** 2}"
            )
        patch = round(square_side(condition.image_size) / sqrt(measured))
        changed = {"image_size": patch * isqrt(tokens)}
    return comparison.model_copy(update={"condition": condition.model_copy(update=changed)})


def _own_axes(condition: Condition) -> dict[str, Any]:
    """Axes with free names, those that make the size tied together."""
    name, *along = condition.x_axis or ("",)
    tied = [each for each in (name, *along) if each in dict(condition.values or ())]
    return {
        **({"axes": {key: [value] for key, value in condition.values}} if condition.values else {}),
        **({"x_axis": name} if name in tied else {}),
        **({"zip": [tied]} if len(tied) > 1 else {}),
    }


def _condition(condition: Condition, independent_of: Collection[str]) -> dict[str, Any]:
    written = {
        key: plain_size(value)
        for key, value in condition
        if key not in (*THREAD_FIELDS, *OWN_FIELDS, *independent_of)
        and (key in ALWAYS or value != getattr(_DEFAULTS, key))
        and value is not None
    }
    spare = condition.spare_cores
    threads = {
        "count": condition.threads if spare is None else f"cores - {spare}",
        "wait": condition.wait_policy,
        "pin": True if condition.pinning == "cores" else None,
    }
    if any(value is not None for value in threads.values()):
        written["threads"] = {key: part for key, part in threads.items() if part is not None}
    return written


def plain_size(value: Any) -> Any:
    """A value as a sweep file has it."""
    return value.model_dump() if isinstance(value, Rectangle) else value


def _arm(arm: Arm, methods: Mapping[str, AnyMethod]) -> dict[str, Any] | str:
    """An entry of `methods` or `baselines`."""
    steps = [
        {CALLABLE: step.code, **{key: own for key, own in step.params.items() if own is not None}}
        if step.code is not None
        else {"method": step.method, **_params(step.params, methods[step.method])}
        for step in arm.stack
    ]
    beside = {key: plain_size(value) for key, value in arm.overrides if value is not None}
    beside |= {"replicate": arm.replicate} if arm.replicate else {}
    if not steps:
        return {"method": "dense", **beside} if beside else "dense"
    return {**(steps[0] if len(steps) == 1 else {"stack": steps}), **beside}


def _params(params: Mapping[str, Any], method: AnyMethod) -> dict[str, Any]:
    """Parameters that are not at their defaults; all where a default depends on another
    parameter.
    """
    fields = method.Params.model_fields
    defaults = method.Params.model_construct().model_dump(mode="json", warnings=False)
    own = {
        key: value for key, value in params.items() if key not in defaults or defaults[key] != value
    }
    try:
        read_back = method.Params.model_validate_json(json.dumps(own)).model_dump(mode="json")
    except ValidationError:  # of an imported outcome, or of another version of the method
        read_back = {}
    if read_back != params:
        own = {key: value for key, value in params.items() if value is not None}
    for key, value in own.items():
        if isinstance(value, list):
            # the form of one list, which does not expand
            schedule = key in fields and form_of(fields[key].annotation) == "schedule"
            own[key] = {PER_BLOCK: value, FILL: 0} if schedule else {LIST: value}
    return own
