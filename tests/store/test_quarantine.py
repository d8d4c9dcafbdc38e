"""Quarantine: attempts on a slowed machine are kept and shown, give no verdict, count only alone,
and leave the question open.
"""

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from store.read.answers import answers, doubted
from store.read.queries import execution_rows
from store.read.user_sql import run_query
from store.write.reanalysis import reanalyse
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Protocol
from sweeps.model.outcome import MetricValue
from tests.fixtures.sql_rows import rows
from tests.store.conftest import CPU, a_job, an_outcome, keep

HEAT = ("thermal_slowdown",)
SHOWN = "SELECT verdict, flags, pairs, rounds FROM speedup"


def shown(engine: Engine) -> tuple[object, ...]:
    (row,) = rows(engine, SHOWN)
    return tuple(row.values())


def test_a_point_that_was_only_measured_on_a_slowed_machine_has_no_verdict(engine: Engine) -> None:
    """Its figures are shown with the reason, it is on no curve, it is not answered, and `flagged`
    finds it.
    """
    job = a_job()
    submit_sweep(engine, NewSweep("sweep", "text", "?"), [job], [])
    keep(engine, an_outcome(job, speedups=(3.0,), flags=["contended", *HEAT]))
    assert shown(engine) == ("quarantined", "contended,thermal_slowdown", 40, 1)
    (comparison,) = job.comparison_ids()
    found = answers(engine, {comparison: Protocol()}, [CPU.environment_id])
    assert (found.answered, found.pairs, found.errors, found.quarantined) == (
        set(),
        {},
        {},
        {comparison: HEAT},
    )
    assert doubted(engine, "flagged", [CPU.environment_id]) == {comparison}
    (curve,) = rows(engine, "SELECT verdict, points FROM break_even WHERE axis = 'tokens'")
    assert tuple(curve.values()) == ("unclear", 0)
    assert reanalyse(engine) == 1
    assert shown(engine)[0] == "quarantined"


def test_another_attempt_stands_alone(engine: Engine) -> None:
    """Whichever came first, and by its own pairs alone: too few of them are too few."""
    job = a_job()
    (comparison,) = job.comparison_ids()
    keep(engine, an_outcome(job, speedups=(3.0,), flags=HEAT))
    keep(engine, an_outcome(job, speedups=(1.5,), pairs=5, seed=1))
    assert shown(engine) == ("insufficient", "", 5, 1)
    found = answers(engine, {comparison: Protocol()}, [CPU.environment_id])
    assert (found.answered, found.pairs, found.quarantined) == (set(), {(comparison, 0): 5}, {})
    keep(engine, an_outcome(job, speedups=(1.5,), seed=2))
    keep(engine, an_outcome(job, speedups=(3.0,), seed=3, flags=("quota_throttled",)))
    assert shown(engine) == ("faster", "", 45, 2)
    assert answers(engine, {comparison: Protocol()}, [CPU.environment_id]).answered == {
        (comparison, 0)
    }
    assert doubted(engine, "flagged", [CPU.environment_id]) == set()


def test_wrong_but_not_slowed_comes_before_slowed(engine: Engine) -> None:
    """An attempt that is wrong for another reason answers, as before; a quarantined one beside it
    counts no pair.
    """
    job = a_job()
    for seed, flags in enumerate((HEAT, ("state_changed",))):
        keep(engine, an_outcome(job, seed=seed, flags=flags))
    assert shown(engine) == ("faster", "state_changed", 40, 1)


@pytest.mark.parametrize("attempts", [1, 6])
def test_energy_of_a_slowed_machine_has_no_verdict_and_memory_has(
    *, engine: Engine, attempts: int
) -> None:
    """Heat changes what a forward takes, not how much memory it needs."""
    job = a_job()
    for n in range(attempts):
        outcome = an_outcome(job, seed=n, ended_at=1_790_000_000.0 + 100 * n, flags=HEAT)
        arms = []
        for arm, joules, memory in zip(
            outcome.arms, (2.0, 1.6 + 0.01 * (n % 2)), (500.0, 400.0), strict=True
        ):
            read = (("energy_per_image", joules, "J"), ("peak_rss", memory, "MiB"))
            metrics = tuple(
                MetricValue(name=name, value=value, unit=unit) for name, value, unit in read
            )
            arms.append(arm.model_copy(update={"metrics": metrics}))
        keep(engine, outcome.model_copy(update={"arms": tuple(arms)}))
    found = {
        row["metric"]: row["verdict"] for row in rows(engine, "SELECT metric, verdict FROM effect")
    }
    assert found == {
        "latency": "quarantined",
        "energy_per_image": "quarantined",
        "peak_rss": "faster",
    }


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), None),
        (("contended", "state_changed"), None),
        (("thermal_slowdown",), "thermal_slowdown"),
        (("contended", "power_brake", "thermal_slowdown"), "thermal_slowdown,power_brake"),
        (("quota_throttled",), "quota_throttled"),
        (("my_quota_throttled",), None),  # another flag whose name ends like it
    ],
)
def test_sql_finds_quarantined_attempts(
    *, engine: Engine, flags: Sequence[str], expected: str | None
) -> None:
    """The view has the reasons, in the order of their declarations, and what the monitors read."""
    outcome = an_outcome(a_job(), flags=flags).model_copy(
        update={"system_metrics": {"cpu_mhz_min": 1200.0}}
    )
    keep(engine, outcome)
    sql = "SELECT quarantine, json_extract(system_metrics, '$.cpu_mhz_min') AS mhz FROM execution"
    assert run_query(engine.url.database, sql).rows == [(expected, 1200.0)]
    counted = run_query(
        engine.url.database, "SELECT count(*) FROM execution WHERE quarantine LIKE '%thermal%'"
    ).rows
    assert counted == [(int("thermal" in (expected or "")),)]


def test_attempts_of_a_sweep(engine: Engine) -> None:
    """Each attempt once, with what it measured and its readings; those of other sweeps are left
    out.
    """
    job, other = a_job(keep_rates=(0.5, 0.7)), a_job(64)
    submit_sweep(engine, NewSweep("sweep", "text", "?"), [job], [])
    for n, each in enumerate((job, job, other)):
        keep(
            engine,
            an_outcome(each, speedups=(1.5, 1.2)[: len(each.pairs)], seed=n, flags=HEAT[: n % 2]),
        )
    frame = execution_rows(engine, "sweep")
    assert list(frame["comparison_ids"]) == [sorted(job.comparison_ids())] * 2
    assert list(frame["quarantine"].fillna("")) == ["", "thermal_slowdown"]
    assert list(frame["system_metrics"]) == [{"load": 0.5}] * 2
    assert execution_rows(engine, "none").empty
