"""View `cost_model`: launch and work of both sides of a curve, and the predicted beside the
measured break-even.
"""

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from store.write.reanalysis import reanalyse
from store.write.submission import NewSweep, submit_sweep
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep

SIZES = (32, 64, 96, 128, 160, 192, 224)
LAUNCH, PER_TOKEN = 1e-3, 20e-6
EXTRA, SAVED = 0.6e-3, 0.4
"""Seconds that the arm costs, whatever the size, and the share of the work that it saves: both are
equal at 75 tokens."""


def store(engine: Engine, speedups: Sequence[float] | None = None) -> None:
    """A curve of times that are launch + work, of an arm that is equal to the baseline at 75
    tokens.
    """
    jobs = [a_job(size) for size in SIZES]
    submit_sweep(engine, NewSweep("curve", "text", "?"), jobs, [])
    for place, job in enumerate(jobs):
        assert job.condition.image_size is not None
        tokens = (job.condition.image_size // 16) ** 2
        seconds = LAUNCH + PER_TOKEN * tokens
        truth = (
            speedups[place]
            if speedups
            else seconds / (LAUNCH + EXTRA + PER_TOKEN * (1 - SAVED) * tokens)
        )
        outcome = an_outcome(job, speedups=(truth,))
        assert outcome.samples is not None
        level = seconds / outcome.samples.seconds[0][0]
        samples = outcome.samples.model_copy(
            update={
                "seconds": tuple(tuple(s * level for s in row) for row in outcome.samples.seconds)
            }
        )
        shares = (1.0, 1 - SAVED)
        arms = tuple(
            arm.model_copy(
                update={"gmacs": tokens * share / 100, "gmacs_overhead": 0.0, "tokens": tokens}
            )
            for arm, share in zip(outcome.arms, shares, strict=True)
        )
        keep(engine, outcome.model_copy(update={"samples": samples, "arms": arms}))


def test_launch_and_work_of_both_sides(engine: Engine) -> None:
    """Seconds, seconds per GMAC and the break-even of a curve by launch + work are found, and the
    model fits.
    """
    store(engine)
    (found,) = rows(engine, "SELECT * FROM cost_model")
    truth = {
        "alpha_baseline": LAUNCH,
        "beta_baseline": 100 * PER_TOKEN,
        "alpha": LAUNCH + EXTRA,
        "beta": 100 * PER_TOKEN,
    }
    for name, value in truth.items():
        assert found[f"{name}_low"] <= value <= found[f"{name}_high"]
        assert found[name] == pytest.approx(value, rel=0.2)
    assert (found["sweep"], found["points"], found["verdict"], found["work_unit"]) == (
        "curve",
        len(SIZES),
        "fits",
        "GMAC",
    )
    assert found["misfit_p"] > 0.01
    reanalyse(engine)
    assert rows(engine, "SELECT * FROM cost_model") == [found]
    assert found["predicted_x_low"] < 75 < found["predicted_x_high"]
    (claim,) = rows(engine, "SELECT x, x_low, x_high FROM break_even WHERE axis = 'tokens'")
    assert claim["x_low"] < 75 < claim["x_high"]
    assert claim["x"] == found["predicted_x"]
    assert claim["x_high"] - claim["x_low"] > found["predicted_x_high"] - found["predicted_x_low"]


def test_speedups_of_another_shape_are_a_misfit(engine: Engine) -> None:
    """Speed-ups that go up and down with the size do not come from launch + work."""
    store(engine, (0.7, 0.9, 0.75, 1.0, 1.2, 1.05, 1.3))
    (found,) = rows(engine, "SELECT verdict, misfit_p FROM cost_model")
    assert found["verdict"] == "misfit"
    assert found["misfit_p"] < 0.01
