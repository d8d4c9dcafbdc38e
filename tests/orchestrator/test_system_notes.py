"""What stood out of the machine is shown beside the points that were measured then, and nowhere
else.
"""

import json
from pathlib import Path

import pytest

from orchestrator.report.data import load_report
from store.open.engine import connect
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from tests.orchestrator.vision_fixtures import job, outcome, printed, topk

BUSY = {"foreign_cores": 0.4, "cpu_mhz_min": 1500.0, "cpu_mhz_max": 3000.0}
QUIET = {"foreign_cores": 0.0, "cpu_mhz_min": 2990.0, "cpu_mhz_max": 3000.0}
NOTE = "others used 0.40 cores, CPU at 1500 to 3000 MHz"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A store with a point of a busy machine, one of a quiet one, and one measured on both."""
    path = str(tmp_path / "store.db")
    engine = connect(path)
    jobs = [job("latency", [topk(0.2)], batch_size=batch) for batch in (1, 2, 3)]
    submit_sweep(
        engine,
        NewSweep("sweep", "text", "?"),
        [comparison for each in jobs for comparison in each.comparisons()],
        [],
    )
    # quarantined: what it read concerns no number that is shown
    for number, (each, readings, flags) in enumerate(
        [
            (jobs[0], BUSY, ("contended",)),
            (jobs[1], QUIET, ()),
            (jobs[2], QUIET, ()),
            (jobs[2], BUSY, ()),
            (jobs[1], BUSY, ("thermal_slowdown",)),
        ]
    ):
        found = outcome(each).model_copy(
            update={"system_metrics": readings, "flags": flags, "started_at": 1.0 + number / 8}
        )
        record(engine, None, None, found)
    engine.dispose()
    return path


def test_every_format_has_them(path: str) -> None:
    """Beside the flags in tables, as a column in CSV, with every reading in JSON."""
    report = load_report(path, "sweep")
    notes = zip(report.speedups["batch_size"], report.speedups["system_notes"], strict=True)
    assert dict(notes) == {1: NOTE, 2: "", 3: NOTE}, "the worst of the attempts that count"
    assert f"contended, {NOTE}" in printed(report, "table")
    assert printed(report, "markdown").count(NOTE) == 2
    assert printed(report, "csv").splitlines()[0].split(",").count("system_notes") == 1
    found = json.loads(printed(report, "json"))
    assert [row["system_metrics"]["cpu_mhz_min"] for row in found["executions"]] == [
        1500,
        2990,
        2990,
        1500,
        1500,
    ]
    assert [row["quarantine"] for row in found["executions"]] == [None] * 4 + ["thermal_slowdown"]
