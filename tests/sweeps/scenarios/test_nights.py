"""Scenario: a sweep that is measured every day, and looked at every day. Standard errors of .5 %,
days that differ besides, with an autocorrelation of .8 or none.

| scenario (shares of chains with a false change) | before | after |
|---|---|---|
| 30 days of 1 / 2 %, autocorrelation .8, one look | 10 / 54 % | 1 / .5 % |
| 10 days of 1 / 2 %, autocorrelation .8, one look | 7 / 16 % | 0 / .5 % |
| 30 days of 1 / 2 %, autocorrelation .8, a look each day | 25 / 75 % | 5 / 4 % |
| 30 days of 1 / 2 %, independent, a look each day | 3 / 5 % | 0 / 0 % |
| one outlying day (-10 %), newest or last but one | 100 / 99 % | 0 / 0 % |

A fall of 5 % at the last two of 10 days is found in 71 % where days do not differ, and in 2 %
where they differ by 1 %: later days show it.
"""

import numpy as np
import pytest

from sweeps.model.metrics import SPEED_FLOOR
from sweeps.stats.pooling import SpeedUp
from sweeps.stats.trends import Trend, TrendPoint
from tests.fixtures.noise import autocorrelated

ERROR, FREEDOM = 0.005, 8


def trends(
    days: int, chains: int, noise: float, correlation: float = 0.0, moved: np.ndarray | None = None
) -> list[Trend]:
    """Chains of one measurement a day, to whose logarithms `moved` is added."""
    random, found = np.random.default_rng(days), []
    for level in noise * autocorrelated(random, chains, days, correlation):
        errors = ERROR * np.sqrt(random.chisquare(FREEDOM, days) / FREEDOM)
        logs = level + random.normal(0, ERROR, days) + (0 if moved is None else moved)
        points = [
            TrendPoint(f"2026-01-{day:03d}", SpeedUp(log, error, FREEDOM, 100), "", {})
            for day, (log, error) in enumerate(zip(logs.tolist(), errors.tolist(), strict=True))
        ]
        found.append(Trend("q", "h", "d", "latency", points))
    return found


def until(trend: Trend, days: int) -> Trend:
    return Trend("q", "h", "d", "latency", trend.measurements[:days])


@pytest.mark.parametrize("days", [10, 30])
@pytest.mark.parametrize(("noise", "correlation"), [(0.01, 0.0), (0.01, 0.8), (0.02, 0.8)])
def test_correlated_days_are_no_change(days: int, noise: float, correlation: float) -> None:
    """At most 1 % of chains, and the noise of 200 of them."""
    assert sum(bool(one.changes) for one in trends(days, 200, noise, correlation)) <= 6


@pytest.mark.parametrize(
    ("noise", "correlation", "most"), [(0.01, 0.0, 0.03), (0.01, 0.8, 0.1), (0.02, 0.8, 0.1)]
)
def test_looks_share_the_level(noise: float, correlation: float, most: float) -> None:
    """Of chains of 24 days, looked at on each from the fourth on."""
    chains = trends(24, 40, noise, correlation)
    false = sum(any(until(one, day).changes for day in range(4, 25)) for one in chains)
    assert false / len(chains) <= most


@pytest.mark.parametrize("place", [5, 8, 9])
def test_one_outlying_day_is_no_change(place: int) -> None:
    """Wherever it lies; the newest one is a possible fall, which the next day does not confirm."""
    moved = -0.1 * (np.arange(10) == place)
    found = trends(10, 100, 0.0, moved=moved)
    assert not any(one.changes for one in found)
    possible = sum(one.possible is not None for one in found)
    assert possible >= 80 if place == 9 else possible == 0


def test_a_fall_on_two_days_is_found_and_on_one_is_possible() -> None:
    """Of 10 % at the last two days of 12: a change; a day earlier it is possible."""
    moved = np.log(0.9) * (np.arange(12) >= 10)
    found = trends(12, 100, 0.0, moved=moved)
    assert sum(one.slower_since() is not None for one in found) >= 90
    assert sum(until(one, 11).possible is not None for one in found) >= 90
    assert not any(until(one, 11).changes for one in found)


def test_a_rise_is_no_possible_fall() -> None:
    """Nor is a fall far below the floor."""
    moved = 0.1 * (np.arange(10) == 9)
    assert not any(one.possible for one in trends(10, 50, 0.0, moved=moved))
    below = -0.25 * SPEED_FLOOR * (np.arange(10) == 9)
    assert not any(one.possible for one in trends(10, 50, 0.0, moved=below))
