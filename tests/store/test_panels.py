"""Panels of a sweep: their stored counts are those of the views, whatever wrote them; and columns
that views gained with them.
"""

import pytest
from sqlalchemy import Engine, text

from store.read.queries import COUNTED as COUNTED_COLUMNS
from store.read.queries import sweep_summaries
from store.write.reanalysis import reanalyse
from store.write.record import record_imported
from store.write.submission import label_stored_arms, store_arm_labels
from sweeps.model.outcome import Failure
from sweeps.stats.pooling import realised_share
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep, submit

COUNTED = """
    SELECT r.id AS sweep, c.panel_id, s.environment, s.host, s.metric, max(s.threads) AS threads, count(*) AS points,
        max(s.measured_at) AS measured_at, max(CASE WHEN s.verdict = 'faster' THEN s.speedup END) AS best
    FROM sweep AS r JOIN sweep_comparison_row AS l ON l.sweep = r.id JOIN comparison AS c USING (comparison_id)
    JOIN speedup AS s USING (comparison_id) GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5"""
STORED = "SELECT * FROM panel_row ORDER BY 1, 2, 3, 4, 5"


def check(engine: Engine) -> None:
    found = rows(engine, STORED)
    assert found
    assert found == rows(engine, COUNTED)


def summary(engine: Engine, name: str = "sweep") -> tuple[int, int, int]:
    (found,) = (sweep for sweep in sweep_summaries(engine) if sweep["name"] == name)
    return found["comparisons"], found["measured"], found["failures"]


def test_counts_are_those_of_the_views(engine: Engine) -> None:
    """After outcomes, an import from another host, a sweep submitted later, a failure that was
    tried again, and `reanalyse`.
    """
    jobs = [a_job(size, (0.5, 0.7), batch_size=batch) for size in (64, 128) for batch in (1, 4)]
    submit(engine, jobs)
    failed = an_outcome(jobs[0], failures=[Failure(arm=None, reason="error", message="so")])
    keep(engine, failed)
    assert summary(engine) == (8, 0, 2)
    for number, job in enumerate(jobs):
        keep(engine, an_outcome(job, speedups=(1.5, 0.8), seed=number, ended_at=1.79e9 + number))
        check(engine)
    assert summary(engine) == (8, 8, 0)
    record_imported(
        engine, [an_outcome(job, speedups=(1.4, 1.1), host="there") for job in jobs[:2]]
    )
    check(engine)
    submit(engine, jobs[:1], "second")
    check(engine)
    assert summary(engine, "second") == (2, 2, 0)
    reanalyse(engine)
    check(engine)


def test_what_decides_nothing_is_counted(engine: Engine) -> None:
    """Of the comparisons measured: those with a wide interval, and those with too few pairs."""
    jobs = [a_job(size, (0.5,)) for size in (64, 128, 192)]
    submit(engine, jobs)
    keep(engine, an_outcome(jobs[0], speedups=(1.5,)))
    keep(engine, an_outcome(jobs[1], speedups=(1.01,), noise=0.2))
    keep(engine, an_outcome(jobs[2], pairs=2))
    (found,) = sweep_summaries(engine)
    verdicts = [row["verdict"] for row in rows(engine, "SELECT verdict FROM speedup ORDER BY 1")]
    assert verdicts == ["faster", "insufficient", "unclear"]
    assert [found[name] for name in COUNTED_COLUMNS] == [3, 3, 1, 1, 0]


def test_the_view_has_what_the_macs_promise(engine: Engine) -> None:
    """`speedup_macs` counts the method's own MACs; `realised_share` is the share of the logarithm
    that arrived.
    """
    job = a_job(224, (0.5,))
    outcome = an_outcome(job, speedups=(1.5,))
    keep(engine, outcome)
    (row,) = rows(engine, "SELECT * FROM speedup")
    slow = ["speedup_slow", "speedup_slow_low", "speedup_slow_high"]
    assert list(row)[-8:] == [
        "arm_label",
        "panel_id",
        "pairs_min",
        "ratio_of_means",
        "host_speed",
        *slow,
    ]
    assert row["speedup_macs"] == pytest.approx(
        row["gmacs_baseline"] / (row["gmacs"] + row["gmacs_overhead"])
    )
    assert row["realised_share"] == pytest.approx(
        realised_share(row["speedup"], row["speedup_macs"])
    )


def test_there_is_no_share_of_a_promise_of_nothing() -> None:
    """Within 2 % of no change the share would be noise; without a figure there is none."""
    assert [realised_share(1.2, promise) for promise in (1.0, 1.02, 1 / 1.02, 0.0, None)] == [
        None
    ] * 5
    assert realised_share(None, 2.0) is None
    assert realised_share(2.0, 4.0) == pytest.approx(0.5)
    assert realised_share(0.5, 2.0) == pytest.approx(-1)


def test_labels_are_shown_where_they_are_stored(engine: Engine) -> None:
    """Without a label the arm is named by its method and all parameters; a label that changed
    replaces the one before.
    """
    job = a_job(224, (0.5,))
    keep(engine, an_outcome(job))
    labels = "SELECT arm_label FROM speedup"
    assert rows(engine, labels) == [{"arm_label": 'topk {"keep_rate":0.5,"layers":[3,6,9]}'}]
    for label in ("topk keep_rate=0.5", "topk half"):
        store_arm_labels(engine, {job.arms[1].arm_id: label})
        assert rows(engine, labels) == [{"arm_label": label}]
    label_stored_arms(engine, lambda method, params: f"{method} of {len(params)}")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM arm_label")).scalar() == 1
    assert rows(engine, labels) == [{"arm_label": "topk of 34"}]
