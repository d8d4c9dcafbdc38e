"""Stacks beside their parts: the product needs every part with an interval."""

from typing import Any

from sweeps.analysis.labels import stacks_of
from sweeps.analysis.rows import SpeedupRow
from tests.fixtures.typed_rows import row_of


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
    (stack,) = stacks_of([*PARTS, STACK], labelled)
    assert [part.label for part in stack.parts] == ["a", "b", "dense"]
    assert stack.product is not None
    assert stack.product.numbers == "3.000x [2.935, 3.065]"
    assert stack.together.numbers == "2.900x [2.890, 2.910]"
    assert stack.text.endswith(
        "all together 2.900x [2.890, 2.910]; the product of the parts is 3.000x [2.935, 3.065]"
    )


def test_a_part_that_was_not_measured_alone() -> None:
    """It is named, and there is no product."""
    (stack,) = stacks_of([PARTS[0], STACK], labelled)
    assert stack.product is None
    assert 'b {"p": 0.5} was not measured alone' in stack.text
    assert "product" not in stack.text


def test_a_part_without_an_interval() -> None:
    """There is no product, and the reason is stated."""
    for part in (
        a_row("a", '{"k":1}', 1.5, None),
        a_row("a", '{"k":1}', 1.5, verdict="quarantined"),
    ):
        (stack,) = stacks_of([part, *PARTS[1:], STACK], labelled)
        assert stack.product is None
        assert stack.text.endswith("no product of the parts: not every part has enough pairs")


def test_no_stack() -> None:
    """Single methods are none."""
    assert list(stacks_of(PARTS, labelled)) == []
