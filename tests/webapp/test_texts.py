"""Verdicts in words, numbers with units, and no claim beyond what was measured."""

from typing import Any

import pytest

from sweeps.number_format import p_text
from tests.webapp import stored
from webapp.display import texts


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("1.5x [1.4x, 2x], not 64x96 px", "1.5× [1.4×, 2×], not 64x96 px"),
        *(("tiny_4xl 0x10 v1.5x2 max 2 x 3 arm r=8xy",) * 2,),
        ("-0.5 points [-1, 2], at --seed=-1 of a-1", "−0.5 points [−1, 2], at --seed=-1 of a-1"),
        (
            "10,000 pairs, 1,234,567 rows, layers=[4,128]",
            "10~000 pairs, 1~234~567 rows, layers=[4,128]",
        ),
        ("1580 ms, 12345.6 ms, 980 ms, 1580 px", "1~580 ms, 12~345.6 ms, 980 ms, 1580 px"),
        ("at 2026-11-23T07:23:05Z", "at 23 Nov 07:23"),
        ("2026-11-23 07:23:05.25+00:00, 2026-11-23", "23 Nov 07:23, 2026-11-23"),
    ],
)
def test_numbers_as_pages_show_them(printed: str, shown: str) -> None:
    """Ratios, signs, thousands, milliseconds and times; names and commands stay as they are. `~` is the narrow
    space between groups.
    """
    assert texts.typeset(printed) == shown.replace("~", texts.THIN_SPACE)


@pytest.mark.parametrize(
    ("bounds", "verdict", "sentence"),
    [
        ((1.23, 1.178, 1.2701), "faster", "is faster: 1.230× [1.178, 1.270]"),
        ((0.97, 0.95, 0.984), "unclear", "is probably slower: 0.970× [0.950, 0.984]"),
        ((1.001, 0.995, 1.0049), "same", "is the same within 1 %: 1.001× [0.995, 1.005]"),
        ((1.5, 1.4, 1.6), "insufficient", "has too few pairs"),
    ],
)
def test_a_single_point(
    bounds: tuple[float, float | None, float | None], verdict: str, sentence: str
) -> None:
    """The sentence of a point follows from its verdict and its interval as printed."""
    values: dict[str, Any] = dict(
        zip(texts.SPEED_COLUMNS, bounds, strict=True), verdict=verdict, floor=0.01
    )
    assert texts.single_point(stored.a_point(**values)) == sentence
    flagged = stored.a_point(**values, flags="contended,thermal_slowdown")
    assert texts.single_point(flagged) == f"{sentence}; flagged: contended, thermal_slowdown"


def test_a_p_value_is_never_zero() -> None:
    """It is bounded where it underflows, and has an equal sign in sentences."""
    assert [p_text(p) for p in (0.0, 1e-310, 0.04217)] == ["< 1e-300", "< 1e-300", "0.042"]
    assert [p_text(p, "= ") for p in (0.0, 0.04217)] == ["< 1e-300", "= 0.042"]
