"""Change points on simulated series: how often one is found where none is, and where one is
planted.
"""

import numpy as np
import pytest

from sweeps.stats.trends import MIN_ESTIMATES, change_points


def found(n, *, moved=0.0, at=0, beyond=0.0, freedom=8, chains=400, error=0.005):
    """The change points of simulated chains of logarithms: standard errors are estimates, and the
    values scatter by `beyond` besides.
    """
    random = np.random.default_rng(0)
    for _ in range(chains):
        errors = error * np.sqrt(random.chisquare(freedom, n) / freedom)
        values = random.normal(0, np.hypot(error, beyond), n)
        values[at:] += moved
        yield change_points(values, errors, np.full(n, freedom), floor=0.01)


@pytest.mark.parametrize(("n", "beyond"), [(4, 0.0), (10, 0.01), (30, 0.003)])
def test_none_is_found_where_none_is(n, beyond):
    """In 1 % of chains at most, also where days differ by more than the standard errors tell."""
    alarms = sum(bool(changes) for changes in found(n, beyond=beyond))
    assert alarms <= 8  # of 400 at 1 %, exceeded in 2 % of such tests


@pytest.mark.parametrize(("at", "least"), [(5, 0.88), (8, 0.8)])
def test_a_planted_change_is_found_where_it_is(at, least):
    """A fall by 5 % in ten measurements, in the middle and at the last two; none at the last one
    alone.
    """
    assert not any(found(10, moved=-0.05, at=9, chains=100))
    places = [[change.place for change in changes] for changes in found(10, moved=-0.05, at=at)]
    assert sum(place == [at] for place in places) / len(places) >= least


def test_levels_of_two_changes():
    """Each level is the mean up to the next change."""
    values = np.repeat([0.0, 0.2, -0.1], 6) + np.tile([0.001, -0.001], 9)
    first, second = change_points(values, np.full(18, 0.002), np.full(18, 10))
    assert (first.place, second.place) == (6, 12)
    np.testing.assert_allclose(
        [first.before, first.after, second.before, second.after], [0, 0.2, 0.2, -0.1], atol=1e-12
    )
    assert max(first.p, second.p) < 1e-4


def test_a_move_below_the_floor_is_none():
    """However sure it is."""
    values = np.repeat([0.0, 0.008], 10) + np.tile([1e-4, -1e-4], 10)
    arguments = (values, np.full(20, 1e-4), np.full(20, 10))
    assert len(change_points(*arguments)) == 1
    assert not change_points(*arguments, floor=0.01)


def test_few_estimates():
    """With fewer than `MIN_ESTIMATES` even a move by half is none, with so many it may be one."""
    few = MIN_ESTIMATES - 1
    assert not change_points([0.0] * (few - 1) + [0.5], [0.01] * few, [10] * few)
    assert not change_points([0.0, 0.0, 0.0, 0.5], [1e-4] * 4, [10] * 4)
    assert change_points([0.0, 0.0, 0.5, 0.5], [1e-4] * 4, [10] * 4)
    assert not change_points([], [], [])
    with pytest.raises(ValueError, match="positive and finite"):
        change_points([0.0, 1.0], [0.1, 0.0], [5, 5])
