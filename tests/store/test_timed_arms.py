"""What advice reads of a store: rows with errors and conditions, quality by data set, provenance,
and new attempts alone.
"""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from store.errors import StoreError
from store.read.advice.timed_arms import (
    amounts_of,
    environment_facts,
    fresh_figures,
    provenance_rows,
    qualities_of,
    timed_arms,
)
from store.rows.placement import Place
from store.write.submission import newest_attempt
from sweeps.model.job import DENSE, Comparison
from tests.store.conftest import CPU, a_job, an_evaluation, an_outcome, keep, submit

HERE = Place(CPU.environment_id, "here")
LATER = 1_790_100_000.0


def test_rows_have_what_an_interval_is_made_of(engine: Engine) -> None:
    """Standard error, degrees of freedom, the comparison itself, and one group for all sizes of a
    condition.
    """
    for size in (64, 128):
        keep(engine, an_outcome(a_job(size)))
    keep(engine, an_outcome(a_job(64, batch_size=8)))
    found = timed_arms(engine, "deit_tiny_patch16_224", "cpu")
    assert sorted(row.tokens or 0 for row in found) == [16, 16, 64]
    assert all(row.effect_se and row.effect_freedom for row in found)
    assert len({(row.batch_size, row.condition_group) for row in found}) == 2
    assert len({row.condition_group for row in found}) == 2
    for row in found:
        comparison = Comparison.model_validate_json(row.payload)
        assert (comparison.question_id, comparison.baseline) == (row.question_id, DENSE)
        assert comparison.condition == row.condition
        assert row.condition.batch_size == row.batch_size


def test_published_figures_and_unknown_models_are_no_rows(engine: Engine) -> None:
    """What a paper states is no measurement of a machine; an unknown model names the nearest."""
    with pytest.raises(StoreError, match="contains no timed comparison; measure some first"):
        timed_arms(engine)
    keep(engine, an_outcome(a_job()))
    with pytest.raises(
        StoreError, match="of deit_tiny_patch16_225; did you mean 'deit_tiny_patch16_224'"
    ):
        timed_arms(engine, "deit_tiny_patch16_225")
    with pytest.raises(StoreError, match="timed on device cuda"):
        timed_arms(engine, "deit_tiny_patch16_224", "cuda")
    with engine.begin() as connection:
        connection.execute(text("UPDATE effect_row SET source = 'published'"))
    with pytest.raises(StoreError, match="contains no timed comparison"):
        timed_arms(engine, "deit_tiny_patch16_224", "cpu")


def test_quality_stays_with_its_data_set(engine: Engine) -> None:
    """One row for each data set of an arm: the newest without a flag."""
    evaluated = a_job(kind="accuracy")
    other = evaluated.model_copy(
        update={"condition": evaluated.condition.model_copy(update={"data": "imagefolder:x"})}
    )
    keep(engine, an_outcome(a_job()))
    for job in (evaluated, other):
        keep(engine, an_evaluation(job))
    timed = timed_arms(engine)
    found = qualities_of(engine, timed)
    assert sorted(str(row.data) for row in found) == ["digits", "imagefolder:x"]
    assert {row.quality_pair_id for row in found} == {row.quality_pair_id for row in timed}
    assert amounts_of(engine, timed) == []
    assert qualities_of(engine, []) == []


def test_new_attempts_alone(engine: Engine) -> None:
    """The pooled effect counts both attempts, the fresh one only what came after."""
    job = a_job()
    (comparison_id,) = job.comparison_ids()
    keep(engine, an_outcome(job, speedups=(1.5,)))
    since = newest_attempt(engine)
    assert (
        fresh_figures(engine, comparison_id, "latency", HERE, since=since, metric="latency") is None
    )
    keep(
        engine,
        an_outcome(job, speedups=(1.3,), seed=1, pairs=50, ended_at=LATER, flags=("contended",)),
    )
    fresh = fresh_figures(engine, comparison_id, "latency", HERE, since=since, metric="latency")
    assert fresh is not None
    assert (fresh["n"], fresh["verdict"], fresh["flags"]) == (50, "faster", "contended")
    assert fresh["effect"] == pytest.approx(1.3, abs=0.02)
    (pooled,) = timed_arms(engine)
    assert (pooled.pairs, pooled.rounds) == (90, 2)
    assert 1.3 < pooled.speedup < 1.5
    assert (
        fresh_figures(
            engine,
            comparison_id,
            "latency",
            Place(CPU.environment_id, "elsewhere"),
            since=0,
            metric="latency",
        )
        is None
    )


def test_provenance_of_a_sweep(engine: Engine, path: Path) -> None:
    """Where, when, from which commit and in how many attempts; attempts of other sweeps do not
    count.
    """
    own, other = a_job(64), a_job(128)
    submit(engine, [own], "own")
    submit(engine, [other], "other")
    for job, host, ended_at in (
        (own, "here", 1.79e9),
        (own, "here", LATER),
        (own, "there", LATER),
        (other, "here", LATER + 500),
    ):
        keep(engine, an_outcome(job, host=host, ended_at=ended_at))
    rows = provenance_rows(engine, "own")
    found = {
        row.host: (row.attempts, row.first, row.last, row.commit, row.device_name)
        for row in rows.itertuples()
    }
    assert found == {
        "here": (2, 1.79e9 - 10, LATER, "0123abc", "Imaginary CPU"),
        "there": (1, LATER - 10, LATER, "0123abc", "Imaginary CPU"),
    }
    assert json.loads(rows["facts"].iloc[0]) == {"cores": "2", "torch": "2.0"}
    assert (
        environment_facts(engine, [CPU.environment_id])[CPU.environment_id]["facts"]["torch"]
        == "2.0"
    )
    assert provenance_rows(engine, "none").empty
