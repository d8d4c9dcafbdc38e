"""Peak memory and energy: effects and curves of what an attempt reads once, and what one reading
allows to claim.
"""

import pytest
from sqlalchemy import Engine

from sweeps.model.outcome import MetricValue, Outcome
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep, submit, table, with_arms

UNITS = {"peak_rss": "MiB", "energy_per_image": "J"}


def with_metrics(outcome: Outcome, **values: tuple[float, float]) -> Outcome:
    """The outcome had its two arms these values of the metrics."""
    read = [
        [MetricValue(name=name, value=own[arm], unit=UNITS[name]) for name, own in values.items()]
        for arm in (0, 1)
    ]
    return with_arms(outcome, *({"metrics": tuple(own)} for own in read))


def test_peak_memory_has_a_curve_by_one_reading(engine: Engine) -> None:
    """What is repeatable is less, more or the same by the floor of 2 %; the speed-up and its curve
    stay what they are.
    """
    amounts = {64: 550.0, 96: 505.0, 128: 450.0, 192: 400.0}
    submit(engine, map(a_job, amounts))
    for size, arm in amounts.items():
        outcome = an_outcome(a_job(size), speedups=(1.3,))
        keep(engine, with_metrics(outcome, peak_rss=(500.0, arm)))
    wanted = "verdict, effect_low, n, baseline_value FROM effect WHERE metric = 'peak_rss'"
    assert table(engine, f"SELECT {wanted} ORDER BY tokens") == [
        (verdict, None, 1, 500.0) for verdict in ("slower", "same", "faster", "faster")
    ]
    curves = rows(engine, "SELECT * FROM break_even WHERE axis = 'tokens' ORDER BY metric")
    time, memory = curves
    assert (time["metric"], time["verdict"]) == ("latency", "always")
    found = [memory[name] for name in ("verdict", "x_low", "x_high", "direction")]
    assert found == ["crossing", 16, 64, "gains"]
    assert memory["why"] == (
        "Along tokens: more at 16, no different at 36, less at 64 to 144. "
        "Read once, without an interval: 2% counts as no difference."
    )
    assert table(engine, "SELECT DISTINCT metric FROM speedup") == [("latency",)]


@pytest.mark.parametrize("flags", [(), ("thermal_slowdown",)])
def test_energy_needs_several_readings(*, engine: Engine, flags: tuple[str, ...]) -> None:
    """One reading of a counter has an unknown error and no verdict; six attempts have an interval.
    Heat changes what a forward takes, not how much memory it needs.
    """
    verdicts = []
    for n in range(6):
        outcome = an_outcome(a_job(), seed=n, ended_at=1_790_000_000.0 + 100 * n, flags=flags)
        joules = (2.0, 1.6 + 0.01 * (n % 2))
        keep(engine, with_metrics(outcome, energy_per_image=joules, peak_rss=(500.0, 400.0)))
        verdicts.append(dict(table(engine, "SELECT metric, verdict FROM effect")))
    hot = "quarantined" if flags else None
    assert verdicts[0]["energy_per_image"] == (hot or "insufficient")
    assert verdicts[-1] == {
        "latency": hot or "faster",
        "energy_per_image": hot or "faster",
        "peak_rss": "faster",
    }
    energy = "SELECT n, effect, effect_low FROM effect WHERE metric = 'energy_per_image'"
    ((n, effect, low),) = table(engine, energy)
    assert (n, low < effect) == (6, True)
    assert effect == pytest.approx(1.25, rel=0.02)
