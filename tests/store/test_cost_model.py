"""View `cost_model`: launch and work of both sides of a curve, and the predicted beside the
measured break-even.
"""

import pytest
from sqlalchemy import Engine

from tests.fixtures.sql_rows import rows
from tests.store.conftest import (
    a_job,
    an_outcome,
    keep,
    seconds_of,
    submit,
    with_arms,
    with_seconds,
)

SIZES = (32, 64, 96, 128, 160, 192, 224)
LAUNCH, PER_TOKEN = 1e-3, 20e-6
EXTRA, SAVED = 0.6e-3, 0.4
"""Seconds that the arm costs, whatever the size, and the share of the work that it saves: both are
equal at 75 tokens."""
UNEVEN = (0.7, 0.9, 0.75, 1.0, 1.2, 1.05, 1.3)


@pytest.mark.parametrize("uneven", [False, True])
def test_launch_and_work_of_both_sides(engine: Engine, uneven: bool) -> None:
    """Seconds, seconds per GMAC and the break-even of a curve by launch + work are found, and the
    model fits; speed-ups that go up and down with the size are a misfit.
    """
    submit(engine, map(a_job, SIZES), "curve")
    for size, truth in zip(SIZES, UNEVEN, strict=True):
        tokens = (size // 16) ** 2
        seconds = LAUNCH + PER_TOKEN * tokens
        arm = LAUNCH + EXTRA + PER_TOKEN * (1 - SAVED) * tokens
        outcome = an_outcome(a_job(size), speedups=(truth if uneven else seconds / arm,))
        measured = seconds_of(outcome)
        outcome = with_seconds(outcome, measured * seconds / measured[0, 0])
        counts = {"gmacs_overhead": 0.0, "tokens": tokens}
        work = [{**counts, "gmacs": tokens * share / 100} for share in (1.0, 1 - SAVED)]
        keep(engine, with_arms(outcome, *work))
    (found,) = rows(engine, "SELECT * FROM cost_model")
    if uneven:
        assert (found["verdict"], found["misfit_p"] < 0.01) == ("misfit", True)
        return
    truth_of = {
        "alpha_baseline": LAUNCH,
        "beta_baseline": 100 * PER_TOKEN,
        "alpha": LAUNCH + EXTRA,
        "beta": 100 * PER_TOKEN,
    }
    for name, value in truth_of.items():
        assert found[f"{name}_low"] <= value <= found[f"{name}_high"]
        assert found[name] == pytest.approx(value, rel=0.2)
    names = ("sweep", "points", "verdict", "work_unit")
    assert [found[name] for name in names] == ["curve", len(SIZES), "fits", "GMAC"]
    assert found["misfit_p"] > 0.01
    assert found["predicted_x_low"] < 75 < found["predicted_x_high"]
    (claim,) = rows(engine, "SELECT x, x_low, x_high FROM break_even WHERE axis = 'tokens'")
    assert claim["x_low"] < 75 < claim["x_high"]
    assert claim["x"] == found["predicted_x"]
    assert claim["x_high"] - claim["x_low"] > found["predicted_x_high"] - found["predicted_x_low"]
