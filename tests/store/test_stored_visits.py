"""Visits in the store: pooled as the statistics do, narrower with each pass, and a further run of
the sweep adds its own.
"""

import numpy as np
import pytest
from sqlalchemy import Engine

from store.write.reanalysis import reanalyse
from sweeps.model.job import Protocol
from sweeps.model.outcome import SAME_COUNTS
from sweeps.stats.visits import Visit, pool_visits
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, in_visits, keep

PASSES = 6
FIGURES = (
    "SELECT speedup, speedup_low, speedup_high, pairs, rounds, verdict, flags, host_speed FROM"
    " speedup"
)


def visited(engine: Engine, *, slower: float = 1.0, run: int = 0) -> list[Visit]:
    """Record a run of six visits on a machine that takes `slower` times as long; returns them."""
    found = []
    for turn in range(PASSES):
        job = a_job(64, protocol=Protocol(pairs_min=3, pairs_max=20, passes=PASSES)).model_copy(
            update={"round": turn}
        )
        seed = run * PASSES + turn
        outcome = an_outcome(job, pairs=10, seed=seed, ended_at=1_790_000_000.0 + seed)
        assert outcome.samples is not None
        seconds = np.array(outcome.samples.seconds) * slower
        samples = outcome.samples.model_copy(
            update={"seconds": tuple(map(tuple, seconds.tolist()))}
        )
        keep(engine, outcome.model_copy(update={"samples": samples}))
        found.append(Visit(seconds[:, :1], seconds[:, 1:]))
    return found


def test_visits_are_pooled_in_their_own_way(engine: Engine) -> None:
    """All visits of all runs are one look; reanalysing changes nothing."""
    visits = visited(engine)
    (first,) = rows(engine, FIGURES)
    expected = pool_visits(visits, range(PASSES)).speedup
    assert (first["speedup"], first["speedup_low"]) == pytest.approx(
        (expected.value, expected.low), rel=1e-9
    )
    assert (first["pairs"], first["rounds"], first["verdict"], first["flags"]) == (
        60,
        PASSES,
        "faster",
        "",
    )
    visited(engine, run=1)
    (second,) = rows(engine, FIGURES)
    assert (second["pairs"], second["rounds"]) == (120, 2 * PASSES)
    assert second["speedup_high"] - second["speedup_low"] < 0.75 * (
        first["speedup_high"] - first["speedup_low"]
    )
    reanalyse(engine)
    assert rows(engine, FIGURES) == [second]


def test_a_slow_run_says_so(engine: Engine) -> None:
    """The speed of the newest run stands beside the answer, which stays that of the quick state;
    mostly slow, it is flagged.
    """
    visited(engine)
    visited(engine, slower=1.25, run=1)
    (row,) = rows(engine, FIGURES)
    assert row["host_speed"] == pytest.approx(0.8, abs=0.03)
    assert row["flags"] == ""
    for run in range(2, 7):
        visited(engine, slower=1.25, run=run)
    (row,) = rows(engine, FIGURES)
    assert row["flags"] == "slow_state"
    assert row["verdict"] == "faster"


@pytest.mark.parametrize(("flag", "widened"), [("no_effect", True), ("", False)])
def test_an_arm_without_effect_that_is_off_widens_the_others(
    engine: Engine, flag: str, widened: bool
) -> None:
    """It does the work of the baseline, and takes 10 % longer; one with equal counts that is slowed
    on purpose shows nothing of the measurement.
    """
    for outcome in in_visits(a_job(64, keep_rates=(0.5, 1.0)), speedups=(1.3, 1 / 1.1)):
        baseline, arm, equal = outcome.arms
        counts = {name: getattr(baseline, name) for name in SAME_COUNTS}
        equal = equal.model_copy(update={**counts, "flags": (flag,) if flag else ()})
        keep(engine, outcome.model_copy(update={"arms": (baseline, arm, equal)}))
    widths = {
        row["keep_rate"]: np.log(row["speedup_high"] / row["speedup_low"]) / 2
        for row in rows(
            engine,
            "SELECT json_extract(params, '$.keep_rate') AS keep_rate, speedup_low, speedup_high"
            " FROM speedup",
        )
    }
    assert (widths[0.5] > 0.1) == widened
    assert widths[1.0] < 0.05
