"""Curves whose points share processes: claims hold and crossings are covered, whatever each process adds to all its points."""

from collections.abc import Callable
from math import hypot, sqrt

import numpy as np
import pytest

from sweeps.stats.breakeven import break_even, fit_points
from sweeps.stats.cost_model import crossing, fit_costs
from sweeps.stats.curve import Curve, Point
from sweeps.stats.pooling import COMMON_SHARE, PROCESS_SD, pool
from sweeps.stats.two_way import Contrast
from tests.fixtures.simulated_curves import CASES, GRID, claims_hold, work

SE = 0.005
"""Of one point in one process."""
PROCESSES: dict[str, Callable[[int], list[str]]] = {
    "one": lambda _: ["a"],
    "two for each point": lambda _: ["a", "b"],
    "two in turn": lambda place: ["ab"[place % 2]],
    "each its own": lambda place: [str(place)],
}
"""The processes that measure the point at each place."""


def simulated(rng: np.random.Generator, case: str, plan: str, tau: float) -> Curve:
    """A curve of a case, measured by processes each of which adds to its points: a part alike, the rest to each its own."""
    truth, arm = CASES[case]
    alike, own = COMMON_SHARE * tau, sqrt(1 - COMMON_SHARE**2) * tau
    bias = {name: rng.normal(0, alike) for place in range(len(GRID)) for name in PROCESSES[plan](place)}
    points = []
    for place, x in enumerate(GRID):
        names = PROCESSES[plan](place)
        errors = SE * np.sqrt(rng.chisquare(29, len(names)) / 29)
        spread = hypot(own, SE)
        attempts = [
            [Contrast(truth(x) + rng.normal(bias[name], spread), error, 29)] for name, error in zip(names, errors, strict=True)
        ]
        found = pool(attempts, 90 * len(names))
        ends = {
            "low": found.low or None,
            "high": found.high if found.high < np.inf else None,
            "se": found.se,
            "verdict": found.verdict(),
        }
        loads = dict(zip(names, found.loads, strict=True))
        points.append(Point(x=x, speedup=found.value, **ends, loads=loads, gmacs_baseline=work(x), gmacs=arm(x)))
    return Curve(axis="tokens", points=tuple(points))


def test_points_of_one_process_know_their_level_no_better_than_it() -> None:
    """Eight points of one process leave its term in the level of the curve; of eight processes it is averaged out."""
    x = np.array(GRID)
    baseline, arm = np.array([work(each) for each in x]), np.array([work(0.6 * each) for each in x])
    logs, se = np.log((1 + 2 * baseline) / (1.2 + 2 * arm)), np.full(len(x), 0.01)
    shared, apart = (fit_costs(baseline, arm, logs, se, loads) for loads in (np.full((8, 1), 0.0099), None))
    assert shared is not None
    assert apart is not None
    middle = [fit.predict(baseline[4:5], arm[4:5])[1][0] for fit in (shared, apart)]
    assert middle[0] > 0.0099 > middle[1]


def test_loads_of_the_same_process_join_points() -> None:
    """Loads by process of points become those of the fit: a curve of one process has a wider crossing than one of eight."""
    one, eight = (simulated(np.random.default_rng(1), "at 40", plan, 0.0) for plan in ("one", "each its own"))
    fits = [fit_points(curve.points) for curve in (one, eight)]
    places = [crossing(fit, GRID, [work(x) for x in GRID], [work(0.6 * x) for x in GRID]) for fit in fits if fit is not None]
    widths = [place.high / place.low for place in places if place is not None and place.low and place.high]
    assert len(widths) == 2
    assert widths[0] > widths[1]


@pytest.mark.parametrize("plan", PROCESSES)
@pytest.mark.parametrize("case", ["at 20", "at 40", "at 80"])
def test_crossings_are_covered_whatever_processes_share(case: str, plan: str) -> None:
    """The interval of the fitted crossing holds the truth in at least 93 % of curves, by an end it has or both."""
    rng = np.random.default_rng(7)
    at, covered, found = int(case.removeprefix("at ")), 0, 0
    for _ in range(60):
        curve = simulated(rng, case, plan, PROCESS_SD)
        fit = fit_points(curve.points)
        sides = np.array([[point.gmacs_baseline, point.gmacs] for point in curve.points], np.float64).T
        place = None if fit is None or not fit.adequate else crossing(fit, GRID, *sides)
        if place is not None:
            found += 1
            covered += (place.low or 0) <= at <= (place.high or np.inf)
    assert covered >= 0.93 * found
    assert found >= 36


@pytest.mark.slow
@pytest.mark.parametrize("plan", PROCESSES)
@pytest.mark.parametrize("case", CASES)
def test_at_most_1_of_20_curves_has_a_false_claim(case: str, plan: str) -> None:
    """Claims of any kind are true of 95 %, with what differs between processes shared by the points of one."""
    rng = np.random.default_rng(8)
    truth = CASES[case][0]
    curves = [simulated(rng, case, plan, PROCESS_SD) for _ in range(200)]
    false = sum(not claims_hold(break_even(curve), truth, curve) for curve in curves)
    assert false <= 10
