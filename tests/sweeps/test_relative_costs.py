"""Costs relative to the baseline: exact without noise, intervals that cover, and what the points do not determine."""

import numpy as np
import pytest

from sweeps.stats.cost_model import fit_costs
from sweeps.stats.relative_costs import relative_costs

BASELINE = np.array([4.0, 9, 16, 36, 64, 100, 144, 196]) * 5.5e-3
FIXED, WORK = 1.2, 1.1


def logs(share: float = 0.6) -> np.ndarray:
    """Log speed-ups of an arm with this share of the MACs, whose fixed cost is 1.2 and cost of a GMAC 1.1 times the baseline's."""
    return np.log((4e-3 + 10e-3 * BASELINE) / (FIXED * 4e-3 + WORK * 10e-3 * share * BASELINE))


def test_exact_speedups_give_their_ratios() -> None:
    """Without noise both ratios are found, each inside its interval."""
    found = relative_costs(fit_costs(BASELINE, 0.6 * BASELINE, logs(), np.full(8, 0.006)))
    assert found is not None
    assert [cost and cost.value for cost in found] == pytest.approx([FIXED, WORK], rel=1e-3)
    assert all(cost is not None and cost.low < cost.value < cost.high for cost in found)


@pytest.mark.parametrize("sizes", [8, 5])
def test_intervals_cover_the_truth(sizes: int) -> None:
    """Speed-ups known to 2 %: 95 % intervals hold the truth of 93 % or more; levels of jobs do not enter."""
    rng, held = np.random.default_rng(2), np.zeros(2)
    work, own = BASELINE[-sizes:], logs()[-sizes:]
    for _ in range(200):
        found = relative_costs(fit_costs(work, 0.6 * work, own + rng.normal(0, 0.02, sizes), np.full(sizes, 0.02)))
        costs = found or (None, None)  # rejected as no line per GMAC, at the level of that test
        held += [cost is None or cost.low <= truth <= cost.high for cost, truth in zip(costs, (FIXED, WORK), strict=True)]
    assert (held >= 0.93 * 200).all(), held / 200


def test_what_points_do_not_determine() -> None:
    """No fit, the same work at each point, or a misfit: no ratio."""
    errors = np.full(8, 0.006)
    assert relative_costs(None) is None
    assert relative_costs(fit_costs(np.ones(8), BASELINE, -np.log(0.5 + BASELINE), errors)) is None
    assert relative_costs(fit_costs(BASELINE, 0.6 * BASELINE, logs() + 0.3 * (-1.0) ** np.arange(8), errors)) is None
