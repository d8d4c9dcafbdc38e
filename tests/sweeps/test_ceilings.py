"""What follows from the same tokens cut for nothing, and what does not, where the intervals do not
show it.
"""

from math import inf
from typing import Any

import pytest

from sweeps.analysis.rows import CeilingRow
from sweeps.text.reasons import explain_ceiling, is_bound, left_to_gain
from tests.fixtures.typed_rows import row_of


def a_row(
    reached: tuple[float, float, float],
    free: tuple[float, float, float],
    promise: float = 2.0,
    **more: Any,
) -> Any:
    names = ("speedup", "speedup_low", "speedup_high", "ceiling", "ceiling_low", "ceiling_high")
    figures = dict(zip(names, (*reached, *free), strict=True))
    sizes = {"tokens": 196, "prompt_tokens": None, "gmacs_baseline": promise, "gmacs_total": 1.0}
    return row_of(CeilingRow, **{**figures, **sizes, **more})


def test_no_method_can_gain_more() -> None:
    """A free cut that is not clearly faster bounds every method with the same counts, by the end of
    its interval.
    """
    assert (
        explain_ceiling(a_row((0.947, 0.907, 0.99), (1.021, 0.978, 1.066), 1.87, tokens=16))
        == "cut for nothing, the same tokens give 1.021x [0.978, 1.066]: at 16 tokens no method"
        " with these token counts gains more than 6.6 %"
    )
    assert explain_ceiling(a_row((0.8, 0.7, 0.9), (0.95, 0.92, 0.98))).endswith(
        "no method with these token counts gains anything"
    )


def test_most_of_what_is_missing_is_not_the_methods() -> None:
    """Where even the ends of both intervals agree on it."""
    assert (
        explain_ceiling(a_row((1.544, 1.479, 1.613), (1.603, 1.534, 1.676), 2.014))
        == "cut for nothing, the same tokens give 1.603x [1.534, 1.676], of 2.01x promised: most of"
        " what is missing is not its own cost (without its own cost it would be 1.038x [0.951,"
        " 1.133] as fast as now)"
    )


@pytest.mark.parametrize(
    ("reached", "free", "words"),
    [
        ((1.1, 1.08, 1.12), (1.8, 1.78, 1.82), "most of what is missing is its own cost"),
        ((1.4, 1.2, 1.6), (1.6, 1.4, 1.8), "promised (without its own cost"),
        ((1.7, 1.65, 1.75), (1.98, 1.9, 2.05), "[1.900, 2.050]"),
    ],
    ids=["its own", "not known", "all of the promise"],
)
def test_whose_the_rest_is(reached: Any, free: Any, words: str) -> None:
    """Nothing is claimed that the ends of the intervals do not bear out."""
    text = explain_ceiling(a_row(reached, free))
    assert words in text
    assert "is not its own" not in text


@pytest.mark.parametrize(
    ("reached", "free", "bounds"),
    [
        ((1.1, 1.0, 1.2), (1.0, 0.95, 1.05), True),
        ((1.3, 1.2, 1.4), (1.0, 0.95, 1.05), False),
        ((1.3, None, None), (1.0, 0.95, 1.05), True),
        ((1.1, 1.0, 1.2), (1.0, None, None), False),
    ],
    ids=[
        "intervals that meet",
        "an arm that is faster",
        "an arm without an interval",
        "a cut without an interval",
    ],
)
def test_what_is_a_bound(reached: Any, free: Any, bounds: bool) -> None:
    """A free cut bounds others where it has an interval that the arm beside it does not
    contradict.
    """
    row = a_row(reached, free, tokens=16)
    assert is_bound(row) == bounds
    assert ("no method with these token counts gains" in explain_ceiling(row)) == bounds


def test_without_an_interval_nothing_follows() -> None:
    """And without a free cut there is no sentence."""
    assert explain_ceiling(a_row((1.5, 1.4, 1.6), (1.6, None, None))).endswith(
        "without an interval, from which nothing follows"
    )
    assert explain_ceiling(a_row((1.5, 1.4, 1.6), (None, None, None))) == ""
    assert left_to_gain(a_row((1.5, None, None), (1.8, 1.7, 1.9)))[1:] == (0.0, inf)
