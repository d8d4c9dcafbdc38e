"""The audit in a report: what is doubtful stands there with its numbers, as `breakeven audit` and
the page Explain have it.
"""

from pathlib import Path

from orchestrator.report.data import load_report
from orchestrator.report.why import audit_sections
from store.open.engine import connect_readonly
from store.read.audits import audit_of_sweep
from sweeps.model.job import DENSE
from sweeps.model.outcome import Outcome
from tests.webapp.simulated import job, outcome, store_outcomes, tome, with_medians
from workers.methods.arm_labels import params_label


def slowed(found: Outcome, factor: float) -> Outcome:
    """The same job while the machine takes longer for everything."""
    assert found.samples is not None
    seconds = tuple(tuple(factor * each for each in row) for row in found.samples.seconds)
    return found.model_copy(
        update={"samples": found.samples.model_copy(update={"seconds": seconds})}
    )


def stored(path: Path, *outcomes: Outcome) -> str:
    return store_outcomes(path, "trial", *map(with_medians, outcomes))


def lines(url: str, sweep: str) -> list[str]:
    return [
        line.text for section in audit_sections(load_report(url, sweep)) for line in section.lines
    ]


def test_a_size_measured_on_a_slowed_machine(tmp_path: Path) -> None:
    """A size that took half as long again is doubted in the report, word for word as in the audit;
    without it nothing is.
    """
    found = [outcome(job(size, arms=(DENSE, tome(0.02)))) for size in (96, 192, 224)]
    assert lines(stored(tmp_path / "steady.db", *found), "trial") == []
    url = stored(tmp_path / "slowed.db", found[0], slowed(found[1], 1.6), found[2])
    (line,) = lines(url, "trial")
    assert line.startswith("doubtful: deit_tiny_patch16_224, batch 1: the unmodified model takes ")
    assert " ms at 192 px (144 tokens), " in line
    assert " ms at 224 px (196 tokens) (" in line
    engine = connect_readonly(url)
    (finding,) = audit_of_sweep(engine, "trial", params_label).findings
    engine.dispose()
    assert finding.rule == "time_of_sizes"
    assert finding.sentence in line
