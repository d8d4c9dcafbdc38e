"""Panels of a sweep: their stored counts are those of the views, whatever wrote them; and columns
that views gained with them.
"""

import pytest
from sqlalchemy import Engine

from store.read.queries import COUNTED as COUNTED_COLUMNS
from store.read.queries import sweep_summaries
from store.write.reanalysis import reanalyse
from store.write.record import record_imported
from store.write.submission import label_stored_arms, store_arm_labels
from sweeps.model.outcome import Failure
from sweeps.stats.pooling import realised_share
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep, submit, table

COUNTED = """
    SELECT r.id AS sweep, c.panel_id, s.environment, s.host, s.metric, max(s.threads) AS threads, count(*) AS points,
        max(s.measured_at) AS measured_at, max(CASE WHEN s.verdict = 'faster' THEN s.speedup END) AS best
    FROM sweep AS r JOIN sweep_comparison_row AS l ON l.sweep = r.id JOIN comparison AS c USING (comparison_id)
    JOIN speedup AS s USING (comparison_id) GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5"""


def check(engine: Engine, name: str, *counts: int) -> None:
    """The stored counts are those of the views; those of a sweep are given."""
    found = rows(engine, "SELECT * FROM panel_row ORDER BY 1, 2, 3, 4, 5")
    assert found == rows(engine, COUNTED)
    (sweep,) = (each for each in sweep_summaries(engine) if each["name"] == name)
    assert [sweep[column] for column in COUNTED_COLUMNS] == list(counts)


def test_counts_are_those_of_the_views(engine: Engine) -> None:
    """After outcomes, an import from another host, a sweep submitted later, a failure that was
    tried again, and `reanalyse`. Of the comparisons measured: those with a wide interval, and those
    with too few pairs.
    """
    jobs = [a_job(size, (0.5, 0.7), batch_size=batch) for size in (64, 128) for batch in (1, 4)]
    submit(engine, jobs)
    lost = Failure(arm=None, reason="error", message="so")
    keep(engine, an_outcome(jobs[0], failures=[lost]))
    check(engine, "sweep", 8, 0, 0, 0, 2)
    for number, job in enumerate(jobs):
        keep(engine, an_outcome(job, speedups=(1.5, 0.8), seed=number, ended_at=1.79e9 + number))
    check(engine, "sweep", 8, 8, 0, 0, 0)
    there = [an_outcome(job, speedups=(1.4, 1.1), host="there") for job in jobs[:2]]
    record_imported(engine, there)
    unclear = [a_job(size, (0.5,)) for size in (160, 192, 208)]
    submit(engine, [jobs[0], *unclear], "second")
    check(engine, "second", 5, 2, 0, 0, 0)
    keep(engine, an_outcome(unclear[0], speedups=(1.01,), noise=0.2))
    for job in unclear[1:]:
        keep(engine, an_outcome(job, pairs=2))
    check(engine, "second", 5, 5, 1, 2, 0)
    reanalyse(engine)
    check(engine, "sweep", 8, 8, 0, 0, 0)


def test_the_view_has_what_the_macs_promise_and_labels(engine: Engine) -> None:
    """`speedup_macs` counts the method's own MACs; `realised_share` is the share of the logarithm
    that arrived. Without a label the arm is named by its method and all parameters; a label that
    changed replaces the one before.
    """
    job = a_job(224, (0.5,))
    keep(engine, an_outcome(job, speedups=(1.5,)))
    (row,) = rows(engine, "SELECT * FROM speedup")
    added = ["arm_label", "panel_id", "pairs_min", "ratio_of_means", "host_speed"]
    slow = ["speedup_slow", "speedup_slow_low", "speedup_slow_high"]
    assert list(row)[-8:] == [*added, *slow]
    promise = row["gmacs_baseline"] / (row["gmacs"] + row["gmacs_overhead"])
    assert row["speedup_macs"] == pytest.approx(promise)
    assert row["realised_share"] == pytest.approx(realised_share(row["speedup"], promise))
    assert row["arm_label"] == 'topk {"keep_rate":0.5,"layers":[3,6,9]}'
    for label in ("topk keep_rate=0.5", "topk half"):
        store_arm_labels(engine, {job.arms[1].arm_id: label})
        assert table(engine, "SELECT arm_label FROM speedup") == [(label,)]
    label_stored_arms(engine, lambda method, params: f"{method} of {len(params)}")
    assert table(engine, "SELECT label FROM arm_label") == [("topk of 34",)]


def test_there_is_no_share_of_a_promise_of_nothing() -> None:
    """Within 2 % of no change the share would be noise; without a figure there is none."""
    for promise in (1.0, 1.02, 1 / 1.02, 0.0, None):
        assert realised_share(1.2, promise) is None
    assert realised_share(None, 2.0) is None
    assert realised_share(2.0, 4.0) == pytest.approx(0.5)
    assert realised_share(0.5, 2.0) == pytest.approx(-1)
