"""Budgets: an arm with a budget becomes one with the parameter that keeps to it. Imports no
torch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from pydantic.fields import FieldInfo

from sweeps.model.condition import ImageSize
from sweeps.model.job import Arm
from sweeps.model.method import Network, Params
from workers import methods
from workers.errors import Unsupported

FINENESS = 1_000_000
"""Steps between the limits of a fractional parameter: finer than a token, so that the nearest token
count is always found."""


class BudgetSolution(NamedTuple):
    """An arm that can be applied; its identity stays that of the requested one."""

    arm: Arm
    values: dict[str, float]
    """For `ArmOutcome.solved`: the solved parameter and its GMACs, blocks with a capped r, tokens
    that `align` added."""


def solve(arm: Arm, network: Network, image_size: ImageSize) -> BudgetSolution:
    """The arm with a parameter instead of its budget: the one that comes closest to the budget
    from below.

    It limits the network's MACs on the promised tokens plus those of all methods of the stack, at
    `image_size`. An r that is given for each block is refined block by block: the last ones merge
    one token more. Raises `Unsupported`, naming what can be reached, when no value keeps to the
    budget, or when every one does.
    """
    budgeted = [
        index for index, step in enumerate(arm.stack) if step.params.get("budget") is not None
    ]
    values: dict[str, float] = {}
    if (reason := methods.stack_refusal(arm, network)) is not None:
        raise Unsupported(reason)
    if budgeted:
        arm, values = _within(arm, budgeted[0], network, image_size)
    for method, params in methods.resolve(arm, "vision"):
        values |= params.solved(network, image_size)
        if getattr(params, "align", None) is not None:
            plain = params.model_copy(update={"align": None})
            exact, rounded = (
                sum(block.mlp for block in method.tokens(each, network, image_size))
                for each in (plain, params)
            )
            values["align_extra_tokens"] = (rounded - exact) / network.depth
    return BudgetSolution(arm, values)


def cost(arm: Arm, network: Network, image_size: ImageSize) -> int:
    """MACs per image, the methods' own included: what a budget limits."""
    return network.macs(
        image_size, methods.promised_tokens(arm, network, image_size)
    ) + methods.method_macs(arm, network, image_size)


def _within(
    arm: Arm, index: int, network: Network, image_size: ImageSize
) -> tuple[Arm, dict[str, float]]:
    step = arm.stack[index]
    method, params = methods.resolve(arm, "vision")[index]
    name = getattr(method, "SOLVES", None)
    if name is None:
        raise Unsupported(f"{step.method} names no parameter that a budget could solve (SOLVES)")
    dense = network.macs(image_size, network.dense_tokens(image_size))
    budget = params.budget  # which has exactly one of the two
    limit = round(dense * budget.gmacs_ratio if budget.gmacs is None else budget.gmacs * 1e9)
    most, value = _scale(method.Params.model_fields[name], params, network, image_size)

    def at(number: int) -> Arm:
        own = {**step.params, "budget": None, name: value(number)}
        solved = step.model_copy(update={"params": own})
        return arm.model_copy(
            update={"stack": (*arm.stack[:index], solved, *arm.stack[index + 1 :])}
        )

    cheapest = cost(at(most), network, image_size)
    if not cheapest <= limit <= dense:
        raise Unsupported(
            f"{step.method}: a budget of {limit / 1e9:.4g} GMACs is out of reach at {image_size}"
            f" pixels: any {name} gives between {cheapest / 1e9:.4g} and {dense / 1e9:.4g} GMACs on"
            f" {network.name}"
        )
    # The first reductions may cost more than they save; that is above the dense cost, so below it
    # the order holds.
    low, high = (0, most) if limit < dense else (-1, 0)
    while high - low > 1:
        middle = (low + high) // 2
        if cost(at(middle), network, image_size) <= limit:
            high = middle
        else:
            low = middle
    found = at(high)
    return found, {
        **_solved(name, value(high)),
        "gmacs": cost(found, network, image_size) / 1e9,
        "gmacs_budget": limit / 1e9,
    }


def _scale(
    field: FieldInfo, params: Params, network: Network, image_size: ImageSize
) -> tuple[int, Callable[[int], Any]]:
    """The values of the parameter `field`, from the one that reduces nothing on: the last number,
    and the value of each; a higher number costs no more.

    A share that is kept falls from 1, a share or number that is removed rises from 0; which of the
    two it is shows in its limits: what may not be 0 is kept.
    """
    limits = {
        key: getattr(item, key)
        for item in field.metadata
        for key in ("gt", "ge", "le")
        if hasattr(item, key)
    }
    patches = network.patch_tokens(image_size)
    if float in (field.annotation, *get_args(field.annotation)):
        most = limits.get("le", 1)
        if "gt" in limits:
            return FINENESS - 1, lambda number: most * (FINENESS - number) / FINENESS
        return FINENESS, lambda number: most * number / FINENESS
    depth = network.depth
    if getattr(params, "inflect", None) is not None or "tuple" not in str(field.annotation):
        return patches, lambda number: number
    return depth * (patches // 2), lambda number: _blocks(number, depth)


def _blocks(number: int, depth: int) -> int | list[int]:
    """`number` tokens spread over the blocks as evenly as can be, the last ones merging one more:
    these save least.
    """
    each, more = divmod(number, depth)
    return [each] * (depth - more) + [each + 1] * more if more else each


def _solved(name: str, value: Any) -> dict[str, float]:
    if not isinstance(value, list):
        return {name: value}
    return {name: value[0], f"{name}_plus_1_blocks": value.count(value[-1])}
