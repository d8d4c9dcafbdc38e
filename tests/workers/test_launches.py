"""How many operators each method adds to a forward: on a GPU each is a launch, which is what small
batches pay for.
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.workers.tiny_vits import images, small
from workers.methods import of_modality

BUDGET = {
    ("topk", 1): 6,
    ("topk", 2): 10,
    ("evit", 1): 9,
    ("evit", 2): 13,
    ("tome", 1): 17,
    ("tome", 2): 19,
    ("pitome", 1): 21,
    ("pitome", 2): 24,
    ("dpcknn", 1): 28,
    ("dpcknn", 2): 30,
    ("random", 1): 1,
    ("random", 2): 1,
}
"""Operators, other than views, that one more reducing block adds at most, by batch size."""


class Operators(TorchDispatchMode):
    """Counts the operators that are dispatched, except those that only make views."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.count += not (operator.is_view or operator is torch.ops.aten._unsafe_view.default)
        return operator(*args, **(kwargs or {}))


def operators(model, batch):
    """Operators of one forward of a batch."""
    # Not in inference mode, where composite operators are dispatched whole and hide what they are
    # made of.
    with torch.no_grad(), Operators() as seen:
        model(images(batch))
    return seen.count


@pytest.mark.parametrize(("name", "batch"), BUDGET)
def test_a_reducing_block_adds_few_operators(name, batch):
    """Reducing blocks add some operators, and no more than their budget allows."""
    method, model = of_modality("vision")[name], small("plain")
    amount = (
        {"r": (2, 2, 2, 2)}
        if name in ("tome", "pitome")
        else {"keep_rate": 0.8, "layers": (0, 1, 2, 3)}
    )
    added = operators(method.apply(model, method.Params(**amount)), batch) - operators(model, batch)
    assert 0 < added <= 4 * BUDGET[name, batch]
