"""Numbers are printed in one way by the report and the web app."""

import math

import pytest

from sweeps.analysis.labels import (
    BITS,
    SPEEDUP,
    TASK,
    conclude,
    conclude_interval,
    conclude_speedup,
)
from sweeps.analysis.rows import SpeedupRow
from sweeps.number_format import (
    AXIS_LABELS,
    axis_value,
    count,
    duration,
    format_number,
    is_missing,
    with_interval,
)
from tests.fixtures.typed_rows import row_of


@pytest.mark.parametrize(
    ("value", "axis", "digits", "text"),
    [
        (784.4, "tokens", 3, "784"),
        (12345.0, "tokens", 3, "12,345"),
        (0.034812, "gmacs", 3, "0.0348"),
        (78.512, "gmacs", 2, "79"),
        (0.4231, "gmacs_saved", 3, "42.3 %"),
        (0.4231, "gmacs_saved", 2, "42 %"),
        (None, "tokens", 3, "?"),
        (math.nan, "gmacs", 3, "?"),
    ],
)
def test_places_on_an_axis(value: float | None, axis: str, digits: int, text: str) -> None:
    """Whole tokens; GMACs and shares with so many significant digits."""
    assert axis in AXIS_LABELS
    assert axis_value(value, axis, digits) == text


def test_counts_and_durations() -> None:
    """Nouns agree with their numbers; durations have one unit."""
    assert [count(1, "point"), count(2, "point"), count(12000, "point")] == [
        "1 point",
        "2 points",
        "12,000 points",
    ]
    assert [duration(seconds) for seconds in (45, 600, 9000)] == ["45 s", "10 min", "2.5 h"]


def test_missing_values_are_dashes() -> None:
    """`None` and NaN are both missing; a zero is not."""
    assert [is_missing(value) for value in (None, math.nan, 0.0, "")] == [True, True, False, False]
    assert [
        format_number(None, ".1f"),
        format_number(math.nan, ".1f"),
        format_number(2**21, ".1f", 2**20),
    ] == ["-", "-", "2.0"]
    assert with_interval(1.1, 0.305, 1.92) == "1.10 [0.30, 1.92]"
    assert [with_interval(1.1, None, 1.9), with_interval(None, None, None)] == ["1.10", "-"]


def test_conclusion_of_a_row_and_of_an_interval() -> None:
    """A row of a view has verdict and floor of its own; an interval without a verdict is compared
    with the effect's floor.
    """
    row = row_of(
        SpeedupRow, speedup=1.2, speedup_low=1.1, speedup_high=1.3, verdict="faster", floor=0.01
    )
    assert conclude_speedup(row) == conclude(SPEEDUP, 1.2, 1.1, 1.3, verdict="faster", floor=0.01)
    assert conclude_interval(TASK, 0.2, 0.15, 0.25).word == "worse"
    assert conclude_interval(BITS, 0.001, -0.002, 0.003).word == "same"
    assert conclude_interval(BITS, None, None, None).word == "not measured"
