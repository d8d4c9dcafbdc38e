"""The cost model: exact without noise, with a test of misfit, and wider where the work between
points is not known.
"""

import numpy as np
import pytest

from sweeps.stats import cost_model
from sweeps.stats.cost_model import crossing, fit_costs
from tests.fixtures.simulated_curves import FOLLOW_MODEL, GRID, work

X = np.array([4.0, 9, 16, 36, 64, 100, 144, 196])
BASELINE = X / 100
ARM = BASELINE / 2
NO_ERROR = np.full(len(X), 1e-6)


def speedups(launch: float, gain: float, work: float) -> np.ndarray:
    """Log speed-ups of the model with a = `launch`, b = `gain`, c = `work`."""
    return np.asarray(np.log((1 + gain * BASELINE) / (launch + work * ARM)))


def test_parameters_of_an_exact_curve_are_found() -> None:
    """Launch twice as long and work half as much are recovered, and the crossing is where both
    sides are equal.
    """
    found = fit_costs(BASELINE, ARM, speedups(1.5, 2.0, 2.0), NO_ERROR)
    assert found is not None
    assert np.exp(found.parameters) == pytest.approx([1.5, 2.0, 2.0], rel=1e-4)
    assert found.adequate
    where = crossing(found, list(X), BASELINE, ARM)
    assert where is not None
    assert where.x == pytest.approx(50, rel=0.01)
    assert where.low is not None
    assert where.high is not None
    assert where.low < 50 < where.high
    assert where.gains


def test_a_method_that_saves_more_where_work_is_constant_has_two_parameters() -> None:
    """Along the share of MACs saved, the baseline's work is the same at each point and cannot be
    separated from its launch.
    """
    saved = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    baseline, arm = np.full(5, 1.0), 1 - saved
    found = fit_costs(baseline, arm, -np.log(0.4 + 0.8 * arm), np.full(5, 1e-6))
    assert found is not None
    assert np.exp(found.parameters) == pytest.approx([0.4, 0.8], rel=1e-4)
    where = crossing(found, list(saved), baseline, arm)
    assert where is not None
    assert where.x == pytest.approx(0.25, abs=0.005)


def test_too_few_points_have_no_fit() -> None:
    """Three parameters need four points."""
    assert fit_costs(BASELINE[:3], ARM[:3], speedups(1.5, 2.0, 2.0)[:3], NO_ERROR[:3]) is None


def test_a_curve_of_another_shape_is_not_adequate() -> None:
    """A speed-up that rises and falls by 12 % is not launch + work: it determines no parameters.

    One that goes up and down beside launch + work by 6 % leaves a misfit.
    """
    wave = 0.12 * np.sin(np.pi * np.log(X / 8) / np.log(100 / 8))
    errors = np.full(len(X), 0.005)
    assert fit_costs(BASELINE, ARM, wave, errors) is None
    found = fit_costs(
        BASELINE,
        ARM,
        speedups(1.5, 2.0, 2.0) + 0.06 * np.array([1, -1, 1, -1, 1, -1, 1, -1]),
        errors,
    )
    assert found is not None
    assert not found.adequate


def test_work_that_jumps_between_points_widens_the_interval() -> None:
    """Where the arm's work is off the line through its neighbours, the crossing between points is
    known less well.
    """
    logs = speedups(1.5, 2.0, 2.0)
    smooth = fit_costs(BASELINE, ARM, logs, np.full(len(X), 0.005))
    jumps = ARM * np.array([1, 1.1, 0.92, 1.05, 0.95, 1.08, 0.93, 1])
    launch, gain, work = 1.5, 2.0, 2.0
    rough = fit_costs(
        BASELINE,
        jumps,
        np.log((1 + gain * BASELINE) / (launch + work * jumps)),
        np.full(len(X), 0.005),
    )
    assert smooth is not None
    assert rough is not None
    narrow, wide = (
        crossing(smooth, list(X), BASELINE, ARM),
        crossing(rough, list(X), BASELINE, jumps),
    )
    assert narrow is not None
    assert narrow.low is not None
    assert narrow.high is not None
    assert (
        wide is None
        or wide.low is None
        or wide.high is None
        or wide.high / wide.low > narrow.high / narrow.low
    )


def test_a_fit_that_stays_on_one_side_has_no_crossing() -> None:
    """Nothing is extrapolated: a method that gains everywhere measured crosses nowhere."""
    found = fit_costs(BASELINE, ARM, speedups(0.9, 2.0, 2.0), NO_ERROR)
    assert found is not None
    assert crossing(found, list(X), BASELINE, ARM) is None


@pytest.mark.parametrize("case", FOLLOW_MODEL)
def test_crossings_are_covered(case: str) -> None:
    """The interval of the fitted crossing holds the truth in at least 93 % of curves, by an end it
    has or both.
    """
    rng, at = np.random.default_rng(7), int(case.removeprefix("at "))
    truth, arm = FOLLOW_MODEL[case]
    sides = [work(x) for x in GRID], [arm(x) for x in GRID]
    errors, covered, found = np.full(len(GRID), 0.007), 0, 0
    for _ in range(100):
        fit = fit_costs(*sides, [truth(x) + rng.normal(0, 0.007) for x in GRID], errors)
        place = None if fit is None or not fit.adequate else crossing(fit, GRID, *sides)
        if place is not None:
            found += 1
            covered += (place.low or 0) <= at <= (place.high or np.inf)
    assert found >= 60
    assert covered >= 0.93 * found


@pytest.mark.parametrize("true", [(0.9, 2.0, 2.0), (1.5, 0.3, 0.2), (1.0, 5.0, 1.0)])
def test_both_searches_end_at_the_same_fit(true: tuple[float, float, float]) -> None:
    """The quick search and SciPy's bounded one, which takes over where a parameter is hardly
    determined.
    """
    logs = speedups(*true) + 0.01 * np.random.default_rng(0).standard_normal(len(X))

    def weighted(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = cost_model._model(at, BASELINE, ARM)
        return 100 * (value - logs), 100 * gradient

    start = np.log([1.0, 1 / ARM.mean(), 1 / ARM.mean()])
    quick = cost_model._damped(weighted, start)
    assert quick is not None
    np.testing.assert_allclose(quick, cost_model._bounded(weighted, start), rtol=0, atol=1e-4)
