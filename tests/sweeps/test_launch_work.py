"""Launch and work in seconds: exact without noise, intervals that cover where jobs differ in level,
and what is not determined.
"""

import numpy as np
import pytest

from sweeps.stats.cost_model import LaunchWork, fit_launch_work

X = np.array([4.0, 9, 16, 36, 64, 100, 144, 196])
BASELINE = X * 5.5e-3
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
    seconds = launch_0 + work_0 * BASELINE
    logs = np.log(seconds / (launch + work * share * BASELINE))
    return fit_launch_work(
        BASELINE, share * BASELINE, seconds * np.exp(level), logs + noise, np.full(len(X), se)
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


@pytest.mark.parametrize(("level", "se"), [(0.05, 0.006), (0.15, 0.02)])
def test_ratios_are_those_of_the_costs(level: float, se: float) -> None:
    """A printed ratio is the quotient of the two costs; its interval, narrower than theirs, holds
    the truth of 93 % or more.
    """
    rng, truth, held = (
        np.random.default_rng(3),
        np.array([TRUTH[2] / TRUTH[0], TRUTH[3] / TRUTH[1]]),
        np.zeros(2),
    )
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
    work = BASELINE[:few] if few else np.full(len(X), 1.0)
    at = len(work)
    assert fit_launch_work(work, work / 2, np.full(at, 0.01), np.zeros(at), ERRORS[:at]) is None
