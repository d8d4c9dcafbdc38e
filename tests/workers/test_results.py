"""Results of arms compared: the first difference is named, and equal results are equal."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from workers.measure.results import NotComparableError, first_difference, on_gpu


@dataclass
class Found:
    score: float
    boxes: list[torch.Tensor]


class Plain:
    """Has attributes, and no equality of its own."""

    def __init__(self, size: int) -> None:
        self.size = size


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (1, 1.0),
        (math.nan, math.nan),
        (np.float32(0.1), 0.1),
        (torch.ones(3), np.ones(3)),
        (torch.ones(3, dtype=torch.bfloat16), 1.01 * torch.ones(3)),
        (np.array([1e6, 1e-3], np.float32), np.array([1e6, 0.0], np.float32)),
        ({"a": [1, (2, "b")]}, {"a": [1, (2, "b")]}),
        ({3, 1}, {1, 3}),
        (Found(1.0, [torch.zeros(2)]), Found(1.0 + 1e-9, [torch.zeros(2)])),
        (Plain(3), Plain(3)),
        (torch.sort(torch.arange(4)), torch.sort(torch.arange(4))),
        (np.array([]), np.array([])),
        (None, None),
    ],
)
def test_equal_results(old: Any, new: Any) -> None:
    """Rounding is no difference; a small number beside a large one may be lost in the sum."""
    assert first_difference(old, new) is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (1, 2, "the result is 1 against 2"),
        (4.0, 4.1, "the result is 4.0 against 4.1 (rtol 1e-07, atol 4e-07)"),
        ([1, 2, 3], [1, 5, 3], "the result[1] is 2 against 5; 1 of 3 differ"),
        (torch.ones(2, 3), torch.ones(3, 2), "the result has shape (2, 3) against (3, 2)"),
        (
            {"logits": torch.tensor([[0.5, 1.0]])},
            {"logits": torch.tensor([[0.5, math.nan]])},
            "the result['logits'][0, 1] is 1.0 against nan (rtol 1e-05, atol 1e-05); 1 of 2 differ",
        ),
        ({"a": 1}, {"b": 1}, "the result has 'a' against 'b'"),
        (["a"], ["a", "b"], "the result has 0 against 0, 1"),
        (
            Found(1.0, []),
            Found(2.0, []),
            "the result.score is 1.0 against 2.0 (rtol 1e-07, atol 1e-07)",
        ),
        (None, [1], "the result is None against [1]"),
        ("ab", "ba", "the result is 'ab' against 'ba'"),
        (Plain(3), Plain(4), "the result.size is 3 against 4"),
        (
            np.array(["a", "b"]),
            np.array(["a", "c"]),
            "the result[1] is 'b' against 'c'; 1 of 2 differ",
        ),
    ],
)
def test_the_first_difference_is_named(old: Any, new: Any, said: str) -> None:
    """Place, both values, tolerance and how many differ."""
    assert first_difference(old, new) == said


@pytest.mark.parametrize("lazy", [(i for i in range(3)), map(str, [1]), zip([1], [2], strict=True)])
def test_work_that_has_not_run_is_refused(lazy: Any) -> None:
    """A generator returns at once: its time would be that of nothing."""
    with pytest.raises(NotComparableError, match="whose work has not run yet"):
        first_difference([1], lazy)


def test_what_has_no_comparison_says_so() -> None:
    """Two bare objects are neither equal nor different."""
    with pytest.raises(NotComparableError, match="of type object, which has no comparison"):
        first_difference(object(), object())


def test_tensors_are_found_inside_containers() -> None:
    """None of these is on a GPU; a GPU's own are tested in tests/gpu."""
    assert not on_gpu([{"a": torch.ones(2)}, np.ones(2), "text", Found(0.0, [torch.ones(1)])])
