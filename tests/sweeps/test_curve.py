"""Curves: order, distinct points, and what counts."""

import pytest
from pydantic import ValidationError

from sweeps.stats.curve import Curve, Point
from sweeps.stats.pooling import Verdict


def point(x: float, verdict: Verdict = "unclear", **more: bool) -> Point:
    return Point.model_validate({"x": x, "speedup": 1.0, "verdict": verdict, **more})


def test_points_are_put_in_order() -> None:
    """A curve is sorted by x, whatever the order in which its points were measured."""
    assert [
        each.x for each in Curve(axis="tokens", points=(point(64), point(4), point(16))).points
    ] == [4, 16, 64]


def test_a_point_counts_unless_something_is_wrong() -> None:
    """A point that is given by its numbers and verdict alone counts: it is neither wrong nor
    without effect.
    """
    given = Point(x=4, speedup=1.2, verdict="insufficient")
    assert (given.wrong, given.no_op) == (False, False)
    assert Curve(axis="tokens", points=(given,)).usable() == (given,)


def test_the_same_x_twice_is_an_error_that_names_it() -> None:
    """Two speed-ups at one x are ambiguous: a curve holds each x once."""
    with pytest.raises(ValidationError, match="several points at x = 16"):
        Curve(axis="tokens", points=(point(16), point(4), point(16)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"speedup": 0.0},
        {"speedup": float("nan")},
        {"x": float("inf")},
        {"low": 1.1},
        {"high": 0.9},
        {"low": 0.0},
        {"se": -0.1},
        {"verdict": "better"},
    ],
)
def test_impossible_points_are_refused(wrong: dict[str, float]) -> None:
    """A speed-up is positive, finite and inside its interval."""
    with pytest.raises(ValidationError):
        Point.model_validate(
            {"x": 16.0, "speedup": 1.0, "low": 0.95, "high": 1.05, "verdict": "same"} | wrong
        )


def test_points_that_a_flag_marks_as_wrong_do_not_count() -> None:
    """Noisy points count, wrong ones never do."""
    clean, wrong = point(4), point(16, wrong=True)
    assert Curve(axis="tokens", points=(clean, wrong)).usable() == (clean,)
    assert Curve(axis="tokens", points=(wrong,)).usable() == ()


def test_a_curve_survives_json() -> None:
    """Axis and points come back equal."""
    curve = Curve(axis="tokens", points=(point(4, "same"), point(16)))
    assert Curve.model_validate_json(curve.model_dump_json()) == curve
    assert hash(curve) == hash(curve.model_copy(deep=True))
