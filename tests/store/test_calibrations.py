"""Calibrations: estimated from repeats in fresh processes, carried by attempts, and changed for
answers by `reanalyse` alone.
"""

import json

import numpy as np
import pytest
from sqlalchemy import Engine

from store.write.calibrations import freeze_calibrations, freeze_visits
from store.write.reanalysis import reanalyse
from store.write.record import record_imported
from sweeps.model.outcome import SAME_COUNTS
from sweeps.stats.visits import FLOOR
from tests.fixtures.sql_rows import rows
from tests.store.conftest import (
    CPU,
    a_job,
    an_outcome,
    keep,
    pooled,
    submit,
    table,
    with_arms,
)

TAU = 0.02
HERE = [CPU.environment_id]


def repeats(engine: Engine, processes: int = 8) -> None:
    """A calibration sweep whose job ran in fresh processes that differ by `TAU`."""
    job = a_job(64)
    submit(engine, [job], "calibration")
    bias = np.random.default_rng(3).normal(0, TAU, processes)
    outcomes = [
        an_outcome(job, speedups=(1.5 * np.exp(b),), noise=0.005, seed=n)
        for n, b in enumerate(bias)
    ]
    record_imported(
        engine, [one.model_copy(update={"process": f"p{n}"}) for n, one in enumerate(outcomes)]
    )


def test_the_term_is_estimated_and_stored(engine: Engine) -> None:
    """Eight processes that differ by 2 % are found to, with an interval, once however often it is
    computed.
    """
    repeats(engine)
    (found,) = freeze_calibrations(engine, "calibration", HERE)
    assert found["tau_low"] < TAU < found["tau_high"]
    assert found["tau"] < found["process_sd"] < found["tau_high"]
    assert (found["size_class"], found["processes"], found["contrasts"]) == ("up to 10 M", 8, 1)
    (again,) = freeze_calibrations(engine, "calibration", HERE)
    (stored,) = rows(engine, "SELECT * FROM calibration")
    assert found == stored | {name: found[name] for name in ("before", "null_tau")}
    assert (found["before"], again["before"]) == (None, found["process_sd"])
    assert again["calibration_id"] == found["calibration_id"]


def test_one_process_gives_no_calibration(engine: Engine) -> None:
    """Nothing is estimated from one process, from another environment, or from a sweep that is not
    there.
    """
    repeats(engine, processes=1)
    for sweep, where in (("calibration", HERE), ("calibration", ["elsewhere"]), ("none", HERE)):
        assert freeze_calibrations(engine, sweep, where) == []


def test_calibrating_changes_new_attempts_alone(engine: Engine) -> None:
    """What was measured before keeps its interval until `reanalyse`; what is measured after starts
    from the new spread.
    """
    keep(engine, an_outcome(a_job(96)))
    repeats(engine)
    figures = "SELECT * FROM effect_row ORDER BY comparison_id, metric"
    before = rows(engine, figures)
    assert [row["calibration_id"] for row in before] == [None, None]
    assert [row["effect_se"] for row in before if row["rounds"] == 1] == [pytest.approx(FLOOR.sd)]
    (found,) = freeze_calibrations(engine, "calibration", HERE)
    assert rows(engine, figures) == before
    keep(engine, an_outcome(a_job(128), seed=1))
    after = rows(engine, figures)
    (new,) = [row for row in after if row not in before]
    spread, carried = pytest.approx(found["process_sd"]), found["calibration_id"]
    assert (new["effect_se"], new["calibration_id"]) == (spread, carried)
    assert [row for row in after if row in before] == before
    assert reanalyse(engine) == 3
    final = rows(engine, figures)
    assert {row["calibration_id"] for row in final} == {carried}
    assert [row["effect_se"] for row in final if row["rounds"] == 1] == [spread] * 2
    assert found["process_sd"] > FLOOR.sd
    assert table(engine, "SELECT DISTINCT calibration_id FROM attempt") == [(carried,)]
    assert sorted(len(json.loads(row["processes"])) for row in final) == [1, 1, 8]


def test_what_keeps_the_default(engine: Engine) -> None:
    """A model of another size class, another environment, and arms with the baseline's counts: a
    calibration is about arms that do other work.
    """
    repeats(engine)
    (frozen,) = freeze_calibrations(engine, "calibration", HERE)
    own, same, large = (an_outcome(a_job(size)) for size in (96, 128, 160))
    same = with_arms(same, *[{name: getattr(same.arms[0], name) for name in SAME_COUNTS}] * 2)
    large = with_arms(large, *[{"parameters": 86_000_000}] * 2)
    other = CPU.model_copy(update={"facts": {"cores": "4"}})
    elsewhere = an_outcome(a_job(192), environment=other)
    assert [each.same_work(each.job.pairs[0]) for each in (own, same)] == [False, True]
    record_imported(engine, [own, same, large, elsewhere])
    found = table(engine, "SELECT effect_se FROM effect_row WHERE tokens > 16 ORDER BY tokens")
    spread, default = pytest.approx(frozen["process_sd"]), pytest.approx(FLOOR.sd)
    assert found == [(spread,), (default,), (default,), (default,)]


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_attempts_of_two_calibrations_are_pooled(engine: Engine, noise: float) -> None:
    """An attempt of before a calibration and one of after it start from the spread that the newer
    one carries.
    """
    first, second = (an_outcome(a_job(96), seed=n, noise=noise) for n in range(2))
    keep(engine, first)
    repeats(engine)
    (found,) = freeze_calibrations(engine, "calibration", HERE)
    keep(engine, second)
    (row,) = rows(engine, "SELECT * FROM effect_row WHERE tokens = 36")
    assert row["calibration_id"] == found["calibration_id"]
    assert len(json.loads(row["processes"])) == 2
    expected = pooled([first, second], floor=FLOOR._replace(sd=found["process_sd"]))
    spread = (row["effect_se"], row["effect_freedom"])
    assert spread == pytest.approx((expected.se, expected.freedom))
    assert expected.half_width > pooled([first, second]).half_width


def visits(engine: Engine, sizes: int, sd: float) -> None:
    """A sweep whose comparisons were visited six times each, and differ by `sd` between visits."""
    jobs = [a_job(32 + 16 * number) for number in range(sizes)]
    submit(engine, jobs, "visited")
    random = np.random.default_rng(4)
    record_imported(
        engine,
        [
            an_outcome(
                job.model_copy(update={"round": turn}),
                speedups=(1.5 * np.exp(random.normal(0, sd)),),
                noise=0.002,
                seed=turn,
            )
            for job in jobs
            for turn in range(6)
        ],
    )


def test_what_visits_differ_by_is_estimated_over_a_sweep(engine: Engine) -> None:
    """The median interval is narrower by it, it is stored once, and moved when visits differ
    more.
    """
    visits(engine, 24, 0.003)
    figures = (
        "SELECT effect_high - effect_low AS width, visits_freedom, calibration_id FROM effect_row"
    )
    before = rows(engine, figures)
    assert [row["visits_freedom"] for row in before] == [pytest.approx(5)] * 24
    assert freeze_visits(engine, "visited")
    assert not freeze_visits(engine, "visited")
    (found,) = rows(engine, "SELECT * FROM calibration")
    assert found["tau_low"] < 0.003 < found["tau_high"]
    assert (found["made_of"], found["processes"], found["contrasts"]) == ("visits", 144, 24)
    assert reanalyse(engine, "visited") == 24
    after = rows(engine, figures)
    assert {row["calibration_id"] for row in after} == {found["calibration_id"]}
    then, now = (np.median([row["width"] for row in each]) for each in (before, after))
    assert now < then
    visits(engine, 24, 0.03)
    assert freeze_visits(engine, "visited")
    (_, newest) = rows(engine, "SELECT * FROM calibration ORDER BY created_at")
    assert newest["process_sd"] > found["process_sd"]


def test_few_comparisons_and_calibrated_processes_keep_what_is_assumed(engine: Engine) -> None:
    visits(engine, 7, 0.003)
    assert not freeze_visits(engine, "visited")
    visits(engine, 8, 0.003)
    repeats(engine)
    freeze_calibrations(engine, "calibration", HERE)
    assert not freeze_visits(engine, "visited")
