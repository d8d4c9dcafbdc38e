"""Pooled speed-ups: the level that an interval spends, its widest, and verdicts that follow from
it.
"""

from typing import Any

import numpy as np
import pytest

from sweeps.analysis.labels import stacks_of
from sweeps.analysis.rows import SpeedupRow
from sweeps.model.metrics import SPEED_FLOOR
from sweeps.stats.pooling import (
    WIDEST_LOG,
    SpeedUp,
    Verdict,
    quantile,
    ratio_verdict,
    realised_of,
    within_process,
)
from sweeps.stats.timing import Contrast
from sweeps.text.effects import stack_text
from tests.fixtures.typed_rows import row_of


def test_half_of_the_level_is_spent() -> None:
    """Known quantiles of Student's t: the normal one, and 7.453 with 3 degrees of freedom, each at
    0.5 %.
    """
    assert SpeedUp(0.0, 0.01, 1e9, 100).spent == pytest.approx(0.005)
    assert SpeedUp(0.0, 0.01, 1e9, 100).half_width == pytest.approx(0.0280703, rel=1e-4)
    assert SpeedUp(0.0, 0.01, 3, 100).half_width == pytest.approx(0.0745332, rel=1e-4)
    assert SpeedUp(0.0, 0.01, 3, 100, alpha=0.02).quantile == pytest.approx(quantile(0.01, 3))


def test_the_verdict_follows_the_printed_interval() -> None:
    """Faster and slower exclude 1; same lies within the margin, and is preferred; too few pairs
    have no verdict.
    """
    se = 0.002
    width = SpeedUp(0.0, se, 1e6, 90).half_width
    same = ((0.0, "same"), (width + 0.001, "same"))
    for effect, verdict in ((0.03, "faster"), (-0.03, "slower"), *same, (SPEED_FLOOR, "faster")):
        found = SpeedUp(effect, se, 1e6, 90)
        assert found.verdict() == verdict
        if verdict != "same":
            assert not found.low <= 1 <= found.high
    assert SpeedUp(0.03, 0.02, 1e6, 90).verdict() == "unclear"
    assert SpeedUp(0.5, 0.001, 1e6, 10).verdict(pairs_min=30) == "insufficient"
    assert SpeedUp(0.5, 0.001, 1e6, 30).verdict(pairs_min=30) == "faster"


def test_an_interval_that_excludes_nothing_is_none() -> None:
    """One degree of freedom, or an error of a factor of 3, leave ends that no speed-up reaches."""
    for contrast in (Contrast(0.3, 0.1, 1), Contrast(0.3, 1.2, 29), Contrast(0.3, np.inf, 1)):
        found = within_process(contrast, 12)
        assert (found.low, found.high, found.half_width) == (0, np.inf, np.inf)
        assert found.verdict() == "unclear"


def test_the_widest_interval_is_a_factor_of_20_to_each_side() -> None:
    """Just below it there is an interval, just above it none."""
    widest = WIDEST_LOG / SpeedUp(0.0, 1.0, 9, 9).quantile
    assert SpeedUp(0.0, 0.999 * widest, 9, 9).high == pytest.approx(np.exp(0.999 * WIDEST_LOG))
    assert SpeedUp(0.0, 1.001 * widest, 9, 9).high == np.inf


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.05, 1.15, "faster"),
        (1.0001, 1.2, "faster"),
        (1.0, 1.2, "unclear"),
        (0.8, 0.95, "slower"),
        (0.8, 1.0, "unclear"),
        (0.99, 1.01, "same"),
        (1.001, 1.02, "same"),
        (1 / 1.02, 0.999, "same"),
        (1.001, 1.021, "faster"),
        (0.95, 1.05, "unclear"),
        (0.0, np.inf, "unclear"),
    ],
)
def test_verdicts_follow_from_the_interval(low: float, high: float, expected: Verdict) -> None:
    """Faster and slower need an interval without 1, same one inside the margin; nothing else
    decides.
    """
    assert ratio_verdict(low, high) == expected


def test_shares_of_a_method() -> None:
    """Median and range with the points that they rest on; those without a promise do not count."""
    found = realised_of([0.2, None, 0.6, 0.9, None])
    assert found is not None
    assert (found.median, found.least, found.most, found.points) == (0.6, 0.2, 0.9, 3)
    assert realised_of([None]) is None


# ---- stacks beside their parts ----


def a_row(
    method: str, params: str, speedup: float, spread: float | None = 0.01, verdict: str = "faster"
) -> Any:
    ends = (None, None) if spread is None else (speedup - spread, speedup + spread)
    columns = {"method": method, "params": params, "verdict": verdict, "floor": 0.02}
    return row_of(SpeedupRow, **columns, speedup=speedup, speedup_low=ends[0], speedup_high=ends[1])


STACK = a_row("a+b", '[{"method":"a","k":1},{"method":"b","p":0.5},{"kv_cache":"virtual"}]', 2.9)
PARTS = [
    a_row("a", '{"k":1}', 1.5),
    a_row("b", '{"p":0.5}', 2.0),
    a_row("dense", '{"kv_cache":"virtual"}', 1.0, verdict="same"),
]


def labelled(method: str, params: str) -> str:
    return method


def test_the_product_of_the_parts() -> None:
    """Values and both ends are multiplied; parts come in the order of the steps, overridden
    conditions last.
    """
    assert list(stacks_of(PARTS, labelled)) == []
    (stack,) = stacks_of([*PARTS, STACK], labelled)
    assert [part.label for part in stack.parts] == ["a", "b", "dense"]
    assert stack.product is not None
    assert stack.product.numbers == "3.000x [2.935, 3.065]"
    assert stack.together.numbers == "2.900x [2.890, 2.910]"
    assert stack_text(stack).endswith(
        "all together 2.900x [2.890, 2.910]; the product of the parts is 3.000x [2.935, 3.065]"
    )


def test_a_part_without_an_interval() -> None:
    """There is no product, and the reason is stated, as where a part was not measured alone."""
    unknown = "no product of the parts: not every part has enough pairs"
    for parts, reason in (
        ([a_row("a", '{"k":1}', 1.5, None), *PARTS[1:]], unknown),
        ([a_row("a", '{"k":1}', 1.5, verdict="quarantined"), *PARTS[1:]], unknown),
        (PARTS[:1], 'b {"p": 0.5} was not measured alone'),
    ):
        (stack,) = stacks_of([*parts, STACK], labelled)
        assert stack.product is None
        assert reason in stack_text(stack)
