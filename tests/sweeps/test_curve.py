"""Curves: order, distinct points, what counts, and the same verdicts as the statistics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sweeps.stats.curve import Curve, Point
from sweeps.stats.timing import Estimate, speedup, verdict


def test_points_are_put_in_order() -> None:
    """A curve is sorted by x, whatever the order in which its points were measured."""
    curve = Curve(axis="tokens", points=(Point(x=64, speedup=1.2), Point(x=4, speedup=0.8), Point(x=16, speedup=0.9)))
    assert [point.x for point in curve.points] == [4, 16, 64]


def test_a_point_counts_unless_something_is_wrong() -> None:
    """A point that is given by its numbers alone is neither flagged nor insufficient."""
    point = Point(x=4, speedup=1.2)
    assert (point.flagged, point.insufficient) == (False, False)


def test_the_same_x_twice_is_an_error_that_names_it() -> None:
    """Two speed-ups at one x are ambiguous: a curve holds each x once."""
    with pytest.raises(ValidationError, match="several points at x = 16"):
        Curve(axis="tokens", points=(Point(x=16, speedup=0.9), Point(x=4, speedup=0.8), Point(x=16, speedup=1.1)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"speedup": 0.0},
        {"speedup": float("nan")},
        {"x": float("inf")},
        {"low": 1.1},
        {"high": 0.9},
        {"low": 0.0},
        {"verdict": "faster"},
    ],
)
def test_impossible_points_are_refused(wrong: dict[str, float]) -> None:
    """A speed-up is positive, finite and inside its interval; a verdict is never stored beside it, since it follows from it."""
    with pytest.raises(ValidationError):
        Point.model_validate({"x": 16.0, "speedup": 1.0, "low": 0.95, "high": 1.05} | wrong)


def test_flagged_points_count_only_on_request_or_alone() -> None:
    """Flagged points are left out beside points without a flag, and count when there are no others."""
    clean, flagged = Point(x=4, speedup=0.8), Point(x=16, speedup=0.9, flagged=True)
    both = Curve(axis="tokens", points=(clean, flagged))
    assert both.usable() == (clean,)
    assert both.usable(with_flagged=True) == (clean, flagged)
    assert Curve(axis="tokens", points=(flagged,)).usable() == (flagged,)
    measured = Point.measured(4, Estimate(0.8, 0.7, 0.9, 30))
    assert Curve(axis="tokens", points=(measured, flagged)).usable() == (measured,)


@given(st.floats(0.3, 3), st.floats(0, 0.5), st.floats(0, 0.5), st.integers(6, 100), st.floats(0, 0.1))
def test_a_point_has_the_verdict_of_its_measurement(value: float, below: float, above: float, pairs: int, floor: float) -> None:
    """Point and statistics use the same word for the same interval, number of pairs and floor."""
    estimate = Estimate(value, value * (1 - below), value * (1 + above), pairs)
    assert Point.measured(16, estimate).verdict(floor) == verdict(estimate, floor)


def test_too_few_pairs_leave_a_point_without_an_interval() -> None:
    """Ends at 0 and infinity, which JSON cannot hold, become empty; the point survives a trip through JSON and is unclear."""
    point = Point.measured(16, speedup([1.0] * 3, [0.5] * 3), comparison_id="abc", flagged=True)
    assert (point.low, point.high, point.pairs) == (None, None, 3)
    assert Point.model_validate_json(point.model_dump_json()) == point
    assert point.verdict() == "unclear"


def test_the_interval_alone_decides_where_pairs_are_not_known() -> None:
    """Where the number of pairs is not known, an interval decides; without one nothing is clear."""
    assert Point(x=16, speedup=1.2, low=1.1, high=1.3).verdict() == "faster"
    assert Point(x=16, speedup=1.2).verdict() == "unclear"


def test_a_measured_curve_survives_json() -> None:
    """Axis and points come back equal."""
    rng = np.random.default_rng(0)
    points = tuple(Point.measured(x, speedup(rng.uniform(1, 2, 30), rng.uniform(1, 2, 30))) for x in (4, 16))
    curve = Curve(axis="tokens", points=points)
    assert Curve.model_validate_json(curve.model_dump_json()) == curve
    assert hash(curve) == hash(curve.model_copy(deep=True))
