"""Interpolation between measured sizes: true where the cost model is, wide enough, and refused
everywhere else.
"""

from collections.abc import Callable

import numpy as np
import pytest

from sweeps.stats.curve import MeasuredPoint, Point, interpolate
from sweeps.stats.pooling import SpeedUp
from tests.fixtures.simulated_curves import CASES, GRID, work

SE = 0.006


def measured(
    truth: Callable[[float], float],
    arm: Callable[[float], float],
    rng: np.random.Generator | None = None,
) -> list[MeasuredPoint]:
    """The points of a curve with this true log speed-up, with noise where a generator is given."""
    found = []
    for x in GRID:
        log = truth(x) + (0.0 if rng is None else rng.normal(0, SE))
        speedup = SpeedUp(log, SE, 40.0, 100)
        point = Point(
            x=x,
            speedup=speedup.value,
            se=SE,
            verdict="unclear",
            pairs=100,
            gmacs_baseline=work(x),
            gmacs=arm(x),
        )
        found.append(MeasuredPoint(point, speedup))
    return found


@pytest.mark.parametrize("case", ["at 40", "rounded at 40", "none"])
@pytest.mark.parametrize("x", [12, 50, 121, 180])
def test_the_interval_holds_between_points(case: str, x: int) -> None:
    """At sizes that were not measured the 99 % interval holds the truth of the cost model, also
    where tokens are rounded.
    """
    truth, arm = CASES[case]
    rng = np.random.default_rng(x)
    inside = [interpolate(measured(truth, arm, rng), x) for _ in range(100)]
    found = [each for each in inside if each is not None]
    assert len(found) > 30, (
        "equal arms do not always determine the three parameters, and then there is no claim"
    )
    assert (
        np.mean([each.speedup.low <= np.exp(truth(x)) <= each.speedup.high for each in found])
        >= 0.98
    )


def test_it_is_wider_than_its_neighbours() -> None:
    """However many points there are, a size that was not measured is known less well than those
    beside it.
    """
    found = interpolate(measured(*CASES["at 40"]), 50)
    assert found is not None
    assert (found.left.point.x, found.right.point.x) == (36, 64)
    for alpha in (0.01, 0.0005):
        own = found.speedup._replace(alpha=alpha).half_width
        assert own > max(
            each.speedup._replace(alpha=alpha).half_width for each in (found.left, found.right)
        )


def test_there_is_none_beyond_what_was_measured() -> None:
    """Not beyond the ends, not at them, not where flags leave no point on one side, and not where
    the model does not fit.
    """
    points = measured(*CASES["at 40"])
    assert [interpolate(points, x) for x in (1, 4, 196, 300)] == [None] * 4
    flagged = [
        each._replace(point=each.point.model_copy(update={"wrong": each.point.x < 64}))
        for each in points
    ]
    assert interpolate(flagged, 50) is None
    assert interpolate(flagged, 120) is not None
    idle = [
        each._replace(point=each.point.model_copy(update={"no_op": each.point.x < 64}))
        for each in points
    ]
    assert interpolate(idle, 50) is None
    assert interpolate(measured(*CASES["two"]), 50) is None, "no sum of launch and work"
    assert interpolate(points[:2], 6) is None, "too few points to fit a model to"
    unknown = [
        each._replace(point=each.point.model_copy(update={"gmacs": None})) for each in points
    ]
    assert interpolate(unknown, 50) is None
