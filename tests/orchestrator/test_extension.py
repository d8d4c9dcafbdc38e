"""A kind of job that is only declared is part of the printed report."""

import dataclasses
from pathlib import Path

import pytest

from orchestrator.report.data import load_report
from store.open.engine import connect
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.condition import Kind
from sweeps.model.kinds import KINDS
from tests.orchestrator.vision_fixtures import job, outcome, printed, topk


@pytest.mark.parametrize(
    ("like", "title", "numbers"),
    [
        ("latency", "digits_vit_64 (weights trained), batch 1", "2.000x ["),
        ("accuracy", "Robustness of digits_vit_64", "+29."),
    ],
)
def test_a_declared_kind_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, like: Kind, title: str, numbers: str
) -> None:
    """A kind with a timed metric and one with a metric compared by difference, in a table with
    their verdicts.
    """
    monkeypatch.setitem(KINDS, "robustness", dataclasses.replace(KINDS[like], name="robustness"))
    engine = connect(str(tmp_path / "toy.db"))
    measured = outcome(job(like, [topk(0.2)]))
    toy = measured.model_copy(
        update={"job": measured.job.model_copy(update={"kind": "robustness"})}
    )
    submit_sweep(engine, NewSweep("toy", "text", "Is it shown?"), toy.job.comparisons(), [])
    record(engine, None, None, toy)
    engine.dispose()
    report = load_report(str(tmp_path / "toy.db"), "toy")
    for form in ("table", "markdown"):
        lines = printed(report, form).splitlines()
        assert any(title in line for line in lines)
        assert any(
            line.lstrip("| ").startswith("topk keep_rate=0.2") and numbers in line for line in lines
        )
