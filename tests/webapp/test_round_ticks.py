"""Ticks of logarithmic axes, and the sign of ratios in sentences of the terminal."""

import pytest

from webapp.charts.scales import FEWEST_ROUND, MAX_ROUND, round_ticks
from webapp.display import texts


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (5.09, 25.4, [6, 8, 10, 15, 20]),
        (0.016, 1.3, [0.02, 0.05, 0.1, 0.2, 0.5, 1]),
        (33, 40, [34, 36, 38, 40]),
        (1e-3, 1e6, [0.001, 0.1, 10, 1000, 1e5]),
        (7.0, 7.0, [7.0]),
    ],
)
def test_ticks(low: float, high: float, ticks: list[float]) -> None:
    """Round numbers inside the span; a short span has equal steps, a very long one powers of
    ten.
    """
    assert round_ticks(low, high) == pytest.approx(ticks)
    for decades in range(1, 9):
        assert FEWEST_ROUND <= len(round_ticks(1.3, 1.3 * 10**decades)) <= MAX_ROUND


def test_the_sign_of_ratios() -> None:
    """Numbers followed by the letter become ratios; words, labels and hexadecimal numbers stay."""
    assert (
        texts.typeset("Use topk: 1.493x [1.4, 1.5], at most 1,024x.")
        == "Use topk: 1.493× [1.4, 1.5], at most 1\u202f024×."
    )
    for same in ("tiny_4xl", "224x224", "0x10", "v1.5x2", "max 2 x 3", "arm r=8xy"):
        assert texts.typeset(same) == same
