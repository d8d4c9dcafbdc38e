"""Verdicts in words, numbers with units, and no claim beyond what was measured."""

from typing import Any

import pandas as pd
import pytest

from sweeps.curve_labels import axis_place, describe_break_even
from sweeps.labels import SPEEDUP, conclude
from webapp import texts


def found(verdict: str, *crossings: tuple[float, float, float, str], why: str = "") -> list[Any]:
    """Rows of the view `break_even` for one arm."""
    rows = [dict(zip(("x", "x_low", "x_high", "direction"), crossing, strict=True)) for crossing in crossings]
    nothing: dict[str, object] = {"x": None, "x_low": None, "x_high": None, "direction": None}
    more = {"verdict": verdict, "why": why, "points": 8, "points_missing": 0, "axis": "tokens", "grid_limited": False}
    return list(pd.DataFrame(rows or [nothing]).assign(**more).itertuples())


@pytest.mark.parametrize(
    ("rows", "whole", "brief"),
    [
        (found("crossing", (36.2, 16, 64, "gains")), "pays from 36 tokens on (16 to 64)", None),
        (found("crossing", (36.2, 16, 64, "loses")), "stops paying at 36 tokens (16 to 64)", None),
        (found("crossing", (36.2, float("nan"), float("nan"), "gains")), "pays from 36 tokens on", None),
        (
            found("crossing", (100.4, 64, 144, "loses"), (36.2, 16, 64, "gains")),
            "crosses 1× at 36 tokens (16 to 64), 100 tokens (64 to 144)",
            None,
        ),
        (found("always"), "pays at every point measured, 4 to 196 tokens", "pays at every point measured"),
        (found("never"), "never pays up to 196 tokens", None),
        (found("unclear", why="One point is not a curve. More."), "unclear: one point is not a curve", "unclear"),
        (
            found("always", why="Faster at every point measured. All points are flagged; they count, since there are no others."),
            "pays at every point measured, 4 to 196 tokens; all points are flagged",
            "pays at every point measured",
        ),
        (found("never")[:0], "not analysed", None),
    ],
    ids=["gains", "loses", "no interval", "twice", "always", "never", "unclear", "flagged", "nothing"],
)
def test_break_even_in_words(rows: list[Any], whole: str, brief: str | None) -> None:
    """Each verdict reads as a sentence with the interval and the range measured; in a chart without reasons."""
    assert describe_break_even(rows, "tokens", (4, 196)) == whole
    assert describe_break_even(rows, "tokens", (4, 196), brief=True) == (brief or whole)


def test_places() -> None:
    """Tokens are whole and have the unit of their input, GMACs and shares have three digits."""
    assert [axis_place(1234.4, "tokens", "prompt tokens"), axis_place(0.03481, "gmacs", "tokens")] == [
        "1,234 prompt tokens",
        "0.0348 GMACs",
    ]
    assert axis_place(0.4231, "gmacs_saved", "tokens") == "42.3 % of GMACs saved"


def test_metrics_in_the_order_of_their_kinds() -> None:
    """Metrics come in the order of the declarations of their kinds, each once."""
    assert texts.metrics_in(["ttft", "time_per_char", "ttft", "latency"]) == ["latency", "time_per_char", "ttft"]


@pytest.mark.parametrize(
    ("bounds", "verdict", "sentence"),
    [
        ((1.23, 1.178, 1.2701), "faster", "is faster: 1.230× [1.178, 1.270]"),
        ((0.97, 0.95, 0.984), "unclear", "is probably slower: 0.970× [0.950, 0.984]"),
        ((1.035, 1.001, 1.072), "unclear", "is probably faster: 1.035× [1.001, 1.072]"),
        ((1.001, 0.995, 1.0049), "same", "is the same within 1 %: 1.001× [0.995, 1.005]"),
        ((1.006, 0.99, 1.03), "unclear", "is unclear: 1.006× [0.990, 1.030]"),
        ((1.5, None, float("nan")), "unclear", "is 1.500×, too few pairs for an interval"),
        ((1.5, 1.4, 1.6), "insufficient", "is measured by too few pairs: 1.500× [1.400, 1.600]"),
    ],
)
def test_a_single_point(bounds: tuple[float, float | None, float | None], verdict: str, sentence: str) -> None:
    """The sentence of a point follows from its verdict and its interval as printed."""
    row = dict(zip(("speedup", "speedup_low", "speedup_high"), bounds, strict=True), verdict=verdict, floor=0.01, flags="")
    assert texts.single_point(row) == sentence
    assert texts.single_point(row | {"flags": "contended,throttled"}) == f"{sentence}; flagged: contended, throttled"


@pytest.mark.parametrize("verdict", ["faster", "same", "slower", "unclear", "insufficient"])
def test_words_and_numbers_are_those_of_the_report(verdict: str) -> None:
    """For intervals around no difference the page prints the word, the ratio and the interval of the report."""
    for low in (0.9, 0.989, 0.9996, 1.0003, 1.001, 1.02):
        for width in (0.0002, 0.004, 0.07):
            bounds = (low + width / 2, low, low + width)
            row = dict(zip(("speedup", "speedup_low", "speedup_high"), bounds, strict=True), verdict=verdict, floor=0.01)
            shown, printed = texts.speed(row), conclude(SPEEDUP, *bounds, verdict=verdict, floor=0.01)
            assert (shown.word, shown.interval) == (printed.word, printed.interval)
            assert shown.estimate == printed.estimate.replace("x", "×")
