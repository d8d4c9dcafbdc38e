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


def test_the_ratios_hold_the_truth(tmp_path: Path) -> None:
    """The method adds 0.3 ms to what remains of the fixed cost, and saves time as it saves MACs.
    One rule: the costs of the view `cost_model` and their ratios are of one fit. A curve that does
    not fit, is undetermined or has few sizes has none.
    """
    arm = topk(0.5)
    every = [outcome(job(size, arms=(DENSE, arm))) for size in SIZES]
    engine = connect_readonly(store_outcomes(tmp_path / "s.db", "trial", *every))
    fits, points = (sweep_rows(engine, "trial", view) for view in ("cost_model", "speedup"))
    ((key, costs),) = curve_costs(engine, fits, points).items()
    assert key == tuple(fits[list(KEY_OF_CURVE)].iloc[0])
    truth = (1 - SAVED[arm]) + EXTRA[arm] / DENSE_FIXED_S
    assert costs.fixed is not None
    assert costs.work is not None
    assert costs.fixed.low <= truth <= costs.fixed.high
    assert costs.work.low <= 1 <= costs.work.high
    (row,) = fits.itertuples()
    assert costs.fixed.value == pytest.approx(row.alpha / row.alpha_baseline, rel=1e-6)
    assert costs.work.value == pytest.approx(row.beta / row.beta_baseline, rel=1e-6)
    assert curve_costs(engine, fits.assign(verdict="misfit"), points) == {}
    assert curve_costs(engine, fits.iloc[:0], points) == {}
    few = points[points["tokens"] >= points["tokens"].nlargest(2).min()]
    assert curve_costs(engine, fits, few) == {}
    engine.dispose()
