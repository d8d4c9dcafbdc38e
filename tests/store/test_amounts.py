"""Peak memory and energy: effects and curves of what an attempt reads once, and what one reading
allows to claim.
"""

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from store.write.submission import NewSweep, submit_sweep
from sweeps.model.outcome import MetricValue, Outcome
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep

SIZES = (64, 96, 128, 192)


def with_metric(outcome: Outcome, name: str, values: Sequence[float]) -> Outcome:
    """The outcome had each arm this value of the metric."""
    unit = "MiB" if "rss" in name else "J"
    arms = [
        arm.model_copy(update={"metrics": (MetricValue(name=name, value=value, unit=unit),)})
        for arm, value in zip(outcome.arms, values, strict=True)
    ]
    return outcome.model_copy(update={"arms": tuple(arms)})


def test_peak_memory_has_a_curve_by_one_reading(engine: Engine) -> None:
    """What is repeatable is less, more or the same by the floor of 2 %; the speed-up and its curve
    stay what they are.
    """
    jobs = [a_job(size) for size in SIZES]
    submit_sweep(engine, NewSweep("memory", "text", "?"), jobs, [])
    for job, arm in zip(jobs, (550.0, 505.0, 450.0, 400.0), strict=True):
        keep(engine, with_metric(an_outcome(job, speedups=(1.3,)), "peak_rss", (500.0, arm)))
    found = rows(
        engine,
        "SELECT verdict, effect_low, n, baseline_value FROM effect WHERE metric = 'peak_rss' ORDER"
        " BY tokens",
    )
    assert [row["verdict"] for row in found] == ["slower", "same", "faster", "faster"]
    assert {(row["effect_low"], row["n"], row["baseline_value"]) for row in found} == {
        (None, 1, 500.0)
    }
    (curve,) = rows(
        engine, "SELECT * FROM break_even WHERE metric = 'peak_rss' AND axis = 'tokens'"
    )
    assert (curve["verdict"], curve["x_low"], curve["x_high"], curve["direction"]) == (
        "crossing",
        16,
        64,
        "gains",
    )
    assert (
        curve["why"] == "Along tokens: more at 16, no different at 36, less at 64 to 144. "
        "Read once, without an interval: 2% counts as no difference."
    )
    assert {row["metric"] for row in rows(engine, "SELECT metric FROM speedup")} == {"latency"}
    (time,) = rows(
        engine, "SELECT verdict FROM break_even WHERE metric = 'latency' AND axis = 'tokens'"
    )
    assert time["verdict"] == "always"


@pytest.mark.parametrize(("attempts", "verdict"), [(1, "insufficient"), (6, "faster")])
def test_energy_needs_several_readings(*, engine: Engine, attempts: int, verdict: str) -> None:
    """One reading of a counter has an unknown error and no verdict; six attempts have an
    interval.
    """
    job = a_job()
    for n in range(attempts):
        outcome = an_outcome(job, seed=n, ended_at=1_790_000_000.0 + 100 * n)
        keep(engine, with_metric(outcome, "energy_per_image", (2.0, 1.6 + 0.01 * (n % 2))))
    (found,) = rows(engine, "SELECT * FROM effect WHERE metric = 'energy_per_image'")
    assert (found["verdict"], found["n"], found["effect_low"] is None) == (
        verdict,
        attempts,
        attempts == 1,
    )
    assert found["effect"] == pytest.approx(1.25, rel=0.02)
