"""The cost model: exact without noise, with a test of misfit, and wider where the work between
points is not known.
"""

from collections.abc import Callable

import numpy as np
import pytest

from sweeps.stats import cost_model
from sweeps.stats.cost_model import LaunchWork, crossing, fit_costs, fit_launch_work
from sweeps.stats.curve import MeasuredPoint, Point, interpolate
from sweeps.stats.pooling import SpeedUp
from tests.fixtures.simulated_curves import CASES, FOLLOW_MODEL, GRID, work

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


def test_a_fit_that_stays_on_one_side_has_no_crossing() -> None:
    """Nothing is extrapolated: a method that gains everywhere measured crosses nowhere."""
    assert fit_costs(BASELINE[:3], ARM[:3], speedups(1.5, 2.0, 2.0)[:3], NO_ERROR[:3]) is None
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


# ---- interpolation between measured sizes ----


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


@pytest.mark.parametrize(
    ("case", "x"), [("at 40", 12), ("rounded at 40", 50), ("none", 121), ("rounded at 40", 180)]
)
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


# ---- launch and work in seconds ----


BASELINE_LAUNCH_WORK = X * 5.5e-3
TRUTH = (4e-3, 10e-3, 4.6e-3, 10e-3)
"""Launch in seconds, seconds per GMAC; of the baseline, then of the arm."""
ERRORS = np.full(len(X), 0.006)


def fitted(
    level: np.ndarray, noise: np.ndarray, share: float = 0.6, se: float = 0.006
) -> LaunchWork | None:
    """The fit to times by `TRUTH` of an arm with this share of the MACs, raised by `level`, and
    speed-ups off by `noise`.
    """
    launch_0, work_0, launch, work = TRUTH
    seconds = launch_0 + work_0 * BASELINE_LAUNCH_WORK
    logs = np.log(seconds / (launch + work * share * BASELINE_LAUNCH_WORK))
    return fit_launch_work(
        BASELINE_LAUNCH_WORK,
        share * BASELINE_LAUNCH_WORK,
        seconds * np.exp(level),
        logs + noise,
        np.full(len(X), se),
    )


def test_exact_times_give_their_parameters() -> None:
    """Without noise the four parameters are found, each inside its interval."""
    found = fitted(np.zeros(len(X)), np.zeros(len(X)))
    assert found is not None
    assert [cost.value for cost in found[:4]] == pytest.approx(TRUTH, rel=1e-4)
    assert all(cost.low < cost.value < cost.high for cost in found[:4])


def test_intervals_cover_the_truth_where_jobs_differ() -> None:
    """Levels that differ by 5 % between jobs, and speed-ups known to 0.6 %: 95 % intervals hold the
    truth of 93 % or more.
    """
    rng = np.random.default_rng(1)
    held = np.zeros(4)
    for _ in range(200):
        found = fitted(rng.normal(0, 0.05, len(X)), rng.normal(0, 0.006, len(X)))
        assert found is not None
        held += [
            cost.low <= truth <= cost.high for cost, truth in zip(found[:4], TRUTH, strict=True)
        ]
    assert (held >= 0.93 * 200).all(), held / 200


def test_ratios_are_those_of_the_costs() -> None:
    """A printed ratio is the quotient of the two costs; its interval, narrower than theirs, holds
    the truth of 93 % or more.
    """
    rng, held, level, se = np.random.default_rng(3), np.zeros(2), 0.15, 0.02
    truth = np.array([TRUTH[2] / TRUTH[0], TRUTH[3] / TRUTH[1]])
    for _ in range(200):
        found = fitted(rng.normal(0, level, len(X)), rng.normal(0, se, len(X)), se=se)
        assert found is not None
        pairs = ((found.launch, found.launch_baseline), (found.work, found.work_baseline))
        for place, (ratio, (arm, baseline)) in enumerate(zip(found.ratios, pairs, strict=True)):
            assert ratio is not None
            assert ratio.value == pytest.approx(arm.value / baseline.value)
            assert ratio.high / ratio.value < (arm.high / arm.value) * (
                baseline.high / baseline.value
            )
            held[place] += ratio.low <= truth[place] <= ratio.high
    assert (held >= 0.93 * 200).all(), held / 200


@pytest.mark.parametrize("few", [3, 0])
def test_what_the_points_do_not_determine_has_no_fit(few: int) -> None:
    """Three points, or the same work at each, are too little."""
    work = BASELINE_LAUNCH_WORK[:few] if few else np.full(len(X), 1.0)
    at = len(work)
    assert fit_launch_work(work, work / 2, np.full(at, 0.01), np.zeros(at), ERRORS[:at]) is None
