"""A sweep of both kinds, as workers measured it: neither hides the other, and the operators of a
profile add up to their class.
"""

from pathlib import Path

import pytest

from store.open.engine import connect
from store.read.audits import measured_sweep
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.outcome import Outcome
from tests.fixtures.sql_rows import rows
from tests.workers.vision_jobs import metrics

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_a_condition_with_both_kinds(tmp_path: Path) -> None:
    """The profile comes last, and the view `arm`, the audit and the classes of time have what each
    job measured.
    """
    outcomes = [
        Outcome.model_validate_json((FIXTURES / f"real_{kind}.json").read_text())
        for kind in ("latency", "profile")
    ]
    engine = connect(str(tmp_path / "s.db"))
    requested = [
        (each.job.comparison(pair), each.job.content_hashes)
        for each in outcomes
        for pair in each.job.pairs
    ]
    submit_sweep(engine, NewSweep("both", "text", ""), requested, [])
    for outcome in outcomes:
        assert not outcome.failures
        record(engine, None, None, outcome)
    timed = [metrics(arm)["latency"] for arm in outcomes[0].arms]
    assert [
        row["latency_ms"]
        for row in rows(engine, "SELECT latency_ms FROM arm WHERE kind = 'latency' ORDER BY arm")
    ] == timed
    assert rows(engine, "SELECT count(*) AS n FROM arm WHERE kind = 'profile'") == [{"n": 2}]
    table = measured_sweep(engine, "both", lambda method, _: method)
    assert [row.latency_ms for row in table.rows if row.device_ms is None] == timed
    summed = "SELECT arm, sum(ms) AS ms FROM kernel GROUP BY arm ORDER BY arm"
    classes = rows(engine, "SELECT ms FROM profile WHERE time_class = 'device' ORDER BY arm")
    assert [row["ms"] for row in rows(engine, summed)] == [
        pytest.approx(row["ms"]) for row in classes
    ]
