"""Costs of stored curves relative to the baseline's, from simulated timings whose truth is
known.
"""

from pathlib import Path

import pytest

from store.open.engine import connect_readonly
from store.read.curves import KEY_OF_CURVE, curve_costs
from store.read.queries import sweep_rows
from sweeps.model.job import DENSE
from tests.webapp.simulated import EXTRA, SAVED, SIZES, job, outcome, store_outcomes, topk

DENSE_FIXED_S = 0.5e-3
"""Of the simulated machine, besides 17 us for each token."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = [outcome(job(size, arms=(DENSE, topk(0.5)))) for size in SIZES]
    return store_outcomes(tmp_path_factory.mktemp("costs") / "s.db", "trial", *found)


def test_the_ratios_hold_the_truth(url: str) -> None:
    """The method adds 0.3 ms to what remains of the fixed cost, and saves time as it saves MACs."""
    engine = connect_readonly(url)
    fits, points = (sweep_rows(engine, "trial", view) for view in ("cost_model", "speedup"))
    ((key, costs),) = curve_costs(engine, fits, points).items()
    engine.dispose()
    assert key == tuple(fits[list(KEY_OF_CURVE)].iloc[0])
    arm = topk(0.5)
    truth = (1 - SAVED[arm]) + EXTRA[arm] / DENSE_FIXED_S
    assert costs.fixed is not None
    assert costs.work is not None
    assert costs.fixed.low <= truth <= costs.fixed.high
    assert costs.work.low <= 1 <= costs.work.high


def test_a_ratio_is_the_quotient_of_the_costs_beside_it(url: str) -> None:
    """One rule: the costs of the view `cost_model` and their ratios are of one fit."""
    engine = connect_readonly(url)
    fits, points = (sweep_rows(engine, "trial", view) for view in ("cost_model", "speedup"))
    (costs,) = curve_costs(engine, fits, points).values()
    engine.dispose()
    (row,) = fits.itertuples()
    assert costs.fixed is not None
    assert costs.work is not None
    assert costs.fixed.value == pytest.approx(row.alpha / row.alpha_baseline, rel=1e-6)
    assert costs.work.value == pytest.approx(row.beta / row.beta_baseline, rel=1e-6)


def test_a_curve_that_does_not_fit_has_no_ratios(url: str) -> None:
    """Nor has one that is undetermined."""
    engine = connect_readonly(url)
    fits, points = (sweep_rows(engine, "trial", view) for view in ("cost_model", "speedup"))
    assert curve_costs(engine, fits.assign(verdict="misfit"), points) == {}
    assert curve_costs(engine, fits.iloc[:0], points) == {}
    engine.dispose()


def test_few_sizes_have_no_ratios(tmp_path: Path) -> None:
    """Two sizes determine nothing."""
    engine = connect_readonly(
        store_outcomes(
            tmp_path / "s.db",
            "few",
            *(outcome(job(size, arms=(DENSE, topk(0.5)))) for size in SIZES[-2:]),
        )
    )
    fits, points = (sweep_rows(engine, "few", view) for view in ("cost_model", "speedup"))
    assert curve_costs(engine, fits.assign(verdict="fits"), points) == {}
    engine.dispose()
